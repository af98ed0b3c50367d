//! What abide encodes is read by OpenSSL's libcrypto and by Bouncy Castle: every body, every
//! proof of possession and every choice, made from the types of `abide-cmp`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abide_cmp::der::{Integer, Writer};
use abide_cmp::{
    AlgorithmIdentifier, AttributeTypeAndValue, BodyType, CaKeyUpdContent, CertId, CertOrEncCert,
    CertRepMessage, CertReqMsg, CertRequest, CertResponse, CertStatus, CertTemplate, Certificate,
    CertificationRequest, CertifiedKeyPair, Challenge, Draft, EncryptedKey, EncryptedValue,
    EnvelopedData, ErrorMsgContent, Extension, FailInfo, GeneralName, InfoTypeAndValue,
    KeyRecRepContent, Name, PkiBody, PkiFreeText, PkiHeader, PkiMessage, PkiStatus, PkiStatusInfo,
    PollRep, PopoPrivKey, PoposkInput, ProofOfPossession, PublicKeyInfo, RevAnnContent, RevDetails,
    RevRepContent, RootCaKeyUpdateContent, Time, oid,
};
use abide_tests::bouncy_castle::BouncyCastle;
use abide_tests::process::succeed;

/// Who reads a message, and what Bouncy Castle finds in its body.
enum Read {
    Both(&'static str),
    /// It has a field that OpenSSL 3.0 does not know.
    OnlyBouncyCastle(&'static str),
    /// It has a field that both are too old for.
    Neither,
}
use Read::{Both, Neither, OnlyBouncyCastle};

struct Made {
    name: String,
    body: BodyType,
    der: Vec<u8>,
    read: Read,
}

/// Messages of Bouncy Castle's that have what is needed here: a peer that looks into a
/// certificate wants it to be one.
struct Sources {
    cann: Vec<u8>,
    p10cr: Vec<u8>,
    crlann: Vec<u8>,
    popdecc: Vec<u8>,
}

impl Sources {
    fn load() -> Self {
        let vector = |name: &str| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest/cmp/tests/vectors");
            fs::read(folder.join("messages").join(name)).expect("a vector")
        };
        Self {
            cann: vector("bc-1.72-cann.der"),
            p10cr: vector("bc-1.72-p10cr.der"),
            crlann: vector("bc-1.72-crlann.der"),
            popdecc: vector("bc-1.72-popdecc-encryptedrand.der"),
        }
    }

    fn parts(&self) -> Parts<'_> {
        fn body(der: &[u8]) -> PkiBody<'_> {
            PkiMessage::from_der(der).expect("a vector").body
        }
        let PkiBody::Cann(certificate) = body(&self.cann) else {
            panic!("no cann")
        };
        let PkiBody::P10cr(request) = body(&self.p10cr) else {
            panic!("no p10cr")
        };
        let PkiBody::Crlann(crls) = body(&self.crlann) else {
            panic!("no crlann")
        };
        let PkiBody::Popdecc(mut challenges) = body(&self.popdecc) else {
            panic!("no popdecc")
        };
        Parts {
            certificate,
            key: Certificate::from_der(certificate)
                .expect("a certificate")
                .public_key,
            request,
            crl: crls[0],
            enveloped: challenges.remove(0).encrypted_rand.expect("encryptedRand"),
        }
    }
}

struct Parts<'a> {
    certificate: &'a [u8],
    key: PublicKeyInfo<'a>,
    request: CertificationRequest<'a>,
    crl: &'a [u8],
    enveloped: EnvelopedData<'a>,
}

const OCTETS: [u8; 16] = [0xa5; 16];
/// What is found in a request of this test, whatever its proof of possession.
macro_rules! request_with {
    ($popo:literal) => {
        concat!(
            "certReqId=0 subject=CN=subject key=1.2.840.10045.2.1",
            $popo
        )
    };
}
const ECDSA: AlgorithmIdentifier<'_> = AlgorithmIdentifier::bare(oid::ECDSA_SHA256);

fn name(text: &str) -> GeneralName<'static> {
    GeneralName::Directory(Name::common_name(text))
}

