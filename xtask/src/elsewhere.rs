//! The packages of the examples in Python and Node, with which the tests load the component, and
//! those that drive a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{capture, root, run, step, succeeds, target_dir};

/// jco asks for it.
const OLDEST_NODE: u32 = 20;

/// Written last: a folder without it, or with another one, is made again.
const MARK: &str = "installed";

/// Installs what is missing, by pip and npm, below the target directory; never into the system.
pub(crate) fn install() -> Result<()> {
    python(&target_dir().join("elsewhere/python")).context("the packages for Python")?;
    let node_modules = |name: &str, from: &Path| {
        node(&target_dir().join("elsewhere").join(name), from)
            .with_context(|| format!("the packages of {}", from.display()))
    };
    promtool(&target_dir().join("elsewhere/prometheus")).context("promtool of Prometheus")?;
    node_modules("node", &example("node"))?;
    node_modules("page", &root().join("tests/peers/page"))
}

/// The tool that judges metrics and rules, out of Debian's package: installed, that would start a
/// server.
fn promtool(folder: &Path) -> Result<()> {
    let wanted = "prometheus";
    if installed(folder, wanted) {
        return Ok(());
    }
    step("fetching promtool");
    empty(folder)?;
    let mut download = Command::new("apt-get");
    download
        .current_dir(folder)
        .args(["-qq", "-o", "APT::Sandbox::User=root"])
        .args(["download", wanted]);
    // A machine that has never looked knows of no package.
    if !succeeds(&mut download) {
        run(Command::new("apt-get").args(["-qq", "update"]))?;
        run(&mut download)?;
    }
    let package = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|is| is == "deb"))
        .context("apt-get has left no package")?;
    run(Command::new("dpkg-deb")
        .arg("--extract")
        .arg(&package)
        .arg(folder))?;
    fs::remove_file(&package)?;
    mark(folder, wanted)
}

fn python(folder: &Path) -> Result<()> {
    let requirements = example("python/requirements.txt");
    let wanted = read(&requirements)?;
    let interpreter = folder.join("bin/python");
    // It is a link to the system's, which may have gone.
    if installed(folder, &wanted) && succeeds(Command::new(&interpreter).arg("--version")) {
        return Ok(());
    }
    step("installing the example's packages for Python");
    empty(folder)?;
    capture(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    run(Command::new(&interpreter)
        .args(["-m", "pip", "install", "--quiet"])
        .args(["--disable-pip-version-check", "--only-binary", ":all:"])
        .arg("--requirement")
        .arg(&requirements))?;
    mark(folder, &wanted)
}

fn node(folder: &Path, from: &Path) -> Result<()> {
    let wanted = read(&from.join("package-lock.json"))?;
    if installed(folder, &wanted) {
        return Ok(());
    }
    let found = capture(Command::new("node").arg("--version"))
        .with_context(|| format!("Node {OLDEST_NODE} or newer is needed, from nodejs.org"))?;
    if major(&found).is_none_or(|major| major < OLDEST_NODE) {
        bail!(
            "Node {OLDEST_NODE} or newer is needed, from nodejs.org; here is {}",
            found.trim()
        );
    }
    step(format!("installing the packages of {}", from.display()));
    empty(folder)?;
    for file in ["package.json", "package-lock.json"] {
        let to = folder.join(file);
        fs::copy(from.join(file), &to).with_context(|| format!("cannot write {}", to.display()))?;
    }
    run(Command::new("npm")
        .current_dir(folder)
        // None of them needs a script of its own to be installed.
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .args(["--loglevel", "error"]))?;
    mark(folder, &wanted)
}

/// The first number of `v20.20.2`.
fn major(version: &str) -> Option<u32> {
    version
        .trim()
        .trim_start_matches('v')
        .split('.')
        .next()?
        .parse()
        .ok()
}

fn example(file: &str) -> PathBuf {
    root().join("examples").join(file)
}

fn installed(folder: &Path, wanted: &str) -> bool {
    fs::read_to_string(folder.join(MARK)).is_ok_and(|found| found == wanted)
}

fn mark(folder: &Path, wanted: &str) -> Result<()> {
    let mark = folder.join(MARK);
    fs::write(&mark, wanted).with_context(|| format!("cannot write {}", mark.display()))
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Makes the folder, without what an interrupted installation left in it.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn the_version_of_node_is_read() {
        assert_eq!(major("v20.20.2\n"), Some(20));
        assert_eq!(major("v8.1.0"), Some(8));
        assert_eq!(major("node"), None);
    }
}
