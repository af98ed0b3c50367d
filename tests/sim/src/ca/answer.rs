//! What the CA says, and what somebody says who is not the CA.

use std::fmt;

use abide_cmp::der::Integer;
use abide_cmp::protection::{Hash, MacAlgorithm};
use abide_cmp::{
    AlgorithmIdentifier, CertOrEncCert, CertRepMessage, CertResponse, CertifiedKeyPair, Draft,
    ErrorMsgContent, FailInfo, GeneralName, InfoTypeAndValue, PkiBody, PkiHeader, PkiMessage,
    PkiStatus, PkiStatusInfo, PollRep, oid,
};

use super::service::{ca_certs, rp};
use super::{Ca, ROGUE_KEY, Reply, Request, SIGNER, SIGNER_KEY, Stage, Standing};
use crate::crypto;
use crate::fault::Fault;
use crate::scenario::{Confirming, Kind};

/// What an answer says, for whoever checks what is made of it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// Poll for this certReqId, after so many seconds if it says.
    Waiting(i64, Option<i64>),
    /// A certificate.
    Granted {
        certificate: Vec<u8>,
        good: bool,
        implicit: bool,
    },
    /// No certificate.
    Refused(FailInfo),
    /// Revoked or revived, or what a genp says: DER of its InfoTypeAndValue.
    Done(Option<Vec<u8>>),
    /// pkiConf or certConfirmed.
    Confirmed,
    /// certConf was not taken.
    ConfirmationRefused,
    /// Nothing that answers the request.
    Nonsense,
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(id, check_after) => write!(f, "waiting for {id}, {check_after:?}"),
            Self::Granted { good, implicit, .. } => {
                let good = if *good { "good" } else { "bad" };
                let how = if *implicit {
                    ", implicitly confirmed"
                } else {
                    ""
                };
                write!(f, "a {good} certificate{how}")
            }
            Self::Refused(fail_info) => {
                write!(f, "refused: {:?}", fail_info.names().collect::<Vec<_>>())
            }
            Self::Done(None) => f.write_str("done"),
            Self::Done(Some(_)) => f.write_str("an answer"),
            Self::Confirmed => f.write_str("confirmed"),
            Self::ConfirmationRefused => f.write_str("the confirmation refused"),
            Self::Nonsense => f.write_str("nothing"),
        }
    }
}

/// An answer that the CA has made.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) octets: Vec<u8>,
    /// The request it answers.
    pub(crate) request: Vec<u8>,
    pub(crate) told: Told,
}

/// What somebody sends who has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgery {
    UnprotectedError,
    ForeignError,
    ForeignGrant,
    MisaddressedError,
    ErrorToAnotherMessage,
}

/// What a forged refusal says.
pub(crate) const FORGED_WORDS: &str = "go away";

/// How an answer is protected, and what its header says.
struct Seal<'s> {
    transaction: &'s [u8],
    recip_nonce: &'s [u8],
    pvno: u8,
    implicit: bool,
    by: By<'s>,
}

enum By<'s> {
    Nobody,
    Secret(&'s [u8]),
    Signer {
        key: &'static str,
        certificate: &'s [u8],
    },
}

impl Ca {
    /// Does what was asked for.
    pub(super) fn grant(&mut self, request: &Request<'_>) -> Made {
        match self.setting.scenario.kind {
            Kind::Rr | Kind::Revive => self.revoke(request),
            Kind::Genm => self.inform(request),
            Kind::Ir | Kind::Cr | Kind::P10cr | Kind::Kur => self.certify(request),
        }
    }

