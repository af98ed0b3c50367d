//! `cargo xtask bench messages`: what one message costs, here and with others.
//!
//! All take turns at the same message, so that what slows one down for a while slows down all of
//! them, and ratios are formed within a turn. The clock is the processor time of the thread that
//! works, which a loaded machine stretches less than time on the wall.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;

use super::contender::{self, Contender};
use super::files::{self, File};
use crate::setup;
use crate::shell::{step, target_dir};

/// Turns of each contender at each message: odd for a median.
const ROUNDS: usize = 15;

/// A turn is at least as long, in ns: far more than the clock's resolution, and short enough for
/// many turns.
const TURN: u64 = 4_000_000;

/// How the contender is called to which all are compared.
pub(super) const SANDBOX: &str = "abide sandbox";

/// What is measured, and what is said about it.
const MEASURES: [(&str, &str); 3] = [
    (
        "decode",
        "from the octets to a message; the certificates in it are read by OpenSSL and cmpv2, and \
         left for later by abide and Bouncy Castle",
    ),
    ("encode", "from a message to the octets"),
    (
        "verify",
        "from the octets to the verdict; of a signature with the path to the trusted root",
    ),
];

const NAME_WIDTH: usize = 15;
const CELL_WIDTH: usize = 17;

/// ns of one repetition, one value a round; or why there are none.
type Times = Result<Vec<f64>, String>;

/// `cargo xtask bench messages`.
pub(super) fn run(rounds: Option<usize>) -> Result<ExitCode> {
    let rounds = rounds.unwrap_or(ROUNDS);
    setup::peers()?;
    super::build()?;
    step("exchanging messages with OpenSSL's mock server");
    let folder = target_dir().join("bench-messages");
    let files = files::make(&folder)?;
    let mut contenders = contender::all(&folder)?;

    let mut text = format!(
        "ns of processor time, median of {rounds} turns ± the worst deviation; in brackets how \
         many times as long\nas in the sandbox, median of the turns (lowest-highest)\n"
    );
    let mut reasons = Vec::new();
    for (measure, about) in MEASURES {
        write!(text, "\n{measure}: {about}\n{}", heading(&contenders))?;
        for file in &files {
            step(format!("{measure} {}", file.name));
            let times = take_turns(&mut contenders, measure, file, rounds)?;
            text.push_str(&rows(file, &times));
            for (contender, times) in contenders.iter().zip(&times) {
                if let Err(why) = times {
                    reasons.push(format!(
                        "{}, {measure} {}: {why}",
                        contender.name, file.name
                    ));
                }
            }
        }
    }
    print!("{text}");
    if !reasons.is_empty() {
        println!("\nnot measured\n{}", reasons.join("\n"));
    }
    Ok(ExitCode::SUCCESS)
}

fn take_turns(
    contenders: &mut [Contender],
    measure: &str,
    file: &File,
    rounds: usize,
) -> Result<Vec<Times>> {
    let mut counts = Vec::new();
    let mut times = Vec::new();
    for contender in contenders.iter_mut() {
        let count = repetitions(contender, measure, file)?;
        times.push(count.clone().map(|_| Vec::new()));
        counts.push(count.unwrap_or(0));
    }
    for _ in 0..rounds {
        for ((contender, &count), times) in contenders.iter_mut().zip(&counts).zip(&mut times) {
            let Ok(sofar) = times else { continue };
            match contender.ask(measure, count, file.name)? {
                Ok(nanos) => sofar.push(nanos as f64 / count as f64),
                Err(why) => *times = Err(why),
            }
        }
    }
    Ok(times)
}

/// How many make a turn; or why it cannot be done at all.
fn repetitions(
    contender: &mut Contender,
    measure: &str,
    file: &File,
) -> Result<Result<u64, String>> {
    let mut count = 1;
    loop {
        match contender.ask(measure, count, file.name)? {
            Ok(nanos) if nanos < TURN => count *= 2,
            Ok(_) => return Ok(Ok(count)),
            Err(why) => return Ok(Err(why)),
        }
    }
}

fn heading(contenders: &[Contender]) -> String {
    let mut line = format!("{:<NAME_WIDTH$}{:>6}", "message", "octets");
    for contender in contenders {
        line += &format!("{:>CELL_WIDTH$}", contender.name);
    }
    line + "\n"
}

/// The times, and below them the ratios to the first contender.
fn rows(file: &File, times: &[Times]) -> String {
    let mut nanos = format!("{:<NAME_WIDTH$}{:>6}", file.name, file.octets);
    let mut ratios = format!("{:<NAME_WIDTH$}{:>6}", "", "");
    for one in times {
        let Ok(one) = one else {
            nanos += &format!("{:>CELL_WIDTH$}", "-");
            ratios += &format!("{:>CELL_WIDTH$}", "");
            continue;
        };
        let sorted = sorted(one.clone());
        let median = median(&sorted);
        let deviation = f64::max(median - sorted[0], sorted[sorted.len() - 1] - median);
        let cell = format!("{median:.0} ±{:.0}%", 100.0 * deviation / median);
        nanos += &format!("{cell:>CELL_WIDTH$}");
        let ratio = times[0]
            .as_ref()
            .map_or_else(|_| String::new(), |base| ratio(one, base));
        ratios += &format!("{ratio:>CELL_WIDTH$}");
    }
    format!("{nanos}\n{ratios}\n")
}

/// How many times as long as `base`, turn by turn.
fn ratio(times: &[f64], base: &[f64]) -> String {
    let ratios = sorted(times.iter().zip(base).map(|(a, b)| a / b).collect());
    format!(
        "[{:.2} {:.2}-{:.2}]",
        median(&ratios),
        ratios[0],
        ratios[ratios.len() - 1]
    )
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Of at least one. Of an even number, the later of the two in the middle.
fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::{File, ratio, rows};

    #[test]
    fn ratios_are_formed_turn_by_turn() {
        // 20 : 10, 60 : 20 and 20 : 40.
        assert_eq!(
            ratio(&[20.0, 60.0, 20.0], &[10.0, 20.0, 40.0]),
            "[2.00 0.50-3.00]"
        );
    }

    #[test]
    fn a_row_has_a_cell_for_each_contender() {
        let file = File {
            name: "genm",
            octets: 191,
        };
        let times = [
            Ok(vec![110.0, 100.0, 95.0]),
            Err("no".to_owned()),
            Ok(vec![220.0, 200.0, 190.0]),
        ];
        let text = rows(&file, &times);
        let cells: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            cells,
            [
                vec!["genm", "191", "100", "±10%", "-", "200", "±10%"],
                vec!["[1.00", "1.00-1.00]", "[2.00", "2.00-2.00]"],
            ]
        );
    }
}
