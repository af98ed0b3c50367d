//! The CA: one request in, one answer out.

use std::path::Path;
use std::time::SystemTime;

use abide_cmp::protection::Hash;
use abide_cmp::{
    CertOrEncCert, CertRepMessage, CertResponse, CertStatus, Certificate, CertifiedKeyPair,
    FailInfo, Name, PkiBody, PkiFreeText, PkiMessage, PkiStatus, PkiStatusInfo, PollRep, Time,
    protection,
};
use anyhow::{Context, bail};

use crate::authority::Authority;
use crate::books::{self, Books, Entry, Event, Memory, base64, hex};
use crate::client::{Client, Gate, check_header};
use crate::envelope::{Content, Envelope, error_body, seal};
use crate::issue::{Plan, Purpose};
use crate::refusal::{Refusal, Trouble};
use crate::transactions::{State, Transaction, Transactions};
use crate::wanted::Wanted;
use crate::{Options, Repeat, files, limits};

/// pvno of messages that may name the hash of a certHash (RFC 9810, 5.3.18).
const PVNO_3: u8 = 3;

/// A CA with its identity, its books and its open transactions.
#[derive(Debug)]
pub(crate) struct Ca {
    options: Options,
    authority: Authority,
    root_pem: String,
    transactions: Transactions,
    books: Books,
}

/// An answer, and what to tell about it in the log.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) octets: Vec<u8>,
    pub(crate) kind: String,
    pub(crate) transaction: String,
    pub(crate) verdict: String,
}

/// A request that could be read.
struct Request<'a> {
    message: &'a PkiMessage<'a>,
    octets: &'a [u8],
    sha256: String,
    id: String,
    now: Time,
}

/// The transaction that an answer belongs to.
struct Thread<'a> {
    client: &'a Client,
    operation: String,
    cert_req_id: i64,
}

impl Ca {
    /// Opens the CA of a folder, or makes one.
    pub(crate) fn open(options: &Options) -> anyhow::Result<Self> {
        for (index, der) in options.trusted.iter().enumerate() {
            Certificate::from_der(der)
                .with_context(|| format!("trusted certificate {} cannot be read", index + 1))?;
        }
        files::make_dir(&options.dir)?;
        let mut transactions = Transactions::default();
        // The lock of the books comes first: two CAs must not make two roots.
        let mut lines = 0_usize;
        let books = Books::open(&options.dir, |entry| {
            lines += 1;
            transactions.apply(&entry)
        })?;
        let authority = authority(&options.dir, lines > 0)?;
        let root_pem = authority.root.pem()?;
        Ok(Self {
            options: options.clone(),
            authority,
            root_pem,
            transactions,
            books,
        })
    }

    /// The root certificate.
    pub(crate) fn root_pem(&self) -> String {
        self.root_pem.clone()
    }

    /// Answers a request. An error is the CA's own, and then nothing may be answered.
    pub(crate) fn handle(&mut self, octets: &[u8], now: Time) -> anyhow::Result<Answered> {
        let message = match PkiMessage::from_der(octets) {
            Ok(message) => message,
            Err(error) => {
                let text = format!("the request cannot be read: {error}");
                let refusal = Refusal::new(error.fail_info(), text);
                let envelope = Envelope::to_unknown(now);
                let content = error_body(&refusal).into();
                return self.refuse(&envelope, None, &content, &refusal, "unreadable", "", now);
            }
        };
        let request = Request {
            message: &message,
            octets,
            sha256: hex(&Hash::Sha256.digest(octets)),
            id: hex(message.header.transaction_id.unwrap_or_default()),
            now,
        };
        let mut client = None;
        match self.answer(&request, &mut client) {
            Ok(answered) => Ok(answered),
            Err(Trouble::Refused(refusal)) => {
                let content = error_body(&refusal).into();
                self.refuse_request(&request, client.as_ref(), &content, &refusal)
            }
            Err(Trouble::Failed(error)) => Err(error),
        }
    }

