//! abide's codec and its own cryptography, compiled for the machine.

use std::hint::black_box;

use abide_cmp::protection::{
    Anchors, Policy, ProtectionError, SoftwareVerifier, verify_mac, verify_signature,
};
use abide_cmp::{Certificate, Draft, PkiMessage, Time};

#[path = "../../contender.rs"]
mod contender;
use contender::{Contender, Fault, Measure, Message, serve};

struct Native {
    now: Time,
}

impl Native {
    fn verify(&self, message: &Message) -> Result<(), Fault> {
        let decoded = decode(message)?;
        match &message.root {
            Some(root) => {
                let trusted = [Certificate::from_der(root).map_err(|e| e.to_string())?];
                let anchors = Anchors::new(&trusted, self.now);
                let signer = verify_signature(&decoded, anchors, &SoftwareVerifier);
                black_box(signer.map_err(|e| e.to_string())?);
            }
            None => verify_mac(&decoded, Policy::default(), |mac, data| {
                Ok::<_, ProtectionError>(mac.compute(&message.secret, data))
            })
            .map_err(|e| e.to_string())?,
        }
        Ok(())
    }
}

impl Contender for Native {
    fn run(&mut self, measure: Measure, message: &Message, count: u32) -> Result<(), Fault> {
        match measure {
            Measure::Decode => {
                for _ in 0..count {
                    black_box(decode(black_box(message))?);
                }
            }
            Measure::Encode => {
                let decoded = decode(message)?;
                for _ in 0..count {
                    let decoded = black_box(&decoded);
                    let draft = Draft::new(&decoded.header, &decoded.body);
                    if draft.finish(decoded.protection, &decoded.extra_certs) != message.der {
                        return Err("the octets differ".into());
                    }
                }
            }
            Measure::Verify => {
                for _ in 0..count {
                    self.verify(black_box(message))?;
                }
            }
        }
        Ok(())
    }
}

fn decode(message: &Message) -> Result<PkiMessage<'_>, Fault> {
    Ok(PkiMessage::from_der(&message.der).map_err(|e| e.to_string())?)
}

fn main() -> Result<(), Fault> {
    let now = std::time::UNIX_EPOCH.elapsed()?.as_secs();
    serve(&mut Native {
        now: Time::from_unix(i64::try_from(now)?),
    })
}
