//! Verification with RSA (RFC 8017): RSASSA-PKCS1-v1_5 and RSASSA-PSS.

use alloc::vec;
use alloc::vec::Vec;

use super::Hash;
use super::modular::Modulus;
use crate::der::{Reader, Writer, tag};
use crate::limits;
use crate::oid;
use crate::x509::{AlgorithmIdentifier, PublicKeyInfo};

/// Checks a signature of RSASSA-PKCS1-v1_5 (RFC 8017, 8.2.2): the message is encoded as the signer
/// had to, so that nothing a forger could add between or behind is read at all.
pub(super) fn pkcs1(
    hash: Hash,
    key: &PublicKeyInfo<'_>,
    data: &[u8],
    signature: &[u8],
) -> Option<()> {
    if key.algorithm.oid != oid::RSA_ENCRYPTION || !key.algorithm.has_no_parameters() {
        return None;
    }
    let encoded = PublicKey::read(key.key)?.recover(signature)?;
    let info = digest_info(hash, &hash.digest(data));
    let padding = encoded.len().checked_sub(info.len() + 3)?;
    let mut expected = vec![0xff; padding + 2];
    expected[..2].copy_from_slice(&[0, 1]);
    expected.push(0);
    expected.extend_from_slice(&info);
    (encoded == expected).then_some(())
}

/// Checks a signature of RSASSA-PSS (RFC 8017, 8.1.2).
#[cfg(feature = "all-algorithms")]
pub(super) fn pss(
    hash: Hash,
    salt_length: u16,
    key: &PublicKeyInfo<'_>,
    data: &[u8],
    signature: &[u8],
) -> Option<()> {
    match key.algorithm.oid {
        oid::RSA_ENCRYPTION if key.algorithm.has_no_parameters() => {}
        // The parameters of a key restrict what it signs with (RFC 4055, 3.3).
        oid::RSA_PSS => {
            if let Some(parameters) = key.algorithm.parameters {
                let (required, least_salt) = super::signature::pss_parameters(parameters).ok()?;
                if required != hash || salt_length < least_salt {
                    return None;
                }
            }
        }
        _ => return None,
    }
    let key = PublicKey::read(key.key)?;
    let encoded = key.recover(signature)?;
    // It has one bit less than the modulus, which can make it an octet shorter.
    let bits = key.modulus.bits() - 1;
    let (above, encoded) = encoded.split_at(encoded.len() - bits.div_ceil(8));
    if above.iter().any(|octet| *octet != 0) {
        return None;
    }
    is_pss(hash, salt_length.into(), &hash.digest(data), encoded, bits).then_some(())
}

/// EMSA-PSS-VERIFY (RFC 8017, 9.1.2) of as many octets as `bits` need.
#[cfg(feature = "all-algorithms")]
fn is_pss(hash: Hash, salt_length: usize, digest: &[u8], encoded: &[u8], bits: usize) -> bool {
    let Some((&0xbc, rest)) = encoded.split_last() else {
        return false;
    };
    let Some(masked) = rest.len().checked_sub(digest.len()) else {
        return false;
    };
    let (masked, check) = rest.split_at(masked);
    let Some(padding) = masked.len().checked_sub(salt_length + 1) else {
        return false;
    };
    let used = 0xff >> (8 * encoded.len() - bits);
    if masked[0] & !used != 0 {
        return false;
    }
    let mut block = mask(hash, check, masked.len());
    for (octet, masked) in block.iter_mut().zip(masked) {
        *octet ^= masked;
    }
    block[0] &= used;
    let (zeros, salt) = block.split_at(padding);
    let [1, salt @ ..] = salt else {
        return false;
    };
    let again = hash.digest(&[&[0; 8], digest, salt].concat());
    zeros.iter().all(|octet| *octet == 0) && again == check
}

/// MGF1 (RFC 8017, B.2.1).
#[cfg(feature = "all-algorithms")]
fn mask(hash: Hash, seed: &[u8], length: usize) -> Vec<u8> {
    let mut mask = Vec::with_capacity(length + hash.output_length());
    for counter in 0_u32.. {
        if mask.len() >= length {
            break;
        }
        mask.extend_from_slice(&hash.digest(&[seed, &counter.to_be_bytes()].concat()));
    }
    mask.truncate(length);
    mask
}

struct PublicKey {
    modulus: Modulus,
    exponent: u64,
}

impl PublicKey {
    /// Reads an RSAPublicKey (RFC 8017, A.1.1) whose numbers can be believed and computed with.
    fn read(der: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(der);
        let mut fields = reader.sequence().ok()?;
        reader.finish().ok()?;
        let modulus = positive(&mut fields)?;
        let exponent = positive(&mut fields)?;
        fields.finish().ok()?;
        if modulus.len() > limits::RSA_MODULUS_BITS / 8 || exponent.len() > 8 {
            return None;
        }
        let exponent = exponent
            .iter()
            .fold(0, |sum, octet| sum << 8 | u64::from(*octet));
        let modulus = Modulus::new(modulus)?;
        let good = modulus.bits() >= limits::RSA_MODULUS_MIN_BITS
            && exponent % 2 == 1
            && (limits::RSA_EXPONENT_MIN..=limits::RSA_EXPONENT).contains(&exponent);
        good.then_some(Self { modulus, exponent })
    }

    /// What was signed, in its encoded form: RSAVP1 between octets (RFC 8017, 8.2.2, 1 and 2).
    fn recover(&self, signature: &[u8]) -> Option<Vec<u8>> {
        if signature.len() != self.modulus.octets() {
            return None;
        }
        self.modulus.power(signature, self.exponent)
    }
}

/// The octets of a positive INTEGER, the highest not zero.
fn positive<'a>(fields: &mut Reader<'a>) -> Option<&'a [u8]> {
    let number = fields.element(tag::INTEGER, "an INTEGER").ok()?;
    match number.big_integer().ok()? {
        [0] => None,
        [0, number @ ..] => Some(number),
        [first, ..] if first & 0x80 != 0 => None,
        number => Some(number),
    }
}

/// DigestInfo (RFC 8017, 9.2).
fn digest_info(hash: Hash, digest: &[u8]) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            AlgorithmIdentifier::with_null(hash.oid()).write(w);
            w.octet_string(digest);
        });
    })
}
