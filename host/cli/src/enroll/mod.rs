//! `abide enroll`: one certificate, from a command line to a file.

mod args;
mod drive;
mod patience;
mod plan;
mod report;
mod voice;

use std::sync::Arc;

use abide_host::Services;

pub(crate) use args::Enroll;
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
    let plan = plan::plan(args).await?;
    let store = services::open_store(args.store.as_deref())?;
    let runtime = services::runtime(args.no_cache)?;
    let voice = Voice::new(args);
    let listener = voice.clone();
    let enroller = runtime.enroller(Services {
        storage: Arc::new(store),
        network: Arc::new(plan.network),
        keys: Arc::new(plan.keys),
        telemetry: Arc::new(move |event| listener.event(&event)),
    });
    let report = drive::drive(&enroller, &plan.enrollment, args, &voice).await;
    Ok(report::deliver(&report, &plan.enrollment, args))
}
