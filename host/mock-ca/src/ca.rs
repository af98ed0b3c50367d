//! The CA: one request in, one answer out.

pub(crate) mod chaos;
mod inform;
mod revoke;
mod steps;

use std::path::Path;
use std::time::SystemTime;

use abide_cmp::protection::Hash;
use abide_cmp::{Certificate, FailInfo, PkiBody, PkiMessage, Time};
use anyhow::{Context, bail};

use crate::authority::Authority;
use crate::books::{self, Books, Entry, Event, Memory, base64, hex};
use crate::client::{Client, Gate, check_header};
use crate::envelope::{Content, Envelope, error_body, seal};
use crate::refusal::{Refusal, Trouble};
use crate::register::Register;
use crate::transactions::Transactions;
use crate::{Options, files};

/// A CA with its identity, its books and its open transactions.
#[derive(Debug)]
pub(crate) struct Ca {
    options: Options,
    authority: Authority,
    root_pem: String,
    transactions: Transactions,
    register: Register,
    books: Books,
    /// The request at hand is told to wait once more.
    put_off_once: bool,
    /// The request at hand is refused for its transactionID.
    in_use_once: bool,
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
    /// A registration authority approves it.
    vouched: bool,
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
        let mut register = Register::default();
        // The lock of the books comes first: two CAs must not make two roots.
        let mut lines = 0_usize;
        let books = Books::open(&options.dir, |entry| {
            lines += 1;
            register.apply(&entry);
            transactions.apply(&entry)
        })?;
        let authority = authority(&options.dir, lines > 0)?;
        let root_pem = authority.root.pem()?;
        Ok(Self {
            options: options.clone(),
            authority,
            root_pem,
            transactions,
            register,
            books,
            put_off_once: false,
            in_use_once: false,
        })
    }

    /// The root certificate.
    pub(crate) fn root_pem(&self) -> String {
        self.root_pem.clone()
    }

    /// Answers a request. An error is the CA's own, and then nothing may be answered.
    pub(crate) fn handle(&mut self, octets: &[u8], now: Time) -> anyhow::Result<Answered> {
        let outer = match PkiMessage::from_der(octets) {
            Ok(message) => message,
            Err(error) => {
                let text = format!("the request cannot be read: {error}");
                let refusal = Refusal::new(error.fail_info(), text);
                let envelope = Envelope::to_unknown(now);
                let content = error_body(&refusal).into();
                return self.refuse(&envelope, None, &content, &refusal, "unreadable", "", now);
            }
        };
        let (message, octets, vouched) = match self.without_added_protection(&outer, now) {
            Ok(None) => (outer, octets, false),
            Ok(Some((inner, octets))) => (inner, octets, true),
            Err(refusal) => {
                let envelope = Envelope::to(&outer, now);
                let content = error_body(&refusal).into();
                let id = hex(outer.header.transaction_id.unwrap_or_default());
                return self.refuse(&envelope, None, &content, &refusal, "nested", &id, now);
            }
        };
        let request = Request {
            message: &message,
            octets,
            vouched,
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
        let body = &request.message.body;
        self.check_not_revoked(client, body)?;
        if self.in_use_once {
            let text = "the transactionID is in use, says the chaos";
            return Err(Refusal::new(FailInfo::TRANSACTION_ID_IN_USE, text).into());
        }
        match body {
            PkiBody::Ir(_) | PkiBody::Cr(_) | PkiBody::P10cr(_) | PkiBody::Kur(_) => {
                self.begin(request, client)
            }
            PkiBody::Rr(details) => self.revoke(request, client, details),
            PkiBody::Genm(questions) => self.inform(request, client, questions),
            PkiBody::PollReq(ids) => self.poll(request, client, ids),
            PkiBody::CertConf(statuses) => self.confirm(request, client, statuses),
            other => Err(Refusal::new(
                FailInfo::BAD_REQUEST,
                format!(
                    "this CA answers ir, cr, p10cr, kur, rr, genm, certConf and pollReq, not '{}'",
                    other.body_type().name()
                ),
            )
            .into()),
        }
    }

    /// The one request inside a nested message by which a registration authority approves it
    /// (RFC 9483, 5.2.2.1), and its octets; none where the message is no nested one.
    fn without_added_protection<'a>(
        &self,
        outer: &PkiMessage<'a>,
        now: Time,
    ) -> Result<Option<(PkiMessage<'a>, &'a [u8])>, Refusal> {
        let PkiBody::Nested(messages) = &outer.body else {
            return Ok(None);
        };
        let no = |fail_info, text: &str| Err(Refusal::new(fail_info, text));
        let client = self.gate().admit(outer, now)?;
        if !self.is_registration_authority(&client) {
            return no(
                FailInfo::NOT_AUTHORIZED,
                "only a registration authority that this CA knows adds its protection",
            );
        }
        let [octets] = messages[..] else {
            return no(FailInfo::BAD_REQUEST, "this CA takes no batches");
        };
        let inner = PkiMessage::from_der(octets)
            .map_err(|error| Refusal::new(error.fail_info(), error.to_string()))?;
        let (inside, around) = (&inner.header, &outer.header);
        if inside.transaction_id != around.transaction_id
            || inside.sender_nonce != around.sender_nonce
        {
            return no(
                FailInfo::BAD_REQUEST,
                "the nested message has another transactionID or senderNonce than the request in \
                 it (RFC 9483, 5.2.2.1)",
            );
        }
        Ok(Some((inner, octets)))
    }

    /// Whether this client may vouch for others.
    fn is_registration_authority(&self, client: &Client) -> bool {
        let Client::Certificate { certificate, .. } = client else {
            return false;
        };
        self.options.registration_authorities.contains(certificate)
    }

    /// A certificate that is revoked authorizes nothing but its own revival.
    fn check_not_revoked(&self, client: &Client, body: &PkiBody<'_>) -> Result<(), Refusal> {
        let Client::Certificate { issuer, serial, .. } = client else {
            return Ok(());
        };
        let ours = issuer == self.authority.root.subject.der();
        let revoked = ours && self.register.revoked(&hex(serial)).is_some();
        if revoked && !matches!(body, PkiBody::Rr(_) | PkiBody::PollReq(_)) {
            return Err(Refusal::new(
                FailInfo::CERT_REVOKED.union(FailInfo::BAD_MESSAGE_CHECK),
                "the certificate that signed the request is revoked",
            ));
        }
        Ok(())
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
        self.register.apply(&entry);
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

    fn gate(&self) -> Gate<'_> {
        let mut trusted = vec![self.authority.root.certificate.as_slice()];
        trusted.extend(self.options.trusted.iter().map(Vec::as_slice));
        let authorities = &self.options.registration_authorities;
        trusted.extend(authorities.iter().map(Vec::as_slice));
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
        return Authority::load(dir, now()?);
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
