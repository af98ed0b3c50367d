use alloc::vec::Vec;

use hkdf::Hkdf;
use pbkdf2::pbkdf2_hmac;

use super::{Hash, Policy, Unsupported};
use crate::der::{Reader, Writer, tag};
use crate::limits;
use crate::oid::{self, Oid};
use crate::x509::AlgorithmIdentifier;

/// How the key of a KEM-based MAC is derived from the shared secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kdf {
    /// HKDF without a salt (RFC 8619, and RFC 9629, 6.2).
    Hkdf(Hash),
    /// KDF3 of ANSI X9.44 (RFC 9690, appendix A).
    Kdf3(Hash),
}

impl Kdf {
    const HKDFS: [(Hash, Oid<'static>); 3] = [
        (Hash::Sha256, oid::HKDF_SHA256),
        (Hash::Sha384, oid::HKDF_SHA384),
        (Hash::Sha512, oid::HKDF_SHA512),
    ];

    fn from_identifier(
        identifier: &AlgorithmIdentifier<'_>,
        policy: Policy,
    ) -> Result<Self, Unsupported> {
        if identifier.oid == oid::KDF3 {
            let malformed =
                Unsupported::Parameters("id-kdf-kdf3 without the hash function it uses");
            let hash = identifier.parameters.ok_or(malformed.clone())?;
            let mut reader = Reader::new(hash);
            let hash = AlgorithmIdentifier::read(&mut reader).map_err(|_| malformed)?;
            let hash = Hash::from_identifier(&hash)?;
            policy.admit(hash, identifier.oid)?;
            return Ok(Self::Kdf3(hash));
        }
        let known = Self::HKDFS.iter().find(|(_, oid)| *oid == identifier.oid);
        let Some(&(hash, _)) = known else {
            return Err(Unsupported::algorithm(identifier.oid));
        };
        if identifier.parameters.is_some() {
            return Err(Unsupported::Parameters(
                "HKDF with parameters (RFC 8619, 2)",
            ));
        }
        Ok(Self::Hkdf(hash))
    }

    fn write(self, writer: &mut Writer) {
        match self {
            Self::Hkdf(hash) => {
                let known = Self::HKDFS.iter().find(|(known, _)| *known == hash);
                let oid = known.map_or(oid::HKDF_SHA256, |&(_, oid)| oid);
                AlgorithmIdentifier::bare(oid).write(writer);
            }
            Self::Kdf3(hash) => writer.sequence(|w| {
                w.oid(oid::KDF3);
                hash.identifier().write(w);
            }),
        }
    }

    /// The key from the shared secret of a KEM and the DER of what it is bound to.
    pub fn derive(self, secret: &[u8], info: &[u8], length: usize) -> Vec<u8> {
        let mut key = alloc::vec![0; length];
        match self {
            Self::Hkdf(hash) => {
                let expanded = match hash {
                    Hash::Sha1 => Hkdf::<sha1::Sha1>::new(None, secret).expand(info, &mut key),
                    Hash::Sha224 => Hkdf::<sha2::Sha224>::new(None, secret).expand(info, &mut key),
                    Hash::Sha256 => Hkdf::<sha2::Sha256>::new(None, secret).expand(info, &mut key),
                    Hash::Sha384 => Hkdf::<sha2::Sha384>::new(None, secret).expand(info, &mut key),
                    Hash::Sha512 => Hkdf::<sha2::Sha512>::new(None, secret).expand(info, &mut key),
                };
                if expanded.is_err() {
                    unreachable!("HKDF gives 255 blocks, and a key has {length} octets at most");
                }
            }
            Self::Kdf3(hash) => {
                for (block, counter) in key.chunks_mut(hash.output_length()).zip(1_u32..) {
                    let digest = hash.digest(&[&counter.to_be_bytes(), secret, info].concat());
                    block.copy_from_slice(&digest[..block.len()]);
                }
            }
        }
        key
    }
}

/// The parameters of id-KemBasedMac (RFC 9810, 5.1.3.4).
///
/// ```text
/// KemBMParameter ::= SEQUENCE {
///     kdf              AlgorithmIdentifier,
///     kemContext   [0] OCTET STRING OPTIONAL,
///     len              INTEGER (1..MAX),
///     mac              AlgorithmIdentifier }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KemParameters<'a> {
    /// How the key is derived.
    pub kdf: Kdf,
    /// What else the key is bound to.
    pub context: Option<&'a [u8]>,
    /// Octets of the key.
    pub key_length: usize,
    /// The hash of the HMAC.
    pub mac: Hash,
}

