//! Builds the two components that this crate carries.
//!
//! A packager who has them already sets `ABIDE_COMPONENT_DIR` to a directory with `gate.wasm` and
//! `enroller.wasm`; then no WebAssembly target is needed.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[path = "build/component.rs"]
mod component;
#[path = "build/encode.rs"]
mod encode;

/// Where ready components are taken from.
const PREBUILT: &str = "ABIDE_COMPONENT_DIR";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("no CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-env-changed={PREBUILT}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    if let Some(directory) = env::var_os(PREBUILT) {
        for world in component::World::CARRIED {
            let file = Path::new(&directory).join(format!("{}.wasm", world.name()));
            println!("cargo::rerun-if-changed={}", file.display());
            let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            write(&out, world, &bytes)?;
        }
        return Ok(());
    }
    let workspace = package
        .ancestors()
        .nth(2)
        .ok_or("the package is not in its workspace")?;
    for part in ["wit", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", workspace.join(part).display());
    }
    for package in ["cmp", "policy", "enroll", "component"] {
        // Not its tests: they change nothing here.
        for part in ["src", "Cargo.toml"] {
            let path = workspace.join("guest").join(package).join(part);
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    for world in component::World::CARRIED {
        let speed = component::Speed::Native;
        let module = component::module(workspace, &target_directory(&out), world, speed)?;
        write(&out, world, &encode::encode(&module)?)?;
    }
    Ok(())
}

/// Writes only what is new: the compiled code's cache and cargo go by what they see.
fn write(out: &Path, world: component::World, bytes: &[u8]) -> Result<(), String> {
    let file = out.join(format!("{}.wasm", world.name()));
    if fs::read(&file).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(&file, bytes).map_err(|error| format!("{}: {error}", file.display()))
}

/// The target directory of the outer cargo, which marks it with a tag; so that `cargo xtask` and
/// this script share one build of the guest.
fn target_directory(out: &Path) -> PathBuf {
    out.ancestors()
        .find(|directory| directory.join("CACHEDIR.TAG").is_file())
        .unwrap_or(out)
        .to_owned()
}
