//! The gate in Python and in Node: the portable component gives there what the embedded one
//! gives here, and the examples do what their README says.

mod answers;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use abide_host::{Runtime, RuntimeConfig};
use abide_tests::openssl::{certificates, cmp_client};
use abide_tests::pki::{KeyKind, Pki};
use abide_tests::process::{Ended, Process, succeed};
use answers::Questions;
use serde_json::Value;
use tempfile::TempDir;

/// Of the messages that the tests have made, and of OpenSSL's vectors.
const SECRET: &str = "a secret of sufficient length";

/// Of Bouncy Castle's vectors.
const SECRET_OF_VECTORS: &str = "a secret for Bouncy Castle";

/// The shared secret of a KEM in the vectors, as their index has it: it stays when they are made
/// anew.
const KEM_OF_VECTORS: [u8; 32] = [
    0xaa, 0x3a, 0xb6, 0x01, 0x75, 0x6b, 0x51, 0x8c, 0x21, 0x13, 0x34, 0xc9, 0x43, 0x51, 0x31, 0x1b,
    0xcd, 0xa8, 0xe0, 0x6b, 0xd3, 0x0d, 0x3a, 0xca, 0x62, 0xb7, 0x3b, 0xb8, 0xc1, 0x6a, 0xc7, 0x4b,
];

/// Python copies octet by octet, and a few messages of the corpus are there for their size.
const LARGEST_MESSAGE: u64 = 1 << 15;

/// For Python and some thousand calls, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(600);

/// A folder with what a user of either language has: the installed packages, the example, and
/// in Node the component as a module.
struct Elsewhere {
    dir: TempDir,
    component: PathBuf,
    python: PathBuf,
}

impl Elsewhere {
    fn new() -> Self {
        // Cargo gives tests a folder of their own in its target folder.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .parent()
            .expect("the target folder");
        let there = |file: &str, command: &str| {
            let path = target.join(file);
            assert!(
                path.exists(),
                "{} is not there: `cargo xtask {command}` makes it",
                path.display()
            );
            path
        };
        let component = there("component/abide-gate.wasm", "component");
        let python = there("elsewhere/python/bin/python", "setup");
        let packages = there("elsewhere/node/node_modules", "setup");

        let dir = tempfile::tempdir().expect("a folder for a test");
        symlink(packages, dir.path().join("node_modules")).expect("a link to the packages");
        for file in ["package.json", "transpile.mjs", "inspect-message.mjs"] {
            fs::copy(example("node").join(file), dir.path().join(file)).expect("the example");
        }
        let elsewhere = Self {
            dir,
            component,
            python,
        };
        succeed(
            elsewhere
                .node("transpile.mjs")
                .arg(&elsewhere.component)
                .arg("gate"),
        );
        elsewhere
    }

    fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    /// Node with a script, in the folder.
    fn node(&self, script: impl AsRef<Path>) -> Command {
        let mut command = Command::new("node");
        command.current_dir(self.dir.path()).arg(script.as_ref());
        command
    }

