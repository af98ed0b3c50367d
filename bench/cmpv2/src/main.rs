//! cmpv2 0.2 as a contender: a codec only, so it verifies nothing.

use std::hint::black_box;

use cmpv2::message::PkiMessage;
use der::{Decode, Encode};

#[path = "../../contender.rs"]
#[allow(dead_code, reason = "there is no trust where nothing is verified")]
mod contender;
use contender::{Contender, Fault, Measure, Message, serve};

struct Cmpv2;

impl Contender for Cmpv2 {
    fn run(&mut self, measure: Measure, message: &Message, count: u32) -> Result<(), Fault> {
        match measure {
            Measure::Decode => {
                for _ in 0..count {
                    black_box(PkiMessage::from_der(black_box(&message.der))?);
                }
            }
            Measure::Encode => {
                let decoded = PkiMessage::from_der(&message.der)?;
                for _ in 0..count {
                    if black_box(&decoded).to_der()? != message.der {
                        return Err("the octets differ".into());
                    }
                }
            }
            Measure::Verify => return Err("it does not verify".into()),
        }
        Ok(())
    }
}

fn main() -> Result<(), Fault> {
    serve(&mut Cmpv2)
}
