use alloc::vec::Vec;

use super::envelope::EntityIdentifier;
use super::{CmsError, NewKey};
use crate::der::{Reader, Writer, tag};
use crate::error::{Context, Result as DerResult};
use crate::limits;
use crate::name::shortened;
use crate::oid::{self, Oid};
use crate::path;
use crate::protection::{
    Anchors, Hash, Policy, ProtectionError, SignatureAlgorithm, SignatureVerifier, Unsupported,
    Verdict, constant_time_eq,
};
use crate::x509::{AlgorithmIdentifier, Certificate, Role};

/// What a key generation authority signed (RFC 5652, 5.1, as RFC 9483, 4.1.6 uses it).
///
/// ```text
/// SignedData ::= SEQUENCE {
///     version           CMSVersion,
///     digestAlgorithms  SET OF DigestAlgorithmIdentifier,
///     encapContentInfo  EncapsulatedContentInfo,
///     certificates  [0] CertificateSet OPTIONAL,
///     crls          [1] RevocationInfoChoices OPTIONAL,
///     signerInfos       SET OF SignerInfo }
/// EncapsulatedContentInfo ::= SEQUENCE {
///     eContentType      OBJECT IDENTIFIER,
///     eContent      [0] EXPLICIT OCTET STRING OPTIONAL }
/// ```
///
/// The content is a private key in clear, so that there is no `Debug`.
pub struct SignedData<'a> {
    content_type: Oid<'a>,
    content: &'a [u8],
    certificates: Vec<Certificate<'a>>,
    signer: SignerInfo<'a>,
}

/// ```text
/// SignerInfo ::= SEQUENCE {
///     version             CMSVersion,
///     sid                 SignerIdentifier,
///     digestAlgorithm     DigestAlgorithmIdentifier,
///     signedAttrs     [0] SET OF Attribute OPTIONAL,
///     signatureAlgorithm  SignatureAlgorithmIdentifier,
///     signature           OCTET STRING,
///     unsignedAttrs   [1] SET OF Attribute OPTIONAL }
/// Attribute ::= SEQUENCE { attrType OBJECT IDENTIFIER, attrValues SET OF AttributeValue }
/// ```
struct SignerInfo<'a> {
    sid: EntityIdentifier<'a>,
    digest_algorithm: AlgorithmIdentifier<'a>,
    /// What is inside the tag of signedAttrs.
    attributes: &'a [u8],
    content_type: Option<&'a [u8]>,
    message_digest: Option<&'a [u8]>,
    signature_algorithm: AlgorithmIdentifier<'a>,
    signature: &'a [u8],
}

impl<'a> SignedData<'a> {
    /// Reads one SignedData, and nothing after it, with exactly one SignerInfo.
    pub fn from_der(der: &'a [u8]) -> Result<Self, CmsError> {
        let mut reader = Reader::new(der);
        let mut fields = reader.sequence().at("SignedData")?;
        reader.finish()?;
        fields.integer().at("version")?;
        fields.element(tag::SET, "a SET").at("digestAlgorithms")?;
        let mut content = fields.sequence().at("encapContentInfo")?;
        let content_type = content.oid().at("eContentType")?;
        let octets = content
            .explicit(0, Reader::octet_string)
            .at("eContent")?
            .ok_or(CmsError::Rule("the signature covers no content"))?;
        content.finish().at("encapContentInfo")?;
        let certificates = match fields.optional(tag::constructed(0)).at("certificates")? {
            Some(set) => set
                .contents()
                .collect(|reader| Ok(reader.any()?.raw))
                .at("certificates")?,
            None => Vec::new(),
        };
        fields.optional(tag::constructed(1)).at("crls")?;
        let mut infos = fields
            .element(tag::SET, "a SET")
            .at("signerInfos")?
            .contents();
        fields.finish()?;
        if infos.is_empty() {
            return Err(CmsError::Rule("it is not signed"));
        }
        let signer = SignerInfo::read(&mut infos).at("signerInfos")?;
        if !infos.is_empty() {
            return Err(CmsError::Rule(
                "it has more than one SignerInfo (RFC 9483, 4.1.6)",
            ));
        }
        // One that cannot be read is not the one.
        let certificates = certificates
            .into_iter()
            .filter_map(|der| Certificate::from_der(der).ok())
            .collect();
        Ok(Self {
            content_type,
            content: octets.value,
            certificates,
            signer,
        })
    }

