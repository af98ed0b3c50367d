//! `abide inspect`: any CMP message in words.

mod input;
mod render;

use std::path::PathBuf;

use abide_host::wit::message::{
    Anchors, DecodeError, Leniency, Options, Signer, Trust, VerifyError,
};
use abide_host::{Gate, HostError};
use clap::Args;
use serde_json::{Value, json};

use crate::exit::{self, Exit, Stop};
use crate::output::{self, Format};
use crate::secret::Source;
use crate::text::printable;
use crate::{pem, services, when};

/// Show a CMP message, and verify its protection.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
pub(crate) struct Inspect {
    /// The message as DER, PEM, base64 or hexadecimal; - is the standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The form of the result
    #[arg(long, value_enum, default_value_t)]
    output: Format,
    /// Verify the protection, with --secret or --trusted
    #[arg(long)]
    verify: bool,
    /// The shared secret: pass:SECRET, env:VARIABLE, file:PATH (first line) or stdin
    #[arg(
        long,
        value_name = "SRC",
        requires = "verify",
        conflicts_with = "trusted"
    )]
    secret: Option<Source>,
    /// Trust anchors for the signer
    #[arg(long, value_name = "FILE", requires = "verify")]
    trusted: Vec<PathBuf>,
    /// Keep no compiled code
    #[arg(long)]
    no_cache: bool,
}

/// Runs the command.
pub(crate) async fn run(args: &Inspect) -> Exit {
    match inspect(args).await {
        Ok(exit) => exit,
        Err(stop) => output::fail(&stop, args.output),
    }
}

async fn inspect(args: &Inspect) -> Result<Exit, Stop> {
    let from_stdin = args.file.as_os_str() == "-";
    if from_stdin && args.secret == Some(Source::Stdin) {
        return Err(Stop::usage(
            "the standard input cannot be both the message and the secret",
        ));
    }
    let trust = trust(args)?;
    let message = input::read(&args.file, from_stdin)?;
    let name = if from_stdin {
        "the standard input".into()
    } else {
        args.file.display().to_string()
    };
    let runtime = services::runtime(args.no_cache)?;
    let gate = runtime.gate();
    let text = gate
        .describe(&message, Leniency::empty())
        .await
        .map_err(host)?
        .map_err(|error| not_cmp(&name, &error))?;
    let mut description: Value = serde_json::from_str(&text)
        .map_err(|error| Stop::host(format!("the component's description is no JSON: {error}")))?;
    let verdict = match trust {
        Some(trust) => Some(verify(&gate, &message, trust).await?),
        None => None,
    };
    if let (Some(verdict), Value::Object(members)) = (&verdict, &mut description) {
        members.insert("verification".into(), verification(verdict));
    }
    match args.output {
        Format::Json => output::print_json(&description)?,
        Format::Text => output::print(&render::render(&description))?,
    }
    match verdict {
        Some(Err((exit, reason))) => {
            output::say(&format!("abide: {name}: {reason}"));
            Ok(exit)
        }
        _ => Ok(Exit::Done),
    }
}

fn trust(args: &Inspect) -> Result<Option<Trust>, Stop> {
    match (&args.secret, &args.trusted[..], args.verify) {
        (Some(source), _, _) => Ok(Some(Trust::Secret(source.read("--secret")?.to_vec()))),
        (None, [], false) => Ok(None),
        (None, [], true) => Err(Stop::usage(
            "--verify needs --secret SRC or --trusted FILE to verify against",
        )),
        (None, files, _) => Ok(Some(Trust::Anchors(Anchors {
            certificates: pem::all_certificates("--trusted", files)?,
            at: i64::try_from(when::now_ms() / 1000).unwrap_or(i64::MAX),
        }))),
    }
}

/// The verdict of the component: who protected the message, or why it is not to be
/// believed.
type Verdict = Result<Signer, (Exit, String)>;

async fn verify(gate: &Gate, message: &[u8], trust: Trust) -> Result<Verdict, Stop> {
    let options = Options {
        leniency: Leniency::empty(),
    };
    Ok(gate
        .verify(message, &trust, options)
        .await
        .map_err(host)?
        .map_err(|error| refusal(&error)))
}

fn refusal(error: &VerifyError) -> (Exit, String) {
    match error {
        VerifyError::Undecodable(error) => (Exit::Unusable, not_decodable(error)),
        VerifyError::Unprotected => (
            Exit::Untrusted,
            "the message carries no protection: anybody may have written it".into(),
        ),
        VerifyError::WrongKind => (
            Exit::Usage,
            "the message is protected in another way: --secret fits a MAC, --trusted a signature"
                .into(),
        ),
        VerifyError::Unsupported(why) => (Exit::Untrusted, format!("not accepted: {why}")),
        VerifyError::BadProtection(why) => (
            Exit::Untrusted,
            format!("the protection does not fit the message: {why}"),
        ),
        VerifyError::Untrusted(why) => {
            (Exit::Untrusted, format!("the signer is not trusted: {why}"))
        }
    }
}

fn verification(verdict: &Verdict) -> Value {
    match verdict {
        Ok(signer) => json!({
            "valid": true,
            "signer": signer.name,
            "certificate": signer
                .certificate
                .as_ref()
                .map(|der| pem::encode("CERTIFICATE", der)),
        }),
        Err((_, reason)) => json!({ "valid": false, "reason": reason }),
    }
}

fn host(error: HostError) -> Stop {
    Stop::host(error.to_string())
}

fn not_cmp(name: &str, error: &DecodeError) -> Stop {
    Stop {
        exit: Exit::Usage,
        message: format!("{name}: {}", not_decodable(error)),
    }
}

fn not_decodable(error: &DecodeError) -> String {
    let field = match error.path.as_str() {
        "" => String::new(),
        path => format!(", {}", printable(path)),
    };
    format!(
        "no CMP message: at octet {}{field}: {}",
        error.offset,
        printable(&error.rule)
    )
}