    fn certify(&mut self, request: &Request<'_>) -> Made {
        let der = self.issue(&request.id);
        let (confirming, mods) = (self.setting.scenario.confirming, self.setting.habits.mods);
        let case = self
            .books
            .get_mut(&request.id)
            .expect("a case in the books");
        let implicit = confirming == Confirming::Implicit;
        case.stage = match implicit {
            true => Stage::Closed,
            false => Stage::Granted,
        };
        let issued = case.certificate.as_mut().expect("a certificate was made");
        // A certificate that is confirmed implicitly and taken by nobody stays out.
        if implicit && issued.good {
            issued.standing = Standing::Confirmed;
        }
        let told = Told::Granted {
            certificate: der.clone(),
            good: issued.good,
            implicit,
        };
        let status = match mods {
            true => PkiStatus::GrantedWithMods,
            false => PkiStatus::Accepted,
        };
        let junk: &[u8] = &[0x30, 0x03, 0x02, 0x01, 0x05];
        let content = CertRepMessage {
            ca_pubs: Vec::new(),
            responses: vec![granted(self.certificate_id(), &der, status)],
        };
        let (habits, intermediate) = (self.setting.habits, self.fixed.intermediate.clone());
        let mut extra: Vec<&[u8]> = Vec::new();
        extra.extend(habits.junk_certificates.then_some(junk));
        extra.extend(habits.intermediate.then_some(&intermediate[..]));
        let body = self.certified(content);
        self.make(request, &body, told, implicit, &extra)
    }

    pub(super) fn wait(&mut self, request: &Request<'_>, by_error: bool) -> Made {
        let status = PkiStatusInfo::new(PkiStatus::Waiting);
        let id = match by_error {
            true => -1,
            false => self.certificate_id(),
        };
        if let Some(case) = self.books.get_mut(&request.id)
            && let Stage::Waiting(expected) = &mut case.stage
        {
            *expected = id;
        }
        let body = match by_error {
            true => error(status),
            false => self.certified(CertRepMessage {
                ca_pubs: Vec::new(),
                responses: vec![response(id, status)],
            }),
        };
        self.make(request, &body, Told::Waiting(id, None), false, &[])
    }

    pub(super) fn still_waiting(
        &mut self,
        request: &Request<'_>,
        id: i64,
        whim: Option<Fault>,
    ) -> Made {
        let check_after = match whim {
            Some(Fault::CaCheckAfter) => {
                let odd = [0, -1, i64::MIN, 1 << 31, i64::MAX, 1 << 40];
                odd[self.nonces as usize % odd.len()]
            }
            _ => self.setting.check_after,
        };
        let body = poll_rep(&[(id, check_after)]);
        let told = Told::Waiting(id, Some(check_after));
        self.make(request, &body, told, false, &[])
    }

    pub(super) fn acknowledge(&mut self, request: &Request<'_>) -> Made {
        if let Some(case) = self.books.get_mut(&request.id) {
            case.stage = Stage::Closed;
        }
        self.make(request, &PkiBody::PkiConf, Told::Confirmed, false, &[])
    }

    pub(super) fn cert_confirmed(&mut self, request: &Request<'_>) -> Made {
        let body = error(PkiStatusInfo::rejection(FailInfo::CERT_CONFIRMED, "it was"));
        self.make(request, &body, Told::Confirmed, false, &[])
    }

    pub(super) fn refuse(&mut self, request: &Request<'_>, fail_info: FailInfo) -> Made {
        let status = PkiStatusInfo::rejection(fail_info, "no");
        let case = self.books.get(&request.id);
        let confirming = case.is_some_and(|case| case.conf.is_some())
            || matches!(request.message.body, PkiBody::CertConf(_));
        let told = match confirming {
            true => Told::ConfirmationRefused,
            false => Told::Refused(fail_info),
        };
        let in_response = self.setting.habits.refuses_in_response && !confirming;
        let body = match self.setting.scenario.kind {
            _ if !in_response => error(status),
            Kind::Rr | Kind::Revive => rp(&[status], None),
            Kind::Genm => error(status),
            Kind::Ir | Kind::Cr | Kind::P10cr | Kind::Kur => self.certified(CertRepMessage {
                ca_pubs: Vec::new(),
                responses: vec![response(self.certificate_id(), status)],
            }),
        };
        self.make(request, &body, told, false, &[])
    }

