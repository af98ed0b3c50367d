//! Private keys on their way from who made them (RFC 9483, 4.1.6): EnvelopedData around
//! SignedData around an AsymmetricKeyPackage (RFC 5652 and RFC 5958).
//!
//! Everything is parsed and judged here but the decryption itself, which is done by who holds
//! the recipient's key: [`Envelope`] says what is to be done with which bounded parameters.
//!
//! OpenSSL up to 4.0 names the contents of both wrappings id-data, and puts the private key
//! into the signature without a package around it. Both are read: what is inside is signed by
//! the key generation authority either way, and compared with the certificate. The caller is
//! told by [`NewKey::is_packaged`].

mod envelope;
mod key_package;
mod signed_data;
#[cfg(test)]
mod tests;

use core::fmt;

pub use envelope::{Aes, Envelope, KeyManagement, PasswordWrap, Recipient};
pub use key_package::NewKey;
pub use signed_data::SignedData;

use crate::error::Error;
use crate::path::PathError;
use crate::protection::{ProtectionError, Unsupported};
use crate::status::FailInfo;

/// Why a private key is not taken out of what it comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CmsError {
    /// It is not DER of the expected structure.
    Malformed(Error),
    /// An algorithm or its parameters are not accepted.
    Unsupported(Unsupported),
    /// It breaks a rule of the profile, in words.
    Rule(&'static str),
    /// Who signed it is not to be believed.
    Signer(ProtectionError),
}

impl CmsError {
    /// The PKIFailureInfo bits that tell of it.
    pub fn fail_info(&self) -> FailInfo {
        match self {
            Self::Malformed(_) => FailInfo::BAD_DATA_FORMAT,
            Self::Unsupported(_) => FailInfo::BAD_ALG,
            Self::Rule(_) => FailInfo::INCORRECT_DATA,
            Self::Signer(_) => FailInfo::SIGNER_NOT_TRUSTED,
        }
    }
}

impl From<Error> for CmsError {
    fn from(error: Error) -> Self {
        Self::Malformed(error)
    }
}

impl From<Unsupported> for CmsError {
    fn from(why: Unsupported) -> Self {
        Self::Unsupported(why)
    }
}

impl From<PathError> for CmsError {
    fn from(why: PathError) -> Self {
        Self::Signer(ProtectionError::Untrusted(why))
    }
}

impl fmt::Display for CmsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "it cannot be read: {error}"),
            Self::Unsupported(why) => why.fmt(f),
            Self::Rule(rule) => f.write_str(rule),
            Self::Signer(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for CmsError {}