fn header<'a>() -> PkiHeader<'a> {
    let mut header = PkiHeader::new(name("sender"), name("recipient"));
    header.transaction_id = Some(&OCTETS);
    header
}

fn finish(header: &PkiHeader<'_>, body: &PkiBody<'_>) -> Vec<u8> {
    Draft::new(header, body).finish::<&[u8]>(None, &[])
}

#[derive(Default)]
struct Messages(Vec<Made>);

impl Messages {
    fn all(parts: &Parts<'_>) -> Vec<Made> {
        let mut messages = Self::default();
        messages.proofs(parts);
        messages.requests(parts);
        messages.responses(parts);
        messages.revocations(parts);
        messages.announcements(parts);
        messages.challenges(parts);
        messages.confirmations();
        messages.information(parts);
        messages.whole(parts);
        messages.0
    }

    fn add(&mut self, body: &PkiBody<'_>, read: Read) {
        self.push(body.body_type(), finish(&header(), body), read);
    }

    fn push(&mut self, body: BodyType, der: Vec<u8>, read: Read) {
        self.0.push(Made {
            name: format!("{}-{}.der", self.0.len(), body.name()),
            body,
            der,
            read,
        });
    }

    fn proofs(&mut self, parts: &Parts<'_>) {
        let key = parts.key;
        let input = Writer::encode(|w| {
            w.explicit(0, |w| {
                w.explicit(4, |w| w.raw(Name::common_name("popo").der()))
            });
            w.raw(key.raw);
        });
        let mac = Writer::encode(|w| {
            w.sequence(|w| w.oid(oid::HMAC_SHA256));
            w.bits(0x03, &OCTETS);
        });
        let signed = |input| ProofOfPossession::Signature {
            input,
            algorithm: ECDSA,
            signature: OCTETS[..].into(),
        };
        let input = PoposkInput {
            contents: &input,
            sender: Some(name("popo")),
            public_key_mac: None,
            public_key: key,
        };
        use PopoPrivKey::{AgreeMac, ChallengeResp, DhMac, EncrCert, ThisMessage};
        use ProofOfPossession::{KeyAgreement, KeyEncipherment};
        let encrypted = || PopoPrivKey::EncryptedKey(parts.enveloped.clone());
        let proofs = [
            (None, Both(request_with!(""))),
            (
                Some(ProofOfPossession::RaVerified),
                Both(request_with!(" popo=raVerified")),
            ),
            (
                Some(signed(None)),
                Both(request_with!(" popo=signature:1.2.840.10045.4.3.2")),
            ),
            (
                Some(signed(Some(input))),
                Both(request_with!(
                    " popo=signature:1.2.840.10045.4.3.2 poposkInput=1.2.840.10045.2.1"
                )),
            ),
            (
                Some(KeyEncipherment(ThisMessage(&OCTETS))),
                Both(request_with!(" popo=keyEncipherment:0")),
            ),
            (
                Some(KeyEncipherment(EncrCert)),
                Both(request_with!(" popo=keyEncipherment:1")),
            ),
            (
                Some(KeyEncipherment(ChallengeResp)),
                Both(request_with!(" popo=keyEncipherment:1")),
            ),
            (
                Some(KeyAgreement(EncrCert)),
                Both(request_with!(" popo=keyAgreement:1")),
            ),
            (
                Some(KeyAgreement(DhMac(&OCTETS))),
                Both(request_with!(" popo=keyAgreement:2")),
            ),
            (
                Some(KeyAgreement(AgreeMac(&mac))),
                Both(request_with!(" popo=keyAgreement:3")),
            ),
            (
                Some(KeyEncipherment(encrypted())),
                OnlyBouncyCastle(request_with!(
                    " popo=keyEncipherment:4 recipient=KeyTransRecipientInfo content=1.2.840.113549.1.7.1"
                )),
            ),
        ];
        for (popo, read) in proofs {
            let mut request = CertReqMsg::new(CertRequest {
                cert_req_id: 0,
                template: template(parts),
                controls: Vec::new(),
            });
            request.popo = popo;
            let der = finish(&header(), &PkiBody::Ir(vec![request]));
            self.push(BodyType::Ir, der, read);
        }
    }

