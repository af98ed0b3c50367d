//! A peer that can say anything, with real MACs and signatures.

use abide_cmp::der::{Reader, Writer, tag};
use abide_cmp::protection::{Hash, MacAlgorithm};
use abide_cmp::{
    AlgorithmIdentifier, CertRepMessage, Certificate, Draft, GeneralName, InfoTypeAndValue, Name,
    PkiBody, PkiFreeText, PkiHeader, PkiMessage, PkiStatus, PkiStatusInfo, RevRepContent, Time,
    oid,
};
use abide_enroll::{
    CertificateCredential, Credential, FailureClass, Information, Operation, Phase, Revocation,
    Revoked, Want,
};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{DerSignature, SigningKey};

use crate::ca::{Ca, REFERENCE, SECRET, granted, name, public_key, response, signed};
use crate::faults::state;
use crate::world::{START_MS, World, waits};

/// subjectKeyIdentifier of the own certificate.
pub(crate) const OWN_KID: &[u8] = &[0x0e; 20];
/// subjectKeyIdentifier of the signer of answers.
pub(crate) const SIGNER_KID: &[u8] = &[0x51; 20];

/// digitalSignature as the content of keyUsage (RFC 5280, 4.2.1.3).
pub(crate) const DIGITAL_SIGNATURE: u8 = 0x80;
/// keyCertSign and cRLSign.
pub(crate) const CERT_AND_CRL_SIGN: u8 = 0x06;

/// What a certificate says.
#[derive(Clone, Copy)]
pub(crate) struct Says<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) subject: &'a str,
    pub(crate) serial: i64,
    pub(crate) kid: Option<&'a [u8]>,
    pub(crate) key_usage: Option<u8>,
    pub(crate) is_ca: bool,
    /// UTCTime.
    pub(crate) not_after: &'a [u8; 13],
}

impl<'a> Says<'a> {
    pub(crate) const fn end_entity(subject: &'a str, kid: &'a [u8]) -> Self {
        Self {
            issuer: "CN=Root",
            subject,
            serial: 70,
            kid: Some(kid),
            key_usage: Some(DIGITAL_SIGNATURE),
            is_ca: false,
            not_after: b"450101000000Z",
        }
    }
}

/// A certificate (RFC 5280, 4.1).
pub(crate) fn certificate(issuer: &SigningKey, says: Says<'_>, public_key: &[u8]) -> Vec<u8> {
    signed(issuer, |w| {
        w.sequence(|w| {
            w.explicit(0, |w| w.integer(2));
            w.integer(says.serial);
            w.sequence(|w| w.oid(oid::ECDSA_SHA256));
            w.raw(name(says.issuer).der());
            w.sequence(|w| {
                w.element(tag::UTC_TIME, b"250101000000Z");
                w.element(tag::UTC_TIME, says.not_after);
            });
            w.raw(name(says.subject).der());
            w.raw(public_key);
            w.explicit(3, |w| {
                w.sequence(|w| {
                    if says.is_ca {
                        extension(w, oid::BASIC_CONSTRAINTS, |w| {
                            w.sequence(|w| w.element(tag::BOOLEAN, &[0xff]));
                        });
                    }
                    if let Some(usage) = says.key_usage {
                        let unused = usage.trailing_zeros() as u8;
                        let content = [unused, usage];
                        extension(w, oid::KEY_USAGE, |w| {
                            w.element(tag::BIT_STRING, &content);
                        });
                    }
                    if let Some(kid) = says.kid {
                        extension(w, oid::SUBJECT_KEY_IDENTIFIER, |w| w.octet_string(kid));
                    }
                });
            });
        });
    })
}

fn extension(w: &mut Writer, kind: oid::Oid<'_>, value: impl FnOnce(&mut Writer)) {
    w.sequence(|w| {
        w.oid(kind);
        w.octet_string(&Writer::encode(value));
    });
}

