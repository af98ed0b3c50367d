//! Whole enrollments in a world that follows from one seed: machines, a store, a network,
//! a CA with books and a clock, every fault there is, and a checker that judges every
//! state from outside.
//!
//! * [`fault`] names what can go wrong, [`checker`] what must hold all the same.
//! * [`scenario`] is what is enrolled and at what kind of CA.
//! * [`World`] moves one import at a time; [`Call`](call::Call) is the machine as it sees
//!   it, so that another form of the machine can take its place.
//! * [`run`] lets many worlds run: by seed, or one for every place a fault can strike.

mod ca;
pub mod call;
pub mod checker;
mod crypto;
pub mod fault;
mod network;
pub mod run;
pub mod scenario;
mod store;
mod wish;
mod world;

pub use world::{Tally, Violation, World};
