//! Certificates on their way to files and hooks.
//!
//! What is to be delivered is a record in the store, claimed under a lease like a task, so that
//! a worker that dies in the middle is followed by another one. Files are replaced whole and hold
//! the same after a second time; a hook may run twice for one certificate when its worker dies
//! right after it. A delivery that fails is tried again for ever, and never holds up its order.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use abide_host::wit::orders::{Order, OrderError, OrderFilter, State};
use abide_host::wit::storage::{Change, Claim, Claimed, Envelope, Lease, Put, StorageError};
use abide_host::{OrderCallError, Orders, Storage};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tracing::{error, info, warn};

use crate::input::files;
use crate::input::pem;
use crate::input::text::{hex, printable};
use crate::metrics::{Metrics, Outcome};
use crate::{limits, store, when};

/// The family of its records.
const KIND: &str = "delivery";

/// What of the environment a hook inherits; secrets may be in the rest.
const INHERITED: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// Where certificates go.
pub(crate) struct Delivery {
    pub(crate) orders: Orders,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) worker: String,
    pub(crate) directory: Option<PathBuf>,
    /// The command with its arguments, and how long it may take.
    pub(crate) hook: Option<(Vec<String>, Duration)>,
    /// The folder in which the command runs.
    pub(crate) folder: PathBuf,
    /// The folder of the keys that this host makes.
    pub(crate) keys: PathBuf,
    pub(crate) metrics: Arc<Metrics>,
    wanted: mpsc::UnboundedSender<String>,
}

/// What is stored about the delivery of an order's newest certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Of this record's form.
    schema: u32,
    /// SHA-256 of the certificate in hexadecimal.
    pub(crate) certificate: String,
    /// How many certificates of the order were delivered before.
    pub(crate) delivered: u64,
    /// Failures in a row.
    pub(crate) attempts: u32,
    /// The last failure; empty when it worked.
    pub(crate) error: String,
}

/// A delivery as people see it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) state: String,
    pub(crate) next_ms: Option<u64>,
    pub(crate) updated_ms: u64,
    pub(crate) record: Record,
}

/// Who takes the orders whose certificates are wanted.
pub(crate) type Wanted = mpsc::UnboundedReceiver<String>;

/// What makes a [`Delivery`].
pub(crate) struct Parts {
    pub(crate) orders: Orders,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) worker: String,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) hook: Option<(Vec<String>, Duration)>,
    pub(crate) folder: PathBuf,
    pub(crate) keys: PathBuf,
    pub(crate) metrics: Arc<Metrics>,
}

impl Delivery {
    pub(crate) fn new(parts: Parts) -> (Arc<Self>, Wanted) {
        let (wanted, queue) = mpsc::unbounded_channel();
        let delivery = Delivery {
            orders: parts.orders,
            storage: parts.storage,
            worker: parts.worker,
            directory: parts.directory,
            hook: parts.hook,
            folder: parts.folder,
            keys: parts.keys,
            metrics: parts.metrics,
            wanted,
        };
        (Arc::new(delivery), queue)
    }

    /// An order has a certificate that may be new. Does not wait.
    pub(crate) fn wanted(&self, order: String) {
        // At the end of the process nobody listens; the next one looks for what is missing.
        let _ = self.wanted.send(order);
    }

    /// What is known of the delivery of an order's certificate.
    pub(crate) async fn of(storage: &dyn Storage, order: &str) -> Option<Seen> {
        let entry = storage.get(KIND, order).await.ok()??;
        Some(Seen {
            state: entry.envelope.state,
            next_ms: entry.envelope.due_ms,
            updated_ms: entry.envelope.updated_ms,
            record: serde_json::from_slice(&entry.body).ok()?,
        })
    }

