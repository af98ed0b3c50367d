//! abide's component in wasmtime, through the calls that any embedder of the host makes.

use std::hint::black_box;

use abide_host::wit::message::{Anchors, Leniency, Options, Trust};
use abide_host::{Gate, Runtime, RuntimeConfig};
use tokio::runtime;

#[path = "../../contender.rs"]
mod contender;
use contender::{Contender, Fault, Measure, Message, serve};

struct Sandbox {
    tokio: runtime::Runtime,
    gate: Gate,
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
            None => Trust::Secret(message.secret.clone()),
        };
        let options = Options {
            leniency: Leniency::empty(),
            allow_sha1: false,
        };
        for _ in 0..count {
            let signer = self
                .gate
                .verify(black_box(&message.der), &trust, options)
                .await?;
            black_box(signer.map_err(|e| format!("{e:?}"))?);
        }
        Ok(())
    }
}

impl Contender for Sandbox {
    fn run(&mut self, measure: Measure, message: &Message, count: u32) -> Result<(), Fault> {
        match measure {
            Measure::Decode => self.tokio.block_on(self.decode(message, count)),
            Measure::Encode => self.tokio.block_on(self.encode(message, count)),
            Measure::Verify => self.tokio.block_on(self.verify(message, count)),
        }
    }
}

fn main() -> Result<(), Fault> {
    let tokio = runtime::Builder::new_current_thread().build()?;
    let gate = Runtime::new(RuntimeConfig::default())?.gate();
    tokio.block_on(gate.prepare())?;
    let now = std::time::UNIX_EPOCH.elapsed()?.as_secs();
    serve(&mut Sandbox {
        tokio,
        gate,
        now: i64::try_from(now)?,
    })
}
