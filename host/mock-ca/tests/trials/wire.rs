//! Messages, read and changed.

use abide_cmp::protection::{Anchors, MacAlgorithm, Policy, SoftwareVerifier, verify_signature};
use abide_cmp::{
    Certificate, Draft, ErrorMsgContent, PkiBody, PkiHeader, PkiMessage, PkiStatusInfo, Time,
};

use crate::world::{self, World};

/// What the tests want to know of a message.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) kind: &'static str,
    pub(crate) status: String,
    pub(crate) fail_info: String,
    pub(crate) cert_req_id: Option<i64>,
    pub(crate) check_after: Option<i64>,
    pub(crate) ca_pubs: usize,
    pub(crate) extra_certs: usize,
    pub(crate) sender_nonce: Vec<u8>,
    pub(crate) recip_nonce: Vec<u8>,
    pub(crate) transaction_id: Vec<u8>,
}

impl Message {
    pub(crate) fn read(der: &[u8]) -> Self {
        let message = PkiMessage::from_der(der).unwrap();
        let octets = |octets: Option<&[u8]>| octets.unwrap_or_default().to_vec();
        let mut read = Self {
            kind: message.body.body_type().name(),
            status: String::new(),
            fail_info: String::new(),
            cert_req_id: None,
            check_after: None,
            ca_pubs: 0,
            extra_certs: message.extra_certs.len(),
            sender_nonce: octets(message.header.sender_nonce),
            recip_nonce: octets(message.header.recip_nonce),
            transaction_id: octets(message.header.transaction_id),
        };
        match &message.body {
            PkiBody::Ip(content) | PkiBody::Cp(content) => {
                read.ca_pubs = content.ca_pubs.len();
                read.cert_req_id = Some(content.responses[0].cert_req_id);
                read.set_status(&content.responses[0].status);
            }
            PkiBody::Error(ErrorMsgContent { status, .. }) => read.set_status(status),
            PkiBody::PollRep(entries) => {
                read.cert_req_id = Some(entries[0].cert_req_id);
                read.check_after = Some(entries[0].check_after.saturating());
            }
            _ => {}
        }
        read
    }

    fn set_status(&mut self, info: &PkiStatusInfo<'_>) {
        self.status = info.status.name().into();
        let names: Vec<_> = info
            .fail_info
            .into_iter()
            .flat_map(|set| set.names())
            .collect();
        self.fail_info = names.join(" ");
    }
}

/// A message with another header and body, under the same MAC algorithm and secret.
pub(crate) fn changed<'a>(
    der: &'a [u8],
    change: impl FnOnce(&mut PkiHeader<'a>, &mut PkiBody<'a>),
) -> Vec<u8> {
    let mut message = PkiMessage::from_der(der).unwrap();
    change(&mut message.header, &mut message.body);
    let algorithm = message.header.protection_alg.unwrap();
    let algorithm = MacAlgorithm::from_identifier(&algorithm, Policy::default()).unwrap();
    let draft = Draft::new(&message.header, &message.body);
    let bits = algorithm.compute(world::SECRET.as_bytes(), &draft.protected_part());
    draft.finish(Some(&bits), &message.extra_certs)
}

/// A message as the next one of its transaction: it refers to the last answer and has a
/// nonce of its own.
pub(crate) fn as_next(der: &[u8], last_answer: &[u8], sender_nonce: &[u8]) -> Vec<u8> {
    let recip_nonce = Message::read(last_answer).sender_nonce;
    changed(der, |header, _| {
        header.recip_nonce = Some(&recip_nonce);
        header.sender_nonce = Some(sender_nonce);
    })
}

/// Whether a message is signed by who the root vouches for.
pub(crate) fn is_signed_by_ca(world: &World, der: &[u8]) -> bool {
    world.openssl(&[
        "x509",
        "-in",
        world::ROOT,
        "-outform",
        "DER",
        "-out",
        "root.der",
    ]);
    let root = world.bytes("root.der");
    let trusted = [Certificate::from_der(&root).unwrap()];
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let now = Time::from_unix(since.as_secs().try_into().unwrap());
    let anchors = Anchors::new(&trusted, now);
    let message = PkiMessage::from_der(der).unwrap();
    verify_signature(&message, anchors, &SoftwareVerifier).is_ok()
}