    /// Delivers until it is told to stop.
    pub(crate) async fn run(self: Arc<Self>, mut queue: Wanted, mut stop: watch::Receiver<bool>) {
        let mut reconcile = tokio::time::interval(limits::RECONCILE);
        reconcile.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut look_ms = 0;
        let mut failing = false;
        while !*stop.borrow() {
            let wait = Duration::from_millis(look_ms_from_now(look_ms));
            tokio::select! {
                _ = stop.changed() => {}
                Some(order) = queue.recv() => {
                    if self.want_now(&order, &mut failing).await {
                        look_ms = 0;
                    }
                }
                _ = reconcile.tick() => {
                    if self.look_for_missing(&mut failing).await {
                        look_ms = 0;
                    }
                }
                () = tokio::time::sleep(wait) => {
                    look_ms = self.deliver_due(&mut failing).await;
                }
            }
        }
    }

    async fn want_now(&self, order: &str, failing: &mut bool) -> bool {
        let wanted = match self.orders.get(order).await {
            Ok(order) => self.want(&order).await,
            Err(error) => Err(error.to_string()),
        };
        told(wanted, failing).unwrap_or(false)
    }

    /// Makes the record that the certificate is to be delivered, unless it was already.
    async fn want(&self, order: &Order) -> Result<bool, String> {
        let Some(leaf) = order.chain.first() else {
            return Ok(false);
        };
        let certificate = hex(&Sha256::digest(leaf));
        let entry = self
            .storage
            .get(KIND, &order.id)
            .await
            .map_err(|error| storage_words(&error))?;
        let mut record = Record::default();
        if let Some(entry) = &entry {
            record = serde_json::from_slice(&entry.body).unwrap_or_default();
            if record.certificate == certificate {
                return Ok(entry.envelope.due_ms.is_some());
            }
            if entry.lease.is_some() {
                // It is on its way; whoever holds it reads the newest certificate, or this is
                // looked at again.
                return Ok(true);
            }
        }
        record = Record {
            schema: 1,
            certificate,
            delivered: record.delivered,
            attempts: 0,
            error: String::new(),
        };
        let put = Put {
            envelope: self.envelope(
                &order.id,
                &order.wish.account,
                "wanted",
                Some(when::now_ms()),
            ),
            expected: entry.map(|entry| entry.version),
            body: to_json(&record),
        };
        match self.storage.commit(vec![Change::Put(put)]).await {
            // Another worker has seen it too.
            Ok(_) | Err(StorageError::Conflict(_)) => Ok(true),
            Err(error) => Err(storage_words(&error)),
        }
    }

    /// Certificates whose worker died before it could want their delivery.
    async fn look_for_missing(&self, failing: &mut bool) -> bool {
        let filter = OrderFilter {
            account: None,
            state: Some(State::Active),
            principal: None,
        };
        let mut cursor = None;
        let mut found = false;
        loop {
            let page = self
                .orders
                .list(&filter, cursor.as_deref(), limits::MOST_PAGE)
                .await;
            let (page, next) = match page {
                Ok(page) => page,
                Err(error) => {
                    let _ = told::<()>(Err(error.to_string()), failing);
                    return found;
                }
            };
            for order in &page {
                match told(self.want(order).await, failing) {
                    Some(due) => found |= due,
                    None => return found,
                }
            }
            match next {
                Some(next) => cursor = Some(next),
                None => return found,
            }
        }
    }

    /// Delivers what is due; returns when to look again.
    async fn deliver_due(&self, failing: &mut bool) -> u64 {
        let now_ms = when::now_ms();
        let hook = self.hook.as_ref().map_or(Duration::ZERO, |(_, time)| *time);
        let lease = limits::DELIVERY_LEASE + hook * limits::DELIVERIES;
        let claims = self.storage.claim_due(Claim {
            kind: KIND.to_owned(),
            holder: self.worker.clone(),
            now_ms,
            until_ms: now_ms.saturating_add(millis(lease)),
            limit: limits::DELIVERIES,
            excluded: Vec::new(),
        });
        let claims = match told(claims.await.map_err(|error| storage_words(&error)), failing) {
            Some(claims) => claims,
            None => return now_ms.saturating_add(millis(limits::STORE_AWAY.1)),
        };
        for claimed in claims.claimed {
            let _ = told(self.deliver(claimed).await, failing);
        }
        let longest = now_ms.saturating_add(millis(limits::LONGEST_SLEEP));
        claims.next_due_ms.map_or(longest, |due| due.min(longest))
    }

