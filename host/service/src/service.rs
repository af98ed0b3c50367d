//! Everything together, from the configuration to the end.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use abide_host::wit::orders::State;
use abide_host::wit::placement::Algorithm;
use abide_host::{Enroller, Gate, HostError, Quality, Runtime, RuntimeConfig, Services, Storage};
use axum::Router;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tracing::{info, warn};

use crate::admission::{Gatekeeper, Limits, Overrides, Promoter, counted};
use crate::api::{self, Api, Callers};
use crate::config::{self, Config, Draft, Mistake};
use crate::delivery::{Delivery, Parts, Wanted};
use crate::log::Log;
use crate::metrics::Metrics;
use crate::network::Networks;
use crate::routes::Routes;
use crate::shards::{self, Shards};
use crate::worker::Worker;
use crate::zombies::Search;
use crate::{connections, limits, paths, store, zombies};

/// Time for a hook when the configuration says nothing: a web server reloads in seconds.
const HOOK_TIME: Duration = Duration::from_secs(60);

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration cannot be used: everything that is wrong with it.
    #[error("the configuration has {} mistakes", .0.len())]
    Config(Vec<Mistake>),
    /// The store, the port, the keys' folder: one line.
    #[error("{0}")]
    Host(String),
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] HostError),
}

/// A service that is ready: its port is bound, its store is open.
pub struct Service {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<rustls::ServerConfig>>,
    router: Router,
    metrics: Arc<Metrics>,
    worker: Worker,
    delivery: Option<(Arc<Delivery>, Wanted)>,
    search: Option<Search>,
    /// Absent where promotion is off.
    promoter: Option<Promoter>,
    overrides: Arc<Overrides>,
    shards: Option<Arc<Shards>>,
}

