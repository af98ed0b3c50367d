//! From the configuration to what is used: every file is read and every contradiction found
//! before a store is opened or a port is bound.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use abide_host::network::{Identity, TlsFile};
use abide_host::wit::schedule;
use abide_host::wit::transactions::{
    CertificateCredential, Credential, Deviations, Limits, MacKind, Operation, Registration,
    SharedSecret,
};
use abide_host::{FileKeys, HttpConfig, HttpNetwork, KeyFileError, Keys};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::config::{Allow, Command, Config, Issuer, Mac, Right, Store, Token};
use crate::input::secret::Source;
use crate::input::{InputError, der, files, names, pem};
use crate::{paths, tls};

/// What the files of a configuration hold.
pub(crate) struct Material {
    pub(crate) issuers: BTreeMap<String, schedule::Issuer>,
    /// Of issuers with several endpoints their routing as JSON, by the name of the issuer.
    pub(crate) routings: BTreeMap<String, String>,
    pub(crate) keys: FileKeys,
    /// The way to each endpoint, by its URL.
    pub(crate) networks: BTreeMap<String, HttpNetwork>,
    pub(crate) tokens: Vec<KnownToken>,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) client_rights: Vec<Right>,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) store: Store,
}

/// A token, of which nothing is known but its hash.
#[derive(Debug, Clone)]
pub(crate) struct KnownToken {
    pub(crate) name: String,
    pub(crate) sha256: [u8; 32],
    pub(crate) rights: Vec<Right>,
}

/// Takes the path of a field and what is wrong with it.
type Report<'a> = dyn FnMut(&str, String) + Send + 'a;

/// Reads what the configuration names. What is missing in the result was reported.
pub(crate) async fn gather(config: &Config, report: &mut Report<'_>) -> Material {
    let mut keys = FileKeys::new();
    let mut issuers = BTreeMap::new();
    let mut networks = Networks::default();
    let mut routings = BTreeMap::new();
    for (name, given) in &config.issuers {
        let mut reader = Reader {
            config,
            name,
            given,
            report,
        };
        if let Some(issuer) = reader.issuer(&mut keys).await {
            match issuer.endpoints.is_empty() {
                true => reader.network("server", &issuer.server, &mut networks),
                false => {
                    for url in &issuer.endpoints {
                        reader.network("endpoints", url, &mut networks);
                    }
                }
            }
            if let Some(routing) = routing(given) {
                routings.insert(name.clone(), routing);
            }
            issuers.insert(name.clone(), issuer);
        }
    }
    let tokens = tokens(config, report);
    let tls = config.service.tls.as_ref().and_then(|given| {
        tls::server(&config.folder, given, tls::Clients::MayShowOne)
            .map_err(|(field, problem)| report(&format!("service.tls{field}"), problem))
            .ok()
    });
    let listen = listen(config, report);
    delivery(config, report);
    Material {
        issuers,
        routings,
        keys,
        networks: networks
            .known
            .into_iter()
            .map(|(url, (way, _))| (url, way))
            .collect(),
        tokens,
        tls,
        client_rights: match &config.service.tls {
            Some(tls) => tls.client_rights.clone(),
            None => Vec::new(),
        },
        listen,
        store: store(config, report),
    }
}

/// Ways to endpoints, each with the name and the TLS files of the issuer that it is made for.
#[derive(Default)]
struct Networks {
    known: BTreeMap<String, (HttpNetwork, (String, TlsFiles))>,
}

type TlsFiles = (Vec<PathBuf>, Option<PathBuf>, Option<PathBuf>);

/// Reads one issuer.
struct Reader<'a, 'r> {
    config: &'a Config,
    name: &'a str,
    given: &'a Issuer,
    report: &'a mut Report<'r>,
}

impl Reader<'_, '_> {
    fn wrong(&mut self, field: &str, problem: impl Into<String>) {
        let dot = if field.is_empty() { "" } else { "." };
        (self.report)(
            &format!("issuers.{}{dot}{field}", self.name),
            problem.into(),
        );
    }

    /// What was read, or its error reported.
    fn take<T>(&mut self, field: &str, read: Result<T, InputError>) -> Option<T> {
        read.map_err(|error| self.wrong(field, error.message)).ok()
    }

