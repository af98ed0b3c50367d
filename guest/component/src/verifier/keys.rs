//! What a component that imports `keys` verifies with.

use alloc::string::ToString;
use alloc::vec::Vec;

use abide_cmp::PublicKeyInfo;
use abide_cmp::protection::{
    MacAlgorithm, SignatureAlgorithm, SignatureVerifier, SoftwareVerifier, Verdict,
};

use crate::bindings::abide::cmp::keys;
use crate::bindings::exports::abide::cmp::message::VerifyError;
use crate::keys::{text, to_mac_algorithm, verify};

/// Asks the host, and computes what the host does not know.
pub(crate) struct Verifier;

impl SignatureVerifier for Verifier {
    fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyInfo<'_>,
        data: &[u8],
        signature: &[u8],
    ) -> Verdict {
        match verify(algorithm, key.raw, data, signature) {
            Verdict::Unsupported => SoftwareVerifier.verify(algorithm, key, data, signature),
            verdict => verdict,
        }
    }
}

/// The MAC with a secret that the host keeps.
pub(crate) fn mac(
    name: &str,
    algorithm: &MacAlgorithm<'_>,
    data: &[u8],
) -> Result<Vec<u8>, VerifyError> {
    let Some(algorithm) = to_mac_algorithm(algorithm) else {
        let why = "a MAC that no shared secret makes".to_string();
        return Err(VerifyError::Unsupported(why));
    };
    keys::mac(name, &algorithm, data).map_err(|why| VerifyError::Unsupported(text(why)))
}