/// Who protects an answer.
#[derive(Clone)]
pub(crate) enum By {
    Nobody,
    Secret,
    Key(Box<SigningKey>),
}

/// An answer before it is protected.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) pvno: u8,
    pub(crate) sender: Name<'static>,
    pub(crate) recipient: Name<'static>,
    pub(crate) message_time: Option<Time>,
    pub(crate) sender_kid: Option<Vec<u8>>,
    pub(crate) transaction_id: Option<Vec<u8>>,
    pub(crate) sender_nonce: Option<Vec<u8>>,
    pub(crate) recip_nonce: Option<Vec<u8>>,
    pub(crate) free_text: Option<&'static str>,
    /// Types and DER values.
    pub(crate) general_info: Vec<(oid::Oid<'static>, Option<Vec<u8>>)>,
    pub(crate) by: By,
    pub(crate) extra_certs: Vec<Vec<u8>>,
    /// DER elements of header and body, and what stands in their places when it is protected.
    pub(crate) swaps: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Answer {
    /// An answer under the shared secret, as it should be.
    pub(crate) fn under_secret(request: &[u8]) -> Self {
        let header = PkiMessage::from_der(request).expect("a PKIMessage").header;
        let nonce = Hash::Sha256.digest(request);
        Self {
            pvno: header.pvno,
            sender: name("CN=Root"),
            recipient: name("CN=device"),
            message_time: None,
            sender_kid: Some(REFERENCE.to_vec()),
            transaction_id: header.transaction_id.map(<[u8]>::to_vec),
            sender_nonce: Some(nonce[..16].to_vec()),
            recip_nonce: header.sender_nonce.map(<[u8]>::to_vec),
            free_text: None,
            general_info: Vec::new(),
            by: By::Secret,
            extra_certs: Vec::new(),
            swaps: Vec::new(),
        }
    }

    /// An answer by a signer under the root of the CA, as it should be.
    pub(crate) fn signed(ca: &Ca, request: &[u8]) -> Self {
        let says = Says::end_entity("CN=CMP,O=CA", SIGNER_KID);
        Self::signed_as(ca, request, says)
    }

    /// An answer by a signer with this certificate of the root.
    pub(crate) fn signed_as(ca: &Ca, request: &[u8], says: Says<'_>) -> Self {
        let key = signer_key();
        Self {
            sender: name(says.subject),
            sender_kid: says.kid.map(<[u8]>::to_vec),
            extra_certs: vec![certificate(&ca.key, says, &public_key(&key))],
            by: By::Key(Box::new(key)),
            ..Self::under_secret(request)
        }
    }

    /// Puts it together.
    pub(crate) fn with(&self, body: &PkiBody<'_>) -> Vec<u8> {
        let mac = MacAlgorithm::PasswordBased {
            salt: &[9; 16],
            owf: Hash::Sha256,
            iterations: 100,
            mac: Hash::Sha256,
        };
        let parameters = mac.parameters();
        let mut header = self.header();
        header.protection_alg = match self.by {
            By::Nobody => None,
            By::Secret => Some(AlgorithmIdentifier {
                oid: mac.oid(),
                parameters: Some(&parameters),
            }),
            By::Key(_) => Some(AlgorithmIdentifier::bare(oid::ECDSA_SHA256)),
        };
        let part = Draft::new(&header, body).protected_part();
        let part = self
            .swaps
            .iter()
            .fold(part, |part, (from, to)| swapped(&part, from, to));
        let bits = match &self.by {
            By::Nobody => None,
            By::Secret => Some(mac.compute(SECRET, &part)),
            By::Key(key) => {
                let signature: DerSignature = key.sign(&part);
                Some(signature.as_bytes().to_vec())
            }
        };
        together(&part, bits.as_deref(), &self.extra_certs)
    }

    /// The header without protectionAlg.
    pub(crate) fn header(&self) -> PkiHeader<'_> {
        let [sender, recipient] =
            [&self.sender, &self.recipient].map(|name| GeneralName::Directory(name.clone()));
        let mut header = PkiHeader::new(sender, recipient);
        header.pvno = self.pvno;
        header.message_time = self.message_time;
        header.sender_kid = self.sender_kid.as_deref();
        header.transaction_id = self.transaction_id.as_deref();
        header.sender_nonce = self.sender_nonce.as_deref();
        header.recip_nonce = self.recip_nonce.as_deref();
        header.free_text = self.free_text.map(PkiFreeText::new);
        let infos = self.general_info.iter();
        header.general_info = infos
            .map(|(info_type, value)| InfoTypeAndValue {
                info_type: *info_type,
                value: value.as_deref(),
            })
            .collect();
        header
    }
}

