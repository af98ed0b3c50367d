//! Stores: in memory, in a file, and on a server that several hosts share. All with the same
//! semantics.

mod check;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod conformance_tests;
mod copy;
mod group;
mod memory;
mod open;
mod postgres;
mod sqlite;
#[cfg(test)]
mod sqlite_tests;

pub use memory::MemoryStorage;
pub use open::OpenError;
pub use postgres::{PostgresConfig, PostgresStorage};
pub use sqlite::SqliteStorage;
