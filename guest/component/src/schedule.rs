use alloc::string::String;
use alloc::vec::Vec;

use abide_enroll::schedule::{Policies, Share};
use abide_enroll::{orders, schedule};

use crate::Component;
use crate::bindings::exports::abide::cmp::schedule as wit;
use crate::host::Imports;
use crate::orders::{to_error, to_order};
use crate::transactions::{
    allowed, from_credential, from_limits, from_operation, from_registration,
};

impl wit::Guest for Component {
    fn claim(
        worker: String,
        free: u32,
        started_ms: u64,
        policies: String,
        share: Option<wit::Share>,
    ) -> Result<wit::Batch, wit::OrderError> {
        let policies = Policies::from_json(&policies).map_err(to_error)?;
        let share = share
            .map(|share| Share::from_json(&share.view, share.excluded))
            .transpose()
            .map_err(to_error)?;
        let batch = schedule::claim(
            &Imports,
            &worker,
            free,
            started_ms,
            &policies,
            share.as_ref(),
        )
        .map_err(to_error)?;
        Ok(wit::Batch {
            work: batch.work.into_iter().map(to_work).collect(),
            next_look_ms: batch.next_look_ms,
            dead: batch.dead,
            spread: batch.spread,
            foreign: batch.foreign,
        })
    }

    fn run(
        work: wit::Work,
        issuer: Option<wit::Issuer>,
        policies: String,
    ) -> Result<wit::Ran, wit::OrderError> {
        let policies = Policies::from_json(&policies).map_err(to_error)?;
        let issuer = issuer.map(from_issuer);
        let ran = schedule::run(&Imports, &from_work(work), issuer.as_ref(), &policies)
            .map_err(to_error)?;
        Ok(match ran {
            schedule::Ran::Done(order) => wit::Ran::Done(to_order(*order)),
            schedule::Ran::Postponed(until_ms) => wit::Ran::Postponed(until_ms),
            schedule::Ran::Fenced(what) => wit::Ran::Fenced(what),
            schedule::Ran::Failed(why, again_ms) => wit::Ran::Failed((why, again_ms)),
        })
    }

    fn renew(work: Vec<wit::Work>, policies: String) -> Result<Vec<wit::Work>, wit::OrderError> {
        let policies = Policies::from_json(&policies).map_err(to_error)?;
        let work = work.into_iter().map(from_work).collect();
        schedule::renew(&Imports, work, &policies.scheduler)
            .map(|lost| lost.into_iter().map(to_work).collect())
            .map_err(to_error)
    }

    fn release(work: Vec<wit::Work>) -> Result<(), wit::OrderError> {
        let work: Vec<_> = work.into_iter().map(from_work).collect();
        schedule::release(&Imports, &work).map_err(to_error)
    }

    fn tasks(
        dead: bool,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<(Vec<wit::Task>, Option<String>), wit::OrderError> {
        schedule::tasks(&Imports, dead, cursor.as_deref(), limit)
            .map(|(page, next)| (page.into_iter().map(to_task).collect(), next))
            .map_err(to_error)
    }

    fn replay(order: String) -> Result<wit::Task, wit::OrderError> {
        schedule::replay(&Imports, &order)
            .map(to_task)
            .map_err(to_error)
    }

    fn endpoints(
        policies: String,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<(Vec<wit::EndpointHealth>, Option<String>), wit::OrderError> {
        let policies = Policies::from_json(&policies).map_err(to_error)?;
        schedule::endpoints(&Imports, &policies.retry, cursor.as_deref(), limit)
            .map(|(page, next)| (page.into_iter().map(to_health).collect(), next))
            .map_err(to_error)
    }
}

fn to_health(health: schedule::EndpointHealth) -> wit::EndpointHealth {
    wit::EndpointHealth {
        server: health.server,
        retries_left: health.retries_left,
        retries: health.retries,
        throttled: health.throttled,
        not_before_ms: health.not_before_ms,
        updated_ms: health.updated_ms,
    }
}

fn from_issuer(issuer: wit::Issuer) -> orders::Issuer {
    orders::Issuer {
        operation: from_operation(issuer.operation),
        updates: issuer.updates,
        profile: issuer.profile,
        server: issuer.server,
        endpoints: issuer.endpoints,
        route: issuer.route,
        recipient: issuer.recipient,
        credential: from_credential(issuer.credential),
        trusted: issuer.trusted,
        out_trusted: issuer.out_trusted,
        untrusted: issuer.untrusted,
        implicit_confirm: issuer.implicit_confirm,
        allow_sha1: issuer.allow_sha1,
        allow: allowed(issuer.allow),
        limits: from_limits(issuer.limits),
        registration: issuer.registration.map(from_registration),
    }
}

fn to_work(work: schedule::Work) -> wit::Work {
    wit::Work {
        order: work.order,
        issuer: work.issuer,
        account: work.account,
        kind: to_kind(work.kind),
        token: work.token,
        due_ms: work.due_ms,
        retry_count: work.retry_count,
    }
}

fn from_work(work: wit::Work) -> schedule::Work {
    schedule::Work {
        order: work.order,
        issuer: work.issuer,
        account: work.account,
        kind: match work.kind {
            wit::TaskKind::Start => schedule::TaskKind::Start,
            wit::TaskKind::Retry => schedule::TaskKind::Retry,
            wit::TaskKind::Renew => schedule::TaskKind::Renew,
            wit::TaskKind::Resume => schedule::TaskKind::Resume,
        },
        token: work.token,
        due_ms: work.due_ms,
        retry_count: work.retry_count,
    }
}

fn to_kind(kind: schedule::TaskKind) -> wit::TaskKind {
    match kind {
        schedule::TaskKind::Start => wit::TaskKind::Start,
        schedule::TaskKind::Retry => wit::TaskKind::Retry,
        schedule::TaskKind::Renew => wit::TaskKind::Renew,
        schedule::TaskKind::Resume => wit::TaskKind::Resume,
    }
}

fn to_task(task: schedule::Task) -> wit::Task {
    wit::Task {
        order: task.order,
        issuer: task.issuer,
        account: task.account,
        kind: to_kind(task.kind),
        due_ms: task.due_ms,
        retry_count: task.retry_count,
        holder: task.holder.map(|lease| (lease.holder, lease.until_ms)),
        reason: task.reason,
    }
}
