//! The other side of the HTTP API, for commands that talk to a running service.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use reqwest::{Client, Method, StatusCode};
use rustls_pki_types::CertificateDer;
use rustls_platform_verifier::BuilderVerifierExt;
use serde_json::Value;

use crate::exit::{Exit, Stop};
use crate::text::printable;
use crate::{names, pem};

/// Longer than the service takes for any request.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest answer in bytes: a page of orders with their histories has some hundred thousand.
const LONGEST_ANSWER: usize = 64 << 20;

/// Where the service is, and who calls.
#[derive(Args, Clone, Debug)]
pub(crate) struct Remote {
    /// The service
    #[arg(
        long,
        value_name = "URL",
        env = "ABIDE_URL",
        default_value = "http://127.0.0.1:8443",
        global = true,
        help_heading = "Service"
    )]
    url: String,
    /// The bearer token; best given by the environment, where others on this host cannot see it
    #[arg(
        long,
        value_name = "TOKEN",
        env = "ABIDE_TOKEN",
        hide_env_values = true,
        global = true,
        help_heading = "Service"
    )]
    token: Option<String>,
    /// Trust anchors for an https service; the system's when absent
    #[arg(
        long,
        value_name = "FILE",
        env = "ABIDE_CA",
        global = true,
        help_heading = "Service"
    )]
    ca: Option<PathBuf>,
}

/// A service that can be asked.
pub(crate) struct Service {
    client: Client,
    base: String,
    token: Option<String>,
}

impl Remote {
    /// Makes a client; nothing is connected yet.
    pub(crate) fn connect(&self) -> Result<Service, Stop> {
        let base = names::server_url(&self.url)
            .map_err(|error| Stop::usage(format!("--url {}: {error}", self.url)))?;
        let mut builder = Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("abide/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(self.tls()?);
        if names::is_loopback(&base) {
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| Stop::host(format!("HTTP cannot be set up ({error})")))?;
        Ok(Service {
            client,
            base: base.trim_end_matches('/').to_owned(),
            token: self.token.clone(),
        })
    }

    fn tls(&self) -> Result<rustls::ClientConfig, Stop> {
        let host = |error: &dyn std::fmt::Display| Stop::host(format!("TLS: {error}"));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| host(&error))?;
        let Some(path) = &self.ca else {
            // Reading the machine's certificates takes a while, and plain HTTP needs none.
            if !self.url.to_ascii_lowercase().starts_with("https://") {
                return Ok(builder
                    .with_root_certificates(rustls::RootCertStore::empty())
                    .with_no_client_auth());
            }
            return Ok(builder
                .with_platform_verifier()
                .map_err(|error| host(&error))?
                .with_no_client_auth());
        };
        let mut roots = rustls::RootCertStore::empty();
        for anchor in pem::certificates("--ca", path)? {
            roots
                .add(CertificateDer::from(anchor))
                .map_err(|error| Stop::usage(format!("--ca {}: {error}", path.display())))?;
        }
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

impl Service {
    /// Asks for JSON.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Stop> {
        self.json(Method::GET, path, None).await
    }

    /// Sends JSON, or nothing.
    pub(crate) async fn post(&self, path: &str, body: Option<&Value>) -> Result<Value, Stop> {
        self.json(Method::POST, path, body).await
    }

    /// Puts what the path says.
    pub(crate) async fn put(&self, path: &str) -> Result<Value, Stop> {
        self.json(Method::PUT, path, None).await
    }

    /// Asks for text.
    pub(crate) async fn text(&self, path: &str) -> Result<String, Stop> {
        self.call(Method::GET, path, None).await
    }

    /// All pages of a listing, up to `most` entries; whether there are more.
    pub(crate) async fn all(&self, path: &str, most: usize) -> Result<(Vec<Value>, bool), Stop> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let sign = if path.contains('?') { '&' } else { '?' };
            let page = match &cursor {
                None => path.to_owned(),
                Some(cursor) => format!("{path}{sign}cursor={}", percent(cursor)),
            };
            let mut page = self.get(&page).await?;
            if let Value::Array(items) = page["items"].take() {
                all.extend(items);
            }
            cursor = page["next"].as_str().map(str::to_owned);
            if cursor.is_none() || all.len() >= most {
                let more = cursor.is_some() || all.len() > most;
                all.truncate(most);
                return Ok((all, more));
            }
        }
    }

    async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Stop> {
        let text = self.call(method, path, body).await?;
        serde_json::from_str(&text).map_err(|error| {
            Stop::host(format!(
                "{} answers no JSON ({error}): is it abide?",
                self.base
            ))
        })
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<String, Stop> {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let unreachable = |error: reqwest::Error| Stop {
            exit: Exit::Unreachable,
            message: format!(
                "{} cannot be reached ({}); is `abide serve` running there? Name it by --url",
                self.base,
                causes(&error)
            ),
        };
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if bytes.len() + chunk.len() > LONGEST_ANSWER {
                return Err(Stop::host(format!("{} answers without an end", self.base)));
            }
            bytes.extend_from_slice(&chunk);
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match status.is_success() {
            true => Ok(text),
            false => Err(refused(status, &text)),
        }
    }
}

/// A problem of the service as the end of a command.
fn refused(status: StatusCode, text: &str) -> Stop {
    let problem: Value = serde_json::from_str(text).unwrap_or_default();
    let part = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    let message = match part("detail").as_str() {
        "" => format!("the service answers {status}"),
        detail => printable(&format!("{detail}; {}", part("action"))),
    };
    let exit = match status.as_u16() {
        401 | 403 => Exit::Untrusted,
        400..=499 => Exit::Usage,
        503 => Exit::Unreachable,
        _ => Exit::Host,
    };
    Stop { exit, message }
}

/// The causes of an error, outermost first.
fn causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line = error.to_string();
        cause = error.source();
    }
    line
}

/// A value in a query or a path (RFC 3986, 2.1).
pub(crate) fn percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_for_urls() {
        assert_eq!(percent("a-b_c.d~e"), "a-b_c.d~e");
        assert_eq!(percent("a b/ü?&"), "a%20b%2F%C3%BC%3F%26");
    }

    #[test]
    fn a_problem_is_one_line_that_says_what_to_do() {
        let text = r#"{"detail":"issuer is missing","action":"give one of: a, b"}"#;
        let stop = refused(StatusCode::UNPROCESSABLE_ENTITY, text);
        assert_eq!(stop.message, "issuer is missing; give one of: a, b");
        assert_eq!(stop.exit, Exit::Usage);
        let stop = refused(StatusCode::BAD_GATEWAY, "<html>");
        assert!(stop.message.contains("502"), "{stop}");
    }
}
