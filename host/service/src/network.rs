//! The ways to all CAs as one.

use std::collections::BTreeMap;

use abide_host::wit::network::{NetworkError, Request, Response};
use abide_host::{HttpNetwork, Network};
use async_trait::async_trait;

/// Each endpoint by its own way: with its trust anchors and its certificate.
#[derive(Debug)]
pub(crate) struct Networks(pub(crate) BTreeMap<String, HttpNetwork>);

#[async_trait]
impl Network for Networks {
    async fn exchange(&self, request: Request) -> Result<Response, NetworkError> {
        match self.0.get(&request.endpoint) {
            Some(way) => way.exchange(request).await,
            None => Err(NetworkError::BadEndpoint(format!(
                "no issuer of the configuration has the server {}",
                request.endpoint
            ))),
        }
    }
}
