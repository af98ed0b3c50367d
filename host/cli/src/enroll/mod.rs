//! `abide enroll`: one request, from a command line to a file.

mod args;
mod drive;
mod patience;
mod plan;
mod question;
mod report;
mod voice;

use std::sync::Arc;

use abide_host::{Enroller, FileKeys, HttpNetwork, Runtime, Services, SqliteStorage};

pub(crate) use args::Enroll;
use plan::Reading;
use voice::Voice;

use crate::exit::{Exit, Stop};
use crate::{output, services};

/// Runs the command.
pub(crate) async fn run(args: &Enroll) -> Exit {
    match enroll(args).await {
        Ok(exit) => exit,
        Err(stop) => output::fail(&stop, args.output),
    }
}

async fn enroll(args: &Enroll) -> Result<Exit, Stop> {
    let mut desk = None;
    if args.resume && plan::names_its_order(args) {
        let plan = plan::plan(args, Reading::Wish).await?;
        let desk = desk.insert(Desk::open(args)?);
        let enroller = desk.enroller(plan.network, plan.keys);
        if let Some(report) = drive::recorded(&enroller, &plan.enrollment).await {
            return Ok(report::deliver(&report, &plan.enrollment, args));
        }
    }
    let plan = plan::plan(args, Reading::All).await?;
    let desk = match desk {
        Some(desk) => desk,
        None => Desk::open(args)?,
    };
    let enroller = desk.enroller(plan.network, plan.keys);
    let report = drive::drive(&enroller, &plan.enrollment, args, &desk.voice).await;
    Ok(report::deliver(&report, &plan.enrollment, args))
}

/// What stays the same whichever keys are at hand.
struct Desk {
    store: Arc<SqliteStorage>,
    runtime: Runtime,
    voice: Voice,
}

impl Desk {
    fn open(args: &Enroll) -> Result<Self, Stop> {
        Ok(Self {
            store: Arc::new(services::open_store(args.store.as_deref())?),
            runtime: services::runtime(args.no_cache)?,
            voice: Voice::new(args),
        })
    }

    fn enroller(&self, network: HttpNetwork, keys: FileKeys) -> Enroller {
        let listener = self.voice.clone();
        self.runtime.enroller(Services {
            storage: self.store.clone(),
            network: Arc::new(network),
            keys: Arc::new(keys),
            telemetry: Arc::new(move |event| listener.event(&event)),
        })
    }
}
