//! `cargo xtask component`: the files that other hosts carry.

use std::process::ExitCode;

use anyhow::Result;

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
    for world in build::World::ALL {
        step(format!("building the component, world {}", world.name()));
        build::module(root(), &target_dir(), world, build::Speed::Native)?;
    }
    Ok(())
}

/// Starts this program again with the encoder compiled in.
#[cfg(not(feature = "component"))]
pub(crate) fn run() -> Result<ExitCode> {
    use crate::shell::{cargo, status};

    step("compiling the component's encoder; the first time takes a minute");
    let status = status(&mut cargo([
        "run",
        "--package",
        "xtask",
        "--features",
        "component",
        "component",
    ]))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Builds and describes all four.
#[cfg(feature = "component")]
pub(crate) fn run() -> Result<ExitCode> {
    use anyhow::{Context, anyhow};
    use build::{Speed, World};

    crate::setup::for_building()?;
    let target = target_dir();
    let directory = target.join("component");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let mut descriptions = Vec::new();
    for (speed, suffix) in [(Speed::Portable, ""), (Speed::Native, "-native")] {
        for world in World::ALL {
            let name = format!("abide-{}{suffix}.wasm", world.name());
            step(format!("building {name}"));
            let module = build::module(root(), &target, world, speed)?;
            let bytes = encode::encode(&module).map_err(|why| anyhow!("{name}: {why}"))?;
            let file = directory.join(&name);
            std::fs::write(&file, &bytes)
                .with_context(|| format!("cannot write {}", file.display()))?;
            descriptions.push(describe(&file.display().to_string(), &bytes)?);
        }
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
