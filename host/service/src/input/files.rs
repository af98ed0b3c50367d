//! Files: read whole within a bound, and replaced whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::InputError;

/// The largest input file in bytes. The largest bundles of trust anchors in use
/// are below one megabyte; a disk image named by mistake is refused early.
pub const MAX_INPUT: u64 = 8 << 20;

/// For what everybody may read.
const PUBLIC: u32 = 0o644;
/// For private keys.
const PRIVATE: u32 = 0o600;

/// Reads a file that an option names. Empty files are refused here, because
/// every reader would have to.
pub fn read(option: &str, path: &Path) -> Result<Vec<u8>, InputError> {
    let fault = |what: String| InputError::given(format!("{option} {}: {what}", path.display()));
    let file = File::open(path).map_err(|error| {
        fault(format!(
            "cannot be opened ({error}); give a file that exists and may be read"
        ))
    })?;
    let mut bytes = Vec::new();
    file.take(MAX_INPUT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| fault(format!("cannot be read ({error})")))?;
    if bytes.is_empty() {
        return Err(fault("the file is empty".into()));
    }
    if bytes.len() as u64 > MAX_INPUT {
        return Err(fault(format!(
            "the file is larger than {MAX_INPUT} bytes, abide reads no more"
        )));
    }
    Ok(bytes)
}

/// Replaces a file whole: after a crash there is the old content or the new one,
/// and after the return the new one survives a power cut.
pub fn replace(option: &str, path: &Path, content: &[u8]) -> Result<(), InputError> {
    replace_with(option, path, content, PUBLIC)
}

fn replace_with(option: &str, path: &Path, content: &[u8], mode: u32) -> Result<(), InputError> {
    write_beside(path, content, mode)
        .and_then(|draft| {
            fs::rename(&draft, path).inspect_err(|_| drop(fs::remove_file(&draft)))?;
            sync_folder(path)
        })
        .map_err(|error| cannot_write(option, path, &error))
}

/// Replaces a file with a private key whole, as [`replace`] does, for nobody else to read.
pub fn replace_private(option: &str, path: &Path, content: &[u8]) -> Result<(), InputError> {
    replace_with(option, path, content, PRIVATE)
}

/// Creates a file for a private key. An existing file is never touched: of two
/// that create at the same time one fails.
pub fn create_private(option: &str, path: &Path, content: &[u8]) -> Result<(), InputError> {
    write_beside(path, content, PRIVATE)
        .and_then(|draft| {
            let linked = fs::hard_link(&draft, path);
            fs::remove_file(&draft)?;
            linked?;
            sync_folder(path)
        })
        .map_err(|error| cannot_write(option, path, &error))
}

/// Whether a file could be written where an option wants it: asked before
/// anything is sent, because afterwards it is late.
pub fn check_target(option: &str, path: &Path) -> Result<(), InputError> {
    if path.is_dir() {
        return Err(InputError::given(format!(
            "{option} {}: is a folder; name a file",
            path.display()
        )));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(InputError::given(format!(
            "{option} {}: the folder {} does not exist; make it first",
            path.display(),
            folder.display()
        )));
    }
    Ok(())
}

fn cannot_write(option: &str, path: &Path, error: &io::Error) -> InputError {
    InputError::host(format!(
        "{option} {}: cannot be written ({error})",
        path.display()
    ))
}

fn write_beside(path: &Path, content: &[u8], mode: u32) -> io::Result<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidFilename)?);
    name.push(format!(".{}.new", std::process::id()));
    let draft = path.with_file_name(name);
    // A draft of the same process id is left over from a crash.
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&draft)?;
    file.write_all(content)
        .and_then(|()| file.sync_all())
        .inspect_err(|_| drop(fs::remove_file(&draft)))?;
    Ok(draft)
}

/// The name of a new file is durable only with its folder.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Fault;
    use std::os::unix::fs::PermissionsExt;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn replacing_leaves_one_file_with_the_new_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cert.pem");
        replace("--certout", &path, b"one").unwrap();
        replace("--certout", &path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["cert.pem"]);
    }

    #[test]
    fn a_failed_replacement_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cert.pem");
        fs::create_dir(&path).unwrap();
        let stop = replace("--certout", &path, b"one").unwrap_err();
        assert_eq!(stop.fault, Fault::Host);
        assert!(stop.message.starts_with("--certout "), "{stop}");
        assert_eq!(names(folder.path()), ["cert.pem"]);
    }

    #[test]
    fn a_private_file_is_private_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        create_private("--newkey", &path, b"secret").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        create_private("--newkey", &path, b"other").unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"secret");
        assert_eq!(names(folder.path()), ["key.pem"]);
    }

    #[test]
    fn unusable_input_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty");
        fs::write(&empty, b"").unwrap();
        let large = folder.path().join("large");
        File::create(&large)
            .unwrap()
            .set_len(MAX_INPUT + 1)
            .unwrap();
        for (path, words) in [
            (folder.path().join("absent"), "cannot be opened"),
            (empty, "is empty"),
            (large, "larger than"),
            (folder.path().to_path_buf(), "cannot be read"),
        ] {
            let stop = read("--csr", &path).unwrap_err();
            assert_eq!(stop.fault, Fault::Given);
            assert!(stop.message.contains(words), "{stop}");
            assert!(stop.message.contains(&path.display().to_string()), "{stop}");
        }
    }

    #[test]
    fn a_target_needs_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        check_target("--certout", &folder.path().join("new.pem")).unwrap();
        check_target("--certout", Path::new("new.pem")).unwrap();
        check_target("--certout", folder.path()).unwrap_err();
        check_target("--certout", &folder.path().join("no/new.pem")).unwrap_err();
    }
}
