//! Faults on purpose: which request meets which one follows from a seed.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use anyhow::bail;

/// What happens to one request in the place of an ordinary answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The CA never sees the request.
    LostRequest,
    /// The CA has acted, and nobody hears of it.
    LostResponse,
    /// The connection ends in the middle of the answer.
    Cut,
    /// The answer takes its time.
    Late,
    /// The request reaches the CA twice.
    Duplicate,
    /// An earlier answer comes again.
    Stale,
    /// The server is overloaded and says so.
    Http503,
    /// The server stumbles after the CA has acted.
    Http500,
    /// Something on the way answers.
    Html,
    /// Half of the message is missing.
    Truncated,
    /// One bit of the message is another one.
    BitFlipped,
    /// A refusal that anybody could have written.
    UnprotectedError,
    /// A protected answer to another request than this.
    WrongNonce,
    /// A protected refusal of the transactionID.
    TransactionIdInUse,
    /// One answer more before the one with the certificate.
    Waiting,
}

impl Fault {
    /// All of them, with the name and a line for people.
    pub const ALL: [(Self, &'static str, &'static str); 15] = [
        (
            Self::LostRequest,
            "lost-request",
            "the CA never sees the request, and the connection ends without an answer",
        ),
        (
            Self::LostResponse,
            "lost-response",
            "the CA acts, and the connection ends without an answer",
        ),
        (
            Self::Cut,
            "cut",
            "the CA acts, and the connection ends in the middle of the answer",
        ),
        (Self::Late, "late", "the answer comes two seconds late"),
        (
            Self::Duplicate,
            "duplicate",
            "the CA gets the request twice, and the second answer is sent",
        ),
        (
            Self::Stale,
            "stale",
            "the CA acts, and the answer to the request before comes once more",
        ),
        (
            Self::Http503,
            "http-503",
            "HTTP 503 with Retry-After and an HTML page; the CA never sees the request",
        ),
        (
            Self::Http500,
            "http-500",
            "the CA acts, and HTTP 500 with an HTML page is the answer",
        ),
        (
            Self::Html,
            "html",
            "HTTP 200 with an HTML page; the CA never sees the request",
        ),
        (
            Self::Truncated,
            "truncated",
            "the second half of the message is missing",
        ),
        (
            Self::BitFlipped,
            "bit-flipped",
            "one bit of the message is flipped",
        ),
        (
            Self::UnprotectedError,
            "unprotected-error",
            "an error without protection says badRequest; the CA never sees the request",
        ),
        (
            Self::WrongNonce,
            "wrong-nonce",
            "the CA acts, and its protected answer has another recipNonce",
        ),
        (
            Self::TransactionIdInUse,
            "transaction-id-in-use",
            "the CA refuses with the protected error transactionIdInUse and does nothing",
        ),
        (
            Self::Waiting,
            "waiting",
            "a first request is told to wait for one poll more",
        ),
    ];

    /// As it is given on a command line.
    pub fn name(self) -> &'static str {
        let entry = Self::ALL.iter().find(|(fault, ..)| *fault == self);
        entry.map_or("", |(_, name, _)| name)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Part of the requests that meet one fault, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(f64);

impl Rate {
    /// Of each fault when all are at work: nearly every third request meets one.
    pub const EACH_OF_ALL: Self = Self(0.02);
    /// Of a fault that was asked for without a rate.
    pub const NAMED: Self = Self(0.1);
}

/// `NAME` or `NAME=RATE`, as in `late=0.25`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultRate {
    fault: Fault,
    rate: Rate,
}

impl FromStr for FaultRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rate) = match text.split_once('=') {
            None => (text, Rate::NAMED),
            Some((name, rate)) => match rate.parse::<f64>() {
                Ok(number) if (0.0..=1.0).contains(&number) => (name, Rate(number)),
                _ => return Err(format!("'{rate}' is no rate from 0 to 1")),
            },
        };
        let known = Fault::ALL.iter().find(|(_, known, _)| *known == name);
        match known {
            Some(&(fault, ..)) => Ok(Self { fault, rate }),
            None => {
                let names: Vec<_> = Fault::ALL.iter().map(|(_, name, _)| *name).collect();
                Err(format!("no fault is called '{name}': {}", names.join(", ")))
            }
        }
    }
}

/// Which request meets which fault: a function of the seed and the number of the request.
#[derive(Clone, Debug, PartialEq)]
pub struct Chaos {
    seed: u64,
    rates: Vec<FaultRate>,
}

impl Chaos {
    /// All faults, each as often as the others.
    pub fn every(seed: u64) -> Self {
        let rates = Fault::ALL.iter().map(|&(fault, ..)| FaultRate {
            fault,
            rate: Rate::EACH_OF_ALL,
        });
        Self {
            seed,
            rates: rates.collect(),
        }
    }

