//! PKIBody (RFC 9810, 5.1.2) and the contents that an enrollment uses.

use alloc::vec::Vec;

use crate::crmf::CertReqMsg;
use crate::der::{Element, Reader, Writer, tag};
use crate::error::{Context, Result, Rule};
use crate::status::{PkiFreeText, PkiStatusInfo};
use crate::x509::{AlgorithmIdentifier, CertificationRequest};

/// The alternatives of PKIBody, numbered by their tags (RFC 9810, 5.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the production")]
#[repr(u8)]
pub enum BodyType {
    Ir = 0,
    Ip = 1,
    Cr = 2,
    Cp = 3,
    P10cr = 4,
    Popdecc = 5,
    Popdecr = 6,
    Kur = 7,
    Kup = 8,
    Krr = 9,
    Krp = 10,
    Rr = 11,
    Rp = 12,
    Ccr = 13,
    Ccp = 14,
    Ckuann = 15,
    Cann = 16,
    Rann = 17,
    Crlann = 18,
    PkiConf = 19,
    Nested = 20,
    Genm = 21,
    Genp = 22,
    Error = 23,
    CertConf = 24,
    PollReq = 25,
    PollRep = 26,
}

impl BodyType {
    const ALL: [(Self, &'static str); 27] = [
        (Self::Ir, "ir"),
        (Self::Ip, "ip"),
        (Self::Cr, "cr"),
        (Self::Cp, "cp"),
        (Self::P10cr, "p10cr"),
        (Self::Popdecc, "popdecc"),
        (Self::Popdecr, "popdecr"),
        (Self::Kur, "kur"),
        (Self::Kup, "kup"),
        (Self::Krr, "krr"),
        (Self::Krp, "krp"),
        (Self::Rr, "rr"),
        (Self::Rp, "rp"),
        (Self::Ccr, "ccr"),
        (Self::Ccp, "ccp"),
        (Self::Ckuann, "ckuann"),
        (Self::Cann, "cann"),
        (Self::Rann, "rann"),
        (Self::Crlann, "crlann"),
        (Self::PkiConf, "pkiconf"),
        (Self::Nested, "nested"),
        (Self::Genm, "genm"),
        (Self::Genp, "genp"),
        (Self::Error, "error"),
        (Self::CertConf, "certConf"),
        (Self::PollReq, "pollReq"),
        (Self::PollRep, "pollRep"),
    ];

    /// The alternative with this tag number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL
            .get(usize::from(number))
            .map(|&(body_type, _)| body_type)
    }

