//! Answers: header, protection and certificates around a body.

use abide_cmp::protection::{Hash, MacAlgorithm, SignatureAlgorithm};
use abide_cmp::{
    AlgorithmIdentifier, Draft, ErrorMsgContent, GeneralName, InfoTypeAndValue, Name, PVNO_2,
    PkiBody, PkiHeader, PkiMessage, PkiStatusInfo, Time,
};

use crate::authority::Authority;
use crate::client::{Client, Gate};
use crate::limits;
use crate::random;
use crate::refusal::Refusal;

/// What an answer repeats from its request.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    pvno: u8,
    recipient: GeneralName<'a>,
    transaction_id: Option<&'a [u8]>,
    recip_nonce: Option<&'a [u8]>,
    now: Time,
}

impl<'a> Envelope<'a> {
    /// For the answer to a message.
    pub(crate) fn to(message: &PkiMessage<'a>, now: Time) -> Self {
        Self {
            pvno: message.header.pvno,
            recipient: message.header.sender.clone(),
            transaction_id: message.header.transaction_id,
            recip_nonce: message.header.sender_nonce,
            now,
        }
    }

    /// The header of an answer that nobody protects.
    pub(crate) fn header(&self, sender: &GeneralName<'a>) -> PkiHeader<'a> {
        let mut header = PkiHeader::new(sender.clone(), self.recipient.clone());
        header.pvno = self.pvno;
        header.message_time = Some(self.now);
        header.transaction_id = self.transaction_id;
        header.sender_nonce = self.recip_nonce;
        header.recip_nonce = self.recip_nonce;
        header
    }

    /// For the answer to octets that are not a message.
    pub(crate) fn to_unknown(now: Time) -> Self {
        Self {
            pvno: PVNO_2,
            recipient: GeneralName::Directory(Name::NULL),
            transaction_id: None,
            recip_nonce: None,
            now,
        }
    }
}

/// What goes into an answer.
#[derive(Debug)]
pub(crate) struct Content<'a> {
    /// What it says.
    pub(crate) body: PkiBody<'a>,
    /// Whether it grants implicit confirmation.
    pub(crate) implicit_confirm: bool,
    /// Whether it delivers a certificate, whose chain comes along.
    pub(crate) delivers: bool,
}

impl<'a> From<PkiBody<'a>> for Content<'a> {
    fn from(body: PkiBody<'a>) -> Self {
        Self {
            body,
            implicit_confirm: false,
            delivers: false,
        }
    }
}

/// The body of an error.
pub(crate) fn error_body(refusal: &Refusal) -> PkiBody<'_> {
    PkiBody::Error(ErrorMsgContent {
        status: PkiStatusInfo::rejection(refusal.fail_info, refusal.text.as_str()),
        error_code: None,
        error_details: None,
    })
}

/// Protects an answer as its client protected the request; with a signature when it is
/// not known who the client is.
pub(crate) fn seal(
    envelope: &Envelope<'_>,
    content: &Content<'_>,
    client: Option<&Client>,
    authority: &Authority,
    gate: &Gate<'_>,
) -> anyhow::Result<Vec<u8>> {
    let sender_nonce = random::octets::<{ limits::NONCE }>()?;
    let sender = match client {
        Some(Client::Secret { .. }) => &authority.root.subject,
        _ => &authority.signer.subject,
    };
    let mut header = PkiHeader::new(
        GeneralName::Directory(sender.clone()),
        envelope.recipient.clone(),
    );
    header.pvno = envelope.pvno;
    header.message_time = Some(envelope.now);
    header.transaction_id = envelope.transaction_id;
    header.sender_nonce = Some(&sender_nonce);
    header.recip_nonce = envelope.recip_nonce;
    if content.implicit_confirm {
        header.general_info.push(InfoTypeAndValue::IMPLICIT_CONFIRM);
    }

    let chain = [&authority.signer.certificate, &authority.root.certificate];
    if let Some(&Client::Secret { owf, mac }) = client {
        let salt = random::octets::<{ limits::NONCE }>()?;
        let iterations = limits::MAC_ITERATIONS;
        let algorithm = MacAlgorithm::PasswordBased {
            salt: &salt,
            owf,
            iterations,
            mac,
        };
        let parameters = algorithm.parameters();
        header.protection_alg = Some(AlgorithmIdentifier {
            oid: algorithm.oid(),
            parameters: Some(&parameters),
        });
        header.sender_kid = Some(gate.reference);
        let draft = Draft::new(&header, &content.body);
        let bits = algorithm.compute(gate.secret, &draft.protected_part());
        // A MAC needs no certificates to be checked with (RFC 9483, 4.1.5).
        let certificates = if content.delivers { &chain[..] } else { &[] };
        Ok(draft.finish(Some(&bits), certificates))
    } else {
        let algorithm = SignatureAlgorithm::Ecdsa(Hash::Sha256);
        header.protection_alg = Some(AlgorithmIdentifier::bare(algorithm.oid()));
        header.sender_kid = Some(&authority.signer.key_id);
        let draft = Draft::new(&header, &content.body);
        let bits = authority.signer.sign(&draft.protected_part());
        Ok(draft.finish(Some(&bits), &chain))
    }
}