/// PKIMessage (RFC 9810, 5.1) from its ProtectedPart.
pub(crate) fn together(part: &[u8], bits: Option<&[u8]>, extra_certs: &[Vec<u8>]) -> Vec<u8> {
    let mut reader = Reader::new(part);
    let header_and_body = reader.any().expect("a ProtectedPart").value;
    Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(header_and_body);
            if let Some(bits) = bits {
                w.explicit(0, |w| w.bits(tag::BIT_STRING, bits));
            }
            if !extra_certs.is_empty() {
                w.explicit(1, |w| {
                    w.sequence(|w| extra_certs.iter().for_each(|der| w.raw(der)));
                });
            }
        });
    })
}

/// DER with one element in place of another, however deep it is.
fn swapped(der: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    const CONSTRUCTED: u8 = 0x20;
    let mut reader = Reader::new(der);
    Writer::encode(|w| {
        while !reader.is_empty() {
            let element = reader.any().expect("DER");
            if element.raw == from {
                w.raw(to);
            } else if element.tag & CONSTRUCTED != 0 {
                w.element(element.tag, &swapped(element.value, from, to));
            } else {
                w.raw(element.raw);
            }
        }
    })
}

/// The private key of the signer of answers.
pub(crate) fn signer_key() -> SigningKey {
    SigningKey::from_slice(&[6; 32]).expect("a private key")
}

/// The body that answers a request well. A certificate is issued where one is asked for.
pub(crate) fn fitting(ca: &Ca, request: &[u8], seal: &Answer) -> Vec<u8> {
    let message = PkiMessage::from_der(request).expect("a PKIMessage");
    let new = match message.body {
        PkiBody::Ir(_) | PkiBody::Cr(_) | PkiBody::Kur(_) | PkiBody::P10cr(_) => ca.issue(),
        _ => Vec::new(),
    };
    let of = |id| response(&[granted(id, &new)]);
    let body = match &message.body {
        PkiBody::Ir(_) => PkiBody::Ip(of(0)),
        PkiBody::Cr(_) => PkiBody::Cp(of(0)),
        PkiBody::Kur(_) => PkiBody::Kup(of(0)),
        PkiBody::P10cr(_) => PkiBody::Cp(of(-1)),
        PkiBody::CertConf(_) => PkiBody::PkiConf,
        PkiBody::Rr(_) => rp(PkiStatusInfo::new(PkiStatus::Accepted)),
        PkiBody::Genm(infos) => PkiBody::Genp(vec![InfoTypeAndValue {
            value: None,
            ..infos[0]
        }]),
        other => panic!("an unexpected {}", other.body_type().name()),
    };
    seal.with(&body)
}

/// A fitting answer under the shared secret.
pub(crate) fn under_secret(ca: &Ca, request: &[u8]) -> Vec<u8> {
    fitting(ca, request, &Answer::under_secret(request))
}

/// A fitting answer under a signature.
pub(crate) fn signed_answer(ca: &Ca, request: &[u8]) -> Vec<u8> {
    fitting(ca, request, &Answer::signed(ca, request))
}

