//! The project's chores, as `cargo xtask COMMAND`. `cargo xtask help` lists them.
//!
//! Light on purpose: this program is compiled before anything can be shown, so what needs more
//! than the standard library (the component's encoder) sits behind the feature `component`, which
//! the command of that name turns on by itself.

mod bench;
mod component;
mod deb;
mod demo;
mod elsewhere;
mod fuzz;
mod kill;
mod peers;
mod setup;
mod shell;
mod sim;
mod test;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask COMMAND

  setup       installs what building and testing need, and only what is missing:
              Rust targets and components by rustup; as root on Debian also OpenSSL
              and Bouncy Castle, the CMP peers of the tests, PostgreSQL, Redis and Chromium; the
              examples' packages for Python and Node, by pip and npm, and promtool, below
              target/elsewhere/
  demo        sets up, builds abide and lets it tell its story: an enrollment at the
              built-in CA that is killed while it waits, and goes on
  test        sets up; formatting, lints, documentation, all tests
    --only-tests      without formatting, lints and documentation
    -- ARGUMENTS      for the test runner, such as the name of a test
  component   builds all worlds, portable and native-speed, to target/component/
              and prints their sizes, imports and exports
    --only NAME       one of them, such as abide-gate
  peers       builds newer releases of OpenSSL in ~/.cache/abide/peers (minutes, once)
  bench       compares with `openssl cmp` and prints the ratios; never fails on them
  bench messages
              decodes, encodes and verifies the same messages with abide, OpenSSL (also
              those that `peers` has built), Bouncy Castle and cmpv2
    --rounds N        turns that each of them takes, 31 unless given; messages: 15
  bench enroll
              whole enrollments at `abide mock-ca`: own work of one, rate of 64 in flight
              beside that of the bare exchanges and commits, memory of 2000 that wait
  bench schedule
              claiming and completing tasks: 10 000 and 1 000 000 of them in SQLite and in
              PostgreSQL, and four workers beside one and beside a plain SKIP LOCKED loop
  bench limiter
              one decision of the rate limiter, natively, in the sandbox, and the crate governor's
  bench gateway
              requests per second and waiting time through `abide gateway` and through nginx
              as a plain proxy, in turns; installs nginx and wrk
  fuzz        runs hostile inputs against the crates of the guest; needs a C++ compiler
    --seconds N       for each target, 3 unless given
    TARGET …          all of fuzz/fuzz_targets unless given
  sim         enrollments in simulated worlds with faults, judged in every state
    --seeds N         so many random worlds, 100 000 unless given; --from S the first
    --seed S          that one, with everything that happens in it
    --exhaustive      every fault at every import of every scenario
    --help            the rest
  kill        orders whose client is killed at random moments, on a way that loses and cuts,
              at OpenSSL's server and at one on Bouncy Castle; then the books are balanced
    --rounds N        orders at each, 100 unless given
    --seed S          what their fate follows from, printed otherwise
  deb         builds the Debian package with manual pages and completions, to
              target/debian/; installs cargo-deb
  help        this page

Environment
  CI=true              what is missing is an error, never a warning
  CARGO_TARGET_DIR     where everything is built, target/ unless given";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    match command {
        "setup" => nothing_more(command, rest).and_then(|()| setup::run()),
        "demo" => demo::run(rest),
        "test" => test::run(rest),
        "component" => component::run(rest),
        "peers" => nothing_more(command, rest).and_then(|()| peers::run()),
        "bench" => bench::run(rest),
        "fuzz" => fuzz::run(rest),
        "sim" => sim::run(rest),
        "kill" => kill::run(rest),
        "deb" if rest.is_empty() => deb::run(),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("there is no command `{other}`; see `cargo xtask help`"),
    }
}

fn nothing_more(command: &str, rest: &[String]) -> Result<()> {
    match rest.first() {
        Some(extra) => bail!("`{command}` takes no `{extra}`; see `cargo xtask help`"),
        None => Ok(()),
    }
}
