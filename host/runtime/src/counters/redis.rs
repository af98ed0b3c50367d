//! Buckets in Redis: one trip for each request, by a script that the server runs as one step.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{AsyncCommands, Client, RedisError, Script, Value};

use super::{Ask, Counters, CountersError, Setting, Took};
use crate::limits;
use crate::wit::admission::{Algorithm, Overrides, Taken};

const LEARNING: &str = "rateLimit:learning";
const ENFORCING: &str = "rateLimit:enforcing";
const IGNORING: &str = "rateLimit:ignoring";
const CAPACITY: &str = "rateLimit:capacity:";
const RATE_SECONDS: &str = "rateLimit:rateSeconds:";

/// Keys that one step of a search looks at.
const SCAN: usize = 1000;

/// Buckets on a Redis server. The keys of one request lie in several slots, so a cluster does not
/// do; a server with replicas does.
pub struct RedisCounters {
    connection: ConnectionManager,
    script: Script,
    address: String,
}

impl RedisCounters {
    /// For `redis://[user:password@]host:port/database`. The server need not be there yet.
    pub fn new(url: &str) -> Result<Self, CountersError> {
        let client = Client::open(url).map_err(|error| {
            CountersError(format!("this is no address of a Redis server ({error})"))
        })?;
        let address = client.get_connection_info().addr().to_string();
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(1)
            .set_max_delay(limits::COUNTERS_AWAY.1)
            .set_connection_timeout(Some(Duration::from_secs(1)))
            // The limiter has a patience of its own.
            .set_response_timeout(None);
        let connection = ConnectionManager::new_lazy_with_config(client, config)
            .map_err(|error| CountersError(format!("{address}: {error}")))?;
        Ok(Self {
            connection,
            script: Script::new(include_str!("take.lua")),
            address,
        })
    }

    fn failed(&self, error: &RedisError) -> CountersError {
        CountersError(format!("Redis at {}: {error}", self.address))
    }

    fn odd(&self, value: &Value) -> CountersError {
        CountersError(format!(
            "Redis at {} answers {value:?}, which is not what was asked",
            self.address
        ))
    }

    async fn search(&self, prefix: &str) -> Result<Vec<(String, String)>, RedisError> {
        let mut connection = self.connection.clone();
        let mut found = Vec::new();
        let mut cursor = 0_u64;
        loop {
            let (next, keys): (u64, Vec<String>) = redis::cmd("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(format!("{prefix}*"))
                .arg("COUNT")
                .arg(SCAN)
                .query_async(&mut connection)
                .await?;
            for key in keys {
                let value: Option<String> = connection.get(&key).await?;
                if let (Some(name), Some(value)) = (key.strip_prefix(prefix), value) {
                    found.push((name.to_owned(), value));
                }
            }
            cursor = next;
            if cursor == 0 || found.len() >= limits::COUNTERS_BELIEVED {
                return Ok(found);
            }
        }
    }
}

impl fmt::Debug for RedisCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCounters")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Counters for RedisCounters {
    async fn take(&self, ask: &Ask<'_>) -> Result<Took, CountersError> {
        let mut call = self.script.prepare_invoke();
        call.key(ask.key)
            .key(LEARNING)
            .key(ENFORCING)
            .key(IGNORING)
            .key(format!("{CAPACITY}{}", ask.name))
            .key(format!("{RATE_SECONDS}{}", ask.name));
        let believed = ask.believed;
        call.arg(ask.name)
            .arg(optional(believed.learning.as_deref()))
            .arg(u8::from(believed.enforcing))
            .arg(u8::from(believed.ignoring))
            .arg(optional(believed.capacity.as_deref()))
            .arg(optional(believed.rate_seconds.as_deref()));
        call.arg(match ask.limit.algorithm {
            Algorithm::Window => "w",
            Algorithm::Gcra => "c",
        })
        .arg(ask.limit.capacity)
        .arg(ask.limit.rate_ms)
        .arg(ask.cost);
        let mut connection = self.connection.clone();
        let answer: Value = call
            .invoke_async(&mut connection)
            .await
            .map_err(|error| self.failed(&error))?;
        read(&answer, ask.now_ms).ok_or_else(|| self.odd(&answer))
    }

