//! The CA of the simulated world. It keeps books of what it was asked, what it issued and
//! what became of it, and it minds the client's manners: whatever comes out of turn is a
//! breach. It shares the codec with the client and nothing else.

mod answer;
mod service;

use std::collections::BTreeMap;
use std::sync::Arc;

use abide_cmp::protection::{Hash, MacAlgorithm};
use abide_cmp::{CertId, CertReqMsg, Certificate, FailInfo, Name, PkiBody, PkiMessage, oid};

use crate::checker::{Breach, Invariant};
use crate::crypto;
use crate::fault::Fault;
use crate::scenario::{Confirming, Delay, Kind, Protection, Repeats, Setting};

pub(crate) use answer::{FORGED_WORDS, Forgery, Made, Told};
pub(crate) use service::Held;

const ROOT_KEY: &str = "root";
const SIGNER_KEY: &str = "signer";
const ROGUE_KEY: &str = "rogue";

/// The fixed certificates of the world.
pub(crate) struct Fixed {
    pub(crate) root: Vec<u8>,
    intermediate: Vec<u8>,
    /// Certificates under the name of the intermediate one, and under no name that matters.
    noise: [Vec<Vec<u8>>; 2],
    signer: Vec<u8>,
    rogue_signer: Vec<u8>,
}

impl Fixed {
    pub(crate) fn new() -> Arc<Self> {
        let certificate = |issuer_key, subject: &str, key: &str, is_ca| {
            crypto::certificate(
                issuer_key,
                1,
                &crypto::name(subject),
                &crypto::public_key(key),
                crypto::VALID,
                is_ca,
            )
        };
        Arc::new(Self {
            root: certificate(ROOT_KEY, crypto::CA, ROOT_KEY, true),
            intermediate: certificate(ROOT_KEY, crypto::SUB_CA, crypto::SUB_KEY, true),
            noise: [crypto::SUB_CA, "CN=noise"].map(|subject| {
                let one = |n| certificate(ROGUE_KEY, subject, &format!("noise {n}"), true);
                (0..NOISE).map(one).collect()
            }),
            signer: certificate(ROOT_KEY, SIGNER, SIGNER_KEY, false),
            rogue_signer: certificate(ROGUE_KEY, SIGNER, ROGUE_KEY, false),
        })
    }
}

/// More than is considered for one path, and than signatures are verified for one message.
const NOISE: usize = 70;

const SIGNER: &str = "CN=Simulated CMP signer";

/// A certificate in the books.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    pub(crate) der: Vec<u8>,
    /// Whether a client has reason to take it.
    pub(crate) good: bool,
    /// Whether what came beside it was damaged on the way, so that its issuer may be unknown
    /// to the client.
    damaged: bool,
    pub(crate) standing: Standing,
}

/// What became of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Made, not confirmed.
    Out,
    /// Confirmed, explicitly or implicitly.
    Confirmed,
    /// Refused by the client, or withdrawn before it was handed out.
    Withdrawn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The certificate is polled for under this certReqId.
    Waiting(i64),
    /// The certificate was handed out.
    Granted,
    /// pkiConf is polled for.
    ConfirmationWaiting,
    Closed,
    Refused,
}

/// One transaction in the books.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) order: usize,
    request: Vec<u8>,
    first_nonce: Vec<u8>,
    conf: Option<Vec<u8>>,
    stage: Stage,
    patience: u32,
    pub(crate) certificate: Option<Issued>,
    /// The fault of a certificate that is still to be made.
    spoilt: Option<Fault>,
    answers: BTreeMap<Vec<u8>, Made>,
}

/// What comes back over HTTP.
pub(crate) enum Reply {
    Made(Box<Made>),
    /// An error that proves nothing.
    Unprotected(Vec<u8>),
    /// HTTP 400.
    Nothing,
}

pub(crate) struct Ca {
    setting: Setting,
    fixed: Arc<Fixed>,
    pub(crate) books: BTreeMap<Vec<u8>, Case>,
    /// Every secret that was ever valid, and as many keys of the certificate credential.
    pub(crate) secrets: Vec<Vec<u8>>,
    /// The wanted public keys by order.
    wanted: Vec<Vec<u8>>,
    /// The certificates that are to be revoked or revived, by order.
    pub(crate) held: Vec<Held>,
    serial: u64,
    nonces: u64,
    /// What its answers come in.
    pvno: u8,
    /// Whether the books were written since they were last looked at.
    pub(crate) dirty: bool,
}

