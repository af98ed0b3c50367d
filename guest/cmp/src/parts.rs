//! A message in its parts: for whoever takes messages apart and puts them together without
//! a type for each body.

use alloc::vec::Vec;

use crate::body::BodyType;
use crate::der::{Reader, Writer, tag};
use crate::error::{Context, Result, Rule};
use crate::leniency::{Leniency, Tolerant};
use crate::message::PkiMessage;

/// A PKIMessage (RFC 9810, 5.1) with nothing lost: what is DER here is as it was received.
///
/// [`encode`](Self::encode) gives back the octets that [`split`](Self::split) took apart,
/// where those were strict DER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// Who speaks to whom in which transaction.
    pub header: HeaderParts<'a>,
    /// Which alternative of PKIBody it is.
    pub body: BodyType,
    /// The one DER element inside the body's tag.
    pub content: &'a [u8],
    /// The bits of the protection.
    pub protection: Option<&'a [u8]>,
    /// DER certificates.
    pub extra_certs: Vec<&'a [u8]>,
}

/// A PKIHeader (RFC 9810, 5.1.1), field by field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderParts<'a> {
    /// The version: 2 or 3.
    pub pvno: u8,
    /// A DER GeneralName.
    pub sender: &'a [u8],
    /// A DER GeneralName.
    pub recipient: &'a [u8],
    /// The content of a GeneralizedTime, such as `20261130120000Z`.
    pub message_time: Option<&'a str>,
    /// A DER AlgorithmIdentifier.
    pub protection_alg: Option<&'a [u8]>,
    /// The octets of senderKID.
    pub sender_kid: Option<&'a [u8]>,
    /// The octets of recipKID.
    pub recip_kid: Option<&'a [u8]>,
    /// The octets of transactionID.
    pub transaction_id: Option<&'a [u8]>,
    /// The octets of senderNonce.
    pub sender_nonce: Option<&'a [u8]>,
    /// The octets of recipNonce.
    pub recip_nonce: Option<&'a [u8]>,
    /// Texts for people; absent where there is none.
    pub free_text: Vec<&'a str>,
    /// Each a DER InfoTypeAndValue; absent where there is none.
    pub general_info: Vec<&'a [u8]>,
}

impl<'a> Parts<'a> {
    /// Takes a message apart. All of it is read and checked first, as
    /// [`PkiMessage::from_der_with`] does.
    pub fn split(der: &'a [u8], leniency: Leniency) -> Result<Tolerant<Self>> {
        let message = PkiMessage::from_der_with(der, leniency)?;
        Ok(Tolerant {
            value: Self::of(&message.value)?,
            tolerations: message.tolerations,
        })
    }

    /// The parts of a message that was read.
    pub fn of(message: &PkiMessage<'a>) -> Result<Self> {
        let body = Reader::judged(message.raw_body()).any()?;
        Ok(Self {
            header: HeaderParts::of(message)?,
            body: message.body.body_type(),
            content: body.value,
            protection: message.protection,
            extra_certs: message.extra_certs.clone(),
        })
    }

    /// Puts the message together in DER.
    ///
    /// # Errors
    ///
    /// The result is read strictly before it is given out, and what breaks a rule is refused.
    /// Offsets count in the message that would have been.
    pub fn encode(&self) -> Result<Vec<u8>> {
        self.check_elements()?;
        let der = Writer::encode(|w| {
            w.sequence(|w| {
                self.header.write(w);
                w.explicit(self.body as u8, |w| w.raw(self.content));
                if let Some(bits) = self.protection {
                    w.explicit(0, |w| w.bits(tag::BIT_STRING, bits));
                }
                if !self.extra_certs.is_empty() {
                    w.explicit(1, |w| {
                        w.sequence(|w| self.extra_certs.iter().for_each(|der| w.raw(der)));
                    });
                }
            });
        });
        PkiMessage::from_der(&der)?;
        Ok(der)
    }

    /// Each part must be one element, or it could pass for several fields.
    fn check_elements(&self) -> Result<()> {
        let header = &self.header;
        one(header.sender).at("sender").at("header")?;
        one(header.recipient).at("recipient").at("header")?;
        for info in &header.general_info {
            one(info).at("generalInfo").at("header")?;
        }
        one(self.content).at(self.body.name()).at("body")?;
        for certificate in &self.extra_certs {
            one(certificate).at("extraCerts")?;
        }
        Ok(())
    }
}

fn one(der: &[u8]) -> Result<()> {
    let mut reader = Reader::new(der);
    if reader.is_empty() {
        return reader.fault(Rule::Missing("a DER element"));
    }
    reader.any()?;
    reader.finish()
}

impl<'a> HeaderParts<'a> {
    /// Walks over a header that was read before.
    fn of(message: &PkiMessage<'a>) -> Result<Self> {
        let known = &message.header;
        let mut fields = Reader::judged(message.raw_header()).sequence()?;
        fields.any()?;
        let sender = fields.any()?.raw;
        let recipient = fields.any()?.raw;
        let mut message_time = None;
        let mut protection_alg = None;
        let mut free_text = Vec::new();
        let mut general_info = Vec::new();
        while !fields.is_empty() {
            let field = fields.any()?;
            let mut inner = field.contents();
            match field.tag & 0x1f {
                0 => message_time = Some(inner.any()?.utf8()?),
                1 => protection_alg = Some(inner.any()?.raw),
                7 => free_text = inner.sequence()?.collect(|r| r.any()?.utf8())?,
                8 => general_info = inner.sequence()?.collect(|r| Ok(r.any()?.raw))?,
                _ => {}
            }
        }
        Ok(Self {
            pvno: known.pvno,
            sender,
            recipient,
            message_time,
            protection_alg,
            sender_kid: known.sender_kid,
            recip_kid: known.recip_kid,
            transaction_id: known.transaction_id,
            sender_nonce: known.sender_nonce,
            recip_nonce: known.recip_nonce,
            free_text,
            general_info,
        })
    }

    fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.integer(self.pvno.into());
            w.raw(self.sender);
            w.raw(self.recipient);
            if let Some(time) = self.message_time {
                w.explicit(0, |w| w.element(tag::GENERALIZED_TIME, time.as_bytes()));
            }
            if let Some(algorithm) = self.protection_alg {
                w.explicit(1, |w| w.raw(algorithm));
            }
            let octets = [
                (2, self.sender_kid),
                (3, self.recip_kid),
                (4, self.transaction_id),
                (5, self.sender_nonce),
                (6, self.recip_nonce),
            ];
            for (number, octets) in octets {
                if let Some(octets) = octets {
                    w.explicit(number, |w| w.octet_string(octets));
                }
            }
            if !self.free_text.is_empty() {
                w.explicit(7, |w| {
                    w.sequence(|w| self.free_text.iter().for_each(|text| w.utf8(text)));
                });
            }
            if !self.general_info.is_empty() {
                w.explicit(8, |w| {
                    w.sequence(|w| self.general_info.iter().for_each(|info| w.raw(info)));
                });
            }
        });
    }
}
