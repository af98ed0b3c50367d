//! Paths over certificates that the peer has chosen, all of them: leaf, candidates and, so
//! that one is ever found, the anchor.

#![no_main]

use std::cell::Cell;

use abide_cmp::protection::{
    Policy, SignatureAlgorithm, SignatureVerifier, SoftwareVerifier, Verdict,
};
use abide_cmp::{Certificate, PublicKeyInfo, limits, path};
use abide_fuzz::{Credulous, NOW, bounded, certificates};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| bounded(|| {
    let mut found = certificates(data);
    found.truncate(limits::PATH_CANDIDATES);
    let Some((leaf, rest)) = found.split_first() else {
        return;
    };
    let (candidates, anchors) = rest.split_at(rest.len().saturating_sub(1));
    build(leaf, candidates, anchors, &SoftwareVerifier);
    build(leaf, candidates, anchors, &Credulous);
}));

fn build(
    leaf: &Certificate<'_>,
    candidates: &[Certificate<'_>],
    anchors: &[Certificate<'_>],
    verifier: &dyn SignatureVerifier,
) {
    let counted = Counted {
        verifier,
        calls: Cell::new(0),
    };
    match path::build(leaf, candidates, anchors, NOW, Policy::default(), &counted) {
        Ok(path) => {
            assert!(path.len() <= limits::PATH_LENGTH);
            assert_eq!(path.first(), Some(leaf));
            assert!(path.last().is_some_and(|last| anchors.contains(last)));
        }
        Err(error) => drop(error.to_string()),
    }
    assert!(counted.calls.get() <= limits::PATH_SIGNATURES);
}

struct Counted<'v> {
    verifier: &'v dyn SignatureVerifier,
    calls: Cell<usize>,
}

impl SignatureVerifier for Counted<'_> {
    fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyInfo<'_>,
        data: &[u8],
        signature: &[u8],
    ) -> Verdict {
        self.calls.set(self.calls.get() + 1);
        self.verifier.verify(algorithm, key, data, signature)
    }
}
