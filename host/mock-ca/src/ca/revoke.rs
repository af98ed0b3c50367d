//! rr: a certificate is revoked, or revived (RFC 9483, 4.2).

use abide_cmp::der::{Reader, tag};
use abide_cmp::{
    CertId, FailInfo, GeneralName, PkiBody, PkiStatus, PkiStatusInfo, RevDetails, RevRepContent,
    oid,
};

use super::{Answered, Ca, Request, Thread};
use crate::books::{Event, hex};
use crate::client::Client;
use crate::refusal::{Refusal, Trouble};

/// removeFromCRL of CRLReason (RFC 5280, 5.3.1).
const REMOVE_FROM_CRL: u8 = 8;

/// What a RevDetails asks for.
struct Wish {
    /// In two's complement.
    serial: Vec<u8>,
    reason: u8,
}

impl Ca {
    /// rr.
    pub(super) fn revoke(
        &mut self,
        request: &Request<'_>,
        client: &Client,
        details: &[RevDetails<'_>],
    ) -> Result<Answered, Trouble> {
        if let Some(answered) = self.repeated(request)? {
            return Ok(answered);
        }
        let thread = Thread {
            client,
            operation: "rr".into(),
            cert_req_id: -1,
        };
        if self.poll_count() > 0 {
            return Ok(self.put_off(request, &thread)?);
        }
        self.revoke_now(request, &thread, details)
    }

    pub(super) fn revoke_now(
        &mut self,
        request: &Request<'_>,
        thread: &Thread<'_>,
        details: &[RevDetails<'_>],
    ) -> Result<Answered, Trouble> {
        let judged = self
            .wish(details)
            .and_then(|wish| self.judge_wish(thread.client, &wish).map(|()| wish));
        let wish = match judged {
            Ok(wish) => wish,
            Err(refusal) => {
                let status = PkiStatusInfo::rejection(refusal.fail_info, refusal.text.as_str());
                let content = rp(status, Vec::new()).into();
                return Ok(self.refuse_request(
                    request,
                    Some(thread.client),
                    &content,
                    &refusal,
                )?);
            }
        };
        let serial = hex(&wish.serial);
        let (event, verdict) = match wish.reason {
            REMOVE_FROM_CRL => (Event::Revived { serial }, "revived"),
            reason => {
                let at = request.now.unix();
                (Event::Revoked { serial, reason, at }, "revoked")
            }
        };
        let issuer = GeneralName::Directory(self.authority.root.subject.clone());
        let id = CertId {
            issuer,
            serial_number: &wish.serial,
        };
        let content = rp(PkiStatusInfo::new(PkiStatus::Accepted), vec![id]).into();
        Ok(self.commit(request, thread, &content, event, verdict)?)
    }

    fn wish(&self, details: &[RevDetails<'_>]) -> Result<Wish, Refusal> {
        let bad = |text: &str| Refusal::new(FailInfo::BAD_REQUEST, text);
        let [details] = details else {
            return Err(bad("ask for one revocation at a time (RFC 9483, 4.2)"));
        };
        let template = &details.cert_details;
        let (Some(issuer), Some(serial)) = (&template.issuer, template.serial_number()) else {
            return Err(bad(
                "certDetails names no issuer or no serialNumber (RFC 9483, 4.2)",
            ));
        };
        if !issuer.matches(&self.authority.root.subject) {
            return Err(Refusal::new(
                FailInfo::BAD_CERT_ID,
                format!("this CA does not issue as '{issuer}'"),
            ));
        }
        let reason = details
            .crl_entry_details
            .iter()
            .find(|extension| extension.oid == oid::CRL_REASON);
        let reason = match reason {
            None => 0,
            Some(extension) => Reader::new(extension.value)
                .element(tag::ENUMERATED, "a CRLReason")
                .ok()
                .and_then(|reason| match reason.value {
                    &[number] => Some(number),
                    _ => None,
                })
                .ok_or_else(|| bad("the reasonCode cannot be read"))?,
        };
        Ok(Wish {
            serial: serial.to_vec(),
            reason,
        })
    }

    fn judge_wish(&self, client: &Client, wish: &Wish) -> Result<(), Refusal> {
        let refuse = |fail_info, text: &str| Err(Refusal::new(fail_info, text));
        let Client::Certificate { serial, .. } = client else {
            return refuse(
                FailInfo::WRONG_INTEGRITY,
                "an rr is signed by the certificate that it is about (RFC 9483, 4.2)",
            );
        };
        let number = hex(&wish.serial);
        if !self.register.has(&number) {
            return refuse(
                FailInfo::BAD_CERT_ID,
                "this CA issued no certificate with that serialNumber",
            );
        }
        if *serial != wish.serial {
            return refuse(
                FailInfo::NOT_AUTHORIZED,
                "an rr is signed by the certificate that it is about (RFC 9483, 4.2)",
            );
        }
        match (self.register.revoked(&number), wish.reason) {
            (Some(revoked), REMOVE_FROM_CRL) if revoked.on_hold() => Ok(()),
            (_, REMOVE_FROM_CRL) => refuse(FailInfo::BAD_REQUEST, "the certificate is not on hold"),
            (Some(revoked), _) if !revoked.on_hold() => {
                refuse(FailInfo::CERT_REVOKED, "the certificate is revoked already")
            }
            _ => Ok(()),
        }
    }
}

fn rp<'a>(status: PkiStatusInfo<'a>, rev_certs: Vec<CertId<'a>>) -> PkiBody<'a> {
    PkiBody::Rp(RevRepContent {
        status: vec![status],
        rev_certs,
        crls: Vec::new(),
    })
}