    fn certificates(&mut self, field: &str, files: &[PathBuf]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let read = pem::certificates("the file", &self.config.path(file));
            if let Some(some) = self.take(&format!("{field}[{index}]"), read) {
                all.extend(some);
            }
        }
        all
    }

    async fn issuer(&mut self, keys: &mut FileKeys) -> Option<schedule::Issuer> {
        let given = self.given;
        let (server, endpoints) = self.endpoints();
        if !given.recipient.is_empty()
            && let Err(problem) = names::distinguished_name(&given.recipient)
        {
            self.wrong("recipient", problem);
        }
        if given.min_poll > given.max_poll {
            self.wrong("min_poll", "is longer than `max_poll`");
        }
        let trusted = self.certificates("trusted", &given.trusted);
        let out_trusted = self.certificates("out_trusted", &given.out_trusted);
        let untrusted = self.certificates("untrusted", &given.untrusted);
        let credential = self.credential(keys).await;
        let registration = self.registration(keys).await;
        Some(schedule::Issuer {
            operation: match given.cmd {
                Command::Ir => Operation::Ir,
                Command::Cr => Operation::Cr,
            },
            updates: given.updates,
            profile: given.profile.clone(),
            server: server?,
            endpoints,
            route: String::new(),
            recipient: given.recipient.clone(),
            credential: credential?,
            trusted,
            out_trusted,
            untrusted,
            implicit_confirm: given.implicit_confirm,
            allow_sha1: given.allow_sha1,
            allow: given
                .allow
                .iter()
                .fold(Deviations::empty(), |all, &one| all | deviation(one)),
            limits: Limits {
                maximum_duration_ms: given.total_timeout * 1000,
                minimum_poll_interval_ms: given.min_poll * 1000,
                maximum_poll_interval_ms: given.max_poll * 1000,
                maximum_polls: given.max_polls,
                request_timeout_ms: given.msg_timeout * 1000,
            },
            registration,
        })
    }

    /// The one endpoint, or all of several.
    fn endpoints(&mut self) -> (Option<String>, Vec<String>) {
        let given = self.given;
        if given.endpoints.is_empty() && given.dynamic_endpoints.is_empty() {
            if given.server.is_empty() {
                self.wrong(
                    "",
                    "nothing says where it is: give `server`, or `endpoints`",
                );
                return (None, Vec::new());
            }
            let server = names::server_url(&given.server)
                .map_err(|problem| self.wrong("server", problem))
                .ok();
            return (server, Vec::new());
        }
        if !given.server.is_empty() {
            self.wrong(
                "server",
                "goes with neither `endpoints` nor `dynamic_endpoints`: make it an endpoint \
                 without a selector, and it is the default",
            );
        }
        let mut urls = Vec::new();
        for (at, url) in named_urls(given) {
            match names::server_url(url) {
                Ok(url) if urls.contains(&url) => {}
                Ok(url) => urls.push(url),
                Err(problem) => self.wrong(&at, problem),
            }
        }
        // Which one it is follows from each order.
        (Some(String::new()), urls)
    }

    async fn credential(&mut self, keys: &mut FileKeys) -> Option<Credential> {
        let given = self.given;
        match (&given.secret, &given.cert) {
            (Some(_), Some(_)) => {
                self.wrong(
                    "cert",
                    "`secret` and `cert` are two ways to protect requests: give one of them",
                );
                None
            }
            (None, None) => {
                self.wrong(
                    "",
                    "nothing protects the requests: give `reference` and `secret`, or `cert` \
                     and `key`",
                );
                None
            }
            (Some(secret), None) => {
                if given.reference.is_none() {
                    self.wrong(
                        "secret",
                        "without `reference` the CA does not know whose it is",
                    );
                }
                let name = format!("the secret of issuer {}", self.name);
                let secret = self.secret("secret", secret)?;
                keys.add_secret(name.clone(), secret);
                Some(Credential::Secret(SharedSecret {
                    reference: given.reference.clone().unwrap_or_default().into_bytes(),
                    key: name,
                    iterations: given.pbm_iterations,
                    mac: match given.mac {
                        Mac::Pbm => MacKind::Pbm,
                        Mac::Pbmac1 => MacKind::Pbmac1,
                    },
                }))
            }
            (None, Some(cert)) => {
                let name = format!("the key of issuer {}", self.name);
                let extra = self.certificates("extracerts", &given.extracerts);
                self.signer(
                    keys,
                    name,
                    ("cert", cert),
                    ("key", given.key.as_ref()),
                    extra,
                )
                .await
                .map(Credential::Certificate)
            }
        }
    }

    async fn registration(&mut self, keys: &mut FileKeys) -> Option<Registration> {
        let given = self.given;
        let Some(cert) = &given.ra_cert else {
            if given.ra_key.is_some() {
                self.wrong("ra_key", "goes with `ra_cert`");
            }
            return None;
        };
        let name = format!("the RA's key of issuer {}", self.name);
        let chain = self.certificates("ra_chain", &given.ra_chain);
        let key = ("ra_key", given.ra_key.as_ref());
        let added = self
            .signer(keys, name, ("ra_cert", cert), key, chain)
            .await?;
        Some(Registration {
            ra_verified: false,
            added_protection: Some(added),
        })
    }

    /// A certificate with its key, which must belong together.
    async fn signer(
        &mut self,
        keys: &mut FileKeys,
        name: String,
        (cert_field, cert): (&str, &Path),
        (key_field, key): (&str, Option<&PathBuf>),
        extra: Vec<Vec<u8>>,
    ) -> Option<CertificateCredential> {
        let Some(key) = key else {
            self.wrong(
                cert_field,
                format!("its private key is missing: give `{key_field}`"),
            );
            return None;
        };
        let read = pem::certificates("the file", &self.config.path(cert));
        let mut chain = self.take(cert_field, read)?;
        let certificate = chain.remove(0);
        chain.extend(extra);
        let path = self.config.path(key);
        let contents = Zeroizing::new(self.take(key_field, files::read("the file", &path))?);
        let added = match keys.add_private_key(name.clone(), &contents, None) {
            Err(KeyFileError::Encrypted { .. }) => {
                let Some(source) = &self.given.keypass else {
                    self.wrong(key_field, "is encrypted: give its passphrase as `keypass`");
                    return None;
                };
                let passphrase = self.secret("keypass", source)?;
                keys.add_private_key(name.clone(), &contents, Some(&passphrase))
            }
            added => added,
        };
        if let Err(error) = added {
            self.wrong(key_field, format!("{}: {error}", path.display()));
            return None;
        }
        let own = keys.public_key(&name).await.ok()?;
        if der::public_key(&certificate).is_some_and(|certified| certified != own) {
            self.wrong(
                key_field,
                format!(
                    "{} is not the key of the certificate in `{cert_field}`",
                    path.display()
                ),
            );
            return None;
        }
        Some(CertificateCredential {
            certificate,
            chain,
            key: name,
        })
    }

    fn secret(&mut self, field: &str, text: &str) -> Option<Zeroizing<Vec<u8>>> {
        let read = read_secret(self.config, text);
        self.take(field, read)
    }

    /// The way to the endpoint of this issuer.
    fn network(&mut self, field: &str, server: &str, networks: &mut Networks) {
        let given = self.given;
        let secure = server.starts_with("https://");
        let tls: TlsFiles = (
            given.tls_trusted.clone(),
            given.tls_cert.clone(),
            given.tls_key.clone(),
        );
        if let Some((_, (other, known))) = networks.known.get(server) {
            if *known != tls {
                let problem = format!(
                    "issuer {other} has the same server with other `tls_…` files; give both the \
                     same ones"
                );
                self.wrong(field, problem);
            }
            return;
        }
        if !secure && tls != TlsFiles::default() {
            self.wrong(field, "`tls_…` files need an https:// server");
            return;
        }
        let mut config = HttpConfig::default();
        config.proxy_from_environment = !names::is_loopback(server);
        for (index, file) in given.tls_trusted.iter().enumerate() {
            let path = self.config.path(file);
            let read = tls_file(&path);
            if let Some(file) = self.take(&format!("tls_trusted[{index}]"), read) {
                config.trusted.push(file);
            }
        }
        match (&given.tls_cert, &given.tls_key) {
            (Some(cert), Some(key)) => {
                let certificate = tls_file(&self.config.path(cert));
                let certificate = self.take("tls_cert", certificate);
                let path = self.config.path(key);
                let contents = files::read("the file", &path).map(Zeroizing::new);
                let contents = self.take("tls_key", contents);
                if let (Some(certificate), Some(contents)) = (certificate, contents) {
                    config.identity = Some(Identity {
                        certificate,
                        key: TlsFile {
                            name: path.display().to_string(),
                            contents,
                        },
                    });
                }
            }
            (None, None) => {}
            (Some(_), None) => self.wrong("tls_cert", "goes with `tls_key`"),
            (None, Some(_)) => self.wrong("tls_key", "goes with `tls_cert`"),
        }
        match HttpNetwork::new(config) {
            Ok(way) => {
                let made = (way, (self.name.to_owned(), tls));
                networks.known.insert(server.to_owned(), made);
            }
            Err(error) => self.wrong(field, error.to_string()),
        }
    }
}

