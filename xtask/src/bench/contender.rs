//! The programs that take part, and talking to them. What is said is in `bench/contender.rs`.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};

use crate::shell::{capture, cargo, root, run as run_command, step, target_dir};
use crate::{component, peers};

/// Where Debian puts Bouncy Castle.
const BOUNCY_CASTLE: [&str; 3] = ["bcpkix.jar", "bcprov.jar", "bcutil.jar"];

/// A program that was started.
pub(super) struct Contender {
    pub(super) name: String,
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Contender {
    /// With the folder of the messages as its argument.
    fn start(name: impl Into<String>, mut command: Command, messages: &Path) -> Result<Self> {
        let name = name.into();
        let mut process = command
            .arg(messages)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let output = process.stdout.take().context("it has no output")?;
        Ok(Self {
            name,
            process,
            output: BufReader::new(output),
        })
    }

    /// The nanoseconds of `count` repetitions, or why it cannot.
    pub(super) fn ask(
        &mut self,
        measure: &str,
        count: u64,
        message: &str,
    ) -> Result<std::result::Result<u64, String>> {
        let input = self.process.stdin.as_mut().context("it has no input")?;
        writeln!(input, "{measure} {count} {message}")?;
        input.flush()?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        let answer = answer.trim_end();
        match answer.strip_prefix("- ") {
            Some(why) => Ok(Err(why.to_owned())),
            None => Ok(Ok(answer.parse().with_context(|| {
                format!("{} says `{answer}` to `{measure} {message}`", self.name)
            })?)),
        }
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Builds all of them and starts them.
pub(super) fn all(messages: &Path) -> Result<Vec<Contender>> {
    let mut all = Vec::new();
    let release = target_dir().join("release");
    for (name, program) in [
        (super::messages::SANDBOX, "bench-sandbox"),
        ("abide native", "bench-native"),
    ] {
        all.push(Contender::start(
            name,
            Command::new(release.join(program)),
            messages,
        )?);
    }
    all.insert(1, with_keys_outside(messages)?);
    all.push(without_sha_instructions(messages)?);
    let (name, program) = installed_openssl()?;
    all.push(Contender::start(name, Command::new(program), messages)?);
    for openssl in peers::there()? {
        let library = openssl.folder.join("lib/libcrypto.a");
        let program = compile(
            &openssl.version,
            &[
                OsStr::new("-I"),
                openssl.folder.join("include").as_os_str(),
                library.as_os_str(),
                OsStr::new("-ldl"),
                OsStr::new("-lpthread"),
            ],
        )?;
        let name = format!("OpenSSL {}", openssl.version);
        all.push(Contender::start(name, Command::new(program), messages)?);
    }
    all.push(cmpv2(messages)?);
    all.push(bouncy_castle(messages)?);
    Ok(all)
}

/// In the sandbox, with the arithmetic of MACs and signatures done by the host.
fn with_keys_outside(messages: &Path) -> Result<Contender> {
    let component = component::build("abide-verifier-native")?;
    let mut command = Command::new(target_dir().join("release/bench-sandbox"));
    command.env("VERIFIER", component);
    Contender::start("+ host's keys", command, messages)
}

/// The same Rust code as in the sandbox: WebAssembly has no instructions for SHA either.
fn without_sha_instructions(messages: &Path) -> Result<Contender> {
    step("building abide's codec with its hash functions in portable Rust");
    let target = target_dir().join("bench-portable");
    run_command(
        cargo(["build", "--release", "--package", "abide-bench"])
            .args(["--no-default-features", "--bin", "bench-native"])
            .arg("--target-dir")
            .arg(&target)
            .env("RUSTFLAGS", "--cfg sha2_backend=\"soft\""),
    )?;
    let program = target.join("release/bench-native");
    Contender::start("native, soft SHA", Command::new(program), messages)
}

fn installed_openssl() -> Result<(String, PathBuf)> {
    let version = capture(Command::new("openssl").arg("version"))?;
    let version = version.split_whitespace().nth(1).unwrap_or("?").to_owned();
    let program = compile(&version, &[OsStr::new("-lcrypto")])?;
    Ok((format!("OpenSSL {version}"), program))
}

/// Compiles our program on some libcrypto. What it is linked with comes after the source.
fn compile(version: &str, with: &[&OsStr]) -> Result<PathBuf> {
    let folder = target_dir().join("bench-openssl");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let program = folder.join(version);
    run_command(
        Command::new("cc")
            .args(["-O2", "-o"])
            .arg(&program)
            .arg(root().join("bench/openssl.c"))
            .args(with),
    )
    .context("on Debian, the headers of OpenSSL come with: apt-get install libssl-dev")?;
    Ok(program)
}

fn cmpv2(messages: &Path) -> Result<Contender> {
    step("building cmpv2, which stands on older crates");
    let target = target_dir().join("bench-cmpv2");
    run_command(
        cargo(["build", "--release", "--locked", "--manifest-path"])
            .arg(root().join("bench/cmpv2/Cargo.toml"))
            .arg("--target-dir")
            .arg(&target),
    )?;
    let program = target.join("release/bench-cmpv2");
    Contender::start("cmpv2 0.2", Command::new(program), messages)
}

fn bouncy_castle(messages: &Path) -> Result<Contender> {
    let jars: Vec<String> = BOUNCY_CASTLE
        .iter()
        .map(|jar| format!("/usr/share/java/{jar}"))
        .collect();
    let classes = target_dir().join("bench-java");
    let path = format!("{}:{}", classes.display(), jars.join(":"));
    step("compiling Bouncy Castle's program and letting it warm up");
    run_command(
        Command::new("javac")
            .arg("-d")
            .arg(&classes)
            .args(["-cp", &path])
            .arg(root().join("bench/BouncyCastle.java")),
    )?;
    let mut java = Command::new("java");
    java.args(["-cp", &path, "BouncyCastle"]);
    Contender::start("Bouncy Castle", java, messages)
}