    fn requests(&mut self, parts: &Parts<'_>) {
        let old = Writer::encode(|w| {
            w.sequence(|w| {
                w.explicit(4, |w| w.raw(Name::common_name("issuer").der()));
                w.integer(77);
            });
        });
        let token = Writer::encode(|w| w.utf8("token"));
        let controls = vec![
            AttributeTypeAndValue {
                oid: oid::REG_CTRL_REG_TOKEN,
                value: &token,
            },
            AttributeTypeAndValue {
                oid: oid::REG_CTRL_OLD_CERT_ID,
                value: &old,
            },
        ];
        let request = || {
            let mut request = CertReqMsg::new(CertRequest {
                cert_req_id: -1,
                template: CertTemplate {
                    issuer: Some(Name::common_name("issuer")),
                    subject: None,
                    public_key: None,
                    extensions: vec![Extension {
                        oid: oid::KEY_USAGE,
                        critical: true,
                        value: &[0x03, 0x02, 0x07, 0x80],
                    }],
                    others: vec![(0, &[0x80, 0x01, 0x02]), (1, &[0x81, 0x01, 0x4d])],
                },
                controls: controls.clone(),
            });
            request.reg_info = vec![AttributeTypeAndValue {
                oid: oid::REG_INFO_UTF8_PAIRS,
                value: &token,
            }];
            vec![request]
        };
        for body in [
            PkiBody::Cr(request()),
            PkiBody::Kur(request()),
            PkiBody::Krr(request()),
            PkiBody::Ccr(request()),
        ] {
            self.add(
                &body,
                Both(
                    "certReqId=-1 issuer=CN=issuer extensions=1 control=1.3.6.1.5.5.7.5.1.1 \
                     control=1.3.6.1.5.5.7.5.1.5 oldCertID=77 regInfo=1",
                ),
            );
        }
        self.add(
            &PkiBody::P10cr(parts.request.clone()),
            Both("subject=CN=new,O=vectors"),
        );
    }

    fn responses(&mut self, parts: &Parts<'_>) {
        let value = || {
            EncryptedKey::EncryptedValue(EncryptedValue {
                intended_alg: Some(AlgorithmIdentifier::with_null(oid::RSA_ENCRYPTION)),
                symm_alg: Some(AlgorithmIdentifier::bare(oid::SHA256)),
                enc_symm_key: Some(&OCTETS),
                key_alg: Some(AlgorithmIdentifier::with_null(oid::RSA_ENCRYPTION)),
                value_hint: Some(b"hint"),
                enc_value: &OCTETS,
            })
        };
        let enveloped = || EncryptedKey::EnvelopedData(parts.enveloped.clone());
        let plain = || CertOrEncCert::Certificate(parts.certificate);
        let response = |cert_or_enc_cert, private_key| {
            let mut status = PkiStatusInfo::new(PkiStatus::GrantedWithMods);
            status.status_string = Some(PkiFreeText(vec!["one".into(), "zwölf".into()]));
            CertRepMessage {
                ca_pubs: vec![parts.certificate],
                responses: vec![CertResponse {
                    cert_req_id: 0,
                    status,
                    certified_key_pair: Some(pair(cert_or_enc_cert, private_key)),
                    rsp_info: Some(b"information"),
                }],
            }
        };
        let bare = "serial=4711 certReqId=0 status=1 statusString=one|zwölf serial=4711";
        self.add(&PkiBody::Ip(response(plain(), None)), Both(bare));
        self.add(&PkiBody::Kup(response(plain(), None)), Both(bare));
        self.add(
            &PkiBody::Cp(response(plain(), Some(value()))),
            Both(
                "serial=4711 certReqId=0 status=1 statusString=one|zwölf serial=4711 \
                 privateKey=encryptedValue:16",
            ),
        );
        self.add(
            &PkiBody::Ccp(response(CertOrEncCert::EncryptedCert(value()), None)),
            Both(
                "serial=4711 certReqId=0 status=1 statusString=one|zwölf \
                 encryptedCert=encryptedValue:16",
            ),
        );
        self.add(
            &PkiBody::Cp(response(plain(), Some(enveloped()))),
            OnlyBouncyCastle(
                "serial=4711 certReqId=0 status=1 statusString=one|zwölf serial=4711 \
                 privateKey=envelopedData recipient=KeyTransRecipientInfo \
                 content=1.2.840.113549.1.7.1",
            ),
        );
        self.add(
            &PkiBody::Cp(response(CertOrEncCert::EncryptedCert(enveloped()), None)),
            OnlyBouncyCastle(
                "serial=4711 certReqId=0 status=1 statusString=one|zwölf \
                 encryptedCert=envelopedData recipient=KeyTransRecipientInfo \
                 content=1.2.840.113549.1.7.1",
            ),
        );
        self.add(
            &PkiBody::Krp(KeyRecRepContent {
                status: PkiStatusInfo::new(PkiStatus::Accepted),
                new_sig_cert: Some(parts.certificate),
                ca_certs: vec![parts.certificate],
                key_pair_hist: vec![pair(plain(), Some(value()))],
            }),
            Both("status=0 serial=4711 serial=4711 serial=4711 privateKey=encryptedValue:16"),
        );
    }

