//! Everything together, from the configuration to the end.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use abide_host::{Enroller, Gate, HostError, Runtime, RuntimeConfig, Services, Storage};
use axum::Router;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tracing::{info, warn};

use crate::api::{self, Api, Callers};
use crate::config::{self, Config, Draft, Mistake};
use crate::delivery::{Delivery, Parts, Wanted};
use crate::log::Log;
use crate::metrics::Metrics;
use crate::network::Networks;
use crate::worker::Worker;
use crate::{connections, limits, paths, store};

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
}

impl Service {
    /// Reads the configuration, opens the store and binds the port.
    pub async fn start(file: &Path) -> Result<Service, StartError> {
        let draft = Draft::read(file).await;
        let gate = gate(cache_of(draft.config()))?;
        let (draft, lease) = judged(draft, &gate).await?;
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
        let issuers = Arc::new(material.issuers);
        let wake = Arc::new(Notify::new());
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
            storage,
            policies: policies.clone(),
            issuers: issuers.keys().cloned().collect(),
            callers,
            metrics: metrics.clone(),
            wake: wake.clone(),
            counted: Mutex::new(None),
            delivers: delivery.is_some(),
            enroller: enroller.clone(),
        }));
        let worker = Worker {
            schedule: enroller.schedule(),
            issuers,
            policies,
            name: worker_name,
            concurrency: config.service.concurrency,
            lease,
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
        let delivery = self
            .delivery
            .map(|(delivery, wanted)| tokio::spawn(delivery.run(wanted, told)));
        stop.await;
        info!("stopping");
        // All receivers live in the three tasks; one that is gone needs no telling.
        let _ = tell.send(true);
        let parts = [Some(http), Some(worker), delivery];
        for part in parts.into_iter().flatten() {
            if let Err(error) = part.await {
                tracing::error!("a part of the service broke down: {error}; please report this");
            }
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

/// The draft with the component's judgement, and the time of a lease.
async fn judged(mut draft: Draft, gate: &Gate) -> Result<(Draft, Duration), StartError> {
    draft.check_policies(gate).await?;
    if !draft.mistakes().is_empty() {
        return Err(StartError::Config(draft.mistakes().to_vec()));
    }
    let sections = Value::Object(draft.config().policies.clone()).to_string();
    let complete = gate.complete_policies(&sections).await?;
    let seconds = complete
        .ok()
        .and_then(|text| serde_json::from_str::<Value>(&text).ok())
        .and_then(|all| all["scheduler"]["retry_lock_timeout_seconds"].as_u64());
    match seconds {
        Some(seconds) => Ok((draft, Duration::from_secs(seconds.max(1)))),
        None => Err(StartError::Host(
            "the component does not tell how long a lease is; please report this".to_owned(),
        )),
    }
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
