//! PKIBody (RFC 9810, 5.1.2).

use alloc::vec::Vec;

use crate::announcement::{CaKeyUpdContent, KeyRecRepContent, certificate};
use crate::cert_rep::CertRepMessage;
use crate::confirm::{CertStatus, ErrorMsgContent, PollRep, PollRepContent};
use crate::crmf::CertReqMsg;
use crate::der::{Element, Reader, Writer, tag};
use crate::error::{Context, Result, Rule};
use crate::general_info::InfoTypeAndValue;
use crate::message::read_nested;
use crate::pop::Challenge;
use crate::revocation::{RevAnnContent, RevDetails, RevRepContent, read_crls};
use crate::x509::CertificationRequest;

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
    /// Initialization response.
    Ip(CertRepMessage<'a>),
    /// Certification request.
    Cr(Vec<CertReqMsg<'a>>),
    /// Certification response.
    Cp(CertRepMessage<'a>),
    /// PKCS #10 certification request.
    P10cr(CertificationRequest<'a>),
    /// Challenges for proof of possession.
    Popdecc(Vec<Challenge<'a>>),
    /// The numbers in the challenges, in two's complement.
    Popdecr(Vec<&'a [u8]>),
    /// Key update request.
    Kur(Vec<CertReqMsg<'a>>),
    /// Key update response.
    Kup(CertRepMessage<'a>),
    /// Key recovery request.
    Krr(Vec<CertReqMsg<'a>>),
    /// Key recovery response.
    Krp(KeyRecRepContent<'a>),
    /// Revocation request.
    Rr(Vec<RevDetails<'a>>),
    /// Revocation response.
    Rp(RevRepContent<'a>),
    /// Cross-certification request.
    Ccr(Vec<CertReqMsg<'a>>),
    /// Cross-certification response.
    Ccp(CertRepMessage<'a>),
    /// Announcement of a new CA key.
    Ckuann(CaKeyUpdContent<'a>),
    /// Announcement of a certificate: one DER element that is a SEQUENCE.
    Cann(&'a [u8]),
    /// Announcement of a revocation.
    Rann(RevAnnContent<'a>),
    /// Announcement of CRLs, each one DER element that is a SEQUENCE.
    Crlann(Vec<&'a [u8]>),
    /// Acknowledgement of a confirmation.
    PkiConf,
    /// Messages inside a message, each the DER of a PKIMessage that was read once and found
    /// good (RFC 9810, 5.1.3.5).
    Nested(Vec<&'a [u8]>),
    /// General message.
    Genm(Vec<InfoTypeAndValue<'a>>),
    /// General response.
    Genp(Vec<InfoTypeAndValue<'a>>),
    /// Error message.
    Error(ErrorMsgContent<'a>),
    /// Certificate confirmation.
    CertConf(Vec<CertStatus<'a>>),
    /// Polling request: certReqIds.
    PollReq(Vec<i64>),
    /// Polling response.
    PollRep(PollRepContent<'a>),
}

impl<'a> PkiBody<'a> {
    /// Which alternative it is.
    pub fn body_type(&self) -> BodyType {
        match self {
            Self::Ir(_) => BodyType::Ir,
            Self::Ip(_) => BodyType::Ip,
            Self::Cr(_) => BodyType::Cr,
            Self::Cp(_) => BodyType::Cp,
            Self::P10cr(_) => BodyType::P10cr,
            Self::Popdecc(_) => BodyType::Popdecc,
            Self::Popdecr(_) => BodyType::Popdecr,
            Self::Kur(_) => BodyType::Kur,
            Self::Kup(_) => BodyType::Kup,
            Self::Krr(_) => BodyType::Krr,
            Self::Krp(_) => BodyType::Krp,
            Self::Rr(_) => BodyType::Rr,
            Self::Rp(_) => BodyType::Rp,
            Self::Ccr(_) => BodyType::Ccr,
            Self::Ccp(_) => BodyType::Ccp,
            Self::Ckuann(_) => BodyType::Ckuann,
            Self::Cann(_) => BodyType::Cann,
            Self::Rann(_) => BodyType::Rann,
            Self::Crlann(_) => BodyType::Crlann,
            Self::PkiConf => BodyType::PkiConf,
            Self::Nested(_) => BodyType::Nested,
            Self::Genm(_) => BodyType::Genm,
            Self::Genp(_) => BodyType::Genp,
            Self::Error(_) => BodyType::Error,
            Self::CertConf(_) => BodyType::CertConf,
            Self::PollReq(_) => BodyType::PollReq,
            Self::PollRep(_) => BodyType::PollRep,
        }
    }

    /// Reads a body. `depth` counts the messages around it.
    pub(crate) fn read(element: &Element<'a>, depth: usize) -> Result<Self> {
        let number = element.tag & 0x1f;
        let body_type = match BodyType::from_number(number) {
            Some(body_type) if element.tag & 0xe0 == 0xa0 => body_type,
            _ => {
                let rule = Rule::UnexpectedTag {
                    expected: "a PKIBody",
                    found: element.tag,
                };
                return Err(crate::Error::new(element.offset, rule));
            }
        };
        let mut reader = element.contents();
        let body = Self::read_content(body_type, &mut reader, depth).at(body_type.name())?;
        reader.finish().at(body_type.name())?;
        Ok(body)
    }

    fn read_content(body_type: BodyType, reader: &mut Reader<'a>, depth: usize) -> Result<Self> {
        Ok(match body_type {
            BodyType::Ir => Self::Ir(read_requests(reader)?),
            BodyType::Ip => Self::Ip(CertRepMessage::read(reader)?),
            BodyType::Cr => Self::Cr(read_requests(reader)?),
            BodyType::Cp => Self::Cp(CertRepMessage::read(reader)?),
            BodyType::P10cr => Self::P10cr(CertificationRequest::read(reader)?),
            BodyType::Popdecc => Self::Popdecc(reader.sequence()?.collect(Challenge::read)?),
            BodyType::Popdecr => Self::Popdecr(
                reader
                    .sequence()?
                    .collect(|reader| reader.element(tag::INTEGER, "an INTEGER")?.big_integer())?,
            ),
            BodyType::Kur => Self::Kur(read_requests(reader)?),
            BodyType::Kup => Self::Kup(CertRepMessage::read(reader)?),
            BodyType::Krr => Self::Krr(read_requests(reader)?),
            BodyType::Krp => Self::Krp(KeyRecRepContent::read(reader)?),
            BodyType::Rr => Self::Rr(reader.sequence()?.collect(RevDetails::read)?),
            BodyType::Rp => Self::Rp(RevRepContent::read(reader)?),
            BodyType::Ccr => Self::Ccr(read_requests(reader)?),
            BodyType::Ccp => Self::Ccp(CertRepMessage::read(reader)?),
            BodyType::Ckuann => Self::Ckuann(CaKeyUpdContent::read(reader)?),
            BodyType::Cann => Self::Cann(certificate(reader)?),
            BodyType::Rann => Self::Rann(RevAnnContent::read(reader)?),
            BodyType::Crlann => Self::Crlann(read_crls(reader)?),
            BodyType::PkiConf => {
                let null = reader.element(tag::NULL, "NULL")?;
                null.contents().finish()?;
                Self::PkiConf
            }
            BodyType::Nested => Self::Nested(read_nested(reader, depth)?),
            BodyType::Genm => Self::Genm(reader.sequence()?.collect(InfoTypeAndValue::read)?),
            BodyType::Genp => Self::Genp(reader.sequence()?.collect(InfoTypeAndValue::read)?),
            BodyType::Error => Self::Error(ErrorMsgContent::read(reader)?),
            BodyType::CertConf => Self::CertConf(reader.sequence()?.collect(CertStatus::read)?),
            BodyType::PollReq => Self::PollReq(reader.sequence()?.collect(|reader| {
                let mut entry = reader.sequence()?;
                let cert_req_id = entry.integer().at("certReqId")?;
                entry.finish()?;
                Ok(cert_req_id)
            })?),
            BodyType::PollRep => Self::PollRep(reader.sequence()?.collect(PollRep::read)?),
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.explicit(self.body_type() as u8, |w| match self {
            Self::Ir(requests)
            | Self::Cr(requests)
            | Self::Kur(requests)
            | Self::Krr(requests)
            | Self::Ccr(requests) => sequence_of(w, requests, CertReqMsg::write),
            Self::Ip(response) | Self::Cp(response) | Self::Kup(response) | Self::Ccp(response) => {
                response.write(w);
            }
            Self::P10cr(request) => w.raw(request.raw),
            Self::Popdecc(challenges) => sequence_of(w, challenges, Challenge::write),
            Self::Popdecr(numbers) => {
                sequence_of(w, numbers, |number, w| w.element(tag::INTEGER, number));
            }
            Self::Krp(content) => content.write(w),
            Self::Rr(details) => sequence_of(w, details, RevDetails::write),
            Self::Rp(content) => content.write(w),
            Self::Ckuann(content) => content.write(w),
            Self::Cann(certificate) => w.raw(certificate),
            Self::Rann(content) => content.write(w),
            Self::Crlann(ders) | Self::Nested(ders) => sequence_of(w, ders, |der, w| w.raw(der)),
            Self::PkiConf => w.null(),
            Self::Genm(infos) | Self::Genp(infos) => sequence_of(w, infos, InfoTypeAndValue::write),
            Self::Error(error) => error.write(w),
            Self::CertConf(statuses) => sequence_of(w, statuses, CertStatus::write),
            Self::PollReq(ids) => sequence_of(w, ids, |id, w| w.sequence(|w| w.integer(*id))),
            Self::PollRep(entries) => sequence_of(w, entries, PollRep::write),
        });
    }
}

fn sequence_of<T>(writer: &mut Writer, items: &[T], write: impl Fn(&T, &mut Writer)) {
    writer.sequence(|w| items.iter().for_each(|item| write(item, w)));
}

fn read_requests<'a>(reader: &mut Reader<'a>) -> Result<Vec<CertReqMsg<'a>>> {
    let mut contents = reader.sequence()?;
    let requests = contents.collect(CertReqMsg::read)?;
    if requests.is_empty() {
        return contents.fault(Rule::Content("CertReqMessages without a request"));
    }
    Ok(requests)
}
