//! The transaction against a small world: a store in memory, a clock that stands still
//! until it is told, a CA that keeps books, and a network that loses, delays and forges.

mod admission;
mod bounds;
mod ca;
#[path = "../conformance/mod.rs"]
mod conformance;
mod crashes;
mod faults;
mod key_generation;
mod orders;
mod refusals;
mod registration;
mod stored_first;
mod trust;
mod world;
mod zombies;
