//! `cargo xtask component`: the files that other hosts carry.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::shell::{root, step, target_dir};

#[path = "../../host/runtime/build/component.rs"]
#[allow(
    unreachable_pub,
    reason = "written for a build script, which shares it"
)]
mod build;
#[cfg(feature = "component")]
#[path = "../../host/runtime/build/encode.rs"]
mod encode;

/// Builds what the host's build script will then find ready: cargo shows nothing of what a build
/// script does, and this takes most of a minute.
pub(crate) fn build_for_host() -> Result<()> {
    for world in build::World::CARRIED {
        step(format!("building the component, world {}", world.name()));
        build::module(root(), &target_dir(), world, build::Speed::Native)?;
    }
    Ok(())
}

/// Builds the files that the tests load.
pub(crate) fn build_for_tests() -> Result<()> {
    build("abide-gate")?;
    build("abide-verifier").map(drop)
}

/// Builds the component of this name, and returns its file.
pub(crate) fn build(name: &str) -> Result<PathBuf> {
    if run(&["--only".to_owned(), name.to_owned()])? != ExitCode::SUCCESS {
        bail!("there is no component {name}");
    }
    Ok(target_dir().join("component").join(format!("{name}.wasm")))
}

/// Starts this program again with the encoder compiled in.
#[cfg(not(feature = "component"))]
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    use crate::shell::{cargo, run, status};
    use std::process::Command;

    step("compiling the component's encoder; the first time takes a minute");
    // As a part of the whole workspace, so that the tests find what it is made of compiled.
    run(&mut cargo([
        "build",
        "--workspace",
        "--bin",
        "xtask",
        "--features",
        "xtask/component",
    ]))?;
    let mut again = Command::new(target_dir().join("debug/xtask"));
    let status = status(again.arg("component").args(arguments))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Builds and describes all six, or the one that is asked for.
#[cfg(feature = "component")]
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    use anyhow::{Context, anyhow};
    use build::{Speed, World};

    let only = match arguments {
        [] => None,
        [option, name] if option == "--only" => Some(name),
        _ => bail!("`component` takes only `--only NAME`; see `cargo xtask help`"),
    };
    crate::setup::for_building()?;
    let target = target_dir();
    let directory = target.join("component");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let mut descriptions = Vec::new();
    for (speed, suffix) in [(Speed::Portable, ""), (Speed::Native, "-native")] {
        for world in World::CARRIED.into_iter().chain([World::Verifier]) {
            let name = format!("abide-{}{suffix}", world.name());
            if only.is_some_and(|only| *only != name) {
                continue;
            }
            let name = format!("{name}.wasm");
            step(format!("building {name}"));
            let module = build::module(root(), &target, world, speed)?;
            let bytes = encode::encode(&module).map_err(|why| anyhow!("{name}: {why}"))?;
            let file = directory.join(&name);
            std::fs::write(&file, &bytes)
                .with_context(|| format!("cannot write {}", file.display()))?;
            descriptions.push(describe(&file.display().to_string(), &bytes)?);
        }
    }
    if descriptions.is_empty() {
        bail!("no component has that name; see `cargo xtask help`");
    }
    println!("{}", descriptions.join("\n"));
    Ok(ExitCode::SUCCESS)
}

/// Size, imports and exports as they are in the file, not as they ought to be.
#[cfg(feature = "component")]
fn describe(name: &str, bytes: &[u8]) -> Result<String> {
    use std::fmt::Write;

    let decoded = wit_component::decode(bytes)?;
    let wit_component::DecodedWasm::Component(resolve, world) = decoded else {
        anyhow::bail!("{name} is not a component");
    };
    let world = &resolve.worlds[world];
    let mut text = format!(
        "{name}: {} bytes ({:.0} KiB)",
        bytes.len(),
        bytes.len() as f64 / 1024.0
    );
    for (kind, items) in [("import", &world.imports), ("export", &world.exports)] {
        if items.is_empty() {
            write!(text, "\n  {kind}  none")?;
        }
        for key in items.keys() {
            write!(text, "\n  {kind}  {}", resolve.name_world_key(key))?;
        }
    }
    Ok(text)
}