    /// The one private key that was signed, once the signer is found and believed: the
    /// certificate that sid names has the purpose id-kp-cmKGA, its key made the signature over
    /// the attributes, and it can be traced to one of the anchors.
    ///
    /// Where there are no anchors the caller has authenticated the message by a shared secret,
    /// which also authorises the key generation authority (RFC 9483, 4.1.6): then nothing is
    /// traced. A role in `anchors` is not looked at: it is always [`Role::CmKga`].
    pub fn verify(
        &self,
        anchors: Anchors<'_, 'a>,
        verifier: &dyn SignatureVerifier,
    ) -> Result<NewKey<'a>, CmsError> {
        let mut candidates = self.certificates.clone();
        candidates.extend_from_slice(anchors.untrusted);
        candidates.truncate(limits::PATH_CANDIDATES);
        let known = candidates.iter().chain(anchors.trusted);
        let signer = known
            .clone()
            .find(|certificate| self.signer.sid.is(certificate));
        let signer = signer.ok_or(CmsError::Rule(
            "the message brings no certificate of who signed the private key",
        ))?;
        self.check_signature(&signer.public_key, anchors.policy, verifier)?;
        let subject = || shortened(&signer.subject);
        let mut anchored = false;
        if !anchors.trusted.is_empty() {
            let path = path::build(
                signer,
                &candidates,
                anchors.trusted,
                anchors.now,
                anchors.policy,
                verifier,
            )?;
            anchored = path.len() == 1;
        }
        if !path::may_sign_messages(signer) {
            return Err(CmsError::Signer(ProtectionError::KeyUsage {
                subject: subject(),
            }));
        }
        // An anchor itself needs no such word.
        let role = Role::CmKga;
        if !anchored && !signer.roles().contains(&role) {
            let subject = subject();
            return Err(CmsError::Signer(ProtectionError::Role { subject, role }));
        }
        NewKey::read(self.content_type, self.content)
    }

    fn check_signature(
        &self,
        key: &crate::x509::PublicKeyInfo<'_>,
        policy: Policy,
        verifier: &dyn SignatureVerifier,
    ) -> Result<(), CmsError> {
        let signer = &self.signer;
        let hash = Hash::from_identifier(&signer.digest_algorithm)?;
        policy.admit(hash, signer.digest_algorithm.oid)?;
        let type_fits = signer.content_type == Some(self.content_type.content());
        let digest = hash.digest(self.content);
        let digest_fits = signer
            .message_digest
            .is_some_and(|given| constant_time_eq(given, &digest));
        if !type_fits || !digest_fits {
            return Err(CmsError::Rule(
                "the signed attributes are not those of the content (RFC 5652, 5.6)",
            ));
        }
        let algorithm = match signer.signature_algorithm.oid {
            // RFC 3370, 3.2 leaves the hash to the digestAlgorithm.
            oid::RSA_ENCRYPTION => SignatureAlgorithm::RsaPkcs1(hash),
            _ => SignatureAlgorithm::from_identifier(&signer.signature_algorithm, policy)?,
        };
        if algorithm.hash().is_some_and(|own| own != hash) {
            return Err(CmsError::Rule(
                "digestAlgorithm and signatureAlgorithm have different hashes (RFC 8933, 3)",
            ));
        }
        // The attributes are signed as a SET, whatever tag they are sent under
        // (RFC 5652, 5.4).
        let signed = Writer::encode(|w| w.element(tag::SET, signer.attributes));
        match verifier.verify(algorithm, key, &signed, signer.signature) {
            Verdict::Valid => Ok(()),
            Verdict::Invalid => Err(CmsError::Rule(
                "the signature over the private key does not fit the signer's certificate",
            )),
            Verdict::Unsupported => Err(Unsupported::signature(algorithm, key).into()),
        }
    }
}

impl<'a> SignerInfo<'a> {
    fn read(reader: &mut Reader<'a>) -> DerResult<Self> {
        let mut fields = reader.sequence()?;
        fields.integer().at("version")?;
        let sid = EntityIdentifier::read(&fields.any()?).at("sid")?;
        let digest_algorithm = AlgorithmIdentifier::read(&mut fields).at("digestAlgorithm")?;
        let attributes = fields
            .element(tag::constructed(0), "signedAttrs")
            .at("signedAttrs")?;
        let (mut content_type, mut message_digest) = (None, None);
        attributes
            .contents()
            .collect(|reader| {
                let mut attribute = reader.sequence()?;
                let kind = attribute.oid()?;
                let mut values = attribute.element(tag::SET, "a SET")?.contents();
                attribute.finish()?;
                let (place, value) = match kind {
                    oid::CMS_CONTENT_TYPE => (&mut content_type, values.oid()?.content()),
                    oid::CMS_MESSAGE_DIGEST => (&mut message_digest, values.octet_string()?.value),
                    _ => return Ok(()),
                };
                values.finish()?;
                if place.replace(value).is_some() {
                    return reader.fault(crate::Rule::Content("an attribute that occurs twice"));
                }
                Ok(())
            })
            .at("signedAttrs")?;
        let signature_algorithm =
            AlgorithmIdentifier::read(&mut fields).at("signatureAlgorithm")?;
        let signature = fields.octet_string().at("signature")?.value;
        fields.optional(tag::constructed(1)).at("unsignedAttrs")?;
        fields.finish()?;
        Ok(Self {
            sid,
            digest_algorithm,
            attributes: attributes.value,
            content_type,
            message_digest,
            signature_algorithm,
            signature,
        })
    }
}