    /// Answers of the CA itself that no client may act upon.
    pub(super) fn nonsense(&mut self, request: &Request<'_>, whim: Fault) -> Option<Made> {
        let id = self.certificate_id();
        let (root, unreadable) = (self.fixed.root.clone(), [0x30, 0x03, 0x02, 0x01, 0x05]);
        let polled = matches!(request.message.body, PkiBody::PollReq(_));
        let enrolls = self.setting.scenario.kind.operation().enrolls();
        let confirms = matches!(request.message.body, PkiBody::CertConf(_));
        let other = crate::wish::old_certificate(self.held.len());
        let value = ca_certs(&self.fixed.root);
        let body = match whim {
            Fault::CaTwoResponses if !enrolls => self.served(2, None, oid::IT_CA_CERTS, &value),
            Fault::CaAnotherMatter if !enrolls => {
                self.served(1, Some(&other), oid::IT_SUPP_LANG_TAGS, &value)
            }
            Fault::CaAnotherMatter if !confirms => self.certified(CertRepMessage {
                ca_pubs: Vec::new(),
                responses: vec![granted(id + 5, &root, PkiStatus::Accepted)],
            }),
            Fault::CaTwoResponses => self.certified(CertRepMessage {
                ca_pubs: Vec::new(),
                responses: vec![
                    granted(id, &root, PkiStatus::Accepted),
                    granted(id, &root, PkiStatus::Accepted),
                ],
            }),
            Fault::CaUnreadableCertificate if enrolls && !confirms => {
                self.certified(CertRepMessage {
                    ca_pubs: Vec::new(),
                    responses: vec![granted(id, &unreadable, PkiStatus::Accepted)],
                })
            }
            Fault::CaTwoPollReps if polled => {
                let PkiBody::PollReq(ids) = &request.message.body else {
                    return None;
                };
                let id = ids.first().copied().unwrap_or(0);
                poll_rep(&[(id, 20), (id, 20)])
            }
            Fault::CaNoPollRep if polled => poll_rep(&[]),
            Fault::CaOutOfTurn => match request.message.body {
                PkiBody::CertConf(_) => self.certified(CertRepMessage {
                    ca_pubs: Vec::new(),
                    responses: vec![response(id, PkiStatusInfo::new(PkiStatus::Waiting))],
                }),
                PkiBody::PollReq(_) => return None,
                _ => PkiBody::PkiConf,
            },
            Fault::CaPvno1 => error(PkiStatusInfo::rejection(
                FailInfo::UNSUPPORTED_VERSION,
                "too new",
            )),
            _ => return None,
        };
        let pvno = self.pvno;
        if whim == Fault::CaPvno1 {
            self.pvno = 1;
        }
        let made = self.make(request, &body, Told::Nonsense, false, &[]);
        self.pvno = pvno;
        Some(made)
    }

    pub(super) fn wrong_protection(&mut self, id: &[u8], nonce: &[u8]) -> Reply {
        let body = error(PkiStatusInfo::rejection(
            FailInfo::BAD_MESSAGE_CHECK,
            "wrong protection",
        ));
        let seal = Seal {
            transaction: id,
            recip_nonce: nonce,
            pvno: 2,
            implicit: false,
            by: By::Nobody,
        };
        Reply::Unprotected(self.seal(seal, &body, &[]))
    }

    /// An answer to `request` by somebody else, or the CA's own to something else.
    pub(crate) fn forge(&mut self, request: &[u8], forgery: Forgery) -> Option<Vec<u8>> {
        let message = PkiMessage::from_der(request).ok()?;
        let transaction = message.header.transaction_id?.to_vec();
        let nonce = message.header.sender_nonce?.to_vec();
        let secret = self.secrets.last()?.clone();
        let (signs, fixed) = (self.signs(), self.fixed.clone());
        let foreign = match signs {
            true => By::Signer {
                key: ROGUE_KEY,
                certificate: &fixed.rogue_signer,
            },
            false => By::Secret(b"guessed"),
        };
        let own = match signs {
            true => By::Signer {
                key: SIGNER_KEY,
                certificate: &fixed.signer,
            },
            false => By::Secret(&secret),
        };
        let another = [1; 16];
        let (transaction, recip_nonce, by) = match forgery {
            Forgery::UnprotectedError => (&transaction[..], &nonce[..], By::Nobody),
            Forgery::ForeignError | Forgery::ForeignGrant => {
                (&transaction[..], &nonce[..], foreign)
            }
            Forgery::MisaddressedError => (&another[..], &nonce[..], own),
            Forgery::ErrorToAnotherMessage => (&transaction[..], &another[..], own),
        };
        let value = ca_certs(&fixed.rogue_signer);
        let enrolls = self.setting.scenario.kind.operation().enrolls();
        let body = match forgery {
            Forgery::ForeignGrant if !enrolls => self.served(1, None, oid::IT_CA_CERTS, &value),
            Forgery::ForeignGrant => self.certified(CertRepMessage {
                ca_pubs: Vec::new(),
                responses: vec![granted(
                    self.certificate_id(),
                    &fixed.rogue_signer,
                    PkiStatus::Accepted,
                )],
            }),
            _ => error(PkiStatusInfo::rejection(
                FailInfo::BAD_REQUEST,
                FORGED_WORDS,
            )),
        };
        let seal = Seal {
            transaction,
            recip_nonce,
            pvno: 2,
            implicit: false,
            by,
        };
        Some(self.seal(seal, &body, &[]))
    }

