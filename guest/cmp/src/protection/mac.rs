use alloc::vec::Vec;

use hmac::{Hmac, KeyInit, Mac};

use super::kdf::{KemParameters, Pbkdf2, bounded_key, bounded_salt, pbkdf2, too_many_iterations};
use super::{Hash, Policy, Unsupported};
use crate::der::{Reader, Writer, tag};
use crate::header::PkiHeader;
use crate::limits;
use crate::oid;
use crate::x509::AlgorithmIdentifier;

/// How a shared secret authenticates a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MacAlgorithm<'a> {
    /// Password-based MAC (RFC 9810, 5.1.3.1).
    ///
    /// ```text
    /// PBMParameter ::= SEQUENCE {
    ///     salt            OCTET STRING,
    ///     owf             AlgorithmIdentifier,
    ///     iterationCount  INTEGER,
    ///     mac             AlgorithmIdentifier }
    /// ```
    PasswordBased {
        /// Makes the same secret give another key.
        salt: &'a [u8],
        /// The one-way function.
        owf: Hash,
        /// How often it is applied.
        iterations: u32,
        /// The hash of the HMAC.
        mac: Hash,
    },
    /// PBMAC1 with PBKDF2 (RFC 9481, 6.1.2, and RFC 8018, A.5 and A.2).
    ///
    /// ```text
    /// PBMAC1-params ::= SEQUENCE {
    ///     keyDerivationFunc  AlgorithmIdentifier,
    ///     messageAuthScheme  AlgorithmIdentifier }
    ///
    /// PBKDF2-params ::= SEQUENCE {
    ///     salt            CHOICE {
    ///         specified    OCTET STRING,
    ///         otherSource  AlgorithmIdentifier },
    ///     iterationCount  INTEGER (1..MAX),
    ///     keyLength       INTEGER (1..MAX)     OPTIONAL,
    ///     prf             AlgorithmIdentifier  DEFAULT algid-hmacWithSHA1 }
    /// ```
    Pbmac1 {
        /// Makes the same secret give another key.
        salt: &'a [u8],
        /// How often the pseudorandom function is applied.
        iterations: u32,
        /// Octets of the key. Where it is left out, a digest of the MAC has as many.
        key_length: usize,
        /// The hash of the pseudorandom function, which is HMAC.
        prf: Hash,
        /// The hash of the HMAC.
        mac: Hash,
    },
    /// HMAC (RFC 9481, 6.2.1): the secret is the key.
    Hmac(Hash),
    /// KEM-based MAC (RFC 9810, 5.1.3.4): the secret is that of the KEM.
    KemBased {
        /// What protectionAlg says.
        parameters: KemParameters<'a>,
        /// The transaction, to which the key is bound.
        transaction_id: &'a [u8],
    },
}

impl<'a> MacAlgorithm<'a> {
    /// Reads the algorithm of a message. Every number the peer chose is within its limit
    /// before anything is derived from it.
    pub fn from_header(header: &PkiHeader<'a>, policy: Policy) -> Result<Self, Unsupported> {
        let Some(identifier) = &header.protection_alg else {
            return Err(Unsupported::Parameters("the message has no protectionAlg"));
        };
        Self::read(identifier, header.transaction_id, policy)
    }

    /// Reads an algorithm as [`from_header`](Self::from_header) does. A KEM-based MAC
    /// cannot be read without its message.
    pub fn from_identifier(
        identifier: &AlgorithmIdentifier<'a>,
        policy: Policy,
    ) -> Result<Self, Unsupported> {
        Self::read(identifier, None, policy)
    }

    fn read(
        identifier: &AlgorithmIdentifier<'a>,
        transaction_id: Option<&'a [u8]>,
        policy: Policy,
    ) -> Result<Self, Unsupported> {
        let parameters = || {
            identifier.parameters.ok_or(Unsupported::Parameters(
                "a MAC algorithm without its parameters",
            ))
        };
        match identifier.oid {
            oid::PASSWORD_BASED_MAC => password_based(parameters()?, policy),
            oid::PBMAC1 => pbmac1(parameters()?, policy),
            oid::KEM_BASED_MAC => Ok(Self::KemBased {
                parameters: KemParameters::from_der(parameters()?, policy)?,
                transaction_id: transaction_id.ok_or(Unsupported::Parameters(
                    "id-KemBasedMac without a transactionID (RFC 9810, 5.1.3.4)",
                ))?,
            }),
            oid::DH_BASED_MAC => Err(Unsupported::Parameters(
                "id-DHBasedMac is not supported: it rests on Diffie-Hellman certificates, for \
                 which RFC 9481 names no algorithm; use a signature or a shared secret",
            )),
            _ => {
                let hash = Hash::from_hmac_identifier(identifier)?;
                policy.admit(hash, identifier.oid)?;
                Ok(Self::Hmac(hash))
            }
        }
    }

