// What a contender of `cargo xtask bench messages` does. It is started with the folder of the
// messages, and on each line of its input is asked to do one thing a number of times:
//
//     decode 200 ip-pbm
//
// It answers with the nanoseconds all of them took, or with a minus and why it cannot. Only the
// processor time of its thread counts, so that whatever else runs on the machine disturbs little.
// Shared by the contenders in Rust.

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use cpu_time::ThreadTime;

/// Why something cannot be done.
pub(crate) type Fault = Box<dyn std::error::Error>;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Measure {
    /// From the octets to whatever the contender works with.
    Decode,
    /// Back to the octets.
    Encode,
    /// From the octets to the verdict of the protection, the path to the trusted root included.
    Verify,
}

/// A message and what it is believed by.
#[derive(Debug)]
pub(crate) struct Message {
    /// DER.
    pub(crate) der: Vec<u8>,
    /// The trusted root, DER, if the protection is a signature.
    pub(crate) root: Option<Vec<u8>>,
    /// Else the shared secret.
    pub(crate) secret: Vec<u8>,
}

/// A program that takes part.
pub(crate) trait Contender {
    /// Does it as often as it is told.
    fn run(&mut self, measure: Measure, message: &Message, count: u32) -> Result<(), Fault>;
}

/// Serves until the input ends.
pub(crate) fn serve(contender: &mut impl Contender) -> Result<(), Fault> {
    let folder = folder()?;
    for line in io::stdin().lock().lines() {
        let answer = match answer(contender, &folder, &line?) {
            Ok(nanos) => nanos.to_string(),
            Err(fault) => format!("- {fault}"),
        };
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}

/// Where the messages are.
pub(crate) fn folder() -> Result<PathBuf, Fault> {
    let folder = std::env::args_os()
        .nth(1)
        .ok_or("which folder has the messages?")?;
    Ok(PathBuf::from(folder))
}

fn answer(
    contender: &mut impl Contender,
    folder: &std::path::Path,
    line: &str,
) -> Result<u128, Fault> {
    let mut words = line.split(' ');
    let mut word = || words.next().ok_or("MEASURE COUNT MESSAGE");
    let measure = match word()? {
        "decode" => Measure::Decode,
        "encode" => Measure::Encode,
        "verify" => Measure::Verify,
        other => return Err(format!("`{other}` is not a measure").into()),
    };
    let count = word()?.parse()?;
    let name = word()?;
    let message = Message {
        der: fs::read(folder.join(format!("{name}.der")))?,
        root: fs::read(folder.join(format!("{name}.root"))).ok(),
        secret: fs::read(folder.join("secret"))?,
    };
    let start = ThreadTime::now();
    contender.run(measure, &message, count)?;
    Ok(start.elapsed().as_nanos())
}
