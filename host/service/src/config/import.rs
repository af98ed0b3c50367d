//! Spinnaker's YAML as abide's TOML: limits, quality of service, sharding and endpoints. What has
//! no counterpart becomes a comment, so that nobody believes it is followed.

use std::fmt::Write as _;

use abide_host::{Gate, HostError};
use serde_json::{Map, Value, json};

use crate::limits;

/// Why nothing was made of a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It cannot be read.
    #[error("it is no YAML that can be read: {0}")]
    Yaml(String),
    /// It is too large.
    #[error("it has {0} bytes; at most {max} are read", max = limits::CONFIG_FILE)]
    TooLarge(usize),
    /// Nothing in it is known.
    #[error("nothing in it is known: no rateLimit, qos, cache-sharding or baseUrl")]
    Nothing,
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] HostError),
}

/// A leaf of the file: the names that lead to it, and its value. Lists are leaves.
struct Leaf {
    path: Vec<String>,
    value: Value,
    taken: bool,
}

/// What becomes of it.
#[derive(Default)]
struct Made {
    rate_limit: Map<String, Value>,
    cache_sharding: Map<String, Value>,
    qos: Map<String, Value>,
    promotion: Map<String, Value>,
    issuers: Vec<Issuer>,
    /// Lines for people.
    comments: Vec<String>,
}

struct Issuer {
    name: String,
    path: String,
    endpoints: Vec<Value>,
    dynamic: Map<String, Value>,
}

/// The TOML of abide that means what a YAML of Spinnaker means.
pub async fn import(gate: &Gate, yaml: &str) -> Result<String, ImportError> {
    if yaml.len() > limits::CONFIG_FILE {
        return Err(ImportError::TooLarge(yaml.len()));
    }
    let tree: Value = serde_saphyr::from_str(yaml)
        .map_err(|error| ImportError::Yaml(error.to_string().replace('\n', " ")))?;
    let mut leaves = Vec::new();
    flatten(&mut Vec::new(), &tree, &mut leaves);
    let mut made = Made::default();
    for leaf in &mut leaves {
        leaf.taken = made.take(leaf);
    }
    made.endpoints(gate, &mut leaves).await?;
    if !leaves.iter().any(|leaf| leaf.taken) {
        return Err(ImportError::Nothing);
    }
    for leaf in leaves.iter().filter(|leaf| !leaf.taken) {
        let line = format!(
            "not taken over: {} = {}: abide has nothing like it",
            leaf.path.join("."),
            leaf.value
        );
        made.comments.push(line);
    }
    Ok(made.text())
}

/// A name with dots in it, as Spring reads it, is as many names.
fn flatten(path: &mut Vec<String>, value: &Value, leaves: &mut Vec<Leaf>) {
    let Value::Object(fields) = value else {
        if !path.is_empty() {
            leaves.push(Leaf {
                path: path.clone(),
                value: value.clone(),
                taken: false,
            });
        }
        return;
    };
    for (name, value) in fields {
        let depth = path.len();
        path.extend(name.split('.').map(str::to_owned));
        flatten(path, value, leaves);
        path.truncate(depth);
    }
}

