//! PKIHeader (RFC 9810, 5.1.1).

use alloc::vec::Vec;

use crate::der::{Element, Reader, Writer};
use crate::error::{Context, Error, Result, Rule};
use crate::general_info::InfoTypeAndValue;
use crate::name::GeneralName;
use crate::oid;
use crate::status::PkiFreeText;
use crate::time::Time;
use crate::x509::AlgorithmIdentifier;

/// `cmp2000`, the version of RFC 4210 and the one to use where no later feature is
/// needed (RFC 9810, 7).
pub const PVNO_2: u8 = 2;

/// `cmp2021`, for messages with EnvelopedData, hashAlg or what else is newer than RFC 4210
/// (RFC 9810, 7).
pub const PVNO_3: u8 = 3;

/// Who speaks to whom in which transaction (RFC 9810, 5.1.1).
///
/// ```text
/// PKIHeader ::= SEQUENCE {
///     pvno                INTEGER { cmp1999(1), cmp2000(2), cmp2021(3) },
///     sender              GeneralName,
///     recipient           GeneralName,
///     messageTime     [0] GeneralizedTime     OPTIONAL,
///     protectionAlg   [1] AlgorithmIdentifier OPTIONAL,
///     senderKID       [2] KeyIdentifier       OPTIONAL,
///     recipKID        [3] KeyIdentifier       OPTIONAL,
///     transactionID   [4] OCTET STRING        OPTIONAL,
///     senderNonce     [5] OCTET STRING        OPTIONAL,
///     recipNonce      [6] OCTET STRING        OPTIONAL,
///     freeText        [7] PKIFreeText         OPTIONAL,
///     generalInfo     [8] SEQUENCE SIZE (1..MAX) OF InfoTypeAndValue OPTIONAL }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the production above")]
pub struct PkiHeader<'a> {
    pub pvno: u8,
    pub sender: GeneralName<'a>,
    pub recipient: GeneralName<'a>,
    pub message_time: Option<Time>,
    pub protection_alg: Option<AlgorithmIdentifier<'a>>,
    pub sender_kid: Option<&'a [u8]>,
    pub recip_kid: Option<&'a [u8]>,
    pub transaction_id: Option<&'a [u8]>,
    pub sender_nonce: Option<&'a [u8]>,
    pub recip_nonce: Option<&'a [u8]>,
    pub free_text: Option<PkiFreeText<'a>>,
    pub general_info: Vec<InfoTypeAndValue<'a>>,
}

impl<'a> PkiHeader<'a> {
    /// A header with nothing in it but its ends.
    pub fn new(sender: GeneralName<'a>, recipient: GeneralName<'a>) -> Self {
        Self {
            pvno: PVNO_2,
            sender,
            recipient,
            message_time: None,
            protection_alg: None,
            sender_kid: None,
            recip_kid: None,
            transaction_id: None,
            sender_nonce: None,
            recip_nonce: None,
            free_text: None,
            general_info: Vec::new(),
        }
    }

    /// Whether implicitConfirm is in generalInfo with its value NULL
    /// (RFC 9810, 5.1.1.1).
    pub fn implicit_confirm(&self) -> bool {
        self.general_info
            .contains(&InfoTypeAndValue::IMPLICIT_CONFIRM)
    }

    /// The time until which the peer waits for certConf (RFC 9810, 5.1.1.2).
    pub fn confirm_wait_time(&self) -> Option<Time> {
        let info = self
            .general_info
            .iter()
            .find(|i| i.info_type == oid::IT_CONFIRM_WAIT_TIME)?;
        Time::generalized(&mut Reader::new(info.value?)).ok()
    }

    pub(crate) fn read(element: &Element<'a>) -> Result<Self> {
        let mut fields = element.contents();
        let at = fields.offset();
        let version = fields.integer().at("pvno")?;
        let pvno = match version {
            2 => 2,
            3 => 3,
            other => return Err(Error::new(at, Rule::Version(other))).at("pvno"),
        };
        let sender = GeneralName::read(&mut fields).at("sender")?;
        let recipient = GeneralName::read(&mut fields).at("recipient")?;
        let identifier = |reader: &mut Reader<'a>| reader.octet_string()?.identifier();
        let header = Self {
            pvno,
            sender,
            recipient,
            message_time: fields.explicit(0, Time::generalized).at("messageTime")?,
            protection_alg: fields
                .explicit(1, AlgorithmIdentifier::read)
                .at("protectionAlg")?,
            sender_kid: fields.explicit(2, identifier).at("senderKID")?,
            recip_kid: fields.explicit(3, identifier).at("recipKID")?,
            transaction_id: fields.explicit(4, identifier).at("transactionID")?,
            sender_nonce: fields.explicit(5, identifier).at("senderNonce")?,
            recip_nonce: fields.explicit(6, identifier).at("recipNonce")?,
            free_text: fields.explicit(7, PkiFreeText::read).at("freeText")?,
            general_info: fields
                .explicit(8, |reader| reader.sequence_of(InfoTypeAndValue::read))
                .at("generalInfo")?
                .unwrap_or_default(),
        };
        fields.finish()?;
        Ok(header)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.integer(self.pvno.into());
            self.sender.write(w);
            self.recipient.write(w);
            if let Some(time) = self.message_time {
                w.explicit(0, |w| time.write_generalized(w));
            }
            if let Some(algorithm) = &self.protection_alg {
                w.explicit(1, |w| algorithm.write(w));
            }
            let identifiers = [
                (2, self.sender_kid),
                (3, self.recip_kid),
                (4, self.transaction_id),
                (5, self.sender_nonce),
                (6, self.recip_nonce),
            ];
            for (number, identifier) in identifiers {
                if let Some(identifier) = identifier {
                    w.explicit(number, |w| w.octet_string(identifier));
                }
            }
            if let Some(text) = &self.free_text {
                w.explicit(7, |w| text.write(w));
            }
            if !self.general_info.is_empty() {
                w.explicit(8, |w| {
                    w.sequence(|w| self.general_info.iter().for_each(|info| info.write(w)));
                });
            }
        });
    }
}
