//! From the command line to an enrollment: every file is read and every
//! contradiction found before a store is opened or a byte is sent.

use std::path::Path;

use abide_host::wit::keys::KeyError;
use abide_host::wit::transactions::{
    CertificateCredential, Credential, Deviations, Enrollment, Generated, Limits, MacKind,
    Operation, Registration, Revocation, Revoked, SharedSecret, Template, Want,
};
use abide_host::{FileKeys, HttpNetwork, KeyFileError, Keys};
use aws_lc_rs::digest;
use zeroize::Zeroizing;

use super::args::{Cmd, Enroll, KeyType, Mac, Popo};
use super::question;
use crate::exit::Stop;
use crate::secret::Source;
use crate::text::hex;
use crate::{der, files, names, output, pem, prompt, services};

/// The names under which the component asks for keys. They end in error messages,
/// and stay the same when a file is moved.
const SECRET: &str = "the shared secret";
const KEY: &str = "the key";
const NEW_KEY: &str = "the new key";
const RA_KEY: &str = "the RA's key";

/// Hexadecimal digits of a derived order name: 128 bits keep wishes apart.
const ORDER_DIGITS: usize = 32;

/// Everything an enrollment needs besides the store.
pub(crate) struct Plan {
    pub(crate) enrollment: Enrollment,
    pub(crate) keys: FileKeys,
    pub(crate) network: HttpNetwork,
}

/// Whether the credential is read with the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Everything: a message may have to be protected.
    All,
    /// Only what tells which order it is. A chain that is stored already needs no secret, no
    /// prompt and no private key but the one that was certified.
    Wish,
}

/// Whether the order can be told without making or asking for anything.
pub(crate) fn names_its_order(args: &Enroll) -> bool {
    args.newkey.as_ref().is_none_or(|path| path.exists())
}

/// Reads what the options name. May create the file of `--newkey`.
pub(crate) async fn plan(args: &Enroll, reading: Reading) -> Result<Plan, Stop> {
    check(args)?;
    let network = services::network(
        &args.server,
        &args.tls_trusted,
        args.tls_cert.as_deref().zip(args.tls_key.as_deref()),
    )?;
    let mut keys = FileKeys::new();
    let trusted = pem::all_certificates("--trusted", &args.trusted)?;
    let out_trusted = pem::all_certificates("--out-trusted", &args.out_trusted)?;
    let untrusted = pem::all_certificates("--untrusted", &args.untrusted)?;
    let mut passphrase = Passphrase {
        source: args.keypass.clone(),
        known: None,
    };
    let credential = match reading {
        Reading::All => credential(args, &mut passphrase, &mut keys).await?,
        Reading::Wish => {
            let certified = args.newkey.is_none() || args.newkey == args.key;
            if let Some(path) = args
                .key
                .as_ref()
                .filter(|_| args.csr.is_none() && certified)
            {
                add_key(&mut keys, KEY, "--key", path, &mut passphrase)?;
            }
            shared_secret(args)
        }
    };
    let want = want(args, &mut passphrase, &mut keys)?;
    let operation = match args.cmd {
        Cmd::Ir => Operation::Ir,
        Cmd::Cr => Operation::Cr,
        Cmd::P10cr => Operation::P10cr,
        Cmd::Kur => Operation::Kur,
        Cmd::Rr => Operation::Rr,
        Cmd::Genm => Operation::Genm,
    };
    let registration = registration(args, reading, &mut passphrase, &mut keys)?;
    let order = match &args.order {
        Some(order) => order.clone(),
        None => derived_order(args, &want, &keys).await?,
    };
    let times = &args.times;
    let enrollment = Enrollment {
        order,
        account: args.account.clone(),
        operation,
        want,
        profile: args.profile.clone(),
        server: args.server.clone(),
        recipient: args.recipient.clone().unwrap_or_default(),
        credential,
        trusted,
        out_trusted,
        untrusted,
        implicit_confirm: args.implicit_confirm,
        allow_sha1: args.allow_sha1,
        allow: args
            .allow
            .iter()
            .fold(Deviations::empty(), |all, &one| all | one.into()),
        limits: Limits {
            maximum_duration_ms: times.total_timeout * 1000,
            minimum_poll_interval_ms: times.min_poll * 1000,
            maximum_poll_interval_ms: times.max_poll * 1000,
            maximum_polls: times.max_polls,
            request_timeout_ms: times.msg_timeout * 1000,
        },
        registration,
    };
    Ok(Plan {
        enrollment,
        keys,
        network,
    })
}

