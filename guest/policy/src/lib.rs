//! Policies of abide: when something may be tried again.
//!
//! Every policy here is a pure function of its configuration, the stored state and the time it is
//! given. There is no clock, no randomness and no allocation, so the same input gives the same
//! answer in the sandbox, in the host and in a test.
//!
//! A policy is checked when it is built: a value that exists is valid, and nothing here can fail
//! or panic afterwards.

#![no_std]
#![forbid(unsafe_code)]

pub mod backoff;
pub mod limits;