    async fn deliver(&self, claimed: Claimed) -> Result<(), String> {
        let entry = claimed.entry;
        let id = entry.envelope.id.clone();
        let mut record: Record = serde_json::from_slice(&entry.body).unwrap_or_default();
        let order = match self.orders.get(&id).await {
            Ok(order) => order,
            Err(OrderCallError::Order(OrderError::NotFound)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let Some(leaf) = order.chain.first() else {
            return Ok(());
        };
        record.certificate = hex(&Sha256::digest(leaf));
        let (state, due_ms, outcome) = match self.hand_over(&order, record.delivered).await {
            Ok(()) => {
                info!(order = id, "the certificate is delivered");
                record.delivered += 1;
                record.attempts = 0;
                record.error.clear();
                ("delivered", None, "delivered")
            }
            Err(why) => {
                let (first, longest) = limits::DELIVERY_RETRY;
                let factor = 1u32.checked_shl(record.attempts).unwrap_or(u32::MAX);
                let wait = first.checked_mul(factor).unwrap_or(longest).min(longest);
                let due_ms = when::now_ms().saturating_add(millis(wait));
                error!(
                    order = id,
                    again = when::utc(due_ms),
                    "the certificate is not delivered: {why}"
                );
                record.attempts = record.attempts.saturating_add(1);
                record.error = why;
                ("failed", Some(due_ms), "failed")
            }
        };
        let outcome = Outcome { outcome };
        self.metrics.deliveries.get_or_create(&outcome).inc();
        let guard = Lease {
            kind: KIND.to_owned(),
            id: id.clone(),
            token: claimed.token,
        };
        let put = Put {
            envelope: self.envelope(&id, &order.wish.account, state, due_ms),
            expected: Some(entry.version),
            body: to_json(&record),
        };
        match self
            .storage
            .commit(vec![Change::Guard(guard), Change::Put(put)])
            .await
        {
            Ok(_) => Ok(()),
            Err(StorageError::Fenced(_) | StorageError::Conflict(_)) => {
                warn!(order = id, "another worker delivers it too");
                Ok(())
            }
            Err(error) => Err(storage_words(&error)),
        }
    }

    fn envelope(&self, id: &str, account: &str, state: &str, due_ms: Option<u64>) -> Envelope {
        Envelope {
            kind: KIND.to_owned(),
            id: id.to_owned(),
            owner: id.to_owned(),
            account: account.to_owned(),
            state: state.to_owned(),
            due_ms,
            updated_ms: when::now_ms(),
        }
    }

    /// Writes the files, then runs the hook.
    async fn hand_over(&self, order: &Order, delivered: u64) -> Result<(), String> {
        let chain = pem::encode_certificates(&order.chain);
        let files = match &self.directory {
            Some(directory) => {
                let files = Files::of(directory, &order.id, order.key_name.is_some())?;
                let leaf = pem::encode_certificates(&order.chain[..1]);
                let key = match &order.key_name {
                    Some(name) => Some(crate::store::read_key(&self.keys, name).await?),
                    None => None,
                };
                let (targets, text) = (files.clone(), chain.clone());
                let written = tokio::task::spawn_blocking(move || {
                    store::make_private(&targets.folder)
                        .map_err(|error| format!("{}: {error}", targets.folder.display()))?;
                    let write = |result: Result<(), crate::input::InputError>| {
                        result.map_err(|error| error.message)
                    };
                    // The key first: whoever sees a new certificate finds its key.
                    if let (Some(path), Some(key)) = (&targets.key, &key) {
                        write(files::replace_private("delivery", path, key))?;
                    }
                    write(files::replace("delivery", &targets.chain, text.as_bytes()))?;
                    write(files::replace("delivery", &targets.cert, leaf.as_bytes()))
                });
                written.await.map_err(|error| error.to_string())??;
                Some(files)
            }
            None => None,
        };
        match &self.hook {
            Some((command, time)) => {
                self.run_hook(command, *time, order, delivered, files.as_ref(), &chain)
                    .await
            }
            None => Ok(()),
        }
    }

    async fn run_hook(
        &self,
        words: &[String],
        time: Duration,
        order: &Order,
        delivered: u64,
        files: Option<&Files>,
        chain: &str,
    ) -> Result<(), String> {
        let Some((program, arguments)) = words.split_first() else {
            return Ok(());
        };
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .current_dir(match self.folder.as_os_str().is_empty() {
                true => Path::new("."),
                false => &self.folder,
            })
            .env_clear()
            .envs(INHERITED.iter().filter_map(|name| {
                let value = std::env::var_os(name)?;
                Some((*name, value))
            }))
            .env("ABIDE_ORDER", &order.id)
            .env("ABIDE_REVISION", order.revision.to_string())
            .env(
                "ABIDE_EVENT",
                if delivered == 0 { "issued" } else { "renewed" },
            )
            .env("ABIDE_ACCOUNT", &order.wish.account)
            .env("ABIDE_APPLICATION", &order.wish.application)
            .env("ABIDE_ISSUER", &order.wish.issuer)
            .env(
                "ABIDE_NOT_AFTER",
                order.not_after_ms.map(when::utc).unwrap_or_default(),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(files) = files {
            command
                .env("ABIDE_CERT_FILE", &files.cert)
                .env("ABIDE_CHAIN_FILE", &files.chain);
            if let Some(key) = &files.key {
                command.env("ABIDE_KEY_FILE", key);
            }
        }
        let fault = |what: String| format!("the hook {program} {what}");
        let mut child = command
            .spawn()
            .map_err(|error| fault(format!("cannot be started ({error})")))?;
        let stdin = child.stdin.take();
        let stderr = child.stderr.take();
        let ended = tokio::time::timeout(time, async {
            let give = async {
                if let Some(mut stdin) = stdin {
                    // A hook need not read it.
                    let _ = stdin.write_all(chain.as_bytes()).await;
                }
            };
            let hear = async {
                let mut said = Vec::new();
                if let Some(mut stderr) = stderr {
                    let limit = limits::HOOK_WORDS as u64;
                    let _ = (&mut stderr).take(limit).read_to_end(&mut said).await;
                    let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
                }
                said
            };
            let ((), said, status) = tokio::join!(give, hear, child.wait());
            (said, status)
        });
        let Ok((said, status)) = ended.await else {
            return Err(fault(format!("was killed after {} s", time.as_secs())));
        };
        let status = status.map_err(|error| fault(format!("was lost ({error})")))?;
        if status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&said);
        Err(fault(format!(
            "ended with {status}: {}",
            printable(said.trim())
        )))
    }
}

/// The files of one order.
#[derive(Debug, Clone)]
struct Files {
    folder: PathBuf,
    cert: PathBuf,
    chain: PathBuf,
    key: Option<PathBuf>,
}

impl Files {
    fn of(directory: &Path, id: &str, with_key: bool) -> Result<Self, String> {
        // It comes from the store, and becomes a path.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if id.is_empty() || !id.chars().all(plain) {
            return Err(format!("the order's id {id:?} cannot name a folder"));
        }
        let folder = directory.join(id);
        Ok(Files {
            cert: folder.join("cert.pem"),
            chain: folder.join("chain.pem"),
            key: with_key.then(|| folder.join("key.pem")),
            folder,
        })
    }
}

/// The value; or says once that the store does not work, until it does again.
fn told<T>(result: Result<T, String>, failing: &mut bool) -> Option<T> {
    match result {
        Ok(value) => {
            *failing = false;
            Some(value)
        }
        Err(why) => {
            if !std::mem::replace(failing, true) {
                error!("certificates cannot be delivered now: {why}");
            }
            None
        }
    }
}

fn look_ms_from_now(at_ms: u64) -> u64 {
    at_ms.saturating_sub(when::now_ms())
}

fn to_json(record: &Record) -> Vec<u8> {
    // A record of texts and numbers always is JSON.
    serde_json::to_vec(record).unwrap_or_default()
}

fn storage_words(error: &StorageError) -> String {
    match error {
        StorageError::Conflict(what) => format!("another writer was faster at {what}"),
        StorageError::Fenced(what) => format!("another worker has {what}"),
        StorageError::TooLarge(limit) => format!("the store takes at most {limit} bytes"),
        StorageError::Unavailable(why) => format!("the store failed: {why}"),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
