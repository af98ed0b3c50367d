//! The example with the component of this build and messages of other implementations.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(messages: &[PathBuf]) -> Output {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    let component = target
        .expect("the target folder")
        .join("component/abide-gate.wasm");
    assert!(
        component.exists(),
        "{} is not there: `cargo xtask component` makes it",
        component.display()
    );
    Command::new(env!("CARGO_BIN_EXE_example-wasmtime-host"))
        .arg(component)
        .args(messages)
        .output()
        .expect("the example runs")
}

#[test]
fn a_message_is_shown_and_nonsense_refused() {
    let vectors = root().join("guest/cmp/tests/vectors/messages");
    let request = vectors.join("openssl-3.0-ir-pbm-1-ir.der");
    let shown = run(std::slice::from_ref(&request));
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.status.success(), "{shown:?}");
    assert!(text.contains("Ir from"), "{text}");
    assert!(text.ends_with(", Protection::Mac\n"), "{text}");

    let mixed = run(&[root().join("README.md"), request]);
    let text = String::from_utf8_lossy(&mixed.stdout);
    assert!(!mixed.status.success());
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].contains("refused: at octet 0: expected a SEQUENCE"),
        "{text}"
    );
    assert!(
        lines[1].contains("Ir from"),
        "the next one is judged: {text}"
    );
}
