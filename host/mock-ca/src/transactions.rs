//! The transactions that the CA remembers. They change by entries of the books only, so
//! that a CA that reads its books knows what the one that wrote them knew.

use std::collections::HashMap;

use abide_cmp::{CertOrEncCert, PkiBody, PkiMessage};
use anyhow::{Context, bail};

use crate::books::{Entry, Event, Memory, from_base64};
use crate::limits;

/// One transaction.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// Who began it.
    pub(crate) client: String,
    /// What it began with.
    pub(crate) operation: String,
    /// certReqId of its answers.
    pub(crate) cert_req_id: i64,
    /// How far it is.
    pub(crate) state: State,
    /// The nonce that the next message has to repeat.
    pub(crate) last_nonce: Vec<u8>,
    answers: Vec<Answer>,
    age: u64,
}

/// How far a transaction is.
#[derive(Debug)]
pub(crate) enum State {
    /// The client waits and polls.
    Polling {
        message: Vec<u8>,
        remaining: u32,
        poll_at: i64,
    },
    /// The certificate is out, the confirmation is not in.
    Confirming { certificate: Vec<u8> },
    /// Confirmed, rejected or confirmed implicitly; or there was nothing to confirm, and no
    /// certificate.
    Finished { certificate: Vec<u8> },
}

/// A message, by its SHA-256, and what was answered.
#[derive(Debug)]
struct Answer {
    request: String,
    octets: Vec<u8>,
}

impl Transaction {
    /// Whether nothing more has to happen.
    fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished { .. })
    }

    /// The answer to a message with this SHA-256. Sending it again makes its nonce the
    /// last one.
    pub(crate) fn answer_again(&mut self, request: &str) -> Option<Vec<u8>> {
        let octets = &self
            .answers
            .iter()
            .find(|answer| answer.request == request)?
            .octets;
        if let Ok(nonce) = sender_nonce(octets) {
            self.last_nonce = nonce;
        }
        Some(octets.clone())
    }

    fn octets(&self) -> usize {
        let state = match &self.state {
            State::Polling { message, .. } => message.len(),
            State::Confirming { certificate } | State::Finished { certificate } => {
                certificate.len()
            }
        };
        state
            + self
                .answers
                .iter()
                .map(|answer| answer.octets.len())
                .sum::<usize>()
    }

    fn remember(&mut self, memory: &Memory, octets: Vec<u8>) -> anyhow::Result<()> {
        self.last_nonce = sender_nonce(&octets)?;
        self.answers.push(Answer {
            request: memory.request.clone(),
            octets,
        });
        if self.answers.len() > limits::REMEMBERED_ANSWERS {
            self.answers.remove(1);
        }
        Ok(())
    }
}

/// The transactions by their transactionID in hexadecimal.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    by_id: HashMap<String, Transaction>,
    octets: usize,
    born: u64,
}

impl Transactions {
    /// A transaction.
    pub(crate) fn get(&mut self, id: &str) -> Option<&mut Transaction> {
        self.by_id.get_mut(id)
    }

    /// Makes the change that an entry tells of.
    pub(crate) fn apply(&mut self, entry: &Entry) -> anyhow::Result<()> {
        let Some(memory) = &entry.memory else {
            return Ok(());
        };
        let answer = from_base64(&memory.answer)?;
        let known = self.by_id.remove(&entry.transaction_id);
        self.octets -= known.as_ref().map_or(0, Transaction::octets);
        let state = match (
            &entry.event,
            known.as_ref().map(|transaction| &transaction.state),
        ) {
            (Event::Waiting { remaining, message }, None) => {
                // No checkAfter was named yet, so the first pollReq always counts.
                let message = from_base64(message)?;
                State::Polling {
                    message,
                    remaining: *remaining,
                    poll_at: i64::MIN,
                }
            }
            (&Event::Polled { remaining, poll_at }, Some(State::Polling { message, .. })) => {
                State::Polling {
                    message: message.clone(),
                    remaining,
                    poll_at,
                }
            }
            (
                Event::Issued {
                    implicit_confirm, ..
                },
                None | Some(State::Polling { .. }),
            ) => {
                let certificate = certificate(&answer)?;
                match implicit_confirm {
                    true => State::Finished { certificate },
                    false => State::Confirming { certificate },
                }
            }
            (
                Event::Confirmed | Event::Rejected { .. },
                Some(State::Confirming { certificate }),
            ) => State::Finished {
                certificate: certificate.clone(),
            },
            (
                Event::Revoked { .. } | Event::Revived { .. } | Event::Informed { .. },
                None | Some(State::Polling { .. }),
            ) => State::Finished {
                certificate: Vec::new(),
            },
            // It was dropped to make room, by a CA that still knew it.
            (Event::Polled { .. } | Event::Confirmed | Event::Rejected { .. }, None) => {
                return Ok(());
            }
            (event, _) => bail!(
                "transaction {}: {event:?} out of turn",
                entry.transaction_id
            ),
        };
        let mut transaction = known.unwrap_or_else(|| {
            self.born += 1;
            Transaction {
                client: memory.client.clone(),
                operation: entry.operation.clone(),
                cert_req_id: memory.cert_req_id,
                state: State::Finished {
                    certificate: Vec::new(),
                },
                last_nonce: Vec::new(),
                answers: Vec::new(),
                age: self.born,
            }
        });
        transaction.state = state;
        transaction.remember(memory, answer)?;
        self.octets += transaction.octets();
        self.by_id.insert(entry.transaction_id.clone(), transaction);
        self.make_room();
        Ok(())
    }

