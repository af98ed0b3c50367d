//! Protection, with a secret that the peer does not know and with anchors that it has chosen.

#![no_main]

use abide_cmp::protection::{
    Anchors, MacAlgorithm, Policy, ProtectionError, SignatureVerifier, SoftwareVerifier, cert_hash,
    protection_kind, verify_mac, verify_signature,
};
use abide_cmp::{Certificate, PkiMessage, limits};
use abide_fuzz::{Credulous, NOW, bounded};
use libfuzzer_sys::fuzz_target;

/// More are allowed, but tell a fuzzer nothing new.
const ITERATIONS_RUN: u32 = 1000;

fuzz_target!(|data: &[u8]| bounded(|| {
    let Ok(message) = PkiMessage::from_der(data) else {
        return;
    };
    protection_kind(&message);
    let by_mac: Result<(), ProtectionError> =
        verify_mac(&message, Policy::ALLOW_SHA1, |algorithm, octets| Ok(compute(algorithm, octets)));
    assert!(by_mac.is_err(), "a MAC under an unknown secret fits");

    let certificates: Vec<_> = message
        .extra_certs
        .iter()
        .filter_map(|der| Certificate::from_der(der).ok())
        .collect();
    for certificate in &certificates {
        let _ = cert_hash(certificate);
    }
    let anchors = certificates.last().map_or(&[][..], std::slice::from_ref);
    signed(&message, anchors, &SoftwareVerifier);
    signed(&message, anchors, &Credulous);
    assert!(
        verify_signature(&message, judged_by(&[]), &SoftwareVerifier).is_err(),
        "a signer without an anchor is believed"
    );
}));

fn compute(algorithm: &MacAlgorithm<'_>, octets: &[u8]) -> Vec<u8> {
    let MacAlgorithm::PasswordBased {
        iterations, salt, ..
    } = *algorithm
    else {
        return algorithm.compute(b"secret", octets);
    };
    assert!((limits::MIN_ITERATIONS..=limits::ITERATIONS).contains(&iterations));
    assert!(salt.len() <= limits::SALT);
    if iterations > ITERATIONS_RUN {
        return Vec::new();
    }
    algorithm.compute(b"secret", octets)
}

fn signed(message: &PkiMessage<'_>, anchors: &[Certificate<'_>], verifier: &dyn SignatureVerifier) {
    match verify_signature(message, judged_by(anchors), verifier) {
        Ok(signer) => assert!(
            signer
                .path
                .last()
                .is_some_and(|last| anchors.contains(last))
        ),
        Err(error) => drop(error.to_string()),
    }
}

fn judged_by<'s, 'a>(trusted: &'s [Certificate<'a>]) -> Anchors<'s, 'a> {
    Anchors::new(trusted, NOW)
}
