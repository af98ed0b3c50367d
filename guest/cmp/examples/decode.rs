//! Prints how long a message takes to decode: `decode FILE…`, in nanoseconds, the median of
//! many rounds.
//!
//! `cargo run --release -p abide-cmp --example decode -- message.der`

use std::hint::black_box;
use std::time::Instant;

use abide_cmp::PkiMessage;

const ROUNDS: usize = 201;
const DECODES: u32 = 2_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in std::env::args().skip(1) {
        let der = std::fs::read(&file)?;
        let body = PkiMessage::from_der(&der)?.body.body_type().name();
        let mut rounds: Vec<_> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..DECODES {
                    let _ = black_box(PkiMessage::from_der(black_box(&der)));
                }
                start.elapsed() / DECODES
            })
            .collect();
        rounds.sort_unstable();
        let (median, fastest) = (rounds[ROUNDS / 2], rounds[0]);
        let octets = der.len();
        println!("{median:?} (fastest {fastest:?})  {body}, {octets} octets  {file}");
    }
    Ok(())
}
