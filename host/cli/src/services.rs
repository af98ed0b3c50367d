//! The host side of the component, as the options of the program want it.

use std::path::{Path, PathBuf};

use abide_host::network::{Identity, TlsFile};
use abide_host::{HttpConfig, HttpNetwork, OpenError, Runtime, RuntimeConfig, SqliteStorage};
use zeroize::Zeroizing;

use crate::exit::Stop;
use crate::{files, names, output, paths, pem};

/// The engine with its two components. Compiled code is kept between runs, unless
/// that is not wanted.
pub(crate) fn runtime(no_cache: bool) -> Result<Runtime, Stop> {
    let mut config = RuntimeConfig::default();
    config.cache = if no_cache {
        None
    } else {
        paths::default_cache()
    };
    // One command is one call at a time.
    config.instances = 1;
    let runtime = Runtime::new(config).map_err(|error| Stop::host(error.to_string()))?;
    for warning in runtime.warnings() {
        output::say(&format!("abide: {warning}"));
    }
    Ok(runtime)
}

/// Opens the store to write to it, and makes it when it does not exist.
pub(crate) fn open_store(path: Option<&Path>) -> Result<SqliteStorage, Stop> {
    let path = path.map_or_else(paths::default_store, |path| Ok(path.to_path_buf()))?;
    SqliteStorage::open(&path).map_err(|error| Stop::host(format!("the store {error}")))
}

/// Opens the store to look at it. One that was never made stays unmade: absent
/// when it is the default store, an error when it was named.
pub(crate) fn look_at_store(path: Option<&Path>) -> Result<Option<SqliteStorage>, Stop> {
    let named = path.is_some();
    let path = path.map_or_else(paths::default_store, |path| Ok(path.to_path_buf()))?;
    match SqliteStorage::open_read_only(&path) {
        Ok(store) => Ok(Some(store)),
        Err(OpenError::Missing { .. }) if !named => Ok(None),
        Err(error @ OpenError::Missing { .. }) => Err(Stop::usage(format!("the store {error}"))),
        Err(error) => Err(Stop::host(format!("the store {error}"))),
    }
}

/// The way to a server.
pub(crate) fn network(
    server: &str,
    trusted: &[PathBuf],
    client: Option<(&Path, &Path)>,
) -> Result<HttpNetwork, Stop> {
    if !server.starts_with("https://") && (!trusted.is_empty() || client.is_some()) {
        return Err(Stop::usage(format!(
            "--tls-… options need an https:// server, not {server}"
        )));
    }
    let mut config = HttpConfig::default();
    // No proxy reaches what listens on this machine only.
    config.proxy_from_environment = !names::is_loopback(server);
    for path in trusted {
        config
            .trusted
            .push(tls_certificates("--tls-trusted", path)?);
    }
    if let Some((certificate, key)) = client {
        config.identity = Some(Identity {
            certificate: tls_certificates("--tls-cert", certificate)?,
            key: TlsFile {
                name: format!("--tls-key {}", key.display()),
                contents: Zeroizing::new(files::read("--tls-key", key)?),
            },
        });
    }
    HttpNetwork::new(config).map_err(|error| Stop::usage(error.to_string()))
}

/// Read here, because the errors of this reader name the line.
fn tls_certificates(option: &str, path: &Path) -> Result<TlsFile, Stop> {
    let certificates = pem::certificates(option, path)?;
    Ok(TlsFile {
        name: format!("{option} {}", path.display()),
        contents: Zeroizing::new(pem::encode_certificates(&certificates).into_bytes()),
    })
}