    /// rp or genp, with so many parts of one kind.
    fn served<'c>(
        &self,
        count: usize,
        about: Option<&'c Vec<u8>>,
        info_type: oid::Oid<'c>,
        value: &'c [u8],
    ) -> PkiBody<'c> {
        match self.setting.scenario.kind {
            Kind::Genm => PkiBody::Genp(vec![
                InfoTypeAndValue {
                    info_type,
                    value: Some(value),
                };
                count
            ]),
            _ => rp(&vec![PkiStatusInfo::new(PkiStatus::Accepted); count], about),
        }
    }

    /// ip, cp or kup.
    fn certified<'c>(&self, content: CertRepMessage<'c>) -> PkiBody<'c> {
        match self.setting.scenario.kind {
            Kind::Ir => PkiBody::Ip(content),
            Kind::Kur => PkiBody::Kup(content),
            _ => PkiBody::Cp(content),
        }
    }

    pub(super) fn make(
        &mut self,
        request: &Request<'_>,
        body: &PkiBody<'_>,
        told: Told,
        implicit: bool,
        extra: &[&[u8]],
    ) -> Made {
        let ends_delay = !matches!(told, Told::Waiting(..) | Told::Nonsense);
        let polled = matches!(request.message.body, PkiBody::PollReq(_));
        let case = self.books.get(&request.id);
        let recip_nonce = match case {
            Some(case) if self.setting.habits.first_nonce && ends_delay && polled => {
                // The nonce of the request whose answer was delayed (RFC 9483, 4.4).
                let conf = case.conf.as_deref().and_then(nonce_of);
                conf.unwrap_or_else(|| case.first_nonce.clone())
            }
            _ => request.nonce.clone(),
        };
        let (fixed, secret) = (self.fixed.clone(), self.secrets[request.secret].clone());
        let by = match self.signs() {
            true => By::Signer {
                key: SIGNER_KEY,
                certificate: &fixed.signer,
            },
            false => By::Secret(&secret),
        };
        let seal = Seal {
            transaction: &request.id,
            recip_nonce: &recip_nonce,
            pvno: self.pvno,
            implicit,
            by,
        };
        Made {
            octets: self.seal(seal, body, extra),
            request: request.octets.to_vec(),
            told,
        }
    }

    fn seal(&mut self, seal: Seal<'_>, body: &PkiBody<'_>, extra: &[&[u8]]) -> Vec<u8> {
        self.nonces += 1;
        let nonce = [[0xca; 8], self.nonces.to_be_bytes()].concat();
        let sender = crypto::name(match seal.by {
            By::Signer { .. } => SIGNER,
            _ => crypto::CA,
        });
        let recipient = crypto::name("CN=device");
        let mut header = PkiHeader::new(
            GeneralName::Directory(sender),
            GeneralName::Directory(recipient),
        );
        header.pvno = seal.pvno;
        header.transaction_id = Some(seal.transaction);
        header.sender_nonce = Some(&nonce);
        header.recip_nonce = Some(seal.recip_nonce);
        if seal.implicit {
            header.general_info.push(InfoTypeAndValue::IMPLICIT_CONFIRM);
        }
        let mac = MacAlgorithm::PasswordBased {
            salt: &[9; 16],
            owf: Hash::Sha256,
            iterations: 100,
            mac: Hash::Sha256,
        };
        let parameters = mac.parameters();
        header.protection_alg = match seal.by {
            By::Nobody => None,
            By::Secret(_) => Some(AlgorithmIdentifier {
                oid: mac.oid(),
                parameters: Some(&parameters),
            }),
            By::Signer { .. } => Some(AlgorithmIdentifier::bare(oid::ECDSA_SHA256)),
        };
        let draft = Draft::new(&header, body);
        let part = draft.protected_part();
        let mut extra_certs = Vec::new();
        let bits = match seal.by {
            By::Nobody => None,
            By::Secret(secret) => Some(crypto::mac(secret, &parameters, &part)),
            By::Signer { key, certificate } => {
                extra_certs.push(certificate);
                Some(crypto::signature(&crypto::public_key(key), &part))
            }
        };
        extra_certs.extend_from_slice(extra);
        draft.finish(bits.as_deref(), &extra_certs)
    }
}

