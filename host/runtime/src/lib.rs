//! A wasmtime host for abide.
//!
//! The core of abide is a WebAssembly component without ambient power. This crate runs it and
//! gives it what it needs: a store ([`SqliteStorage`], [`PostgresStorage`], [`MemoryStorage`]), the
//! way to the CA ([`HttpNetwork`]), keys ([`FileKeys`]), a clock and randomness. It knows the component only
//! through its WIT ([`wit`]).
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use abide_host::wit::message::Leniency;
//! use abide_host::{Runtime, RuntimeConfig};
//! let runtime = Runtime::new(RuntimeConfig::default())?;
//! let message = std::fs::read("message.der")?;
//! let summary = runtime.gate().decode(&message, Leniency::empty()).await??;
//! println!("{:?} from {}", summary.body, summary.sender);
//! # Ok(())
//! # }
//! ```
//!
//! Another embedder adds the imports to a linker of their own with [`add_to_linker`].

mod admission;
pub mod components;
pub mod counters;
mod ctx;
mod engine;
mod enroller;
mod error;
mod gate;
pub mod keys;
pub mod limits;
pub mod network;
mod orders;
mod placement;
mod pool;
mod resident;
mod services;
pub mod storage;
mod ticker;
mod verifier;
pub mod wit;

#[cfg(test)]
mod tests;

pub use admission::{Limiter, Quality};
pub use ctx::{AbideView, Ctx, add_to_linker};
pub use engine::{Runtime, RuntimeConfig};
pub use enroller::Enroller;
pub use error::{CallError, HostError, OrderCallError, Warning};
pub use gate::Gate;
pub use keys::{FileKeys, KeyFileError};
pub use network::{HttpConfig, HttpNetwork, NetworkConfigError};
pub use orders::{Orders, Schedule, Zombies};
pub use placement::{Router, ShardView};
pub use services::{Keys, Network, NoTelemetry, Services, Storage, Telemetry};
pub use storage::{MemoryStorage, OpenError, PostgresConfig, PostgresStorage, SqliteStorage};
pub use verifier::Verifier;
