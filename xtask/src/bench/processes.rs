//! Whole processes are measured, as a person or a script sees them: `abide enroll` and the client
//! of `openssl cmp` take turns at the same OpenSSL mock server, so that what slows one down slows
//! down the other, and the medians are compared.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::peer::{self, MockServer, Pki};
use crate::setup;
use crate::shell::{capture, step, target_dir};

/// Pairs of runs in each comparison: odd for a median, enough to ride out a hiccup, and a few
/// seconds in all.
const ROUNDS: usize = 31;

/// Runs before the clock counts: files, the page cache and the compiled code are warm then.
const WARM_UP: usize = 3;

/// One comparison: the same enrollment in the words of either client.
struct Case {
    name: &'static str,
    abide: &'static [&'static str],
    openssl: &'static [&'static str],
}

/// Relative to the folder of the PKI, in which all of them run.
const CASES: [Case; 3] = [
    Case {
        name: "p10cr, MAC",
        abide: &[
            "--cmd",
            "p10cr",
            "--csr",
            "new.csr",
            "--ref",
            peer::REF,
            "--secret",
            peer::SECRET,
        ],
        openssl: &[
            "-cmd",
            "p10cr",
            "-csr",
            "new.csr",
            "-ref",
            peer::REF,
            "-secret",
            peer::SECRET,
        ],
    },
    Case {
        name: "ir, MAC",
        abide: &[
            "--cmd",
            "ir",
            "--newkey",
            "new.key",
            "--subject",
            peer::SUBJECT,
            "--ref",
            peer::REF,
            "--secret",
            peer::SECRET,
        ],
        openssl: &[
            "-cmd",
            "ir",
            "-newkey",
            "new.key",
            "-subject",
            peer::SUBJECT,
            "-ref",
            peer::REF,
            "-secret",
            peer::SECRET,
        ],
    },
    Case {
        name: "ir, signature",
        abide: &[
            "--cmd",
            "ir",
            "--newkey",
            "new.key",
            "--subject",
            peer::SUBJECT,
            "--cert",
            "new.crt",
            "--key",
            "new.key",
        ],
        openssl: &[
            "-cmd",
            "ir",
            "-newkey",
            "new.key",
            "-subject",
            peer::SUBJECT,
            "-cert",
            "new.crt",
            "-key",
            "new.key",
        ],
    },
];

/// `cargo xtask bench`.
pub(super) fn run(rounds: Option<usize>) -> Result<ExitCode> {
    let rounds = rounds.unwrap_or(ROUNDS);
    setup::peers()?;
    super::build()?;

    step("making a throw-away PKI and starting OpenSSL's mock server");
    let folder = target_dir().join("bench");
    let pki = Pki::make(&folder)?;
    let server = MockServer::start(&pki)?;
    let bench = Bench {
        folder: &folder,
        port: server.port(),
    };

    step("the first run of all, which compiles the component");
    let first = time(&mut bench.abide(&CASES[0])?)?;
    let mut lines = Vec::new();
    for case in &CASES {
        step(format!("{}: {rounds} pairs of runs", case.name));
        lines.push(bench.compare(case, rounds)?);
    }
    drop(server);

    step("instantiation and calls");
    let speed = target_dir().join("release/examples/speed");
    let inner = capture(&mut Command::new(speed))?;

    println!(
        "openssl cmp is {}",
        capture(Command::new("openssl").arg("version"))?.trim()
    );
    println!("whole process, median (fastest) in ms of {rounds} runs each, taking turns");
    println!(
        "{:<16}{:>18}{:>18}{:>8}",
        "", "abide enroll", "openssl cmp", "ratio"
    );
    for line in lines {
        println!("{line}");
    }
    println!("first run, nothing compiled yet: {:.0} ms", millis(first));
    print!("{inner}");
    Ok(ExitCode::SUCCESS)
}

struct Bench<'a> {
    folder: &'a Path,
    port: u16,
}

impl Bench<'_> {
    fn compare(&self, case: &Case, rounds: usize) -> Result<String> {
        let (mut abide, mut openssl) = (Vec::new(), Vec::new());
        for round in 0..WARM_UP + rounds {
            let ours = time(&mut self.abide(case)?)?;
            let theirs = time(&mut self.openssl(case)?)?;
            if round >= WARM_UP {
                abide.push(ours);
                openssl.push(theirs);
            }
        }
        let (abide, openssl) = (Summary::of(abide), Summary::of(openssl));
        Ok(format!(
            "{:<16}{:>18}{:>18}{:>8.2}",
            case.name,
            abide.to_string(),
            openssl.to_string(),
            abide.median.as_secs_f64() / openssl.median.as_secs_f64()
        ))
    }

    /// A fresh store for every run: the same wish in the same store would be answered from it.
    fn abide(&self, case: &Case) -> Result<Command> {
        for file in ["abide.db", "abide.db-wal", "abide.db-shm", "abide.crt"] {
            forget(&self.folder.join(file))?;
        }
        let mut command = Command::new(target_dir().join("release").join("abide"));
        command
            .current_dir(self.folder)
            .env("ABIDE_CACHE_DIR", self.folder.join("cache"))
            .args(["enroll", "--quiet", "--server"])
            .arg(format!("http://127.0.0.1:{}/pkix/", self.port))
            .args(["--recipient", peer::CA, "--trusted", "root.crt"])
            .args(["--certout", "abide.crt", "--store", "abide.db"])
            .args(case.abide);
        Ok(command)
    }

    fn openssl(&self, case: &Case) -> Result<Command> {
        forget(&self.folder.join("openssl.crt"))?;
        let mut command = peer::openssl(self.folder);
        command
            .args(["cmp", "-config", "", "-batch", "-server"])
            .arg(format!("127.0.0.1:{}", self.port))
            .args([
                "-path",
                "pkix/",
                "-recipient",
                peer::CA,
                "-trusted",
                "root.crt",
            ])
            .args(["-certout", "openssl.crt"])
            .args(case.openssl);
        Ok(command)
    }
}

/// From the start of a process to its end, which must be a success.
fn time(command: &mut Command) -> Result<Duration> {
    let start = Instant::now();
    capture(command)?;
    Ok(start.elapsed())
}

fn forget(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

struct Summary {
    median: Duration,
    fastest: Duration,
}

impl Summary {
    /// Of at least one time. Of an even number, the later of the two in the middle.
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self {
            median: times[times.len() / 2],
            fastest: times[0],
        }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.1} ({:.1})",
            millis(self.median),
            millis(self.fastest)
        )
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_fastest_are_found_out_of_order() {
        let times = [5, 1, 9, 2, 7].map(Duration::from_millis).to_vec();
        assert_eq!(Summary::of(times).to_string(), "5.0 (1.0)");
        assert_eq!(
            Summary::of(vec![Duration::from_micros(1260)]).to_string(),
            "1.3 (1.3)"
        );
    }
}
