//! Envelopes for a private key or a shared secret (RFC 5652, 6, as RFC 9483, 4.1.6 uses them).
//!
//! The parameters come out of a message, so they are bounded before anything is computed. What
//! is wrong with the encryption of key or content is one error: an attacker who could tell bad
//! padding of one from that of the other could have messages decrypted, question by question
//! (RFC 3218, 2.3).

use std::num::NonZeroU32;

use aes_kw::{KeyInit, KwAes128, KwAes192, KwAes256};
use aws_lc_rs::cipher::{
    self, DecryptingKey, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{digest, rand};
use zeroize::Zeroizing;

use super::mac::{self, digest_algorithm};
use super::private_key::PrivateKey;
use crate::limits;
use crate::wit::keys::{
    Aes, Enveloped, HandlingError, KeyAgreement, KeyManagement, PasswordEncryption, PasswordWrap,
};

type Key = Zeroizing<Vec<u8>>;

/// What the envelope is opened with.
pub(super) enum With<'k> {
    Private(&'k PrivateKey),
    Secret(&'k [u8]),
}

/// Opens an envelope. The name is for the error.
pub(super) fn open(
    name: &str,
    with: &With<'_>,
    enveloped: &Enveloped,
) -> Result<Vec<u8>, HandlingError> {
    let refused = |why: String| HandlingError::Refused(why);
    let key = match (&enveloped.management, with) {
        (KeyManagement::RsaPkcs1, With::Private(key)) => {
            // A wrong padding gives a random key, with which the content will not decrypt.
            let wanted = length(enveloped.cipher);
            let mut key_or_random = Zeroizing::new(vec![0; wanted]);
            rand::fill(&mut key_or_random).map_err(|_| {
                HandlingError::Unavailable("this machine gives no random octets".to_owned())
            })?;
            let decrypted = key.decrypt_pkcs1(name, &enveloped.encrypted_key)?;
            if let Some(key) = decrypted.filter(|key| key.len() == wanted) {
                key_or_random.copy_from_slice(&key);
            }
            Some(key_or_random)
        }
        (KeyManagement::RsaOaep(hash), With::Private(key)) => {
            key.decrypt_oaep(name, *hash, &enveloped.encrypted_key)?
        }
        (KeyManagement::Ecdh(agreement), With::Private(key)) => {
            check_agreement(agreement)?;
            let kek = key.agree(name, &agreement.point, |secret| x963(secret, agreement))?;
            kek.and_then(|kek| unwrap(agreement.wrap, &kek, &enveloped.encrypted_key))
        }
        (KeyManagement::Password(password), With::Secret(secret)) => {
            mac::check_derivation(&password.salt, password.iterations)
                .map_err(|error| refused(format!("the key derivation asks for {error}")))?;
            from_password(secret, password, &enveloped.encrypted_key)?
        }
        (_, With::Private(_)) => {
            return Err(refused(format!(
                "it wants a password, and {name} is a private key"
            )));
        }
        (_, With::Secret(_)) => {
            return Err(refused(format!(
                "it wants a private key, and {name} is a secret"
            )));
        }
    };
    let iv = block(&enveloped.iv)?;
    key.and_then(|key| content(enveloped, &key, iv))
        .ok_or_else(|| refused(format!("it cannot be decrypted with {name}")))
}

fn length(aes: Aes) -> usize {
    match aes {
        Aes::Aes128 => 16,
        Aes::Aes192 => 24,
        Aes::Aes256 => 32,
    }
}

fn algorithm(aes: Aes) -> &'static cipher::Algorithm {
    match aes {
        Aes::Aes128 => &cipher::AES_128,
        Aes::Aes192 => &cipher::AES_192,
        Aes::Aes256 => &cipher::AES_256,
    }
}

/// An initialization vector.
fn block(iv: &[u8]) -> Result<[u8; BLOCK], HandlingError> {
    iv.try_into().map_err(|_| {
        HandlingError::Refused(format!(
            "an initialization vector of {} octets; AES has 16",
            iv.len()
        ))
    })
}

/// Octets of a block of AES.
const BLOCK: usize = 16;

fn content(enveloped: &Enveloped, key: &[u8], iv: [u8; BLOCK]) -> Option<Vec<u8>> {
    if key.len() != length(enveloped.cipher) {
        return None;
    }
    let key = UnboundCipherKey::new(algorithm(enveloped.cipher), key).ok()?;
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
    let mut octets = Zeroizing::new(enveloped.content.clone());
    let context = DecryptionContext::Iv128(FixedLength::from(iv));
    let plain = key.decrypt(&mut octets, context).ok()?;
    Some(plain.to_vec())
}

fn check_agreement(agreement: &KeyAgreement) -> Result<(), HandlingError> {
    if agreement.info.len() > limits::KDF_INFO {
        return Err(HandlingError::Refused(format!(
            "{} octets for the key derivation; at most {} are accepted",
            agreement.info.len(),
            limits::KDF_INFO
        )));
    }
    Ok(())
}

/// The KDF of ANSI X9.63: hashes of the secret, a counter and the info (SEC 1, 3.6.1).
fn x963(secret: &[u8], agreement: &KeyAgreement) -> Key {
    let hash = digest_algorithm(agreement.kdf);
    let mut key = Zeroizing::new(vec![0; length(agreement.wrap)]);
    for (part, counter) in key.chunks_mut(hash.output_len()).zip(1_u32..) {
        let mut context = digest::Context::new(hash);
        context.update(secret);
        context.update(&counter.to_be_bytes());
        context.update(&agreement.info);
        part.copy_from_slice(&context.finish().as_ref()[..part.len()]);
    }
    key
}

/// AES key wrap (RFC 3394, 2.2.2); none for another key or a changed one.
fn unwrap(aes: Aes, kek: &[u8], wrapped: &[u8]) -> Option<Key> {
    if wrapped.len() > limits::WRAPPED_KEY {
        return None;
    }
    let mut key = Zeroizing::new(vec![0; wrapped.len().checked_sub(8)?]);
    let unwrapped = match aes {
        Aes::Aes128 => KwAes128::new_from_slice(kek)
            .ok()?
            .unwrap_key(wrapped, &mut key)
            .is_ok(),
        Aes::Aes192 => KwAes192::new_from_slice(kek)
            .ok()?
            .unwrap_key(wrapped, &mut key)
            .is_ok(),
        Aes::Aes256 => KwAes256::new_from_slice(kek)
            .ok()?
            .unwrap_key(wrapped, &mut key)
            .is_ok(),
    };
    unwrapped.then_some(key)
}

fn from_password(
    secret: &[u8],
    password: &PasswordEncryption,
    wrapped: &[u8],
) -> Result<Option<Key>, HandlingError> {
    let (PasswordWrap::Aes(aes) | PasswordWrap::PwriKek((aes, _))) = &password.wrap;
    let mut kek = Zeroizing::new(vec![0; length(*aes)]);
    mac::pbkdf2(
        password.prf,
        &password.salt,
        NonZeroU32::new(password.iterations).unwrap_or(NonZeroU32::MIN),
        secret,
        &mut kek,
    );
    match &password.wrap {
        PasswordWrap::Aes(aes) => Ok(unwrap(*aes, &kek, wrapped)),
        PasswordWrap::PwriKek((aes, iv)) => Ok(pwri_kek(*aes, &kek, block(iv)?, wrapped)),
    }
}

/// The unwrapping of RFC 3211, 2.3.2: two layers of CBC, whose inner one begins with the length
/// of the key and the complement of its first three octets.
fn pwri_kek(aes: Aes, kek: &[u8], iv: [u8; BLOCK], wrapped: &[u8]) -> Option<Key> {
    let fits = wrapped.len().is_multiple_of(BLOCK);
    if !fits || wrapped.len() < 2 * BLOCK || wrapped.len() > limits::WRAPPED_KEY {
        return None;
    }
    let decrypt = |octets: &mut [u8], iv: [u8; BLOCK]| {
        let key = UnboundCipherKey::new(algorithm(aes), kek).ok()?;
        let context = DecryptionContext::Iv128(FixedLength::from(iv));
        DecryptingKey::cbc(key)
            .ok()?
            .decrypt(octets, context)
            .ok()?;
        Some(())
    };
    let mut octets = Zeroizing::new(wrapped.to_vec());
    let last = wrapped.len() - BLOCK;
    // The last block of the inner layer is the initialization vector of the outer one.
    let before = wrapped[last - BLOCK..last].try_into().ok()?;
    decrypt(&mut octets[last..], before)?;
    let outer_iv = octets[last..].try_into().ok()?;
    decrypt(&mut octets[..last], outer_iv)?;
    decrypt(&mut octets, iv)?;
    let (head, rest) = octets.split_at_checked(4)?;
    let key = rest.get(..usize::from(head[0]))?;
    let check = key.get(..3)?.iter().zip(&head[1..]);
    let differs = check.fold(0, |sum, (octet, check)| sum | (octet ^ check ^ 0xff));
    (differs == 0).then(|| Zeroizing::new(key.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wit::keys::Hash;

    fn octets(hex: &str) -> Vec<u8> {
        let digits: Vec<_> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let octet = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(octet).collect()
    }

    #[test]
    fn key_wrap_is_that_of_rfc_3394() {
        // RFC 3394, 4.1, 4.4 and 4.6.
        let cases = [
            (
                Aes::Aes128,
                "000102030405060708090A0B0C0D0E0F",
                "1FA68B0A8112B447 AEF34BD8FB5A7B82 9D3E862371D2CFE5",
                "00112233445566778899AABBCCDDEEFF",
            ),
            (
                Aes::Aes192,
                "000102030405060708090A0B0C0D0E0F1011121314151617",
                "031D33264E15D332 68F24EC260743EDC E1C6C7DDEE725A93 6BA814915C6762D2",
                "00112233445566778899AABBCCDDEEFF0001020304050607",
            ),
            (
                Aes::Aes256,
                "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F",
                "28C9F404C4B810F4 CBCCB35CFB87F826 3F5786E2D80ED326 CBC7F0E71A99F43B \
                 FB988B9B7A02DD21",
                "00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F",
            ),
        ];
        for (aes, kek, wrapped, key) in cases {
            let (kek, mut wrapped) = (octets(kek), octets(wrapped));
            assert_eq!(**unwrap(aes, &kek, &wrapped).unwrap(), octets(key));
            wrapped[9] ^= 1;
            assert!(unwrap(aes, &kek, &wrapped).is_none());
        }
        assert!(unwrap(Aes::Aes128, &[0; 16], &[0; 7]).is_none());
        assert!(unwrap(Aes::Aes128, &[0; 16], &[0; 8 * 1000]).is_none());
    }

    macro_rules! file {
        ($name:literal) => {
            include_bytes!(concat!("../../../../guest/cmp/tests/cms/", $name)).as_slice()
        };
    }

    /// The primitive elements of some DER with their tags, in order.
    fn primitives<'a>(mut der: &'a [u8], found: &mut Vec<(u8, &'a [u8])>) {
        while let [tag, length, rest @ ..] = der {
            let (length, rest) = match length {
                0..0x80 => (usize::from(*length), rest),
                _ => {
                    let (octets, rest) = rest.split_at(usize::from(length & 0x7f));
                    let sum = |sum, octet: &u8| (sum << 8) | usize::from(*octet);
                    (octets.iter().fold(0, sum), rest)
                }
            };
            let (value, rest) = rest.split_at(length);
            match tag & 0x20 {
                0 => found.push((*tag, value)),
                _ => primitives(value, found),
            }
            der = rest;
        }
    }

    /// An envelope of OpenSSL, as `guest/cmp/tests/cms/make.sh` made it. How its key is managed
    /// follows from its OCTET STRINGs and BIT STRINGs. Of the former the last is the content's
    /// initialization vector, and the one before it the encrypted key.
    fn envelope(
        der: &[u8],
        cipher: Aes,
        management: impl Fn(&[&[u8]], &[&[u8]]) -> KeyManagement,
    ) -> Enveloped {
        let mut found = Vec::new();
        primitives(der, &mut found);
        let of = |wanted: u8| -> Vec<&[u8]> {
            let of_tag = found.iter().filter(|(tag, _)| *tag == wanted);
            of_tag.map(|(_, value)| *value).collect()
        };
        let (strings, bits) = (of(4), of(3));
        let [.., encrypted_key, iv] = strings[..] else {
            panic!("too few strings")
        };
        Enveloped {
            management: management(&strings, &bits),
            encrypted_key: encrypted_key.to_vec(),
            cipher,
            iv: iv.to_vec(),
            content: found.last().unwrap().1.to_vec(),
        }
    }

    fn key(der: &[u8]) -> PrivateKey {
        PrivateKey::new("the key", &der.to_vec().try_into().unwrap()).unwrap()
    }

    /// That an envelope opens to what OpenSSL put in, and that no octet of the encrypted key may
    /// change.
    fn opens(with: &With<'_>, enveloped: &Enveloped) {
        assert_eq!(open("it", with, enveloped).unwrap(), file!("signed.der"));
        for at in 0..enveloped.encrypted_key.len() {
            let mut changed = enveloped.clone();
            changed.encrypted_key[at] ^= 1;
            match open("it", with, &changed) {
                Ok(plain) => assert_ne!(plain, file!("signed.der"), "octet {at}"),
                Err(error) => {
                    let one = HandlingError::Refused("it cannot be decrypted with it".to_owned());
                    assert_eq!(error, one, "octet {at}");
                }
            }
        }
    }

    #[test]
    fn openssl_encrypts_for_rsa() {
        let key = key(file!("rsa.key"));
        let pkcs1 = envelope(file!("ktri-pkcs1.der"), Aes::Aes128, |_, _| {
            KeyManagement::RsaPkcs1
        });
        opens(&With::Private(&key), &pkcs1);
        let oaep = envelope(file!("ktri-oaep.der"), Aes::Aes256, |_, _| {
            KeyManagement::RsaOaep(Hash::Sha256)
        });
        opens(&With::Private(&key), &oaep);
    }

    #[test]
    fn openssl_agrees_on_a_key() {
        let key = key(file!("ec.key"));
        // ECC-CMS-SharedInfo for id-aes192-wrap and 192 bits, written by hand.
        let info = octets("3015 300b 0609 608648016503040119 a206 0404 000000c0");
        let kari = envelope(file!("kari.der"), Aes::Aes256, |_, bits| {
            KeyManagement::Ecdh(KeyAgreement {
                // After the number of unused bits.
                point: bits[0][1..].to_vec(),
                kdf: Hash::Sha384,
                info: info.clone(),
                wrap: Aes::Aes192,
            })
        });
        opens(&With::Private(&key), &kari);
        let mut elsewhere = kari;
        if let KeyManagement::Ecdh(agreement) = &mut elsewhere.management {
            // A point that is not on the curve.
            agreement.point[96] ^= 1;
        }
        open("it", &With::Private(&key), &elsewhere).unwrap_err();
    }

    #[test]
    fn openssl_encrypts_with_a_password() {
        let secret = b"a secret of the house";
        let pwri = envelope(file!("pwri.der"), Aes::Aes256, |strings, _| {
            KeyManagement::Password(PasswordEncryption {
                prf: Hash::Sha1,
                salt: strings[0].to_vec(),
                iterations: 2048,
                wrap: PasswordWrap::PwriKek((Aes::Aes256, strings[1].to_vec())),
            })
        });
        opens(&With::Secret(secret), &pwri);
        open("it", &With::Secret(b"another secret"), &pwri).unwrap_err();
        let mut costly = pwri;
        if let KeyManagement::Password(password) = &mut costly.management {
            password.iterations = u32::MAX;
        }
        let error = open("it", &With::Secret(secret), &costly).unwrap_err();
        assert!(format!("{error:?}").contains("iterations"), "{error:?}");
    }
}