/// An rp with one status.
pub(crate) fn rp(status: PkiStatusInfo<'_>) -> PkiBody<'_> {
    PkiBody::Rp(RevRepContent {
        status: vec![status],
        rev_certs: Vec::new(),
        crls: Vec::new(),
    })
}

/// The answer of this operation with this content.
pub(crate) fn rep(operation: Operation, content: CertRepMessage<'_>) -> PkiBody<'_> {
    match operation {
        Operation::Ir => PkiBody::Ip(content),
        Operation::Kur => PkiBody::Kup(content),
        _ => PkiBody::Cp(content),
    }
}

/// A world for any operation, protected by the shared secret.
pub(crate) fn world(operation: Operation) -> World {
    let mut world = World::new(operation);
    match operation {
        Operation::Rr => {
            world.enrollment.want = Want::Revocation(Revocation {
                certificate: Revoked::Certificate(own_certificate(&world.ca)),
                reason: 1,
            });
        }
        Operation::Genm => world.enrollment.want = Want::Information(Information::CaCerts),
        Operation::Kur => sign(&mut world),
        _ => {}
    }
    world
}

/// The same, protected by the own certificate.
pub(crate) fn signing_world(operation: Operation) -> World {
    let mut world = world(operation);
    sign(&mut world);
    world
}

fn sign(world: &mut World) {
    world.enrollment.credential = Credential::Certificate(CertificateCredential {
        certificate: own_certificate(&world.ca),
        chain: Vec::new(),
        key: "own".into(),
    });
}

/// The certificate that protects requests.
pub(crate) fn own_certificate(ca: &Ca) -> Vec<u8> {
    let says = Says::end_entity("CN=device,O=Us", OWN_KID);
    certificate(&ca.key, says, ca.wanted())
}

/// Lets the peer answer all of the next requests well.
pub(crate) fn answers_well(world: &World) {
    let signs = matches!(world.enrollment.credential, Credential::Certificate(_));
    for _ in 0..2 {
        world.next_says(if signs { signed_answer } else { under_secret });
    }
}

/// A request of a world whose certificate protects it gets an answer that must change nothing;
/// a good one to the same octets is taken after it. Returns reason and advice.
pub(crate) fn signed_changes_nothing(
    world: &World,
    answer: impl Fn(&Ca, &[u8]) -> Vec<u8> + 'static,
) -> (String, String) {
    world.next_says(answer);
    let failure = waits(world.begin().expect("a beginning")).failure;
    let failure = failure.expect("a failure that is waited out");
    assert_eq!(failure.class, FailureClass::Security, "{failure:?}");
    let record = world.record();
    assert_eq!(record.phase, Phase::Enrolling);
    assert!(record.recip_nonce.is_none() && record.peer_name.is_none());
    assert!(record.response_signer.is_none());
    let before = state(&record);
    world.next_is_lost();
    waits(world.step());
    assert_eq!(state(&world.record()), before);
    answers_well(world);
    let progress = world.step();
    assert!(!progress.phase.is_open(), "{progress:?}");
    assert_ne!(progress.phase, Phase::Failed, "{progress:?}");
    let sent = world.sent();
    assert!(sent[0] == sent[1] && sent[1] == sent[2], "octet for octet");
    (failure.reason, failure.advice)
}

/// The messages that were sent, taken apart.
pub(crate) fn sent(world: &World, judge: impl Fn(usize, &PkiMessage<'_>)) {
    for (index, octets) in world.sent().iter().enumerate() {
        judge(index, &PkiMessage::from_der(octets).expect("a PKIMessage"));
    }
}

/// START_MS as messageTime has it.
pub(crate) fn start() -> Time {
    Time::from_unix((START_MS / 1000) as i64)
}

/// A certificate, read.
pub(crate) fn read(der: &[u8]) -> Certificate<'_> {
    Certificate::from_der(der).expect("a certificate")
}
