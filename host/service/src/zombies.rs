//! Looks for orders that nobody works on any more. What counts as one is decided in the
//! component; here are the clock, the log and the counters.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use abide_host::Zombies;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::limits;
use crate::metrics::Metrics;

/// The search of one process.
pub(crate) struct Search {
    pub(crate) zombies: Zombies,
    /// The policies as the component wants them.
    pub(crate) policies: Arc<str>,
    /// Between two searches.
    pub(crate) period: Duration,
    pub(crate) metrics: Arc<Metrics>,
}

impl Search {
    /// Searches until it is told to stop.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut known = BTreeSet::new();
        let mut away = false;
        while !*stop.borrow() {
            tokio::select! {
                _ = stop.changed() => return,
                () = tokio::time::sleep(self.period) => {}
            }
            match self.look(&known).await {
                Ok(found) => {
                    if away {
                        info!("the search for zombies goes on");
                    }
                    away = false;
                    known = found;
                }
                // Said once, not with every try; the workers tell about the store as well.
                Err(error) if !away => {
                    warn!(%error, "the search for zombies failed: again in {:?}", self.period);
                    away = true;
                }
                Err(_) => {}
            }
        }
    }

    /// Goes through all orders, page by page, and tells about those that are zombies since the
    /// last time.
    async fn look(&self, known: &BTreeSet<String>) -> Result<BTreeSet<String>, String> {
        let mut found = BTreeSet::new();
        let mut cursor: Option<String> = None;
        loop {
            let (page, next) = self
                .zombies
                .find(&self.policies, None, cursor.as_deref(), limits::MOST_PAGE)
                .await
                .map_err(|error| error.to_string())?;
            for zombie in page {
                if !known.contains(&zombie.order) {
                    self.metrics.zombies_found.inc();
                    warn!(
                        order = zombie.order,
                        account = zombie.account,
                        application = zombie.application,
                        "{}; see `abide zombies hydrate --order {}`",
                        zombie.line,
                        zombie.order
                    );
                }
                found.insert(zombie.order);
            }
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        let count = i64::try_from(found.len()).unwrap_or(i64::MAX);
        self.metrics.zombies.set(count);
        Ok(found)
    }
}

/// Half of the cutoff: what is one is found before another half of it has passed. Never so often
/// that the search itself is a load.
pub(crate) fn period(cutoff: Duration) -> Duration {
    (cutoff / 2).clamp(limits::ZOMBIE_SEARCH.0, limits::ZOMBIE_SEARCH.1)
}
