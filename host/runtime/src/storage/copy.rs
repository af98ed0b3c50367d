//! Copies of a store in a file, and whether the file is whole.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::sqlite::SqliteStorage;
use crate::wit::storage::StorageError;

/// Findings that are told; a file that is damaged at all has soon more than anybody reads.
const FINDINGS: u32 = 20;

impl SqliteStorage {
    /// Writes the store, as it is at one moment, to a file that must not exist; whoever works
    /// with the store goes on meanwhile. The copy is on the disk when this returns.
    pub async fn copy_to(&self, path: &Path) -> Result<(), StorageError> {
        let target = path.to_owned();
        // Keys and secrets are not in it, names are: it is nobody else's.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&target)
            .map_err(|error| cannot(&target, &error))?;
        let name = target.display().to_string();
        // It takes an empty file for none.
        self.read(move |connection| connection.execute("VACUUM INTO ?1", [name]))
            .await?;
        let synced = tokio::task::spawn_blocking(move || {
            file.sync_all()?;
            match target.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
                _ => File::open(".")?.sync_all(),
            }
        });
        match synced.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(cannot(path, &error)),
            Err(error) => Err(StorageError::Unavailable(error.to_string())),
        }
    }

    /// What SQLite finds wrong with the file: nothing, if it is whole.
    pub async fn damage(&self) -> Result<Vec<String>, StorageError> {
        self.read(|connection| {
            let sql = format!("PRAGMA integrity_check({FINDINGS})");
            let mut statement = connection.prepare(&sql)?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
            Ok(lines.into_iter().filter(|line| line != "ok").collect())
        })
        .await
    }
}

fn cannot(path: &Path, error: &std::io::Error) -> StorageError {
    StorageError::Unavailable(format!("{} cannot be written ({error})", path.display()))
}