    /// Some faults at their rates.
    pub fn some(seed: u64, rates: Vec<FaultRate>) -> anyhow::Result<Self> {
        let sum: f64 = rates.iter().map(|one| one.rate.0).sum();
        if sum > 1.0 {
            bail!("the rates of all faults together are {sum}: a request meets one at most");
        }
        Ok(Self { seed, rates })
    }

    /// What the request of this number meets, and 64 bits for whatever the fault has to decide.
    fn fate(&self, number: u64) -> (Option<Fault>, u64) {
        let drawn = mix(self.seed ^ mix(number));
        // 53 bits are what a float tells apart.
        let point = (drawn >> 11) as f64 / (1_u64 << 53) as f64;
        let mut sum = 0.0;
        let fault = self.rates.iter().find(|one| {
            sum += one.rate.0;
            point < sum
        });
        (fault.map(|one| one.fault), mix(drawn))
    }
}

/// A step of SplitMix64: neighbouring numbers get unrelated results.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The chaos of one CA that is running.
#[derive(Debug)]
pub(crate) struct Weather {
    chaos: Option<Chaos>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    requests: u64,
    last: Option<Vec<u8>>,
}

impl Weather {
    pub(crate) fn new(chaos: Option<Chaos>) -> Self {
        Self {
            chaos,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the next request meets.
    pub(crate) fn next(&self) -> (Option<Fault>, u64) {
        let Some(chaos) = &self.chaos else {
            return (None, 0);
        };
        let mut state = self.state();
        state.requests += 1;
        chaos.fate(state.requests)
    }

    /// Takes what the CA has answered and gives what it has answered before: nothing, the
    /// first time.
    pub(crate) fn stale(&self, answer: &[u8]) -> Option<Vec<u8>> {
        self.chaos.as_ref()?;
        self.state().last.replace(answer.to_vec())
    }
}

/// An answer after its way through a bad line.
pub(crate) fn damage(fault: Option<Fault>, bits: u64, mut octets: Vec<u8>) -> Vec<u8> {
    match fault {
        Some(Fault::Truncated) => octets.truncate(octets.len() / 2),
        Some(Fault::BitFlipped) if !octets.is_empty() => {
            let bit = (bits % (octets.len() as u64 * 8)) as usize;
            octets[bit / 8] ^= 1 << (bit % 8);
        }
        _ => {}
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(chaos: &Chaos, count: u64) -> Vec<Option<Fault>> {
        (1..=count).map(|number| chaos.fate(number).0).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_and_another_one_others() {
        assert_eq!(fates(&Chaos::every(7), 200), fates(&Chaos::every(7), 200));
        assert_ne!(fates(&Chaos::every(7), 200), fates(&Chaos::every(8), 200));
    }

    /// 15 faults at 2 %: of 10 000 requests 3000, and of each 200, give or take five times the
    /// standard deviation, which is 46 and 14.
    #[test]
    fn every_fault_comes_at_its_rate() {
        let fates = fates(&Chaos::every(1), 10_000);
        let met = fates.iter().flatten().count();
        assert!((2770..=3230).contains(&met), "{met}");
        for (fault, name, line) in Fault::ALL {
            let count = fates.iter().filter(|fate| **fate == Some(fault)).count();
            assert!((130..=270).contains(&count), "{name}: {count}");
            assert!(!line.is_empty());
        }
    }

    #[test]
    fn faults_are_asked_for_by_name_and_rate() {
        let always: FaultRate = "late=1".parse().unwrap();
        let chaos = Chaos::some(3, vec![always]).unwrap();
        assert_eq!(fates(&chaos, 3), [Some(Fault::Late); 3]);
        let never = Chaos::some(3, vec!["late=0".parse().unwrap()]).unwrap();
        assert_eq!(fates(&never, 3), [None; 3]);
        let named: FaultRate = "cut".parse().unwrap();
        assert!(Chaos::some(3, vec![named, always]).is_err());
        for wrong in ["late=2", "late=-1", "late=x", "later", ""] {
            assert!(wrong.parse::<FaultRate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn damage_is_where_it_should_be() {
        let octets = vec![0; 8];
        let flipped = damage(Some(Fault::BitFlipped), 13, octets.clone());
        assert_eq!(flipped, [0, 32, 0, 0, 0, 0, 0, 0]);
        assert_eq!(damage(Some(Fault::Truncated), 0, octets.clone()), [0; 4]);
        assert_eq!(damage(None, 13, octets.clone()), octets);
    }
}
