//! The program `openssl`.

use std::path::Path;
use std::process::Command;

/// Messages of one transaction that are kept; the longest here has five.
const KEPT: usize = 8;

/// Runs it in a folder; what it prints, or what it complains.
pub(crate) fn run(dir: &Path, words: &[&str]) -> Result<String, String> {
    let output = command(dir).args(words).output().unwrap_or_else(|error| {
        panic!("these tests need the program openssl (Debian package openssl): {error}")
    });
    let said = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(format!("{}{}", said(&output.stdout), said(&output.stderr))),
    }
}

/// `openssl cmp` with the words that every run shares.
pub(crate) fn cmp(dir: &Path, server: &str, words: &[&str]) -> Result<String, String> {
    let files = |kind: &str| -> Vec<String> {
        (1..=KEPT)
            .map(|number| format!("{kind}{number}.der"))
            .collect()
    };
    let (requests, responses) = (files("req"), files("rsp"));
    for file in requests.iter().chain(&responses) {
        // A message of an earlier run must not pass for one of this.
        let _ = std::fs::remove_file(dir.join(file));
    }
    let (requests, responses) = (requests.join(" "), responses.join(" "));
    let shared = [
        "cmp",
        "-config",
        "",
        "-batch",
        "-no_proxy",
        "127.0.0.1",
        "-server",
        server,
        "-certout",
        "new.pem",
        "-reqout",
        &requests,
        "-rspout",
        &responses,
    ];
    run(dir, &[&shared[..], words].concat())
}

fn command(dir: &Path) -> Command {
    let mut command = Command::new("openssl");
    command.current_dir(dir).env("OPENSSL_CONF", "/dev/null");
    for proxy in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"] {
        command.env_remove(proxy);
    }
    command
}