impl Made {
    /// Whether a leaf was taken over, or said to be of no use.
    fn take(&mut self, leaf: &Leaf) -> bool {
        let path: Vec<&str> = leaf.path.iter().map(String::as_str).collect();
        let value = leaf.value.clone();
        match path[..] {
            ["rateLimit", "enabled"] => self.limit("enabled", value),
            ["rateLimit", "learning"] => self.limit("learning", value),
            ["rateLimit", "rateSeconds"] => self.limit("rate_seconds", value),
            ["rateLimit", "capacity"] => self.limit("capacity", value),
            ["rateLimit", "capacityByPrincipal"] => self.limit("capacity_by_principal", value),
            ["rateLimit", "rateSecondsByPrincipal"] => {
                self.limit("rate_seconds_by_principal", value)
            }
            ["rateLimit", "enforcing"] => self.limit("enforcing", value),
            ["rateLimit", "ignoring"] => self.limit("ignoring", value),
            ["rateLimit", "redis", ..] => self.remark(
                leaf,
                "abide counts without Redis; what is set while it runs is set by its API",
            ),
            ["cache-sharding" | "cacheSharding", "enabled"] => {
                self.cache_sharding.insert("enabled".to_owned(), value);
                let modulo = Value::from("modulo");
                self.cache_sharding.insert("placement".to_owned(), modulo);
                true
            }
            ["qos", "enabled"] => put(&mut self.qos, "enabled", value),
            ["qos", "learningMode", "enabled"] => put(&mut self.qos, "learning_mode", value),
            ["qos", "bufferPolicy", "naive", "enabled"] => {
                // Orders that somebody waits for are always forced through.
                let mut buffer =
                    vec![json!({ "interactive": { "origins": ["deck", "ui", "cli"] } })];
                if value != Value::Bool(false) {
                    buffer.push(Value::from("naive"));
                }
                put(&mut self.qos, "buffer", Value::Array(buffer))
            }
            ["qos", "bufferingState", "supplier"] => self.supplier(leaf),
            ["qos", "bufferingState", "activeExecutions", "threshold"] => self.supplied(
                "activeExecutions",
                json!({ "active-executions": { "threshold": value } }),
            ),
            ["qos", "bufferingState", "killSwitch", "enabled"] => {
                self.supplied("killSwitch", json!({ "kill-switch": { "enabled": value } }))
            }
            ["qos", "promotionPolicy", "naive", "enabled"] => {
                if value == Value::Bool(false) {
                    put(&mut self.promotion, "policies", json!([]));
                }
                true
            }
            ["qos", "promotionPolicy", "naive", "size"] => {
                if self.promotion.get("policies") != Some(&json!([])) {
                    let naive = json!([{ "naive": { "size": value } }]);
                    put(&mut self.promotion, "policies", naive);
                }
                true
            }
            ["pollers", "qos", "promoteIntervalMs"] => {
                put(&mut self.promotion, "promote_interval_ms", value)
            }
            ["pollers", "qos", "updateStateIntervalMs"] => self.remark(
                leaf,
                "abide counts the active orders whenever there is a new one",
            ),
            _ => false,
        }
    }

    fn limit(&mut self, name: &str, value: Value) -> bool {
        // The same way of counting as there.
        put(&mut self.rate_limit, "algorithm", Value::from("window"));
        put(&mut self.rate_limit, name, value)
    }

    fn remark(&mut self, leaf: &Leaf, why: &str) -> bool {
        let (path, value) = (leaf.path.join("."), &leaf.value);
        self.comments
            .push(format!("not taken over: {path} = {value}: {why}"));
        true
    }

    /// The supplier that is named; what it is given may stand before or after.
    fn supplier(&mut self, leaf: &Leaf) -> bool {
        let named = match leaf.value.as_str() {
            Some("activeExecutions") => json!({ "active-executions": { "threshold": 100 } }),
            Some("killSwitch") => json!({ "kill-switch": { "enabled": false } }),
            _ => return false,
        };
        let kind = |value: &Value| value.as_object().and_then(|it| it.keys().next().cloned());
        let given = self.qos.get("supplier").and_then(kind);
        if given != kind(&named) {
            put(&mut self.qos, "supplier", named);
        }
        true
    }

    fn supplied(&mut self, of: &str, supplier: Value) -> bool {
        let other = match of {
            "killSwitch" => "active-executions",
            _ => "kill-switch",
        };
        let is_other = self
            .qos
            .get("supplier")
            .is_some_and(|chosen| chosen.get(other).is_some());
        if is_other {
            let line = format!("not taken over: {supplier}: another supplier is chosen");
            self.comments.push(line);
            return true;
        }
        put(&mut self.qos, "supplier", supplier)
    }

