//! `cargo xtask fuzz`: the targets in `fuzz/`, with libFuzzer and without a nightly compiler.
//!
//! No sanitizer is needed: the crates under trial forbid `unsafe`. What is measured in its place
//! is in the targets themselves, which panic where one input takes too much memory or time.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::setup;
use crate::shell::{capture, cargo, root, run as run_command, step, succeeds, target_dir};

/// Seconds for each target unless given: enough to go through the seeds and around them.
const SECONDS: u64 = 3;

/// A month. More is a slip of the keyboard.
const MAX_SECONDS: u64 = 31 * 24 * 3600;

/// From here on a part of the time goes to inputs of the longest kind.
const LONG: u64 = 60;

/// The longest input of a usual round, in octets: mutations of small inputs find most.
const USUAL_INPUT: u64 = 16 << 10;

/// The longest input of a long round, in octets: the longest message that is read.
const LONGEST_INPUT: u64 = 1 << 20;

/// Memory of a fuzzing process, in MiB. The corpus and libFuzzer's own tables lie in it; what
/// one input takes is bounded by the targets, at 64 MiB.
const PROCESS_MEMORY: u64 = 1024;

/// Seconds after which one input counts as hanging.
const HANGS: u64 = 10;

/// The flags with which cargo-fuzz compiles, as far as they need no sanitizer.
const FLAGS: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cdebug-assertions",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// `cargo xtask fuzz`.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let options = Options::parse(arguments)?;
    setup::for_building()?;
    run_targets(&options)
}

/// A few seconds of every target, as a part of the tests.
pub(crate) fn for_tests() -> Result<ExitCode> {
    run_targets(&Options {
        seconds: SECONDS,
        targets: Vec::new(),
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    seconds: u64,
    targets: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            seconds: SECONDS,
            targets: Vec::new(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--seconds" => {
                    let given = rest.next().map(String::as_str).unwrap_or_default();
                    options.seconds = match given.parse() {
                        Ok(seconds) if (1..=MAX_SECONDS).contains(&seconds) => seconds,
                        _ => bail!("--seconds {given}: give a number from 1 to {MAX_SECONDS}"),
                    };
                }
                flag if flag.starts_with('-') => {
                    bail!("`fuzz` takes no `{flag}`; see `cargo xtask help`")
                }
                target => options.targets.push(target.to_owned()),
            }
        }
        Ok(options)
    }
}

fn run_targets(options: &Options) -> Result<ExitCode> {
    let known = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(name)) {
        bail!(
            "there is no fuzz target `{unknown}`; there are {}",
            known.join(", ")
        );
    }
    let chosen = match &options.targets[..] {
        [] => &known,
        named => named,
    };
    let start = Instant::now();
    step("building the fuzz targets");
    let programs = build()?;
    step(format!("built in {} s", start.elapsed().as_secs()));
    // Short runs share the processors; a long one has the machine's caches for itself.
    let at_once = match options.seconds < LONG {
        true => std::thread::available_parallelism().map_or(1, |number| number.get()),
        false => 1,
    };
    let mut failed = Vec::new();
    for targets in chosen.chunks(at_once) {
        for round in rounds(options.seconds) {
            step(format!("fuzzing {} for {round}", targets.join(", ")));
            let running: Vec<_> = targets
                .iter()
                .filter(|target| !failed.contains(*target))
                .map(|target| Run::start(&programs, target, &round))
                .collect::<Result<_>>()?;
            for run in running {
                let target = run.target.to_owned();
                if !run.finish()? {
                    failed.push(target);
                }
            }
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    bail!("these fuzz targets found something: {}", failed.join(", "))
}

/// The programs in `fuzz/fuzz_targets`, by name.
fn targets() -> Result<Vec<String>> {
    let folder = root().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        if let Some(name) = path.file_stem().and_then(|name| name.to_str()) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Compiles all targets and returns the folder of the programs.
fn build() -> Result<PathBuf> {
    if !succeeds(Command::new("c++").arg("--version")) {
        bail!("there is no C++ compiler `c++`, in which libFuzzer is written");
    }
    let triple = host()?;
    let out = folder("")?;
    // Flags for the target only, not for what runs while it is built.
    run_command(
        cargo(["build", "--release", "--bins", "--manifest-path"])
            .arg(root().join("fuzz/Cargo.toml"))
            .args(["--target", &triple, "--target-dir"])
            .arg(&out)
            .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f")),
    )?;
    Ok(out.join(triple).join("release"))
}

/// What this machine is for rustc. With it named, cargo keeps the flags away from build scripts.
fn host() -> Result<String> {
    let version = capture(Command::new("rustc").arg("-vV"))?;
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("`rustc -vV` names no host")
}

/// A folder of this command, made where it is missing.
fn folder(name: &str) -> Result<PathBuf> {
    let folder = target_dir().join("fuzz").join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// A stretch of time with inputs up to a length.
#[derive(Debug, PartialEq, Eq)]
struct Round {
    seconds: u64,
    longest: u64,
}

impl std::fmt::Display for Round {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, longest) = (self.seconds, self.longest >> 10);
        write!(f, "{seconds} s, inputs up to {longest} KiB")
    }
}

/// A quarter of a long time is for the longest inputs.
fn rounds(seconds: u64) -> Vec<Round> {
    let long = if seconds < LONG { 0 } else { seconds / 4 };
    let round = |seconds, longest| Round { seconds, longest };
    [
        round(seconds - long, USUAL_INPUT),
        round(long, LONGEST_INPUT),
    ]
    .into_iter()
    .filter(|round| round.seconds > 0)
    .collect()
}

/// One target at work. What is learnt stays in the corpus for the next time.
struct Run<'a> {
    target: &'a str,
    process: Child,
    program: PathBuf,
    log: PathBuf,
    artifacts: PathBuf,
}

