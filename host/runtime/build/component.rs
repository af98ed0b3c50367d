// How the guest becomes a core module. Shared by the build script of the host and by xtask, so
// that both use one build; with nothing but the standard library, so that xtask starts quickly.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package that becomes the component.
const PACKAGE: &str = "abide-component";

/// What cargo calls its core module.
const MODULE: &str = "abide_component.wasm";

/// Nothing of the platform, so nothing but the world's imports can be in the file.
const TARGET: &str = "wasm32-unknown-unknown";

/// The worlds; each is a feature of the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum World {
    /// Without imports.
    Gate,
    /// With six.
    Enroller,
    /// With one, for keys.
    #[allow(dead_code, reason = "xtask builds it, the host does not")]
    Verifier,
}

impl World {
    /// Those that the host carries.
    pub(crate) const CARRIED: [World; 2] = [World::Gate, World::Enroller];

    /// The feature and the name in WIT.
    pub(crate) fn name(self) -> &'static str {
        match self {
            World::Gate => "gate",
            World::Enroller => "enroller",
            World::Verifier => "verifier",
        }
    }
}

/// Which instructions the component may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speed {
    /// Only what every runtime of the component model has.
    #[allow(dead_code, reason = "xtask builds these, the host does not")]
    Portable,
    /// With vectors and wide arithmetic: cryptography at the speed of the machine.
    Native,
}

impl Speed {
    /// The directory below the target directory: builds with other flags would throw each other's
    /// results away.
    fn directory(self) -> &'static str {
        match self {
            Speed::Portable => "portable",
            Speed::Native => "native",
        }
    }

    /// The workspace's profile: one for size, one for speed.
    fn profile(self) -> &'static str {
        match self {
            Speed::Portable => "guest",
            Speed::Native => "guest-native",
        }
    }

    fn rustflags(self) -> &'static str {
        match self {
            Speed::Portable => "",
            Speed::Native => "-Ctarget-feature=+simd128,+wide-arithmetic",
        }
    }
}

/// Why there is no component.
#[derive(Debug)]
pub(crate) enum BuildError {
    /// The Rust target is not installed.
    TargetMissing,
    /// cargo ended with an error, which it has printed.
    Cargo(String),
    /// A file cannot be read or written.
    Io(PathBuf, io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::TargetMissing => write!(
                f,
                "the Rust target {TARGET} is not installed: run `cargo xtask setup`"
            ),
            BuildError::Cargo(what) => write!(f, "cargo cannot build {PACKAGE}: {what}"),
            BuildError::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for BuildError {}

/// Builds one world and returns its core module. `workspace` has the Cargo.toml of all, `target`
/// is its target directory.
pub(crate) fn module(
    workspace: &Path,
    target: &Path,
    world: World,
    speed: Speed,
) -> Result<Vec<u8>, BuildError> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let directory = target.join("guest").join(speed.directory());
    let mut command = Command::new(cargo);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(disturbs) {
            command.env_remove(name);
        }
    }
    command
        .current_dir(workspace)
        .args([
            "build",
            "--package",
            PACKAGE,
            "--lib",
            "--no-default-features",
        ])
        .args(["--features", world.name()])
        .args(["--profile", speed.profile(), "--target", TARGET])
        .arg("--target-dir")
        .arg(&directory)
        .env("RUSTFLAGS", speed.rustflags());
    let status = command
        .status()
        .map_err(|error| BuildError::Cargo(error.to_string()))?;
    if !status.success() {
        return Err(if target_installed() {
            BuildError::Cargo(status.to_string())
        } else {
            BuildError::TargetMissing
        });
    }
    let module = directory.join(TARGET).join(speed.profile()).join(MODULE);
    fs::read(&module).map_err(|error| BuildError::Io(module, error))
}

/// Whether a variable of the outer cargo would change what the inner one does. Where packages come
/// from, how the terminal looks and the job server stay.
fn disturbs(variable: &str) -> bool {
    const KEPT: [&str; 8] = [
        "CARGO_HOME",
        "CARGO_HTTP_",
        "CARGO_MAKEFLAGS",
        "CARGO_NET_",
        "CARGO_REGISTRIES_",
        "CARGO_REGISTRY_",
        "CARGO_SOURCE_",
        "CARGO_TERM_",
    ];
    const OTHERS: [&str; 14] = [
        "DEBUG",
        "HOST",
        "LD_LIBRARY_PATH",
        "NUM_JOBS",
        "OPT_LEVEL",
        "OUT_DIR",
        "PROFILE",
        "RUSTC",
        "RUSTC_LINKER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTDOC",
        "RUSTDOCFLAGS",
        "RUSTFLAGS",
        "TARGET",
    ];
    OTHERS.contains(&variable)
        || variable.starts_with("CARGO_") && !KEPT.iter().any(|kept| variable.starts_with(kept))
        || variable.starts_with("DEP_")
}

/// Whether rustc has a standard library for the target, asked only to explain a failure.
fn target_installed() -> bool {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .output();
    output.is_ok_and(|output| {
        let directory = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success() && Path::new(&directory).is_dir()
    })
}
