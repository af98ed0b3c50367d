//! The store that the configuration names.

use std::path::Path;
use std::sync::Arc;

use abide_host::{PostgresConfig, PostgresStorage, SqliteStorage, Storage};
use zeroize::Zeroizing;

use crate::config;

/// Opens it, and makes it where there is none.
pub(crate) async fn open(store: &config::Store) -> Result<Arc<dyn Storage>, String> {
    match store {
        config::Store::Sqlite(path) => {
            if let Some(folder) = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty())
            {
                make_private(folder)
                    .map_err(|error| format!("{} cannot be made ({error})", folder.display()))?;
            }
            let path = path.clone();
            tokio::task::spawn_blocking(move || SqliteStorage::open(&path))
                .await
                .map_err(|error| error.to_string())?
                .map(|store| Arc::new(store) as Arc<dyn Storage>)
                .map_err(|error| format!("the store {error}"))
        }
        config::Store::Postgres(url) => PostgresStorage::open(&PostgresConfig::new(url))
            .await
            .map(|store| Arc::new(store) as Arc<dyn Storage>)
            .map_err(|error| format!("the store {error}")),
    }
}

/// A folder that only its owner looks into.
pub(crate) fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

/// The PEM of a private key that this host made.
pub(crate) async fn read_key(folder: &Path, name: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    let path = folder.join(format!("{name}.pem"));
    let source = path.clone();
    tokio::task::spawn_blocking(move || std::fs::read(source))
        .await
        .map_err(|error| error.to_string())?
        .map(Zeroizing::new)
        .map_err(|error| format!("the key {} cannot be read ({error})", path.display()))
}
