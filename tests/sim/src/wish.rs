//! What is wished for in a world, and the secrets and keys it is asked for with.

use abide_cmp::Certificate;
use abide_enroll::{
    CertificateCredential, Credential, Deviation, Deviations, Enrollment, Information, Revocation,
    Revoked, SharedSecret, Template, Want,
};

use crate::ca::Fixed;
use crate::crypto;
use crate::scenario::{Confirming, Kind, Protection, Setting};

/// CRLReason (RFC 5280, 5.3.1).
pub(crate) const SUPERSEDED: u8 = 4;
pub(crate) const REMOVE_FROM_CRL: u8 = 8;

/// The name of the key of the certificate credential of this generation.
pub(crate) fn own_key(generation: usize) -> String {
    format!("own {generation}")
}

pub(crate) fn new_key(order: usize) -> String {
    format!("new {order}")
}

pub(crate) fn secret(rng: &mut fastrand::Rng) -> Vec<u8> {
    std::iter::repeat_with(|| rng.u8(..)).take(24).collect()
}

/// The certificate that an order wants revoked or revived.
pub(crate) fn old_certificate(order: usize) -> Vec<u8> {
    crypto::certificate(
        "root",
        2_000_000 + order as u64,
        &crypto::name("CN=device"),
        &crypto::public_key(&format!("old {order}")),
        crypto::VALID,
        false,
    )
}

/// Orders in turn name it by itself and by its number.
fn revoked(order: usize) -> Revoked {
    let der = old_certificate(order);
    match order % 2 {
        0 => Revoked::Certificate(der),
        _ => {
            let old = Certificate::from_der(&der).expect("a certificate");
            Revoked::Number(crypto::CA.into(), old.serial.to_vec())
        }
    }
}

pub(crate) fn own_credential(generation: usize) -> CertificateCredential {
    let key = own_key(generation);
    CertificateCredential {
        certificate: crypto::certificate(
            "root",
            1_000_000 + generation as u64,
            &crypto::name("CN=device"),
            &crypto::public_key(&key),
            crypto::VALID,
            false,
        ),
        chain: Vec::new(),
        key,
    }
}

pub(crate) fn enrollment(setting: &Setting, fixed: &Fixed, order: usize) -> Enrollment {
    let key = new_key(order);
    let scenario = setting.scenario;
    Enrollment {
        order: format!("order {order}"),
        account: "account".into(),
        operation: scenario.kind.operation(),
        want: match scenario.kind {
            Kind::P10cr => Want::Csr(crypto::csr("CN=device", &key)),
            Kind::Ir | Kind::Cr => Want::Template(Template {
                subject: "CN=device".into(),
                sans: Vec::new(),
                key,
            }),
            // What the own certificate has is taken over.
            Kind::Kur => Want::Template(Template {
                subject: String::new(),
                sans: Vec::new(),
                key,
            }),
            Kind::Rr => Want::Revocation(Revocation {
                certificate: revoked(order),
                reason: SUPERSEDED,
            }),
            Kind::Revive => Want::Revocation(Revocation {
                certificate: revoked(order),
                reason: REMOVE_FROM_CRL,
            }),
            Kind::Genm => Want::Information(Information::CaCerts),
        },
        server: "http://ca.example/pkix/".into(),
        recipient: String::new(),
        credential: match scenario.protection {
            Protection::Secret => Credential::Secret(SharedSecret {
                reference: b"device".to_vec(),
                key: "secret 0".into(),
                iterations: 100,
                mac: abide_enroll::MacKind::Pbm,
            }),
            Protection::Certificate => Credential::Certificate(own_credential(0)),
        },
        trusted: vec![fixed.root.clone()],
        out_trusted: Vec::new(),
        untrusted: Vec::new(),
        profile: String::new(),
        allow_sha1: false,
        allow: match setting.habits.signs_always {
            true => Deviations::NONE.with(Deviation::SignedAnswerToMac),
            false => Deviations::NONE,
        },
        implicit_confirm: matches!(
            scenario.confirming,
            Confirming::Implicit | Confirming::NotImplicit
        ),
        limits: setting.limits,
        registration: None,
    }
}
