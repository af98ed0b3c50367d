//! `abide gateway`: a reverse proxy for CMP.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::str::FromStr;

use abide_gateway::{Draft, SCHEMA, StartError};
use clap::{ArgGroup, Args};

use crate::exit::{self, Exit, Stop};
use crate::interrupt::Interrupt;
use crate::output::{self, Format};
use crate::serve::{self, Log};

/// Stand before a CA: read each message in the sandbox, and pass on only what it should see.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
#[command(group = ArgGroup::new("source").required(true).args(["config", "upstream", "schema"]))]
#[command(group = ArgGroup::new("options").multiple(true))]
pub(crate) struct Gateway {
    /// The configuration, for everything that has no option
    #[arg(long, value_name = "FILE", conflicts_with = "options")]
    config: Option<PathBuf>,
    /// Print the schema of the configuration
    #[arg(long, exclusive = true)]
    schema: bool,
    /// Where messages are taken; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", group = "options")]
    listen: Option<String>,
    /// The CA's URL; more than once for others that are asked when it is not reached. Without a
    /// path messages go to the path that the client used
    #[arg(long, value_name = "URL", group = "options")]
    upstream: Vec<String>,
    /// Where /metrics, /healthz and /readyz are
    #[arg(long, value_name = "ADDRESS", group = "options")]
    admin: Option<String>,
    /// Pass no message without protection
    #[arg(long, group = "options")]
    require_protection: bool,
    /// Pass no message whose protection --trusted or --secret does not verify
    #[arg(long, group = "options")]
    require_verified: bool,
    /// The types of messages that pass, such as ir,certConf
    #[arg(long, value_name = "TYPE", value_delimiter = ',', group = "options")]
    allow: Vec<String>,
    /// Trust anchors for the signatures of messages
    #[arg(long, value_name = "FILE", num_args = 1.., group = "options")]
    trusted: Vec<PathBuf>,
    /// A shared secret for the MACs of messages: REF=pass:SECRET, REF=env:VARIABLE or
    /// REF=file:PATH (first line)
    #[arg(long, value_name = "REF=SRC", group = "options")]
    secret: Vec<Secret>,
    /// Requests in a span of seconds for each principal, such as 60/10
    #[arg(long, value_name = "N/S", group = "options")]
    rate_limit: Option<Rate>,
    /// Only count what is over the limit
    #[arg(long, requires = "rate_limit", group = "options")]
    learning: bool,
    /// Tell callers without a name apart by their address
    #[arg(long, requires = "rate_limit", group = "options")]
    by_address: bool,
    /// Count requests together with other gateways: redis://HOST:PORT, postgresql://… or
    /// sqlite:PATH
    #[arg(long, value_name = "URL", requires = "rate_limit", group = "options")]
    counters: Option<String>,
    /// A proxy, or a network of them, whose X-Forwarded-For is believed
    #[arg(long, value_name = "NETWORK", group = "options")]
    trusted_hop: Vec<String>,
    /// Octets of a message
    #[arg(long, value_name = "OCTETS", group = "options")]
    body_limit: Option<u32>,
    /// The certificate of the gateway, for HTTPS
    #[arg(long, value_name = "FILE", requires = "tls_key", group = "options")]
    tls_cert: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE", requires = "tls_cert", group = "options")]
    tls_key: Option<PathBuf>,
    /// Trust anchors for clients' certificates
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "tls_cert", group = "options")]
    tls_client_ca: Vec<PathBuf>,
    /// Let nobody in without a certificate
    #[arg(long, requires = "tls_client_ca", group = "options")]
    tls_client_required: bool,
    /// Trust anchors for the certificate of an https:// upstream
    #[arg(long, value_name = "FILE", num_args = 1.., group = "options")]
    upstream_trusted: Vec<PathBuf>,
    /// A certificate for upstreams that ask for one
    #[arg(
        long,
        value_name = "FILE",
        requires = "upstream_key",
        group = "options"
    )]
    upstream_cert: Option<PathBuf>,
    /// Its private key
    #[arg(
        long,
        value_name = "FILE",
        requires = "upstream_cert",
        group = "options"
    )]
    upstream_key: Option<PathBuf>,
    #[command(flatten)]
    log: Log,
}

/// The name of a secret, and where it is. Shown, it is only the name.
#[derive(Clone)]
struct Secret {
    reference: String,
    source: String,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=…", self.reference)
    }
}

impl FromStr for Secret {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (reference, source) = text
            .split_once('=')
            .ok_or("give REF=pass:SECRET, REF=env:VARIABLE or REF=file:PATH")?;
        Ok(Self {
            reference: reference.to_owned(),
            source: source.to_owned(),
        })
    }
}

/// Requests in a span.
#[derive(Clone, Copy, Debug)]
struct Rate {
    capacity: u32,
    seconds: u32,
}

