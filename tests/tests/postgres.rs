//! The store on a PostgreSQL server, against a real one.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use abide_host::network::TlsFile;
use abide_host::wit::storage::StorageError;
// By these names the suite knows the host.
use abide_host::{OpenError, PostgresConfig, PostgresStorage, Storage, limits, wit};
use abide_tests::postgres::Postgres;
use abide_tests::process::succeed;

use conformance::{every_promise, put};

#[path = "../../host/runtime/src/storage/conformance/mod.rs"]
mod conformance;

async fn open(url: &str) -> PostgresStorage {
    PostgresStorage::open(&PostgresConfig::new(url))
        .await
        .unwrap()
}

macro_rules! one_after_the_other {
    ($($group:ident :: $promise:ident)*) => {
        /// All of them on one server: it takes longer to start than any of them.
        #[tokio::test(flavor = "multi_thread")]
        async fn it_keeps_what_every_store_promises() {
            let server = Postgres::start();
            $(
                println!("{}", stringify!($promise));
                let url = server.database(stringify!($promise));
                conformance::$group::$promise(Arc::new(open(&url).await)).await;
            )*
        }
    };
}

every_promise!(one_after_the_other);

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_made_once_and_those_of_others_left_alone() {
    let server = Postgres::start();
    let url = server.database("together");
    let openers: Vec<_> = (0..8)
        .map(|n| {
            let url = url.clone();
            tokio::spawn(async move {
                let store = open(&url).await;
                store
                    .commit(vec![put(&format!("{n}"), None, b"")])
                    .await
                    .unwrap();
            })
        })
        .collect();
    for opener in openers {
        opener.await.unwrap();
    }
    assert_eq!(
        server.sql("together", "SELECT count(*) FROM abide.record"),
        "8"
    );
    assert_eq!(
        server.sql("together", "SELECT version FROM abide.format"),
        "1"
    );
    let readable = "SELECT kind, id, state, octets FROM abide.readable ORDER BY id LIMIT 1";
    assert_eq!(server.sql("together", readable), "thing|0|new|0");

    server.sql("together", "UPDATE abide.format SET version = 7");
    let error = PostgresStorage::open(&PostgresConfig::new(&url))
        .await
        .unwrap_err();
    let OpenError::Newer { found, known, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((*found, *known), (7, 1));
    let text = error.to_string();
    assert!(
        text.contains("was written by a newer version of abide (format 7"),
        "{text}"
    );
    assert_eq!(
        server.sql("together", "SELECT version FROM abide.format"),
        "7"
    );

    let url = server.database("foreign");
    server.sql(
        "foreign",
        "CREATE SCHEMA abide; CREATE TABLE abide.people (name text)",
    );
    let error = PostgresStorage::open(&PostgresConfig::new(&url))
        .await
        .unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error:?}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'abide'";
    assert_eq!(server.sql("foreign", tables), "1");

    // An administrator has made the schema, and the user may make none.
    let url = server.database("given");
    server.sql(
        "given",
        "CREATE ROLE worker LOGIN; CREATE SCHEMA abide AUTHORIZATION worker",
    );
    let store = open(&url.replace("abide@", "worker@")).await;
    store.commit(vec![put("a", None, b"")]).await.unwrap();

    let nowhere = PostgresConfig::new(server.url("nowhere").replace("abide@", "abide:geheim@"));
    let text = PostgresStorage::open(&nowhere)
        .await
        .unwrap_err()
        .to_string();
    assert!(text.contains("create the database"), "{text}");
    assert!(
        !text.contains("geheim") && text.contains("127.0.0.1"),
        "{text}"
    );
    assert!(!format!("{nowhere:?}").contains("geheim"));
}

