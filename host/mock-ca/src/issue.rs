//! Certificates.

use std::time::{Duration, SystemTime};

use abide_cmp::{Name, Time};
use anyhow::{Context, anyhow};
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::EncodePublicKey;
use x509_cert::TbsCertificate;
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::{self, Builder, CertificateBuilder, CrlBuilder};
use x509_cert::crl::RevokedCert;
use x509_cert::der::asn1::{ObjectIdentifier, OctetString, Uint};
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, CrlNumber, ExtendedKeyUsage, KeyUsage, KeyUsages,
    SubjectAltName, SubjectKeyIdentifier,
};
use x509_cert::ext::{Extension, ToExtension};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{SubjectPublicKeyInfoOwned, SubjectPublicKeyInfoRef};
use x509_cert::time::Validity;

use crate::authority::Identity;
use crate::books::from_hex;
use crate::register::Register;
use crate::{limits, random};

/// id-kp-serverAuth and id-kp-clientAuth (RFC 5280, 4.2.1.12).
const SERVER_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const CLIENT_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");

/// id-kp-cmKGA (RFC 9810, 4.5).
const CM_KGA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.32");

/// rsaEncryption and id-ecPublicKey (RFC 3279, 2.3).
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ELLIPTIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");

/// id-ce-cRLReasons (RFC 5280, 5.3.1).
const CRL_REASON: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.21");

/// What a certificate is for, which decides its extensions.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// To issue certificates.
    Root,
    /// To sign CMP messages.
    MessageSigner,
    /// To sign private keys.
    KeyGenerator,
    /// To be a client's, under these further names.
    EndEntity(Option<SubjectAltName>),
}

/// A certificate that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    /// Who signs it.
    pub(crate) issuer: &'a Name<'a>,
    /// Whose it is.
    pub(crate) subject: &'a Name<'a>,
    /// The key that it certifies: DER SubjectPublicKeyInfo.
    pub(crate) key: Vec<u8>,
    /// What it is for.
    pub(crate) purpose: Purpose,
    /// The first second in which it is valid.
    pub(crate) now: Time,
    /// How long it is valid.
    pub(crate) validity: Duration,
}

impl Plan<'_> {
    /// The certificate as DER, signed by `issuer` with ECDSA and SHA-256, under a new
    /// serial number.
    pub(crate) fn certificate(&self, issuer: &SigningKey) -> anyhow::Result<Vec<u8>> {
        let mut serial = random::octets::<{ limits::SERIAL }>()?;
        // Positive, and always of the same length.
        serial[0] = serial[0] & 0x7f | 0x40;
        let begin = SystemTime::UNIX_EPOCH
            + Duration::from_secs(u64::try_from(self.now.unix()).context("a time before 1970")?);
        let make = || -> builder::Result<Vec<u8>> {
            let profile = Profile {
                issuer: x509_cert::name::Name::from_der(self.issuer.der())?,
                subject: x509_cert::name::Name::from_der(self.subject.der())?,
                purpose: &self.purpose,
            };
            let builder = CertificateBuilder::new(
                profile,
                SerialNumber::new(&serial)?,
                Validity::new(begin.try_into()?, (begin + self.validity).try_into()?),
                SubjectPublicKeyInfoOwned::from_der(&self.key)?,
            )?;
            Ok(builder.build::<_, DerSignature>(issuer)?.to_der()?)
        };
        make().context("the certificate cannot be made")
    }
}