/// The URLs of an issuer with several, each with its place in the configuration.
fn named_urls(given: &Issuer) -> Vec<(String, &str)> {
    let listed = given
        .endpoints
        .iter()
        .enumerate()
        .filter_map(|(index, one)| {
            let url = one.get("url").and_then(Value::as_str)?;
            Some((format!("endpoints[{index}].url"), url))
        });
    let dynamic = given
        .dynamic_endpoints
        .iter()
        .map(|(origin, url)| (format!("dynamic_endpoints.{origin}"), url.as_str()));
    listed.chain(dynamic).collect()
}

/// The routing of an issuer with several endpoints as the component wants it, its URLs complete;
/// none where there is but one. What is wrong with a URL is found elsewhere.
pub(crate) fn routing(given: &Issuer) -> Option<String> {
    if given.endpoints.is_empty() && given.dynamic_endpoints.is_empty() {
        return None;
    }
    let whole = |url: &str| names::server_url(url).unwrap_or_else(|_| url.to_owned());
    let mut endpoints = given.endpoints.clone();
    for endpoint in &mut endpoints {
        if let Some(url) = endpoint.get_mut("url")
            && let Some(text) = url.as_str()
        {
            *url = Value::from(whole(text));
        }
    }
    let dynamic: BTreeMap<&str, String> = given
        .dynamic_endpoints
        .iter()
        .map(|(origin, url)| (origin.as_str(), whole(url)))
        .collect();
    Some(json!({ "endpoints": endpoints, "dynamic_endpoints": dynamic }).to_string())
}