    /// Drops what is over the limits: the oldest that is finished, and when none is, the
    /// oldest, which a client must have given up long ago.
    fn make_room(&mut self) {
        while self.by_id.len() > limits::TRANSACTIONS || self.octets > limits::REMEMBERED_OCTETS {
            let oldest = self
                .by_id
                .iter()
                .min_by_key(|(_, transaction)| (!transaction.is_finished(), transaction.age))
                .map(|(id, _)| id.clone());
            let Some(dropped) = oldest.and_then(|id| self.by_id.remove(&id)) else {
                return;
            };
            self.octets -= dropped.octets();
        }
    }
}

fn sender_nonce(answer: &[u8]) -> anyhow::Result<Vec<u8>> {
    let message = PkiMessage::from_der(answer).context("a remembered answer")?;
    Ok(message.header.sender_nonce.unwrap_or_default().to_vec())
}

/// The certificate that an ip, cp or kup delivers.
fn certificate(answer: &[u8]) -> anyhow::Result<Vec<u8>> {
    let message = PkiMessage::from_der(answer).context("a remembered answer")?;
    let (PkiBody::Ip(content) | PkiBody::Cp(content) | PkiBody::Kup(content)) = &message.body
    else {
        bail!("a remembered answer is none of ip, cp and kup");
    };
    let pair = content
        .responses
        .first()
        .and_then(|response| response.certified_key_pair.as_ref());
    match pair.map(|pair| &pair.cert_or_enc_cert) {
        Some(CertOrEncCert::Certificate(certificate)) => Ok(certificate.to_vec()),
        _ => bail!("a remembered answer has no certificate in it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::{base64, hex};
    use abide_cmp::{
        CertRepMessage, CertResponse, CertifiedKeyPair, Draft, GeneralName, Name, PkiHeader,
        PkiStatus, PkiStatusInfo,
    };

    fn entry(number: usize, event: Event) -> Entry {
        let nobody = || GeneralName::Directory(Name::NULL);
        let pair = CertifiedKeyPair {
            cert_or_enc_cert: CertOrEncCert::Certificate(&[0x30, 0x00]),
            private_key: None,
            publication_info: None,
        };
        let response = CertResponse {
            cert_req_id: 0,
            status: PkiStatusInfo::new(PkiStatus::Accepted),
            certified_key_pair: Some(pair),
            rsp_info: None,
        };
        let body = PkiBody::Ip(CertRepMessage {
            ca_pubs: Vec::new(),
            responses: vec![response],
        });
        let header = PkiHeader::new(nobody(), nobody());
        let answer = Draft::new(&header, &body).finish::<&[u8]>(None, &[]);
        Entry {
            time: "2024-02-17T17:12:09Z".into(),
            transaction_id: hex(&number.to_be_bytes()),
            operation: "ir".into(),
            event,
            memory: Some(Memory {
                client: "secret".into(),
                request: "00".into(),
                cert_req_id: 0,
                answer: base64(&answer),
            }),
        }
    }

    fn waiting(octets: usize) -> Event {
        Event::Waiting {
            remaining: 0,
            message: base64(&vec![0; octets]),
        }
    }

    fn issued() -> Event {
        Event::Issued {
            subject: "CN=x".into(),
            serial: "01".into(),
            sha256: "00".into(),
            implicit_confirm: true,
        }
    }

    #[test]
    fn the_oldest_finished_one_makes_room_and_then_the_oldest() {
        let mut transactions = Transactions::default();
        for number in 0..limits::TRANSACTIONS {
            let event = if number == 5 { issued() } else { waiting(1) };
            transactions.apply(&entry(number, event)).unwrap();
        }
        let known = |transactions: &mut Transactions, number: usize| {
            transactions.get(&hex(&number.to_be_bytes())).is_some()
        };
        assert!(
            [0, 5]
                .iter()
                .all(|&number| known(&mut transactions, number))
        );
        transactions
            .apply(&entry(limits::TRANSACTIONS, waiting(1)))
            .unwrap();
        assert!(!known(&mut transactions, 5));
        assert!(known(&mut transactions, 0));
        transactions
            .apply(&entry(limits::TRANSACTIONS + 1, waiting(1)))
            .unwrap();
        assert!(!known(&mut transactions, 0));
        assert!(known(&mut transactions, 1));
        assert_eq!(transactions.by_id.len(), limits::TRANSACTIONS);
    }

    #[test]
    fn octets_are_counted_too() {
        let mut transactions = Transactions::default();
        let large = limits::REMEMBERED_OCTETS / 4;
        for number in 0..5 {
            transactions.apply(&entry(number, waiting(large))).unwrap();
        }
        let mut kept: Vec<_> = transactions.by_id.keys().cloned().collect();
        kept.sort();
        // With its answer each is a little more than a quarter.
        assert_eq!(
            kept,
            [2_usize, 3, 4].map(|number| hex(&number.to_be_bytes()))
        );
        let sum: usize = transactions.by_id.values().map(Transaction::octets).sum();
        assert_eq!(transactions.octets, sum);
    }

    #[test]
    fn an_event_out_of_turn_is_no_history() {
        let mut transactions = Transactions::default();
        transactions.apply(&entry(1, issued())).unwrap();
        let error = transactions.apply(&entry(1, waiting(1))).unwrap_err();
        assert!(error.to_string().contains("out of turn"), "{error}");
    }
}
