//! Who asks.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

use super::RateLimit;
use crate::limits::{MAX_APP, MAX_NAME};

/// Whose bucket a request is charged to. Each kind has names of its own, so that nobody reaches
/// another's bucket by calling himself like him.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Principal {
    /// A caller whose name was proved: an API token, the subject of a TLS certificate, or the
    /// sender of a CMP message whose protection verified.
    Authenticated(String),
    /// A caller that named itself with `X-RateLimit-App`.
    App(String),
    /// An address. All of an IPv6 /64 is one, since whoever has one address of it has them all.
    Address(IpAddr),
    /// Everybody else together.
    Anonymous,
}

impl Principal {
    /// A caller whose name was proved; `None` if the name is empty or longer than any bucket may
    /// be called, which should be refused as what it is.
    pub fn authenticated(name: &str) -> Option<Self> {
        (!name.is_empty() && name.len() <= MAX_NAME).then(|| Self::Authenticated(name.to_owned()))
    }

    /// A caller that names itself: up to 128 visible ASCII characters, or else it is anonymous.
    pub fn app(header: &str) -> Self {
        let name = header.trim_matches([' ', '\t']);
        let is_name = (1..=MAX_APP).contains(&name.len())
            && name.bytes().all(|octet| octet.is_ascii_graphic());
        if is_name {
            Self::App(name.to_owned())
        } else {
            Self::Anonymous
        }
    }

    /// A caller known by its address only. An IPv4 address in an IPv6 one is the IPv4 address.
    pub fn address(peer: IpAddr) -> Self {
        Self::Address(network(peer))
    }

    /// Whether an entry of the configuration means it; see [`RateLimit`].
    pub fn is_meant_by(&self, entry: &str) -> bool {
        match self {
            Self::Authenticated(name) => entry == name && !is_special(entry),
            Self::App(name) => entry.strip_prefix(APP) == Some(name),
            Self::Address(own) => configured_address(entry) == Some(*own),
            Self::Anonymous => entry == ANONYMOUS,
        }
    }

    /// The key of its bucket in a shared store. It begins like no key of the configuration.
    pub fn bucket_key(&self) -> String {
        match self {
            Self::Authenticated(name) => format!("{BUCKET_KEY}principal:{name}"),
            _ => format!("{BUCKET_KEY}{self}"),
        }
    }
}

impl RateLimit {
    /// Who asks: the authenticated caller, else the name it gives itself, else its address if
    /// that is configured, else anonymous.
    pub fn identify(
        &self,
        authenticated: Option<&str>,
        app: Option<&str>,
        peer: Option<IpAddr>,
    ) -> Principal {
        if let Some(principal) = authenticated.and_then(Principal::authenticated) {
            return principal;
        }
        match app.map(Principal::app) {
            Some(named @ Principal::App(_)) => named,
            _ => match peer {
                Some(peer) if self.by_address => Principal::address(peer),
                _ => Principal::Anonymous,
            },
        }
    }
}

/// As entries of the configuration, log lines and metrics name it.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authenticated(name) => f.write_str(name),
            Self::App(name) => write!(f, "{APP}{name}"),
            Self::Address(address) => write!(f, "{ADDRESS}{address}"),
            Self::Anonymous => f.write_str(ANONYMOUS),
        }
    }
}

/// Whether an entry of the configuration means something else than an authenticated name.
fn is_special(entry: &str) -> bool {
    entry == ANONYMOUS || is_app(entry) || configured_address(entry).is_some()
}

/// Whether an entry of the configuration means a client that named itself.
pub(super) fn is_app(entry: &str) -> bool {
    entry.starts_with(APP)
}

/// The key of the bucket that those share who found no room for one of their own.
pub(super) fn overflow_key() -> String {
    format!("{BUCKET_KEY}others")
}

fn configured_address(entry: &str) -> Option<IpAddr> {
    entry.strip_prefix(ADDRESS)?.parse().ok().map(network)
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

const ANONYMOUS: &str = "anonymous";
const APP: &str = "app:";
const ADDRESS: &str = "address:";
const BUCKET_KEY: &str = "rateLimit:bucket:";
