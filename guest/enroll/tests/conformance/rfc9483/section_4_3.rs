//! Support messages.

use abide_cmp::der::{Writer, tag};
use abide_cmp::{InfoTypeAndValue, PkiBody, PkiMessage, PkiStatus, PkiStatusInfo, oid};
use abide_enroll::{Answer as Told, FailureClass, Information, Operation, Outcome, Phase, Want};
use p256::ecdsa::SigningKey;

use super::super::peer::{Answer, CERT_AND_CRL_SIGN, Says, certificate, world};
use crate::ca::{error, public_key};
use crate::faults::state;
use crate::world::{World, waits};

fn asking(question: Information) -> World {
    let mut world = world(Operation::Genm);
    world.enrollment.want = Want::Information(question);
    world
}

/// The one InfoTypeAndValue of the genm, as its DER.
fn asked(world: &World) -> Vec<u8> {
    let octets = world.sent()[0].clone();
    let message = PkiMessage::from_der(&octets).expect("a PKIMessage");
    match &message.body {
        PkiBody::Genm(infos) if infos.len() == 1 => infos[0].to_der(),
        other => panic!("{other:?}"),
    }
}

fn info(kind: oid::Oid<'_>, value: Option<&[u8]>) -> Vec<u8> {
    Writer::encode(|w| {
        w.sequence(|w| {
            w.oid(kind);
            value.into_iter().for_each(|value| w.raw(value));
        });
    })
}

/// genp with these InfoTypeAndValues, each as DER.
fn genp(request: &[u8], infos: &[Vec<u8>]) -> Vec<u8> {
    let infos: Vec<_> = infos
        .iter()
        .map(|der| InfoTypeAndValue::from_der(der).expect("an InfoTypeAndValue"))
        .collect();
    Answer::under_secret(request).with(&PkiBody::Genp(infos))
}

/// What is told of a genp with this.
fn told(question: Information, answer: Vec<u8>) -> Told {
    let world = asking(question);
    world.next_says(move |_, request| genp(request, std::slice::from_ref(&answer)));
    match world.begin().expect("a beginning").outcome {
        Outcome::Done(done) => done.answer.expect("an answer"),
        other => panic!("{other:?}"),
    }
}

/// A genp that must change nothing; the next one ends it well.
fn changes_nothing(question: Information, words: &str, infos: Vec<Vec<u8>>) {
    let world = asking(question);
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    let before = state(&world.record());
    world.next_says(move |_, request| genp(request, &infos));
    let failure = waits(world.step()).failure.expect("a failure");
    assert_eq!(failure.class, FailureClass::Malformed);
    assert!(failure.reason.contains(words), "{failure:?}");
    assert_eq!(state(&world.record()), before);
    let answer = expected(&world);
    world.next_says(move |_, request| genp(request, &[info(answer, None)]));
    assert_eq!(world.step().phase, Phase::Done);
}

/// The infoType that answers the question of a world.
fn expected(world: &World) -> oid::Oid<'static> {
    match &world.enrollment.want {
        Want::Information(Information::CaCerts) => oid::IT_CA_CERTS,
        Want::Information(Information::RootCaUpdate(_)) => oid::IT_ROOT_CA_KEY_UPDATE,
        Want::Information(Information::CertReqTemplate) => oid::IT_CERT_REQ_TEMPLATE,
        Want::Information(Information::Crl(_)) => oid::IT_CRLS,
        other => panic!("{other:?}"),
    }
}

fn root() -> Vec<u8> {
    World::new(Operation::Ir).ca.root
}

#[test]
fn genm_has_one_info_type_and_the_value_that_goes_with_it() {
    let root = root();
    // CRLSource issuer [1] with one directoryName [4] (RFC 9810, 5.3.19.17).
    let source = Writer::encode(|w| {
        w.sequence(|w| {
            w.sequence(|w| {
                w.explicit(1, |w| {
                    w.sequence(|w| w.explicit(4, |w| w.raw(crate::ca::name("CN=Root").der())));
                });
            });
        });
    });
    for (question, expected) in [
        (Information::CaCerts, info(oid::IT_CA_CERTS, None)),
        (
            Information::CertReqTemplate,
            info(oid::IT_CERT_REQ_TEMPLATE, None),
        ),
        (
            Information::RootCaUpdate(root.clone()),
            info(oid::IT_ROOT_CA_CERT, Some(&root)),
        ),
        (
            Information::Crl(root.clone()),
            info(oid::IT_CRL_STATUS_LIST, Some(&source)),
        ),
    ] {
        let world = asking(question);
        world.next_is_lost();
        waits(world.begin().expect("a beginning"));
        assert_eq!(asked(&world), expected);
    }
}

