//! A reverse proxy for CMP: what `abide gateway` runs.
//!
//! Each message is read in the sandbox before a CA sees it. What is malformed, too long,
//! unprotected where that is not allowed, or too much is answered here, with a CMP error; the
//! rest passes octet for octet. [`Draft`] reads the configuration, [`Gateway`] serves.

mod admin;
mod config;
mod connections;
mod gateway;
mod hops;
mod judge;
mod limiter;
pub mod limits;
mod metrics;
mod proxy;
mod refusal;
mod upstream;
mod watch;
mod wire;

pub use config::{Draft, SCHEMA};
pub use gateway::{Gateway, StartError};
