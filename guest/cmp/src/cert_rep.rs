//! CertRepMessage, the answer to a request for a certificate (RFC 9810, 5.3.4).

use alloc::vec::Vec;

use crate::der::{Reader, Writer, tag};
use crate::encrypted::EncryptedKey;
use crate::error::{Context, Result, Rule};
use crate::status::PkiStatusInfo;

/// The answer to ir, cr, kur and p10cr (RFC 9810, 5.3.4).
///
/// ```text
/// CertRepMessage ::= SEQUENCE {
///     caPubs   [1] SEQUENCE SIZE (1..MAX) OF CMPCertificate OPTIONAL,
///     response     SEQUENCE OF CertResponse }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertRepMessage<'a> {
    /// Certificates of the CA, each one DER element that is a SEQUENCE.
    pub ca_pubs: Vec<&'a [u8]>,
    /// One response for each request.
    pub responses: Vec<CertResponse<'a>>,
}

impl<'a> CertRepMessage<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let ca_pubs = fields
            .explicit(1, |reader| read_certificates(reader))
            .at("caPubs")?
            .unwrap_or_default();
        let responses = fields
            .sequence()?
            .collect(CertResponse::read)
            .at("response")?;
        fields.finish()?;
        Ok(Self { ca_pubs, responses })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            if !self.ca_pubs.is_empty() {
                w.explicit(1, |w| write_certificates(w, &self.ca_pubs));
            }
            w.sequence(|w| self.responses.iter().for_each(|response| response.write(w)));
        });
    }
}

/// Reads certificates as elements: an unreadable one that is not needed must not sink
/// a message.
pub(crate) fn read_certificates<'a>(reader: &mut Reader<'a>) -> Result<Vec<&'a [u8]>> {
    reader.sequence_of(crate::announcement::certificate)
}

pub(crate) fn write_certificates<C: AsRef<[u8]>>(writer: &mut Writer, certificates: &[C]) {
    writer.sequence(|w| certificates.iter().for_each(|der| w.raw(der.as_ref())));
}

/// The answer to one request (RFC 9810, 5.3.4).
///
/// ```text
/// CertResponse ::= SEQUENCE {
///     certReqId         INTEGER,
///     status            PKIStatusInfo,
///     certifiedKeyPair  CertifiedKeyPair OPTIONAL,
///     rspInfo           OCTET STRING     OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertResponse<'a> {
    /// The request that is answered; −1 for a p10cr.
    pub cert_req_id: i64,
    /// The outcome.
    pub status: PkiStatusInfo<'a>,
    /// The certificate, where one was granted.
    pub certified_key_pair: Option<CertifiedKeyPair<'a>>,
    /// rspInfo.
    pub rsp_info: Option<&'a [u8]>,
}

impl<'a> CertResponse<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let cert_req_id = fields.integer().at("certReqId")?;
        let status = PkiStatusInfo::read(&mut fields).at("status")?;
        let certified_key_pair = match fields.peek() {
            Some(tag::SEQUENCE) => {
                Some(CertifiedKeyPair::read(&mut fields).at("certifiedKeyPair")?)
            }
            _ => None,
        };
        let rsp_info = fields
            .optional(tag::OCTET_STRING)
            .at("rspInfo")?
            .map(|info| info.value);
        fields.finish()?;
        Ok(Self {
            cert_req_id,
            status,
            certified_key_pair,
            rsp_info,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.integer(self.cert_req_id);
            self.status.write(w);
            if let Some(pair) = &self.certified_key_pair {
                pair.write(w);
            }
            if let Some(info) = self.rsp_info {
                w.octet_string(info);
            }
        });
    }
}

/// A certificate, and for central key generation its key (RFC 9810, 5.3.4).
///
/// ```text
/// CertifiedKeyPair ::= SEQUENCE {
///     certOrEncCert        CertOrEncCert,
///     privateKey       [0] EncryptedKey       OPTIONAL,
///     publicationInfo  [1] PKIPublicationInfo OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedKeyPair<'a> {
    /// The certificate.
    pub cert_or_enc_cert: CertOrEncCert<'a>,
    /// The private key, where the CA made it.
    pub private_key: Option<EncryptedKey<'a>>,
    /// The element inside `[1]`.
    pub publication_info: Option<&'a [u8]>,
}

impl<'a> CertifiedKeyPair<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let certificate =
            |reader: &mut Reader<'a>| Ok(reader.element(tag::SEQUENCE, "a CMPCertificate")?.raw);
        let any = |reader: &mut Reader<'a>| Ok(reader.any()?.raw);
        let cert_or_enc_cert = match fields.explicit(0, certificate).at("certificate")? {
            Some(certificate) => CertOrEncCert::Certificate(certificate),
            None => match fields.explicit(1, EncryptedKey::read).at("encryptedCert")? {
                Some(encrypted) => CertOrEncCert::EncryptedCert(encrypted),
                None => return fields.fault(Rule::Missing("certOrEncCert")),
            },
        };
        let private_key = fields.explicit(0, EncryptedKey::read).at("privateKey")?;
        let publication_info = fields.explicit(1, any).at("publicationInfo")?;
        fields.finish()?;
        Ok(Self {
            cert_or_enc_cert,
            private_key,
            publication_info,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            match &self.cert_or_enc_cert {
                CertOrEncCert::Certificate(der) => w.explicit(0, |w| w.raw(der)),
                CertOrEncCert::EncryptedCert(key) => w.explicit(1, |w| key.write(w)),
            }
            if let Some(key) = &self.private_key {
                w.explicit(0, |w| key.write(w));
            }
            if let Some(info) = self.publication_info {
                w.explicit(1, |w| w.raw(info));
            }
        });
    }
}

/// A certificate in clear or encrypted for proof of possession (RFC 9810, 5.3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertOrEncCert<'a> {
    /// `[0]`: one DER element that is a SEQUENCE.
    Certificate(&'a [u8]),
    /// `[1]`: encrypted for whoever holds the private key.
    EncryptedCert(EncryptedKey<'a>),
}
