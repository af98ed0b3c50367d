use alloc::vec::Vec;

use hmac::{Hmac, KeyInit, Mac};

use super::{Hash, Unsupported};
use crate::der::{Reader, Writer};
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
}

impl<'a> MacAlgorithm<'a> {
    /// Reads the algorithm. Every number the peer chose is within its limit before
    /// anything is derived from it.
    pub fn from_identifier(identifier: &AlgorithmIdentifier<'a>) -> Result<Self, Unsupported> {
        if identifier.oid != oid::PASSWORD_BASED_MAC {
            return Err(Unsupported::algorithm(identifier.oid));
        }
        let malformed = |_| Unsupported::Parameters("the PBMParameter cannot be read");
        let parameters = identifier.parameters.ok_or(Unsupported::Parameters(
            "id-PasswordBasedMac without its PBMParameter",
        ))?;
        let mut reader = Reader::new(parameters);
        let mut fields = reader.sequence().map_err(malformed)?;
        reader.finish().map_err(malformed)?;
        let salt = fields.octet_string().map_err(malformed)?.value;
        let owf = AlgorithmIdentifier::read(&mut fields).map_err(malformed)?;
        let iterations = fields.integer().map_err(malformed)?;
        let mac = AlgorithmIdentifier::read(&mut fields).map_err(malformed)?;
        fields.finish().map_err(malformed)?;
        if salt.len() > limits::SALT {
            return Err(Unsupported::Limit {
                what: "a salt length of",
                asked: salt.len() as u64,
                limit: limits::SALT as u64,
            });
        }
        let iterations = bounded_iterations(iterations)?;
        let owf = Hash::from_oid(owf.oid).ok_or_else(|| Unsupported::algorithm(owf.oid))?;
        let mac = Hash::from_hmac_oid(mac.oid).ok_or_else(|| Unsupported::algorithm(mac.oid))?;
        Ok(Self::PasswordBased {
            salt,
            owf,
            iterations,
            mac,
        })
    }

    /// Whether an algorithm authenticates by a shared secret, known to this crate or not.
    pub fn is_mac(identifier: &AlgorithmIdentifier<'_>) -> bool {
        [
            oid::PASSWORD_BASED_MAC,
            oid::PBMAC1,
            oid::DH_BASED_MAC,
            oid::KEM_BASED_MAC,
        ]
        .contains(&identifier.oid)
            || Hash::from_hmac_oid(identifier.oid).is_some()
    }

    /// The DER of the parameters, which with [`oid`](Self::oid) make the identifier.
    pub fn parameters(&self) -> Vec<u8> {
        match *self {
            Self::PasswordBased {
                salt,
                owf,
                iterations,
                mac,
            } => Writer::encode(|w| {
                w.sequence(|w| {
                    w.octet_string(salt);
                    AlgorithmIdentifier::with_null(owf.oid()).write(w);
                    w.integer(iterations.into());
                    AlgorithmIdentifier::with_null(mac.hmac_oid()).write(w);
                });
            }),
        }
    }

    /// The object identifier.
    pub fn oid(&self) -> oid::Oid<'static> {
        match self {
            Self::PasswordBased { .. } => oid::PASSWORD_BASED_MAC,
        }
    }

    /// The MAC over `data`.
    pub fn compute(&self, secret: &[u8], data: &[u8]) -> Vec<u8> {
        match *self {
            Self::PasswordBased {
                salt,
                owf,
                iterations,
                mac,
            } => {
                let mut key = owf.digest(&[secret, salt].concat());
                for _ in 1..iterations {
                    key = owf.digest(&key);
                }
                hmac(mac, &key, data)
            }
        }
    }
}

fn bounded_iterations(iterations: i64) -> Result<u32, Unsupported> {
    let within = i64::from(limits::MIN_ITERATIONS)..=i64::from(limits::ITERATIONS);
    match u32::try_from(iterations) {
        Ok(count) if within.contains(&iterations) => Ok(count),
        _ if iterations < *within.start() => Err(Unsupported::Parameters(
            "fewer than the 100 iterations that RFC 9810, 5.1.3.1 demands",
        )),
        _ => Err(Unsupported::Limit {
            what: "an iterationCount of",
            asked: iterations.unsigned_abs(),
            limit: limits::ITERATIONS.into(),
        }),
    }
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
mod tests {
    use super::*;

    #[test]
    fn hmac_is_that_of_rfc_4231() {
        // RFC 4231, 4.3: key "Jefe".
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let mac = hmac(Hash::Sha256, b"Jefe", b"what do ya want for nothing?");
        let hex: alloc::string::String = mac.iter().map(|o| alloc::format!("{o:02x}")).collect();
        assert_eq!(hex, expected);
    }

    #[test]
    fn a_bomb_is_refused_before_anything_is_derived() {
        let parameters = |iterations: i64, salt: &[u8]| {
            Writer::encode(|w| {
                w.sequence(|w| {
                    w.octet_string(salt);
                    AlgorithmIdentifier::bare(oid::SHA256).write(w);
                    w.integer(iterations);
                    AlgorithmIdentifier::bare(oid::HMAC_SHA256).write(w);
                });
            })
        };
        let read = |parameters: &[u8]| {
            let oid = oid::PASSWORD_BASED_MAC;
            let identifier = AlgorithmIdentifier {
                oid,
                parameters: Some(parameters),
            };
            MacAlgorithm::from_identifier(&identifier).map(|mac| mac.parameters().len())
        };
        assert!(read(&parameters(500, &[1; 16])).is_ok());
        for iterations in [i64::from(i32::MAX), i64::MAX, 100_001, 99, 0, -1, i64::MIN] {
            assert!(
                read(&parameters(iterations, &[1; 16])).is_err(),
                "{iterations}"
            );
        }
        assert!(read(&parameters(500, &[1; 129])).is_err());
    }
}