    /// Python with a script, the example's folder among its modules.
    fn python(&self, script: impl AsRef<Path>) -> Command {
        let mut command = Command::new(&self.python);
        command
            .env("PYTHONPATH", example("python"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(script.as_ref());
        command
    }

    /// The example of each language on one message.
    fn examples(&self, message: &Path, secret: &str) -> [(&'static str, Ended); 2] {
        let mut python = self.python(example("python/inspect_message.py"));
        python.arg(&self.component).arg(message).arg(secret);
        let mut node = self.node("inspect-message.mjs");
        node.arg(message).arg(secret);
        [("python", python), ("node", node)]
            .map(|(language, mut command)| (language, Process::start(&mut command).end()))
    }
}

fn example(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples")
        .join(file)
}

/// What `openssl cmp` sends and gets in each operation, under each kind of protection, made
/// without a network by its own mock server.
fn by_openssl(pki: &Pki) -> Vec<PathBuf> {
    pki.issue_for_key("new", &pki.key("new", KeyKind::P256), "/CN=new");
    pki.csr("new", &pki.path("new.key"), "/CN=new");
    let secret = format!("pass:{SECRET}");
    let mac = ["-ref", "client", "-secret", &secret].into_iter().chain([
        "-srv_ref",
        "server",
        "-srv_secret",
        &secret,
    ]);
    let signature = ["-cert", "client.crt", "-key", "client.key"]
        .into_iter()
        .chain(["-trusted", "root.crt", "-untrusted", "sub.crt"])
        .chain(["-srv_cert", "server.crt", "-srv_key", "server.key"])
        .chain(["-srv_trusted", "root.crt", "-srv_untrusted", "sub.crt"]);
    let mut made = Vec::new();
    for (kind, protection) in [
        ("mac", mac.collect::<Vec<_>>()),
        ("signature", signature.collect()),
    ] {
        for operation in ["ir", "cr", "p10cr", "genm"] {
            let name = |part: &str| pki.path(&format!("{operation}-{kind}.{part}.der"));
            let [asked, confirmed, answered, acknowledged] =
                ["1.req", "2.req", "1.rsp", "2.rsp"].map(name);
            let pair = |a: &Path, b: &Path| format!("{} {}", a.display(), b.display());
            let mut words = vec!["-use_mock_srv", "-cmd", operation, "-recipient", "/CN=CA"];
            words.extend(["-rsp_cert", "new.crt", "-certout", "out.crt"]);
            words.extend(match operation {
                "p10cr" => ["-csr", "new.csr"].as_slice(),
                "genm" => ["-infotype", "signKeyPairTypes"].as_slice(),
                _ => ["-newkey", "new.key", "-subject", "/CN=new"].as_slice(),
            });
            words.extend(&protection);
            let (sent, got) = (pair(&asked, &confirmed), pair(&answered, &acknowledged));
            words.extend(["-reqout", &sent, "-rspout", &got]);
            let ended = cmp_client(pki, &words);
            assert_eq!(ended.code, Some(0), "{operation}, {kind}: {}", ended.stderr);
            made.extend([asked, answered]);
            if operation != "genm" {
                made.extend([confirmed, acknowledged]);
            }
        }
    }
    made
}

/// Damaged messages: one bit of every 29th octet turned, and every 31st shortening.
fn damaged(message: &Path) -> Vec<PathBuf> {
    let octets = fs::read(message).expect("a message of OpenSSL's");
    let turned = (0..octets.len()).step_by(29).map(|at| {
        let mut turned = octets.clone();
        turned[at] ^= 1 << (at % 8);
        (format!("turned-{at}"), turned)
    });
    let cut = (0..octets.len())
        .step_by(31)
        .map(|length| (format!("cut-{length}"), octets[..length].to_vec()));
    turned
        .chain(cut)
        .map(|(name, octets)| {
            let file = message.with_extension(name);
            fs::write(&file, octets).expect("a damaged message");
            file
        })
        .collect()
}

/// The same message with the outermost length in one octet more than DER has it.
fn long_length(message: &Path) -> PathBuf {
    let octets = fs::read(message).expect("a message of OpenSSL's");
    let [0x30, 0x82, length @ ..] = octets.as_slice() else {
        panic!("a SEQUENCE of 256 to 65535 octets is expected");
    };
    let file = message.with_extension("long-length");
    fs::write(&file, [&[0x30, 0x83, 0x00], length].concat()).expect("a message");
    file
}

/// The project's vectors, by OpenSSL and Bouncy Castle.
fn vectors(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../guest/cmp/tests/vectors")
        .join(file)
}

/// The messages in a folder, none where there is none.
fn messages_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "der"))
        .filter(|path| fs::metadata(path).is_ok_and(|file| file.len() <= LARGEST_MESSAGE))
        .collect();
    found.sort();
    found
}

/// Every eighth message of other implementations, where a corpus of them lies beside the
/// project: Python needs a tenth of a second for each.
fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let peers = [
        "openssl30",
        "openssl40",
        "bc172",
        "siemens-mockca",
        "siemens-ra",
        "odd",
    ];
    peers
        .iter()
        .flat_map(|peer| messages_in(&folder.join(peer)))
        .step_by(8)
        .collect()
}

