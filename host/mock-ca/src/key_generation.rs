//! Key pairs for clients that want none of their own (RFC 9483, 4.1.6): made, signed by the key
//! generation authority, and encrypted for who asked.

use std::num::NonZeroU32;

use abide_cmp::der::{Reader, Writer, tag};
use abide_cmp::protection::Hash;
use abide_cmp::{AlgorithmIdentifier, Certificate, FailInfo, PublicKeyInfo, oid};
use anyhow::{Context, anyhow, bail};
use aws_lc_rs::agreement::{self, EphemeralPrivateKey, UnparsedPublicKey};
use aws_lc_rs::cipher::{self, PaddedBlockEncryptingKey, UnboundCipherKey};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::key_wrap::{self, AesKek, KeyWrap};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{
    KeyPair as RsaKeyPair, KeySize, OAEP_SHA256_MGF1SHA256, OaepPublicEncryptingKey,
    PublicEncryptingKey,
};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair as _,
};
use aws_lc_rs::{digest, pbkdf2};

use crate::authority::Identity;
use crate::refusal::{Refusal, Trouble};
use crate::{limits, random};

/// For whom a private key is encrypted.
pub(crate) enum Recipient<'a> {
    /// The holder of this certificate, DER.
    Certificate(&'a [u8]),
    /// Who knows the secret.
    Secret(&'a [u8]),
}

/// A new key pair.
pub(crate) struct KeyPair {
    /// DER SubjectPublicKeyInfo.
    pub(crate) public: Vec<u8>,
    /// DER OneAsymmetricKey (RFC 5958, 2).
    private: Vec<u8>,
}

/// Makes a key pair, of the kind of a DER AlgorithmIdentifier where one is preferred.
pub(crate) fn generate(preferred: Option<&[u8]>) -> Result<KeyPair, Trouble> {
    let curve = |algorithm: &'static EcdsaSigningAlgorithm| elliptic(algorithm);
    let Some(preferred) = preferred else {
        return Ok(curve(&ECDSA_P256_SHA256_ASN1_SIGNING)?);
    };
    let unknown = || {
        Refusal::new(
            FailInfo::BAD_ALG,
            "this CA makes keys of P-256, P-384, P-521 and RSA with 2048 bits",
        )
    };
    let preferred = AlgorithmIdentifier::from_der(preferred).map_err(|_| unknown())?;
    let named = preferred
        .parameters
        .and_then(|der| Reader::new(der).oid().ok());
    match (preferred.oid, named) {
        (oid::RSA_ENCRYPTION, _) => Ok(rsa()?),
        (oid::EC_PUBLIC_KEY, None | Some(oid::P256)) => Ok(curve(&ECDSA_P256_SHA256_ASN1_SIGNING)?),
        (oid::EC_PUBLIC_KEY, Some(oid::P384)) => Ok(curve(&ECDSA_P384_SHA384_ASN1_SIGNING)?),
        (oid::EC_PUBLIC_KEY, Some(oid::P521)) => Ok(curve(&ECDSA_P521_SHA512_ASN1_SIGNING)?),
        _ => Err(unknown().into()),
    }
}

fn elliptic(algorithm: &'static EcdsaSigningAlgorithm) -> anyhow::Result<KeyPair> {
    let no_key = || anyhow!("this machine makes no keys");
    let pkcs8 =
        EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).map_err(|_| no_key())?;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref()).map_err(|_| no_key())?;
    let public = pair.public_key().as_der().map_err(|_| no_key())?;
    KeyPair::new(public.as_ref(), pkcs8.as_ref())
}

fn rsa() -> anyhow::Result<KeyPair> {
    let no_key = |_| anyhow!("this machine makes no keys");
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(no_key)?;
    let public = pair.public_key().as_der().map_err(no_key)?;
    let pkcs8: Pkcs8V1Der<'_> = pair.as_der().map_err(no_key)?;
    KeyPair::new(public.as_ref(), pkcs8.as_ref())
}

impl KeyPair {
    /// From PKCS #8 of version 1, to which version 2 adds the public key.
    fn new(public: &[u8], pkcs8: &[u8]) -> anyhow::Result<Self> {
        let mut fields = Reader::new(pkcs8).sequence()?;
        fields.integer()?;
        let algorithm = fields.any()?.raw;
        let private = fields.octet_string()?.value;
        let bits = PublicKeyInfo::from_der(public)?.key;
        Ok(Self {
            public: public.to_vec(),
            private: Writer::encode(|w| {
                w.sequence(|w| {
                    w.integer(1);
                    w.raw(algorithm);
                    w.octet_string(private);
                    w.bits(tag::primitive(1), bits);
                });
            }),
        })
    }

