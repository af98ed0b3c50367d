//! A host whose CA knows the secret and is hostile: it may say anything, and say it protected.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use abide_cmp::protection::{Hash, MacAlgorithm, SignatureAlgorithm, Verdict};
use abide_cmp::{
    AlgorithmIdentifier, CertOrEncCert, Certificate, Draft, PkiBody, PkiHeader, PkiMessage, oid,
};
use abide_enroll::{
    Change, Credential, Deviations, Enrollment, Entry, Event, Filter, Host, KeyError, Limits,
    NetworkError, Operation, Page, Put, Response, SharedSecret, StorageError, Template, Want,
};

use crate::NOW;

/// Whatever is protected has this MAC.
const MAC: [u8; 32] = [0; 32];

/// A SubjectPublicKeyInfo with the base point of P-256 (SEC 2, 2.4.2).
const PUBLIC_KEY: [u8; 91] = *b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\
    \x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00\x04\
    \x6b\x17\xd1\xf2\xe1\x2c\x42\x47\xf8\xbc\xe6\xe5\x63\xa4\x40\xf2\
    \x77\x03\x7d\x81\x2d\xeb\x33\xa0\xf4\xa1\x39\x45\xd8\x98\xc2\x96\
    \x4f\xe3\x42\xe2\xfe\x1a\x7f\x9b\x8e\xe7\xeb\x4a\x7c\x0f\x9e\x16\
    \x2b\xce\x33\x57\x6b\x31\x5e\xce\xcb\xb6\x40\x68\x37\xbf\x51\xf5";

/// Storage in memory, a network with one answer for everything.
pub struct World<'a> {
    /// What the CA says.
    says: Option<&'a [u8]>,
    /// The key that is to be certified, as DER SubjectPublicKeyInfo.
    key: Vec<u8>,
    /// Milliseconds since the Unix epoch.
    pub now_ms: Cell<u64>,
    /// Messages that were sent.
    pub sent: Cell<usize>,
    store: RefCell<BTreeMap<(String, String), Entry>>,
}

impl<'a> World<'a> {
    /// A world whose CA answers with this, put into the right header; or not at all. The key
    /// is that of the certificate in the answer, so that it may be believed.
    pub fn new(says: Option<&'a [u8]>) -> Self {
        let issued = says.and_then(issued_key);
        Self {
            says,
            key: issued.unwrap_or_else(|| PUBLIC_KEY.to_vec()),
            now_ms: Cell::new((NOW.unix() * 1000) as u64),
            sent: Cell::new(0),
            store: RefCell::default(),
        }
    }

    /// A wish that this world can serve.
    pub fn enrollment(operation: Operation) -> Enrollment {
        Enrollment {
            order: "web".into(),
            account: String::new(),
            operation,
            want: Want::Template(Template {
                subject: "CN=device".into(),
                sans: Vec::new(),
                key: "new".into(),
            }),
            server: "http://ca.example/pkix/".into(),
            recipient: String::new(),
            credential: Credential::Secret(SharedSecret {
                reference: b"device".to_vec(),
                key: "secret".into(),
                iterations: 100,
                mac: abide_enroll::MacKind::Pbm,
            }),
            trusted: Vec::new(),
            out_trusted: Vec::new(),
            untrusted: Vec::new(),
            implicit_confirm: false,
            profile: String::new(),
            allow_sha1: false,
            allow: Deviations::NONE,
            limits: Limits {
                maximum_duration_ms: 3_600_000,
                minimum_poll_interval_ms: 10_000,
                maximum_poll_interval_ms: 240_000,
                maximum_polls: 5,
                request_timeout_ms: 30_000,
            },
            registration: None,
        }
    }

    /// The stored bodies, to be looked at and damaged.
    pub fn bodies(&self) -> BTreeMap<(String, String), Vec<u8>> {
        let store = self.store.borrow();
        let body = |(key, entry): (&(String, String), &Entry)| (key.clone(), entry.body.clone());
        store.iter().map(body).collect()
    }

    /// Puts a body in place of a stored one, or beside the others.
    pub fn replace(&self, kind: &str, id: &str, body: Vec<u8>) {
        let put = Put {
            envelope: abide_enroll::Envelope {
                kind: kind.into(),
                id: id.into(),
                owner: String::new(),
                account: String::new(),
                state: String::new(),
                due_ms: None,
                updated_ms: 0,
            },
            expected: None,
            body,
        };
        self.write(put);
    }

