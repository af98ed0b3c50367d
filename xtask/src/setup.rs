//! What building and testing need. Safe to repeat: it looks first and installs what is missing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::elsewhere;
use crate::shell::{capture, cargo, in_ci, run as run_command, step, succeeds};

/// The target of the component: nothing of a platform, so nothing but the imports of its world
/// can be in the file.
pub(crate) const GUEST_TARGET: &str = "wasm32-unknown-unknown";

/// How long apt may wait for another apt, in seconds: unattended upgrades of a fresh machine take
/// minutes, but not ten.
const APT_LOCK_SECONDS: u32 = 600;

/// A Debian package and the sign that what it brings is there, however it came: a program that
/// runs with this argument.
struct Package {
    name: &'static str,
    sign: (&'static str, &'static str),
}

/// The database server. The tests start their own.
const DATABASE: &str = "postgresql";

/// While this is there, Debian's package makes and starts no server of the machine.
const NO_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/only-for-tests.conf";

/// The peers of the tests.
const PACKAGES: [Package; 9] = [
    Package {
        name: "openssl",
        sign: ("openssl", "version"),
    },
    Package {
        name: "python3-venv",
        sign: ("python3", "-cimport ensurepip, venv"),
    },
    Package {
        name: "libssl-dev",
        sign: ("ls", "/usr/include/openssl/cmp.h"),
    },
    Package {
        name: "default-jdk-headless",
        sign: ("javac", "-version"),
    },
    Package {
        name: "libbcpkix-java",
        sign: ("ls", "/usr/share/java/bcpkix.jar"),
    },
    Package {
        // Nothing of it runs; it judges the unit.
        name: "systemd",
        sign: ("systemd-analyze", "--version"),
    },
    Package {
        name: "redis-server",
        sign: ("redis-server", "--version"),
    },
    Package {
        name: "chromium",
        sign: ("chromium", "--version"),
    },
    Package {
        name: DATABASE,
        // In a folder named by its version, outside of the path.
        sign: (
            "python3",
            "-cimport glob; glob.glob('/usr/lib/postgresql/*/bin/initdb')[0]",
        ),
    },
];

/// What `cargo xtask bench gateway` compares with, and measures with.
const PROXIES: [Package; 2] = [
    Package {
        name: "nginx-light",
        sign: ("nginx", "-v"),
    },
    Package {
        name: "wrk",
        // It has no option that ends well.
        sign: ("which", "wrk"),
    },
];

/// While this is there and fails, Debian's packages start no services of the machine.
const NO_SERVICES: &str = "/usr/sbin/policy-rc.d";

/// `cargo xtask setup`.
pub(crate) fn run() -> Result<ExitCode> {
    for_building()?;
    for_linting()?;
    peers()?;
    elsewhere::install()?;
    step("everything is there");
    Ok(ExitCode::SUCCESS)
}

/// What a build needs.
pub(crate) fn for_building() -> Result<()> {
    if !target_installed() {
        step(format!("installing the Rust target {GUEST_TARGET}"));
        rustup(&["target", "add", GUEST_TARGET])?;
    }
    if !succeeds(Command::new("cc").arg("--version")) {
        bail!(
            "there is no C compiler `cc`, which SQLite and the cryptography of the host need; \
             on Debian: apt-get install build-essential"
        );
    }
    Ok(())
}

/// What the lints need.
pub(crate) fn for_linting() -> Result<()> {
    rust_component("rustfmt", "fmt")?;
    rust_component("clippy", "clippy")
}

/// The peers of the tests. Missing ones that cannot be installed are an error in an automatic run,
/// else a warning: a person may want the tests that do without them.
pub(crate) fn for_testing() -> Result<()> {
    match peers().and_then(|()| elsewhere::install()) {
        Err(error) if !in_ci() => {
            step(format!("warning: {error:#}"));
            step("going on; the tests that need them will fail");
            Ok(())
        }
        outcome => outcome,
    }
}

/// The peers of the tests and of the benchmarks.
pub(crate) fn peers() -> Result<()> {
    let only_for_tests = missing(&PACKAGES).contains(&DATABASE);
    if only_for_tests && installable() {
        fs::create_dir_all(Path::new(NO_CLUSTER).parent().unwrap_or(Path::new("/")))?;
        fs::write(NO_CLUSTER, "create_main_cluster = false\n")?;
    }
    let installed = install(&PACKAGES);
    if only_for_tests && installable() {
        // Who installs a server for other purposes later gets what Debian promises.
        fs::remove_file(NO_CLUSTER)?;
    }
    installed
}

/// A proxy to compare with, and a load generator. Only a benchmark wants them.
pub(crate) fn proxies() -> Result<()> {
    install(&PROXIES)
}

/// Whether this program may install Debian's packages.
fn installable() -> bool {
    Path::new("/etc/debian_version").exists()
        && capture(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn install(packages: &[Package]) -> Result<()> {
    let names = missing(packages);
    if names.is_empty() {
        return Ok(());
    }
    let list = names.join(" ");
    if !Path::new("/etc/debian_version").exists() {
        bail!("missing, by the names of Debian's packages: {list}; install what corresponds here");
    }
    if !installable() {
        bail!("missing: {list}; as root: apt-get update && apt-get install {list}");
    }
    step("refreshing the list of Debian packages");
    run_command(apt().args(["-qq", "update"]))?;
    step(format!("installing {list}"));
    let own_policy = !Path::new(NO_SERVICES).exists();
    if own_policy {
        fs::write(NO_SERVICES, "#!/bin/sh\nexit 101\n")?;
        fs::set_permissions(NO_SERVICES, fs::Permissions::from_mode(0o755))?;
    }
    let installed = run_command(
        apt()
            .args(["-qq", "--yes", "--no-install-recommends", "install"])
            .args(&names),
    );
    if own_policy {
        fs::remove_file(NO_SERVICES)?;
    }
    installed?;
    let still = missing(packages);
    if !still.is_empty() {
        bail!("installed, but still not usable: {}", still.join(" "));
    }
    Ok(())
}

fn missing(packages: &[Package]) -> Vec<&'static str> {
    packages
        .iter()
        .filter(|package| !package.present())
        .map(|package| package.name)
        .collect()
}

impl Package {
    fn present(&self) -> bool {
        let (program, argument) = self.sign;
        succeeds(Command::new(program).arg(argument))
    }
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["-o", &format!("DPkg::Lock::Timeout={APT_LOCK_SECONDS}")]);
    command
}

fn target_installed() -> bool {
    capture(Command::new("rustc").args(["--print", "target-libdir", "--target", GUEST_TARGET]))
        .is_ok_and(|directory| Path::new(directory.trim()).is_dir())
}

fn rust_component(component: &str, subcommand: &str) -> Result<()> {
    if succeeds(&mut cargo([subcommand, "--version"])) {
        return Ok(());
    }
    step(format!("installing the Rust component {component}"));
    rustup(&["component", "add", component])
}

/// rustup works on the toolchain that runs this program: its proxy sets `RUSTUP_TOOLCHAIN`.
fn rustup(arguments: &[&str]) -> Result<()> {
    run_command(Command::new("rustup").args(arguments)).with_context(|| {
        format!(
            "without rustup, install by the means of your Rust toolchain what \
             `rustup {}` would",
            arguments.join(" ")
        )
    })
}
