//! Who calls, and what they may do.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Api;
use super::problem::{Kind, Problem};
use crate::config::Right;
use crate::connections::Peer;
use crate::input::names;

/// The principal of a service without tokens, which only this machine can reach.
const LOCAL: &str = "local";

/// Who may look.
#[derive(Debug)]
pub(crate) struct Reader;

/// Who may create and change orders: the principal.
#[derive(Debug)]
pub(crate) struct Writer(pub(crate) String);

/// Who may replay dead letters, hydrate, end by force and set limits: the principal.
#[derive(Debug)]
pub(crate) struct Admin(pub(crate) String);

impl FromRequestParts<Arc<Api>> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        api.callers.who(parts, Right::Read).map(|_| Reader)
    }
}

impl FromRequestParts<Arc<Api>> for Writer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        api.callers.who(parts, Right::Write).map(Writer)
    }
}

impl FromRequestParts<Arc<Api>> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        api.callers.who(parts, Right::Admin).map(Admin)
    }
}

/// Everybody who is known.
#[derive(Debug)]
pub(crate) struct Callers {
    pub(crate) tokens: Vec<crate::material::KnownToken>,
    /// What a client with a certificate may do; none where certificates are not asked for.
    pub(crate) client_rights: Vec<Right>,
}

impl Callers {
    /// The principal, if it has the right.
    fn who(&self, parts: &Parts, right: Right) -> Result<String, Problem> {
        let (principal, rights) = self.known(parts)?;
        if rights.contains(&right) {
            return Ok(principal);
        }
        let right = match right {
            Right::Read => "read",
            Right::Write => "write",
            Right::Admin => "admin",
        };
        Err(Problem::new(
            Kind::Forbidden,
            format!("{principal} does not have the right {right:?}"),
            format!("let the operator add {right:?} to the rights in the configuration"),
        ))
    }

    /// The name of a caller that proved it, by a token or a certificate.
    pub(crate) fn proved(&self, parts: &Parts) -> Option<String> {
        let has_no_credentials = self.tokens.is_empty() && self.client_rights.is_empty();
        match has_no_credentials {
            // Whoever reaches the port has proved nothing.
            true => None,
            false => self.known(parts).ok().map(|(principal, _)| principal),
        }
    }

    fn known(&self, parts: &Parts) -> Result<(String, Vec<Right>), Problem> {
        if let Some(given) = parts.headers.get(header::AUTHORIZATION) {
            let token = given
                .to_str()
                .ok()
                .and_then(|text| text.split_once(' '))
                .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
                .map(|(_, token)| token.trim());
            return match token.and_then(|token| self.of_token(token)) {
                Some(known) => Ok(known),
                None => Err(Problem::new(
                    Kind::Unauthenticated,
                    "the Authorization header holds no token that is known here",
                    "send Authorization: Bearer TOKEN with a token of the configuration",
                )),
            };
        }
        let peer = parts.extensions.get::<Peer>();
        if let Some(subject) = peer.and_then(|peer| peer.subject.clone()) {
            return Ok((subject, self.client_rights.clone()));
        }
        if self.tokens.is_empty() && self.client_rights.is_empty() {
            // Nothing but this machine reaches the port, but a page in a browser on it can have a
            // name of its own lead here.
            let host = parts.headers.get(header::HOST);
            let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
            if !names::is_loopback(&format!("http://{host}/")) {
                return Err(Problem::new(
                    Kind::Forbidden,
                    format!("the Host header says {host:?}, which is not this machine"),
                    "call the service by 127.0.0.1, [::1] or localhost",
                ));
            }
            // Nor may a page from elsewhere send what a browser sends without asking.
            let origin = parts.headers.get(header::ORIGIN);
            let foreign = origin.filter(|origin| {
                let own = [format!("http://{host}"), format!("https://{host}")];
                !own.iter().any(|own| origin.as_bytes() == own.as_bytes())
            });
            if let Some(origin) = foreign {
                return Err(Problem::new(
                    Kind::Forbidden,
                    format!("the request comes from a page at {origin:?}"),
                    "use the page of the service itself, or a command",
                ));
            }
            let all = vec![Right::Read, Right::Write, Right::Admin];
            return Ok((LOCAL.to_owned(), all));
        }
        Err(Problem::new(
            Kind::Unauthenticated,
            "the request names nobody",
            "send Authorization: Bearer TOKEN, or show a client certificate",
        ))
    }

    /// Compares with all, each in constant time: the time tells nothing about any token.
    fn of_token(&self, token: &str) -> Option<(String, Vec<Right>)> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let mut found = None;
        for known in &self.tokens {
            if bool::from(known.sha256.ct_eq(&hash)) {
                found = Some((known.name.clone(), known.rights.clone()));
            }
        }
        found
    }
}