fn deviation(allow: Allow) -> Deviations {
    match allow {
        Allow::SignedAnswerToMac => Deviations::SIGNED_ANSWER_TO_MAC,
        Allow::CaWithoutDigitalSignature => Deviations::CA_WITHOUT_DIGITAL_SIGNATURE,
        Allow::SenderKidEchoed => Deviations::SENDER_KID_ECHOED,
        Allow::FractionalSeconds => Deviations::FRACTIONAL_SECONDS,
        Allow::EmptyLists => Deviations::EMPTY_LISTS,
    }
}

/// A secret from where the configuration says; a service has no terminal and no standard input.
fn read_secret(config: &Config, text: &str) -> Result<Zeroizing<Vec<u8>>, InputError> {
    let Ok(source) = text.parse::<Source>();
    let source = match source {
        Source::File(path) => Source::File(config.path(&path)),
        Source::Stdin => {
            return Err(InputError::given(
                "a service reads no secret from its standard input; give env:VARIABLE or file:PATH",
            ));
        }
        other => other,
    };
    source.read("the secret")
}

/// Read here, because the errors of this reader name the line.
fn tls_file(path: &Path) -> Result<TlsFile, InputError> {
    let certificates = pem::certificates("the file", path)?;
    Ok(TlsFile {
        name: path.display().to_string(),
        contents: Zeroizing::new(pem::encode_certificates(&certificates).into_bytes()),
    })
}