/// The present CRL as DER, signed by the root.
pub(crate) fn crl(root: &Identity, register: &Register, now: Time) -> anyhow::Result<Vec<u8>> {
    let time = |unix: i64| -> anyhow::Result<x509_cert::time::Time> {
        let since = Duration::from_secs(u64::try_from(unix).context("a time before 1970")?);
        (SystemTime::UNIX_EPOCH + since)
            .try_into()
            .map_err(|error| anyhow!("a time that cannot be written: {error}"))
    };
    let mut revoked: Vec<RevokedCert> = Vec::new();
    for (serial, entry) in register.all() {
        let reason = Extension {
            extn_id: CRL_REASON,
            critical: false,
            extn_value: OctetString::new([0x0a, 0x01, entry.reason])?,
        };
        revoked.push(RevokedCert {
            serial_number: SerialNumber::new(&from_hex(serial)?)?,
            revocation_date: time(entry.at)?,
            crl_entry_extensions: Some(vec![reason]),
        });
    }
    let issuer = x509_cert::Certificate::from_der(&root.certificate)?;
    let number = Uint::new(&(register.changes() + 1).to_be_bytes())?;
    let mut builder =
        CrlBuilder::new_with_this_update(&issuer, CrlNumber(number), time(now.unix())?)?
            .with_next_update(Some(time(now.unix() + limits::CRL_VALIDITY)?));
    if !revoked.is_empty() {
        builder = builder.with_certificates(revoked.into_iter());
    }
    let crl = builder
        .build::<_, DerSignature>(root.key())
        .map_err(|error| anyhow!("the CRL cannot be made: {error}"))?;
    Ok(crl.to_der()?)
}

/// DER SubjectPublicKeyInfo of a key.
pub(crate) fn public_key(key: &SigningKey) -> anyhow::Result<Vec<u8>> {
    let der = key.verifying_key().to_public_key_der();
    Ok(der
        .map_err(|error| anyhow!("the key cannot be encoded: {error}"))?
        .into_vec())
}

struct Profile<'a> {
    issuer: x509_cert::name::Name,
    subject: x509_cert::name::Name,
    purpose: &'a Purpose,
}

impl BuilderProfile for Profile<'_> {
    fn get_issuer(&self, _subject: &x509_cert::name::Name) -> x509_cert::name::Name {
        self.issuer.clone()
    }

    fn get_subject(&self) -> x509_cert::name::Name {
        self.subject.clone()
    }

    fn build_extensions(
        &self,
        key: SubjectPublicKeyInfoRef<'_>,
        issuer_key: SubjectPublicKeyInfoRef<'_>,
        _tbs: &TbsCertificate,
    ) -> builder::Result<Vec<Extension>> {
        let subject = &self.subject;
        let kind_of_key = key.algorithm.oid;
        let mut extensions = vec![SubjectKeyIdentifier::try_from(key)?.to_extension(subject, &[])?];
        let issuer_key = AuthorityKeyIdentifier::try_from(issuer_key)?;
        let usage = match self.purpose {
            Purpose::Root => {
                let constraints = BasicConstraints {
                    ca: true,
                    path_len_constraint: None,
                };
                extensions.push(constraints.to_extension(subject, &extensions)?);
                KeyUsages::KeyCertSign | KeyUsages::CRLSign
            }
            Purpose::MessageSigner => {
                extensions.push(issuer_key.to_extension(subject, &extensions)?);
                KeyUsages::DigitalSignature.into()
            }
            Purpose::KeyGenerator => {
                extensions.push(issuer_key.to_extension(subject, &extensions)?);
                let purposes = ExtendedKeyUsage(vec![CM_KGA]);
                extensions.push(purposes.to_extension(subject, &extensions)?);
                KeyUsages::DigitalSignature.into()
            }
            Purpose::EndEntity(names) => {
                extensions.push(issuer_key.to_extension(subject, &extensions)?);
                let purposes = ExtendedKeyUsage(vec![SERVER_AUTH, CLIENT_AUTH]);
                extensions.push(purposes.to_extension(subject, &extensions)?);
                if let Some(names) = names {
                    extensions.push(names.to_extension(subject, &extensions)?);
                }
                // A key may be sent to the holder (RFC 9483, 4.1.6).
                match kind_of_key {
                    RSA => KeyUsages::DigitalSignature | KeyUsages::KeyEncipherment,
                    ELLIPTIC => KeyUsages::DigitalSignature | KeyUsages::KeyAgreement,
                    _ => KeyUsages::DigitalSignature.into(),
                }
            }
        };
        extensions.push(KeyUsage(usage).to_extension(subject, &extensions)?);
        Ok(extensions)
    }
}