impl<'a> KemParameters<'a> {
    /// Reads the parameters; every number is within its limit.
    pub fn from_der(der: &'a [u8], policy: Policy) -> Result<Self, Unsupported> {
        let malformed = |_| Unsupported::Parameters("the KemBMParameter cannot be read");
        let mut reader = Reader::new(der);
        let mut fields = reader.sequence().map_err(malformed)?;
        reader.finish().map_err(malformed)?;
        let kdf = AlgorithmIdentifier::read(&mut fields).map_err(malformed)?;
        let context = fields
            .explicit(0, |reader| Ok(reader.octet_string()?.value))
            .map_err(malformed)?;
        let key_length = fields.integer().map_err(malformed)?;
        let mac = AlgorithmIdentifier::read(&mut fields).map_err(malformed)?;
        fields.finish().map_err(malformed)?;
        if let Some(context) = context.filter(|context| context.len() > limits::KEM_CONTEXT) {
            return Err(Unsupported::beyond(
                "a kemContext length of",
                context.len(),
                limits::KEM_CONTEXT,
            ));
        }
        let key_length = bounded_key(key_length)?;
        let kdf = Kdf::from_identifier(&kdf, policy)?;
        let hash = Hash::from_hmac_identifier(&mac)?;
        policy.admit(hash, mac.oid)?;
        Ok(Self {
            kdf,
            context,
            key_length,
            mac: hash,
        })
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            self.kdf.write(w);
            if let Some(context) = self.context {
                w.explicit(0, |w| w.octet_string(context));
            }
            w.integer(self.key_length as i64);
            AlgorithmIdentifier::with_null(self.mac.hmac_oid()).write(w);
        });
    }

    /// The DER of what the key is bound to, which holds keys of different transactions
    /// apart.
    ///
    /// ```text
    /// KemOtherInfo ::= SEQUENCE {
    ///     staticString   PKIFreeText,    -- "CMP-KEM"
    ///     transactionID  OCTET STRING,
    ///     kemContext [0] OCTET STRING OPTIONAL }
    /// ```
    pub fn other_info(&self, transaction_id: &[u8]) -> Vec<u8> {
        Writer::encode(|w| {
            w.sequence(|w| {
                w.sequence(|w| w.utf8("CMP-KEM"));
                w.octet_string(transaction_id);
                if let Some(context) = self.context {
                    w.explicit(0, |w| w.octet_string(context));
                }
            });
        })
    }
}

/// The length of a MAC key, in octets.
pub(super) fn bounded_key(length: i64) -> Result<usize, Unsupported> {
    let most = limits::MAC_KEY;
    match usize::try_from(length) {
        Ok(length) if (limits::MAC_KEY_MIN..=most).contains(&length) => Ok(length),
        Ok(length) if length > most => Err(Unsupported::beyond("a key length of", length, most)),
        _ if length > most as i64 => Err(Unsupported::beyond("a key length of", usize::MAX, most)),
        _ => Err(Unsupported::Parameters(
            "a MAC key of less than the 20 octets that RFC 9579, 5 demands",
        )),
    }
}

/// The parameters of PBKDF2 (RFC 8018, A.2).
///
/// ```text
/// PBKDF2-params ::= SEQUENCE {
///     salt            CHOICE { specified OCTET STRING, otherSource AlgorithmIdentifier },
///     iterationCount  INTEGER (1..MAX),
///     keyLength       INTEGER (1..MAX) OPTIONAL,
///     prf             AlgorithmIdentifier DEFAULT algid-hmacWithSHA1 }
/// ```
pub(crate) struct Pbkdf2<'a> {
    pub(crate) salt: &'a [u8],
    iterations: i64,
    pub(crate) key_length: Option<i64>,
    pub(crate) prf: Hash,
}