/// Contradictions between options, and targets that cannot be written.
fn check(args: &Enroll) -> Result<(), Stop> {
    let usage = |message: &str| Err(Stop::usage(message));
    match args.cmd {
        Cmd::P10cr if args.csr.is_none() => {
            return usage("--cmd p10cr asks for a PKCS #10 request: give --csr FILE");
        }
        Cmd::P10cr if args.newkey.is_some() || args.subject.is_some() || args.sans.is_some() => {
            return usage(
                "--newkey, --subject and --sans do not go with --cmd p10cr: the request \
                          of --csr already says them",
            );
        }
        Cmd::Ir | Cmd::Cr if args.csr.is_some() => {
            return usage("--csr goes with --cmd p10cr; for ir and cr give --newkey and --subject");
        }
        Cmd::P10cr | Cmd::Rr | Cmd::Genm if args.centralkeygen => {
            return usage("--centralkeygen goes with ir, cr and kur");
        }
        Cmd::P10cr | Cmd::Kur | Cmd::Rr | Cmd::Genm if args.popo == Popo::RaVerified => {
            return usage("--popo raVerified goes with ir and cr");
        }
        Cmd::Ir | Cmd::Cr if args.newkey.is_none() && args.key.is_none() && !args.centralkeygen => {
            return usage(
                "the key to be certified is missing: give --newkey FILE, which is made \
                          when it does not exist",
            );
        }
        Cmd::Ir | Cmd::Cr if args.subject.is_none() => {
            return usage(
                "the subject is missing: give --subject /CN=…, or --subject / with --sans",
            );
        }
        Cmd::Kur if args.cert.is_none() => {
            return usage(
                "kur renews a certificate and is signed by it: give it as --cert, and --key",
            );
        }
        Cmd::Kur | Cmd::Rr | Cmd::Genm if args.csr.is_some() => {
            return usage("--csr goes with --cmd p10cr");
        }
        Cmd::Rr | Cmd::Genm
            if args.newkey.is_some() || args.subject.is_some() || args.sans.is_some() =>
        {
            return usage("--newkey, --subject and --sans go with requests for a certificate");
        }
        Cmd::Rr
            if args.revocation.oldcert.is_none()
                && args.revocation.serial.is_none()
                && args.cert.is_none() =>
        {
            return usage(
                "which certificate is to be revoked? Give --oldcert FILE, or --issuer and \
                 --serial, or --cert and --key to revoke that one",
            );
        }
        Cmd::Genm => question::check(&args.question)?,
        _ => {}
    }
    if args.cmd != Cmd::Genm && args.question.infotype.is_some() {
        return usage("--infotype goes with --cmd genm");
    }
    if args.resume && matches!(args.newkeypass, Some(Source::Stdin)) {
        return usage(
            "--newkeypass stdin does not go with --resume, which may need it twice: give it \
             as env: or file:",
        );
    }
    if args.popo == Popo::None && !args.centralkeygen {
        return usage("--popo none asks the PKI for a key: give --centralkeygen and --newkeyout");
    }
    if args.popo == Popo::RaVerified && args.centralkeygen {
        return usage("--popo raVerified is about a key that exists, --centralkeygen about none");
    }
    if args.popo == Popo::RaVerified && args.cert.is_none() && args.authority.ra_cert.is_none() {
        return usage(
            "--popo raVerified is the word of a registration authority: give its certificate as \
             --cert and --key, or as --ra-cert and --ra-key",
        );
    }
    let revocation = &args.revocation;
    if args.cmd != Cmd::Rr && (revocation.oldcert.is_some() || revocation.serial.is_some()) {
        return usage("--oldcert, --issuer and --serial go with --cmd rr");
    }
    if args.cert.is_none() {
        if args.reference.is_none() {
            return usage(
                "nothing protects the request: give --ref and --secret, or --cert and --key",
            );
        }
        if !args.extracerts.is_empty() {
            return usage("--extracerts goes with --cert: a shared secret needs no certificates");
        }
    } else if args.secret.is_some() {
        return usage("--secret and --cert are two ways to protect the request: give one of them");
    }
    if args.times.min_poll > args.times.max_poll {
        return usage("--min-poll is longer than --max-poll");
    }
    let targets = [
        ("--certout", &args.certout),
        ("--chainout", &args.chainout),
        ("--cacertsout", &args.cacertsout),
        ("--newkey", &args.newkey),
        ("--newkeyout", &args.newkeyout),
        ("--newwithnew", &args.question.newwithnew),
        ("--newwithold", &args.question.newwithold),
        ("--oldwithnew", &args.question.oldwithnew),
        ("--crlout", &args.question.crlout),
        ("--valueout", &args.question.valueout),
    ];
    for (option, path) in targets {
        if let Some(path) = path {
            files::check_target(option, path)?;
        }
    }
    Ok(())
}

