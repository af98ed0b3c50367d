//! What a component that imports nothing verifies with.

use alloc::vec::Vec;

use abide_cmp::protection::MacAlgorithm;
pub(crate) use abide_cmp::protection::SoftwareVerifier as Verifier;

use crate::bindings::exports::abide::cmp::message::VerifyError;

/// It keeps no secrets.
pub(crate) fn mac(name: &str, _: &MacAlgorithm<'_>, _: &[u8]) -> Result<Vec<u8>, VerifyError> {
    Err(VerifyError::Unsupported(alloc::format!(
        "there is no key '{name}': this component imports no keys"
    )))
}
