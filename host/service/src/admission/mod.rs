//! Whether something goes on: quality of service for new orders, limits for requests, and what
//! operators set about limits while the service runs. The decisions are made in the component.

mod limiter;
mod overrides;
mod promoter;
mod quality;

pub(crate) use limiter::{Limits, Verdict};
pub(crate) use overrides::{Overrides, Set, Setting};
pub(crate) use promoter::Promoter;
pub(crate) use quality::{Arriving, Gatekeeper, counted};
