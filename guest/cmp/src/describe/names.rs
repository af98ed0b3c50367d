//! Names of object identifiers that are only shown, never acted upon.

use alloc::string::ToString;

use super::node::{Node, text};
use crate::oid::Oid;

/// The name in the RFCs, else the dotted form.
pub(super) fn oid(oid: Oid<'_>) -> Node {
    if let Some(name) = oid.name() {
        return text(name);
    }
    let dotted = oid.to_string();
    match NAMES.binary_search_by(|(known, _)| (*known).cmp(&dotted)) {
        Ok(index) => text(NAMES[index].1),
        Err(_) => Node::Text(dotted),
    }
}

/// Sorted by the dotted form as text. From RFC 2985, 3279, 4055, 5280, 5480, 5639, 5652,
/// 5958, 6402, 8017, 8649, 9481, 9629, 9814 and 9909.
const NAMES: &[(&str, &str)] = &[
    ("1.2.840.10040.4.1", "id-dsa"),
    ("1.2.840.10040.4.3", "id-dsa-with-sha1"),
    ("1.2.840.10045.3.1.1", "secp192r1"),
    ("1.2.840.113549.1.1.4", "md5WithRSAEncryption"),
    ("1.2.840.113549.1.7.3", "id-envelopedData"),
    ("1.2.840.113549.1.9.16.1.21", "id-ct-encKeyWithID"),
    ("1.2.840.113549.1.9.16.13.3", "id-ori-kem"),
    ("1.2.840.113549.1.9.16.3.5", "id-alg-ESDH"),
    ("1.2.840.113549.1.9.2", "unstructuredName"),
    ("1.2.840.113549.1.9.7", "challengePassword"),
    ("1.2.840.113549.1.9.8", "unstructuredAddress"),
    ("1.2.840.113549.2.5", "id-md5"),
    ("1.2.840.113549.3.7", "des-EDE3-CBC"),
    ("1.3.101.110", "id-X25519"),
    ("1.3.101.111", "id-X448"),
    ("1.3.132.0.10", "secp256k1"),
    ("1.3.132.0.33", "secp224r1"),
    ("1.3.132.1.14.1", "dhSinglePass-cofactorDH-sha256kdf-scheme"),
    ("1.3.132.1.15.1", "mqvSinglePass-sha256kdf-scheme"),
    ("1.3.36.3.3.2.8.1.1.11", "brainpoolP384r1"),
    ("1.3.36.3.3.2.8.1.1.13", "brainpoolP512r1"),
    ("1.3.36.3.3.2.8.1.1.7", "brainpoolP256r1"),
    ("1.3.6.1.4.1.51483.2.1", "id-ce-hashOfRootKey"),
    ("1.3.6.1.5.5.7.1.1", "id-pe-authorityInfoAccess"),
    ("1.3.6.1.5.5.7.1.11", "id-pe-subjectInfoAccess"),
    ("1.3.6.1.5.5.7.1.24", "id-pe-tlsfeature"),
    ("1.3.6.1.5.5.7.2.1", "id-qt-cps"),
    ("1.3.6.1.5.5.7.2.2", "id-qt-unotice"),
    ("1.3.6.1.5.5.7.3.1", "id-kp-serverAuth"),
    ("1.3.6.1.5.5.7.3.2", "id-kp-clientAuth"),
    ("1.3.6.1.5.5.7.3.3", "id-kp-codeSigning"),
    ("1.3.6.1.5.5.7.3.4", "id-kp-emailProtection"),
    ("1.3.6.1.5.5.7.3.8", "id-kp-timeStamping"),
    ("1.3.6.1.5.5.7.3.9", "id-kp-OCSPSigning"),
    ("1.3.6.1.5.5.7.48.1", "id-ad-ocsp"),
    ("1.3.6.1.5.5.7.48.1.5", "id-pkix-ocsp-nocheck"),
    ("1.3.6.1.5.5.7.48.2", "id-ad-caIssuers"),
    ("1.3.6.1.5.5.7.48.5", "id-ad-caRepository"),
    ("2.16.840.1.101.3.4.1.46", "id-aes256-GCM"),
    ("2.16.840.1.101.3.4.1.6", "id-aes128-GCM"),
    ("2.16.840.1.101.3.4.2.11", "id-shake128"),
    ("2.16.840.1.101.3.4.2.12", "id-shake256"),
    ("2.16.840.1.101.3.4.3.20", "id-slh-dsa-sha2-128s"),
    ("2.16.840.1.101.3.4.3.21", "id-slh-dsa-sha2-128f"),
    ("2.16.840.1.101.3.4.3.22", "id-slh-dsa-sha2-192s"),
    ("2.16.840.1.101.3.4.3.23", "id-slh-dsa-sha2-192f"),
    ("2.16.840.1.101.3.4.3.24", "id-slh-dsa-sha2-256s"),
    ("2.16.840.1.101.3.4.3.25", "id-slh-dsa-sha2-256f"),
    ("2.16.840.1.101.3.4.3.26", "id-slh-dsa-shake-128s"),
    ("2.5.29.16", "id-ce-privateKeyUsagePeriod"),
    ("2.5.29.18", "id-ce-issuerAltName"),
    ("2.5.29.20", "id-ce-cRLNumber"),
    ("2.5.29.21", "id-ce-cRLReasons"),
    ("2.5.29.23", "id-ce-holdInstructionCode"),
    ("2.5.29.24", "id-ce-invalidityDate"),
    ("2.5.29.27", "id-ce-deltaCRLIndicator"),
    ("2.5.29.28", "id-ce-issuingDistributionPoint"),
    ("2.5.29.29", "id-ce-certificateIssuer"),
    ("2.5.29.32.0", "anyPolicy"),
    ("2.5.29.33", "id-ce-policyMappings"),
    ("2.5.29.36", "id-ce-policyConstraints"),
    ("2.5.29.37.0", "anyExtendedKeyUsage"),
    ("2.5.29.46", "id-ce-freshestCRL"),
    ("2.5.29.54", "id-ce-inhibitAnyPolicy"),
    ("2.5.29.9", "id-ce-subjectDirectoryAttributes"),
];

#[cfg(test)]
mod tests {
    use super::NAMES;

    #[test]
    fn names_can_be_looked_up() {
        assert!(NAMES.is_sorted_by(|left, right| left.0 < right.0));
    }
}