fn tokens(config: &Config, report: &mut Report<'_>) -> Vec<KnownToken> {
    let mut known: Vec<KnownToken> = Vec::new();
    for (index, token) in config.tokens.iter().enumerate() {
        let at = format!("tokens[{index}]");
        let sha256 = match token_hash(config, token) {
            Ok(hash) => hash,
            Err((field, problem)) => {
                report(&format!("{at}{field}"), problem);
                continue;
            }
        };
        if known.iter().any(|other| other.name == token.name) {
            report(
                &format!("{at}.name"),
                format!("{:?} is there twice", token.name),
            );
        } else if known.iter().any(|other| other.sha256 == sha256) {
            report(&at, "another entry has the same token".to_owned());
        }
        known.push(KnownToken {
            name: token.name.clone(),
            sha256,
            rights: token.rights.clone(),
        });
    }
    known
}

fn token_hash(config: &Config, token: &Token) -> Result<[u8; 32], (&'static str, String)> {
    match (&token.sha256, &token.file) {
        (Some(hash), None) => {
            let mut octets = [0; 32];
            base16(hash, &mut octets).ok_or((
                ".sha256",
                "is no SHA-256 in lowercase hexadecimal".to_owned(),
            ))?;
            Ok(octets)
        }
        (None, Some(file)) => {
            let text = Source::File(config.path(file))
                .read("the token")
                .map_err(|error| (".file", error.message))?;
            Ok(Sha256::digest(&*text).into())
        }
        _ => Err(("", "give either `sha256` or `file`".to_owned())),
    }
}

fn base16(text: &str, out: &mut [u8; 32]) -> Option<()> {
    if text.len() != out.len() * 2 || !text.is_ascii() {
        return None;
    }
    for (octet, at) in out.iter_mut().zip((0..).step_by(2)) {
        *octet = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(())
}

fn listen(config: &Config, report: &mut Report<'_>) -> Option<SocketAddr> {
    let text = &config.service.listen;
    let Some(address) = text.to_socket_addrs().ok().and_then(|mut all| all.next()) else {
        report(
            "service.listen",
            format!("{text:?} is no address with a port, such as 127.0.0.1:8443"),
        );
        return None;
    };
    let tls = config.service.tls.as_ref();
    let clients = tls.is_some_and(|tls| !tls.client_ca.is_empty());
    if !address.ip().is_loopback() && config.tokens.is_empty() && !clients {
        report(
            "service.listen",
            format!(
                "{address} can be reached by others, and nothing says who may use the service: \
                 add [[tokens]] or `service.tls.client_ca`, or listen on 127.0.0.1"
            ),
        );
    }
    Some(address)
}

fn store(config: &Config, report: &mut Report<'_>) -> Store {
    let nowhere = || Store::Sqlite(PathBuf::new());
    match config.service.store.as_deref() {
        None => match paths::default_store() {
            Ok(path) => Store::Sqlite(path),
            Err(_) => {
                report(
                    "service.store",
                    "neither XDG_STATE_HOME nor HOME says where the store belongs; give \
                     store = \"sqlite:PATH\""
                        .to_owned(),
                );
                nowhere()
            }
        },
        Some(text) => match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => {
                Store::Sqlite(config.path(Path::new(path)))
            }
            Some(("postgres" | "postgresql", _)) => Store::Postgres(text.to_owned()),
            _ => {
                report(
                    "service.store",
                    "is neither sqlite:PATH nor postgres://…".to_owned(),
                );
                nowhere()
            }
        },
    }
}

fn delivery(config: &Config, report: &mut Report<'_>) {
    let given = &config.delivery;
    if let Some(directory) = &given.directory {
        let path = config.path(directory);
        if path.exists() && !path.is_dir() {
            report(
                "delivery.directory",
                format!("{} is no folder", path.display()),
            );
        }
    }
    match &given.hook {
        Some(hook) => {
            let program = Path::new(&hook[0]);
            if program.components().count() > 1 && !config.path(program).is_file() {
                report(
                    "delivery.hook[0]",
                    format!("{} is no file", config.path(program).display()),
                );
            }
        }
        None if given.hook_timeout_seconds.is_some() => report(
            "delivery.hook_timeout_seconds",
            "goes with `hook`".to_owned(),
        ),
        None => {}
    }
}