impl Service {
    /// Reads the configuration, opens the store and binds the port.
    pub async fn start(file: &Path) -> Result<Service, StartError> {
        let draft = Draft::read(file).await;
        let gate = gate(cache_of(draft.config()))?;
        let (draft, complete) = judged(draft, &gate).await?;
        let times = Times::of(&complete)?;
        for warning in draft.warnings() {
            warn!("{warning}");
        }
        let (config, material) = draft.finish().map_err(StartError::Config)?;
        let address = material
            .listen
            .ok_or_else(|| StartError::Host("there is no address to listen on".to_owned()))?;
        // The port first: a second service on it must not touch the store.
        let listener = connections::bind(address)
            .await
            .map_err(|error| StartError::Host(format!("{address} cannot be bound ({error})")))?;
        let address = listener
            .local_addr()
            .map_err(|error| StartError::Host(format!("{address}: {error}")))?;
        let storage = store::open(&material.store)
            .await
            .map_err(StartError::Host)?;
        let keys_folder = keys_folder(&config, &material.store)?;
        let mut keys = material.keys;
        keys.keep_made_keys_in(&keys_folder)
            .map_err(|error| StartError::Host(format!("{}: {error}", keys_folder.display())))?;
        let metrics = Arc::new(Metrics::new());
        let worker_name = worker_name(&config);
        let runtime = runtime(
            cache_of(&config),
            config.service.concurrency + limits::API_INSTANCES,
        )?;
        let enroller = runtime.enroller(Services {
            storage: storage.clone(),
            network: Arc::new(Networks(material.networks)),
            keys: Arc::new(keys),
            telemetry: Arc::new(Log),
        });
        enroller.prepare().await?;
        let policies: Arc<str> = Value::Object(config.policies.clone()).to_string().into();
        let wake = Arc::new(Notify::new());
        let gate = runtime.gate();
        let issuers = material.issuers.keys().cloned().collect();
        let routes = Routes::new(
            &gate,
            material.issuers,
            material.routings,
            enroller.orders(),
        );
        let routes = Arc::new(usable(routes.await?)?);
        let quality = usable(gate.quality(&complete["qos"].to_string()).await?)?;
        let quality = Arc::new(quality);
        not_stuck(&quality, &*storage).await?;
        let overrides = Arc::new(Overrides::new(storage.clone()));
        // Before the first request, or it would only be learnt from.
        if let Err(error) = overrides.read().await {
            warn!("what is set about limits cannot be read yet ({error:?})");
        }
        let rate_limit = &complete["rate_limit"];
        let limited = match rate_limit["enabled"].as_bool() {
            Some(true) => {
                let limiter = usable(gate.limiter(&rate_limit.to_string()).await?)?;
                Some(Limits::new(limiter, overrides.clone(), metrics.clone()))
            }
            _ => None,
        };
        let promoter = promoter(
            &complete["qos"],
            Promoter {
                orders: enroller.orders(),
                storage: storage.clone(),
                quality: quality.clone(),
                worker: worker_name.clone(),
                interval: Duration::ZERO,
                fair: false,
                metrics: metrics.clone(),
                wake: wake.clone(),
            },
        );
        let shards = shards(
            &complete["cache_sharding"],
            gate,
            &storage,
            &worker_name,
            &metrics,
            &wake,
        );
        let delivery = delivery(
            &config,
            &enroller,
            &storage,
            &worker_name,
            &keys_folder,
            &metrics,
        );
        let callers = Callers {
            tokens: material.tokens,
            client_rights: match &config.service.tls {
                Some(tls) if !tls.client_ca.is_empty() => material.client_rights,
                _ => Vec::new(),
            },
        };
        if !address.ip().is_loopback() && material.tls.is_none() {
            warn!("{address} speaks plain HTTP: tokens can be read on the way; see service.tls");
        }
        let router = api::router(Arc::new(Api {
            orders: enroller.orders(),
            schedule: enroller.schedule(),
            zombies: enroller.zombies(),
            storage: storage.clone(),
            policies: policies.clone(),
            issuers,
            callers,
            metrics: metrics.clone(),
            wake: wake.clone(),
            delivers: delivery.is_some(),
            worker: worker_name.clone(),
            enroller: enroller.clone(),
            gatekeeper: Gatekeeper {
                quality,
                orders: enroller.orders(),
                storage,
                metrics: metrics.clone(),
                enabled: complete["qos"]["enabled"].as_bool().unwrap_or(false),
                turn: tokio::sync::Mutex::new(()),
            },
            limits: limited,
            overrides: overrides.clone(),
            learning: rate_limit["learning"].as_bool().unwrap_or(true),
            routes: routes.clone(),
            shards: shards.clone(),
        }));
        let search = times.zombies.map(|cutoff| Search {
            zombies: enroller.zombies(),
            policies: policies.clone(),
            period: zombies::period(cutoff),
            metrics: metrics.clone(),
        });
        let worker = Worker {
            schedule: enroller.schedule(),
            routes,
            shards: shards.clone(),
            policies,
            name: worker_name,
            concurrency: config.service.concurrency,
            lease: times.lease,
            drain: Duration::from_secs(config.service.drain_seconds),
            wake,
            metrics: metrics.clone(),
            delivery: delivery.as_ref().map(|(delivery, _)| delivery.clone()),
        };
        Ok(Service {
            listener,
            address,
            tls: material.tls,
            router,
            metrics,
            worker,
            delivery,
            search,
            promoter,
            overrides,
            shards,
        })
    }