#[test]
fn genp_has_exactly_one_info_type_and_that_of_the_answer() {
    let one = info(oid::IT_CA_CERTS, None);
    changes_nothing(Information::CaCerts, "exactly one", Vec::new());
    changes_nothing(Information::CaCerts, "exactly one", vec![one.clone(), one]);
    let other = info(oid::IT_CRLS, None);
    changes_nothing(Information::CaCerts, "another infoType", vec![other]);
    // The answer to rootCaCert is rootCaKeyUpdate.
    let same = info(oid::IT_ROOT_CA_CERT, None);
    let question = Information::RootCaUpdate(root());
    changes_nothing(question, "another infoType", vec![same]);
}

#[test]
fn a_genp_without_a_value_says_that_there_is_nothing() {
    for (question, kind) in [
        (Information::CaCerts, oid::IT_CA_CERTS),
        (Information::CertReqTemplate, oid::IT_CERT_REQ_TEMPLATE),
        (
            Information::RootCaUpdate(root()),
            oid::IT_ROOT_CA_KEY_UPDATE,
        ),
        (Information::Crl(root()), oid::IT_CRLS),
    ] {
        assert_eq!(told(question, info(kind, None)), Told::Absent);
    }
}

#[test]
fn the_value_of_a_genp_is_of_the_type_that_belongs_to_it() {
    let integer = [0x02, 0x01, 0x05];
    for (question, kind) in [
        (Information::CaCerts, oid::IT_CA_CERTS),
        (Information::CertReqTemplate, oid::IT_CERT_REQ_TEMPLATE),
        (
            Information::RootCaUpdate(root()),
            oid::IT_ROOT_CA_KEY_UPDATE,
        ),
        (Information::Crl(root()), oid::IT_CRLS),
    ] {
        let infos = vec![info(kind, Some(&integer))];
        changes_nothing(question, "infoValue", infos);
    }
}

/// RFC 9483, 4.3.1.
#[test]
fn ca_certs_are_given_out_and_trusted_for_nothing() {
    let root = root();
    let value = Writer::encode(|w| w.sequence(|w| w.raw(&root)));
    let world = asking(Information::CaCerts);
    let answer = info(oid::IT_CA_CERTS, Some(&value));
    world.next_says(move |_, request| genp(request, std::slice::from_ref(&answer)));
    match world.begin().expect("a beginning").outcome {
        Outcome::Done(done) => {
            assert_eq!(done.answer, Some(Told::Certificates(vec![root])));
        }
        other => panic!("{other:?}"),
    }
    assert!(world.record().ca_pubs.is_empty());
}

/// CertReqTemplateContent (RFC 9810, 5.3.19.16): a CertTemplate of this one field.
fn template(number: u8, content: &[u8]) -> Vec<u8> {
    let field = Writer::encode(|w| w.element(tag::primitive(number), content));
    let value = Writer::encode(|w| w.sequence(|w| w.sequence(|w| w.raw(&field))));
    info(oid::IT_CERT_REQ_TEMPLATE, Some(&value))
}

/// RFC 9483, 4.3.3.
#[test]
fn a_template_has_neither_a_public_key_nor_what_the_issuer_chooses() {
    let question = || Information::CertReqTemplate;
    // serialNumber 5, issuerUID and subjectUID of one octet.
    for (number, content) in [(1, &[0x05][..]), (7, &[0x00, 0x01]), (8, &[0x00, 0x01])] {
        changes_nothing(question(), "serialNumber", vec![template(number, content)]);
    }
    // publicKey [6] is a SEQUENCE under an IMPLICIT tag.
    let key = public_key(&SigningKey::from_slice(&[5; 32]).expect("a private key"));
    let mut field = key;
    field[0] = 0xa6;
    let value = Writer::encode(|w| w.sequence(|w| w.sequence(|w| w.raw(&field))));
    let with_key = info(oid::IT_CERT_REQ_TEMPLATE, Some(&value));
    changes_nothing(question(), "publicKey", vec![with_key]);

    // An empty one asks for nothing.
    let value = Writer::encode(|w| w.sequence(|w| w.sequence(|_| ())));
    let empty = info(oid::IT_CERT_REQ_TEMPLATE, Some(&value));
    assert_eq!(told(question(), empty), Told::Other(value));
}

