//! The CA of the small world: honest, with books, and able to say anything.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use abide_cmp::der::{Writer, tag};
use abide_cmp::protection::{Hash, MacAlgorithm, Policy, ProtectionError, verify_mac};
use abide_cmp::{
    AlgorithmIdentifier, BodyType, CertOrEncCert, CertRepMessage, CertResponse, CertifiedKeyPair,
    Draft, EncryptedKey, EnvelopedData, ErrorMsgContent, FailInfo, GeneralName, Name, PkiBody,
    PkiHeader, PkiMessage, PkiStatus, PkiStatusInfo, PollRep, oid,
};
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};

pub(crate) const REFERENCE: &[u8] = b"device";
/// Of certificates, unless told otherwise.
const VALIDITY: [&str; 2] = ["250101000000Z", "450101000000Z"];
pub(crate) const SECRET: &[u8] = b"correct horse battery staple";

/// The CA, which certifies one key.
pub(crate) struct Ca {
    pub(crate) key: SigningKey,
    /// The root certificate.
    pub(crate) root: Vec<u8>,
    wanted: Vec<u8>,
    /// pollReps before the certificate; the first answer is a waiting one when not zero.
    pub(crate) patience: Cell<u32>,
    /// Whether what was answered before is refused when it comes again.
    pub(crate) strict: Cell<bool>,
    /// The private key that comes with each certificate, DER EnvelopedData.
    pub(crate) envelope: RefCell<Option<Vec<u8>>>,
    nonces: Cell<u64>,
    answers: RefCell<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Every transactionID that ever arrived.
    pub(crate) ids: RefCell<BTreeSet<Vec<u8>>>,
    /// Every certificate that was ever issued.
    pub(crate) issued: RefCell<Vec<Vec<u8>>>,
    /// Certificates that were confirmed.
    pub(crate) confirmed: Cell<u32>,
    /// The transactionIDs under which they were.
    confirmed_ids: RefCell<BTreeSet<Vec<u8>>>,
    /// notBefore and notAfter of what is issued, as UTCTime.
    pub(crate) validity: RefCell<[String; 2]>,
}

impl Ca {
    pub(crate) fn new(wanted: Vec<u8>) -> Self {
        Self::with_key(wanted, [7; 32])
    }

    /// A CA of the same name with a key of its own.
    pub(crate) fn with_key(wanted: Vec<u8>, key: [u8; 32]) -> Self {
        let key = SigningKey::from_slice(&key).expect("a private key");
        let root = certificate(&key, 1, "CN=Root", &public_key(&key), &VALIDITY, true);
        Self {
            key,
            root,
            wanted,
            patience: Cell::new(0),
            strict: Cell::new(false),
            envelope: RefCell::default(),
            nonces: Cell::new(0),
            answers: RefCell::default(),
            ids: RefCell::default(),
            issued: RefCell::default(),
            confirmed: Cell::new(0),
            confirmed_ids: RefCell::default(),
            validity: RefCell::new(VALIDITY.map(String::from)),
        }
    }

    /// The SubjectPublicKeyInfo of that key.
    pub(crate) fn wanted(&self) -> &[u8] {
        &self.wanted
    }

    /// Another certificate for the wanted key.
    pub(crate) fn issue(&self) -> Vec<u8> {
        let serial = 2 + self.issued.borrow().len() as i64;
        let validity = self.validity.borrow();
        let validity = [&*validity[0], &*validity[1]];
        let new = certificate(
            &self.key,
            serial,
            "CN=device",
            &self.wanted,
            &validity,
            false,
        );
        self.issued.borrow_mut().push(new.clone());
        new
    }

    /// What an honest CA answers. The same octets get the same answer again.
    pub(crate) fn answer(&self, octets: &[u8]) -> Vec<u8> {
        let request = PkiMessage::from_der(octets).expect("a PKIMessage");
        verify_mac(&request, Policy::default(), |algorithm, data| {
            Ok::<_, ProtectionError>(algorithm.compute(SECRET, data))
        })
        .expect("a request that is protected by the secret");
        let id = request.header.transaction_id.expect("a transactionID");
        let known = !self.ids.borrow_mut().insert(id.to_vec());
        let reply = self.reply(octets);
        let is_poll = matches!(request.body, PkiBody::PollReq(_));
        if let Some(answer) = self.answers.borrow().get(octets)
            && (is_poll || !self.strict.get())
        {
            return answer.clone();
        }
        let answer = match &request.body {
            PkiBody::P10cr(_) | PkiBody::Ir(_) if known => self.seal(
                &reply,
                &error(PkiStatusInfo::rejection(
                    FailInfo::TRANSACTION_ID_IN_USE,
                    "seen before",
                )),
            ),
            PkiBody::P10cr(_) => self.wait_or_issue(&reply, BodyType::Cp, -1),
            PkiBody::Ir(_) => self.wait_or_issue(&reply, BodyType::Ip, 0),
            PkiBody::PollReq(ids) => {
                let left = self.patience.get();
                self.patience.set(left.saturating_sub(1));
                match (left, &ids[..]) {
                    (0, _) => panic!("a poll for nothing"),
                    (1, [-1]) => self.grant(&reply, BodyType::Cp, -1),
                    (1, [0]) => self.grant(&reply, BodyType::Ip, 0),
                    (_, &[id]) => self.seal(&reply, &poll_rep(&[(id, 7)])),
                    (_, ids) => panic!("a poll for {ids:?}"),
                }
            }
            PkiBody::CertConf(_) if self.confirmed_ids.borrow().contains(id) => self.seal(
                &reply,
                &error(PkiStatusInfo::rejection(
                    FailInfo::CERT_CONFIRMED,
                    "confirmed before",
                )),
            ),
            PkiBody::CertConf(statuses) => {
                // The certificates are signed with SHA-256, hence their hash.
                assert_eq!(statuses.len(), 1);
                let is_confirmed =
                    |issued: &Vec<u8>| Hash::Sha256.digest(issued) == *statuses[0].cert_hash;
                assert!(self.issued.borrow().iter().any(is_confirmed));
                self.confirmed_ids.borrow_mut().insert(id.to_vec());
                self.confirmed.set(self.confirmed.get() + 1);
                self.seal(&reply, &PkiBody::PkiConf)
            }
            other => panic!("an unexpected {}", other.body_type().name()),
        };
        self.answers
            .borrow_mut()
            .insert(octets.to_vec(), answer.clone());
        answer
    }

