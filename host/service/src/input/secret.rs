//! Where secrets come from: openssl's `pass:`, `env:`, `file:` and `stdin`.

use std::io::{BufRead, Read};
use std::path::PathBuf;

use zeroize::Zeroizing;

use super::InputError;

/// The longest secret in bytes: far beyond any password, small enough that a
/// file named by mistake is noticed.
const MAX_SECRET: usize = 4096;

/// A source of a secret, not yet read.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// On the command line, where others on this host can see it.
    Pass(Zeroizing<String>),
    /// In an environment variable.
    Env(String),
    /// The first line of a file.
    File(PathBuf),
    /// The first line of the standard input.
    Stdin,
    /// None of these. Refused only when it is read, by our own words: an error of
    /// the command line's parser would repeat the text, which may be the secret.
    Unknown,
}

/// Shows where a secret comes from and never the secret.
impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pass(_) => f.write_str("pass:…"),
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Stdin => f.write_str("stdin"),
            Self::Unknown => f.write_str("…"),
        }
    }
}

impl std::str::FromStr for Source {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once(':') {
            Some(("pass", secret)) => Self::Pass(Zeroizing::new(secret.into())),
            Some(("env", name)) if !name.is_empty() => Self::Env(name.into()),
            Some(("file", path)) if !path.is_empty() => Self::File(path.into()),
            None if text == "stdin" => Self::Stdin,
            _ => Self::Unknown,
        })
    }
}

impl Source {
    /// Reads the secret that `option` names.
    pub fn read(&self, option: &str) -> Result<Zeroizing<Vec<u8>>, InputError> {
        let fault = |what: String| InputError::given(format!("{option} {self:?}: {what}"));
        let secret = match self {
            Self::Pass(secret) => Zeroizing::new(secret.as_bytes().to_vec()),
            Self::Env(name) => {
                let value = std::env::var_os(name)
                    .ok_or_else(|| fault("the environment variable is not set".into()))?;
                Zeroizing::new(std::os::unix::ffi::OsStringExt::into_vec(value))
            }
            Self::File(path) => {
                let file = std::fs::File::open(path)
                    .map_err(|error| fault(format!("the file cannot be opened ({error})")))?;
                first_line(file).map_err(fault)?
            }
            Self::Stdin => first_line(std::io::stdin().lock()).map_err(fault)?,
            Self::Unknown => {
                return Err(fault(
                    "a secret is given as pass:SECRET, env:VARIABLE, file:PATH or stdin".into(),
                ));
            }
        };
        if secret.is_empty() {
            return Err(fault("the secret is empty".into()));
        }
        Ok(secret)
    }
}

fn first_line(input: impl Read) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut line = Zeroizing::new(Vec::with_capacity(MAX_SECRET + 1));
    std::io::BufReader::new(input.take(MAX_SECRET as u64 + 1))
        .read_until(b'\n', &mut line)
        .map_err(|error| format!("cannot be read ({error})"))?;
    if line.len() > MAX_SECRET {
        return Err(format!("the first line is longer than {MAX_SECRET} bytes"));
    }
    while matches!(line.last(), Some(b'\n' | b'\r')) {
        line.pop();
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Source {
        let Ok(source) = text.parse();
        source
    }

    #[test]
    fn sources_are_openssls() {
        assert_eq!(parse("pass:a:b").read("-").unwrap().as_slice(), b"a:b");
        assert_eq!(parse("env:X"), Source::Env("X".into()));
        assert_eq!(parse("file:a:b"), Source::File("a:b".into()));
        assert_eq!(parse("stdin"), Source::Stdin);
        for wrong in ["hunter2", "env:", "file:", "", "PASS:x", "stdin:x"] {
            let stop = parse(wrong).read("--secret").unwrap_err();
            assert!(stop.message.contains("env:VARIABLE"), "{stop}");
            assert!(!stop.message.contains("hunter2"), "{stop}");
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        assert_eq!(format!("{:?}", parse("pass:hunter2")), "pass:…");
        assert_eq!(format!("{:?}", parse("hunter2")), "…");
        let stop = parse("pass:").read("--secret").unwrap_err();
        assert!(stop.message.contains("empty"), "{stop}");
    }

    #[test]
    fn a_file_gives_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let source = Source::File(path.clone());
        for content in ["top secret", "top secret\n", "top secret\r\nsecond line\n"] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(source.read("--secret").unwrap().as_slice(), b"top secret");
        }
        std::fs::write(&path, "x".repeat(MAX_SECRET + 1)).unwrap();
        assert!(
            source
                .read("--secret")
                .unwrap_err()
                .message
                .contains("longer")
        );
        std::fs::write(&path, "\n").unwrap();
        assert!(
            source
                .read("--secret")
                .unwrap_err()
                .message
                .contains("empty")
        );
        std::fs::remove_file(&path).unwrap();
        assert!(
            source
                .read("--secret")
                .unwrap_err()
                .message
                .contains("cannot be opened")
        );
    }

    #[test]
    fn an_unset_variable_is_named() {
        let stop = parse("env:ABIDE_NOT_SET_ANYWHERE")
            .read("--secret")
            .unwrap_err();
        assert!(stop.message.contains("ABIDE_NOT_SET_ANYWHERE"), "{stop}");
    }
}
