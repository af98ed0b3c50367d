//! What `--cmd genm` asks, and what becomes of the answer.

use std::path::{Path, PathBuf};

use abide_host::wit::transactions::{Answer, Information};
use serde_json::{Value, json};

use super::args::{Enroll, Question};
use crate::exit::Stop;
use crate::text::hex;
use crate::{files, pem};

/// Contradictions between the options.
pub(crate) fn check(question: &Question) -> Result<(), Stop> {
    let missing = |message: &str| Err(Stop::usage(message));
    match question.infotype.as_deref() {
        None => missing(
            "--cmd genm asks for something: give --infotype caCerts, rootCaCert, \
             certReqTemplate, crlStatusList, or an object identifier",
        ),
        Some("rootCaCert") if question.oldwithold.is_none() => missing(
            "--infotype rootCaCert asks for the successor of a root: give --oldwithold FILE",
        ),
        Some("crlStatusList") if question.oldcrl.is_none() && question.crlcert.is_none() => {
            missing(
                "--infotype crlStatusList asks for a CRL: give --crlcert FILE, a certificate \
                 that points to it, or --oldcrl FILE, the one at hand",
            )
        }
        Some(_) => Ok(()),
    }
}

/// Reads what the options name.
pub(crate) fn read(question: &Question) -> Result<Information, Stop> {
    let certificate = |option: &str, path: &Option<PathBuf>| match path {
        Some(path) => Ok(pem::certificates(option, path)?.remove(0)),
        None => Err(Stop::usage(format!("{option} FILE is missing"))),
    };
    Ok(match question.infotype.as_deref().unwrap_or_default() {
        "caCerts" => Information::CaCerts,
        "certReqTemplate" => Information::CertReqTemplate,
        "rootCaCert" => {
            Information::RootCaUpdate(certificate("--oldwithold", &question.oldwithold)?)
        }
        "crlStatusList" => Information::Crl(match &question.oldcrl {
            Some(path) => pem::crl("--oldcrl", path)?,
            None => certificate("--crlcert", &question.crlcert)?,
        }),
        other => Information::Other((other.into(), None)),
    })
}

/// What tells one question from another.
pub(crate) fn parts(question: &Information) -> Vec<Vec<u8>> {
    let (name, value) = match question {
        Information::CaCerts => ("caCerts", None),
        Information::CertReqTemplate => ("certReqTemplate", None),
        Information::RootCaUpdate(old) => ("rootCaCert", Some(old.clone())),
        Information::Crl(of) => ("crlStatusList", Some(of.clone())),
        Information::Other((info_type, value)) => (info_type.as_str(), value.clone()),
    };
    std::iter::once(name.as_bytes().to_vec())
        .chain(value)
        .collect()
}

/// Writes the files of an answer.
pub(crate) fn write(answer: &Answer, args: &Enroll) -> Result<(), Stop> {
    let replace = |option: &str, path: &Option<PathBuf>, content: &[u8]| match path {
        Some(path) => files::replace(option, path, content).map_err(Stop::from),
        None => Ok(()),
    };
    let question = &args.question;
    match answer {
        Answer::Absent => Ok(()),
        Answer::Certificates(list) => {
            let pem = pem::encode_certificates(list);
            replace("--cacertsout", &args.cacertsout, pem.as_bytes())
        }
        Answer::RootCaKeyUpdate(update) => {
            let pem = |der: &Vec<u8>| pem::encode("CERTIFICATE", der);
            let write =
                |option: &str, path, der: &Vec<u8>| replace(option, path, pem(der).as_bytes());
            if let Some(der) = &update.old_with_new {
                write("--oldwithnew", &question.oldwithnew, der)?;
            }
            write("--newwithold", &question.newwithold, &update.new_with_old)?;
            write("--newwithnew", &question.newwithnew, &update.new_with_new)
        }
        Answer::Crls(list) => {
            let pem: String = list
                .iter()
                .map(|der| pem::encode("X509 CRL", der))
                .collect();
            replace("--crlout", &question.crlout, pem.as_bytes())
        }
        Answer::Other(der) => replace("--valueout", &question.valueout, der),
    }
}

/// The answer on the standard output, where no file takes it.
pub(crate) fn text(answer: &Answer, args: &Enroll) -> String {
    let unless = |path: &Option<PathBuf>, text: String| match path {
        Some(_) => String::new(),
        None => text,
    };
    let question = &args.question;
    match answer {
        Answer::Absent => String::new(),
        Answer::Certificates(list) => unless(&args.cacertsout, pem::encode_certificates(list)),
        Answer::RootCaKeyUpdate(update) => unless(
            &question.newwithnew,
            pem::encode("CERTIFICATE", &update.new_with_new),
        ),
        Answer::Crls(list) => unless(
            &question.crlout,
            list.iter()
                .map(|der| pem::encode("X509 CRL", der))
                .collect(),
        ),
        Answer::Other(der) => unless(&question.valueout, format!("{}\n", hex(der))),
    }
}

/// The answer as JSON.
pub(crate) fn json(answer: &Answer) -> Value {
    let pem = |der: &Vec<u8>| pem::encode("CERTIFICATE", der);
    match answer {
        Answer::Absent => json!({ "type": "absent" }),
        Answer::Certificates(list) => json!({
            "type": "certificates",
            "certificates": pem::encode_certificates(list),
        }),
        Answer::RootCaKeyUpdate(update) => json!({
            "type": "rootCaKeyUpdate",
            "newWithNew": pem(&update.new_with_new),
            "newWithOld": pem(&update.new_with_old),
            "oldWithNew": update.old_with_new.as_ref().map(pem),
        }),
        Answer::Crls(list) => json!({
            "type": "crls",
            "crls": list.iter().map(|der| pem::encode("X509 CRL", der)).collect::<String>(),
        }),
        Answer::Other(der) => json!({ "type": "other", "value": hex(der) }),
    }
}

/// Where the files of an answer are, for the report.
pub(crate) fn file(answer: &Answer, args: &Enroll) -> Option<String> {
    let path = match answer {
        Answer::Absent => return None,
        Answer::Certificates(_) => &args.cacertsout,
        Answer::RootCaKeyUpdate(_) => &args.question.newwithnew,
        Answer::Crls(_) => &args.question.crlout,
        Answer::Other(_) => &args.question.valueout,
    };
    path.as_deref()
        .map(|path: &Path| path.display().to_string())
}