impl<'a> Run<'a> {
    fn start(programs: &Path, target: &'a str, round: &Round) -> Result<Self> {
        let artifacts = folder("artifacts")?.join(target);
        let corpus = folder("corpus")?.join(target);
        fs::create_dir_all(&artifacts)?;
        fs::create_dir_all(&corpus)?;
        let log = folder("logs")?.join(format!("{target}.log"));
        let output = fs::File::create(&log).with_context(|| format!("{}", log.display()))?;
        let mut prefix = OsString::from("-artifact_prefix=");
        prefix.push(artifacts.join(""));
        let mut dictionary = OsString::from("-dict=");
        dictionary.push(root().join("fuzz/cmp.dict"));
        let program = programs.join(target);
        let process = Command::new(&program)
            .args([prefix, dictionary])
            .arg(format!("-max_total_time={}", round.seconds))
            .arg(format!("-max_len={}", round.longest))
            .arg(format!("-timeout={HANGS}"))
            .arg(format!("-rss_limit_mb={PROCESS_MEMORY}"))
            .arg("-print_final_stats=1")
            .arg(corpus)
            .args(seeds())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        Ok(Self {
            target,
            process,
            program,
            log,
            artifacts,
        })
    }

    /// Waits for the end and tells what came of it; whether nothing was found.
    fn finish(mut self) -> Result<bool> {
        let found_nothing = self.process.wait()?.success();
        let text = String::from_utf8_lossy(&fs::read(&self.log)?).into_owned();
        println!("{:<12} {}", self.target, summary(&text));
        if !found_nothing {
            let lines: Vec<_> = text.lines().collect();
            let alarm = lines.iter().position(|line| is_alarm(line));
            let start = alarm.unwrap_or(lines.len().saturating_sub(20));
            for line in lines[start..].iter().take(40) {
                eprintln!("{line}");
            }
            eprintln!(
                "the whole of it: {}; the input is in {}; again: {} FILE",
                self.log.display(),
                self.artifacts.display(),
                self.program.display()
            );
        }
        Ok(found_nothing)
    }
}

fn is_alarm(line: &str) -> bool {
    line.contains("panicked at") || line.contains("ERROR: libFuzzer")
}

/// Where messages lie that are worth mutating: our own vectors, and those of other
/// implementations where they lie beside the project.
fn seeds() -> Vec<PathBuf> {
    let folders = ["guest/cmp/tests/vectors", "../shared/corpus"];
    let there = folders.into_iter().map(|folder| root().join(folder));
    there.filter(|folder| folder.is_dir()).collect()
}

/// Executions, coverage and corpus, from the words of libFuzzer.
fn summary(text: &str) -> String {
    let stat = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map_or("?", |value| value.trim_start_matches(':').trim())
            .to_owned()
    };
    let last = text
        .lines()
        .rfind(|line| line.contains(" cov: "))
        .unwrap_or_default();
    let word = |name: &str| {
        let mut words = last.split_whitespace().skip_while(|word| *word != name);
        words.nth(1).unwrap_or("?").to_owned()
    };
    format!(
        "{} runs, coverage {}, features {}, corpus {}, peak {} MiB",
        stat("stat::number_of_executed_units"),
        word("cov:"),
        word("ft:"),
        word("corp:"),
        stat("stat::peak_rss_mb"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words).ok()
    }

    #[test]
    fn seconds_and_targets_come_in_any_order() {
        let options = |seconds, targets: &[&str]| {
            Some(Options {
                seconds,
                targets: targets.iter().map(|name| (*name).to_owned()).collect(),
            })
        };
        assert_eq!(parse(""), options(SECONDS, &[]));
        assert_eq!(parse("decode --seconds 60"), options(60, &["decode"]));
        assert_eq!(
            parse("--seconds 9 path decode"),
            options(9, &["path", "decode"])
        );
        for wrong in ["--seconds", "--seconds 0", "--seconds many", "--second 5"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_long_run_has_a_round_of_long_inputs() {
        let seconds = |total| rounds(total).iter().map(|r| r.seconds).collect::<Vec<_>>();
        assert_eq!(seconds(3), [3]);
        assert_eq!(seconds(59), [59]);
        assert_eq!(seconds(300), [225, 75]);
    }
}