async fn credential(
    args: &Enroll,
    passphrase: &mut Passphrase,
    keys: &mut FileKeys,
) -> Result<Credential, Stop> {
    if let Some(path) = &args.key {
        add_key(keys, KEY, "--key", path, passphrase)?;
    }
    let Some(path) = &args.cert else {
        let secret = match &args.secret {
            Some(source) => source.read("--secret")?,
            None => prompt::secret("--secret", "the shared secret")?,
        };
        keys.add_secret(SECRET, secret);
        return Ok(shared_secret(args));
    };
    let mut chain = pem::certificates("--cert", path)?;
    let certificate = chain.remove(0);
    chain.extend(pem::all_certificates("--extracerts", &args.extracerts)?);
    let own = public_key(keys, KEY).await?;
    if let (Some(key), Some(certified)) = (&args.key, der::public_key(&certificate))
        && own != certified
    {
        return Err(Stop::usage(format!(
            "--key {}: is not the key of the certificate in --cert {}; give the two that belong \
             together",
            key.display(),
            path.display()
        )));
    }
    Ok(Credential::Certificate(CertificateCredential {
        certificate,
        chain,
        key: KEY.into(),
    }))
}

fn shared_secret(args: &Enroll) -> Credential {
    Credential::Secret(SharedSecret {
        reference: args.reference.clone().unwrap_or_default().into_bytes(),
        key: SECRET.into(),
        iterations: args.pbm_iterations,
        mac: match args.mac {
            Mac::Pbm => MacKind::Pbm,
            Mac::Pbmac1 => MacKind::Pbmac1,
        },
    })
}

fn want(args: &Enroll, passphrase: &mut Passphrase, keys: &mut FileKeys) -> Result<Want, Stop> {
    if let Some(csr) = &args.csr {
        return Ok(Want::Csr(pem::request("--csr", csr)?));
    }
    match args.cmd {
        Cmd::Rr => return revocation(args),
        Cmd::Genm => return question::read(&args.question).map(Want::Information),
        Cmd::Ir | Cmd::Cr | Cmd::P10cr | Cmd::Kur => {}
    }
    let sans = args
        .sans
        .as_deref()
        .map(names::alternative_names)
        .transpose();
    let sans = sans
        .map_err(|error| Stop::usage(format!("--sans: {error}")))?
        .unwrap_or_default();
    let subject = args.subject.clone().unwrap_or_default();
    if subject.is_empty() && sans.is_empty() && args.cmd != Cmd::Kur {
        return Err(Stop::usage(
            "an empty --subject needs --sans: a certificate must name something",
        ));
    }
    if let Some(path) = args.newkeyout.as_ref().filter(|_| args.centralkeygen) {
        new_place(path, args, keys)?;
        return Ok(Want::Generated(Generated {
            template: Template {
                subject,
                sans,
                key: NEW_KEY.into(),
            },
            algorithm: args.newkeytype.map(key_algorithm),
        }));
    }
    let key = match &args.newkey {
        Some(path) if args.key.as_ref() != Some(path) => {
            new_key(path, args, passphrase, keys)?;
            NEW_KEY
        }
        _ => KEY,
    };
    Ok(Want::Template(Template {
        subject,
        sans,
        key: key.into(),
    }))
}