    /// Whether an algorithm authenticates by a shared secret, known to this crate or not.
    pub fn is_mac(identifier: &AlgorithmIdentifier<'_>) -> bool {
        [
            oid::PASSWORD_BASED_MAC,
            oid::PBMAC1,
            oid::DH_BASED_MAC,
            oid::KEM_BASED_MAC,
            oid::AES128_GMAC,
            oid::AES192_GMAC,
            oid::AES256_GMAC,
            oid::KMAC128,
            oid::KMAC256,
        ]
        .contains(&identifier.oid)
            || Hash::from_hmac_oid(identifier.oid).is_some()
    }

    /// The DER of the parameters, which with [`oid`](Self::oid) make the identifier.
    pub fn parameters(&self) -> Vec<u8> {
        let hmac = |hash: Hash| AlgorithmIdentifier::with_null(hash.hmac_oid());
        Writer::encode(|w| match *self {
            Self::PasswordBased {
                salt,
                owf,
                iterations,
                mac,
            } => w.sequence(|w| {
                w.octet_string(salt);
                AlgorithmIdentifier::with_null(owf.oid()).write(w);
                w.integer(iterations.into());
                hmac(mac).write(w);
            }),
            Self::Pbmac1 {
                salt,
                iterations,
                key_length,
                prf,
                mac,
            } => w.sequence(|w| {
                w.sequence(|w| {
                    w.oid(oid::PBKDF2);
                    w.sequence(|w| {
                        w.octet_string(salt);
                        w.integer(iterations.into());
                        w.integer(key_length as i64);
                        // DER leaves a DEFAULT out (X.690, 11.5).
                        if prf != Hash::Sha1 {
                            hmac(prf).write(w);
                        }
                    });
                });
                hmac(mac).write(w);
            }),
            Self::Hmac(_) => w.null(),
            Self::KemBased { parameters, .. } => parameters.write(w),
        })
    }

    /// The object identifier.
    pub fn oid(&self) -> oid::Oid<'static> {
        match self {
            Self::PasswordBased { .. } => oid::PASSWORD_BASED_MAC,
            Self::Pbmac1 { .. } => oid::PBMAC1,
            Self::Hmac(hash) => hash.hmac_oid(),
            Self::KemBased { .. } => oid::KEM_BASED_MAC,
        }
    }

    /// The MAC over `data` with the shared secret.
    pub fn compute(&self, secret: &[u8], data: &[u8]) -> Vec<u8> {
        match *self {
            Self::PasswordBased {
                salt,
                owf,
                iterations,
                mac,
            } => {
                let key = owf.repeated(&[secret, salt].concat(), iterations);
                // K is the BASEKEY as it is: HMAC takes a key of any length, so that
                // nothing is cut off or appended (RFC 9810, 5.1.3.1).
                hmac(mac, &key, data)
            }
            Self::Pbmac1 {
                salt,
                iterations,
                key_length,
                prf,
                mac,
            } => hmac(
                mac,
                &pbkdf2(prf, secret, salt, iterations, key_length),
                data,
            ),
            Self::Hmac(mac) => hmac(mac, secret, data),
            Self::KemBased {
                parameters,
                transaction_id,
            } => {
                let info = parameters.other_info(transaction_id);
                let key = parameters.kdf.derive(secret, &info, parameters.key_length);
                hmac(parameters.mac, &key, data)
            }
        }
    }
}

