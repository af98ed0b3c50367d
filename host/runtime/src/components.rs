//! The two components as they are built into this crate, for embedders that bring their own engine.
//!
//! They use SIMD and wide arithmetic; `cargo xtask component` makes portable ones.

/// The world `gate`: it imports nothing.
pub static GATE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gate.wasm"));

/// The world `enroller`: it imports the six interfaces of `wit/world.wit` and nothing else.
pub static ENROLLER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/enroller.wasm"));