    /// A refusal that no repetition mends.
    pub(crate) fn refuse(&self, request: &[u8]) -> Vec<u8> {
        let status = PkiStatusInfo::rejection(FailInfo::BAD_REQUEST, "not today");
        self.seal(&self.reply(request), &error(status))
    }

    fn wait_or_issue(&self, reply: &Reply, kind: BodyType, id: i64) -> Vec<u8> {
        match self.patience.get() {
            0 => self.grant(reply, kind, id),
            _ => self.seal(reply, &certified(kind, response(&[waiting(id)]))),
        }
    }

    /// Issues, and puts the certificate into an answer.
    pub(crate) fn grant(&self, reply: &Reply, kind: BodyType, id: i64) -> Vec<u8> {
        let new = self.issue();
        let envelope = self.envelope.borrow();
        let mut granted = granted(id, &new);
        if let (Some(der), Some(pair)) = (&*envelope, &mut granted.certified_key_pair) {
            let data = EnvelopedData::from_der(der).expect("an EnvelopedData");
            pair.private_key = Some(EncryptedKey::EnvelopedData(data));
        }
        self.seal(reply, &certified(kind, response(&[granted])))
    }

    /// An answer to a request as it should be, to be spoilt.
    pub(crate) fn reply(&self, request: &[u8]) -> Reply {
        let request = PkiMessage::from_der(request).expect("a PKIMessage");
        Reply {
            pvno: request.header.pvno,
            transaction_id: request.header.transaction_id.map(<[u8]>::to_vec),
            recip_nonce: request.header.sender_nonce.map(<[u8]>::to_vec),
            protected: true,
            extra_certs: Vec::new(),
        }
    }

    /// Puts an answer together.
    pub(crate) fn seal(&self, reply: &Reply, body: &PkiBody<'_>) -> Vec<u8> {
        self.seal_with(reply, body, Hash::Sha256)
    }

    /// The same, with this one-way function.
    pub(crate) fn seal_with(&self, reply: &Reply, body: &PkiBody<'_>, owf: Hash) -> Vec<u8> {
        let algorithm = MacAlgorithm::PasswordBased {
            salt: &[9; 16],
            owf,
            iterations: 100,
            mac: Hash::Sha256,
        };
        let parameters = algorithm.parameters();
        let nonce = self.nonce();
        let mut header = reply.header(&nonce);
        header.sender_kid = Some(REFERENCE);
        if reply.protected {
            header.protection_alg = Some(AlgorithmIdentifier {
                oid: algorithm.oid(),
                parameters: Some(&parameters),
            });
        }
        let draft = Draft::new(&header, body);
        let mac = algorithm.compute(SECRET, &draft.protected_part());
        draft.finish(reply.protected.then_some(&mac[..]), &reply.extra_certs)
    }

    /// Puts an answer together that the root signs.
    pub(crate) fn seal_by_signature(&self, reply: &Reply, body: &PkiBody<'_>) -> Vec<u8> {
        let nonce = self.nonce();
        let mut header = reply.header(&nonce);
        header.protection_alg = Some(AlgorithmIdentifier::bare(oid::ECDSA_SHA256));
        let draft = Draft::new(&header, body);
        let signature: DerSignature = self.key.sign(&draft.protected_part());
        draft.finish(Some(signature.as_bytes()), &reply.extra_certs)
    }

    fn nonce(&self) -> Vec<u8> {
        self.nonces.set(self.nonces.get() + 1);
        [[0; 8], self.nonces.get().to_be_bytes()].concat()
    }
}

/// The parts of an answer that a test may want to be wrong.
pub(crate) struct Reply {
    pub(crate) pvno: u8,
    pub(crate) transaction_id: Option<Vec<u8>>,
    pub(crate) recip_nonce: Option<Vec<u8>>,
    pub(crate) protected: bool,
    pub(crate) extra_certs: Vec<Vec<u8>>,
}

