//! The CAs behind the gateway: which one gets a message, and which ones are well.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use abide_host::wit::placement::Criteria;
use abide_host::wit::policy::Mistake;
use abide_host::{Gate, HostError, Router};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::HeaderValue;
use hyper::http::uri::PathAndQuery;
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::config;
use crate::wire::{Answer, WireError, Wires};

/// A CA.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// As operators wrote it.
    pub(crate) url: String,
    /// For the field Host.
    pub(crate) authority: HeaderValue,
    /// Where messages go; absent, they go where the client sent them.
    pub(crate) path: Option<PathAndQuery>,
    wires: Wires,
    health: Mutex<Health>,
    patience: Patience,
}

/// How much is borne from an upstream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) failures: u32,
    pub(crate) first_pause: Duration,
    pub(crate) longest_pause: Duration,
}

#[derive(Debug, Default)]
struct Health {
    /// In a row.
    failures: u32,
    /// The last one, in words.
    why: String,
    pause: Duration,
    /// Left alone until then; whoever comes first after it tries.
    until: Option<Instant>,
    trying: bool,
}

/// Leave to send one message to an upstream.
#[derive(Debug)]
pub(crate) struct Leave<'u> {
    upstream: &'u Upstream,
    trial: bool,
}

impl Upstream {
    pub(crate) fn new(
        given: &config::Upstream,
        tls: Option<Arc<rustls::ClientConfig>>,
        patience: Patience,
    ) -> Option<Self> {
        let uri: hyper::Uri = given.url.parse().ok()?;
        let authority = uri.authority()?;
        let host = authority.host();
        let secure = uri.scheme_str() == Some("https");
        let port = authority
            .port_u16()
            .unwrap_or(if secure { 443 } else { 80 });
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        Some(Upstream {
            url: given.url.clone(),
            authority: HeaderValue::from_str(authority.as_str()).ok()?,
            path: uri
                .path_and_query()
                .filter(|path| path.as_str() != "/")
                .cloned(),
            wires: Wires::new(bare.to_owned(), port, tls),
            health: Mutex::default(),
            patience,
        })
    }

    /// Leave to send something, unless the upstream is being left alone; then, for how long.
    pub(crate) fn leave(&self, now: Instant) -> Result<Leave<'_>, Duration> {
        let mut health = self.health();
        let trial = match health.until {
            None => false,
            Some(until) if until <= now && !health.trying => {
                health.trying = true;
                true
            }
            Some(until) => return Err(until.saturating_duration_since(now)),
        };
        Ok(Leave {
            upstream: self,
            trial,
        })
    }

    /// Whether messages are sent to it, and if not, why not.
    pub(crate) fn state(&self) -> Result<(), String> {
        let health = self.health();
        match health.until {
            None => Ok(()),
            Some(_) => Err(health.why.clone()),
        }
    }

    /// Closes connections that nobody has used for a while.
    pub(crate) fn sweep(&self) {
        self.wires.sweep();
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn succeeded(&self) {
        let mut health = self.health();
        if health.until.is_some() {
            info!(upstream = self.url, "the upstream answers again");
        }
        if health.failures > 0 {
            *health = Health::default();
        }
    }

    fn failed(&self, why: &str, trial: bool) {
        let mut health = self.health();
        health.failures = health.failures.saturating_add(1);
        why.clone_into(&mut health.why);
        if trial {
            health.pause = (health.pause * 2).min(self.patience.longest_pause);
        } else if health.failures < self.patience.failures || health.until.is_some() {
            return;
        } else {
            health.pause = self.patience.first_pause;
        }
        health.trying = false;
        health.until = Some(Instant::now() + health.pause);
        let seconds = health.pause.as_secs_f32();
        let failures = health.failures;
        drop(health);
        warn!(
            upstream = self.url,
            failures, "the upstream fails and is left alone for {seconds} s: {why}"
        );
    }
}

impl Leave<'_> {
    /// Sends a request. What comes of it is remembered.
    pub(crate) async fn exchange(
        mut self,
        request: Request<Full<Bytes>>,
        patience: Duration,
        most: usize,
    ) -> Result<Answer, WireError> {
        let result = self.upstream.wires.exchange(request, patience, most).await;
        let trial = std::mem::take(&mut self.trial);
        match &result {
            Ok(_) | Err(WireError::TooLong(_)) => self.upstream.succeeded(),
            Err(WireError::NotSent(why) | WireError::NoAnswer(why)) => {
                self.upstream.failed(why, trial);
            }
        }
        result
    }
}

impl Drop for Leave<'_> {
    /// A trial that was given up tells nothing: the next one may try.
    fn drop(&mut self) {
        if self.trial {
            self.upstream.health().trying = false;
        }
    }
}

/// All upstreams, and who gets what.
#[derive(Debug)]
pub(crate) struct Upstreams {
    all: Vec<Arc<Upstream>>,
    /// Absent where every upstream is for everything: then their order is known.
    router: Option<Router>,
}

impl Upstreams {
    /// `given` and `all` belong together. The mistakes have the paths of the configuration.
    pub(crate) async fn new(
        gate: &Gate,
        given: &[config::Upstream],
        all: Vec<Arc<Upstream>>,
    ) -> Result<Result<Self, Vec<Mistake>>, HostError> {
        let endpoints: Vec<Value> = given
            .iter()
            .map(|upstream| {
                json!({
                    "url": upstream.url,
                    "priority": upstream.priority,
                    "selector": upstream.selector,
                })
            })
            .collect();
        let routing = json!({ "endpoints": endpoints }).to_string();
        let router = match gate.router(&routing).await? {
            Ok(router) => router,
            Err(mistakes) => {
                let mistakes = mistakes.into_iter().map(|mut mistake| {
                    mistake.path = mistake.path.replacen("endpoints", "upstreams", 1);
                    mistake
                });
                return Ok(Err(mistakes.collect()));
            }
        };
        if given.iter().any(|upstream| upstream.selector != "default") {
            return Ok(Ok(Upstreams {
                all,
                router: Some(router),
            }));
        }
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(given[index].priority));
        let all = order.into_iter().map(|index| all[index].clone()).collect();
        Ok(Ok(Upstreams { all, router: None }))
    }

    /// Those that a message may go to, in the order in which they are asked.
    pub(crate) async fn for_message(
        &self,
        criteria: &Criteria,
    ) -> Result<Vec<Arc<Upstream>>, HostError> {
        let Some(router) = &self.router else {
            return Ok(self.all.clone());
        };
        let considered = router.explain(criteria).await?;
        Ok(considered
            .iter()
            .filter(|entry| entry.matches)
            .filter_map(|entry| {
                let index = entry.entry.strip_prefix("endpoints[")?.strip_suffix(']')?;
                self.all.get(index.parse::<usize>().ok()?).cloned()
            })
            .collect())
    }

    /// Whether criteria have to be found out at all.
    pub(crate) fn chooses(&self) -> bool {
        self.router.is_some()
    }

    pub(crate) fn all(&self) -> &[Arc<Upstream>] {
        &self.all
    }
}