    /// Answers a request, or says why not. `client` is set as soon as it is known.
    fn answer(
        &mut self,
        request: &Request<'_>,
        client: &mut Option<Client>,
    ) -> Result<Answered, Trouble> {
        check_header(request.message)?;
        let client = &*client.insert(self.gate().admit(request.message, request.now)?);
        match &request.message.body {
            PkiBody::Ir(_) | PkiBody::Cr(_) | PkiBody::P10cr(_) => self.begin(request, client),
            PkiBody::PollReq(ids) => self.poll(request, client, ids),
            PkiBody::CertConf(statuses) => self.confirm(request, client, statuses),
            other => Err(Refusal::new(
                FailInfo::BAD_REQUEST,
                format!(
                    "this CA answers ir, cr, p10cr, certConf and pollReq, not '{}'",
                    other.body_type().name()
                ),
            )
            .into()),
        }
    }

    /// ir, cr and p10cr.
    fn begin(&mut self, request: &Request<'_>, client: &Client) -> Result<Answered, Trouble> {
        let replay = self.options.repeat == Repeat::Replay;
        if let Some(transaction) = self.transactions.get(&request.id) {
            let again = if replay {
                transaction.answer_again(&request.sha256)
            } else {
                None
            };
            return match again {
                Some(octets) => Ok(request.replayed(octets)),
                None => Err(Refusal::new(
                    FailInfo::TRANSACTION_ID_IN_USE,
                    "this transactionID is in use; begin a new transaction under a new one",
                )
                .into()),
            };
        }
        let operation = request.kind().to_string();
        let cert_req_id = match &request.message.body {
            PkiBody::P10cr(_) => self.options.p10cr_cert_req_id,
            _ => 0,
        };
        let wanted = match Wanted::read(&request.message.body) {
            Ok(wanted) => wanted,
            // What is wrong with the wish belongs into the answer to it (RFC 9483, 4.1.1).
            Err(refusal) => {
                let status = PkiStatusInfo::rejection(refusal.fail_info, refusal.text.as_str());
                let content = response(&operation, cert_req_id, status, None, Vec::new()).into();
                return Ok(self.refuse_request(request, Some(client), &content, &refusal)?);
            }
        };
        let thread = Thread {
            client,
            operation,
            cert_req_id,
        };
        if self.options.poll_count == 0 {
            let implicit = request.message.header.implicit_confirm();
            return Ok(self.issue(request, &thread, &wanted, implicit)?);
        }
        let status = PkiStatusInfo::new(PkiStatus::Waiting);
        let content = response(&thread.operation, cert_req_id, status, None, Vec::new()).into();
        let event = Event::Waiting {
            remaining: self.options.poll_count - 1,
            message: base64(request.octets),
        };
        Ok(self.commit(request, &thread, &content, event, "waiting")?)
    }

    /// pollReq. One that comes too early gets a pollRep that does not count.
    fn poll(
        &mut self,
        request: &Request<'_>,
        client: &Client,
        ids: &[i64],
    ) -> Result<Answered, Trouble> {
        let replay = self.options.repeat == Repeat::Replay;
        let transaction = self.transaction(request, client)?;
        if replay && let Some(octets) = transaction.answer_again(&request.sha256) {
            return Ok(request.replayed(octets));
        }
        let State::Polling {
            message,
            remaining,
            poll_at,
        } = &transaction.state
        else {
            return Err(Refusal::new(
                FailInfo::BAD_REQUEST,
                "there is nothing to poll for: the certificate was delivered",
            )
            .into());
        };
        check_nonce(request, transaction)?;
        if ids != [transaction.cert_req_id] {
            return Err(Refusal::new(
                FailInfo::BAD_REQUEST,
                format!(
                    "the pollReq is for certReqId {ids:?}, not {}",
                    transaction.cert_req_id
                ),
            )
            .into());
        }
        let (remaining, poll_at) = (*remaining, *poll_at);
        let thread = transaction.thread(client);
        if remaining == 0 && request.now.unix() >= poll_at {
            let original = message.clone();
            let original = PkiMessage::from_der(&original).context("a remembered request")?;
            let wanted = Wanted::read(&original.body)?;
            let implicit = original.header.implicit_confirm();
            return Ok(self.issue(request, &thread, &wanted, implicit)?);
        }
        let (remaining, poll_at) = match request.now.unix() < poll_at {
            true => (remaining, poll_at),
            false => (
                remaining - 1,
                request.now.unix() + i64::from(self.options.check_after),
            ),
        };
        let check_after = poll_at - request.now.unix();
        let entry = PollRep {
            cert_req_id: thread.cert_req_id,
            check_after,
            reason: None,
        };
        let content = PkiBody::PollRep(vec![entry]).into();
        let verdict = format!("wait {check_after} s");
        let event = Event::Polled { remaining, poll_at };
        Ok(self.commit(request, &thread, &content, event, &verdict)?)
    }

