//! The messages of the benchmark: real ones, which the client and the mock server of `openssl cmp`
//! have exchanged just before.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::peer::{self, KeyKind, MockServer, Pki};
use crate::shell::succeeds;

/// A message that was picked out of a transaction.
struct Picked {
    /// What it is called in the tables.
    name: &'static str,
    /// `q` for the client's, `r` for the server's, and the place in the transaction.
    from: &'static str,
}

/// One transaction.
struct Transaction {
    keys: KeyKind,
    /// Of the mock server, next to those that all have.
    server: &'static str,
    /// Of the client, likewise.
    client: &'static str,
    /// Whether it ends well; one with an error does not.
    succeeds: bool,
    /// Whether certificates are what its messages are believed by.
    signed: bool,
    messages: &'static [Picked],
}

const TRANSACTIONS: [Transaction; 6] = [
    Transaction {
        keys: KeyKind::P256,
        server: "",
        client: "-cmd genm",
        succeeds: true,
        signed: false,
        messages: &[Picked {
            name: "genm-pbm",
            from: "q1",
        }],
    },
    Transaction {
        keys: KeyKind::P256,
        // With the new certificate, three certificates in one message.
        server: "-rsp_extracerts sub.crt -rsp_capubs root.crt",
        client: "-cmd ir -newkey new.key",
        succeeds: true,
        signed: false,
        messages: &[
            Picked {
                name: "ir-pbm",
                from: "q1",
            },
            Picked {
                name: "ip-pbm",
                from: "r1",
            },
            Picked {
                name: "certConf-pbm",
                from: "q2",
            },
        ],
    },
    Transaction {
        keys: KeyKind::P256,
        server: "-rsp_extracerts sub.crt",
        client: "-cmd p10cr -csr new.csr",
        succeeds: true,
        signed: false,
        messages: &[Picked {
            name: "p10cr-pbm",
            from: "q1",
        }],
    },
    Transaction {
        keys: KeyKind::P256,
        server: "-pkistatus 2 -failurebits 512 -send_error",
        client: "-cmd ir -newkey new.key",
        succeeds: false,
        signed: false,
        messages: &[Picked {
            name: "error-pbm",
            from: "r1",
        }],
    },
    Transaction {
        keys: KeyKind::P256,
        // Twice: the first pollReq is answered with a pollRep, the second with the cp.
        server: "-poll_count 2 -check_after 1",
        client: "-cmd cr -newkey new.key",
        succeeds: true,
        signed: true,
        messages: &[
            Picked {
                name: "pollRep-ecdsa",
                from: "r2",
            },
            Picked {
                name: "cp-ecdsa",
                from: "r3",
            },
        ],
    },
    Transaction {
        keys: KeyKind::Rsa2048,
        server: "",
        client: "-cmd kur -newkey new.key -oldcert new.crt",
        succeeds: true,
        signed: true,
        messages: &[Picked {
            name: "kup-rsa",
            from: "r1",
        }],
    },
];

/// A message to measure with.
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) octets: usize,
}

/// Makes the folder anew: `NAME.der` for each message; `NAME.root`, the trusted root, and
/// `NAME.sub`, the CA below it, for those that are signed; `secret` for the others.
pub(super) fn make(folder: &Path) -> Result<Vec<File>> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let secret = peer::SECRET.trim_start_matches("pass:");
    fs::write(folder.join("secret"), secret).context("cannot write the secret")?;
    let pki = |name, kind| {
        let pki = Pki::with_sub(&folder.join(name), kind)?;
        for name in ["root", "sub"] {
            pki.openssl(&format!("x509 -in {name}.crt -outform DER -out {name}.der"))?;
        }
        Ok::<_, anyhow::Error>(pki)
    };
    let ec = pki("ec", KeyKind::P256)?;
    let rsa = pki("rsa", KeyKind::Rsa2048)?;
    let mut files = Vec::new();
    for transaction in &TRANSACTIONS {
        let pki = match transaction.keys {
            KeyKind::P256 => &ec,
            KeyKind::Rsa2048 => &rsa,
        };
        exchange(pki, transaction)?;
        for picked in transaction.messages {
            let target = folder.join(format!("{}.der", picked.name));
            let octets = copy(&pki.folder().join(format!("{}.der", picked.from)), &target)?;
            if transaction.signed {
                for name in ["root", "sub"] {
                    let target = folder.join(format!("{}.{name}", picked.name));
                    copy(&pki.folder().join(format!("{name}.der")), &target)?;
                }
            }
            files.push(File {
                name: picked.name,
                octets,
            });
        }
    }
    Ok(files)
}

/// Writes `q1.der` and so on with what the client says, `r1.der` with what the server says.
fn exchange(pki: &Pki, transaction: &Transaction) -> Result<()> {
    let (server, client) = if transaction.signed {
        (
            "-srv_cert server.crt -srv_key server.key -srv_untrusted sub.crt".to_owned(),
            "-cert new.crt -key new.key -untrusted sub.crt -trusted root.crt".to_owned(),
        )
    } else {
        let (name, secret) = (peer::REF, peer::SECRET);
        (
            format!("-srv_ref {name} -srv_secret {secret}"),
            format!("-ref {name} -secret {secret} -trusted root.crt"),
        )
    };
    let server = MockServer::with(pki, &format!("{server} {}", transaction.server))?;
    let mut command = peer::openssl(pki.folder());
    command
        .args(["cmp", "-config", "", "-batch", "-server"])
        .arg(format!("127.0.0.1:{}", server.port()))
        .args(["-path", "pkix/", "-recipient", peer::CA])
        .args(["-subject", peer::SUBJECT, "-certout", "out.crt"])
        .args(["-reqout", "q1.der q2.der q3.der q4.der"])
        .args(["-rspout", "r1.der r2.der r3.der r4.der"])
        .args(client.split_whitespace())
        .args(transaction.client.split_whitespace());
    if succeeds(&mut command) != transaction.succeeds {
        bail!(
            "`openssl cmp {}` did not go as it should; run it in {} to see why",
            transaction.client,
            pki.folder().display()
        );
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<usize> {
    let octets = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    fs::write(to, &octets).with_context(|| format!("cannot write {}", to.display()))?;
    Ok(octets.len())
}
