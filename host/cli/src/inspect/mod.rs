//! `abide inspect`: messages, certificates, requests and CRLs in words.

mod input;
mod render;
mod verdict;

use std::path::PathBuf;

use abide_host::wit::message::{DecodeError, Leniency, Options, Trust};
use abide_host::{Gate, HostError};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use self::input::Input;
use self::verdict::Against;
use crate::der::{self, Kind};
use crate::exit::{Exit, Stop};
use crate::output::{self, Format};
use crate::text::printable;
use crate::{services, when};

/// What `--output json` prints (JSON Schema, draft 2020-12).
const SCHEMA: &str = include_str!("schema.json");

const HELP: &str = "\
Exit codes:
  0  shown; where it was to be verified, the protection is valid
  1  fault of this host
  2  bad usage, or an input that is none of the types
  5  not to be trusted: protection or signer
  7  --strict: the message breaks a MUST

Rules that a message breaks are told and change the exit code with --strict only.
Of several inputs, the first that fails gives the exit code.";

/// Show messages, certificates, requests and CRLs, verify protection, tell broken rules.
#[derive(Args, Clone, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Inspect {
    /// DER, PEM of any label, base64 or hexadecimal; - is the standard input
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    files: Vec<PathBuf>,
    /// The form of the result
    #[arg(long, value_enum, default_value_t)]
    output: Format,
    /// Refuse what is not of this type
    #[arg(long = "type", value_name = "TYPE", value_enum, ignore_case = true)]
    wanted: Option<Type>,
    #[command(flatten)]
    against: Against,
    /// Accept a deviation from DER, and report where it is; several with commas
    #[arg(long, value_name = "DEVIATION", value_enum, value_delimiter = ',')]
    allow: Vec<Deviation>,
    /// End with exit code 7 where a message breaks a MUST
    #[arg(long)]
    strict: bool,
    /// Show where the outer fields stand in the input; JSON always has it
    #[arg(long)]
    offsets: bool,
    /// Print the JSON Schema of --output json
    #[arg(long, conflicts_with_all = ["files", "verify", "allow", "strict", "offsets", "wanted"])]
    schema: bool,
    /// Keep no compiled code
    #[arg(long)]
    no_cache: bool,
}

/// A type that can be shown, named as in its RFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Type {
    #[value(name = "PKIMessage")]
    PkiMessage,
    #[value(name = "PKIMessages")]
    PkiMessages,
    #[value(name = "Certificate")]
    Certificate,
    #[value(name = "CertificationRequest", alias = "CSR")]
    CertificationRequest,
    #[value(name = "CertificateList", alias = "CRL")]
    CertificateList,
    #[value(name = "CertReqMessages", alias = "CRMF")]
    CertReqMessages,
    #[value(name = "CertReqMsg")]
    CertReqMsg,
    #[value(name = "CertRequest")]
    CertRequest,
    #[value(name = "CertTemplate")]
    CertTemplate,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::PkiMessage => "PKIMessage",
            Self::PkiMessages => "PKIMessages",
            Self::Certificate => "Certificate",
            Self::CertificationRequest => "CertificationRequest",
            Self::CertificateList => "CertificateList",
            Self::CertReqMessages => "CertReqMessages",
            Self::CertReqMsg => "CertReqMsg",
            Self::CertRequest => "CertRequest",
            Self::CertTemplate => "CertTemplate",
        }
    }
}

/// A deviation from DER that real peers show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Deviation {
    /// Lengths in more octets than needed
    NonMinimalLengths,
    /// Fractions of a second that end with zeros, or stand in a certificate
    FractionalSeconds,
    /// raVerified as A0 02 05 00
    ExplicitRaVerified,
    /// Optional lists without an element, taken as absent
    EmptyLists,
}

impl From<Deviation> for Leniency {
    fn from(deviation: Deviation) -> Self {
        match deviation {
            Deviation::NonMinimalLengths => Leniency::NON_MINIMAL_LENGTHS,
            Deviation::FractionalSeconds => Leniency::FRACTIONAL_SECONDS,
            Deviation::ExplicitRaVerified => Leniency::EXPLICIT_RA_VERIFIED,
            Deviation::EmptyLists => Leniency::EMPTY_LISTS,
        }
    }
}

/// Runs the command.
pub(crate) async fn run(args: &Inspect) -> Exit {
    match inspect(args).await {
        Ok(exit) => exit,
        Err(stop) => output::fail(&stop, args.output),
    }
}

