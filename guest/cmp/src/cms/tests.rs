//! What OpenSSL wrapped; `tests/cms/make.sh` is how.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;
use crate::encrypted::EnvelopedData;
use crate::protection::{Anchors, Hash, Policy, SoftwareVerifier};
use crate::time::Time;
use crate::x509::{Certificate, PublicKeyInfo};

macro_rules! file {
    ($name:literal) => {
        include_bytes!(concat!("../../tests/cms/", $name)).as_slice()
    };
}

/// 2030-01-01T00:00:00Z, from `date -u -d 2030-01-01 +%s`.
const NOW: i64 = 1_893_456_000;

fn enveloped(der: &[u8]) -> EnvelopedData<'_> {
    EnvelopedData::from_der(der).expect("an EnvelopedData")
}

fn certificate(der: &[u8]) -> Certificate<'_> {
    Certificate::from_der(der).expect("a certificate")
}

fn opened<'a>(der: &'a [u8], own: &[u8], policy: Policy) -> Result<Envelope<'a>, CmsError> {
    let own = certificate(own);
    Envelope::new(&enveloped(der), Recipient::Certificate(&own, &[]), policy)
}

fn verified<'a>(der: &'a [u8], trusted: &[&'a [u8]]) -> Result<NewKey<'a>, CmsError> {
    verified_with(der, trusted, &[])
}

fn verified_with<'a>(
    der: &'a [u8],
    trusted: &[&'a [u8]],
    untrusted: &[&'a [u8]],
) -> Result<NewKey<'a>, CmsError> {
    let read = |ders: &[&'a [u8]]| -> Vec<_> { ders.iter().map(|der| certificate(der)).collect() };
    let (trusted, untrusted) = (read(trusted), read(untrusted));
    let anchors = Anchors {
        untrusted: &untrusted,
        ..Anchors::new(&trusted, Time::from_unix(NOW))
    };
    SignedData::from_der(der)?.verify(anchors, &SoftwareVerifier)
}

fn refused<T>(result: Result<T, CmsError>, words: &str) {
    let error = result.err().expect("a refusal").to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn key_transport_by_pkcs1_and_oaep() {
    let pkcs1 = opened(file!("ktri-pkcs1.der"), file!("rsa.crt"), Policy::default());
    let pkcs1 = pkcs1.expect("an envelope");
    assert_eq!(pkcs1.management, KeyManagement::RsaPkcs1);
    assert_eq!(
        (pkcs1.encrypted_key.len(), pkcs1.cipher),
        (256, Aes::Aes128)
    );
    let oaep = opened(file!("ktri-oaep.der"), file!("rsa.crt"), Policy::default());
    let oaep = oaep.expect("an envelope");
    assert_eq!(oaep.management, KeyManagement::RsaOaep(Hash::Sha256));
    assert_eq!((oaep.cipher, oaep.iv.len()), (Aes::Aes256, 16));
    // Padded to the next block (RFC 5652, 6.3).
    let signed = file!("signed.der").len();
    assert_eq!(oaep.content.len(), (signed / 16 + 1) * 16);
}

#[test]
fn key_agreement_names_point_kdf_and_wrap() {
    let envelope = opened(file!("kari.der"), file!("ec.crt"), Policy::default());
    let envelope = envelope.expect("an envelope");
    // 6 octets of padding of the wrap around 32 octets of key (RFC 3394, 2.2.1).
    assert_eq!(envelope.encrypted_key.len(), 40);
    let KeyManagement::Ecdh {
        point,
        kdf,
        info,
        wrap,
    } = envelope.management
    else {
        panic!("{:?}", envelope.management);
    };
    assert_eq!((point.len(), point[0]), (97, 4));
    assert_eq!((kdf, wrap), (Hash::Sha384, Aes::Aes192));
    // SEQUENCE { SEQUENCE { id-aes192-wrap }, [2] OCTET STRING 192 }, written by hand.
    let by_hand = [
        0x30, 0x15, 0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x19,
        0xa2, 0x06, 0x04, 0x04, 0x00, 0x00, 0x00, 0xc0,
    ];
    assert_eq!(info, by_hand);
}

#[test]
fn what_rests_on_sha1_is_opened_only_where_that_is_allowed() {
    let kari = |policy| opened(file!("kari-sha1.der"), file!("ec.crt"), policy);
    refused(kari(Policy::default()), "SHA-1");
    kari(Policy::ALLOW_SHA1).expect("an envelope");
    let data = enveloped(file!("pwri.der"));
    let pwri = |policy| Envelope::new(&data, Recipient::Secret, policy);
    refused(pwri(Policy::default()), "SHA-1");
    let envelope = pwri(Policy::ALLOW_SHA1).expect("an envelope");
    match envelope.management {
        KeyManagement::Password {
            prf: Hash::Sha1,
            salt,
            iterations: 2048,
            wrap: PasswordWrap::PwriKek { cipher, iv },
        } => assert_eq!((salt.len(), cipher, iv.len()), (8, Aes::Aes256, 16)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_envelope_for_somebody_else_stays_closed() {
    let to = |der, own| opened(der, own, Policy::default());
    let other = "another certificate";
    refused(to(file!("ktri-pkcs1.der"), file!("kga.crt")), other);
    refused(to(file!("ktri-oaep.der"), file!("kga.crt")), other);
    refused(to(file!("kari.der"), file!("kga.crt")), other);
    let many = "more than one recipient";
    refused(to(file!("two-recipients.der"), file!("rsa.crt")), many);
    let signed = "the request was signed";
    refused(to(file!("pwri.der"), file!("rsa.crt")), signed);
    let data = enveloped(file!("kari.der"));
    let secret = Envelope::new(&data, Recipient::Secret, Policy::default());
    refused(secret, "by a shared secret");
}

#[test]
fn iterations_salts_and_lengths_are_bounded_before_anything_is_derived() {
    // The iterationCount 2048 of pwri.der is 02 02 08 00.
    let mut costly = file!("pwri.der").to_vec();
    let at = costly.windows(4).position(|w| w == [2, 2, 8, 0]);
    costly[at.expect("the iterationCount") + 2] = 0x7f;
    let data = enveloped(&costly);
    let opened = Envelope::new(&data, Recipient::Secret, Policy::ALLOW_SHA1);
    // 0x7f00 is 32 512, and 32 octets are two blocks of SHA-1: 65 024 applications.
    opened.expect("still within the bound");
    let at = at.expect("the iterationCount");
    costly.splice(at..at + 4, [2, 3, 1, 0x7f, 0xff]);
    // One octet more in the lengths around it: PBKDF2-params, keyDerivationAlgorithm, pwri, the
    // SET (whose length takes two octets) and the whole.
    for (header, tag) in [(at - 12, 0x30), (at - 25, 0xa0)] {
        assert_eq!(costly[header], tag);
        costly[header + 1] += 1;
    }
    assert_eq!((costly[10], costly[7]), (0xa3, 0x31));
    costly[12] += 1;
    costly[9] += 1;
    costly[3] += 1;
    let data = enveloped(&costly);
    refused(
        Envelope::new(&data, Recipient::Secret, Policy::ALLOW_SHA1),
        "iterationCount",
    );
}

#[test]
fn a_signed_package_gives_its_key() {
    let roots = [file!("root.crt")];
    for der in [file!("signed.der"), file!("signed-rsa.der")] {
        let key = verified(der, &roots).expect("a private key");
        assert!(key.is_packaged());
        // Two headers of three octets around it: an AsymmetricKeyPackage of one.
        assert_eq!(key.der, &file!("one.der")[3..]);
        let spki = PublicKeyInfo::from_der(file!("new.spki")).expect("a public key");
        assert!(key.claims(&spki));
        assert!(!key.claims(&certificate(file!("ec.crt")).public_key));
        assert!(!key.claims(&certificate(file!("rsa.crt")).public_key));
        assert!(!key.claims(&certificate(file!("kga.crt")).public_key));
    }
}

#[test]
fn openssls_bare_key_is_told_apart() {
    let key = verified(file!("signed-bare.der"), &[file!("root.crt")]).expect("a private key");
    assert!(!key.is_packaged());
    assert_eq!(key.der, file!("sec1.der"));
}

#[test]
fn only_a_key_generation_authority_under_an_anchor_is_believed() {
    let root = [file!("root.crt")];
    let purpose = "id-kp-cmKGA";
    refused(verified(file!("signed-wrong-purpose.der"), &root), purpose);
    refused(verified(file!("signed-wrong-purpose.der"), &[]), purpose);
    let stranger = [file!("stranger.crt")];
    refused(verified(file!("signed.der"), &stranger), "not trusted");
    // A shared secret authorises who has no anchor to compare with.
    verified(file!("signed.der"), &[]).expect("a private key");
    // A signer that is itself an anchor.
    verified(file!("signed-wrong-purpose.der"), &[file!("signer.crt")]).expect("a private key");
    let absent = file!("signed-no-certificate.der");
    refused(verified(absent, &root), "brings no certificate");
    verified_with(absent, &root, &[file!("kga.crt")]).expect("a private key");
}

#[test]
fn one_key_and_one_signature() {
    let root = [file!("root.crt")];
    refused(
        verified(file!("signed-two-keys.der"), &root),
        "more than one private key",
    );
    refused(
        verified(file!("signed-twice.der"), &root),
        "more than one SignerInfo",
    );
}

#[test]
fn every_changed_octet_of_content_attributes_and_signature_is_noticed() {
    let signed = file!("signed.der");
    // The content lies before the certificates, and what the signature covers after the version
    // of the SignerInfo, which is 3 and followed by a key identifier of 20 octets.
    let find = |what: &[u8]| signed.windows(what.len()).position(|octets| octets == what);
    let content = find(file!("one.der")).expect("the content");
    let signer = find(&[2, 1, 3, 0x80, 20]).expect("the SignerInfo");
    let places = (content..content + file!("one.der").len()).chain(signer + 3..signed.len());
    for at in places {
        let mut changed = signed.to_vec();
        changed[at] ^= 1;
        let result = verified(&changed, &[file!("root.crt")]);
        assert!(result.is_err(), "octet {at}");
    }
}
