//! Files, stores and servers that are not what they should be. Each ends in one line that
//! names what is at fault and says what to do, and what the store knew is still true.

use std::fs;
use std::path::{Path, PathBuf};

use abide_tests::abide::{Abide, MockCa};
use abide_tests::canned::{Answer, Canned};
use abide_tests::pki::{KeyKind, Pki};
use abide_tests::process::Ended;
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

/// A store with a transaction of a better day, and the files of a request.
struct World {
    _dir: TempDir,
    pki: Pki,
    abide: Abide,
    store: String,
    before: Vec<Value>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder for a test");
        let pki = Pki::new(&dir.path().join("pki"), KeyKind::P256);
        pki.csr("new", &pki.key("new", KeyKind::P256), "/CN=new");
        let abide = Abide::new(dir.path());
        let ca = MockCa::start(dir.path(), &["--implicit-confirm"]);
        let root = ca.root().display().to_string();
        let secret = format!("pass:{}", MockCa::SECRET);
        let ended = abide.enroll(
            [
                ["--cmd", "ir", "--server", ca.url()],
                ["--ref", MockCa::REF, "--secret", &secret],
                ["--subject", "/CN=first", "--newkey", "first.key"],
                ["--trusted", &root, "--certout", "first.pem"],
            ]
            .concat(),
        );
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let before = abide.transactions();
        assert_eq!(before.len(), 1);
        Self {
            _dir: dir,
            pki,
            store: abide.store().display().to_string(),
            abide,
            before,
        }
    }

    fn file(&self, name: &str) -> String {
        self.pki.path(name).display().to_string()
    }

    /// A bad file in the PKI's folder.
    fn write(&self, name: &str, content: &[u8]) -> String {
        fs::write(self.pki.path(name), content).expect("a file for a test");
        self.file(name)
    }

    /// A p10cr that is right but for the options which are changed.
    fn p10cr(&self, server: &str, changed: &[(&str, &str)]) -> Ended {
        let (csr, root) = (self.file("new.csr"), self.file("root.crt"));
        let mut options = vec![
            ("--store", &self.store[..]),
            ("--cmd", "p10cr"),
            ("--server", server),
            ("--ref", "client"),
            ("--secret", "pass:a secret"),
            ("--csr", &csr),
            ("--trusted", &root),
            ("--certout", "cert.pem"),
            ("--unreachable-timeout", "0"),
        ];
        self.change(&mut options, changed)
    }

    /// A signed ir that is right but for the options which are changed.
    fn ir(&self, changed: &[(&str, &str)]) -> Ended {
        let file = |name| self.file(name);
        let (cert, key, new) = (file("client.crt"), file("client.key"), file("new.key"));
        let root = file("root.crt");
        let mut options = vec![
            ("--store", &self.store[..]),
            ("--cmd", "ir"),
            ("--server", NOBODY),
            ("--cert", &cert),
            ("--key", &key),
            ("--newkey", &new),
            ("--subject", "/CN=new"),
            ("--trusted", &root),
            ("--certout", "cert.pem"),
        ];
        self.change(&mut options, changed)
    }

    fn change<'w>(
        &self,
        options: &mut Vec<(&'w str, &'w str)>,
        changed: &[(&'w str, &'w str)],
    ) -> Ended {
        for (name, value) in changed {
            match options.iter_mut().find(|(known, _)| known == name) {
                Some((_, old)) => *old = value,
                None => options.push((name, value)),
            }
        }
        let words = options.iter().flat_map(|(name, value)| [*name, *value]);
        self.abide
            .run(["enroll", "--quiet"].into_iter().chain(words))
    }

    /// Nothing was begun, and what was there is as it was.
    fn check_untouched(&self, case: &str) {
        assert_eq!(self.abide.transactions(), self.before, "{case}");
        assert!(!self.abide.path("cert.pem").exists(), "{case}");
    }
}

/// Never asked: what is wrong is found before.
const NOBODY: &str = "http://127.0.0.1:9/pkix/";