async fn inspect(args: &Inspect) -> Result<Exit, Stop> {
    if args.schema {
        output::print(SCHEMA)?;
        return Ok(Exit::Done);
    }
    let from_stdin = args
        .files
        .iter()
        .filter(|file| input::is_stdin(file))
        .count();
    if from_stdin > 0 && args.against.secret == Some(crate::secret::Source::Stdin) {
        return Err(Stop::usage(
            "the standard input cannot be both the message and the secret",
        ));
    }
    if from_stdin > 1 {
        return Err(Stop::usage("the standard input can be read once only"));
    }
    let inspector = Inspector {
        args,
        trust: args.against.trust()?,
        leniency: args
            .allow
            .iter()
            .fold(Leniency::empty(), |all, &one| all | one.into()),
        gate: services::runtime(args.no_cache)?.gate(),
    };
    let mut results = Vec::new();
    for file in &args.files {
        match input::read(file) {
            Ok(inputs) => {
                for input in &inputs {
                    let result = inspector.look(input).await;
                    results.push((input.name.clone(), result));
                }
            }
            Err(stop) => results.push((file.display().to_string(), Err(stop))),
        }
    }
    report(args, results)
}

/// What a look at one input gave: what to show, and what to say where all is not well.
struct Shown {
    description: Value,
    complaint: Option<Stop>,
}

/// Prints all results in the order of the inputs: one as it is, several under their names.
fn report(args: &Inspect, mut results: Vec<(String, Result<Shown, Stop>)>) -> Result<Exit, Stop> {
    let several = results.len() > 1;
    if !several && let Some((_, Err(_))) = results.first() {
        // The one error is the whole result.
        return results.remove(0).1.map(|_| Exit::Done);
    }
    let mut exit = Exit::Done;
    let mut list = Vec::new();
    let mut complaints = Vec::new();
    for (name, result) in results {
        let (description, complaint) = match result {
            Ok(shown) => (shown.description, shown.complaint),
            Err(stop) => (failure(&stop), Some(stop)),
        };
        if let Some(stop) = complaint {
            if exit == Exit::Done {
                exit = stop.exit;
            }
            complaints.push(stop);
        }
        list.push((name, description));
    }
    match args.output {
        Format::Json if several => {
            let objects = list.into_iter().map(|(name, description)| {
                let mut members = Map::new();
                members.insert("source".into(), name.into());
                if let Value::Object(more) = description {
                    members.extend(more);
                }
                Value::Object(members)
            });
            output::print_json(&objects.collect())?;
        }
        Format::Json => {
            for (_, description) in list {
                output::print_json(&description)?;
            }
        }
        Format::Text => {
            let mut text = String::new();
            for (name, description) in list {
                if several {
                    let line = if text.is_empty() { "" } else { "\n" };
                    text.push_str(&format!("{line}== {} ==\n", printable(&name)));
                }
                text.push_str(&as_text(description, args.offsets));
            }
            output::print(&text)?;
        }
    }
    for stop in complaints {
        output::say(&format!("abide: {stop}"));
    }
    Ok(exit)
}

/// An input that cannot be shown, among others that can.
fn failure(stop: &Stop) -> Value {
    serde_json::json!({
        "status": "error",
        "exitCode": stop.exit.code(),
        "reason": stop.message,
    })
}

/// A description for people: the findings one a line, the offsets where they are wanted.
fn as_text(mut description: Value, with_offsets: bool) -> String {
    let Value::Object(members) = &mut description else {
        return String::new();
    };
    let offsets = members.shift_remove("offsets");
    let findings = members.shift_remove("findings");
    let mut text = render::render(&description, when::now_ms());
    if let Some(Value::Array(findings)) = findings {
        text.push_str(if findings.is_empty() {
            "findings: (none)\n"
        } else {
            "findings:\n"
        });
        for finding in &findings {
            let field = |name: &str| printable(finding[name].as_str().unwrap_or_default());
            let bit = match finding.get("failInfo") {
                Some(_) => format!("; {}", field("failInfo")),
                None => String::new(),
            };
            text.push_str(&format!(
                "  {} {}: {} ({}{bit})\n",
                field("weight"),
                field("path"),
                field("rule"),
                field("section"),
            ));
        }
    }
    if let (true, Some(Value::Array(places))) = (with_offsets, offsets) {
        text.push_str("offsets:\n");
        for place in &places {
            text.push_str(&format!(
                "  {:>7} {:>7}  {}\n",
                place["offset"].to_string(),
                place["length"].to_string(),
                printable(place["field"].as_str().unwrap_or_default()),
            ));
        }
    }
    text
}

