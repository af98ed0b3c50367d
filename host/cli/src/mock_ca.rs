//! `abide mock-ca`: a small CA for trials.

use std::net::SocketAddr;
use std::path::PathBuf;

use abide_mock_ca::{Chaos, Fault, FaultRate, Options};
use clap::{Args, ValueEnum};

use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::output::{self, Format};
use crate::pem;
use crate::prompt;
use crate::secret::Source;

/// Run a small CA for trials. Its root is fresh, its policy is to say yes.
#[derive(Args, Clone, Debug)]
pub(crate) struct MockCa {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The folder of root.pem, the root's key and the books; a fresh root when it is absent
    #[arg(long, value_name = "DIR", required_unless_present = "list_faults")]
    dir: Option<PathBuf>,
    /// The name under which clients know the shared secret
    #[arg(long = "ref", value_name = "REF", default_value = "client")]
    reference: String,
    /// The shared secret: pass:SECRET, env:VARIABLE, file:PATH (first line) or stdin
    #[arg(long, value_name = "SRC")]
    secret: Option<Source>,
    /// Answers before the one with the certificate: waiting, then pollRep
    #[arg(long, value_name = "N", default_value_t = 0)]
    poll_count: u32,
    /// The checkAfter of a pollRep in seconds
    #[arg(long, value_name = "S", default_value_t = 1)]
    check_after: u32,
    /// Grant implicit confirmation to who asks for it
    #[arg(long)]
    implicit_confirm: bool,
    /// What a request under a known transactionID gets
    #[arg(long, value_enum, default_value_t = Repeat::Replay)]
    repeat: Repeat,
    /// The path of the CMP server
    #[arg(long, value_name = "PATH", default_value = "/pkix/")]
    path: String,
    /// Trust anchors for clients' certificates besides the CA's own root
    #[arg(long, value_name = "FILE", num_args = 1..)]
    trusted: Vec<PathBuf>,
    /// Certificates of registration authorities, which may say raVerified and add protection
    #[arg(long, value_name = "FILE", num_args = 1..)]
    ra: Vec<PathBuf>,
    /// certReqId of the answer to a p10cr: -1 by the RFC, 0 as some servers do
    #[arg(long, value_name = "ID", default_value_t = -1, allow_negative_numbers = true)]
    p10cr_cert_req_id: i64,
    /// Faults by a seed: the same one gives the same faults. All of them, unless --fault names
    /// some
    #[arg(long, value_name = "SEED")]
    chaos: Option<u64>,
    /// One fault, and the part of the requests that meet it, from 0 to 1; 0.1 when absent.
    /// --list-faults tells the names
    #[arg(long, value_name = "NAME[=RATE]")]
    fault: Vec<FaultRate>,
    /// Print the faults with a line about each, and end
    #[arg(long)]
    list_faults: bool,
    /// Do not show each request
    #[arg(long, short)]
    quiet: bool,
}

/// What happens to a request that was answered before.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Repeat {
    /// The same answer again
    Replay,
    /// The error transactionIdInUse
    Refuse,
}

/// Runs the command until it is told to stop.
pub(crate) async fn run(args: &MockCa) -> Exit {
    match serve(args).await {
        Ok(()) => Exit::Done,
        Err(stop) => output::fail(&stop, Format::Text),
    }
}

async fn serve(args: &MockCa) -> Result<(), Stop> {
    let Some(dir) = args.dir.as_ref().filter(|_| !args.list_faults) else {
        let lines: Vec<_> = Fault::ALL
            .iter()
            .map(|(_, name, line)| format!("{name:<24}{line}\n"))
            .collect();
        return output::print(&lines.concat());
    };
    let secret = match &args.secret {
        Some(source) => source.read("--secret")?,
        None => prompt::secret("--secret", "the shared secret")?,
    };
    let reference = args.reference.as_bytes();
    let mut options = Options::new(args.listen, dir, reference, secret.as_slice());
    options.poll_count = args.poll_count;
    options.check_after = args.check_after;
    options.implicit_confirm = args.implicit_confirm;
    options.repeat = match args.repeat {
        Repeat::Replay => abide_mock_ca::Repeat::Replay,
        Repeat::Refuse => abide_mock_ca::Repeat::Refuse,
    };
    options.path.clone_from(&args.path);
    options.trusted = pem::all_certificates("--trusted", &args.trusted)?;
    options.registration_authorities = pem::all_certificates("--ra", &args.ra)?;
    options.p10cr_cert_req_id = args.p10cr_cert_req_id;
    options.chaos = match (args.chaos, args.fault.as_slice()) {
        (None, []) => None,
        (Some(seed), []) => Some(Chaos::every(seed)),
        (seed, some) => {
            let chaos = Chaos::some(seed.unwrap_or_default(), some.to_vec());
            Some(chaos.map_err(|error| Stop::usage(format!("--fault: {error:#}")))?)
        }
    };
    options.log = !args.quiet;
    let ca = bind(options).await?;
    // Two lines that scripts can wait for.
    output::print(&format!(
        "{}\n{}\n",
        ca.url(),
        dir.join("root.pem").display()
    ))?;
    let mut interrupt = Interrupt::new();
    tokio::select! {
        served = ca.serve() => served.map_err(|error| Stop::host(format!("{error:#}"))),
        () = interrupt.caught() => Ok(()),
    }
}

/// Starts a CA; its folder is made when it does not exist.
pub(crate) async fn bind(options: Options) -> Result<abide_mock_ca::MockCa, Stop> {
    abide_mock_ca::MockCa::bind(options)
        .await
        .map_err(|error| Stop::host(format!("the CA cannot start: {error:#}")))
}