    /// The name in the RFC.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// What a message says (RFC 9810, 5.1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PkiBody<'a> {
    /// Initialization request.
    Ir(Vec<CertReqMsg<'a>>),
    /// Certification request.
    Cr(Vec<CertReqMsg<'a>>),
    /// Initialization response.
    Ip(CertRepMessage<'a>),
    /// Certification response.
    Cp(CertRepMessage<'a>),
    /// PKCS #10 certification request.
    P10cr(CertificationRequest<'a>),
    /// Certificate confirmation.
    CertConf(Vec<CertStatus<'a>>),
    /// Acknowledgement of a confirmation.
    PkiConf,
    /// Polling request: certReqIds.
    PollReq(Vec<i64>),
    /// Polling response.
    PollRep(PollRepContent<'a>),
    /// Error message.
    Error(ErrorMsgContent<'a>),
    /// An alternative whose content is not interpreted: its DER.
    Other(BodyType, &'a [u8]),
}

impl<'a> PkiBody<'a> {
    /// Which alternative it is.
    pub fn body_type(&self) -> BodyType {
        match self {
            Self::Ir(_) => BodyType::Ir,
            Self::Cr(_) => BodyType::Cr,
            Self::Ip(_) => BodyType::Ip,
            Self::Cp(_) => BodyType::Cp,
            Self::P10cr(_) => BodyType::P10cr,
            Self::CertConf(_) => BodyType::CertConf,
            Self::PkiConf => BodyType::PkiConf,
            Self::PollReq(_) => BodyType::PollReq,
            Self::PollRep(_) => BodyType::PollRep,
            Self::Error(_) => BodyType::Error,
            Self::Other(body_type, _) => *body_type,
        }
    }

    pub(crate) fn read(element: &Element<'a>) -> Result<Self> {
        let number = element.tag & 0x1f;
        let body_type = match BodyType::from_number(number) {
            Some(body_type) if element.tag & 0xe0 == 0xa0 => body_type,
            _ => {
                return element.contents().fault(Rule::UnexpectedTag {
                    expected: "a PKIBody",
                    found: element.tag,
                });
            }
        };
        let mut reader = element.contents();
        let body = Self::read_content(body_type, &mut reader).at(body_type.name())?;
        reader.finish().at(body_type.name())?;
        Ok(body)
    }

    fn read_content(body_type: BodyType, reader: &mut Reader<'a>) -> Result<Self> {
        Ok(match body_type {
            BodyType::Ir => Self::Ir(read_requests(reader)?),
            BodyType::Cr => Self::Cr(read_requests(reader)?),
            BodyType::Ip => Self::Ip(CertRepMessage::read(reader)?),
            BodyType::Cp => Self::Cp(CertRepMessage::read(reader)?),
            BodyType::P10cr => Self::P10cr(CertificationRequest::read(reader)?),
            BodyType::CertConf => Self::CertConf(reader.sequence()?.collect(CertStatus::read)?),
            BodyType::PkiConf => {
                let null = reader.element(tag::NULL, "NULL")?;
                null.contents().finish()?;
                Self::PkiConf
            }
            BodyType::PollReq => Self::PollReq(reader.sequence()?.collect(|reader| {
                let mut entry = reader.sequence()?;
                let cert_req_id = entry.integer().at("certReqId")?;
                entry.finish()?;
                Ok(cert_req_id)
            })?),
            BodyType::PollRep => Self::PollRep(reader.sequence()?.collect(PollRep::read)?),
            BodyType::Error => Self::Error(ErrorMsgContent::read(reader)?),
            other => Self::Other(other, reader.any()?.raw),
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.explicit(self.body_type() as u8, |w| match self {
            Self::Ir(requests) | Self::Cr(requests) => {
                w.sequence(|w| requests.iter().for_each(|request| request.write(w)));
            }
            Self::Ip(response) | Self::Cp(response) => response.write(w),
            Self::P10cr(request) => w.raw(request.raw),
            Self::CertConf(statuses) => {
                w.sequence(|w| statuses.iter().for_each(|status| status.write(w)));
            }
            Self::PkiConf => w.null(),
            Self::PollReq(ids) => w.sequence(|w| {
                ids.iter().for_each(|&id| w.sequence(|w| w.integer(id)));
            }),
            Self::PollRep(entries) => {
                w.sequence(|w| entries.iter().for_each(|entry| entry.write(w)));
            }
            Self::Error(error) => error.write(w),
            Self::Other(_, content) => w.raw(content),
        });
    }
}

fn read_requests<'a>(reader: &mut Reader<'a>) -> Result<Vec<CertReqMsg<'a>>> {
    let mut contents = reader.sequence()?;
    let requests = contents.collect(CertReqMsg::read)?;
    if requests.is_empty() {
        return contents.fault(Rule::Content("CertReqMessages without a request"));
    }
    Ok(requests)
}

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
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
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

    fn write(&self, writer: &mut Writer) {
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
    reader
        .sequence()?
        .collect(|reader| Ok(reader.element(tag::SEQUENCE, "a CMPCertificate")?.raw))
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
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
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

    fn write(&self, writer: &mut Writer) {
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
    /// The element inside `[0]`.
    pub private_key: Option<&'a [u8]>,
    /// The element inside `[1]`.
    pub publication_info: Option<&'a [u8]>,
}

impl<'a> CertifiedKeyPair<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let certificate =
            |reader: &mut Reader<'a>| Ok(reader.element(tag::SEQUENCE, "a CMPCertificate")?.raw);
        let any = |reader: &mut Reader<'a>| Ok(reader.any()?.raw);
        let cert_or_enc_cert = match fields.explicit(0, certificate).at("certificate")? {
            Some(certificate) => CertOrEncCert::Certificate(certificate),
            None => match fields.explicit(1, any).at("encryptedCert")? {
                Some(encrypted) => CertOrEncCert::EncryptedCert(encrypted),
                None => return fields.fault(Rule::Missing("certOrEncCert")),
            },
        };
        let private_key = fields.explicit(0, any).at("privateKey")?;
        let publication_info = fields.explicit(1, any).at("publicationInfo")?;
        fields.finish()?;
        Ok(Self {
            cert_or_enc_cert,
            private_key,
            publication_info,
        })
    }

    fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            match self.cert_or_enc_cert {
                CertOrEncCert::Certificate(der) => w.explicit(0, |w| w.raw(der)),
                CertOrEncCert::EncryptedCert(der) => w.explicit(1, |w| w.raw(der)),
            }
            if let Some(key) = self.private_key {
                w.explicit(0, |w| w.raw(key));
            }
            if let Some(info) = self.publication_info {
                w.explicit(1, |w| w.raw(info));
            }
        });
    }
}

/// A certificate in clear or encrypted for proof of possession (RFC 9810, 5.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertOrEncCert<'a> {
    /// `[0]`: one DER element that is a SEQUENCE.
    Certificate(&'a [u8]),
    /// `[1]`: the element inside.
    EncryptedCert(&'a [u8]),
}

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
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
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

    fn write(&self, writer: &mut Writer) {
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
    /// In seconds. A value beyond 64 bits is read as the nearest that fits.
    pub check_after: i64,
    /// The CA's words.
    pub reason: Option<PkiFreeText<'a>>,
}

impl<'a> PollRep<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut fields = reader.sequence()?;
        let cert_req_id = fields.integer().at("certReqId")?;
        let check_after = fields
            .element(tag::INTEGER, "an INTEGER")
            .at("checkAfter")?;
        let octets = check_after.big_integer().at("checkAfter")?;
        let check_after = match check_after.integer() {
            Ok(seconds) => seconds,
            Err(_) if octets[0] & 0x80 != 0 => i64::MIN,
            Err(_) => i64::MAX,
        };
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

    fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.integer(self.cert_req_id);
            w.integer(self.check_after);
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
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
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

    fn write(&self, writer: &mut Writer) {
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
