//! New CA keys and recovered keys (RFC 9810, 5.3.8, 5.3.13 and 5.3.19.15).

use alloc::vec::Vec;

use crate::cert_rep::{CertifiedKeyPair, read_certificates, write_certificates};
use crate::der::{Reader, Writer, tag};
use crate::error::{Context, Result};
use crate::status::PkiStatusInfo;

/// A CA's new key, announced.
///
/// ```text
/// CAKeyUpdContent ::= CHOICE {
///     cAKeyUpdAnnV2      CAKeyUpdAnnContent,  -- deprecated
///     cAKeyUpdAnnV3  [0] RootCaKeyUpdateContent }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaKeyUpdContent<'a> {
    /// All three certificates, each one DER element that is a SEQUENCE.
    V2 {
        /// The old key, signed with the new one.
        old_with_new: &'a [u8],
        /// The new key, signed with the old one.
        new_with_old: &'a [u8],
        /// The new key, signed with itself.
        new_with_new: &'a [u8],
    },
    /// The form of pvno 3.
    V3(RootCaKeyUpdateContent<'a>),
}

impl<'a> CaKeyUpdContent<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        if let Some(content) = reader
            .explicit(0, RootCaKeyUpdateContent::read)
            .at("cAKeyUpdAnnV3")?
        {
            return Ok(Self::V3(content));
        }
        let mut fields = reader.sequence()?;
        let old_with_new = certificate(&mut fields).at("oldWithNew")?;
        let new_with_old = certificate(&mut fields).at("newWithOld")?;
        let new_with_new = certificate(&mut fields).at("newWithNew")?;
        fields.finish()?;
        Ok(Self::V2 {
            old_with_new,
            new_with_old,
            new_with_new,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        match self {
            Self::V2 {
                old_with_new,
                new_with_old,
                new_with_new,
            } => writer.sequence(|w| {
                w.raw(old_with_new);
                w.raw(new_with_old);
                w.raw(new_with_new);
            }),
            Self::V3(content) => writer.explicit(0, |w| content.write(w)),
        }
    }
}

/// A root CA's new key (RFC 9810, 5.3.19.15).
///
/// ```text
/// RootCaKeyUpdateContent ::= SEQUENCE {
///     newWithNew      CMPCertificate,
///     newWithOld  [0] CMPCertificate OPTIONAL,
///     oldWithNew  [1] CMPCertificate OPTIONAL }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootCaKeyUpdateContent<'a> {
    /// The new key, signed with itself.
    pub new_with_new: &'a [u8],
    /// The new key, signed with the old one.
    pub new_with_old: Option<&'a [u8]>,
    /// The old key, signed with the new one.
    pub old_with_new: Option<&'a [u8]>,
}

impl<'a> RootCaKeyUpdateContent<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let content = Self {
            new_with_new: certificate(&mut fields).at("newWithNew")?,
            new_with_old: fields.explicit(0, certificate).at("newWithOld")?,
            old_with_new: fields.explicit(1, certificate).at("oldWithNew")?,
        };
        fields.finish()?;
        Ok(content)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.raw(self.new_with_new);
            for (number, certificate) in [(0, self.new_with_old), (1, self.old_with_new)] {
                if let Some(certificate) = certificate {
                    w.explicit(number, |w| w.raw(certificate));
                }
            }
        });
    }
}

/// The answer to krr (RFC 9810, 5.3.8).
///
/// ```text
/// KeyRecRepContent ::= SEQUENCE {
///     status           PKIStatusInfo,
///     newSigCert   [0] CMPCertificate                            OPTIONAL,
///     caCerts      [1] SEQUENCE SIZE (1..MAX) OF CMPCertificate   OPTIONAL,
///     keyPairHist  [2] SEQUENCE SIZE (1..MAX) OF CertifiedKeyPair OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the production above")]
pub struct KeyRecRepContent<'a> {
    pub status: PkiStatusInfo<'a>,
    pub new_sig_cert: Option<&'a [u8]>,
    pub ca_certs: Vec<&'a [u8]>,
    pub key_pair_hist: Vec<CertifiedKeyPair<'a>>,
}

impl<'a> KeyRecRepContent<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let content = Self {
            status: PkiStatusInfo::read(&mut fields).at("status")?,
            new_sig_cert: fields.explicit(0, certificate).at("newSigCert")?,
            ca_certs: fields
                .explicit(1, |reader| read_certificates(reader))
                .at("caCerts")?
                .unwrap_or_default(),
            key_pair_hist: fields
                .explicit(2, |reader| reader.sequence_of(CertifiedKeyPair::read))
                .at("keyPairHist")?
                .unwrap_or_default(),
        };
        fields.finish()?;
        Ok(content)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            self.status.write(w);
            if let Some(certificate) = self.new_sig_cert {
                w.explicit(0, |w| w.raw(certificate));
            }
            if !self.ca_certs.is_empty() {
                w.explicit(1, |w| write_certificates(w, &self.ca_certs));
            }
            if !self.key_pair_hist.is_empty() {
                w.explicit(2, |w| {
                    w.sequence(|w| self.key_pair_hist.iter().for_each(|pair| pair.write(w)));
                });
            }
        });
    }
}

/// A CMPCertificate as one element.
pub(crate) fn certificate<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    Ok(reader.element(tag::SEQUENCE, "a CMPCertificate")?.raw)
}