    /// Where the API is.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves and works until `stop`, and then ends in good order: no new connections and tasks,
    /// running ones get their time, what is left is handed back.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let (tell, told) = watch::channel(false);
        let http = tokio::spawn(connections::serve(
            self.listener,
            self.tls,
            self.router,
            self.metrics,
            told.clone(),
        ));
        let worker = tokio::spawn(self.worker.run(told.clone()));
        let overrides = tokio::spawn(self.overrides.run(told.clone()));
        let promoter = self
            .promoter
            .map(|promoter| tokio::spawn(promoter.run(told.clone())));
        // The heartbeat goes on until nothing of this worker is at work.
        let (tell_last, told_last) = watch::channel(false);
        let shards = self
            .shards
            .map(|shards| tokio::spawn(shards.run(told_last)));
        let delivery = self
            .delivery
            .map(|(delivery, wanted)| tokio::spawn(delivery.run(wanted, told.clone())));
        let search = self.search.map(|search| tokio::spawn(search.run(told)));
        stop.await;
        info!("stopping");
        // All receivers live in these tasks; one that is gone needs no telling.
        let _ = tell.send(true);
        let parts = [
            Some(http),
            Some(worker),
            delivery,
            Some(overrides),
            promoter,
            search,
        ];
        for part in parts.into_iter().flatten() {
            if let Err(error) = part.await {
                tracing::error!("a part of the service broke down: {error}; please report this");
            }
        }
        let _ = tell_last.send(true);
        if let Some(shards) = shards
            && let Err(error) = shards.await
        {
            tracing::error!("the heartbeat broke down: {error}; please report this");
        }
        info!("stopped");
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// A configuration with everything that is wrong with it, the component's judgement included.
pub async fn check(file: &Path) -> Result<Draft, HostError> {
    let mut draft = Draft::read(file).await;
    let gate = gate(cache_of(draft.config()))?;
    draft.check_policies(&gate).await?;
    Ok(draft)
}

/// What the host has to know of the policies.
struct Times {
    /// The time of a lease.
    lease: Duration,
    /// After which an order counts as a zombie, if they are searched for.
    zombies: Option<Duration>,
}

/// The draft with the component's judgement, and its policies with every default written out.
async fn judged(mut draft: Draft, gate: &Gate) -> Result<(Draft, Value), StartError> {
    draft.check_policies(gate).await?;
    if !draft.mistakes().is_empty() {
        return Err(StartError::Config(draft.mistakes().to_vec()));
    }
    let sections = Value::Object(draft.config().policies.clone()).to_string();
    let complete = gate.complete_policies(&sections).await?;
    let complete = complete
        .ok()
        .and_then(|text| serde_json::from_str::<Value>(&text).ok());
    match complete {
        Some(complete) => Ok((draft, complete)),
        None => Err(StartError::Host(
            "the component does not tell its policies; please report this".to_owned(),
        )),
    }
}

impl Times {
    fn of(complete: &Value) -> Result<Self, StartError> {
        let seconds = complete["scheduler"]["retry_lock_timeout_seconds"].as_u64();
        let check = &complete["zombie_check"];
        let searches = check["enabled"].as_bool();
        match (seconds, searches, check["cutoff_ms"].as_u64()) {
            (Some(seconds), Some(searches), Some(cutoff_ms)) => Ok(Self {
                lease: Duration::from_secs(seconds.max(1)),
                zombies: searches.then_some(Duration::from_millis(cutoff_ms)),
            }),
            _ => Err(StartError::Host(
                "the component does not tell its times; please report this".to_owned(),
            )),
        }
    }
}

/// What the component has made of a policy that it found nothing wrong with before.
fn usable<T>(made: Result<T, Vec<abide_host::wit::policy::Mistake>>) -> Result<T, StartError> {
    made.map_err(|mistakes| {
        let lines = mistakes
            .iter()
            .map(|mistake| format!("{}: {}", mistake.path, mistake.problem));
        StartError::Host(lines.collect::<Vec<_>>().join("; "))
    })
}

/// Refuses to start where buffered orders would wait for ever.
async fn not_stuck(quality: &Quality, storage: &dyn Storage) -> Result<(), StartError> {
    let buffered = counted(storage, State::Buffered)
        .await
        .map_err(|error| StartError::Host(format!("the store does not answer: {error:?}")))?;
    match quality.stuck(buffered).await? {
        None => Ok(()),
        Some(why) => Err(StartError::Host(format!(
            "{buffered} orders are buffered: {why} (qos.promotion in the configuration)"
        ))),
    }
}

/// The promoter with what the policy says, unless promotion is off.
fn promoter(qos: &Value, parts: Promoter) -> Option<Promoter> {
    let promotion = &qos["promotion"];
    if promotion["enabled"].as_bool() == Some(false) {
        return None;
    }
    let interval_ms = promotion["promote_interval_ms"].as_u64().unwrap_or(5000);
    let policies = promotion["policies"].as_array();
    Some(Promoter {
        interval: Duration::from_millis(interval_ms.max(1)),
        fair: policies.is_some_and(|all| all.iter().any(|one| one == "fair-share")),
        ..parts
    })
}

/// The division of accounts, if there is one.
fn shards(
    policy: &Value,
    gate: Gate,
    storage: &Arc<dyn Storage>,
    worker: &str,
    metrics: &Arc<Metrics>,
    wake: &Arc<Notify>,
) -> Option<Arc<Shards>> {
    if policy["enabled"].as_bool() != Some(true) {
        return None;
    }
    let heartbeat_ms = policy["heartbeat_ms"].as_u64().unwrap_or(30_000);
    Some(Arc::new(Shards::new(shards::Parts {
        gate,
        storage: storage.clone(),
        policy: policy.to_string(),
        algorithm: match policy["placement"].as_str() {
            Some("modulo") => Algorithm::Modulo,
            _ => Algorithm::Rendezvous,
        },
        heartbeat: Duration::from_millis(heartbeat_ms.max(3)),
        worker: worker.to_owned(),
        metrics: metrics.clone(),
        wake: wake.clone(),
    })))
}

/// The component's judgement on policies, with nothing behind it.
fn gate(cache: Option<PathBuf>) -> Result<Gate, HostError> {
    Ok(runtime(cache, 1)?.gate())
}

fn runtime(cache: Option<PathBuf>, instances: u32) -> Result<Runtime, HostError> {
    let mut config = RuntimeConfig::default();
    config.cache = cache;
    config.instances = instances;
    let runtime = Runtime::new(config)?;
    for warning in runtime.warnings() {
        warn!("{warning}");
    }
    Ok(runtime)
}

fn cache_of(config: &Config) -> Option<PathBuf> {
    match &config.service.cache {
        Some(cache) => Some(config.path(cache)),
        None => paths::default_cache(),
    }
}

fn keys_folder(config: &Config, store: &config::Store) -> Result<PathBuf, StartError> {
    match (&config.service.keys, store) {
        (Some(folder), _) => Ok(config.path(folder)),
        (None, config::Store::Sqlite(path)) => Ok(path.with_file_name("keys")),
        (None, config::Store::Postgres(_)) => paths::default_store()
            .map(|path| path.with_file_name("keys"))
            .map_err(|error| StartError::Host(error.message)),
    }
}

fn worker_name(config: &Config) -> String {
    config.service.worker.clone().unwrap_or_else(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = match host.trim() {
            "" => "host",
            name => name,
        };
        format!("{host:.100}-{}", std::process::id())
    })
}

fn delivery(
    config: &Config,
    enroller: &Enroller,
    storage: &Arc<dyn Storage>,
    worker: &str,
    keys: &Path,
    metrics: &Arc<Metrics>,
) -> Option<(Arc<Delivery>, Wanted)> {
    let given = &config.delivery;
    if given.directory.is_none() && given.hook.is_none() {
        return None;
    }
    let time = given
        .hook_timeout_seconds
        .map_or(HOOK_TIME, Duration::from_secs);
    let hook = given.hook.clone().map(|mut words| {
        // A path is relative to the file, a plain name is looked for in PATH.
        let program = Path::new(&words[0]);
        if program.components().count() > 1
            && let Ok(program) = std::path::absolute(config.path(program))
        {
            words[0] = program.display().to_string();
        }
        (words, time)
    });
    Some(Delivery::new(Parts {
        orders: enroller.orders(),
        storage: storage.clone(),
        worker: worker.to_owned(),
        directory: given.directory.as_ref().map(|folder| {
            let folder = config.path(folder);
            std::path::absolute(&folder).unwrap_or(folder)
        }),
        hook,
        folder: config.folder.clone(),
        keys: keys.to_owned(),
        metrics: metrics.clone(),
    }))
}
