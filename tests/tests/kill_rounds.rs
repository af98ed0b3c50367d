//! Orders whose client is killed with SIGKILL at random moments, behind a proxy that loses,
//! delays and cuts, at two CAs that know nothing of abide. Each goes on with `--resume` until
//! there is a certificate; then the books are balanced: what a CA has issued is what the
//! orders have, and what was declared an orphan.
//!
//! `ABIDE_KILL_ROUNDS` is the number of orders at each CA, `ABIDE_KILL_SEED` what their fate
//! follows from; `cargo xtask kill` sets both. When exactly a process is killed depends on the
//! machine too, so a seed gives the same decisions and not always the same crash.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use abide_cmp::BodyType;
use abide_tests::abide::Abide;
use abide_tests::bouncy_castle;
use abide_tests::each;
use abide_tests::openssl::{self, certificates, verify_chain};
use abide_tests::pki::{KeyKind, Pki};
use abide_tests::process::{Ended, Process};
use abide_tests::seed::Seed;
use abide_tests::weather::{Exchange, Weather};
use serde_json::Value;

/// Orders at each CA unless told otherwise: as many as CI has patience for.
const ROUNDS: u64 = 10;
/// A process has come far in this time, and is mostly still there.
const LONGEST_LIFE: Duration = Duration::from_millis(1500);
/// Between a message and the end: long enough for the answer to be there, stored, or believed.
const LAST_MOMENT: Duration = Duration::from_millis(60);
/// Runs of one order. None needs half as many.
const RUNS: usize = 40;
/// The longest that a run may take: six tries in a row that fail take half as long.
const RUN: Duration = Duration::from_secs(600);
/// Before a client that has left is started again: a wait that it left for is not over.
const PAUSE: Duration = Duration::from_secs(1);

/// What is asked for, and how it is protected.
#[derive(Clone, Copy, Debug)]
struct Kind {
    command: &'static str,
    signed: bool,
}

const KINDS: [Kind; 6] = [
    Kind {
        command: "ir",
        signed: false,
    },
    Kind {
        command: "ir",
        signed: true,
    },
    Kind {
        command: "cr",
        signed: true,
    },
    Kind {
        command: "p10cr",
        signed: false,
    },
    Kind {
        command: "p10cr",
        signed: true,
    },
    Kind {
        command: "kur",
        signed: true,
    },
];

/// What became of one order.
#[derive(Debug)]
struct Outcome {
    issued: usize,
    orphans: usize,
    killed: usize,
    runs: usize,
    messages: usize,
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is no number")),
    )
}

/// Rounds and the seed of each.
fn rounds(ca: &str) -> Vec<(u64, Seed)> {
    let count = number("ABIDE_KILL_ROUNDS").unwrap_or(ROUNDS);
    let seed = number("ABIDE_KILL_SEED").unwrap_or_else(Seed::fresh);
    println!("{ca}: {count} rounds with ABIDE_KILL_SEED={seed}");
    let mut seeds = Seed::new(seed);
    (0..count).map(|round| (round, seeds.fork())).collect()
}

/// One order with its client, its way to the CA, and its fate.
struct Order<'a> {
    pki: &'a Pki,
    secret: [&'a str; 2],
    kind: Kind,
    abide: Abide,
    weather: Weather,
    seed: Seed,
}

