use alloc::string::String;
use alloc::vec::Vec;

use abide_enroll::zombies::{self, Search, Span, Wanted};
use abide_policy::zombie;

use crate::Component;
use crate::bindings::exports::abide::cmp::zombies as wit;
use crate::host::Imports;
use crate::orders::{to_error, to_order, to_state};

impl wit::Guest for Component {
    fn find(
        policies: String,
        accepted: Option<wit::Span>,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<(Vec<wit::Zombie>, Option<String>), wit::OrderError> {
        let search = Search::from_json(&policies).map_err(to_error)?;
        let accepted = accepted.map(|span| Span {
            from_ms: span.from_ms,
            to_ms: span.to_ms,
        });
        zombies::find(&Imports, &search, accepted, cursor.as_deref(), limit)
            .map(|(page, next)| (page.into_iter().map(to_zombie).collect(), next))
            .map_err(to_error)
    }

    fn hydrate(
        policies: String,
        order: String,
        dry_run: bool,
        force: bool,
        by: String,
    ) -> Result<wit::Hydrated, wit::OrderError> {
        let search = Search::from_json(&policies).map_err(to_error)?;
        let wanted = Wanted {
            dry_run,
            force,
            by: &by,
        };
        zombies::hydrate(&Imports, &search, &order, &wanted)
            .map(to_hydrated)
            .map_err(to_error)
    }

    fn force_cancel(order: String, by: String, why: String) -> Result<wit::Order, wit::OrderError> {
        zombies::force_cancel(&Imports, &order, &by, &why)
            .map(to_order)
            .map_err(to_error)
    }
}

fn to_zombie(found: zombies::Zombie) -> wit::Zombie {
    wit::Zombie {
        line: found.line(),
        order: found.order,
        account: found.account,
        application: found.application,
        state: to_state(found.state),
        reason: found.reason,
        created_ms: found.created_ms,
        last_progress_ms: found.last_progress_ms,
        age_ms: found.age_ms,
    }
}

fn to_hydrated(hydrated: zombies::Hydrated) -> wit::Hydrated {
    wit::Hydrated {
        order: hydrated.order,
        account: hydrated.account,
        application: hydrated.application,
        issuer: hydrated.issuer,
        created_ms: hydrated.created_ms,
        can_apply: hydrated.plan.can_apply,
        refused: hydrated.plan.refused.map(|refusal| match refusal {
            zombie::Refusal::AtRest => wit::Refusal::AtRest,
            zombie::Refusal::Alive => wit::Refusal::Alive,
        }),
        applied: hydrated.applied,
        actions: hydrated.plan.actions.into_iter().map(to_action).collect(),
    }
}

fn to_action(action: zombie::Action) -> wit::Action {
    wit::Action {
        description: action.description,
        message: action.message.map(|message| wit::Message {
            deed: match message.kind {
                zombie::TaskKind::Start => wit::Deed::Start,
                zombie::TaskKind::Resume => wit::Deed::Resume,
                zombie::TaskKind::Poll => wit::Deed::Poll,
                zombie::TaskKind::Confirm => wit::Deed::Confirm,
                zombie::TaskKind::Check => wit::Deed::Check,
            },
            retry_at_ms: message.retry_at_ms,
        }),
        context: action.context,
    }
}
