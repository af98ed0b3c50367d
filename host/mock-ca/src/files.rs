//! Files that are whole or not there.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;

/// Readable for everyone.
pub(crate) const PUBLIC: u32 = 0o644;
/// Readable for the owner only.
pub(crate) const PRIVATE: u32 = 0o600;

/// Makes the folder if it is absent.
pub(crate) fn make_dir(dir: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("the folder {} cannot be made", dir.display()))
}

/// Writes a file under another name, flushes it and puts it in its place, so that a
/// crash leaves the old file or the new one.
pub(crate) fn write(path: &Path, contents: &[u8], mode: u32) -> anyhow::Result<()> {
    let what = || format!("{} cannot be written", path.display());
    let partial = path.with_extension("partial");
    // The mode counts when a file is made; one that a crash left behind has its own.
    if partial.exists() {
        fs::remove_file(&partial).with_context(what)?;
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&partial)
        .with_context(what)?;
    file.write_all(contents)
        .and_then(|()| file.sync_all())
        .with_context(what)?;
    fs::rename(&partial, path).with_context(what)?;
    let dir = path.parent().unwrap_or(Path::new("."));
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .with_context(what)
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}