/// The lines of JSON that a script printed.
fn lines(language: &str, ended: &Ended) -> Vec<Value> {
    assert_eq!(ended.code, Some(0), "{language}: {}", ended.stderr);
    ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

#[tokio::test]
async fn python_and_node_get_what_rust_gets() {
    let elsewhere = Elsewhere::new();
    let pki = Pki::new(&elsewhere.path("pki"), KeyKind::P256);
    let mut messages = by_openssl(&pki);
    assert_eq!(messages.len(), 28);
    messages.extend(damaged(&pki.path("ir-mac.1.rsp.der")));
    messages.extend(damaged(&pki.path("cr-signature.1.req.der")));
    messages.push(long_length(&pki.path("ir-mac.1.rsp.der")));
    let by_others = messages_in(&vectors("messages"));
    assert!(by_others.len() > 100, "only {} vectors", by_others.len());
    messages.extend(by_others);
    messages.extend(corpus());
    let mut roots = certificates(&pki.path("root.crt"));
    for root in ["pki/root.der", "pki/root-mldsa44.der"] {
        roots.push(fs::read(vectors(root)).expect("a root of the vectors"));
    }
    let questions = Questions {
        messages,
        secrets: [SECRET, SECRET_OF_VECTORS].map(str::to_owned).into(),
        kem: KEM_OF_VECTORS.to_vec(),
        certificates: roots,
        at: answers::now(),
    };
    let file = elsewhere.path("questions.json");
    fs::write(&file, questions.json().to_string()).expect("the questions");

    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/elsewhere");
    let python = Process::start(
        elsewhere
            .python(scripts.join("ask.py"))
            .arg(&elsewhere.component)
            .arg(&file),
    );
    let node = Process::start(
        elsewhere
            .node(scripts.join("ask.mjs"))
            .arg("gate/gate.js")
            .arg(&file),
    );
    let runtime = Runtime::new(RuntimeConfig::default()).expect("a runtime");
    let expected = questions.answers(&runtime.gate()).await;
    // That the answers are not the same to everything.
    for (verdict, least) in [
        ("/strict/verify/0/ok", 10),
        ("/strict/verify/1/ok", 5),
        ("/strict/verify/2/ok", 1),
        ("/strict/verify/3/ok", 10),
        ("/strict/decode/err", 10),
        ("/parts/encode/ok", 28),
        ("/parts/mac/ok", 14),
        ("/lenient/decode/ok/tolerated/0", 1),
    ] {
        let heard = expected
            .iter()
            .filter(|(_, answer)| answer.pointer(verdict).is_some());
        assert!(heard.count() >= least, "{verdict}");
    }
    for (language, script) in [("Python", python), ("Node", node)] {
        let found = lines(language, &script.end_within(PATIENCE));
        assert_eq!(found.len(), expected.len(), "{language}");
        for ((about, expected), found) in expected.iter().zip(&found) {
            assert_eq!(found, expected, "{language}: {about}");
        }
    }
}

#[test]
fn the_examples_show_verify_and_refuse() {
    let elsewhere = Elsewhere::new();
    let pki = Pki::new(&elsewhere.path("pki"), KeyKind::P256);
    by_openssl(&pki);
    let request = pki.path("ir-mac.1.req.der");
    for (language, ended) in elsewhere.examples(&request, SECRET) {
        let shown: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!(shown["message"]["body"], "ir", "{language}");
        assert!(shown["verified"].is_object(), "{language}: {shown}");
        assert_eq!(ended.code, Some(0), "{language}: {}", ended.stderr);
    }
    for (language, ended) in elsewhere.examples(&request, "another secret") {
        let shown: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        let refused = shown["refused"].to_string();
        assert!(refused.contains("bad-protection"), "{language}: {shown}");
        assert!(shown.get("verified").is_none(), "{language}");
    }
    for (file, reason) in [
        ("new.key", "no CMP message: at octet 0, PKIMessage: "),
        ("missing.der", "no such file"),
    ] {
        for (language, ended) in elsewhere.examples(&pki.path(file), SECRET) {
            let said = ended.stderr.to_lowercase();
            assert!(said.contains(&reason.to_lowercase()), "{language}: {said}");
            assert_eq!(said.lines().count(), 1, "{language}: {said}");
            assert_eq!(ended.code, Some(1), "{language}");
        }
    }
}