    /// certConf.
    fn confirm(
        &mut self,
        request: &Request<'_>,
        client: &Client,
        statuses: &[CertStatus<'_>],
    ) -> Result<Answered, Trouble> {
        let replay = self.options.repeat == Repeat::Replay;
        let transaction = self.transaction(request, client)?;
        if replay && let Some(octets) = transaction.answer_again(&request.sha256) {
            return Ok(request.replayed(octets));
        }
        let (certificate, finished) = match &transaction.state {
            State::Polling { .. } => {
                return Err(Refusal::new(
                    FailInfo::BAD_REQUEST,
                    "there is nothing to confirm yet: send a pollReq",
                )
                .into());
            }
            State::Confirming { certificate } => (certificate, false),
            State::Finished { certificate } => (certificate, true),
        };
        if !finished {
            check_nonce(request, transaction)?;
        }
        let event = judge(request, transaction, statuses, certificate)?;
        if finished {
            return Err(Refusal::new(
                FailInfo::CERT_CONFIRMED,
                "this certificate was confirmed or rejected before",
            )
            .into());
        }
        let thread = transaction.thread(client);
        let verdict = match &event {
            Event::Rejected { reason } => format!("rejected by the client: {reason}"),
            _ => "confirmed".into(),
        };
        Ok(self.commit(request, &thread, &PkiBody::PkiConf.into(), event, &verdict)?)
    }

    /// Makes the certificate and delivers it.
    fn issue(
        &mut self,
        request: &Request<'_>,
        thread: &Thread<'_>,
        wanted: &Wanted,
        implicit_asked: bool,
    ) -> anyhow::Result<Answered> {
        let root = &self.authority.root;
        let plan = Plan {
            issuer: &root.subject,
            subject: &wanted.subject,
            key: wanted.key.clone(),
            purpose: Purpose::EndEntity(wanted.names.clone()),
            now: request.now,
            validity: limits::VALIDITY,
        };
        let certificate = plan.certificate(root.key())?;
        let read = Certificate::from_der(&certificate).context("the new certificate")?;
        let implicit_confirm = implicit_asked && self.options.implicit_confirm;
        let event = Event::Issued {
            subject: describe(&wanted.subject),
            serial: hex(read.serial),
            sha256: hex(&Hash::Sha256.digest(&certificate)),
            implicit_confirm,
        };
        let status = match wanted.modified {
            false => PkiStatusInfo::new(PkiStatus::Accepted),
            true => PkiStatusInfo {
                status: PkiStatus::GrantedWithMods,
                status_string: Some(PkiFreeText::new(
                    "only subject, subjectAltName and key are as requested",
                )),
                fail_info: None,
            },
        };
        // Trust anchors may come with a shared secret only (RFC 9810, 5.3.2).
        let root = self.authority.root.certificate.clone();
        let ca_pubs = match thread.client {
            Client::Secret { .. } if thread.operation == "ir" => vec![root.as_slice()],
            _ => Vec::new(),
        };
        let body = response(
            &thread.operation,
            thread.cert_req_id,
            status,
            Some(&certificate),
            ca_pubs,
        );
        let content = Content {
            body,
            implicit_confirm,
            delivers: true,
        };
        let verdict = format!("issued {}", describe(&wanted.subject));
        self.commit(request, thread, &content, event, &verdict)
    }

    /// Seals an answer, writes it down and remembers it, in this order.
    fn commit(
        &mut self,
        request: &Request<'_>,
        thread: &Thread<'_>,
        content: &Content<'_>,
        event: Event,
        verdict: &str,
    ) -> anyhow::Result<Answered> {
        let envelope = Envelope::to(request.message, request.now);
        let octets = seal(
            &envelope,
            content,
            Some(thread.client),
            &self.authority,
            &self.gate(),
        )?;
        let entry = Entry {
            time: request.now.rfc3339(),
            transaction_id: request.id.clone(),
            operation: thread.operation.clone(),
            event,
            memory: Some(Memory {
                client: thread.client.to_string(),
                request: request.sha256.clone(),
                cert_req_id: thread.cert_req_id,
                answer: base64(&octets),
            }),
        };
        self.books.add(&entry)?;
        self.transactions.apply(&entry)?;
        Ok(request.answered(octets, verdict))
    }

    fn refuse_request(
        &mut self,
        request: &Request<'_>,
        client: Option<&Client>,
        content: &Content<'_>,
        refusal: &Refusal,
    ) -> anyhow::Result<Answered> {
        let envelope = Envelope::to(request.message, request.now);
        let (kind, id) = (request.kind(), &request.id);
        self.refuse(&envelope, client, content, refusal, kind, id, request.now)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a request that cannot be read is not one"
    )]
    fn refuse(
        &mut self,
        envelope: &Envelope<'_>,
        client: Option<&Client>,
        content: &Content<'_>,
        refusal: &Refusal,
        kind: &str,
        id: &str,
        now: Time,
    ) -> anyhow::Result<Answered> {
        let octets = seal(envelope, content, client, &self.authority, &self.gate())?;
        self.books.add(&Entry {
            time: now.rfc3339(),
            transaction_id: id.into(),
            operation: kind.into(),
            event: Event::Refused {
                reason: refusal.summary(),
            },
            memory: None,
        })?;
        Ok(Answered {
            octets,
            kind: kind.into(),
            transaction: id.into(),
            verdict: format!("refused: {}", refusal.summary()),
        })
    }

