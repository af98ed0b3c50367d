//! genm: what the CA tells (RFC 9483, 4.3).

use abide_cmp::der::{Writer, tag};
use abide_cmp::{CertTemplate, FailInfo, InfoTypeAndValue, InfoValue, Name, PkiBody, Time, oid};

use super::{Answered, Ca, Request, Thread};
use crate::books::Event;
use crate::client::Client;
use crate::issue;
use crate::refusal::{Refusal, Trouble};

impl Ca {
    /// genm.
    pub(super) fn inform(
        &mut self,
        request: &Request<'_>,
        client: &Client,
        questions: &[InfoTypeAndValue<'_>],
    ) -> Result<Answered, Trouble> {
        if let Some(answered) = self.repeated(request)? {
            return Ok(answered);
        }
        let thread = Thread {
            client,
            operation: "genm".into(),
            cert_req_id: -1,
        };
        if self.poll_count() > 0 {
            return Ok(self.put_off(request, &thread)?);
        }
        self.inform_now(request, &thread, questions)
    }

    pub(super) fn inform_now(
        &mut self,
        request: &Request<'_>,
        thread: &Thread<'_>,
        questions: &[InfoTypeAndValue<'_>],
    ) -> Result<Answered, Trouble> {
        let [question] = questions else {
            return Err(Refusal::new(
                FailInfo::BAD_REQUEST,
                "ask one question at a time (RFC 9483, 4.3)",
            )
            .into());
        };
        let (info_type, value) = self.tell(question, request.now)?;
        let answer = InfoTypeAndValue {
            info_type,
            value: value.as_deref(),
        };
        let event = Event::Informed {
            about: question.info_type.to_string(),
        };
        let verdict = match question.info_type.name() {
            Some(name) => format!("told about {name}"),
            None => "told".into(),
        };
        let content = PkiBody::Genp(vec![answer]).into();
        Ok(self.commit(request, thread, &content, event, &verdict)?)
    }

    /// The infoType and the DER of the infoValue that answer a question.
    fn tell(
        &self,
        question: &InfoTypeAndValue<'_>,
        now: Time,
    ) -> Result<(oid::Oid<'static>, Option<Vec<u8>>), Trouble> {
        let interpreted = question.interpret().map_err(|error| {
            let text = format!("the infoValue cannot be read: {error}");
            Refusal::new(error.fail_info(), text)
        })?;
        Ok(match question.info_type {
            oid::IT_CA_CERTS => {
                let root = &self.authority.root.certificate;
                let list = Writer::encode(|w| w.sequence(|w| w.raw(root)));
                (oid::IT_CA_CERTS, Some(list))
            }
            // The root never changes.
            oid::IT_ROOT_CA_CERT => (oid::IT_ROOT_CA_KEY_UPDATE, None),
            oid::IT_CERT_REQ_TEMPLATE => (oid::IT_CERT_REQ_TEMPLATE, Some(template())),
            oid::IT_CURRENT_CRL => (oid::IT_CURRENT_CRL, Some(self.crl(now)?)),
            oid::IT_CRL_STATUS_LIST => {
                let InfoValue::CrlStatusList(list) = interpreted else {
                    return Err(Refusal::new(
                        FailInfo::BAD_REQUEST,
                        "a crlStatusList says which CRL is wanted (RFC 9483, 4.3.4)",
                    )
                    .into());
                };
                let newer = list
                    .iter()
                    .any(|status| status.this_update.is_none_or(|have| have < now));
                let crls = match newer {
                    true => {
                        let crl = self.crl(now)?;
                        Some(Writer::encode(|w| w.sequence(|w| w.raw(&crl))))
                    }
                    false => None,
                };
                (oid::IT_CRLS, crls)
            }
            other => {
                return Err(Refusal::new(
                    FailInfo::BAD_REQUEST,
                    format!("this CA has nothing to tell about {other}"),
                )
                .into());
            }
        })
    }

    fn crl(&self, now: Time) -> anyhow::Result<Vec<u8>> {
        issue::crl(&self.authority.root, &self.register, now)
    }
}

/// A subject to be filled in and a P-256 key (RFC 9483, 4.3.3).
fn template() -> Vec<u8> {
    let wanted = CertTemplate {
        subject: Some(Name::NULL),
        ..CertTemplate::default()
    };
    Writer::encode(|w| {
        w.sequence(|w| {
            wanted.write(w);
            w.sequence(|w| {
                w.sequence(|w| {
                    w.oid(oid::REG_CTRL_ALG_ID);
                    w.sequence(|w| {
                        w.oid(oid::EC_PUBLIC_KEY);
                        w.element(tag::OID, oid::P256.content());
                    });
                });
            });
        });
    })
}