struct Inspector<'a> {
    args: &'a Inspect,
    trust: Option<Trust>,
    leniency: Leniency,
    gate: Gate,
}

impl Inspector<'_> {
    async fn look(&self, input: &Input) -> Result<Shown, Stop> {
        let described = self.gate.describe(&input.der, self.leniency).await;
        let text = described
            .map_err(host)?
            .map_err(|error| none_of_the_types(input, &error))?;
        let mut description: Value = serde_json::from_str(&text).map_err(|error| {
            Stop::host(format!("the component's description is no JSON: {error}"))
        })?;
        let found = description["type"].as_str().unwrap_or_default().to_string();
        if let Some(wanted) = self.args.wanted.filter(|wanted| wanted.name() != found) {
            return Err(Stop::usage(format!(
                "{}: is of the type {found}, where --type asks for {}",
                input.name,
                wanted.name()
            )));
        }
        let is_message = found == Type::PkiMessage.name();
        let mut complaint = None;
        let mut more = Map::new();
        if let Some(trust) = &self.trust {
            if !is_message {
                return Err(Stop::usage(format!(
                    "{}: is of the type {found}; --verify takes a PKIMessage",
                    input.name
                )));
            }
            let options = Options {
                leniency: self.leniency,
                allow_sha1: self.args.against.allow_sha1,
            };
            let verdict = verdict::verify(&self.gate, &input.der, trust, options).await?;
            more.insert("verification".into(), verdict::verification(&verdict));
            complaint = verdict.err().map(|refusal| Stop {
                exit: refusal.exit,
                message: format!("{}: {}", input.name, refusal.reason),
            });
        }
        if is_message || found == Type::PkiMessages.name() {
            let findings = self.findings(&description, input).await?;
            let violations = findings
                .iter()
                .filter(|f| f["weight"] == "violation")
                .count();
            if self.args.strict && violations > 0 && complaint.is_none() {
                complaint = Some(Stop {
                    exit: Exit::Unusable,
                    message: format!("{}: breaks a MUST in {violations} places", input.name),
                });
            }
            more.insert("findings".into(), Value::Array(findings));
        }
        if let Value::Object(members) = &mut description {
            members.extend(more);
        }
        Ok(Shown {
            description,
            complaint,
        })
    }

    /// The rules broken by a message, or by each of PKIMessages.
    async fn findings(&self, description: &Value, input: &Input) -> Result<Vec<Value>, Stop> {
        let Some(messages) = description["messages"].as_array() else {
            return self.broken_rules(&input.der, "").await;
        };
        let mut all = Vec::new();
        for index in 0..messages.len() {
            let place = &description["offsets"][index];
            let number = |name: &str| usize::try_from(place[name].as_u64()?).ok();
            let message = number("offset")
                .zip(number("length"))
                .and_then(|(at, length)| input.der.get(at..at.checked_add(length)?));
            if let Some(message) = message {
                all.extend(
                    self.broken_rules(message, &format!("messages[{index}]."))
                        .await?,
                );
            }
        }
        Ok(all)
    }

    async fn broken_rules(&self, message: &[u8], within: &str) -> Result<Vec<Value>, Stop> {
        let findings = verdict::findings(&self.gate, message, self.leniency).await?;
        Ok(findings
            .iter()
            .map(|finding| verdict::finding(finding, within))
            .collect())
    }
}

fn host(error: HostError) -> Stop {
    Stop::host(error.to_string())
}

fn none_of_the_types(input: &Input, error: &DecodeError) -> Stop {
    let what = match der::kind(&input.der) {
        kind @ (Kind::PrivateKey | Kind::PublicKey) => {
            format!("holds {}, which is not shown", kind.name())
        }
        _ => not_readable(error),
    };
    Stop::usage(format!("{}: {what}", input.name))
}

/// The fault in an input, as the type that it comes closest to.
fn not_readable(error: &DecodeError) -> String {
    let root = error.path.split('.').next().unwrap_or_default();
    let what = match root {
        "" if error.offset == 0 => "no CMP message, certificate, request or CRL",
        "certificate" => "no certificate",
        "certificationRequest" => "no PKCS #10 request",
        "certificateList" => "no CRL",
        "certReqMessages" | "certReqMsg" | "certRequest" | "certTemplate" => "no request in CRMF",
        _ => "no CMP message",
    };
    let field = match error.path.as_str() {
        "" => String::new(),
        path => format!(", {}", printable(path)),
    };
    format!(
        "{what}: at octet {}{field}: {}",
        error.offset,
        printable(&error.rule)
    )
}
