//! Stores: one in a file, one in memory, with the same semantics.

mod check;
#[cfg(test)]
mod conformance;
mod memory;
mod open;
mod sqlite;
#[cfg(test)]
mod sqlite_tests;

pub use memory::MemoryStorage;
pub use open::OpenError;
pub use sqlite::SqliteStorage;