/// Two records that are always written together.
async fn pair(store: &PostgresStorage) -> Result<Vec<(u64, Vec<u8>)>, StorageError> {
    let mut pair = Vec::new();
    for id in ["left", "right"] {
        if let Some(entry) = store.get("thing", id).await? {
            pair.push((entry.version, entry.body));
        }
    }
    Ok(pair)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_gone_is_found_again() {
    let mut server = Postgres::start();
    let url = server.database("restarted");
    let store = Arc::new(open(&url).await);
    store
        .commit(vec![put("left", None, b"0"), put("right", None, b"0")])
        .await
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..4u8)
        .map(|worker| {
            let (store, stop) = (store.clone(), stop.clone());
            tokio::spawn(async move {
                let (mut written, mut refused) = (0u64, 0u64);
                while !stop.load(Ordering::Relaxed) {
                    let outcome = match pair(&store).await {
                        Ok(pair) => {
                            let body = [worker, written as u8];
                            let changes = vec![
                                put("left", Some(pair[0].0), &body),
                                put("right", Some(pair[1].0), &body),
                                put(&format!("{worker} {written}"), None, &body),
                            ];
                            store.commit(changes).await.map(|_| ())
                        }
                        Err(error) => Err(error),
                    };
                    match outcome {
                        Ok(()) => written += 1,
                        Err(StorageError::Conflict(_)) => {
                            // Perhaps the answer to a commit was lost, and this one is there.
                            let own = format!("{worker} {written}");
                            if let Ok(Some(_)) = store.get("thing", &own).await {
                                written += 1;
                            }
                        }
                        Err(StorageError::Unavailable(why)) => {
                            assert!(why.contains("try again"), "{why}");
                            refused += 1;
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                        Err(error) => panic!("{error:?}"),
                    }
                }
                (written, refused)
            })
        })
        .collect();
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.stop();
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.start_again();
    }
    // It works again, without a new store.
    let begin = Instant::now();
    while pair(&store).await.is_err() {
        assert!(begin.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::Relaxed);
    let (mut written, mut refused) = (0, 0);
    for worker in workers {
        let (some, others) = worker.await.unwrap();
        written += some;
        refused += others;
    }
    assert!(refused > 0, "the server was away and nobody noticed");
    let pair = pair(&store).await.unwrap();
    assert_eq!(pair[0].1, pair[1].1, "half a commit was kept");
    // Each commit made one record besides the pair, and the books balance but for commits whose
    // answer was lost at the very end of the work.
    let kept = server.sql("restarted", "SELECT count(*) - 2 FROM abide.record");
    let kept: u64 = kept.parse().unwrap();
    assert!(
        kept >= written && kept <= written + 4,
        "{kept} kept, {written} confirmed"
    );
}

/// Signed by itself for `localhost`, as (certificate, key).
fn certificate() -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    succeed(
        Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
            ])
            .args(["-nodes", "-days", "1", "-subj", "/CN=localhost"])
            .args([
                "-addext",
                "subjectAltName=DNS:localhost",
                "-addext",
                "basicConstraints=CA:FALSE",
                "-keyout",
            ])
            .arg(&key)
            .arg("-out")
            .arg(&certificate),
    );
    let read = |path| fs::read_to_string(path).unwrap();
    (read(&certificate), read(&key))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_verified_with_its_name() {
    let (certificate, key) = certificate();
    let server = Postgres::with_settings(
        &[("server.pem", &certificate), ("server.key", &key)],
        "ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\n",
    );
    let url = server.database("secret") + "?sslmode=verify-full";
    let trusting = |url: String| PostgresConfig {
        trusted: vec![TlsFile {
            name: "server.pem".to_owned(),
            contents: certificate.clone().into_bytes().into(),
        }],
        ..PostgresConfig::new(url)
    };
    let named = url.replace("127.0.0.1", "localhost");
    let store = PostgresStorage::open(&trusting(named.clone()))
        .await
        .unwrap();
    store.commit(vec![put("a", None, b"1")]).await.unwrap();
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
        WHERE a.application_name = 'abide'";
    assert_eq!(server.sql("secret", encrypted), "t");

    let error = PostgresStorage::open(&trusting(url))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("not valid for name"), "{error}");
    // Not among those of the machine.
    let error = PostgresStorage::open(&PostgresConfig::new(named))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let plain = Postgres::start();
    let url = plain.database("plain") + "?sslmode=require";
    let error = PostgresStorage::open(&trusting(url)).await.unwrap_err();
    assert!(error.to_string().contains("TLS"), "{error}");
}
