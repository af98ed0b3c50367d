//! The example as a process, with messages of another implementation.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use abide_tests::gateway::Wire;
use abide_tests::process::Process;

#[test]
fn only_messages_pass_and_not_too_often() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_example-tower"));
    let process = Process::start(command.arg("127.0.0.1:0"));
    let address: SocketAddr =
        process.wait_for("URL", |line| line.strip_prefix("http://")?.parse().ok());
    let mut wire = Wire::connect(address);
    let nonsense = wire.post(&[], b"nonsense");
    assert_eq!(nonsense.status, 400, "{nonsense:?}");
    let text = String::from_utf8_lossy(&nonsense.body);
    assert!(text.starts_with("no CMP message: at octet 0"), "{text}");

    let vectors = "../../guest/cmp/tests/vectors/messages/openssl-3.0-ir-pbm-1-ir.der";
    let message = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(vectors)).expect("a vector");
    for left in (0..5).rev() {
        let passed = wire.post(&[], &message);
        assert_eq!(passed.status, 200, "{passed:?}");
        let text = String::from_utf8_lossy(&passed.body);
        assert_eq!(text, format!("{} octets passed", message.len()));
        assert_eq!(
            passed.header("x-ratelimit-remaining"),
            Some(&*left.to_string())
        );
    }
    let often = wire.post(&[], &message);
    assert_eq!(often.status, 429, "{often:?}");
    assert!(often.header("retry-after").is_some(), "{often:?}");
    let large = wire.post(&[], &vec![0; 65 << 10]);
    assert_eq!(large.status, 413, "{large:?}");
}
