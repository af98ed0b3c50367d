//! Everything together, from the configuration to the end.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use abide_host::{HostError, Runtime, RuntimeConfig};
use abide_service::config::Mistake;
use abide_service::paths;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::admin;
use crate::config::{Draft, Ready};
use crate::connections::Doors;
use crate::limits;
use crate::metrics::Metrics;
use crate::proxy::Proxy;
use crate::refusal::Errors;

/// Why the gateway does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration cannot be used: everything that is wrong with it.
    #[error("the configuration has {} mistakes", .0.len())]
    Config(Vec<Mistake>),
    /// A port: one line.
    #[error("{0}")]
    Host(String),
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] HostError),
}

/// A gateway that is ready: its ports are bound.
#[derive(Debug)]
pub struct Gateway {
    listener: TcpListener,
    address: SocketAddr,
    admin: Option<(TcpListener, SocketAddr)>,
    tls: Option<Arc<rustls::ServerConfig>>,
    proxy: Arc<Proxy>,
    drain: Duration,
}

impl Gateway {
    /// Reads everything that the configuration names, and binds the ports.
    pub async fn start(draft: Draft) -> Result<Gateway, StartError> {
        let mut config = RuntimeConfig::default();
        config.cache = draft.cache().or_else(paths::default_cache);
        let (deadline_ms, memory) = draft.sandbox();
        config.call_deadline = Duration::from_millis(deadline_ms);
        config.memory_limit = memory;
        let runtime = Runtime::new(config)?;
        for warning in runtime.warnings() {
            warn!("{warning}");
        }
        let gate = runtime.gate();
        gate.prepare().await?;
        let Ready {
            listen,
            admin,
            tls,
            hops,
            judge,
            limiting,
            upstreams,
            bounds,
            strict_status,
            drain,
        } = draft.finish(&gate).await?.map_err(StartError::Config)?;
        let (listener, address) = bind(listen).await?;
        let admin = match admin {
            Some(admin) => Some(bind(admin).await?),
            None => None,
        };
        let proxy = Proxy {
            judge,
            limiting,
            upstreams,
            hops,
            bounds,
            strict_status,
            errors: Errors::new(gate).await?,
            metrics: Arc::new(Metrics::new()),
        };
        Ok(Gateway {
            listener,
            address,
            admin,
            tls,
            proxy: Arc::new(proxy),
            drain,
        })
    }

    /// Where messages are taken.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Where metrics and probes are.
    pub fn admin_url(&self) -> Option<String> {
        let (_, address) = self.admin.as_ref()?;
        Some(format!("http://{address}"))
    }

    /// Serves until `stop` comes, then lets running requests end.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (told, hear) = watch::channel(false);
        let watching = self.admin.map(|(listener, _)| {
            tokio::spawn(admin::serve(listener, self.proxy.clone(), hear.clone()))
        });
        let sweeping = tokio::spawn(sweep(self.proxy.clone()));
        let doors = Doors {
            listener: self.listener,
            tls: self.tls,
            proxy: self.proxy,
            drain: self.drain,
        };
        let serving = tokio::spawn(doors.serve(hear));
        stop.await;
        info!("stopping: running requests may end");
        // Nobody hears it only if nothing is served any more.
        let _ = told.send(true);
        let _ = serving.await;
        sweeping.abort();
        if let Some(watching) = watching {
            watching.abort();
        }
    }
}

/// Closes connections to CAs that are no longer used, also when no more messages come.
async fn sweep(proxy: Arc<Proxy>) {
    loop {
        tokio::time::sleep(limits::KEPT_TIME).await;
        for upstream in proxy.upstreams.all() {
            upstream.sweep();
        }
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|error: std::io::Error| {
        StartError::Host(format!("{address} cannot be bound ({error})"))
    })
}
