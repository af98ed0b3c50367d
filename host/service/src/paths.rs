//! Where abide keeps things when nothing is said: the XDG base directories.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::input::InputError;

/// The store when `--store` is absent.
pub fn default_store() -> Result<PathBuf, InputError> {
    base("XDG_STATE_HOME", ".local/state", |name| {
        std::env::var_os(name)
    })
    .map(|state| state.join("abide").join("abide.db"))
    .ok_or_else(|| {
        InputError::given(
            "neither XDG_STATE_HOME nor HOME says where the store belongs; give --store FILE",
        )
    })
}

/// The folder for compiled code; absent when there is no place for one, which
/// costs time and nothing else.
pub fn default_cache() -> Option<PathBuf> {
    cache(|name| std::env::var_os(name))
}

fn cache(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    match variable("ABIDE_CACHE_DIR") {
        Some(folder) if !folder.is_empty() => Some(folder.into()),
        _ => base("XDG_CACHE_HOME", ".cache", variable).map(|cache| cache.join("abide")),
    }
}

/// The XDG rule: a relative path in the variable counts as unset.
fn base(
    name: &str,
    below_home: &str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let absolute = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute(name).or_else(|| absolute("HOME").map(|home| home.join(below_home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<'a>(set: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        move |name| {
            set.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.into())
        }
    }

    #[test]
    fn the_cache_follows_the_environment() {
        let home = ("HOME", "/h");
        let check = |set: &[(&str, &str)], expected: Option<&str>| {
            assert_eq!(cache(with(set)), expected.map(PathBuf::from), "{set:?}");
        };
        check(&[home], Some("/h/.cache/abide"));
        check(&[home, ("XDG_CACHE_HOME", "/c")], Some("/c/abide"));
        check(&[home, ("XDG_CACHE_HOME", "c")], Some("/h/.cache/abide"));
        check(&[home, ("ABIDE_CACHE_DIR", "/x")], Some("/x"));
        check(&[home, ("ABIDE_CACHE_DIR", "")], Some("/h/.cache/abide"));
        check(&[], None);
    }
}