    async fn settings(&self) -> Result<Vec<Setting>, CountersError> {
        let mut connection = self.connection.clone();
        let all = async {
            let mut all = Vec::new();
            let learning: Option<String> = connection.get(LEARNING).await?;
            all.extend(learning.map(Setting::Learning));
            let enforcing: Vec<String> = connection.smembers(ENFORCING).await?;
            all.extend(enforcing.into_iter().map(Setting::Enforcing));
            let ignoring: Vec<String> = connection.smembers(IGNORING).await?;
            all.extend(ignoring.into_iter().map(Setting::Ignoring));
            for (name, value) in self.search(CAPACITY).await? {
                all.push(Setting::Capacity(name, value));
            }
            for (name, value) in self.search(RATE_SECONDS).await? {
                all.push(Setting::RateSeconds(name, value));
            }
            all.sort();
            Ok(all)
        };
        all.await.map_err(|error| self.failed(&error))
    }

    async fn set(&self, setting: &Setting) -> Result<(), CountersError> {
        let mut connection = self.connection.clone();
        match setting {
            Setting::Learning(value) => connection.set(LEARNING, value).await,
            Setting::Enforcing(name) => connection.sadd(ENFORCING, name).await,
            Setting::Ignoring(name) => connection.sadd(IGNORING, name).await,
            Setting::Capacity(name, value) => {
                connection.set(format!("{CAPACITY}{name}"), value).await
            }
            Setting::RateSeconds(name, value) => {
                connection.set(format!("{RATE_SECONDS}{name}"), value).await
            }
        }
        .map_err(|error: RedisError| self.failed(&error))
    }

    async fn unset(&self, setting: &Setting) -> Result<(), CountersError> {
        let mut connection = self.connection.clone();
        match setting {
            Setting::Learning(_) => connection.del(LEARNING).await,
            Setting::Enforcing(name) => connection.srem(ENFORCING, name).await,
            Setting::Ignoring(name) => connection.srem(IGNORING, name).await,
            Setting::Capacity(name, _) => connection.del(format!("{CAPACITY}{name}")).await,
            Setting::RateSeconds(name, _) => connection.del(format!("{RATE_SECONDS}{name}")).await,
        }
        .map_err(|error: RedisError| self.failed(&error))
    }
}

/// What may be absent, for the script.
fn optional(value: Option<&str>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("={value}"))
}

/// What the script answers.
fn read(answer: &Value, now_ms: u64) -> Option<Took> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let text = |at: usize| match parts.get(at)? {
        Value::BulkString(octets) => std::str::from_utf8(octets).ok(),
        Value::SimpleString(text) => Some(text.as_str()),
        _ => None,
    };
    let number = |at: usize| match parts.get(at)? {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    match text(0)? {
        "set" => {
            let value = |at: usize| Some(text(at)?.strip_prefix('=').map(str::to_owned));
            Some(Took::Set(Overrides {
                learning: value(1)?,
                enforcing: text(2)? == "1",
                ignoring: text(3)? == "1",
                capacity: value(4)?,
                rate_seconds: value(5)?,
            }))
        }
        "taken" => {
            let later = |ms: i64| now_ms.saturating_add(ms.unsigned_abs());
            let reset_ms = later(number(3)?);
            let retry = number(4)?;
            Some(Took::Taken(Taken {
                admitted: number(1)? == 1,
                remaining: u32::try_from(number(2)?).ok()?,
                reset_ms,
                retry_at_ms: (retry >= 0).then(|| later(retry)),
                forget_at_ms: reset_ms,
            }))
        }
        _ => None,
    }
}
