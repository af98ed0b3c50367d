//! Faults for which the CA's keys are needed, and one for which none are.

use abide_cmp::protection::{Policy, ProtectionError, ProtectionKind, protection_kind, verify_mac};
use abide_cmp::{Draft, FailInfo, PkiMessage, Time};

use super::{Answered, Ca};
use crate::chaos::Fault;
use crate::envelope::{Envelope, error_body};
use crate::refusal::Refusal;
use crate::{limits, random};

impl Ca {
    /// Answers a request in the way of a fault; as always when that fault is not the CA's.
    pub(crate) fn handle_faulty(
        &mut self,
        octets: &[u8],
        now: Time,
        fault: Option<Fault>,
    ) -> anyhow::Result<Answered> {
        match fault {
            Some(Fault::Duplicate) => {
                self.handle(octets, now)?;
                self.handle(octets, now)
            }
            Some(Fault::Waiting) => {
                self.put_off_once = true;
                let answered = self.handle(octets, now);
                self.put_off_once = false;
                answered
            }
            Some(Fault::TransactionIdInUse) => {
                self.in_use_once = true;
                let answered = self.handle(octets, now);
                self.in_use_once = false;
                answered
            }
            Some(Fault::WrongNonce) => {
                let mut answered = self.handle(octets, now)?;
                answered.octets = self.with_another_nonce(&answered.octets)?;
                Ok(answered)
            }
            _ => self.handle(octets, now),
        }
    }

    /// The answers before the one that counts.
    pub(super) fn poll_count(&self) -> u32 {
        self.options.poll_count + u32::from(self.put_off_once)
    }

    /// Under the protection that it had: what is remembered for a repetition stays as it was.
    fn with_another_nonce(&self, octets: &[u8]) -> anyhow::Result<Vec<u8>> {
        let message = PkiMessage::from_der(octets)?;
        let nonce = random::octets::<{ limits::NONCE }>()?;
        let mut header = message.header.clone();
        header.recip_nonce = Some(&nonce);
        let draft = Draft::new(&header, &message.body);
        let part = draft.protected_part();
        let mut bits = Vec::new();
        if protection_kind(&message) == ProtectionKind::Mac {
            let secret = &self.options.secret;
            verify_mac::<ProtectionError>(&message, Policy::default(), |algorithm, data| {
                bits = algorithm.compute(secret, &part);
                Ok(algorithm.compute(secret, data))
            })?;
        } else {
            bits = self.authority.signer.sign(&part);
        }
        Ok(draft.finish(Some(&bits), &message.extra_certs))
    }
}

/// A refusal without protection, in answer to a request; none when it cannot be read.
pub(crate) fn unprotected_error(octets: &[u8], now: Time) -> Option<Vec<u8>> {
    let message = PkiMessage::from_der(octets).ok()?;
    let refusal = Refusal::new(
        FailInfo::BAD_REQUEST,
        "somebody on the way does not want this",
    );
    let header = Envelope::to(&message, now).header(&message.header.recipient);
    Some(Draft::new(&header, &error_body(&refusal)).finish::<Vec<u8>>(None, &[]))
}
