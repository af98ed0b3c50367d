//! The file: whose it is, what survives, and what is left alone.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use super::conformance::put;
use super::{OpenError, SqliteStorage};
use crate::Storage;
use crate::wit::storage::{Claim, Filter, StorageError};

/// A directory for the time of one test.
pub(super) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(super) fn new() -> Self {
        Scratch(tempfile::tempdir().unwrap())
    }

    /// Where a store may be.
    pub(super) fn store(&self) -> PathBuf {
        self.0.path().join("state").join("store.sqlite")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Everything in a directory, by name.
fn snapshot(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

async fn body(store: &SqliteStorage, id: &str) -> Option<Vec<u8>> {
    let entry = store.get("thing", id).await.unwrap();
    entry.map(|entry| entry.body)
}

/// Opening fails for reading and for writing, and changes nothing.
fn assert_left_alone(path: &Path, expected: &OpenError) {
    let before = snapshot(path.parent().unwrap());
    assert_eq!(SqliteStorage::open(path).unwrap_err(), *expected);
    assert_eq!(SqliteStorage::open_read_only(path).unwrap_err(), *expected);
    assert_eq!(snapshot(path.parent().unwrap()), before);
    let text = expected.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(!text.contains('\n'), "{text}");
}

#[tokio::test]
async fn a_new_store_is_for_its_owner_only() {
    let scratch = Scratch::new();
    let path = scratch.store();
    let store = SqliteStorage::open(&path).unwrap();
    store.commit(vec![put("a", None, b"1")]).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let files = snapshot(path.parent().unwrap());
    assert!(files.len() > 1, "the write-ahead log is there");
    for (name, _) in files {
        assert_eq!(mode(&path.with_file_name(&name)), 0o600, "{name}");
    }
}

#[test]
fn durability_is_switched_on() {
    let scratch = Scratch::new();
    let connection = super::open::read_write(&scratch.store()).unwrap();
    let pragma = |name: &str| -> String {
        let sql = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
        connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(pragma("journal_mode"), "wal");
    // 2 is FULL (SQLite's documentation of the pragma).
    assert_eq!(pragma("synchronous"), "2");
}

#[tokio::test]
async fn a_store_is_found_again() {
    let scratch = Scratch::new();
    let store = SqliteStorage::open(&scratch.store()).unwrap();
    store.commit(vec![put("a", None, b"1")]).await.unwrap();
    drop(store);
    let store = SqliteStorage::open(&scratch.store()).unwrap();
    assert_eq!(body(&store, "a").await.unwrap(), b"1");
}

#[tokio::test]
async fn what_was_committed_survives_a_death() {
    let scratch = Scratch::new();
    let path = scratch.store();
    let store = SqliteStorage::open(&path).unwrap();
    let version = store.commit(vec![put("a", None, b"1")]).await.unwrap()[0];
    store
        .commit(vec![put("a", Some(version), b"2"), put("b", None, b"2")])
        .await
        .unwrap();
    // What a killed process leaves: the files as they are, nothing closed.
    let copy = scratch.file("copy");
    fs::create_dir(&copy).unwrap();
    for (name, bytes) in snapshot(path.parent().unwrap()) {
        fs::write(copy.join(name), bytes).unwrap();
    }
    let revived = SqliteStorage::open(&copy.join("store.sqlite")).unwrap();
    assert_eq!(body(&revived, "a").await.unwrap(), b"2");
    assert_eq!(body(&revived, "b").await.unwrap(), b"2");
}

#[tokio::test]
async fn a_commit_that_was_torn_never_was() {
    let scratch = Scratch::new();
    let path = scratch.store();
    let store = SqliteStorage::open(&path).unwrap();
    let version = store.commit(vec![put("a", None, b"1")]).await.unwrap()[0];
    let log = path.with_file_name("store.sqlite-wal");
    let before = fs::metadata(&log).unwrap().len();
    store
        .commit(vec![put("a", Some(version), b"2"), put("b", None, b"2")])
        .await
        .unwrap();
    let after = fs::metadata(&log).unwrap().len();
    assert!(after > before);
    let database = fs::read(&path).unwrap();
    let log = fs::read(&log).unwrap();
    // Cut at every frame of the second commit and in the middle of each.
    let mut cut = usize::try_from(before).unwrap();
    while cut < log.len() {
        let copy = Scratch::new();
        fs::create_dir(copy.store().parent().unwrap()).unwrap();
        fs::write(copy.store(), &database).unwrap();
        fs::write(copy.store().with_file_name("store.sqlite-wal"), &log[..cut]).unwrap();
        let revived = SqliteStorage::open(&copy.store()).unwrap();
        assert_eq!(body(&revived, "a").await.unwrap(), b"1", "cut at {cut}");
        assert_eq!(body(&revived, "b").await, None, "cut at {cut}");
        cut += 2060;
    }
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let scratch = Scratch::new();
    let path = scratch.file("empty");
    fs::write(&path, []).unwrap();
    let store = SqliteStorage::open(&path).unwrap();
    store.commit(vec![put("a", None, b"1")]).await.unwrap();
    assert_eq!(body(&store, "a").await.unwrap(), b"1");
}

#[test]
fn what_is_no_database_is_left_alone() {
    let scratch = Scratch::new();
    for (name, contents) in [
        ("text", "-----BEGIN CERTIFICATE-----\n".repeat(10)),
        ("short", "x".to_owned()),
        ("almost", "SQLite format 3".to_owned()),
    ] {
        let path = scratch.file(name);
        fs::write(&path, contents).unwrap();
        let expected = OpenError::NotADatabase { path: path.clone() };
        assert_left_alone(&path, &expected);
    }
    let directory = scratch.file("directory");
    fs::create_dir(&directory).unwrap();
    let error = SqliteStorage::open(&directory).unwrap_err();
    assert_eq!(error, OpenError::NotADatabase { path: directory });
}

#[test]
fn a_database_of_others_is_left_alone() {
    let scratch = Scratch::new();
    for (name, sql) in [
        ("plain", "CREATE TABLE people (name TEXT)"),
        (
            "marked",
            "PRAGMA application_id = 42; PRAGMA user_version = 1; CREATE TABLE t (x)",
        ),
        (
            "wal",
            "PRAGMA journal_mode = WAL; CREATE TABLE record (x); INSERT INTO record VALUES (1)",
        ),
    ] {
        let path = scratch.file(name);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let expected = OpenError::Foreign { path: path.clone() };
        assert_left_alone(&path, &expected);
    }
}

#[tokio::test]
async fn a_newer_store_is_left_alone() {
    let scratch = Scratch::new();
    let path = scratch.store();
    let store = SqliteStorage::open(&path).unwrap();
    store.commit(vec![put("a", None, b"1")]).await.unwrap();
    drop(store);
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA user_version = 7").unwrap();
    let expected = OpenError::Newer {
        path: path.clone(),
        found: 7,
        known: 2,
    };
    // First while the new number stands in the write-ahead log only, then in the file.
    assert_eq!(SqliteStorage::open(&path).unwrap_err(), expected);
    drop(connection);
    assert_left_alone(&path, &expected);
}

#[tokio::test]
async fn reading_only_reads() {
    let scratch = Scratch::new();
    let path = scratch.store();
    let missing = OpenError::Missing { path: path.clone() };
    assert_eq!(SqliteStorage::open_read_only(&path).unwrap_err(), missing);
    assert!(!path.parent().unwrap().exists());
    let store = SqliteStorage::open(&path).unwrap();
    store.commit(vec![put("a", None, b"1")]).await.unwrap();
    let reader = SqliteStorage::open_read_only(&path).unwrap();
    assert_eq!(body(&reader, "a").await.unwrap(), b"1");
    let filter = Filter {
        kind: "thing".to_owned(),
        owner: None,
        account: None,
        state: None,
    };
    let page = reader.list(filter, None, 10).await.unwrap();
    assert_eq!(page.entries.len(), 1);
    let error = reader.commit(vec![put("b", None, b"1")]).await.unwrap_err();
    let StorageError::Unavailable(why) = error else {
        panic!("{error:?}")
    };
    assert!(why.contains("reading only"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_create_a_store_together_share_it() {
    // Several times: the window is narrow.
    for _ in 0..20 {
        let scratch = Scratch::new();
        let path = scratch.store();
        let writers: Vec<_> = (0..8)
            .map(|n| {
                let path = path.clone();
                std::thread::spawn(move || (n, SqliteStorage::open(&path).unwrap()))
            })
            .collect();
        for writer in writers {
            let (n, store) = writer.join().unwrap();
            let change = put(&format!("{n}"), None, b"");
            store.commit(vec![change]).await.unwrap();
        }
        let store = SqliteStorage::open(&path).unwrap();
        for n in 0..8 {
            assert!(body(&store, &format!("{n}")).await.is_some());
        }
    }
}

/// The first format, word for word as it was published.
const FIRST_FORMAT: &str = "
    PRAGMA application_id = 1094863172;
    CREATE TABLE record (
        version INTEGER PRIMARY KEY AUTOINCREMENT,
        kind    TEXT NOT NULL,
        id      TEXT NOT NULL,
        owner   TEXT NOT NULL,
        account TEXT NOT NULL,
        state   TEXT NOT NULL,
        due     INTEGER,
        updated INTEGER NOT NULL,
        body    BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX record_id ON record (kind, id);
    CREATE INDEX record_owner ON record (kind, owner, id);
    CREATE INDEX record_state ON record (kind, state, id);
    CREATE INDEX record_due ON record (kind, due) WHERE due IS NOT NULL;
    PRAGMA user_version = 1;
    INSERT INTO record (version, kind, id, owner, account, state, due, updated, body) VALUES
        (7, 'thing', 'a', '', '', 'new', 50, 40, x'31'),
        (9, 'thing', 'b', '', '', 'new', NULL, 41, x'32');
    DELETE FROM record WHERE version = 9;
";

#[tokio::test]
async fn a_store_of_the_first_format_is_read_and_brought_up_to_date() {
    let scratch = Scratch::new();
    let path = scratch.file("first");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(FIRST_FORMAT).unwrap();
    drop(old);
    let before = fs::read(&path).unwrap();
    let reader = SqliteStorage::open_read_only(&path).unwrap();
    let entry = reader.get("thing", "a").await.unwrap().unwrap();
    assert_eq!((entry.version, entry.lease), (7, None));
    assert_eq!(entry.envelope.due_ms, Some(50));
    assert_eq!(reader.count("thing", 49, 10).await, Ok((1, 0)));
    assert_eq!(reader.count("thing", 50, 10).await, Ok((1, 1)));
    drop(reader);
    assert_eq!(fs::read(&path).unwrap(), before, "reading only reads");

    let store = SqliteStorage::open(&path).unwrap();
    let claim = Claim {
        kind: "thing".to_owned(),
        holder: "w".to_owned(),
        now_ms: 50,
        until_ms: 60,
        limit: 10,
        excluded: Vec::new(),
    };
    let claims = store.claim_due(claim).await.unwrap();
    let [claimed] = &claims.claimed[..] else {
        panic!("{claims:?}")
    };
    assert_eq!((claimed.entry.version, claimed.token), (7, 1));
    let versions = store.commit(vec![put("b", None, b"3")]).await.unwrap();
    assert_eq!(versions, [10], "nine was given out before");
    drop(store);
    // And it stays so.
    let reader = SqliteStorage::open_read_only(&path).unwrap();
    let entry = reader.get("thing", "a").await.unwrap().unwrap();
    assert_eq!(entry.lease.unwrap().until_ms, 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_harms_no_other_commit_of_its_flush() {
    let scratch = Scratch::new();
    let store = Arc::new(SqliteStorage::open(&scratch.store()).unwrap());
    store.commit(vec![put("taken", None, b"1")]).await.unwrap();
    // Somebody else holds the file, so that they queue up for one transaction.
    let other = Connection::open(scratch.store()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let commits: Vec<_> = (0..64)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                // Every third one is lost to the record that is there.
                let mut changes = vec![put(&format!("{n}"), None, b"")];
                if n % 3 == 0 {
                    changes.push(put("taken", None, b"2"));
                }
                store.commit(changes).await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Readers wait for nobody.
    assert_eq!(body(&store, "taken").await.unwrap(), b"1");
    other.execute_batch("COMMIT").unwrap();
    let mut versions = BTreeSet::new();
    for (n, commit) in commits.into_iter().enumerate() {
        let outcome = commit.await.unwrap();
        let there = body(&store, &format!("{n}")).await.is_some();
        if n % 3 == 0 {
            assert_eq!(
                outcome,
                Err(StorageError::Conflict("thing taken".to_owned()))
            );
            assert!(!there, "{n}");
        } else {
            versions.insert(outcome.unwrap()[0]);
            assert!(there, "{n}");
        }
    }
    assert_eq!(versions.len(), 42, "64 but for the 22 divisible by three");
}
