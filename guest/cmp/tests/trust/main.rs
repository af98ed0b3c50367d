//! Whom a message is from: paths after RFC 5280, 6, and signers after RFC 9483, 3.2.
//!
//! The certificates are written element by element, so that each breaks one rule. What
//! they are signed with does not matter here: a signature is good when it repeats the
//! issuer's key.

mod certificates;
mod paths;
mod signers;