impl Reply {
    fn header<'a>(&'a self, nonce: &'a [u8]) -> PkiHeader<'a> {
        let [sender, recipient] =
            ["CN=Root", "CN=device"].map(|text| GeneralName::Directory(name(text)));
        let mut header = PkiHeader::new(sender, recipient);
        header.pvno = self.pvno;
        header.transaction_id = self.transaction_id.as_deref();
        header.sender_nonce = Some(nonce);
        header.recip_nonce = self.recip_nonce.as_deref();
        header
    }
}

/// A cp or an ip.
fn certified(kind: BodyType, content: CertRepMessage<'_>) -> PkiBody<'_> {
    match kind {
        BodyType::Ip => PkiBody::Ip(content),
        _ => PkiBody::Cp(content),
    }
}

/// The content of cp and ip.
pub(crate) fn response<'a>(responses: &[CertResponse<'a>]) -> CertRepMessage<'a> {
    CertRepMessage {
        ca_pubs: Vec::new(),
        responses: responses.to_vec(),
    }
}

pub(crate) fn granted(cert_req_id: i64, certificate: &[u8]) -> CertResponse<'_> {
    CertResponse {
        certified_key_pair: Some(CertifiedKeyPair {
            cert_or_enc_cert: CertOrEncCert::Certificate(certificate),
            private_key: None,
            publication_info: None,
        }),
        ..answered(cert_req_id, PkiStatusInfo::new(PkiStatus::Accepted))
    }
}

pub(crate) fn waiting(cert_req_id: i64) -> CertResponse<'static> {
    answered(cert_req_id, PkiStatusInfo::new(PkiStatus::Waiting))
}

pub(crate) fn answered(cert_req_id: i64, status: PkiStatusInfo<'_>) -> CertResponse<'_> {
    CertResponse {
        cert_req_id,
        status,
        certified_key_pair: None,
        rsp_info: None,
    }
}

pub(crate) fn error(status: PkiStatusInfo<'_>) -> PkiBody<'_> {
    PkiBody::Error(ErrorMsgContent {
        status,
        error_code: None,
        error_details: None,
    })
}

/// A pollRep with these certReqIds and checkAfters.
pub(crate) fn poll_rep(entries: &[(i64, i64)]) -> PkiBody<'static> {
    let entry = |&(cert_req_id, check_after): &(i64, i64)| PollRep {
        cert_req_id,
        check_after: check_after.into(),
        reason: None,
    };
    PkiBody::PollRep(entries.iter().map(entry).collect())
}

pub(crate) fn name(text: &str) -> Name<'static> {
    Name::parse(text).expect("a distinguished name")
}

/// DER SubjectPublicKeyInfo (RFC 5480, 2).
pub(crate) fn public_key(key: &SigningKey) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.oid(oid::EC_PUBLIC_KEY);
                w.oid(oid::P256);
            });
            let point = key.verifying_key().to_sec1_point(false);
            w.bits(tag::BIT_STRING, point.as_bytes());
        });
    })
}

/// A PKCS #10 request without attributes (RFC 2986, 4).
pub(crate) fn csr(key: &SigningKey) -> Vec<u8> {
    signed(key, |w| {
        w.sequence(|w| {
            w.integer(0);
            w.raw(name("CN=device").der());
            w.raw(&public_key(key));
            w.element(tag::constructed(0), &[]);
        });
    })
}

/// A certificate of the root (RFC 5280, 4.1).
fn certificate(
    issuer: &SigningKey,
    serial: i64,
    subject: &str,
    public_key: &[u8],
    validity: &[&str; 2],
    is_ca: bool,
) -> Vec<u8> {
    signed(issuer, |w| {
        w.sequence(|w| {
            w.explicit(0, |w| w.integer(2));
            w.integer(serial);
            w.sequence(|w| w.oid(oid::ECDSA_SHA256));
            w.raw(name("CN=Root").der());
            w.sequence(|w| {
                w.element(tag::UTC_TIME, validity[0].as_bytes());
                w.element(tag::UTC_TIME, validity[1].as_bytes());
            });
            w.raw(name(subject).der());
            w.raw(public_key);
            if is_ca {
                w.explicit(3, |w| w.sequence(basic_constraints));
            }
        });
    })
}

/// Critical, with cA TRUE.
fn basic_constraints(w: &mut Writer) {
    w.sequence(|w| {
        w.oid(oid::BASIC_CONSTRAINTS);
        w.element(tag::BOOLEAN, &[0xff]);
        w.octet_string(&Writer::encode(|w| {
            w.sequence(|w| w.element(tag::BOOLEAN, &[0xff]));
        }));
    });
}

/// Something signed, as certificates and requests are.
pub(crate) fn signed(key: &SigningKey, content: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let content = Writer::encode(content);
    let signature: DerSignature = key.sign(&content);
    Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(&content);
            w.sequence(|w| w.oid(oid::ECDSA_SHA256));
            w.bits(tag::BIT_STRING, signature.as_bytes());
        });
    })
}
