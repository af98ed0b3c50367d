//! Protection, with a secret that the peer does not know and with anchors that it has chosen.

#![no_main]

use abide_cmp::protection::{
    Anchors, MacAlgorithm, Policy, ProtectionError, SignatureVerifier, SoftwareVerifier, cert_hash,
    protection_kind, verify_kem_mac, verify_mac, verify_signature,
};
use abide_cmp::{Certificate, PkiMessage, limits};
use abide_fuzz::{Credulous, NOW, bounded};
use libfuzzer_sys::fuzz_target;

/// More are allowed, but tell a fuzzer nothing new.
const ITERATIONS_RUN: u32 = 1000;

/// What no input can know.
const SECRET: &[u8] = b"Moor gorse, nine geese and a bicycle";

fuzz_target!(|data: &[u8]| bounded(|| {
    let Ok(message) = PkiMessage::from_der(data) else {
        return;
    };
    protection_kind(&message);
    for policy in [Policy::default(), Policy::ALLOW_SHA1] {
        let by_secret = verify_mac(&message, policy, compute);
        assert!(by_secret.is_err(), "a MAC under an unknown secret fits");
        let by_kem = verify_kem_mac(&message, policy, compute);
        assert!(by_kem.is_err(), "a MAC under an unknown secret fits");
    }

    let certificates: Vec<_> = message
        .extra_certs
        .iter()
        .filter_map(|der| Certificate::from_der(der).ok())
        .collect();
    for certificate in &certificates {
        let _ = cert_hash(certificate);
        certificate.roles();
    }
    let anchors = certificates.last().map_or(&[][..], std::slice::from_ref);
    signed(&message, anchors, &SoftwareVerifier);
    signed(&message, anchors, &Credulous);
    assert!(
        verify_signature(&message, Anchors::new(&[], NOW), &SoftwareVerifier).is_err(),
        "a signer without an anchor is believed"
    );
}));

fn compute(algorithm: &MacAlgorithm<'_>, octets: &[u8]) -> Result<Vec<u8>, ProtectionError> {
    let (iterations, salt) = match *algorithm {
        MacAlgorithm::PasswordBased {
            iterations, salt, ..
        }
        | MacAlgorithm::Pbmac1 {
            iterations, salt, ..
        } => (iterations, salt),
        _ => (limits::MIN_ITERATIONS, &[][..]),
    };
    assert!((limits::MIN_ITERATIONS..=limits::ITERATIONS).contains(&iterations));
    assert!(salt.len() <= limits::SALT);
    if iterations > ITERATIONS_RUN {
        return Err(ProtectionError::WrongMac);
    }
    Ok(algorithm.compute(SECRET, octets))
}

fn signed(message: &PkiMessage<'_>, anchors: &[Certificate<'_>], verifier: &dyn SignatureVerifier) {
    match verify_signature(message, Anchors::new(anchors, NOW), verifier) {
        Ok(signer) => assert!(
            signer
                .path
                .last()
                .is_some_and(|last| anchors.contains(last))
        ),
        Err(error) => drop(error.to_string()),
    }
}