    fn revocations(&mut self, parts: &Parts<'_>) {
        let reason = || {
            vec![Extension {
                // id-ce-cRLReasons.
                oid: oid::Oid::from_content(&[0x55, 0x1d, 0x15]).expect("an identifier"),
                critical: false,
                value: &[0x0a, 0x01, 0x01],
            }]
        };
        let id = || CertId {
            issuer: name("issuer"),
            serial_number: &[0x47, 0x11],
        };
        self.add(
            &PkiBody::Rr(vec![RevDetails {
                cert_details: CertTemplate {
                    issuer: Some(Name::common_name("issuer")),
                    others: vec![(1, &[0x81, 0x02, 0x47, 0x11])],
                    ..CertTemplate::default()
                },
                crl_entry_details: reason(),
            }]),
            Both("serial=18193 entryDetails=1"),
        );
        // DER of the RFC's bits: badRequest alone is 03 02 05 20, and Bouncy Castle numbers
        // them from the highest bit of the first octet.
        let rejection = PkiStatusInfo::rejection(FailInfo::BAD_REQUEST, "no");
        self.add(
            &PkiBody::Rp(RevRepContent {
                status: vec![rejection.clone()],
                rev_certs: vec![id()],
                crls: vec![parts.crl],
            }),
            Both("status=2 statusString=no failInfo=32 serial=18193 crls=1"),
        );
        self.add(
            &PkiBody::Error(ErrorMsgContent {
                status: rejection,
                error_code: Some(&[0xff, 0x00]),
                error_details: Some(PkiFreeText::new("details")),
            }),
            Both("status=2 statusString=no failInfo=32 errorCode=-256 errorDetails=details"),
        );
        self.add(
            &PkiBody::Rann(RevAnnContent {
                status: PkiStatus::RevocationWarning,
                cert_id: id(),
                // 2026-01-01T00:00:00Z and a day later.
                will_be_revoked_at: Time::from_unix(1_767_312_000),
                bad_since_date: Time::from_unix(1_767_225_600),
                crl_details: reason(),
            }),
            Both("serial=18193 willBeRevokedAt=20260102000000GMT+00:00"),
        );
    }

    fn announcements(&mut self, parts: &Parts<'_>) {
        let certificate = parts.certificate;
        self.add(
            &PkiBody::Ckuann(CaKeyUpdContent::V2 {
                old_with_new: certificate,
                new_with_old: certificate,
                new_with_new: certificate,
            }),
            Both("serial=4711 serial=4711 serial=4711"),
        );
        self.add(
            &PkiBody::Ckuann(CaKeyUpdContent::V3(RootCaKeyUpdateContent {
                new_with_new: certificate,
                new_with_old: None,
                old_with_new: Some(certificate),
            })),
            Neither,
        );
        self.add(&PkiBody::Cann(certificate), Both("serial=4711"));
        self.add(&PkiBody::Crlann(vec![parts.crl]), Both("crls=1"));
    }

