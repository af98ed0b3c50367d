//! One test for each rule that an end entity keeps or checks, named by what the rule says, in
//! files by RFC and section. `docs/conformance.md` tells all of them.

mod odd;
mod peer;
mod rfc9483;
mod rfc9811;
mod table;