/// A request with its protection verified.
struct Request<'m> {
    message: PkiMessage<'m>,
    octets: &'m [u8],
    id: Vec<u8>,
    nonce: Vec<u8>,
    secret: usize,
}

impl Ca {
    pub(crate) fn new(
        setting: &Setting,
        fixed: Arc<Fixed>,
        secret: Vec<u8>,
        wanted: Vec<Vec<u8>>,
    ) -> Self {
        Self {
            setting: setting.clone(),
            fixed,
            books: BTreeMap::new(),
            secrets: vec![secret],
            held: (0..wanted.len())
                .map(|order| Held::new(setting, order))
                .collect(),
            wanted,
            serial: 1,
            nonces: 0,
            pvno: match setting.habits.pvno_3 {
                true => 3,
                false => 2,
            },
            dirty: false,
        }
    }

    /// Certificates that count: those that the CA did not take back.
    pub(crate) fn standing(&self) -> impl Iterator<Item = (&Vec<u8>, &Case, &Issued)> {
        self.books.iter().filter_map(|(id, case)| {
            let issued = case.certificate.as_ref()?;
            (issued.standing != Standing::Withdrawn).then_some((id, case, issued))
        })
    }

    /// An answer arrives with damage where nothing protects it.
    pub(crate) fn damage(&mut self, answer: &[u8]) {
        let message = PkiMessage::from_der(answer).ok();
        let id = message.and_then(|message| message.header.transaction_id);
        let case = id.and_then(|id| self.books.get_mut(id));
        if let Some(issued) = case.and_then(|case| case.certificate.as_mut()) {
            issued.damaged = true;
        }
    }

    /// Certificates that lead nowhere.
    pub(crate) fn noise(&self, which: bool) -> &[Vec<u8>] {
        &self.fixed.noise[usize::from(which)]
    }

    /// Takes a request. `whim` is a fault of the CA's own.
    pub(crate) fn receive(&mut self, octets: &[u8], whim: Option<Fault>) -> Result<Reply, Breach> {
        let Ok(message) = PkiMessage::from_der(octets) else {
            return Ok(Reply::Nothing);
        };
        let (Some(id), Some(nonce)) = (message.header.transaction_id, message.header.sender_nonce)
        else {
            return Ok(Reply::Nothing);
        };
        let (id, nonce) = (id.to_vec(), nonce.to_vec());
        let Some(secret) = self.authentic(&message) else {
            return Ok(self.wrong_protection(&id, &nonce));
        };
        let request = Request {
            message,
            octets,
            id,
            nonce,
            secret,
        };
        self.dirty = true;
        if let Some(whim) = whim
            && let Some(made) = self.whimsical(&request, whim)?
        {
            return Ok(Reply::Made(Box::new(made)));
        }
        if let Some(made) = self.repeated(&request) {
            return Ok(Reply::Made(Box::new(made)));
        }
        let made = match &request.message.body {
            body if begins(body) => self.open(&request, None)?,
            PkiBody::PollReq(ids) => self.poll(&request, ids, None)?,
            PkiBody::CertConf(_) => self.confirm(&request, None)?,
            other => {
                let what = format!("a {}", other.body_type().name());
                return Err(Breach::new(Invariant::InTurn, what));
            }
        };
        if let Some(case) = self.books.get_mut(&request.id) {
            case.answers.insert(octets.to_vec(), made.clone());
        }
        Ok(Reply::Made(Box::new(made)))
    }

    /// Which of the secrets or keys protects the message.
    fn authentic(&self, message: &PkiMessage<'_>) -> Option<usize> {
        let algorithm = message.header.protection_alg.as_ref()?;
        let bits = message.protection?;
        let part = message.protected_part();
        if MacAlgorithm::is_mac(algorithm) {
            let parameters = algorithm.parameters?;
            return self
                .secrets
                .iter()
                .position(|secret| crypto::mac(secret, parameters, &part) == bits);
        }
        (0..self.secrets.len()).find(|&generation| {
            let key = crypto::public_key(&crate::wish::own_key(generation));
            crypto::signature(&key, &part) == bits
        })
    }

