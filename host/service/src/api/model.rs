//! What goes over the wire. Times are RFC 3339 in UTC, names are in snake case.

use abide_host::wit::admission;
use abide_host::wit::orders::{Explanation, Order, Request};
use abide_host::wit::placement::Considered;
use abide_host::wit::schedule::Task;
use abide_host::wit::transactions::{Failure, HistoryEntry, Transaction};
use base64ct::{Base64, Encoding};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::{IntoParams, ToSchema};

use crate::delivery::Seen;
use crate::input::pem;
use crate::input::text::hex;
use crate::{when, words};

/// A wish for a certificate: with `csr`, or with `subject` and `sans` and a key that the service
/// makes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewOrder {
    /// The same wish under the same key is the same order. The header Idempotency-Key does the
    /// same.
    #[schema(max_length = 128)]
    pub key: Option<String>,
    /// For whom it is.
    #[serde(default)]
    #[schema(max_length = 128)]
    pub account: String,
    /// What it is for.
    #[serde(default)]
    #[schema(max_length = 128)]
    pub application: String,
    /// Where the wish comes from; `api` when absent.
    #[schema(max_length = 128)]
    pub origin: Option<String>,
    /// The issuer by its name in the configuration; may be absent where there is only one.
    pub issuer: Option<String>,
    /// A PKCS #10 request in PEM, or its DER in base64.
    pub csr: Option<String>,
    /// The subject as /CN=…/O=…
    #[schema(max_length = 1024)]
    pub subject: Option<String>,
    /// DNS names, IP and mail addresses, URIs; a kind in front such as `DNS:` is optional.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub sans: Vec<String>,
    /// The kind of key that the service makes; ec-p256 when absent.
    pub key_kind: Option<KeyKind>,
    /// A new key for each certificate; true when absent.
    pub rotate: Option<bool>,
    /// Whether the certificate is renewed before it ends; true when absent.
    pub renews: Option<bool>,
    /// Whether a person waits for it; false when absent. Quality of service minds it.
    pub by_hand: Option<bool>,
    /// How much it matters to quality of service; medium when absent.
    pub criticality: Option<Criticality>,
}

/// How much an order matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Criticality {
    Low,
    #[default]
    Medium,
    High,
}

/// A kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KeyKind {
    EcP256,
    EcP384,
    EcP521,
    Rsa2048,
    Rsa3072,
    Rsa4096,
    Ed25519,
}

/// An order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrderView {
    /// Its id.
    pub id: String,
    /// The client's key.
    pub key: Option<String>,
    /// For whom it is.
    pub account: String,
    /// What it is for.
    pub application: String,
    /// Where the wish came from.
    pub origin: String,
    /// Who made it.
    pub principal: String,
    /// The issuer.
    pub issuer: String,
    /// What is to be certified.
    pub request: RequestView,
    /// Whether it is renewed before it ends.
    pub renews: bool,
    /// Where it stands.
    pub state: StateWord,
    /// One line: why it stands there.
    pub reason: String,
    /// Grows with every change.
    pub revision: u64,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created: String,
    /// When it last changed.
    #[schema(format = DateTime)]
    pub updated: String,
    /// Consecutive failed issuances.
    pub issuance_attempts: Option<u32>,
    /// When the last one failed.
    #[schema(format = DateTime)]
    pub last_failure_time: Option<String>,
    /// When the next attempt may start.
    #[schema(format = DateTime)]
    pub next_attempt_at: Option<String>,
    /// When the certificate is to be renewed.
    #[schema(format = DateTime)]
    pub renewal_at: Option<String>,
    /// The last failure.
    pub failure: Option<FailureView>,
    /// How many certificates the chain has; zero before the first issuance.
    pub chain_length: usize,
    /// SHA-256 of the certificate in hexadecimal.
    pub certificate_sha256: Option<String>,
    /// When the certificate ends.
    #[schema(format = DateTime)]
    pub not_after: Option<String>,
    /// The name of the certificate's key on the service's host.
    pub key_name: Option<String>,
    /// The last transaction.
    pub transaction_id: Option<String>,
    /// The delivery of the certificate to files and hooks; only where one order is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryView>,
    /// What was decided, oldest first.
    pub history: Vec<HistoryView>,
}

/// The state of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum StateWord {
    NotStarted,
    Buffered,
    Running,
    Active,
    Error,
    Canceled,
}

/// What is to be certified.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestView {
    /// SHA-256 of the PKCS #10 request in hexadecimal.
    pub csr_sha256: Option<String>,
    /// The subject.
    pub subject: Option<String>,
    /// Further names.
    pub sans: Vec<String>,
    /// The kind of key.
    pub key_kind: Option<KeyKind>,
    /// A new key for each certificate.
    pub rotate: bool,
}