/// RFC 9483, 4.3.4.
#[test]
fn crls_are_exactly_one() {
    // Whatever a SEQUENCE holds: a CRL is not judged here.
    let crl = [0x30, 0x00];
    let of = |count: usize| {
        let value = Writer::encode(|w| w.sequence(|w| (0..count).for_each(|_| w.raw(&crl))));
        info(oid::IT_CRLS, Some(&value))
    };
    assert_eq!(
        told(Information::Crl(root()), of(1)),
        Told::Crls(vec![crl.to_vec()])
    );
    changes_nothing(Information::Crl(root()), "exactly one CRL", vec![of(2)]);
}

/// RootCaKeyUpdateContent (RFC 9810, 5.3.19.15).
fn update(
    new_with_new: &[u8],
    new_with_old: Option<&[u8]>,
    old_with_new: Option<&[u8]>,
) -> Vec<u8> {
    let value = Writer::encode(|w| {
        w.sequence(|w| {
            w.raw(new_with_new);
            for (number, der) in [(0, new_with_old), (1, old_with_new)] {
                if let Some(der) = der {
                    w.explicit(number, |w| w.raw(der));
                }
            }
        });
    });
    info(oid::IT_ROOT_CA_KEY_UPDATE, Some(&value))
}

/// RFC 9483, 4.3.2; RFC 9810, 4.4.2: the new root is vouched for by the old one.
#[test]
fn a_new_root_is_vouched_for_by_the_old_one() {
    let ca = World::new(Operation::Ir).ca;
    let [new_key, other_key] =
        [[46; 32], [47; 32]].map(|octets| SigningKey::from_slice(&octets).expect("a private key"));
    let says = Says {
        is_ca: true,
        key_usage: Some(CERT_AND_CRL_SIGN),
        serial: 80,
        ..Says::end_entity("CN=Root", &[0x80; 20])
    };
    let (new, old, other) = (
        public_key(&new_key),
        public_key(&ca.key),
        public_key(&other_key),
    );
    let new_with_new = certificate(&new_key, says, &new);
    let new_with_old = certificate(&ca.key, says, &new);
    let old_with_new = certificate(&new_key, says, &old);
    let question = || Information::RootCaUpdate(ca.root.clone());

    for third in [None, Some(&old_with_new[..])] {
        let answer = update(&new_with_new, Some(&new_with_old), third);
        assert_eq!(
            told(question(), answer),
            Told::RootCaKeyUpdate {
                new_with_new: new_with_new.clone(),
                new_with_old: new_with_old.clone(),
                old_with_new: third.map(<[u8]>::to_vec),
            }
        );
    }
    let by_other = certificate(&other_key, says, &new);
    let for_other = certificate(&ca.key, says, &other);
    for (words, answer) in [
        ("lacks newWithOld", update(&new_with_new, None, None)),
        ("newWithOld", update(&new_with_new, Some(&by_other), None)),
        ("another key", update(&new_with_new, Some(&for_other), None)),
        (
            "not signed by its own key",
            update(&by_other, Some(&new_with_old), None),
        ),
        (
            "oldWithNew",
            update(&new_with_new, Some(&new_with_old), Some(&new_with_new)),
        ),
    ] {
        changes_nothing(question(), words, vec![answer]);
    }
}

/// RFC 9483, 4.4.
#[test]
fn genp_is_delayed_by_an_error_with_waiting() {
    let world = asking(Information::CaCerts);
    world.next_says(|_, request| {
        let waiting = PkiStatusInfo::new(PkiStatus::Waiting);
        Answer::under_secret(request).with(&error(waiting))
    });
    waits(world.begin().expect("a beginning"));
    world.next_says(|_, request| genp(request, &[info(oid::IT_CA_CERTS, None)]));
    assert_eq!(world.step().phase, Phase::Done);
    assert_eq!(world.sent_types(), ["genm", "pollReq"]);
}