    /// A message that was answered before. A poll is always answered the same.
    fn repeated(&mut self, request: &Request<'_>) -> Option<Made> {
        let case = self.books.get(&request.id)?;
        let known = case.answers.get(request.octets)?;
        if self.setting.scenario.repeats == Repeats::Answered {
            return Some(known.clone());
        }
        match request.message.body {
            PkiBody::PollReq(_) => Some(known.clone()),
            PkiBody::CertConf(_) if case.stage == Stage::Closed => {
                Some(self.cert_confirmed(request))
            }
            PkiBody::CertConf(_) => Some(known.clone()),
            // Before the transactionID, this CA looks at what it is asked to do.
            PkiBody::Rr(_) if case.stage == Stage::Closed && self.revokes() => {
                Some(self.refuse(request, FailInfo::CERT_REVOKED))
            }
            _ => Some(self.refuse(request, FailInfo::TRANSACTION_ID_IN_USE)),
        }
    }

    fn open(&mut self, request: &Request<'_>, spoilt: Option<Fault>) -> Result<Made, Breach> {
        if self
            .books
            .get(&request.id)
            .is_some_and(|case| case.request != request.octets)
        {
            return Err(Breach::new(
                Invariant::OctetForOctet,
                "a second request under one transactionID",
            ));
        }
        let order = self.order_of(request)?;
        let delay = self.setting.scenario.delay;
        let fresh_id = self.certificate_id();
        let case = self
            .books
            .entry(request.id.clone())
            .or_insert_with(|| Case {
                order,
                request: request.octets.to_vec(),
                first_nonce: request.nonce.clone(),
                conf: None,
                stage: Stage::Waiting(fresh_id),
                patience: self.setting.patience,
                certificate: None,
                spoilt,
                answers: BTreeMap::new(),
            });
        case.spoilt = case.spoilt.or(spoilt);
        match delay {
            Delay::None => Ok(self.grant(request)),
            Delay::Response | Delay::Error => {
                if self.setting.habits.makes_early
                    && self.setting.scenario.kind.operation().enrolls()
                {
                    self.issue(&request.id);
                }
                Ok(self.wait(request, delay == Delay::Error))
            }
        }
    }

    fn poll(
        &mut self,
        request: &Request<'_>,
        ids: &[i64],
        whim: Option<Fault>,
    ) -> Result<Made, Breach> {
        let breach = |what: &str| {
            Err(Breach::new(
                Invariant::InTurn,
                format!("a pollReq for {ids:?}, {what}"),
            ))
        };
        let Some(case) = self.books.get_mut(&request.id) else {
            return breach("but nothing was asked");
        };
        let expected = match case.stage {
            Stage::Waiting(id) => id,
            Stage::ConfirmationWaiting => -1,
            // Who was told so may have been too late to write it down.
            Stage::Refused => return Ok(self.refuse(request, FailInfo::BAD_REQUEST)),
            Stage::Granted | Stage::Closed => {
                return breach("but nothing waits");
            }
        };
        if ids != [expected] {
            return breach(&format!("but {expected} waits"));
        }
        if whim.is_none() {
            case.patience = case.patience.saturating_sub(1);
            if case.patience == 0 {
                return Ok(match case.stage {
                    Stage::ConfirmationWaiting => self.acknowledge(request),
                    _ => self.grant(request),
                });
            }
        }
        Ok(self.still_waiting(request, expected, whim))
    }

