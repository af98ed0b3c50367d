//! Keys, signatures and MACs of the simulated world.
//!
//! What is on trial here is the order of things, not arithmetic: a signature is a hash
//! over the public key and the data, a MAC one over the secret and the data. Both are
//! judged as strictly as real ones, at the host as at the CA, and cost a thousandth.

use abide_cmp::der::{Writer, tag};
use abide_cmp::protection::Hash;
use abide_cmp::{Name, oid};

/// From 2025 to 2045: every certificate but an expired one.
pub(crate) const VALID: [&[u8]; 2] = [b"250101000000Z", b"450101000000Z"];
/// Over before the world begins.
pub(crate) const EXPIRED: [&[u8]; 2] = [b"250101000000Z", b"250201000000Z"];

/// The CA's name.
pub(crate) const CA: &str = "CN=Simulated CA";
/// The name of a CA below it.
pub(crate) const SUB_CA: &str = "CN=Simulated sub CA";
/// The name of its key.
pub(crate) const SUB_KEY: &str = "sub";

/// DER SubjectPublicKeyInfo of the key of this name (RFC 5480, 2). The point lies on no
/// curve; nothing here multiplies it.
pub(crate) fn public_key(name: &str) -> Vec<u8> {
    let x = Hash::Sha256.digest(name.as_bytes());
    let y = Hash::Sha256.digest(&x);
    Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.oid(oid::EC_PUBLIC_KEY);
                w.oid(oid::P256);
            });
            w.bits(tag::BIT_STRING, &[&[4], &x[..], &y[..]].concat());
        });
    })
}

/// Stands in for a signature by the private half of `public_key`.
pub(crate) fn signature(public_key: &[u8], data: &[u8]) -> Vec<u8> {
    Hash::Sha256.digest(&[b"signature", public_key, data].concat())
}

/// Stands in for a MAC.
pub(crate) fn mac(secret: &[u8], parameters: &[u8], data: &[u8]) -> Vec<u8> {
    Hash::Sha256.digest(&[b"mac", secret, parameters, data].concat())
}

/// Tells a key from another one and nothing else.
pub(crate) fn fingerprint(secret: &[u8], salt: &[u8]) -> Vec<u8> {
    Hash::Sha256.digest(&[b"fingerprint", secret, salt].concat())
}

/// A certificate (RFC 5280, 4.1) for a key, signed by the key of the name `issuer_key`.
pub(crate) fn certificate(
    issuer_key: &str,
    serial: u64,
    subject: &Name<'_>,
    subject_key: &[u8],
    validity: [&[u8]; 2],
    is_ca: bool,
) -> Vec<u8> {
    signed(issuer_key, |w| {
        w.explicit(0, |w| w.integer(2));
        w.integer(serial as i64);
        w.sequence(|w| w.oid(oid::ECDSA_SHA256));
        let issuer = if issuer_key == SUB_KEY { SUB_CA } else { CA };
        w.raw(name(issuer).der());
        w.sequence(|w| {
            validity
                .iter()
                .for_each(|time| w.element(tag::UTC_TIME, time));
        });
        w.raw(subject.der());
        w.raw(subject_key);
        if is_ca {
            w.explicit(3, |w| w.sequence(basic_constraints));
        }
    })
}

/// A PKCS #10 request without attributes (RFC 2986, 4).
pub(crate) fn csr(subject: &str, key: &str) -> Vec<u8> {
    signed(key, |w| {
        w.integer(0);
        w.raw(name(subject).der());
        w.raw(&public_key(key));
        w.element(tag::constructed(0), &[]);
    })
}

pub(crate) fn name(text: &str) -> Name<'static> {
    Name::parse(text).expect("a distinguished name")
}

fn basic_constraints(w: &mut Writer) {
    w.sequence(|w| {
        w.oid(oid::BASIC_CONSTRAINTS);
        w.element(tag::BOOLEAN, &[0xff]);
        w.octet_string(&Writer::encode(|w| {
            w.sequence(|w| w.element(tag::BOOLEAN, &[0xff]));
        }));
    });
}

fn signed(key: &str, content: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let content = Writer::encode(|w| w.sequence(content));
    let signature = signature(&public_key(key), &content);
    Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(&content);
            w.sequence(|w| w.oid(oid::ECDSA_SHA256));
            w.bits(tag::BIT_STRING, &signature);
        });
    })
}