impl FromStr for Rate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text
            .split_once('/')
            .and_then(|(capacity, seconds)| Some((capacity.parse().ok()?, seconds.parse().ok()?)));
        let (capacity, seconds) = numbers.ok_or("give requests and seconds, such as 60/10")?;
        Ok(Self { capacity, seconds })
    }
}

/// Runs the command until it is told to stop.
pub(crate) async fn run(args: &Gateway) -> Exit {
    if args.schema {
        return match output::print(SCHEMA) {
            Ok(()) => Exit::Done,
            Err(stop) => output::fail(&stop, Format::Text),
        };
    }
    args.log.start();
    // Heard from now on: whoever stops a gateway that just starts means it too.
    let mut interrupt = Interrupt::new();
    let draft = match &args.config {
        Some(file) => Draft::read(file),
        None => Draft::parse("the options", PathBuf::new(), &args.as_toml()),
    };
    let started = tokio::select! {
        started = abide_gateway::Gateway::start(draft) => started,
        () = interrupt.caught() => return Exit::Done,
    };
    let gateway = match started {
        Ok(gateway) => gateway,
        Err(StartError::Config(mut mistakes)) => {
            if args.config.is_none() {
                // Nobody has seen the lines that the options stand for.
                mistakes.iter_mut().for_each(|mistake| mistake.line = 0);
            }
            return serve::mistaken(&mistakes);
        }
        Err(error) => return output::fail(&Stop::host(error.to_string()), Format::Text),
    };
    // Lines that scripts can wait for.
    let mut lines = format!("{}\n", gateway.url());
    if let Some(admin) = gateway.admin_url() {
        lines.push_str(&format!("admin {admin}\n"));
    }
    if let Err(stop) = output::print(&lines) {
        return output::fail(&stop, Format::Text);
    }
    gateway.run(interrupt.caught()).await;
    Exit::Done
}

impl Gateway {
    /// The configuration that the options stand for.
    fn as_toml(&self) -> String {
        let mut toml = Toml::default();
        toml.section("[gateway]");
        toml.text("listen", self.listen.as_deref());
        toml.text("admin", self.admin.as_deref());
        if self.require_verified {
            toml.text("protection", Some("verified"));
        } else if self.require_protection {
            toml.text("protection", Some("required"));
        }
        toml.text("counters", self.counters.as_deref());
        toml.texts("allowed", &self.allow);
        toml.texts("trusted_hops", &self.trusted_hop);
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            toml.section("[gateway.tls]");
            toml.path("certificate", certificate);
            toml.path("key", key);
            toml.paths("client_ca", &self.tls_client_ca);
            if self.tls_client_required {
                toml.text("client_certificate", Some("required"));
            }
        }
        if let Some(octets) = self.body_limit {
            toml.section("[limits]");
            toml.plain("body_bytes", octets);
        }
        toml.section("[trust]");
        toml.paths("certificates", &self.trusted);
        for secret in &self.secret {
            toml.section("[[trust.secrets]]");
            toml.text("reference", Some(&secret.reference));
            toml.text("secret", Some(&secret.source));
        }
        if let Some(Rate { capacity, seconds }) = self.rate_limit {
            toml.section("[rate_limit]");
            toml.plain("enabled", true);
            toml.plain("capacity", capacity);
            toml.plain("rate_seconds", seconds);
            toml.plain("learning", self.learning);
            toml.plain("by_address", self.by_address);
        }
        for url in &self.upstream {
            toml.section("[[upstreams]]");
            toml.text("url", Some(url));
            toml.paths("tls_trusted", &self.upstream_trusted);
            if let (Some(certificate), Some(key)) = (&self.upstream_cert, &self.upstream_key) {
                toml.path("tls_cert", certificate);
                toml.path("tls_key", key);
            }
        }
        toml.0
    }
}

/// Writes what the options say.
#[derive(Default)]
struct Toml(String);

impl Toml {
    fn section(&mut self, head: &str) {
        self.0.push_str(head);
        self.0.push('\n');
    }

    fn plain(&mut self, name: &str, value: impl std::fmt::Display) {
        writeln!(self.0, "{name} = {value}").expect("a String takes all");
    }

    fn text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.plain(name, quoted(text));
        }
    }

    fn texts(&mut self, name: &str, texts: &[String]) {
        if !texts.is_empty() {
            let all: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            self.plain(name, format_args!("[{}]", all.join(", ")));
        }
    }

    fn path(&mut self, name: &str, path: &std::path::Path) {
        self.text(name, Some(&path.to_string_lossy()));
    }

    fn paths(&mut self, name: &str, paths: &[PathBuf]) {
        let texts: Vec<String> = paths
            .iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        self.texts(name, &texts);
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                write!(out, "\\u{:04X}", u32::from(c)).expect("a String takes all");
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