    /// The private key as DER EnvelopedData, signed by `kga`.
    pub(crate) fn enveloped(
        &self,
        recipient: &Recipient<'_>,
        kga: &Identity,
    ) -> anyhow::Result<Vec<u8>> {
        let package = Writer::encode(|w| w.sequence(|w| w.raw(&self.private)));
        let signed = signed_data(&package, kga);
        let key = random::octets::<KEY>()?;
        let (info, version) = match recipient {
            Recipient::Certificate(der) => {
                let certificate = Certificate::from_der(der).context("the client's certificate")?;
                match certificate.public_key.algorithm.oid {
                    oid::RSA_ENCRYPTION => (key_transport(&certificate, &key)?, 2),
                    oid::EC_PUBLIC_KEY => (key_agreement(&certificate, &key)?, 2),
                    other => bail!("nothing can be encrypted for a key of {other}"),
                }
            }
            Recipient::Secret(secret) => (password(secret, &key)?, 0),
        };
        let cipher = UnboundCipherKey::new(&cipher::AES_256, &key)
            .and_then(PaddedBlockEncryptingKey::cbc_pkcs7)
            .map_err(|_| anyhow!("AES does not work here"))?;
        let mut content = signed;
        let context = cipher
            .encrypt(&mut content)
            .map_err(|_| anyhow!("the private key cannot be encrypted"))?;
        let iv: &[u8] = (&context)
            .try_into()
            .map_err(|_| anyhow!("AES gave no initialization vector"))?;
        Ok(Writer::encode(|w| {
            w.sequence(|w| {
                w.integer(version);
                w.nested(tag::SET, |w| w.raw(&info));
                w.sequence(|w| {
                    w.oid(oid::CMS_SIGNED_DATA);
                    w.sequence(|w| {
                        w.oid(oid::AES256_CBC);
                        w.octet_string(iv);
                    });
                    w.element(tag::primitive(0), &content);
                });
            });
        }))
    }
}

/// Octets of a key of AES-256.
const KEY: usize = 32;

/// SignedData with the attributes that RFC 9483, 4.1.6 asks for.
fn signed_data(package: &[u8], kga: &Identity) -> Vec<u8> {
    let digest = Hash::Sha256.digest(package);
    let hash = Writer::encode(|w| w.sequence(|w| w.oid(oid::SHA256)));
    let attribute = |w: &mut Writer, kind, value: &dyn Fn(&mut Writer)| {
        w.sequence(|w| {
            w.oid(kind);
            w.nested(tag::SET, |w| value(w));
        });
    };
    // In the order of DER: the shorter first.
    let attributes = Writer::encode(|w| {
        attribute(w, oid::CMS_CONTENT_TYPE, &|w| w.oid(oid::CMS_KEY_PACKAGE));
        attribute(w, oid::CMS_MESSAGE_DIGEST, &|w| w.octet_string(&digest));
    });
    let signature = kga.sign(&Writer::encode(|w| w.element(tag::SET, &attributes)));
    Writer::encode(|w| {
        w.sequence(|w| {
            w.integer(3);
            w.nested(tag::SET, |w| w.raw(&hash));
            w.sequence(|w| {
                w.oid(oid::CMS_KEY_PACKAGE);
                w.explicit(0, |w| w.octet_string(package));
            });
            w.nested(tag::constructed(0), |w| w.raw(&kga.certificate));
            w.nested(tag::SET, |w| {
                w.sequence(|w| {
                    w.integer(3);
                    w.element(tag::primitive(0), &kga.key_id);
                    w.raw(&hash);
                    w.element(tag::constructed(0), &attributes);
                    w.sequence(|w| w.oid(oid::ECDSA_SHA256));
                    w.octet_string(&signature);
                });
            });
        });
    })
}

/// By subjectKeyIdentifier under a tag, or by issuer and serial number.
fn identifier(w: &mut Writer, certificate: &Certificate<'_>, by_key: impl Fn(&mut Writer, &[u8])) {
    match certificate.subject_key_identifier() {
        Some(identifier) => by_key(w, identifier),
        None => w.sequence(|w| {
            w.raw(certificate.issuer.der());
            w.element(tag::INTEGER, certificate.serial);
        }),
    }
}

