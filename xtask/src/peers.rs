//! `cargo xtask peers`: releases of OpenSSL that are newer than the machine's own, as peers of
//! trials and benchmarks.
//!
//! Each takes minutes and never changes, so they are kept outside the source tree, for every clone
//! on the machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::shell::{capture, cargo, root, run as run_command, step, succeeds, target_dir};

/// Only what a peer needs: a program that does not depend on where it lies, and a static library.
/// Debian's own OpenSSL is the one with everything.
const OPTIONS: [&str; 8] = [
    "no-shared",
    "no-tests",
    "no-docs",
    "no-legacy",
    "no-dtls",
    "no-quic",
    "--libdir=lib",
    "-O2",
];

/// `cargo xtask peers`.
pub(crate) fn run() -> Result<ExitCode> {
    for openssl in all()? {
        if openssl.is_there() {
            step(format!("OpenSSL {} is there", openssl.version));
        } else {
            openssl.build()?;
        }
        println!("{}", openssl.folder.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// A release of OpenSSL, built or not.
pub(crate) struct OpenSsl {
    pub(crate) version: String,
    /// `bin/openssl`, `include` and `lib/libcrypto.a` are below it.
    pub(crate) folder: PathBuf,
    sources: PathBuf,
}

/// Those that are built already, in the order of their versions.
pub(crate) fn there() -> Result<Vec<OpenSsl>> {
    // Without the folder there is nothing to find, and nothing to be fetched for it.
    if !cache()?.is_dir() {
        return Ok(Vec::new());
    }
    Ok(all()?.into_iter().filter(OpenSsl::is_there).collect())
}

/// All of them. Cargo fetches their sources.
fn all() -> Result<Vec<OpenSsl>> {
    let manifest = root().join("xtask/peers/Cargo.toml");
    let list = capture(
        cargo(["run", "--quiet", "--locked", "--manifest-path"])
            .arg(manifest)
            .arg("--target-dir")
            .arg(target_dir().join("peers")),
    )?;
    let cache = cache()?;
    list.lines()
        .map(|line| {
            let (version, sources) = line
                .split_once('\t')
                .with_context(|| format!("`{line}` names no folder"))?;
            Ok(OpenSsl {
                version: version.to_owned(),
                folder: cache.join(format!("openssl-{version}")),
                sources: PathBuf::from(sources),
            })
        })
        .collect()
}

/// Where they are kept, by the rules of the XDG Base Directory Specification.
fn cache() -> Result<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME names a folder")?;
    Ok(base.join("abide/peers"))
}

impl OpenSsl {
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join("bin/openssl")
    }

    /// The program is installed last.
    fn is_there(&self) -> bool {
        succeeds(Command::new(self.program()).arg("version"))
    }

    /// In a folder of its own, because the sources belong to cargo.
    fn build(&self) -> Result<()> {
        if !succeeds(Command::new("perl").arg("--version")) {
            bail!("OpenSSL is built with perl and make; on Debian: apt-get install perl make");
        }
        let build = cache()?.join(format!("build/openssl-{}", self.version));
        fs::create_dir_all(&build).with_context(|| format!("cannot make {}", build.display()))?;
        step(format!(
            "building OpenSSL {}; this takes minutes, its words go to {}",
            self.version,
            build.join("build.log").display()
        ));
        let mut configure = Command::new("perl");
        configure
            .arg(self.sources.join("Configure"))
            .arg(format!("--prefix={}", self.folder.display()))
            .args(OPTIONS);
        logged(&mut configure, &build, "configure.log")?;
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut make = Command::new("make");
        make.arg(format!("-j{jobs}")).arg("build_sw");
        logged(&mut make, &build, "build.log")?;
        logged(
            Command::new("make").arg("install_sw"),
            &build,
            "install.log",
        )?;
        fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))?;
        if !self.is_there() {
            bail!("{} does not run", self.program().display());
        }
        Ok(())
    }
}

/// Runs in a folder with all output in a file there, which the error names.
fn logged(command: &mut Command, folder: &Path, log: &str) -> Result<()> {
    let log = folder.join(log);
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let errors = file.try_clone().context("cannot write twice to a file")?;
    // The job server of the outer cargo, if there is one, is not for this make.
    command
        .current_dir(folder)
        .env_remove("MAKEFLAGS")
        .stdout(file)
        .stderr(errors);
    run_command(command).with_context(|| format!("see {}", log.display()))
}
