//! CMP over HTTP (RFC 9811): one POST, one answer.
//!
//! **Connections.** One connection is kept per endpoint and used again, because small servers tie
//! the polling for a certificate to the connection it was asked over. When a server has closed a
//! kept connection, hyper notices while it is idle and opens another. In the moment between, a
//! request can be handed to a connection that is already gone: hyper gives it back, unsent, and
//! sends it over a new one. A request of which one byte was written is never sent again here;
//! its fate is `interrupted`, and only the component, which stored it first, may repeat it.

mod classify;
#[cfg(test)]
mod http_tests;
pub(crate) mod tls;
#[cfg(test)]
mod tls_tests;

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use reqwest::header::{
    ACCEPT, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, Url, redirect};

use crate::error::chain;
use crate::wit::network::{NetworkError, Request, Response};
use crate::{Network, limits};

pub use tls::{Identity, TlsFile, client as tls_client};

/// The media type of a PKIMessage (RFC 9811, 3.3).
const PKIXCMP: HeaderValue = HeaderValue::from_static("application/pkixcmp");

/// How endpoints are reached.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HttpConfig {
    /// Certificates that may vouch for an HTTPS server. Without any, the machine's own.
    pub trusted: Vec<TlsFile>,
    /// What this side shows a server that asks for a certificate.
    pub identity: Option<Identity>,
    /// Whether `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` count.
    pub proxy_from_environment: bool,
}

/// Why endpoints cannot be reached as configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkConfigError {
    /// A file has no certificate in it.
    #[error("{name} has no certificate in PEM or DER: give a certificate file")]
    NoCertificate {
        /// The file.
        name: String,
    },
    /// A certificate cannot be used.
    #[error("{name} cannot be used for TLS: {reason}")]
    BadCertificate {
        /// The file.
        name: String,
        /// Why.
        reason: String,
    },
    /// A file has no private key in it.
    #[error("{name} has no private key that TLS can use: give an unencrypted key in PEM or DER")]
    NoKey {
        /// The file.
        name: String,
    },
    /// Key and certificate do not belong together, or are of a kind TLS does not know.
    #[error("{certificate} and {key} cannot be used together for TLS: {reason}")]
    BadIdentity {
        /// The certificate's file.
        certificate: String,
        /// The key's file.
        key: String,
        /// Why.
        reason: String,
    },
    /// The client cannot be set up.
    #[error("HTTP cannot be set up: {reason}")]
    Client {
        /// Why.
        reason: String,
    },
}

/// HTTP and HTTPS.
#[derive(Debug)]
pub struct HttpNetwork {
    config: HttpConfig,
    plain: Client,
    /// Made for the first HTTPS endpoint: reading the machine's certificates takes longer than a
    /// whole enrollment over plain HTTP.
    secure: OnceLock<Client>,
}

impl HttpNetwork {
    /// Reads what was configured for TLS; nothing is connected yet.
    pub fn new(config: HttpConfig) -> Result<Self, NetworkConfigError> {
        let plain = client(&config, tls::none()?)?;
        let secure = if config.trusted.is_empty() && config.identity.is_none() {
            OnceLock::new()
        } else {
            // What was named must be good, whether this endpoint needs it or the next.
            client(
                &config,
                tls::client(&config.trusted, config.identity.as_ref())?,
            )?
            .into()
        };
        Ok(HttpNetwork {
            config,
            plain,
            secure,
        })
    }

    fn client(&self, url: &Url) -> Result<&Client, NetworkError> {
        if url.scheme() == "http" {
            return Ok(&self.plain);
        }
        if let Some(client) = self.secure.get() {
            return Ok(client);
        }
        let made = tls::client(&self.config.trusted, self.config.identity.as_ref())
            .and_then(|tls| client(&self.config, tls))
            .map_err(|error| NetworkError::Tls(format!("{url}: {error}")))?;
        Ok(self.secure.get_or_init(|| made))
    }
}

#[async_trait]
impl Network for HttpNetwork {
    async fn exchange(&self, request: Request) -> Result<Response, NetworkError> {
        let url = endpoint(&request.endpoint)?;
        let limit = request.response_limit as usize;
        let too_large = || NetworkError::TooLarge(u64::from(request.response_limit));
        let mut response = self
            .client(&url)?
            .post(url.clone())
            .timeout(Duration::from_millis(request.timeout_ms))
            .body(request.message)
            .send()
            .await
            .map_err(|error| classify::request(&url, error))?;
        if response.content_length() > Some(u64::from(request.response_limit)) {
            return Err(too_large());
        }
        let status = response.status().as_u16();
        let headers = response.headers();
        let content_type = text(headers, &CONTENT_TYPE);
        let location = text(headers, &LOCATION);
        let retry_after =
            text(headers, &RETRY_AFTER).and_then(|value| retry_after(&value, SystemTime::now()));
        let mut body = Vec::new();
        // The announced length may be missing or a lie.
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| classify::answer(&url, error))?
        {
            if body.len() + chunk.len() > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Response {
            status,
            content_type,
            retry_after,
            location,
            body,
        })
    }
}

fn client(config: &HttpConfig, tls: rustls::ClientConfig) -> Result<Client, NetworkConfigError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, PKIXCMP);
    headers.insert(ACCEPT, PKIXCMP);
    // HTTP/1.1 keeps connections anyway, but OpenSSL's server does so only when told.
    headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .default_headers(headers)
        .user_agent(concat!("abide/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true)
        .connect_timeout(limits::CONNECT_TIME)
        .pool_max_idle_per_host(limits::IDLE_CONNECTIONS);
    if !config.proxy_from_environment {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| NetworkConfigError::Client {
        reason: chain(&error),
    })
}

/// A URL that CMP can be spoken to.
fn endpoint(text: &str) -> Result<Url, NetworkError> {
    let bad = |why: &str| NetworkError::BadEndpoint(format!("{text}: {why}"));
    let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("the URL must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // Not quoted: it would end in logs.
        return Err(NetworkError::BadEndpoint(
            "the URL must not contain a user name or a password".to_owned(),
        ));
    }
    Ok(url)
}

fn text(headers: &HeaderMap, name: &reqwest::header::HeaderName) -> Option<String> {
    let value = headers.get(name)?.as_bytes();
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Seconds from `now` (RFC 9110, 10.2.3: a number of seconds or a date). A date in the past is
/// no wait at all.
fn retry_after(value: &str, now: SystemTime) -> Option<u64> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a long time, not none.
        return Some(value.parse().unwrap_or(u64::MAX));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    let wait = at.duration_since(now).unwrap_or(Duration::ZERO);
    Some(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}