/// Why there is no certificate.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailureView {
    /// transient, refused, security, malformed, permanent or expired.
    pub class: &'static str,
    /// Who has to act: peer, configuration, host or internal.
    pub fault: &'static str,
    /// What happened.
    pub reason: String,
    /// What to do.
    pub advice: String,
    /// The names of the PKIFailureInfo bits.
    pub fail_info: Vec<String>,
    /// The CA may have issued a certificate that never arrived.
    pub orphan: bool,
}

/// One line of a history.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistoryView {
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// What.
    pub text: String,
}

/// A delivery.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryView {
    /// wanted, failed or delivered.
    pub state: String,
    /// When that was.
    #[schema(format = DateTime)]
    pub updated: String,
    /// How many certificates of this order were delivered.
    pub delivered: u64,
    /// Failures in a row.
    pub attempts: u32,
    /// The last failure; empty when it worked.
    pub error: String,
    /// When it is tried next.
    #[schema(format = DateTime)]
    pub next_attempt_at: Option<String>,
}

/// Some orders.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrderPage {
    /// In the order of their ids, which is that of their age.
    pub items: Vec<OrderView>,
    /// The `cursor` of the next page; absent on the last.
    pub next: Option<String>,
}

/// Which orders are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OrderQuery {
    /// Only those of this account.
    pub account: Option<String>,
    /// Only those in this state.
    pub state: Option<StateWord>,
    /// Only those of this principal.
    pub principal: Option<String>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Entries on a page, 1 to 200; 50 when absent.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
}

/// Which page is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Entries on a page, 1 to 200; 50 when absent.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
}

/// Until when to look ahead.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExplainQuery {
    /// Hours of the forecast, 1 to 240; 48 when absent.
    #[param(minimum = 1, maximum = 240)]
    pub hours: Option<u32>,
}

/// Why an order is canceled.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cancellation {
    /// One line for the history.
    #[serde(default)]
    #[schema(max_length = 256)]
    pub why: String,
}

/// Why the next attempt is when it is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplanationView {
    /// The order.
    pub order: String,
    /// When the next attempt may start.
    #[schema(format = DateTime)]
    pub next_attempt_at: Option<String>,
    /// When the certificate is to be renewed.
    #[schema(format = DateTime)]
    pub renewal_at: Option<String>,
    /// The rules that had a say, in order.
    pub steps: Vec<StepView>,
    /// The attempts that follow for as long as each of them fails.
    pub forecast: Vec<ForecastView>,
    /// The endpoints of the issuer as a new transaction would consider them, where there are
    /// several: the first that matches is taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<EndpointView>,
}

/// An endpoint that is considered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndpointView {
    /// Its URL.
    pub url: String,
    /// Its entry in the configuration.
    pub entry: String,
    /// The highest is considered first.
    pub priority: i32,
    /// Whether it is for this order.
    pub matches: bool,
    /// Why, or why not.
    pub why: String,
}

/// One rule.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StepView {
    /// What it says.
    pub text: String,
    /// The time after it.
    #[schema(format = DateTime)]
    pub at: String,
}

/// One attempt to come.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ForecastView {
    /// Not before.
    #[schema(format = DateTime)]
    pub earliest: String,
    /// Not after, unless workers are busy.
    #[schema(format = DateTime)]
    pub latest: String,
}

/// A task, or a dead letter.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskView {
    /// Its order.
    pub order: String,
    /// The issuer.
    pub issuer: String,
    /// The account.
    pub account: String,
    /// start, retry, renew or resume.
    pub kind: &'static str,
    /// When it is due.
    #[schema(format = DateTime)]
    pub due: Option<String>,
    /// How often it failed for reasons of our own.
    pub retry_count: u32,
    /// The worker that holds it.
    pub holder: Option<String>,
    /// Until when.
    #[schema(format = DateTime)]
    pub held_until: Option<String>,
    /// Why it is a dead letter, or failed last.
    pub reason: String,
}

/// Some tasks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskPage {
    /// In the order of their orders' ids.
    pub items: Vec<TaskView>,
    /// The `cursor` of the next page; absent on the last.
    pub next: Option<String>,
}