/// One line with the error, its exit code, and the names that help a person.
fn check_error(case: &str, ended: &Ended, code: i32, parts: &[&str]) {
    assert_eq!(ended.code, Some(code), "{case}: {ended:?}");
    assert_eq!(ended.stdout, "", "{case}");
    let (errors, rest): (Vec<&str>, Vec<&str>) = ended
        .stderr
        .lines()
        .partition(|line| line.starts_with("abide: "));
    let [error] = errors[..] else {
        panic!("{case}: not one line with an error: {ended:?}");
    };
    // An open transaction has one more line: the command that goes on with it.
    assert!(
        rest.iter().all(|line| line.starts_with("go on with: ")),
        "{case}: {ended:?}"
    );
    for part in parts {
        assert!(error.contains(part), "{case}: no `{part}` in: {error}");
    }
    for word in ["panicked", "trap", "wasm", "backtrace"] {
        assert!(!ended.stderr.contains(word), "{case}: {ended:?}");
    }
}

#[test]
fn a_request_with_a_wrong_signature() {
    let world = World::new();
    let text = fs::read_to_string(world.pki.path("new.csr")).expect("a request");
    let mut der = abide_tests::pem_to_der(&text);
    *der.last_mut().expect("the signature") ^= 1;
    let csr = world.write("wrong.csr", &der);
    let ended = world.p10cr(NOBODY, &[("--csr", &csr)]);
    check_error(
        "wrong signature",
        &ended,
        2,
        &[&csr, "signature", "nothing was sent"],
    );
    world.check_untouched("wrong signature");
}

#[test]
fn a_key_of_another_certificate() {
    let world = World::new();
    let (cert, key) = (world.file("client.crt"), world.file("server.key"));
    let ended = world.ir(&[("--key", &key)]);
    check_error("another key", &ended, 2, &[&cert, &key, "belong together"]);
    world.check_untouched("another key");
}

#[test]
fn files_that_cannot_be_read() {
    let world = World::new();
    let certificate = fs::read_to_string(world.pki.path("client.crt")).expect("a certificate");
    let middle = certificate.len() / 2;
    let contents: [(&str, Vec<u8>); 5] = [
        ("empty", Vec::new()),
        ("words", b"this is not what you are looking for\n".to_vec()),
        ("half", certificate.as_bytes()[..middle].to_vec()),
        (
            "damaged",
            certificate.replacen("MII", "M!I", 1).into_bytes(),
        ),
        ("binary", vec![0x30, 0x82, 0xff, 0xff, 0, 1, 2]),
    ];
    let absent = world.file("absent");
    for option in ["--csr", "--trusted", "--cert", "--key", "--newkey"] {
        let mut files: Vec<(String, String)> = contents
            .iter()
            .map(|(name, content)| ((*name).into(), world.write(name, content)))
            .collect();
        // A --newkey that is absent is made.
        if option != "--newkey" {
            files.push(("absent".into(), absent.clone()));
        }
        for (name, file) in files {
            let case = format!("{option} {name}");
            let changed = [(option, &file[..])];
            let ended = match option {
                "--csr" | "--trusted" => world.p10cr(NOBODY, &changed),
                _ => world.ir(&changed),
            };
            check_error(&case, &ended, 2, &[option, &file]);
            world.check_untouched(&case);
        }
    }
}

/// A file and its neighbours, which SQLite makes and this program must not.
fn bytes_of_store(store: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    ["", "-wal", "-shm", "-journal"]
        .iter()
        .map(|suffix| {
            let mut name = store.as_os_str().to_owned();
            name.push(suffix);
            let path = PathBuf::from(name);
            let content = fs::read(&path).ok();
            (path, content)
        })
        .collect()
}

/// Both commands refuse a store and leave every octet of it as it is.
fn check_refused(world: &World, case: &str, store: &Path, parts: &[&str]) {
    let name = store.display().to_string();
    let before = bytes_of_store(store);
    let ended = world.p10cr(NOBODY, &[("--store", &name)]);
    check_error(case, &ended, 1, &[&[&name[..]], parts].concat());
    let listed = world.abide.run(["transactions", "list", "--store", &name]);
    check_error(case, &listed, 1, &[&[&name[..]], parts].concat());
    assert!(bytes_of_store(store) == before, "{case}: the store changed");
}

