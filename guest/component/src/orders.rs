use alloc::string::String;
use alloc::vec::Vec;

use abide_enroll::orders;
use abide_enroll::schedule::Policies;
use abide_policy::order::OrderState;

use crate::Component;
use crate::bindings::abide::cmp::keys;
use crate::bindings::exports::abide::cmp::orders as wit;
use crate::host::{Imports, to_key_kind};
use crate::transactions::{to_failure, to_history_entry};

impl wit::Guest for Component {
    fn create(
        wish: wit::Wish,
        admission: Option<wit::Admission>,
    ) -> Result<(wit::Order, bool), wit::OrderError> {
        let admission = admission.map(|admission| orders::Admission {
            buffered: admission.buffered,
            reason: admission.reason,
            notes: admission.notes,
        });
        orders::create(&Imports, from_wish(wish), admission.as_ref())
            .map(|(order, is_new)| (to_order(order), is_new))
            .map_err(to_error)
    }

    fn promote(id: String, why: String) -> Result<(wit::Order, bool), wit::OrderError> {
        orders::promote(&Imports, &id, &why)
            .map(|(order, is_promoted)| (to_order(order), is_promoted))
            .map_err(to_error)
    }

    fn get(id: String) -> Result<wit::Order, wit::OrderError> {
        orders::get(&Imports, &id).map(to_order).map_err(to_error)
    }

    fn list(
        filter: wit::OrderFilter,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<(Vec<wit::Order>, Option<String>), wit::OrderError> {
        let filter = orders::OrderFilter {
            account: filter.account,
            state: filter.state.map(from_state),
            principal: filter.principal,
        };
        orders::list(&Imports, filter, cursor.as_deref(), limit)
            .map(|(page, next)| (page.into_iter().map(to_order).collect(), next))
            .map_err(to_error)
    }

    fn renew(id: String, by: String, policies: String) -> Result<wit::Order, wit::OrderError> {
        let policies = Policies::from_json(&policies).map_err(to_error)?;
        orders::renew(&Imports, &id, &by, &policies.retry)
            .map(to_order)
            .map_err(to_error)
    }

    fn cancel(id: String, by: String, why: String) -> Result<wit::Order, wit::OrderError> {
        orders::cancel(&Imports, &id, &by, &why)
            .map(to_order)
            .map_err(to_error)
    }

    fn explain(
        id: String,
        policies: String,
        until_ms: u64,
    ) -> Result<wit::Explanation, wit::OrderError> {
        let policies = Policies::from_json(&policies).map_err(to_error)?;
        let explanation =
            orders::explain(&Imports, &id, &policies.retry, until_ms).map_err(to_error)?;
        Ok(wit::Explanation {
            steps: explanation
                .steps
                .into_iter()
                .map(|(text, at_ms)| wit::Step { text, at_ms })
                .collect(),
            forecast: explanation.forecast,
        })
    }
}

fn from_wish(wish: wit::Wish) -> orders::Wish {
    orders::Wish {
        key: wish.key,
        account: wish.account,
        application: wish.application,
        origin: wish.origin,
        principal: wish.principal,
        issuer: wish.issuer,
        request: match wish.request {
            wit::Request::Csr(der) => orders::Request::Csr(der.into()),
            wit::Request::Subject(subject) => orders::Request::Subject(orders::Subject {
                subject: subject.subject,
                sans: subject.sans,
                key: from_key_kind(subject.key),
                rotate: subject.rotate,
            }),
        },
        renews: wish.renews,
    }
}

fn to_wish(wish: orders::Wish) -> wit::Wish {
    wit::Wish {
        key: wish.key,
        account: wish.account,
        application: wish.application,
        origin: wish.origin,
        principal: wish.principal,
        issuer: wish.issuer,
        request: match wish.request {
            orders::Request::Csr(der) => wit::Request::Csr(der.into()),
            orders::Request::Subject(subject) => wit::Request::Subject(wit::Subject {
                subject: subject.subject,
                sans: subject.sans,
                key: to_key_kind(subject.key),
                rotate: subject.rotate,
            }),
        },
        renews: wish.renews,
    }
}

pub(crate) fn to_order(order: orders::Order) -> wit::Order {
    wit::Order {
        state: to_state(order.state()),
        issuance_attempts: order.issuance_attempts(),
        last_failure_ms: order.last_failure_ms(),
        next_attempt_ms: order.next_attempt_ms(),
        id: order.id,
        wish: to_wish(order.wish),
        reason: order.reason,
        revision: order.revision,
        created_ms: order.created_ms,
        updated_ms: order.updated_ms,
        renewal_ms: order.renewal_ms,
        failure: order.failure.map(to_failure),
        chain: order.chain.into_iter().map(Vec::from).collect(),
        not_after_ms: order.not_after_ms,
        key_name: order.key_name,
        transaction_id: order.transaction_id,
        history: order.history.into_iter().map(to_history_entry).collect(),
    }
}

pub(crate) fn to_state(state: OrderState) -> wit::State {
    match state {
        OrderState::NotStarted => wit::State::NotStarted,
        OrderState::Buffered => wit::State::Buffered,
        OrderState::Running => wit::State::Running,
        OrderState::Active => wit::State::Active,
        OrderState::Error => wit::State::Error,
        OrderState::Canceled => wit::State::Canceled,
    }
}

fn from_state(state: wit::State) -> OrderState {
    match state {
        wit::State::NotStarted => OrderState::NotStarted,
        wit::State::Buffered => OrderState::Buffered,
        wit::State::Running => OrderState::Running,
        wit::State::Active => OrderState::Active,
        wit::State::Error => OrderState::Error,
        wit::State::Canceled => OrderState::Canceled,
    }
}

fn from_key_kind(kind: keys::KeyKind) -> abide_enroll::KeyKind {
    use abide_enroll::KeyKind;
    match kind {
        keys::KeyKind::EcP256 => KeyKind::EcP256,
        keys::KeyKind::EcP384 => KeyKind::EcP384,
        keys::KeyKind::EcP521 => KeyKind::EcP521,
        keys::KeyKind::Rsa2048 => KeyKind::Rsa2048,
        keys::KeyKind::Rsa3072 => KeyKind::Rsa3072,
        keys::KeyKind::Rsa4096 => KeyKind::Rsa4096,
        keys::KeyKind::Ed25519 => KeyKind::Ed25519,
    }
}

pub(crate) fn to_error(error: orders::OrderError) -> wit::OrderError {
    use orders::OrderError as From;
    match error {
        From::Invalid(why) => wit::OrderError::Invalid(why),
        From::NotFound => wit::OrderError::NotFound,
        From::KeyReused(order) => wit::OrderError::KeyReused(order),
        From::State(why) => wit::OrderError::State(why),
        From::Busy(what) => wit::OrderError::Busy(what),
        From::Storage(why) => wit::OrderError::Storage(why),
        From::Key(why) => wit::OrderError::Key(why),
        From::Unreadable(why) => wit::OrderError::Unreadable(why),
    }
}