/// ktri with RSAES-OAEP and SHA-256.
fn key_transport(certificate: &Certificate<'_>, key: &[u8]) -> anyhow::Result<Vec<u8>> {
    let failed = || anyhow!("nothing can be encrypted for the client's RSA key");
    let public = PublicEncryptingKey::from_der(certificate.public_key.raw).map_err(|_| failed())?;
    let public = OaepPublicEncryptingKey::new(public).map_err(|_| failed())?;
    let mut output = vec![0; public.ciphertext_size()];
    let encrypted = public
        .encrypt(&OAEP_SHA256_MGF1SHA256, key, &mut output, None)
        .map_err(|_| failed())?;
    Ok(Writer::encode(|w| {
        w.sequence(|w| {
            w.integer(2);
            identifier(w, certificate, |w, key| w.element(tag::primitive(0), key));
            w.sequence(|w| {
                w.oid(oid::RSAES_OAEP);
                w.sequence(|w| {
                    let hash = |w: &mut Writer| w.sequence(|w| w.oid(oid::SHA256));
                    w.explicit(0, hash);
                    w.explicit(1, |w| {
                        w.sequence(|w| {
                            w.oid(oid::MGF1);
                            hash(w);
                        });
                    });
                });
            });
            w.octet_string(encrypted);
        });
    }))
}

/// kari with ECDH, the KDF of X9.63 with SHA-256, and AES-256 key wrap.
fn key_agreement(certificate: &Certificate<'_>, key: &[u8]) -> anyhow::Result<Vec<u8>> {
    let failed = || anyhow!("no key can be agreed on with the client's certificate");
    let algorithm = match certificate.public_key.curve() {
        Some(oid::P256) => &agreement::ECDH_P256,
        Some(oid::P384) => &agreement::ECDH_P384,
        Some(oid::P521) => &agreement::ECDH_P521,
        _ => bail!("the client's key is of a curve that is not known"),
    };
    let own =
        EphemeralPrivateKey::generate(algorithm, &SystemRandom::new()).map_err(|_| failed())?;
    let point = own.compute_public_key().map_err(|_| failed())?;
    let ukm = random::octets::<{ limits::NONCE }>()?;
    let wrap = Writer::encode(|w| w.sequence(|w| w.oid(oid::AES256_WRAP)));
    let info = Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(&wrap);
            w.explicit(0, |w| w.octet_string(&ukm));
            w.explicit(2, |w| w.octet_string(&(KEY as u32 * 8).to_be_bytes()));
        });
    });
    let theirs = UnparsedPublicKey::new(algorithm, certificate.public_key.key);
    let kek = agreement::agree_ephemeral(own, theirs, failed(), |secret| {
        let mut hash = digest::Context::new(&digest::SHA256);
        hash.update(secret);
        hash.update(&1_u32.to_be_bytes());
        hash.update(&info);
        Ok(hash.finish())
    })?;
    let encrypted = wrapped(kek.as_ref(), key)?;
    Ok(Writer::encode(|w| {
        w.nested(tag::constructed(1), |w| {
            w.integer(3);
            w.explicit(0, |w| {
                w.nested(tag::constructed(1), |w| {
                    w.sequence(|w| w.oid(oid::EC_PUBLIC_KEY));
                    w.bits(tag::BIT_STRING, point.as_ref());
                });
            });
            w.explicit(1, |w| w.octet_string(&ukm));
            w.sequence(|w| {
                w.oid(oid::ECDH_STD_SHA256);
                w.raw(&wrap);
            });
            w.sequence(|w| {
                w.sequence(|w| {
                    identifier(w, certificate, |w, key| {
                        w.explicit(0, |w| w.octet_string(key))
                    });
                    w.octet_string(&encrypted);
                });
            });
        });
    }))
}

/// pwri with PBKDF2, HMAC with SHA-256, and AES-256 key wrap.
fn password(secret: &[u8], key: &[u8]) -> anyhow::Result<Vec<u8>> {
    let salt = random::octets::<{ limits::NONCE }>()?;
    let mut kek = [0; KEY];
    let iterations = NonZeroU32::new(limits::PASSWORD_ITERATIONS).unwrap_or(NonZeroU32::MIN);
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA256,
        iterations,
        &salt,
        secret,
        &mut kek,
    );
    let encrypted = wrapped(&kek, key)?;
    Ok(Writer::encode(|w| {
        w.nested(tag::constructed(3), |w| {
            w.integer(0);
            w.nested(tag::constructed(0), |w| {
                w.oid(oid::PBKDF2);
                w.sequence(|w| {
                    w.octet_string(&salt);
                    w.integer(limits::PASSWORD_ITERATIONS.into());
                    w.sequence(|w| {
                        w.oid(oid::HMAC_SHA256);
                        w.null();
                    });
                });
            });
            w.sequence(|w| w.oid(oid::AES256_WRAP));
            w.octet_string(&encrypted);
        });
    }))
}

/// AES-256 key wrap (RFC 3394).
fn wrapped(kek: &[u8], key: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut output = vec![0; key.len() + 8];
    AesKek::new(&key_wrap::AES_256, kek)
        .and_then(|kek| kek.wrap(key, &mut output).map(|_| ()))
        .map_err(|_| anyhow!("the key cannot be wrapped"))?;
    Ok(output)
}