/// A transaction.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TransactionView {
    /// transactionID in hexadecimal.
    pub transaction_id: String,
    /// The order that it serves.
    pub order: String,
    /// The account.
    pub account: String,
    /// ir, cr, p10cr, kur, rr or genm.
    pub operation: &'static str,
    /// The CMP endpoint.
    pub server: String,
    /// enrolling, polling, confirming, issued, failed or done.
    pub phase: &'static str,
    /// open, confirmed, implicit or unacknowledged.
    pub confirmation: &'static str,
    /// When it began.
    #[schema(format = DateTime)]
    pub started: String,
    /// When it ends at the latest.
    #[schema(format = DateTime)]
    pub deadline: String,
    /// When it last changed.
    #[schema(format = DateTime)]
    pub updated: String,
    /// When something is to be done next.
    #[schema(format = DateTime)]
    pub next_step_at: Option<String>,
    /// Polls so far.
    pub polls: u32,
    /// The certReqId that is polled for.
    pub cert_req_id: Option<i64>,
    /// SHA-256 of the request.
    pub csr_digest: String,
    /// How many certificates its chain has.
    pub chain_length: usize,
    /// Why it failed.
    pub failure: Option<FailureView>,
    /// What happened, oldest first.
    pub history: Vec<HistoryView>,
}

/// Some transactions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TransactionPage {
    /// In the order of their ids, which are random.
    pub items: Vec<TransactionView>,
    /// The `cursor` of the next page; absent on the last.
    pub next: Option<String>,
}

/// Whether the service is well.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// ok.
    pub status: &'static str,
}

impl From<abide_host::wit::keys::KeyKind> for KeyKind {
    fn from(kind: abide_host::wit::keys::KeyKind) -> Self {
        use abide_host::wit::keys::KeyKind as Wit;
        match kind {
            Wit::EcP256 => KeyKind::EcP256,
            Wit::EcP384 => KeyKind::EcP384,
            Wit::EcP521 => KeyKind::EcP521,
            Wit::Rsa2048 => KeyKind::Rsa2048,
            Wit::Rsa3072 => KeyKind::Rsa3072,
            Wit::Rsa4096 => KeyKind::Rsa4096,
            Wit::Ed25519 => KeyKind::Ed25519,
        }
    }
}

impl From<KeyKind> for abide_host::wit::keys::KeyKind {
    fn from(kind: KeyKind) -> Self {
        match kind {
            KeyKind::EcP256 => Self::EcP256,
            KeyKind::EcP384 => Self::EcP384,
            KeyKind::EcP521 => Self::EcP521,
            KeyKind::Rsa2048 => Self::Rsa2048,
            KeyKind::Rsa3072 => Self::Rsa3072,
            KeyKind::Rsa4096 => Self::Rsa4096,
            KeyKind::Ed25519 => Self::Ed25519,
        }
    }
}

impl From<Criticality> for admission::Criticality {
    fn from(criticality: Criticality) -> Self {
        match criticality {
            Criticality::Low => Self::Low,
            Criticality::Medium => Self::Medium,
            Criticality::High => Self::High,
        }
    }
}

impl From<abide_host::wit::orders::State> for StateWord {
    fn from(state: abide_host::wit::orders::State) -> Self {
        use abide_host::wit::orders::State;
        match state {
            State::NotStarted => StateWord::NotStarted,
            State::Buffered => StateWord::Buffered,
            State::Running => StateWord::Running,
            State::Active => StateWord::Active,
            State::Error => StateWord::Error,
            State::Canceled => StateWord::Canceled,
        }
    }
}

impl From<StateWord> for abide_host::wit::orders::State {
    fn from(state: StateWord) -> Self {
        match state {
            StateWord::NotStarted => Self::NotStarted,
            StateWord::Buffered => Self::Buffered,
            StateWord::Running => Self::Running,
            StateWord::Active => Self::Active,
            StateWord::Error => Self::Error,
            StateWord::Canceled => Self::Canceled,
        }
    }
}

impl From<Order> for OrderView {
    fn from(order: Order) -> Self {
        let wish = order.wish;
        OrderView {
            id: order.id,
            key: wish.key,
            account: wish.account,
            application: wish.application,
            origin: wish.origin,
            principal: wish.principal,
            issuer: wish.issuer,
            request: wish.request.into(),
            renews: wish.renews,
            state: order.state.into(),
            reason: order.reason,
            revision: order.revision,
            created: when::utc(order.created_ms),
            updated: when::utc(order.updated_ms),
            issuance_attempts: order.issuance_attempts,
            last_failure_time: order.last_failure_ms.map(when::utc),
            next_attempt_at: order.next_attempt_ms.map(when::utc),
            renewal_at: order.renewal_ms.map(when::utc),
            failure: order.failure.map(FailureView::from),
            chain_length: order.chain.len(),
            certificate_sha256: order.chain.first().map(|leaf| hex(&Sha256::digest(leaf))),
            not_after: order.not_after_ms.map(when::utc),
            key_name: order.key_name,
            transaction_id: order.transaction_id,
            delivery: None,
            history: order.history.into_iter().map(HistoryView::from).collect(),
        }
    }
}