impl<'a> Pbkdf2<'a> {
    /// Reads them with the name of the algorithm; salt and PRF are judged.
    pub(crate) fn from_identifier(
        identifier: &AlgorithmIdentifier<'a>,
        policy: Policy,
    ) -> Result<Self, Unsupported> {
        if identifier.oid != oid::PBKDF2 {
            return Err(Unsupported::algorithm(identifier.oid));
        }
        let malformed = |_| Unsupported::Parameters("the PBKDF2-params cannot be read");
        let mut reader = Reader::new(identifier.parameters.unwrap_or_default());
        let mut fields = reader.sequence().map_err(malformed)?;
        reader.finish().map_err(malformed)?;
        if fields.peek() == Some(tag::SEQUENCE) {
            return Err(Unsupported::Parameters(
                "PBKDF2 with a salt from another source",
            ));
        }
        let salt = fields.octet_string().map_err(malformed)?.value;
        let iterations = fields.integer().map_err(malformed)?;
        let key_length = match fields.peek() {
            Some(tag::INTEGER) => Some(fields.integer().map_err(malformed)?),
            _ => None,
        };
        let prf = match fields.is_empty() {
            true => AlgorithmIdentifier::with_null(oid::HMAC_SHA1),
            false => AlgorithmIdentifier::read(&mut fields).map_err(malformed)?,
        };
        fields.finish().map_err(malformed)?;
        let salt = bounded_salt(salt)?;
        let prf_hash = Hash::from_hmac_identifier(&prf)?;
        policy.admit(prf_hash, prf.oid)?;
        Ok(Self {
            salt,
            iterations,
            key_length,
            prf: prf_hash,
        })
    }

    /// The number of iterations, which is bounded for a key of `key_length` octets.
    pub(crate) fn iterations(&self, key_length: usize) -> Result<u32, Unsupported> {
        let blocks = key_length.div_ceil(self.prf.output_length()) as u32;
        let most = limits::PBKDF2_APPLICATIONS / self.prf.cost() / blocks;
        match u32::try_from(self.iterations) {
            _ if self.iterations < limits::MIN_ITERATIONS.into() => Err(Unsupported::Parameters(
                "PBKDF2 with fewer than 100 iterations",
            )),
            Ok(count) if count <= most => Ok(count),
            _ => Err(too_many_iterations(self.iterations, most)),
        }
    }
}

/// A salt that is no longer than [`limits::SALT`].
pub(super) fn bounded_salt(salt: &[u8]) -> Result<&[u8], Unsupported> {
    if salt.len() > limits::SALT {
        return Err(Unsupported::beyond(
            "a salt length of",
            salt.len(),
            limits::SALT,
        ));
    }
    Ok(salt)
}

pub(super) fn too_many_iterations(asked: i64, most: u32) -> Unsupported {
    Unsupported::Limit {
        what: "an iterationCount of",
        asked: asked.unsigned_abs(),
        limit: most.into(),
    }
}

/// PBKDF2 with HMAC (RFC 8018, 5.2).
pub(super) fn pbkdf2(
    prf: Hash,
    secret: &[u8],
    salt: &[u8],
    iterations: u32,
    length: usize,
) -> Vec<u8> {
    let mut key = alloc::vec![0; length];
    match prf {
        Hash::Sha1 => pbkdf2_hmac::<sha1::Sha1>(secret, salt, iterations, &mut key),
        Hash::Sha224 => pbkdf2_hmac::<sha2::Sha224>(secret, salt, iterations, &mut key),
        Hash::Sha256 => pbkdf2_hmac::<sha2::Sha256>(secret, salt, iterations, &mut key),
        Hash::Sha384 => pbkdf2_hmac::<sha2::Sha384>(secret, salt, iterations, &mut key),
        Hash::Sha512 => pbkdf2_hmac::<sha2::Sha512>(secret, salt, iterations, &mut key),
    }
    key
}