    /// The transaction that a follow-up belongs to, if it comes from the same client.
    fn transaction(
        &mut self,
        request: &Request<'_>,
        client: &Client,
    ) -> Result<&mut Transaction, Refusal> {
        let transaction = self.transactions.get(&request.id).ok_or_else(|| {
            Refusal::new(
                FailInfo::BAD_REQUEST,
                "no transaction is known under this transactionID; begin a new one",
            )
        })?;
        if transaction.client != client.to_string() {
            return Err(Refusal::new(
                FailInfo::WRONG_INTEGRITY,
                "the transaction began with other credentials (RFC 9483, 3.2)",
            ));
        }
        Ok(transaction)
    }

    fn gate(&self) -> Gate<'_> {
        let mut trusted = vec![self.authority.root.certificate.as_slice()];
        trusted.extend(self.options.trusted.iter().map(Vec::as_slice));
        Gate {
            reference: &self.options.reference,
            secret: &self.options.secret,
            trusted,
        }
    }
}

/// The identity in a folder, which is new unless there are books already.
fn authority(dir: &Path, has_books: bool) -> anyhow::Result<Authority> {
    if Authority::exists(dir) {
        return Authority::load(dir);
    }
    if has_books {
        bail!(
            "{} has the {} of a CA whose root.pem is missing: put it back or name a new folder",
            dir.display(),
            books::FILE
        );
    }
    Authority::create(dir, now()?)
}

/// The time of this machine.
pub(crate) fn now() -> anyhow::Result<Time> {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .context("the clock of this machine is before 1970")?;
    Ok(Time::from_unix(
        i64::try_from(since.as_secs()).context("the clock is out of range")?,
    ))
}