impl From<Request> for RequestView {
    fn from(request: Request) -> Self {
        match request {
            Request::Csr(der) => RequestView {
                csr_sha256: Some(hex(&Sha256::digest(&der))),
                subject: None,
                sans: Vec::new(),
                key_kind: None,
                rotate: false,
            },
            Request::Subject(subject) => RequestView {
                csr_sha256: None,
                subject: Some(subject.subject),
                sans: subject.sans,
                key_kind: Some(subject.key.into()),
                rotate: subject.rotate,
            },
        }
    }
}

impl From<Failure> for FailureView {
    fn from(failure: Failure) -> Self {
        FailureView {
            class: words::class(failure.class),
            fault: words::fault(failure.fault),
            reason: failure.reason,
            advice: failure.advice,
            fail_info: failure.fail_info,
            orphan: failure.orphan,
        }
    }
}

impl From<HistoryEntry> for HistoryView {
    fn from(entry: HistoryEntry) -> Self {
        HistoryView {
            at: when::utc(entry.at_ms),
            text: entry.text,
        }
    }
}

impl From<Seen> for DeliveryView {
    fn from(seen: Seen) -> Self {
        DeliveryView {
            state: seen.state,
            updated: when::utc(seen.updated_ms),
            delivered: seen.record.delivered,
            attempts: seen.record.attempts,
            error: seen.record.error,
            next_attempt_at: seen.next_ms.map(when::utc),
        }
    }
}

impl From<Task> for TaskView {
    fn from(task: Task) -> Self {
        let (holder, until) = task.holder.unzip();
        TaskView {
            order: task.order,
            issuer: task.issuer,
            account: task.account,
            kind: words::task_kind(task.kind),
            due: task.due_ms.map(when::utc),
            retry_count: task.retry_count,
            holder,
            held_until: until.map(when::utc),
            reason: task.reason,
        }
    }
}

impl From<Transaction> for TransactionView {
    fn from(one: Transaction) -> Self {
        TransactionView {
            transaction_id: one.transaction_id,
            order: one.order,
            account: one.account,
            operation: words::operation(one.operation),
            server: one.server,
            phase: words::phase(one.phase),
            confirmation: words::confirmation(one.confirmation),
            started: when::utc(one.started_ms),
            deadline: when::utc(one.deadline_ms),
            updated: when::utc(one.updated_ms),
            next_step_at: one.due_ms.map(when::utc),
            polls: one.polls,
            cert_req_id: one.cert_req_id,
            csr_digest: one.csr_digest,
            chain_length: one.chain.len(),
            failure: one.failure.map(FailureView::from),
            history: one.history.into_iter().map(HistoryView::from).collect(),
        }
    }
}

impl ExplanationView {
    pub(crate) fn new(
        order: &Order,
        explanation: Explanation,
        considered: Vec<Considered>,
    ) -> Self {
        ExplanationView {
            order: order.id.clone(),
            next_attempt_at: order.next_attempt_ms.map(when::utc),
            renewal_at: order.renewal_ms.map(when::utc),
            steps: explanation
                .steps
                .into_iter()
                .map(|step| StepView {
                    text: step.text,
                    at: when::utc(step.at_ms),
                })
                .collect(),
            forecast: explanation
                .forecast
                .into_iter()
                .map(|(earliest, latest)| ForecastView {
                    earliest: when::utc(earliest),
                    latest: when::utc(latest),
                })
                .collect(),
            endpoints: considered
                .into_iter()
                .map(|entry| EndpointView {
                    url: entry.url,
                    entry: entry.entry,
                    priority: entry.priority,
                    matches: entry.matches,
                    why: entry.why,
                })
                .collect(),
        }
    }
}

/// A PKCS #10 request from PEM or from the base64 of its DER.
pub(crate) fn request_from_text(text: &str) -> Result<Vec<u8>, String> {
    if pem::looks_like_pem(text.as_bytes()) {
        let blocks = pem::blocks(text.as_bytes())
            .map_err(|error| format!("line {}: {}", error.line, error.rule))?;
        let wanted = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"];
        let mut found = blocks
            .into_iter()
            .filter(|block| wanted.contains(&block.label.as_str()));
        return match (found.next(), found.next()) {
            (Some(block), None) => Ok(block.der),
            (None, _) => Err("the PEM has no CERTIFICATE REQUEST".to_owned()),
            (Some(_), Some(_)) => Err("the PEM has several requests".to_owned()),
        };
    }
    let plain: String = text.split_whitespace().collect();
    Base64::decode_vec(&plain).map_err(|_| "it is neither PEM nor base64".to_owned())
}