fn password_based(der: &[u8], policy: Policy) -> Result<MacAlgorithm<'_>, Unsupported> {
    let malformed = |_| Unsupported::Parameters("the PBMParameter cannot be read");
    let mut reader = Reader::new(der);
    let mut fields = reader.sequence().map_err(malformed)?;
    reader.finish().map_err(malformed)?;
    let salt = fields.octet_string().map_err(malformed)?.value;
    let owf = AlgorithmIdentifier::read(&mut fields).map_err(malformed)?;
    let iterations = fields.integer().map_err(malformed)?;
    let mac = AlgorithmIdentifier::read(&mut fields).map_err(malformed)?;
    fields.finish().map_err(malformed)?;
    let salt = bounded_salt(salt)?;
    let hash = Hash::from_identifier(&owf)?;
    policy.admit(hash, owf.oid)?;
    let most = limits::ITERATIONS / hash.cost();
    let iterations = match u32::try_from(iterations) {
        _ if iterations < limits::MIN_ITERATIONS.into() => Err(Unsupported::Parameters(
            "fewer than the 100 iterations that RFC 9810, 5.1.3.1 demands",
        )),
        Ok(count) if count <= most => Ok(count),
        _ => Err(too_many_iterations(iterations, most)),
    }?;
    Ok(MacAlgorithm::PasswordBased {
        salt,
        owf: hash,
        iterations,
        mac: Hash::from_hmac_identifier(&mac)?,
    })
}

fn pbmac1(der: &[u8], policy: Policy) -> Result<MacAlgorithm<'_>, Unsupported> {
    let malformed = |_| Unsupported::Parameters("the PBMAC1-params cannot be read");
    let mut reader = Reader::new(der);
    let mut fields = reader.sequence().map_err(malformed)?;
    reader.finish().map_err(malformed)?;
    let derivation = AlgorithmIdentifier::read(&mut fields).map_err(malformed)?;
    let mac = AlgorithmIdentifier::read(&mut fields).map_err(malformed)?;
    fields.finish().map_err(malformed)?;
    let pbkdf2 = Pbkdf2::from_identifier(&derivation, policy)?;
    let mac_hash = Hash::from_hmac_identifier(&mac)?;
    policy.admit(mac_hash, mac.oid)?;
    let key_length = match pbkdf2.key_length {
        Some(length) => bounded_key(length)?,
        None => mac_hash.output_length(),
    };
    Ok(MacAlgorithm::Pbmac1 {
        salt: pbkdf2.salt,
        iterations: pbkdf2.iterations(key_length)?,
        key_length,
        prf: pbkdf2.prf,
        mac: mac_hash,
    })
}

/// The MAC over the protected part of a message, the DER of SEQUENCE { header, body }
/// (RFC 9810, 5.1.3). The transactionID that a KEM-based MAC is bound to is that of the
/// header in there.
pub fn compute_mac(
    identifier: &AlgorithmIdentifier<'_>,
    policy: Policy,
    secret: &[u8],
    protected_part: &[u8],
) -> Result<Vec<u8>, Unsupported> {
    let transaction_id = match identifier.oid {
        oid::KEM_BASED_MAC => transaction_id(protected_part),
        _ => None,
    };
    let algorithm = MacAlgorithm::read(identifier, transaction_id, policy)?;
    Ok(algorithm.compute(secret, protected_part))
}

fn transaction_id(protected_part: &[u8]) -> Option<&[u8]> {
    let mut header = Reader::new(protected_part)
        .sequence()
        .ok()?
        .sequence()
        .ok()?;
    // pvno, sender and recipient, of which the names may have the same tag.
    for _ in 0..3 {
        header.any().ok()?;
    }
    while let Ok(field) = header.any() {
        if field.tag == tag::constructed(4) {
            return Some(field.contents().octet_string().ok()?.value);
        }
    }
    None
}

fn hmac(hash: Hash, key: &[u8], data: &[u8]) -> Vec<u8> {
    fn run<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Vec<u8> {
        match <M as KeyInit>::new_from_slice(key) {
            Ok(mut mac) => {
                mac.update(data);
                mac.finalize().into_bytes().to_vec()
            }
            Err(_) => unreachable!("HMAC takes keys of every length"),
        }
    }
    match hash {
        Hash::Sha1 => run::<Hmac<sha1::Sha1>>(key, data),
        Hash::Sha224 => run::<Hmac<sha2::Sha224>>(key, data),
        Hash::Sha256 => run::<Hmac<sha2::Sha256>>(key, data),
        Hash::Sha384 => run::<Hmac<sha2::Sha384>>(key, data),
        Hash::Sha512 => run::<Hmac<sha2::Sha512>>(key, data),
    }
}

/// Whether both are equal, in a time that tells nothing about where they differ.
pub fn constant_time_eq(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .fold(0, |seen, (l, r)| core::hint::black_box(seen | (l ^ r)))
            == 0
}

#[cfg(test)]
#[path = "mac_tests.rs"]
mod tests;