/// Makes the place for the key that the PKI will make. A key that is there already came in an
/// earlier run, or nobody knows whose it is: it is replaced only when an enrollment goes on.
fn new_place(path: &Path, args: &Enroll, keys: &mut FileKeys) -> Result<(), Stop> {
    let passphrase = match &args.newkeypass {
        Some(source) => Some(source.read("--newkeypass")?),
        None => None,
    };
    if path.exists() {
        if !args.resume {
            return Err(Stop::usage(format!(
                "--newkeyout {}: the file exists, and a key that the PKI makes replaces it; move \
                 it away, or go on with an enrollment by --resume",
                path.display()
            )));
        }
        let bytes = Zeroizing::new(files::read("--newkeyout", path)?);
        keys.add_private_key(NEW_KEY, &bytes, passphrase.as_ref().map(|p| p.as_slice()))
            .map_err(|error| Stop::usage(format!("--newkeyout {}: {error}", path.display())))?;
    }
    let target = path.to_owned();
    keys.add_place(NEW_KEY, passphrase, move |pem| {
        files::replace_private("--newkeyout", &target, pem.as_bytes())
            .map_err(|stop| stop.to_string())
    });
    Ok(())
}

/// What a registration authority adds. Its key is not read where only the order is asked for.
fn registration(
    args: &Enroll,
    reading: Reading,
    passphrase: &mut Passphrase,
    keys: &mut FileKeys,
) -> Result<Option<Registration>, Stop> {
    let given = &args.authority;
    let added_protection = match (&given.ra_cert, &given.ra_key) {
        (Some(certificate), Some(key)) => {
            if reading == Reading::All {
                add_key(keys, RA_KEY, "--ra-key", key, passphrase)?;
            }
            let mut chain = pem::certificates("--ra-cert", certificate)?;
            let certificate = chain.remove(0);
            chain.extend(pem::all_certificates("--ra-chain", &given.ra_chain)?);
            Some(CertificateCredential {
                certificate,
                chain,
                key: RA_KEY.into(),
            })
        }
        _ => None,
    };
    let ra_verified = args.popo == Popo::RaVerified;
    Ok(
        (ra_verified || added_protection.is_some()).then_some(Registration {
            ra_verified,
            added_protection,
        }),
    )
}

fn revocation(args: &Enroll) -> Result<Want, Stop> {
    let given = &args.revocation;
    let certificate = match (&given.issuer, &given.serial, &given.oldcert, &args.cert) {
        (Some(issuer), Some(serial), _, _) => Revoked::Number((issuer.clone(), serial.0.clone())),
        (_, _, Some(path), _) => first_certificate("--oldcert", path)?,
        (_, _, None, Some(path)) => first_certificate("--cert", path)?,
        _ => return Err(Stop::usage("which certificate is to be revoked?")),
    };
    Ok(Want::Revocation(Revocation {
        certificate,
        reason: given.revreason,
    }))
}

fn first_certificate(option: &str, path: &Path) -> Result<Revoked, Stop> {
    Ok(Revoked::Certificate(
        pem::certificates(option, path)?.remove(0),
    ))
}

/// Loads the key to be certified, or makes it. It is on the disk before anything
/// is sent: a certificate for a key that was lost would be worth nothing.
fn new_key(
    path: &Path,
    args: &Enroll,
    passphrase: &mut Passphrase,
    keys: &mut FileKeys,
) -> Result<(), Stop> {
    if args.popo == Popo::RaVerified && path.exists() {
        let bytes = Zeroizing::new(files::read("--newkey", path)?);
        if let Some(spki) = pem::public_key(&bytes) {
            keys.add_public_key(NEW_KEY, spki);
            return Ok(());
        }
    }
    if !path.exists() {
        let made = FileKeys::generate_p256().map_err(|error| Stop::host(error.to_string()))?;
        files::create_private("--newkey", path, made.as_bytes())?;
        if !args.quiet {
            output::say(&format!(
                "made a P-256 key, not encrypted: {}",
                path.display()
            ));
        }
    }
    add_key(keys, NEW_KEY, "--newkey", path, passphrase)
}

/// The passphrase of all key files, read when the first encrypted one is met and
/// only once: the standard input does not give it twice.
struct Passphrase {
    source: Option<Source>,
    known: Option<Zeroizing<Vec<u8>>>,
}

impl Passphrase {
    fn get(&mut self, path: &Path) -> Result<&[u8], Stop> {
        let passphrase = match self.known.take() {
            Some(known) => known,
            None => match &self.source {
                Some(source) => source.read("--keypass")?,
                None => prompt::secret(
                    "--keypass",
                    &format!("the passphrase of {}", path.display()),
                )?,
            },
        };
        Ok(self.known.insert(passphrase))
    }
}