impl Request<'_> {
    fn kind(&self) -> &'static str {
        self.message.body.body_type().name()
    }

    fn answered(&self, octets: Vec<u8>, verdict: &str) -> Answered {
        Answered {
            octets,
            kind: self.kind().into(),
            transaction: self.id.clone(),
            verdict: verdict.into(),
        }
    }

    fn replayed(&self, octets: Vec<u8>) -> Answered {
        self.answered(octets, "a repeat: the same answer again")
    }
}

impl Transaction {
    fn thread<'a>(&self, client: &'a Client) -> Thread<'a> {
        Thread {
            client,
            operation: self.operation.clone(),
            cert_req_id: self.cert_req_id,
        }
    }
}

/// An ip or cp.
fn response<'a>(
    operation: &str,
    cert_req_id: i64,
    status: PkiStatusInfo<'a>,
    certificate: Option<&'a [u8]>,
    ca_pubs: Vec<&'a [u8]>,
) -> PkiBody<'a> {
    let certified_key_pair = certificate.map(|certificate| CertifiedKeyPair {
        cert_or_enc_cert: CertOrEncCert::Certificate(certificate),
        private_key: None,
        publication_info: None,
    });
    let response = CertResponse {
        cert_req_id,
        status,
        certified_key_pair,
        rsp_info: None,
    };
    let content = CertRepMessage {
        ca_pubs,
        responses: vec![response],
    };
    match operation {
        "ir" => PkiBody::Ip(content),
        _ => PkiBody::Cp(content),
    }
}

/// What a certConf says about the certificate, after RFC 9810, 5.3.18.
fn judge(
    request: &Request<'_>,
    transaction: &Transaction,
    statuses: &[CertStatus<'_>],
    certificate: &[u8],
) -> Result<Event, Trouble> {
    let bad_request = |text: String| Refusal::new(FailInfo::BAD_REQUEST, text);
    let [status] = statuses else {
        let text = format!(
            "the certConf is about {} certificates instead of one",
            statuses.len()
        );
        return Err(bad_request(text).into());
    };
    if status.cert_req_id != transaction.cert_req_id {
        return Err(bad_request(format!(
            "the certConf is for certReqId {}, not {}",
            status.cert_req_id, transaction.cert_req_id
        ))
        .into());
    }
    let expected = match &status.hash_alg {
        None => {
            let read = Certificate::from_der(certificate).context("a remembered certificate")?;
            protection::cert_hash(&read).context("a remembered certificate")?
        }
        Some(_) if request.message.header.pvno < PVNO_3 => {
            return Err(bad_request("hashAlg needs pvno 3 (RFC 9810, 5.3.18)".into()).into());
        }
        Some(algorithm) => Hash::from_oid(algorithm.oid)
            .ok_or_else(|| {
                Refusal::new(
                    FailInfo::BAD_ALG,
                    format!("hashAlg {} is not known", algorithm.oid),
                )
            })?
            .digest(certificate),
    };
    if status.cert_hash != expected {
        return Err(Refusal::new(
            FailInfo::BAD_CERT_ID,
            "certHash is not that of the certificate that was issued",
        )
        .into());
    }
    match &status.status_info {
        None => Ok(Event::Confirmed),
        Some(info) if info.status == PkiStatus::Accepted && info.fail_info.is_none() => {
            Ok(Event::Confirmed)
        }
        Some(info) if info.status == PkiStatus::Rejection => Ok(Event::Rejected {
            reason: info.summary(),
        }),
        Some(info) => {
            Err(bad_request(format!("a certConf cannot say '{}'", info.summary())).into())
        }
    }
}

fn check_nonce(request: &Request<'_>, transaction: &Transaction) -> Result<(), Refusal> {
    if request.message.header.recip_nonce == Some(&transaction.last_nonce) {
        return Ok(());
    }
    Err(Refusal::new(
        FailInfo::BAD_RECIPIENT_NONCE,
        "recipNonce is not the senderNonce of the last answer in this transaction",
    ))
}

fn describe(name: &Name<'_>) -> String {
    match name.is_null() {
        true => "NULL-DN".into(),
        false => name.to_string(),
    }
}