impl<'a> Order<'a> {
    fn new(
        pki: &'a Pki,
        dir: &Path,
        url: &str,
        secret: [&'a str; 2],
        kind: Kind,
        mut seed: Seed,
    ) -> Self {
        fs::create_dir(dir).expect("a folder for a client");
        Self {
            pki,
            secret,
            kind,
            abide: Abide::new(dir),
            weather: Weather::new(url, seed.fork()),
            seed,
        }
    }

    /// Everything but `--resume`. Keys are the PKI's: one of the CAs has no certificate for others.
    fn words(&self) -> Vec<String> {
        let file = |name: &str| self.pki.path(name).display().to_string();
        let url = self.weather.url();
        let mut words = vec![
            "--cmd",
            self.kind.command,
            "--server",
            &url,
            "--output",
            "json",
        ];
        words.extend([
            "--certout",
            "cert.pem",
            "--chainout",
            "chain.pem",
            "--quiet",
        ]);
        // Nothing is to end for want of time, and no patience to be tried.
        words.extend(["--total-timeout", "86400", "--max-polls", "1000"]);
        words.extend(["--unreachable-timeout", "86400"]);
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        option("--trusted", file("root.crt"));
        match self.kind.command {
            "p10cr" => option("--csr", file("new.csr")),
            // The certificate that is renewed, with its own key.
            "kur" => {}
            _ => {
                option("--newkey", file("new.key"));
                option("--subject", "/O=abide tests/CN=new".into());
            }
        }
        let [reference, secret] = self.secret;
        match (self.kind.signed, self.kind.command) {
            (false, _) => {
                option("--ref", reference.into());
                option("--secret", format!("pass:{secret}"));
            }
            (true, command) => {
                let own = if command == "kur" { "new" } else { "client" };
                option("--cert", file(&format!("{own}.crt")));
                option("--key", file(&format!("{own}.key")));
                option("--extracerts", file("sub.crt"));
            }
        }
        words
    }

    fn start(&self) -> Process {
        let mut words = self.words();
        words.push("--resume".into());
        Process::start(&mut self.abide.enroll_command(words))
    }

    /// Runs the client until it is done, and kills it a few times before that.
    fn drive(&mut self) -> Outcome {
        let mut kills = 1 + self.seed.below(4);
        let mut killed = 0;
        let mut last = None;
        for runs in 1..=RUNS {
            let mut client = self.start();
            if kills > 0 {
                kills -= 1;
                self.wait_for_a_moment();
                if client.kill().code().is_none() {
                    killed += 1;
                }
                continue;
            }
            let ended = client.end_within(RUN);
            match ended.code {
                Some(0) => return self.balance(&ended, killed, runs),
                // Refused: the next run begins anew.
                Some(3) => {}
                // Not to be believed, waiting, no CMP.
                Some(4..=7) => thread::sleep(PAUSE),
                _ => panic!("{ended:?}"),
            }
            last = Some(ended);
        }
        panic!(
            "no end after {RUNS} runs, the last of them {last:?}: {:#?}",
            self.weather.exchanges()
        );
    }

    /// A while after the start, or shortly after one of the next messages.
    fn wait_for_a_moment(&mut self) {
        if self.seed.below(2) == 0 {
            thread::sleep(self.seed.time(LONGEST_LIFE));
        } else {
            let next = self.weather.arrived() + 1 + self.seed.below(2) as usize;
            self.weather.wait_for(next, LONGEST_LIFE * 2);
            thread::sleep(self.seed.time(LAST_MOMENT));
        }
    }

    /// What the client has, what it says of the transactions before, and what the CA was asked.
    fn balance(&self, ended: &Ended, killed: usize, runs: usize) -> Outcome {
        let told: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!(told["status"], "issued", "{told}");
        let own = text(&told["transactionID"]);
        let got = certificates(&self.abide.path("cert.pem"));
        let [certificate] = got.as_slice() else {
            panic!("{} certificates", got.len())
        };
        verify_chain(&self.abide.path("chain.pem"), &self.pki.path("root.crt"));

        let stored = self.abide.transactions();
        let with = |condition: &dyn Fn(&Value) -> bool| -> BTreeSet<String> {
            let found = stored.iter().filter(|one| condition(one));
            found.map(|one| text(&one["transactionID"])).collect()
        };
        let issued = with(&|one| one["phase"] == "issued");
        let orphans = with(&|one| one["failure"]["orphan"] == true);
        let open = with(&|one| one["phase"] != "issued" && one["phase"] != "failed");
        assert_eq!(issued, BTreeSet::from([own.clone()]), "{stored:?}");
        assert_eq!(open, BTreeSet::new(), "{stored:?}");

        let exchanges = self.weather.exchanges();
        check_requests(&exchanges, &with(&|_| true));
        let delivered: BTreeSet<String> = exchanges
            .iter()
            .filter(|exchange| exchange.certificate.is_some())
            .map(|exchange| exchange.transaction_id.clone())
            .collect();
        let accounted = &issued | &orphans;
        assert!(delivered.is_subset(&accounted), "{delivered:?}, {stored:?}");
        let ours = exchanges
            .iter()
            .filter(|exchange| exchange.transaction_id == own)
            .find_map(|exchange| exchange.certificate.as_ref());
        assert_eq!(
            ours,
            Some(certificate),
            "what was delivered is what the order has"
        );
        Outcome {
            issued: delivered.len(),
            orphans: orphans.len(),
            killed,
            runs,
            messages: exchanges.len(),
        }
    }
}

/// Nothing was sent that was not stored before, and what was sent twice under a transactionID
/// was the same octet for octet.
fn check_requests(exchanges: &[Exchange], stored: &BTreeSet<String>) {
    for exchange in exchanges {
        let id = &exchange.transaction_id;
        assert!(stored.contains(id), "{id} is not in the store: {stored:?}");
        if matches!(exchange.body_type, BodyType::PollReq) {
            continue;
        }
        let other = exchanges.iter().find(|other| {
            other.transaction_id == *id
                && other.body_type == exchange.body_type
                && other.octets != exchange.octets
        });
        assert!(
            other.is_none(),
            "another {:?} under {id}",
            exchange.body_type
        );
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

/// Prints the sum of the rounds, for who looks on.
fn report(ca: &str, results: &[Outcome]) {
    let sum = |of: fn(&Outcome) -> usize| results.iter().map(of).sum::<usize>();
    println!(
        "{ca}: {} orders, {} clients killed in {} runs, {} messages at the CA; issued {}, of them \
         {} are no order's; declared orphans {}",
        results.len(),
        sum(|one| one.killed),
        sum(|one| one.runs),
        sum(|one| one.messages),
        sum(|one| one.issued),
        sum(|one| one.issued) - results.len(),
        sum(|one| one.orphans),
    );
}

/// It refuses every repetition, so what was lost once stays lost: a declared orphan for each
/// certificate that no order has, and no other.
#[test]
fn bouncy_castle() {
    let dir = tempfile::tempdir().expect("a folder for a test");
    let pki = Pki::new(&dir.path().join("pki"), KeyKind::P256);
    pki.issue_for_key(
        "new",
        &pki.key("new", KeyKind::P256),
        "/O=abide tests/CN=new",
    );
    let ca = bouncy_castle::CmpServer::start(&pki, &dir.path().join("ca"));
    let secret = [
        bouncy_castle::CmpServer::REF,
        bouncy_castle::CmpServer::SECRET,
    ];
    let results = Mutex::new(Vec::new());
    each(&rounds("Bouncy Castle"), |(round, seed)| {
        let mut seed = seed.clone();
        let kind = seed.one_of(&KINDS);
        let manner = seed.one_of(&["", "polls=1", "polls=2/confPolls=1", "confPolls=1/by=error"]);
        let dir = dir.path().join(round.to_string());
        let mut order = Order::new(&pki, &dir, &ca.url(manner), secret, kind, seed);
        let mut result = order.drive();
        // The CA's own books have what it issued and delivered to nobody, too.
        let ids: BTreeSet<_> = order
            .abide
            .transactions()
            .iter()
            .map(|one| text(&one["transactionID"]))
            .collect();
        let booked = ca.booked("issued");
        let issued = booked
            .iter()
            .filter(|entry| ids.contains(&entry.transaction_id));
        result.issued = issued.count();
        assert_eq!(
            result.issued,
            1 + result.orphans,
            "round {round}: {:?}",
            order.abide.transactions()
        );
        results.lock().expect("the results").push(result);
    });
    let results = results.into_inner().expect("the results");
    let issued = ca.booked("issued");
    assert_eq!(
        issued.len(),
        results.iter().map(|result| result.issued).sum::<usize>()
    );
    let ids: BTreeSet<_> = issued.iter().map(|entry| &entry.transaction_id).collect();
    assert_eq!(
        ids.len(),
        issued.len(),
        "a transactionID was enrolled twice"
    );
    report("Bouncy Castle", &results);
}

/// It answers every repetition as it answered the first time, so there is nothing to be lost. It
/// does not delay here: with its connection it forgets what it was asked to wait for, and for ever
/// after it refuses whatever is asked.
#[test]
fn openssl() {
    let dir = tempfile::tempdir().expect("a folder for a test");
    let pki = Pki::new(&dir.path().join("pki"), KeyKind::P256);
    pki.issue_for_key(
        "new",
        &pki.key("new", KeyKind::P256),
        "/O=abide tests/CN=new",
    );
    let secret = [openssl::CmpServer::REF, openssl::CmpServer::SECRET];
    let results = Mutex::new(Vec::new());
    each(&rounds("OpenSSL"), |(round, seed)| {
        let mut seed = seed.clone();
        let kind = seed.one_of(&KINDS);
        let protection = match kind.signed {
            true => openssl::Protection::Signature,
            false => openssl::Protection::Pbm,
        };
        // One for each order: it serves one transaction at a time.
        let ca = openssl::CmpServer::start(&pki, protection, &[""; 0]);
        let dir = dir.path().join(round.to_string());
        let mut order = Order::new(&pki, &dir, ca.url(), secret, kind, seed);
        let result = order.drive();
        assert_eq!((result.issued, result.orphans), (1, 0), "round {round}");
        results.lock().expect("the results").push(result);
    });
    report("OpenSSL", &results.into_inner().expect("the results"));
}