#[test]
fn a_store_of_a_newer_version() {
    let world = World::new();
    let store = world.abide.store();
    let version = |change: i64| {
        let connection = Connection::open(&store).expect("a store");
        let read = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let version = connection.query_row("PRAGMA user_version", [], read);
        let version = version.expect("a version");
        connection
            .execute_batch(&format!("PRAGMA user_version = {}", version + change))
            .expect("another version");
    };
    version(1);
    check_refused(&world, "newer", &store, &["newer"]);
    version(-1);
    world.check_untouched("newer");
}

#[test]
fn a_store_that_is_not_ours() {
    let world = World::new();
    let dir = world.pki.path("");
    let sqlite = |name: &str, statements: &str| {
        let path = dir.join(name);
        let connection = Connection::open(&path).expect("a database");
        connection.execute_batch(statements).expect("a database");
        path
    };
    let text = dir.join("notes.txt");
    fs::write(&text, "remember the milk\n").expect("a file");
    for (case, store) in [
        ("a text file", text),
        (
            "a database",
            sqlite("plain.db", "CREATE TABLE milk (litres)"),
        ),
        (
            "a database of another program",
            sqlite(
                "named.db",
                "PRAGMA application_id = 77; PRAGMA user_version = 1; CREATE TABLE milk (litres)",
            ),
        ),
    ] {
        check_refused(
            &world,
            case,
            &store,
            &["is not a store", "name another file"],
        );
    }
    world.check_untouched("not ours");
}

#[test]
fn servers_that_do_not_speak_cmp() {
    const CMP: &str = "application/pkixcmp";
    const HTML: &[u8] = b"<!DOCTYPE html><title>Welcome</title>";
    let redirect = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/else\r\n\
        Content-Length: 0\r\nConnection: close\r\n\r\n";
    let endless = [
        &b"HTTP/1.1 200 OK\r\nContent-Type: application/pkixcmp\r\nConnection: close\r\n\r\n"[..],
        &vec![0x30; 20 << 20],
    ]
    .concat();
    let cases = [
        (
            "HTML",
            Answer::http("200 OK", "text/html", HTML),
            7,
            "text/html",
        ),
        (
            "HTML as CMP",
            Answer::http("200 OK", CMP, HTML),
            7,
            "no PKIMessage",
        ),
        (
            "HTML and 503",
            Answer::http("503 Service Unavailable", "text/html", HTML),
            4,
            "503",
        ),
        (
            "HTML and 404",
            Answer::http("404 Not Found", "text/html", HTML),
            7,
            "404",
        ),
        (
            "a redirect",
            Answer::Octets(redirect.to_vec()),
            7,
            "redirects",
        ),
        (
            "the end",
            Answer::Close,
            4,
            "the same request is sent again",
        ),
        ("silence", Answer::Silence, 4, "timed out"),
        (
            "20 MB announced",
            Answer::http("200 OK", CMP, &vec![0x30; 20 << 20]),
            7,
            "longer than",
        ),
        (
            "20 MB unannounced",
            Answer::Octets(endless),
            7,
            "longer than",
        ),
        (
            "an empty body",
            Answer::http("200 OK", CMP, b""),
            7,
            "empty",
        ),
        (
            "no DER",
            Answer::http("200 OK", CMP, &[0xff; 40]),
            7,
            "no PKIMessage",
        ),
        (
            "another DER",
            Answer::http("200 OK", CMP, &[0x30, 0x03, 0x02, 0x01, 0x05]),
            7,
            "no PKIMessage",
        ),
    ];
    let world = World::new();
    for (index, (case, answer, code, part)) in cases.into_iter().enumerate() {
        let server = Canned::start(answer);
        let ended = world.p10cr(&server.url(), &[("--msg-timeout", "1")]);
        check_error(case, &ended, code, &[&server.url(), part]);
        assert_eq!(server.asked(), 1, "{case}");
        assert!(!world.abide.path("cert.pem").exists(), "{case}");

        // What was true still is, and the request that was sent is known.
        let mut after = world.abide.transactions();
        assert_eq!(after.len(), world.before.len() + index + 1, "{case}");
        assert!(after.contains(&world.before[0]), "{case}");
        after.retain(|one| one["server"] == server.url());
        let [open] = &after[..] else {
            panic!("{case}: {} transactions with the server", after.len());
        };
        assert_eq!(open["phase"], "enrolling", "{case}");
    }
}