    fn challenges(&mut self, parts: &Parts<'_>) {
        let challenge = |owf, encrypted_rand| Challenge {
            owf,
            witness: b"witness",
            challenge: &OCTETS,
            encrypted_rand,
        };
        let hash = AlgorithmIdentifier::bare(oid::SHA256);
        self.add(
            &PkiBody::Popdecc(vec![challenge(Some(hash), None), challenge(None, None)]),
            Both("owf=2.16.840.1.101.3.4.2.1 challenge=7+16 challenge=7+16"),
        );
        self.add(
            &PkiBody::Popdecc(vec![challenge(None, Some(parts.enveloped.clone()))]),
            Neither,
        );
        self.add(
            &PkiBody::Popdecr(vec![&[5], &[0x80]]),
            Both("numbers=[5,-128]"),
        );
    }

    fn confirmations(&mut self) {
        let status = |status_info, hash_alg| CertStatus {
            cert_hash: &OCTETS,
            cert_req_id: 0,
            status_info,
            hash_alg,
        };
        let refused = PkiStatusInfo::rejection(FailInfo::BAD_ALG, "no");
        self.add(
            &PkiBody::CertConf(vec![
                status(None, None),
                status(Some(refused.clone()), None),
            ]),
            Both("certReqId=0 certReqId=0 status=2 statusString=no failInfo=128"),
        );
        let hash = AlgorithmIdentifier::bare(oid::SHA512);
        self.add(
            &PkiBody::CertConf(vec![status(Some(refused), Some(hash))]),
            OnlyBouncyCastle(
                "certReqId=0 hashAlg=2.16.840.1.101.3.4.2.3 status=2 statusString=no failInfo=128",
            ),
        );
        self.add(&PkiBody::PkiConf, Both(""));
        self.add(&PkiBody::PollReq(vec![0, -1]), Both("certReqId=[0,-1]"));
        self.add(
            &PkiBody::PollRep(vec![PollRep {
                cert_req_id: 0,
                check_after: Integer::from(86_400),
                reason: Some(PkiFreeText::new("later")),
            }]),
            Both("certReqId=0 checkAfter=86400 reason=later"),
        );
    }

    fn information(&mut self, parts: &Parts<'_>) {
        let certificates = Writer::encode(|w| w.sequence(|w| w.raw(parts.certificate)));
        let crls = Writer::encode(|w| w.sequence(|w| w.raw(parts.crl)));
        let algorithm = Writer::encode(|w| w.sequence(|w| w.oid(oid::SHA256)));
        let info = |info_type, value| InfoTypeAndValue { info_type, value };
        self.add(
            &PkiBody::Genm(vec![
                info(oid::IT_CA_CERTS, None),
                info(oid::IT_ROOT_CA_CERT, Some(parts.certificate)),
            ]),
            Both("info=1.3.6.1.5.5.7.4.17 info=1.3.6.1.5.5.7.4.20"),
        );
        self.add(
            &PkiBody::Genp(vec![
                info(oid::IT_CA_CERTS, Some(&certificates)),
                info(oid::IT_CRLS, Some(&crls)),
                info(oid::IT_PREFERRED_SYMM_ALG, Some(&algorithm)),
            ]),
            Both(
                "info=1.3.6.1.5.5.7.4.17 serial=4711 info=1.3.6.1.5.5.7.4.23 \
                 info=1.3.6.1.5.5.7.4.4",
            ),
        );
    }