    fn confirm(&mut self, request: &Request<'_>, whim: Option<Fault>) -> Result<Made, Breach> {
        let PkiBody::CertConf(statuses) = &request.message.body else {
            return Err(Breach::new(Invariant::InTurn, "no certConf"));
        };
        let in_turn = |what: &str| Err(Breach::new(Invariant::InTurn, format!("certConf {what}")));
        let id = self.certificate_id();
        let delayed = self.setting.scenario.confirming == Confirming::Delayed;
        let Some(case) = self.books.get_mut(&request.id) else {
            return in_turn("for nothing");
        };
        let Some(issued) = &mut case.certificate else {
            return in_turn("for no certificate");
        };
        match &case.conf {
            Some(conf) if conf != request.octets => {
                return Err(Breach::new(Invariant::OctetForOctet, "a second certConf"));
            }
            Some(_) => {}
            None if case.stage != Stage::Granted => return in_turn("out of turn"),
            None => case.conf = Some(request.octets.to_vec()),
        }
        let [status] = statuses.as_slice() else {
            return in_turn("for several certificates");
        };
        if status.cert_req_id != id || status.cert_hash != Hash::Sha256.digest(&issued.der) {
            return in_turn("for another certificate");
        }
        let accepts = status
            .status_info
            .as_ref()
            .is_none_or(|s| s.status.is_granted());
        if accepts && !issued.good {
            return Err(Breach::new(
                Invariant::OnlyGoodCertificates,
                "certConf accepts a certificate that must be refused",
            ));
        }
        if !accepts && issued.good && !issued.damaged {
            return Err(Breach::new(
                Invariant::TakesTheAnswer,
                "certConf refuses a good certificate",
            ));
        }
        issued.standing = match accepts {
            true => Standing::Confirmed,
            false => Standing::Withdrawn,
        };
        if delayed || whim == Some(Fault::CaErrorWaiting) {
            case.stage = Stage::ConfirmationWaiting;
            case.patience = self.setting.patience;
            return Ok(self.wait(request, true));
        }
        case.stage = Stage::Closed;
        Ok(match whim {
            Some(_) => self.cert_confirmed(request),
            None => self.acknowledge(request),
        })
    }

    /// What the CA says in place of what it should; none when the whim does not fit.
    fn whimsical(&mut self, request: &Request<'_>, whim: Fault) -> Result<Option<Made>, Breach> {
        let refusal = match whim {
            Fault::CaSystemUnavail => Some(FailInfo::SYSTEM_UNAVAIL),
            Fault::CaSystemFailure => Some(FailInfo::SYSTEM_FAILURE),
            Fault::CaTransactionIdInUse => Some(FailInfo::TRANSACTION_ID_IN_USE),
            Fault::CaBadRequest => Some(FailInfo::BAD_REQUEST),
            _ => None,
        };
        if let Some(fail_info) = refusal {
            return Ok(Some(self.turn_down(request, fail_info)));
        }
        if let Some(made) = self.nonsense(request, whim) {
            return Ok(Some(made));
        }
        let fresh = self
            .books
            .get(&request.id)
            .is_none_or(|case| !case.answers.contains_key(request.octets));
        if !fresh {
            return Ok(None);
        }
        let spoils = matches!(
            whim,
            Fault::CaExpiredCertificate | Fault::CaWrongKey | Fault::CaWrongIssuer
        );
        let enrolls = self.setting.scenario.kind.operation().enrolls();
        let made = match (&request.message.body, whim) {
            (PkiBody::CertConf(_), Fault::CaCertConfirmed | Fault::CaErrorWaiting) => {
                self.confirm(request, Some(whim))?
            }
            (PkiBody::PollReq(ids), Fault::CaWaitsForEver | Fault::CaCheckAfter) => {
                if whim == Fault::CaWaitsForEver
                    && let Some(case) = self.books.get_mut(&request.id)
                {
                    case.patience = u32::MAX;
                }
                self.poll(request, ids, Some(whim))?
            }
            (PkiBody::PollReq(_), _) if spoils => {
                if let Some(case) = self.books.get_mut(&request.id)
                    && case.certificate.is_none()
                {
                    case.spoilt = Some(whim);
                }
                return Ok(None);
            }
            (body, _) if spoils && begins(body) && enrolls => self.open(request, Some(whim))?,
            (body, Fault::CaErrorWaiting | Fault::CaWaitsForEver)
                if begins(body) && self.setting.scenario.delay == Delay::None =>
            {
                // Asked for at a CA that answers at once: the request is entered, and what
                // would have been handed out waits.
                self.setting.scenario.delay = Delay::Error;
                let made = self.open(request, None);
                self.setting.scenario.delay = Delay::None;
                if whim == Fault::CaWaitsForEver
                    && let Some(case) = self.books.get_mut(&request.id)
                {
                    case.patience = u32::MAX;
                }
                made?
            }
            _ => return Ok(None),
        };
        if let Some(case) = self.books.get_mut(&request.id) {
            case.answers.insert(request.octets.to_vec(), made.clone());
        }
        Ok(Some(made))
    }

