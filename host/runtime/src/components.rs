//! The two components, as built by the build script for this program.

/// The world `gate`.
pub(crate) static GATE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gate.wasm"));

/// The world `enroller`.
pub(crate) static ENROLLER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/enroller.wasm"));