    /// Nested messages, and one with everything around the body.
    fn whole(&mut self, parts: &Parts<'_>) {
        let inner = finish(&header(), &PkiBody::PkiConf);
        self.add(
            &PkiBody::Nested(vec![&inner, &inner]),
            Both("pvno=2 body=pkiconf pvno=2 body=pkiconf"),
        );
        let mut full = header();
        full.pvno = 3;
        full.message_time = Some(Time::from_unix(1_767_225_600));
        full.protection_alg = Some(ECDSA);
        full.sender_kid = Some(b"sender");
        full.recip_kid = Some(b"recipient");
        full.sender_nonce = Some(&OCTETS);
        full.recip_nonce = Some(&OCTETS);
        full.free_text = Some(PkiFreeText(vec!["a line".into(), "другая".into()]));
        full.general_info = vec![InfoTypeAndValue::IMPLICIT_CONFIRM];
        let draft = Draft::new(&full, &PkiBody::PkiConf);
        let der = draft.finish(Some(&OCTETS), &[parts.certificate]);
        self.push(
            BodyType::PkiConf,
            der,
            Both(
                "pvno=3 protection=1.2.840.10045.4.3.2 freeText=a_line|другая \
                 info=1.3.6.1.5.5.7.4.13 serial=4711 body=pkiconf",
            ),
        );
    }
}

fn template<'a>(parts: &Parts<'a>) -> CertTemplate<'a> {
    CertTemplate {
        subject: Some(Name::common_name("subject")),
        public_key: Some(parts.key.raw.into()),
        ..CertTemplate::default()
    }
}

fn pair<'a>(
    cert_or_enc_cert: CertOrEncCert<'a>,
    private_key: Option<EncryptedKey<'a>>,
) -> CertifiedKeyPair<'a> {
    CertifiedKeyPair {
        cert_or_enc_cert,
        private_key,
        publication_info: None,
    }
}

/// Writes the messages into a folder and returns their paths.
fn write(folder: &Path, messages: &[Made]) -> Vec<PathBuf> {
    let write = |made: &Made| {
        let path = folder.join(&made.name);
        fs::write(&path, &made.der).expect("a file");
        path
    };
    messages.iter().map(write).collect()
}

/// What a peer said about each file.
fn said(output: &str) -> BTreeMap<&str, &str> {
    let line = |line| str::split_once(line, '\t').expect("a name and a verdict");
    output.lines().map(line).collect()
}

#[test]
fn every_body_is_among_the_messages() {
    let sources = Sources::load();
    let messages = Messages::all(&sources.parts());
    for body in 0..=26 {
        assert!(
            messages.iter().any(|made| made.body as u8 == body),
            "no message with body {body}"
        );
    }
}

#[test]
fn bouncy_castle_reads_what_abide_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let sources = Sources::load();
    let messages = Messages::all(&sources.parts());
    let peer = BouncyCastle::compile(folder.path());
    let files = write(folder.path(), &messages);
    let output = succeed(peer.program("ReadMessages").args(files));
    let said = said(&output);
    for made in &messages {
        let found = said[&*made.name];
        match made.read {
            Both(expected) | OnlyBouncyCastle(expected) if expected.starts_with("pvno=3") => {
                assert_eq!(found, expected, "{}", made.name);
            }
            Both(expected) | OnlyBouncyCastle(expected) => {
                let expected = format!("pvno=2 body={} {expected}", made.body.name());
                assert_eq!(found, expected.trim_end(), "{}", made.name);
            }
            Neither => assert!(found.starts_with("refused"), "{}: {found}", made.name),
        }
    }
}

#[test]
fn openssl_reads_what_abide_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let sources = Sources::load();
    let messages = Messages::all(&sources.parts());
    let program = folder.path().join("read_messages");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/c/read_messages.c");
    succeed(
        Command::new("cc")
            .args(["-Wall", "-Wextra", "-Werror", "-o"])
            .args([&program, &source])
            .arg("-lcrypto"),
    );
    let files = write(folder.path(), &messages);
    let output = succeed(Command::new(&program).args(files));
    let said = said(&output);
    for made in &messages {
        let found = said[&*made.name];
        match made.read {
            Both(_) => assert_eq!(found, format!("body {}", made.body as u8), "{}", made.name),
            // A later OpenSSL than 3.0 may know more.
            OnlyBouncyCastle(_) | Neither => assert_ne!(found, "changed", "{}", made.name),
        }
    }
}