    /// An authenticated refusal, whatever was asked.
    fn turn_down(&mut self, request: &Request<'_>, fail_info: FailInfo) -> Made {
        if let Some(case) = self.books.get_mut(&request.id)
            && let Stage::Waiting(_) = case.stage
        {
            case.stage = Stage::Refused;
            if let Some(issued) = &mut case.certificate {
                issued.standing = Standing::Withdrawn;
            }
        }
        let made = self.refuse(request, fail_info);
        if let Some(case) = self.books.get_mut(&request.id) {
            let answers = &mut case.answers;
            answers
                .entry(request.octets.to_vec())
                .or_insert_with(|| made.clone());
        }
        made
    }

    fn order_of(&self, request: &Request<'_>) -> Result<usize, Breach> {
        let kind = self.setting.scenario.kind;
        let wanted_in = |requests: &[CertReqMsg<'_>]| {
            let key = requests.first()?.request.template.public_key.as_deref()?;
            self.wanted.iter().position(|wanted| wanted == key)
        };
        let order = match (&request.message.body, kind) {
            (PkiBody::Ir(requests), Kind::Ir) | (PkiBody::Cr(requests), Kind::Cr) => {
                wanted_in(requests)
            }
            (PkiBody::Kur(requests), Kind::Kur) if updates_signer(requests, request.secret) => {
                wanted_in(requests)
            }
            (PkiBody::P10cr(csr), Kind::P10cr) => {
                let key = csr.public_key.raw;
                self.wanted.iter().position(|wanted| wanted == key)
            }
            (PkiBody::Rr(details), Kind::Rr | Kind::Revive) => self.held_by(details),
            // A question is nobody's.
            (PkiBody::Genm(question), Kind::Genm)
                if question.len() == 1 && question[0].info_type == oid::IT_CA_CERTS =>
            {
                Some(0)
            }
            _ => None,
        };
        order.ok_or_else(|| Breach::new(Invariant::InTurn, "a request that nobody wanted"))
    }

    /// The certReqId of responses (RFC 9483, 4.1.4).
    fn certificate_id(&self) -> i64 {
        match self.setting.scenario.kind {
            Kind::P10cr if !self.setting.habits.zero_id => -1,
            _ => 0,
        }
    }

    /// Makes the certificate of a case, once.
    fn issue(&mut self, id: &[u8]) -> Vec<u8> {
        let case = self.books.get_mut(id).expect("a case in the books");
        if let Some(issued) = &case.certificate {
            return issued.der.clone();
        }
        self.serial += 1;
        let subject = Name::common_name("device");
        let wrong_key;
        let usual = match self.setting.habits.intermediate {
            true => crypto::SUB_KEY,
            false => ROOT_KEY,
        };
        let (mut key, mut issuer, mut validity) = (&self.wanted[case.order], usual, crypto::VALID);
        match case.spoilt {
            Some(Fault::CaWrongKey) => {
                wrong_key = crypto::public_key("another");
                key = &wrong_key;
            }
            Some(Fault::CaWrongIssuer) => issuer = ROGUE_KEY,
            Some(_) => validity = crypto::EXPIRED,
            None => {}
        }
        let der = crypto::certificate(issuer, self.serial, &subject, key, validity, false);
        case.certificate = Some(Issued {
            der: der.clone(),
            good: case.spoilt.is_none(),
            damaged: false,
            standing: Standing::Out,
        });
        der
    }

    fn signs(&self) -> bool {
        self.setting.scenario.protection == Protection::Certificate
            || self.setting.habits.signs_always
    }
}

/// Whether a message begins a transaction.
fn begins(body: &PkiBody<'_>) -> bool {
    matches!(
        body,
        PkiBody::Ir(_)
            | PkiBody::Cr(_)
            | PkiBody::P10cr(_)
            | PkiBody::Kur(_)
            | PkiBody::Rr(_)
            | PkiBody::Genm(_)
    )
}

/// Whether a kur names the certificate that signs it (RFC 9483, 4.1.3).
fn updates_signer(requests: &[CertReqMsg<'_>], generation: usize) -> bool {
    let own = crate::wish::own_credential(generation).certificate;
    let own = Certificate::from_der(&own).expect("a certificate");
    let control = requests
        .first()
        .and_then(|one| one.request.controls.first())
        .filter(|control| control.oid == oid::REG_CTRL_OLD_CERT_ID)
        .and_then(|control| CertId::from_der(control.value).ok());
    control.is_some_and(|id| id.serial_number == own.serial)
}
