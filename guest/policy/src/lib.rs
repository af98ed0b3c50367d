//! Policies of abide: when something may be tried again, how much may go on at once, and where.
//!
//! Every policy here is a pure function of its configuration, the stored state, the time and the
//! random octets it is given. There is no clock, no randomness and no I/O, so the same input
//! gives the same answer in the sandbox, in the host and in a test.
//!
//! State goes in by value and comes out changed, with the decision: the caller stores both in one
//! write, or neither. Configuration is plain data; [`mistake::Check`] names what is wrong with
//! it. Nothing here panics or overflows, whatever the data says.
//!
//! With the feature `serde`, configuration and state can be read and written in any format.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod backoff;
pub mod endpoint;
pub mod explain;
pub mod failure;
pub mod hint;
pub mod limits;
pub mod mistake;
pub mod order;
pub mod policies;
pub mod qos;
pub mod random;
pub mod rate;
pub mod renewal;
pub mod retry;
pub mod schedule;
pub mod selector;
pub mod shard;
pub mod strategy;
pub mod success;
pub mod time;
pub mod zombie;