fn add_key(
    keys: &mut FileKeys,
    name: &str,
    option: &str,
    path: &Path,
    passphrase: &mut Passphrase,
) -> Result<(), Stop> {
    let bytes = Zeroizing::new(files::read(option, path)?);
    let added = match keys.add_private_key(name, &bytes, None) {
        Err(KeyFileError::Encrypted { .. }) => {
            keys.add_private_key(name, &bytes, Some(passphrase.get(path)?))
        }
        added => added,
    };
    added.map_err(|error| Stop::usage(format!("{option} {}: {error}", path.display())))
}

async fn public_key(keys: &FileKeys, name: &str) -> Result<Vec<u8>, Stop> {
    keys.public_key(name).await.map_err(|error| match error {
        KeyError::NotFound(why) | KeyError::Unsupported(why) | KeyError::Unavailable(why) => {
            Stop::usage(why)
        }
    })
}

/// The same wish has the same name, so that a restart finds its transaction
/// without being told: operation and server, with the request itself or with
/// subject, names and key.
async fn derived_order(args: &Enroll, want: &Want, keys: &FileKeys) -> Result<String, Stop> {
    let mut parts: Vec<Vec<u8>> = vec![
        format!("{:?}", args.cmd).into_bytes(),
        args.server.clone().into_bytes(),
    ];
    match want {
        Want::Csr(csr) => parts.push(csr.clone()),
        Want::Template(template) => {
            parts.push(template.subject.clone().into_bytes());
            parts.push(template.sans.join(",").into_bytes());
            parts.push(public_key(keys, &template.key).await?);
            // The same key may be renewed again and again: by the certificate that it had.
            if let (Cmd::Kur, Some(path)) = (args.cmd, &args.cert) {
                parts.push(pem::certificates("--cert", path)?.remove(0));
            }
        }
        // There is no key yet to tell two wishes apart: where it is to go does.
        Want::Generated(wanted) => {
            parts.push(wanted.template.subject.clone().into_bytes());
            parts.push(wanted.template.sans.join(",").into_bytes());
            let target = args.newkeyout.as_deref().map(std::path::absolute);
            let target = target.transpose().ok().flatten().unwrap_or_default();
            parts.push(target.into_os_string().into_encoded_bytes());
            if let (Cmd::Kur, Some(path)) = (args.cmd, &args.cert) {
                parts.push(pem::certificates("--cert", path)?.remove(0));
            }
        }
        Want::Revocation(revocation) => {
            match &revocation.certificate {
                Revoked::Certificate(der) => parts.push(der.clone()),
                Revoked::Number((issuer, serial)) => {
                    parts.push(issuer.clone().into_bytes());
                    parts.push(serial.clone());
                }
            }
            parts.push(vec![revocation.reason]);
        }
        Want::Information(question) => parts.extend(question::parts(question)),
    }
    Ok(order_name(&parts))
}

/// Every part goes in with its length, so that no two lists of parts read alike.
fn order_name(parts: &[Vec<u8>]) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut name = hex(context.finish().as_ref());
    name.truncate(ORDER_DIGITS);
    name
}

/// The DER AlgorithmIdentifier of a kind of key (RFC 3279, 2.3, RFC 5480, 2.1, RFC 8410, 3).
fn key_algorithm(kind: KeyType) -> Vec<u8> {
    const SEQUENCE: u8 = 0x30;
    const ELLIPTIC: [u8; 9] = [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    let fields = match kind {
        KeyType::Rsa => vec![
            0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
        ],
        KeyType::P256 => [
            &ELLIPTIC[..],
            &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        ]
        .concat(),
        KeyType::P384 => [&ELLIPTIC[..], &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22]].concat(),
        KeyType::P521 => [&ELLIPTIC[..], &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23]].concat(),
        KeyType::Ed25519 => vec![0x06, 0x03, 0x2b, 0x65, 0x70],
    };
    [&[SEQUENCE, fields.len() as u8], &fields[..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `printf '\0\0\0\0\0\0\0\2ir' | sha256sum`.
    #[test]
    fn an_order_is_named_by_its_parts() {
        let name = |parts: &[&str]| {
            order_name(
                &parts
                    .iter()
                    .map(|part| part.as_bytes().to_vec())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(name(&["ir"]), "c62176dcee8a0782b0fda76f8d6d7a46");
        assert_ne!(name(&["ab", "c"]), name(&["a", "bc"]));
        assert_ne!(name(&["ab"]), name(&["ab", ""]));
    }
}
