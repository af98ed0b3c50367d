//! abide's component in wasmtime, through the calls that any embedder of the host makes. With the
//! file of a component of the world `verifier` in the environment variable `VERIFIER`, signatures and MACs are computed
//! outside by the host, and only verification is on offer.

use std::hint::black_box;
use std::sync::Arc;
use std::{env, fs};

use abide_host::wit::message::{Anchors, Leniency, Options, Trust};
use abide_host::{FileKeys, Gate, Runtime, RuntimeConfig, Verifier};
use tokio::runtime;

#[path = "../../contender.rs"]
mod contender;
use contender::{Contender, Fault, Measure, Message, folder, serve};

/// The name of the shared secret, outside.
const KEY: &str = "secret";

struct Sandbox {
    tokio: runtime::Runtime,
    gate: Gate,
    verifier: Option<Verifier>,
    now: i64,
}

impl Sandbox {
    async fn decode(&self, message: &Message, count: u32) -> Result<(), Fault> {
        for _ in 0..count {
            let summary = self
                .gate
                .decode(black_box(&message.der), Leniency::empty())
                .await?;
            black_box(summary.map_err(|e| format!("{e:?}"))?);
        }
        Ok(())
    }

    async fn encode(&self, message: &Message, count: u32) -> Result<(), Fault> {
        let parts = self.gate.split(&message.der, Leniency::empty()).await?;
        let parts = parts.map_err(|e| format!("{e:?}"))?;
        for _ in 0..count {
            let der = self.gate.encode(black_box(&parts)).await?;
            if der.map_err(|e| format!("{e:?}"))? != message.der {
                return Err("the octets differ".into());
            }
        }
        Ok(())
    }

    async fn verify(&self, message: &Message, count: u32) -> Result<(), Fault> {
        let trust = match &message.root {
            Some(root) => Trust::Anchors(Anchors {
                certificates: vec![root.clone()],
                untrusted: Vec::new(),
                at: self.now,
                role: None,
            }),
            None if self.verifier.is_some() => Trust::Key(KEY.to_owned()),
            None => Trust::Secret(message.secret.clone()),
        };
        let options = Options {
            leniency: Leniency::empty(),
            allow_sha1: false,
        };
        for _ in 0..count {
            let der = black_box(&message.der);
            let signer = match &self.verifier {
                Some(verifier) => verifier.verify(der, &trust, options).await?,
                None => self.gate.verify(der, &trust, options).await?,
            };
            black_box(signer.map_err(|e| format!("{e:?}"))?);
        }
        Ok(())
    }
}

impl Contender for Sandbox {
    fn run(&mut self, measure: Measure, message: &Message, count: u32) -> Result<(), Fault> {
        match measure {
            Measure::Verify => self.tokio.block_on(self.verify(message, count)),
            _ if self.verifier.is_some() => Err("keys are for verification".into()),
            Measure::Decode => self.tokio.block_on(self.decode(message, count)),
            Measure::Encode => self.tokio.block_on(self.encode(message, count)),
        }
    }
}

fn main() -> Result<(), Fault> {
    let tokio = runtime::Builder::new_current_thread().build()?;
    let runtime = Runtime::new(RuntimeConfig::default())?;
    let gate = runtime.gate();
    let verifier = match env::var_os("VERIFIER") {
        None => {
            tokio.block_on(gate.prepare())?;
            None
        }
        Some(component) => {
            let mut keys = FileKeys::new();
            keys.add_secret(KEY, fs::read(folder()?.join("secret"))?.into());
            let verifier = runtime.verifier_from(fs::read(component)?, Arc::new(keys));
            tokio.block_on(verifier.prepare())?;
            Some(verifier)
        }
    };
    let now = std::time::UNIX_EPOCH.elapsed()?.as_secs();
    serve(&mut Sandbox {
        tokio,
        gate,
        verifier,
        now: i64::try_from(now)?,
    })
}