    fn write(&self, put: Put) -> u64 {
        let mut store = self.store.borrow_mut();
        let key = (put.envelope.kind.clone(), put.envelope.id.clone());
        let version = store.get(&key).map_or(1, |entry| entry.version + 1);
        let entry = Entry {
            envelope: put.envelope,
            version,
            body: put.body,
            lease: None,
        };
        store.insert(key, entry);
        version
    }
}

impl Host for World<'_> {
    fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    fn random(&self, count: usize) -> Vec<u8> {
        vec![7; count]
    }

    fn load(&self, kind: &str, id: &str) -> Result<Option<Entry>, StorageError> {
        let key = (kind.to_owned(), id.to_owned());
        Ok(self.store.borrow().get(&key).cloned())
    }

    fn commit(&self, changes: Vec<Change>) -> Result<Vec<u64>, StorageError> {
        let write = |change| match change {
            Change::Put(put) => self.write(put),
            Change::Delete(_) | Change::Guard(_) => {
                unreachable!("an enrollment deletes nothing and has no lease")
            }
        };
        Ok(changes.into_iter().map(write).collect())
    }

    fn list(&self, filter: Filter, _: Option<&str>, limit: u32) -> Result<Page, StorageError> {
        let store = self.store.borrow();
        let of_kind = store.values().filter(|e| e.envelope.kind == filter.kind);
        Ok(Page {
            entries: of_kind.take(limit as usize).cloned().collect(),
            next: None,
        })
    }

    fn exchange(&self, _: &str, message: &[u8], _: u64, _: u32) -> Result<Response, NetworkError> {
        self.sent.set(self.sent.get() + 1);
        match self.says {
            Some(says) => Ok(Response {
                status: 200,
                content_type: None,
                retry_after: None,
                location: None,
                body: addressed(message, says).unwrap_or_else(|| says.to_vec()),
            }),
            None => Err(NetworkError::Timeout("nothing came".into())),
        }
    }

    fn public_key(&self, _: &str) -> Result<Vec<u8>, KeyError> {
        Ok(self.key.clone())
    }

    fn sign(&self, _: &str, _: SignatureAlgorithm, _: &[u8]) -> Result<Vec<u8>, KeyError> {
        Ok(vec![0; 70])
    }

    fn mac(&self, _: &str, _: &MacAlgorithm<'_>, _: &[u8]) -> Result<Vec<u8>, KeyError> {
        Ok(MAC.to_vec())
    }

    fn verify(&self, _: SignatureAlgorithm, _: &[u8], _: &[u8], _: &[u8]) -> Verdict {
        Verdict::Valid
    }

    fn fingerprint(&self, _: &str, salt: &[u8]) -> Result<Vec<u8>, KeyError> {
        Ok(salt.to_vec())
    }

    fn emit(&self, _: Event) {}
}

/// The message with the identifiers and the protection of an answer to `request`.
fn addressed(request: &[u8], says: &[u8]) -> Option<Vec<u8>> {
    let request = PkiMessage::from_der(request).ok()?;
    let says = PkiMessage::from_der(says).ok()?;
    let parameters = MacAlgorithm::PasswordBased {
        salt: &[7; 16],
        owf: Hash::Sha256,
        iterations: 100,
        mac: Hash::Sha256,
    }
    .parameters();
    let header = PkiHeader {
        protection_alg: Some(AlgorithmIdentifier {
            oid: oid::PASSWORD_BASED_MAC,
            parameters: Some(&parameters),
        }),
        transaction_id: request.header.transaction_id,
        sender_nonce: Some(&[9; 16]),
        recip_nonce: request.header.sender_nonce,
        ..says.header.clone()
    };
    Some(Draft::new(&header, &says.body).finish(Some(&MAC), &says.extra_certs))
}

/// The key in the first certificate that a message grants.
fn issued_key(says: &[u8]) -> Option<Vec<u8>> {
    let message = PkiMessage::from_der(says).ok()?;
    let (PkiBody::Ip(answer) | PkiBody::Cp(answer)) = &message.body else {
        return None;
    };
    let pair = answer.responses.first()?.certified_key_pair.as_ref()?;
    match pair.cert_or_enc_cert {
        CertOrEncCert::Certificate(der) => {
            let certificate = Certificate::from_der(der).ok()?;
            Some(certificate.public_key.raw.to_vec())
        }
        CertOrEncCert::EncryptedCert(_) => None,
    }
}
