//! Revocation (RFC 9810, 5.3.9, 5.3.10 and 5.3.15).

use alloc::vec::Vec;

use crate::crmf::{CertId, CertTemplate};
use crate::der::{Reader, Writer, tag};
use crate::error::{Context, Result, Rule};
use crate::status::{PkiStatus, PkiStatusInfo};
use crate::time::Time;
use crate::x509::{Extension, read_extensions, write_extensions};

/// One certificate that is to be revoked.
///
/// ```text
/// RevDetails ::= SEQUENCE {
///     certDetails      CertTemplate,
///     crlEntryDetails  Extensions OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevDetails<'a> {
    /// Which certificate.
    pub cert_details: CertTemplate<'a>,
    /// Wanted extensions of the CRL entry, the reason among them.
    pub crl_entry_details: Vec<Extension<'a>>,
}

impl<'a> RevDetails<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let cert_details = CertTemplate::read(&mut fields).at("certDetails")?;
        let crl_entry_details = optional_extensions(&mut fields).at("crlEntryDetails")?;
        fields.finish()?;
        Ok(Self {
            cert_details,
            crl_entry_details,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            self.cert_details.write(w);
            if !self.crl_entry_details.is_empty() {
                write_extensions(w, tag::SEQUENCE, &self.crl_entry_details);
            }
        });
    }
}

/// The answer to rr.
///
/// ```text
/// RevRepContent ::= SEQUENCE {
///     status        SEQUENCE SIZE (1..MAX) OF PKIStatusInfo,
///     revCerts  [0] SEQUENCE SIZE (1..MAX) OF CertId OPTIONAL,
///     crls      [1] SEQUENCE SIZE (1..MAX) OF CertificateList OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevRepContent<'a> {
    /// One outcome for each certificate, in the order of the request.
    pub status: Vec<PkiStatusInfo<'a>>,
    /// The certificates, in the same order.
    pub rev_certs: Vec<CertId<'a>>,
    /// CRLs, each one DER element that is a SEQUENCE.
    pub crls: Vec<&'a [u8]>,
}

impl<'a> RevRepContent<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let mut statuses = fields.sequence().at("status")?;
        let status = statuses.collect(PkiStatusInfo::read).at("status")?;
        if status.is_empty() {
            return statuses
                .fault(Rule::Content("no PKIStatusInfo"))
                .at("status");
        }
        let rev_certs = fields
            .explicit(0, |reader| reader.sequence_of(CertId::read))
            .at("revCerts")?
            .unwrap_or_default();
        let crls = fields
            .explicit(1, read_crls)
            .at("crls")?
            .unwrap_or_default();
        fields.finish()?;
        Ok(Self {
            status,
            rev_certs,
            crls,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.sequence(|w| self.status.iter().for_each(|status| status.write(w)));
            if !self.rev_certs.is_empty() {
                w.explicit(0, |w| {
                    w.sequence(|w| self.rev_certs.iter().for_each(|id| id.write(w)));
                });
            }
            if !self.crls.is_empty() {
                w.explicit(1, |w| {
                    w.sequence(|w| self.crls.iter().for_each(|crl| w.raw(crl)))
                });
            }
        });
    }
}

/// A CA's word that a certificate will be revoked.
///
/// ```text
/// RevAnnContent ::= SEQUENCE {
///     status           PKIStatus,
///     certId           CertId,
///     willBeRevokedAt  GeneralizedTime,
///     badSinceDate     GeneralizedTime,
///     crlDetails       Extensions OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the production above")]
pub struct RevAnnContent<'a> {
    pub status: PkiStatus,
    pub cert_id: CertId<'a>,
    pub will_be_revoked_at: Time,
    pub bad_since_date: Time,
    pub crl_details: Vec<Extension<'a>>,
}

impl<'a> RevAnnContent<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let content = Self {
            status: PkiStatus::read(&mut fields).at("status")?,
            cert_id: CertId::read(&mut fields).at("certId")?,
            will_be_revoked_at: Time::generalized(&mut fields).at("willBeRevokedAt")?,
            bad_since_date: Time::generalized(&mut fields).at("badSinceDate")?,
            crl_details: optional_extensions(&mut fields).at("crlDetails")?,
        };
        fields.finish()?;
        Ok(content)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.integer(self.status as i64);
            self.cert_id.write(w);
            self.will_be_revoked_at.write_generalized(w);
            self.bad_since_date.write_generalized(w);
            if !self.crl_details.is_empty() {
                write_extensions(w, tag::SEQUENCE, &self.crl_details);
            }
        });
    }
}

fn optional_extensions<'a>(fields: &mut Reader<'a>) -> Result<Vec<Extension<'a>>> {
    if fields.is_empty() {
        Ok(Vec::new())
    } else {
        read_extensions(fields)
    }
}

/// Reads CRLs as elements; whoever wants one parses it.
pub(crate) fn read_crls<'a>(reader: &mut Reader<'a>) -> Result<Vec<&'a [u8]>> {
    reader
        .sequence()?
        .collect(|reader| Ok(reader.element(tag::SEQUENCE, "a CertificateList")?.raw))
}
