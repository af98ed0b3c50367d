//! certConf, pollReq, pollRep and error: what keeps a transaction moving (RFC 9810, 5.3.18,
//! 5.3.21 and 5.3.22).

use alloc::vec::Vec;

use crate::der::{Integer, Reader, Writer, tag};
use crate::error::{Context, Result};
use crate::status::{PkiFreeText, PkiStatusInfo};
use crate::x509::AlgorithmIdentifier;

/// One line of a certConf (RFC 9810, 5.3.18).
///
/// ```text
/// CertStatus ::= SEQUENCE {
///     certHash        OCTET STRING,
///     certReqId       INTEGER,
///     statusInfo      PKIStatusInfo       OPTIONAL,
///     hashAlg     [0] AlgorithmIdentifier OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertStatus<'a> {
    /// The hash of the certificate.
    pub cert_hash: &'a [u8],
    /// The request it belongs to.
    pub cert_req_id: i64,
    /// Absent means accepted.
    pub status_info: Option<PkiStatusInfo<'a>>,
    /// The hash, where the certificate's signature algorithm names none.
    pub hash_alg: Option<AlgorithmIdentifier<'a>>,
}

impl<'a> CertStatus<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let cert_hash = fields
            .octet_string()
            .and_then(|hash| hash.identifier())
            .at("certHash")?;
        let cert_req_id = fields.integer().at("certReqId")?;
        let status_info = match fields.peek() {
            Some(tag::SEQUENCE) => Some(PkiStatusInfo::read(&mut fields).at("statusInfo")?),
            _ => None,
        };
        let hash_alg = fields
            .explicit(0, AlgorithmIdentifier::read)
            .at("hashAlg")?;
        fields.finish()?;
        Ok(Self {
            cert_hash,
            cert_req_id,
            status_info,
            hash_alg,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.octet_string(self.cert_hash);
            w.integer(self.cert_req_id);
            if let Some(status) = &self.status_info {
                status.write(w);
            }
            if let Some(algorithm) = &self.hash_alg {
                w.explicit(0, |w| algorithm.write(w));
            }
        });
    }
}

/// The answer to a pollReq while there is nothing to deliver (RFC 9810, 5.3.22).
pub type PollRepContent<'a> = Vec<PollRep<'a>>;

/// When to ask again (RFC 9810, 5.3.22).
///
/// ```text
/// SEQUENCE { certReqId INTEGER, checkAfter INTEGER, reason PKIFreeText OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollRep<'a> {
    /// The request that is waited for.
    pub cert_req_id: i64,
    /// In seconds.
    pub check_after: Integer<'a>,
    /// The CA's words.
    pub reason: Option<PkiFreeText<'a>>,
}

impl<'a> PollRep<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let cert_req_id = fields.integer().at("certReqId")?;
        let check_after = fields
            .element(tag::INTEGER, "an INTEGER")
            .and_then(|element| Integer::from_element(&element))
            .at("checkAfter")?;
        let reason = match fields.is_empty() {
            true => None,
            false => Some(PkiFreeText::read(&mut fields).at("reason")?),
        };
        fields.finish()?;
        Ok(Self {
            cert_req_id,
            check_after,
            reason,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.integer(self.cert_req_id);
            w.big_integer(&self.check_after);
            if let Some(reason) = &self.reason {
                reason.write(w);
            }
        });
    }
}

/// An error message (RFC 9810, 5.3.21).
///
/// ```text
/// ErrorMsgContent ::= SEQUENCE {
///     pKIStatusInfo  PKIStatusInfo,
///     errorCode      INTEGER      OPTIONAL,
///     errorDetails   PKIFreeText  OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorMsgContent<'a> {
    /// What went wrong, or `waiting`.
    pub status: PkiStatusInfo<'a>,
    /// The implementation's own number, of any size, in two's complement.
    pub error_code: Option<&'a [u8]>,
    /// The implementation's own words.
    pub error_details: Option<PkiFreeText<'a>>,
}

impl<'a> ErrorMsgContent<'a> {
    /// The content without a number and words of its own.
    pub fn new(status: PkiStatusInfo<'a>) -> Self {
        Self {
            status,
            error_code: None,
            error_details: None,
        }
    }

    /// The DER of the content.
    pub fn to_der(&self) -> Vec<u8> {
        Writer::encode(|w| self.write(w))
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let status = PkiStatusInfo::read(&mut fields).at("pKIStatusInfo")?;
        let error_code = match fields.optional(tag::INTEGER).at("errorCode")? {
            Some(code) => Some(code.big_integer().at("errorCode")?),
            None => None,
        };
        let error_details = match fields.is_empty() {
            true => None,
            false => Some(PkiFreeText::read(&mut fields).at("errorDetails")?),
        };
        fields.finish()?;
        Ok(Self {
            status,
            error_code,
            error_details,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            self.status.write(w);
            if let Some(code) = self.error_code {
                w.element(tag::INTEGER, code);
            }
            if let Some(details) = &self.error_details {
                details.write(w);
            }
        });
    }
}
