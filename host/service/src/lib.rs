//! Orders as a service: what `abide serve` runs.
//!
//! [`config`] reads one TOML file and names every mistake in it with its place. [`Service`] puts
//! a store, the way to the CAs, keys and the component together, serves the HTTP API
//! ([`api`]) and works at what is due. Whatever decides about orders is in the component; here
//! are sockets, files and clocks.
//!
//! [`input`], [`when`], [`words`] and [`paths`] are shared with the commands of the program,
//! [`config`], [`log`] and [`tls`] with the gateway too.

mod admission;
pub mod api;
pub mod config;
mod connections;
mod delivery;
pub mod exposition;
pub mod input;
pub mod limits;
pub mod log;
mod material;
mod metrics;
mod network;
pub mod paths;
mod routes;
mod service;
mod shards;
mod store;
pub mod tls;
pub mod when;
pub mod words;
mod worker;
mod zombies;

pub use service::{Service, StartError, check};