impl Made {
    /// The same without protection.
    pub(crate) fn bare(&self) -> Option<Vec<u8>> {
        let message = PkiMessage::from_der(&self.octets).ok()?;
        let mut header = message.header.clone();
        header.protection_alg = None;
        Some(Draft::new(&header, &message.body).finish(None, &message.extra_certs))
    }

    /// The same with a crowd among its extraCerts, before all but a signer's.
    pub(crate) fn noisy(&self, noise: &[Vec<u8>]) -> Option<Vec<u8>> {
        let message = PkiMessage::from_der(&self.octets).ok()?;
        let signs = message.protection.is_some()
            && !MacAlgorithm::is_mac(message.header.protection_alg.as_ref()?);
        let (signer, others) = message.extra_certs.split_at(usize::from(signs));
        let crowd = noise.iter().map(Vec::as_slice);
        let extra_certs: Vec<&[u8]> = signer.iter().copied().chain(crowd).collect();
        let extra_certs = [&extra_certs, others].concat();
        Some(Draft::new(&message.header, &message.body).finish(message.protection, &extra_certs))
    }

    /// Whether both prove the same: nothing that is protected differs.
    pub(crate) fn proves_the_same(left: &[u8], right: &[u8]) -> bool {
        let parts = |octets| {
            let message = PkiMessage::from_der(octets).ok()?;
            let bits = message.protection.map(<[u8]>::to_vec);
            Some((message.protected_part(), bits))
        };
        parts(left).is_some_and(|left| parts(right) == Some(left))
    }
}

fn nonce_of(request: &[u8]) -> Option<Vec<u8>> {
    let message = PkiMessage::from_der(request).ok()?;
    message.header.sender_nonce.map(<[u8]>::to_vec)
}

fn granted(cert_req_id: i64, certificate: &[u8], status: PkiStatus) -> CertResponse<'_> {
    CertResponse {
        certified_key_pair: Some(CertifiedKeyPair {
            cert_or_enc_cert: CertOrEncCert::Certificate(certificate),
            private_key: None,
            publication_info: None,
        }),
        ..response(cert_req_id, PkiStatusInfo::new(status))
    }
}

fn response(cert_req_id: i64, status: PkiStatusInfo<'_>) -> CertResponse<'_> {
    CertResponse {
        cert_req_id,
        status,
        certified_key_pair: None,
        rsp_info: None,
    }
}

fn error(status: PkiStatusInfo<'_>) -> PkiBody<'_> {
    PkiBody::Error(ErrorMsgContent {
        status,
        error_code: None,
        error_details: None,
    })
}

fn poll_rep(entries: &[(i64, i64)]) -> PkiBody<'static> {
    let entry = |&(cert_req_id, check_after): &(i64, i64)| PollRep {
        cert_req_id,
        check_after: Integer::from(check_after),
        reason: None,
    };
    PkiBody::PollRep(entries.iter().map(entry).collect())
}