    /// Endpoints, wherever they stand: lists of `baseUrls`, and a `baseUrl` with what its `config`
    /// says.
    async fn endpoints(&mut self, gate: &Gate, leaves: &mut [Leaf]) -> Result<(), HostError> {
        for leaf in leaves {
            let path = leaf.path.clone();
            let [service @ .., last] = &path[..] else {
                continue;
            };
            match (last.as_str(), &leaf.value) {
                ("baseUrls", Value::Array(entries)) => {
                    let mut endpoints = Vec::new();
                    for (index, entry) in entries.iter().enumerate() {
                        let place = format!("{}[{index}]", path.join("."));
                        endpoints.extend(self.endpoint(gate, &place, entry).await?);
                    }
                    self.issuer(service).endpoints.extend(endpoints);
                    leaf.taken = true;
                }
                ("baseUrl", Value::String(url)) => {
                    let endpoint = json!({ "url": url });
                    self.issuer(service).endpoints.push(endpoint);
                    leaf.taken = true;
                }
                (origin, Value::String(url)) => {
                    if let [service @ .., config, dynamic] = service
                        && config == "config"
                        && dynamic == "dynamicEndpoints"
                    {
                        let url = Value::from(url.clone());
                        self.issuer(service).dynamic.insert(origin.to_owned(), url);
                        leaf.taken = true;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn endpoint(
        &mut self,
        gate: &Gate,
        place: &str,
        entry: &Value,
    ) -> Result<Option<Value>, HostError> {
        let Some(url) = entry.get("baseUrl").and_then(Value::as_str) else {
            let line = format!("not taken over: {place}: it has no baseUrl");
            self.comments.push(line);
            return Ok(None);
        };
        let mut endpoint = Map::new();
        endpoint.insert("url".to_owned(), url.into());
        if let Some(priority) = entry.get("priority") {
            endpoint.insert("priority".to_owned(), priority.clone());
        }
        if let Some(config) = entry.get("config") {
            match gate.selector_from_class(&config.to_string()).await? {
                Ok(selector) => {
                    let selector: Value = serde_json::from_str(&selector).unwrap_or_default();
                    if selector != "default" {
                        endpoint.insert("selector".to_owned(), selector);
                    }
                }
                Err(mistakes) => {
                    // Without its selector it would be for everything.
                    let why: Vec<_> = mistakes.iter().map(|it| it.problem.as_str()).collect();
                    let line = format!("not taken over: {place} ({url}): {}", why.join("; "));
                    self.comments.push(line);
                    return Ok(None);
                }
            }
        }
        Ok(Some(Value::Object(endpoint)))
    }

    /// The issuer that stands for a service of Spinnaker.
    fn issuer(&mut self, service: &[String]) -> &mut Issuer {
        let path = service.join(".");
        let named: Vec<&str> = service
            .iter()
            .map(String::as_str)
            .filter(|name| *name != "services")
            .collect();
        let name = match named.join("-") {
            name if name.is_empty() => "imported".to_owned(),
            name => name,
        };
        let at = match self.issuers.iter().position(|issuer| issuer.path == path) {
            Some(at) => at,
            None => {
                self.issuers.push(Issuer {
                    name,
                    path,
                    endpoints: Vec::new(),
                    dynamic: Map::new(),
                });
                self.issuers.len() - 1
            }
        };
        &mut self.issuers[at]
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for line in &self.comments {
            // One line each, whatever stands in the file.
            let line: String = line.chars().filter(|c| !c.is_control()).collect();
            push(&mut out, &format!("# {line}"));
        }
        section(&mut out, "rate_limit", &self.rate_limit);
        section(&mut out, "cache_sharding", &self.cache_sharding);
        section(&mut out, "qos", &self.qos);
        section(&mut out, "qos.promotion", &self.promotion);
        for issuer in &self.issuers {
            issuer.text(&mut out);
        }
        out
    }
}

impl Issuer {
    fn text(&self, out: &mut String) {
        if !out.is_empty() {
            out.push('\n');
        }
        push(out, &format!("# {}", self.path));
        push(
            out,
            "# To be added: reference and secret, or cert and key; trusted.",
        );
        let table = format!("issuers.{}", key(&self.name));
        push(out, &format!("[{table}]"));
        if !self.dynamic.is_empty() {
            let dynamic = Value::Object(self.dynamic.clone());
            push(out, &format!("dynamic_endpoints = {}", toml(&dynamic)));
        }
        for endpoint in &self.endpoints {
            push(out, &format!("\n[[{table}.endpoints]]"));
            for (name, value) in endpoint.as_object().into_iter().flatten() {
                push(out, &format!("{} = {}", key(name), toml(value)));
            }
        }
    }
}

fn put(map: &mut Map<String, Value>, name: &str, value: Value) -> bool {
    map.insert(name.to_owned(), value);
    true
}

fn push(out: &mut String, line: &str) {
    // A String takes all.
    let _ = writeln!(out, "{line}");
}

fn section(out: &mut String, name: &str, fields: &Map<String, Value>) {
    if fields.is_empty() {
        return;
    }
    if !out.is_empty() {
        out.push('\n');
    }
    push(out, &format!("[{name}]"));
    for (name, value) in fields {
        push(out, &format!("{} = {}", key(name), toml(value)));
    }
}

/// A key: bare where it may be.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.chars().all(bare) {
        true => name.to_owned(),
        false => Value::from(name).to_string(),
    }
}

/// A value on one line. The strings of JSON are strings of TOML too.
fn toml(value: &Value) -> String {
    match value {
        Value::Null => "\"\"".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{} = {}", key(name), toml(value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}
