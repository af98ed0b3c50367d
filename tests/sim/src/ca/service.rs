//! What the CA does besides issuing: it revokes, revives and answers questions.

use abide_cmp::der::{Writer, tag};
use abide_cmp::{
    CertId, Certificate, FailInfo, GeneralName, InfoTypeAndValue, PkiBody, PkiStatus,
    PkiStatusInfo, RevDetails, RevRepContent, oid,
};

use super::answer::{Made, Told};
use super::{Ca, Request, Stage};
use crate::scenario::{Kind, Setting};
use crate::wish::{self, REMOVE_FROM_CRL, SUPERSEDED};

/// A certificate that was there before the world began.
#[derive(Debug)]
pub(crate) struct Held {
    der: Vec<u8>,
    revoked: bool,
    /// The transaction that revoked or revived it.
    pub(crate) by: Option<Vec<u8>>,
}

impl Held {
    pub(super) fn new(setting: &Setting, order: usize) -> Self {
        Self {
            der: wish::old_certificate(order),
            revoked: setting.scenario.kind == Kind::Revive,
            by: None,
        }
    }
}

impl Ca {
    pub(super) fn revokes(&self) -> bool {
        self.setting.scenario.kind == Kind::Rr
    }

    /// The order whose certificate an rr is about, when it asks for what is wanted.
    pub(super) fn held_by(&self, details: &[RevDetails<'_>]) -> Option<usize> {
        let [details] = details else {
            return None;
        };
        let reason = if self.revokes() {
            SUPERSEDED
        } else {
            REMOVE_FROM_CRL
        };
        let reason = Writer::encode(|w| w.element(tag::ENUMERATED, &[reason]));
        let asked = details
            .crl_entry_details
            .iter()
            .any(|extension| extension.oid == oid::CRL_REASON && extension.value == reason);
        let serial = details.cert_details.serial_number()?;
        let issuer = details.cert_details.issuer.as_ref()?;
        self.held.iter().position(|held| {
            let held = certificate(&held.der);
            asked && held.serial == serial && held.issuer.matches(issuer)
        })
    }

    /// Does what an rr asks for, once.
    pub(super) fn revoke(&mut self, request: &Request<'_>) -> Made {
        let revokes = self.revokes();
        let names = self.setting.habits.names_revoked;
        let case = self
            .books
            .get_mut(&request.id)
            .expect("a case in the books");
        case.stage = Stage::Closed;
        let held = &mut self.held[case.order];
        if held.revoked == revokes {
            return self.refuse(
                request,
                match revokes {
                    true => FailInfo::CERT_REVOKED,
                    false => FailInfo::BAD_CERT_ID,
                },
            );
        }
        held.revoked = revokes;
        held.by = Some(request.id.clone());
        let der = held.der.clone();
        let body = rp(
            &[PkiStatusInfo::new(PkiStatus::Accepted)],
            names.then_some(&der),
        );
        self.make(request, &body, Told::Done(None), false, &[])
    }

    /// Answers a question, which changes nothing.
    pub(super) fn inform(&mut self, request: &Request<'_>) -> Made {
        let case = self
            .books
            .get_mut(&request.id)
            .expect("a case in the books");
        case.stage = Stage::Closed;
        let value = ca_certs(&self.fixed.root);
        let answer = InfoTypeAndValue {
            info_type: oid::IT_CA_CERTS,
            value: Some(&value),
        };
        let told = Told::Done(Some(answer.to_der()));
        self.make(request, &PkiBody::Genp(vec![answer]), told, false, &[])
    }
}

/// The value of caCerts.
pub(super) fn ca_certs(certificate: &[u8]) -> Vec<u8> {
    Writer::encode(|w| w.sequence(|w| w.raw(certificate)))
}

/// An rp, which names a certificate or none.
pub(super) fn rp<'r>(statuses: &[PkiStatusInfo<'r>], about: Option<&'r Vec<u8>>) -> PkiBody<'r> {
    let named = about.map(|der| {
        let certificate = certificate(der);
        CertId {
            issuer: GeneralName::Directory(certificate.issuer),
            serial_number: certificate.serial,
        }
    });
    PkiBody::Rp(RevRepContent {
        status: statuses.to_vec(),
        rev_certs: named.into_iter().collect(),
        crls: Vec::new(),
    })
}

fn certificate(der: &[u8]) -> Certificate<'_> {
    Certificate::from_der(der).expect("a certificate of this CA")
}
