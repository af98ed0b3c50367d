//! `abide demo`: the promise of the program in half a minute. A CA that makes its
//! client wait, a client that is killed while it waits, and a second one that goes
//! on where the first one stopped.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use abide_mock_ca::{Options, books};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use clap::Args;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::output::{self, Format};
use crate::text::{command_line, hex, printable};
use crate::when;

/// The CA says waiting, then asks twice for patience, then issues: the client is
/// killed after its first poll and has others to make when it comes back.
const POLL_COUNT: u32 = 3;
/// Seconds between polls.
const CHECK_AFTER: u32 = 2;
/// The client is killed when it waits for the second time.
const KILLED_AT: u32 = 2;

/// A demonstration that takes longer than this has failed, and says so.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the secret reaches the children without being on a command line.
const SECRET_VARIABLE: &str = "ABIDE_DEMO_SECRET";

/// Watch an enrollment survive a kill -9, against a CA of its own.
#[derive(Args, Clone, Debug)]
pub(crate) struct Demo {
    /// A folder for everything, new or empty; a temporary one when absent
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the command.
pub(crate) async fn run(args: &Demo) -> Exit {
    let mut interrupt = Interrupt::new();
    let told = tokio::select! {
        told = tokio::time::timeout(PATIENCE, tell(args)) => told.unwrap_or_else(|_| {
            Err(Stop::host(format!("the demo was not done in {} s", PATIENCE.as_secs())))
        }),
        () = interrupt.caught() => Err(Stop::host("the demo was stopped by a signal")),
    };
    match told {
        Ok(()) => Exit::Done,
        Err(stop) => output::fail(&stop, Format::Text),
    }
}

async fn tell(args: &Demo) -> Result<(), Stop> {
    let stage = Stage::new(args.dir.as_deref())?;
    step(&format!(
        "Everything of this demo is in {}",
        stage.dir.display()
    ))?;

    let ca = crate::mock_ca::bind(stage.ca_options()).await?;
    let server = ca.url();
    step(&format!(
        "A CA with a fresh root listens at {server}; it makes its clients wait and poll"
    ))?;
    let ca_at_work = tokio::spawn(async move { ca.serve().await });

    step("A client asks for a certificate, with a key it makes itself:")?;
    let first = stage.enroll(&server, false);
    let mut child = stage.start(&first)?;
    let mut waits = 0;
    let waited = relay(&mut child, |line| {
        waits += u32::from(line.starts_with("next poll at "));
        waits == KILLED_AT
    })
    .await?;
    if !waited {
        return Err(failed("the client ended without having to wait"));
    }
    child
        .kill()
        .await
        .map_err(|error| failed(&format!("the client cannot be killed ({error})")))?;
    step(
        "kill -9: the client is dead, in the middle of its wait. The store knows the transaction:",
    )?;
    let store = stage.path("store.db");
    stage.show(&["transactions", "list"]).await?;
    let before = stage.transactions().await?;
    let id = the_only(&before)?;

    step("The same command again, with --resume:")?;
    let mut child = stage.start(&stage.enroll(&server, true))?;
    relay(&mut child, |_| false).await?;
    let status = child
        .wait()
        .await
        .map_err(|error| failed(&error.to_string()))?;
    if !status.success() {
        return Err(failed(&format!("the second client ended with {status}")));
    }
    let after = stage.transactions().await?;
    if the_only(&after)? != id {
        return Err(failed("the second client began a transaction of its own"));
    }
    step(&format!(
        "One transaction from the first request to the end: {id}"
    ))?;

    step("The certificate and its chain, leaf first:")?;
    let chain = stage.path("chain.pem");
    let pem = std::fs::read_to_string(&chain)
        .map_err(|error| failed(&format!("{} cannot be read ({error})", chain.display())))?;
    indent(&pem)?;

    step(&format!("Its history in {}:", store.display()))?;
    stage.show(&["transactions", "show", &id]).await?;

    let issued = issued_by_ca(&stage.path("ca"))?;
    if issued != 1 {
        return Err(failed(&format!(
            "the CA's books hold {issued} certificates instead of one"
        )));
    }
    step(
        "The CA's books hold exactly one certificate. Nothing was lost, nothing asked for twice.",
    )?;
    ca_at_work.abort();
    Ok(())
}

/// The folder of one demonstration, and the commands that run in it.
struct Stage {
    dir: PathBuf,
    program: PathBuf,
    secret: String,
}

impl Stage {
    fn new(dir: Option<&Path>) -> Result<Self, Stop> {
        const OWNER_ONLY: u32 = 0o700;
        let dir = match dir {
            Some(dir) => dir.to_path_buf(),
            None => std::env::temp_dir().join(format!("abide-demo-{}", when::now_ms())),
        };
        let usage = |what: String| Stop::usage(format!("--dir {}: {what}", dir.display()));
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(OWNER_ONLY)
            .create(&dir)
            .map_err(|error| usage(format!("cannot be made ({error})")))?;
        let mut entries =
            std::fs::read_dir(&dir).map_err(|error| usage(format!("cannot be read ({error})")))?;
        if entries.next().is_some() {
            return Err(usage("is not empty; name a new folder".into()));
        }
        let program = std::env::current_exe()
            .map_err(|error| Stop::host(format!("abide does not find itself ({error})")))?;
        let mut secret = [0; 16];
        SystemRandom::new()
            .fill(&mut secret)
            .map_err(|_| Stop::host("this machine gives no random bytes"))?;
        Ok(Self {
            dir,
            program,
            secret: hex(&secret),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn ca_options(&self) -> Options {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut options = Options::new(listen, self.path("ca"), "demo", self.secret.as_bytes());
        options.poll_count = POLL_COUNT;
        options.check_after = CHECK_AFTER;
        options
    }

    fn enroll(&self, server: &str, resume: bool) -> Vec<OsString> {
        let mut words: Vec<OsString> = [
            "enroll", "--cmd", "ir", "--server", server, "--ref", "demo", "--secret",
        ]
        .map(OsString::from)
        .into();
        words.push(format!("env:{SECRET_VARIABLE}").into());
        words.extend(["--subject", "/CN=demo.example/O=abide"].map(OsString::from));
        words.extend(["--sans", "demo.example"].map(OsString::from));
        for (option, name) in [
            ("--trusted", "ca/root.pem"),
            ("--newkey", "key.pem"),
            ("--certout", "cert.pem"),
            ("--chainout", "chain.pem"),
            ("--store", "store.db"),
        ] {
            words.extend([option.into(), self.path(name).into_os_string()]);
        }
        if resume {
            words.push("--resume".into());
        }
        words
    }

    /// This program again, as a process of its own that dies with the demo.
    fn command(&self, words: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env(SECRET_VARIABLE, &self.secret)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    fn start(&self, words: &[OsString]) -> Result<Child, Stop> {
        let shown = words.iter().map(|word| word.to_string_lossy().into_owned());
        indent(&format!("$ abide {}", command_line(shown)))?;
        self.command(words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                failed(&format!(
                    "{} cannot be started ({error})",
                    self.program.display()
                ))
            })
    }

    async fn output(&self, words: &[&str]) -> Result<String, Stop> {
        let mut all: Vec<OsString> = words.iter().map(OsString::from).collect();
        all.extend(["--store".into(), self.path("store.db").into_os_string()]);
        let output = self.command(&all).output().await.map_err(|error| {
            failed(&format!(
                "abide {} cannot be run ({error})",
                words.join(" ")
            ))
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(&format!(
                "abide {} said: {}",
                words.join(" "),
                said.trim()
            )));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    async fn show(&self, words: &[&str]) -> Result<(), Stop> {
        let text = self.output(words).await?;
        indent(&format!("$ abide {}", words.join(" ")))?;
        indent(&text)
    }

    async fn transactions(&self) -> Result<Vec<String>, Stop> {
        let text = self
            .output(&["transactions", "list", "--output", "json"])
            .await?;
        let list: Vec<Value> = serde_json::from_str(&text)
            .map_err(|error| failed(&format!("the list of transactions is no JSON ({error})")))?;
        Ok(list
            .iter()
            .map(|one| {
                one["transactionID"]
                    .as_str()
                    .unwrap_or_default()
                    .to_string()
            })
            .collect())
    }
}

/// Certificates in the books of the CA, as it wrote them itself.
fn issued_by_ca(folder: &Path) -> Result<usize, Stop> {
    let entries = books::read(folder).map_err(|error| failed(&format!("{error:#}")))?;
    let issued = |entry: &&books::Entry| matches!(entry.event, books::Event::Issued { .. });
    Ok(entries.iter().filter(issued).count())
}

fn the_only(ids: &[String]) -> Result<String, Stop> {
    match ids {
        [id] => Ok(id.clone()),
        _ => Err(failed(&format!(
            "the store holds {} transactions instead of one",
            ids.len()
        ))),
    }
}

/// Passes on what a child says, up to a line that is waited for.
async fn relay(child: &mut Child, mut is_last: impl FnMut(&str) -> bool) -> Result<bool, Stop> {
    let Some(stderr) = child.stderr.take() else {
        return Ok(false);
    };
    let mut lines = BufReader::new(stderr).lines();
    while let Some(line) = lines
        .next_line()
        .await
        .map_err(|error| failed(&error.to_string()))?
    {
        indent(&line)?;
        if is_last(&line) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn step(text: &str) -> Result<(), Stop> {
    output::print(&format!("\n{text}\n"))
}

fn indent(text: &str) -> Result<(), Stop> {
    text.lines()
        .try_for_each(|line| output::print(&format!("    {}\n", printable(line))))
}

fn failed(what: &str) -> Stop {
    Stop::host(format!("the demo failed: {what}"))
}
