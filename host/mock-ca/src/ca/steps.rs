//! What each kind of request does.

use abide_cmp::protection::{self, Hash};
use abide_cmp::{
    CertId, CertOrEncCert, CertRepMessage, CertResponse, CertStatus, Certificate, CertifiedKeyPair,
    EncryptedKey, EnvelopedData, ErrorMsgContent, FailInfo, Name, PVNO_3, PkiBody, PkiFreeText,
    PkiMessage, PkiStatus, PkiStatusInfo, PollRep, oid,
};
use anyhow::Context;

use super::{Answered, Ca, Request, Thread};
use crate::books::{Event, base64, hex};
use crate::client::Client;
use crate::envelope::Content;
use crate::issue::{Plan, Purpose};
use crate::key_generation::{self, Recipient};
use crate::refusal::{Refusal, Trouble};
use crate::transactions::{State, Transaction};
use crate::wanted::{Wanted, WantedKey};
use crate::{Repeat, limits};

impl Ca {
    /// The answer to a first request under a transactionID that is known, if it is.
    pub(super) fn repeated(&mut self, request: &Request<'_>) -> Result<Option<Answered>, Refusal> {
        let replay = self.options.repeat == Repeat::Replay;
        let Some(transaction) = self.transactions.get(&request.id) else {
            return Ok(None);
        };
        let again = if replay {
            transaction.answer_again(&request.sha256)
        } else {
            None
        };
        match again {
            Some(octets) => Ok(Some(request.replayed(octets))),
            None => Err(Refusal::new(
                FailInfo::TRANSACTION_ID_IN_USE,
                "this transactionID is in use; begin a new transaction under a new one",
            )),
        }
    }

    /// Tells who asked for something else than a certificate to wait: by an error, which has a
    /// place for it in every operation (RFC 9483, 4.4).
    pub(super) fn put_off(
        &mut self,
        request: &Request<'_>,
        thread: &Thread<'_>,
    ) -> anyhow::Result<Answered> {
        let content =
            PkiBody::Error(ErrorMsgContent::new(PkiStatusInfo::new(PkiStatus::Waiting))).into();
        let event = Event::Waiting {
            remaining: self.poll_count() - 1,
            message: base64(request.octets),
        };
        self.commit(request, thread, &content, event, "waiting")
    }

    /// ir, cr, p10cr and kur.
    pub(super) fn begin(
        &mut self,
        request: &Request<'_>,
        client: &Client,
    ) -> Result<Answered, Trouble> {
        if let Some(answered) = self.repeated(request)? {
            return Ok(answered);
        }
        let operation = request.kind().to_string();
        let cert_req_id = match &request.message.body {
            PkiBody::P10cr(_) => self.options.p10cr_cert_req_id,
            _ => 0,
        };
        let read = check_update(&request.message.body, client)
            .and_then(|()| {
                let by_ra = request.vouched || self.is_registration_authority(client);
                Wanted::read(&request.message.body, by_ra)
            })
            .and_then(|wanted| check_version(request.message, wanted));
        let wanted = match read {
            Ok(wanted) => wanted,
            // What is wrong with the wish belongs into the answer to it (RFC 9483, 4.1.1).
            Err(refusal) => {
                let status = PkiStatusInfo::rejection(refusal.fail_info, refusal.text.as_str());
                let content = response(&operation, cert_req_id, status, None, Vec::new()).into();
                return Ok(self.refuse_request(request, Some(client), &content, &refusal)?);
            }
        };
        let thread = Thread {
            client,
            operation,
            cert_req_id,
        };
        if self.poll_count() == 0 {
            let implicit = request.message.header.implicit_confirm();
            return self.issue(request, &thread, &wanted, implicit);
        }
        let status = PkiStatusInfo::new(PkiStatus::Waiting);
        let content = response(&thread.operation, cert_req_id, status, None, Vec::new()).into();
        let event = Event::Waiting {
            remaining: self.poll_count() - 1,
            message: base64(request.octets),
        };
        Ok(self.commit(request, &thread, &content, event, "waiting")?)
    }

    /// pollReq. One that comes too early gets a pollRep that does not count.
    pub(super) fn poll(
        &mut self,
        request: &Request<'_>,
        client: &Client,
        ids: &[i64],
    ) -> Result<Answered, Trouble> {
        let replay = self.options.repeat == Repeat::Replay;
        let transaction = self.transaction(request, client)?;
        if replay && let Some(octets) = transaction.answer_again(&request.sha256) {
            return Ok(request.replayed(octets));
        }
        let State::Polling {
            message,
            remaining,
            poll_at,
        } = &transaction.state
        else {
            return Err(Refusal::new(
                FailInfo::BAD_REQUEST,
                "there is nothing to poll for: the certificate was delivered",
            )
            .into());
        };
        check_nonce(request, transaction)?;
        if ids != [transaction.cert_req_id] {
            return Err(Refusal::new(
                FailInfo::BAD_REQUEST,
                format!(
                    "the pollReq is for certReqId {ids:?}, not {}",
                    transaction.cert_req_id
                ),
            )
            .into());
        }
        let (remaining, poll_at) = (*remaining, *poll_at);
        let thread = transaction.thread(client);
        if remaining == 0 && request.now.unix() >= poll_at {
            let original = message.clone();
            let original = PkiMessage::from_der(&original).context("a remembered request")?;
            match &original.body {
                PkiBody::Rr(details) => return self.revoke_now(request, &thread, details),
                PkiBody::Genm(questions) => return self.inform_now(request, &thread, questions),
                _ => {}
            }
            // Whether the proof of possession could be left to an RA was decided at first.
            let wanted = Wanted::read(&original.body, true)?;
            let implicit = original.header.implicit_confirm();
            return self.issue(request, &thread, &wanted, implicit);
        }
        let (remaining, poll_at) = match request.now.unix() < poll_at {
            true => (remaining, poll_at),
            false => (
                remaining - 1,
                request.now.unix() + i64::from(self.options.check_after),
            ),
        };
        let check_after = poll_at - request.now.unix();
        let entry = PollRep {
            cert_req_id: thread.cert_req_id,
            check_after: check_after.into(),
            reason: None,
        };
        let content = PkiBody::PollRep(vec![entry]).into();
        let verdict = format!("wait {check_after} s");
        let event = Event::Polled { remaining, poll_at };
        Ok(self.commit(request, &thread, &content, event, &verdict)?)
    }

    /// certConf.
    pub(super) fn confirm(
        &mut self,
        request: &Request<'_>,
        client: &Client,
        statuses: &[CertStatus<'_>],
    ) -> Result<Answered, Trouble> {
        let replay = self.options.repeat == Repeat::Replay;
        let transaction = self.transaction(request, client)?;
        if replay && let Some(octets) = transaction.answer_again(&request.sha256) {
            return Ok(request.replayed(octets));
        }
        let (certificate, finished) = match &transaction.state {
            State::Polling { .. } => {
                return Err(Refusal::new(
                    FailInfo::BAD_REQUEST,
                    "there is nothing to confirm yet: send a pollReq",
                )
                .into());
            }
            State::Confirming { certificate } => (certificate, false),
            State::Finished { certificate } if certificate.is_empty() => {
                return Err(Refusal::new(
                    FailInfo::BAD_REQUEST,
                    "there is nothing to confirm: no certificate was issued",
                )
                .into());
            }
            State::Finished { certificate } => (certificate, true),
        };
        if !finished {
            check_nonce(request, transaction)?;
        }
        let event = judge(request, transaction, statuses, certificate)?;
        if finished {
            return Err(Refusal::new(
                FailInfo::CERT_CONFIRMED,
                "this certificate was confirmed or rejected before",
            )
            .into());
        }
        let thread = transaction.thread(client);
        let verdict = match &event {
            Event::Rejected { reason } => format!("rejected by the client: {reason}"),
            _ => "confirmed".into(),
        };
        Ok(self.commit(request, &thread, &PkiBody::PkiConf.into(), event, &verdict)?)
    }

    /// Makes the certificate and delivers it.
    fn issue(
        &mut self,
        request: &Request<'_>,
        thread: &Thread<'_>,
        wanted: &Wanted,
        implicit_asked: bool,
    ) -> Result<Answered, Trouble> {
        let root = &self.authority.root;
        let (key, pair) = match &wanted.key {
            WantedKey::Given(key) => (key.clone(), None),
            WantedKey::Generated(preferred) => {
                let pair = key_generation::generate(preferred.as_deref())?;
                (pair.public.clone(), Some(pair))
            }
        };
        let plan = Plan {
            issuer: &root.subject,
            subject: &wanted.subject,
            key,
            purpose: Purpose::EndEntity(wanted.names.clone()),
            now: request.now,
            validity: limits::VALIDITY,
        };
        let certificate = plan.certificate(root.key())?;
        let read = Certificate::from_der(&certificate).context("the new certificate")?;
        let recipient = match thread.client {
            Client::Secret { .. } => Recipient::Secret(&self.options.secret),
            Client::Certificate { certificate, .. } => Recipient::Certificate(certificate),
        };
        let enveloped = pair.map(|pair| pair.enveloped(&recipient, &self.authority.kga));
        let enveloped = enveloped.transpose()?;
        let private_key = match &enveloped {
            Some(der) => Some(EncryptedKey::EnvelopedData(
                EnvelopedData::from_der(der).context("the new private key")?,
            )),
            None => None,
        };
        let implicit_confirm = implicit_asked && self.options.implicit_confirm;
        let event = Event::Issued {
            subject: describe(&wanted.subject),
            serial: hex(read.serial),
            sha256: hex(&Hash::Sha256.digest(&certificate)),
            implicit_confirm,
        };
        let status = match wanted.modified {
            false => PkiStatusInfo::new(PkiStatus::Accepted),
            true => PkiStatusInfo {
                status: PkiStatus::GrantedWithMods,
                status_string: Some(PkiFreeText::new(
                    "only subject, subjectAltName and key are as requested",
                )),
                fail_info: None,
            },
        };
        // Trust anchors may come with a shared secret only (RFC 9810, 5.3.2).
        let root = self.authority.root.certificate.clone();
        let ca_pubs = match thread.client {
            Client::Secret { .. } if thread.operation == "ir" => vec![root.as_slice()],
            _ => Vec::new(),
        };
        let body = response(
            &thread.operation,
            thread.cert_req_id,
            status,
            Some((&certificate, private_key)),
            ca_pubs,
        );
        let content = Content {
            body,
            implicit_confirm,
            delivers: true,
        };
        let verdict = format!("issued {}", describe(&wanted.subject));
        Ok(self.commit(request, thread, &content, event, &verdict)?)
    }

    /// The transaction that a follow-up belongs to, if it comes from the same client.
    fn transaction(
        &mut self,
        request: &Request<'_>,
        client: &Client,
    ) -> Result<&mut Transaction, Refusal> {
        let transaction = self.transactions.get(&request.id).ok_or_else(|| {
            Refusal::new(
                FailInfo::BAD_REQUEST,
                "no transaction is known under this transactionID; begin a new one",
            )
        })?;
        if transaction.client != client.to_string() {
            return Err(Refusal::new(
                FailInfo::WRONG_INTEGRITY,
                "the transaction began with other credentials (RFC 9483, 3.2)",
            ));
        }
        Ok(transaction)
    }
}

impl Transaction {
    fn thread<'a>(&self, client: &'a Client) -> Thread<'a> {
        Thread {
            client,
            operation: self.operation.clone(),
            cert_req_id: self.cert_req_id,
        }
    }
}

/// Whether who wants a key from this CA can read the answer.
fn check_version(message: &PkiMessage<'_>, wanted: Wanted) -> Result<Wanted, Refusal> {
    if matches!(wanted.key, WantedKey::Generated(_)) && message.header.pvno < PVNO_3 {
        return Err(Refusal::new(
            FailInfo::BAD_REQUEST,
            "a key comes in an EnvelopedData, which needs pvno 3 from the first message on \
             (RFC 9483, 4.1.6)",
        ));
    }
    Ok(wanted)
}

/// Whether a kur is signed by the certificate that it updates (RFC 9483, 4.1.3).
fn check_update(body: &PkiBody<'_>, client: &Client) -> Result<(), Refusal> {
    let PkiBody::Kur(requests) = body else {
        return Ok(());
    };
    let Client::Certificate { issuer, serial, .. } = client else {
        return Err(Refusal::new(
            FailInfo::WRONG_INTEGRITY,
            "a kur is signed by the certificate that it updates (RFC 9483, 4.1.3)",
        ));
    };
    let old = requests
        .iter()
        .flat_map(|request| &request.request.controls)
        .find(|control| control.oid == oid::REG_CTRL_OLD_CERT_ID)
        .and_then(|control| CertId::from_der(control.value).ok());
    let fits = old.is_some_and(|old| {
        let named = old
            .issuer
            .directory()
            .is_some_and(|name| name.der() == issuer);
        named && old.serial_number == serial
    });
    match fits {
        true => Ok(()),
        false => Err(Refusal::new(
            FailInfo::BAD_CERT_ID,
            "oldCertID does not name the certificate that signed the request (RFC 9483, 4.1.3)",
        )),
    }
}

/// An ip, cp or kup.
fn response<'a>(
    operation: &str,
    cert_req_id: i64,
    status: PkiStatusInfo<'a>,
    certificate: Option<(&'a [u8], Option<EncryptedKey<'a>>)>,
    ca_pubs: Vec<&'a [u8]>,
) -> PkiBody<'a> {
    let certified_key_pair = certificate.map(|(certificate, private_key)| CertifiedKeyPair {
        cert_or_enc_cert: CertOrEncCert::Certificate(certificate),
        private_key,
        publication_info: None,
    });
    let response = CertResponse {
        cert_req_id,
        status,
        certified_key_pair,
        rsp_info: None,
    };
    let content = CertRepMessage {
        ca_pubs,
        responses: vec![response],
    };
    match operation {
        "ir" => PkiBody::Ip(content),
        "kur" => PkiBody::Kup(content),
        _ => PkiBody::Cp(content),
    }
}

/// What a certConf says about the certificate, after RFC 9810, 5.3.18.
fn judge(
    request: &Request<'_>,
    transaction: &Transaction,
    statuses: &[CertStatus<'_>],
    certificate: &[u8],
) -> Result<Event, Trouble> {
    let bad_request = |text: String| Refusal::new(FailInfo::BAD_REQUEST, text);
    let [status] = statuses else {
        let text = format!(
            "the certConf is about {} certificates instead of one",
            statuses.len()
        );
        return Err(bad_request(text).into());
    };
    if status.cert_req_id != transaction.cert_req_id {
        return Err(bad_request(format!(
            "the certConf is for certReqId {}, not {}",
            status.cert_req_id, transaction.cert_req_id
        ))
        .into());
    }
    let expected = match &status.hash_alg {
        None => {
            let read = Certificate::from_der(certificate).context("a remembered certificate")?;
            let implied = protection::cert_hash(&read);
            if implied.needs_hash_alg {
                return Err(bad_request(
                    "the certificate's signature implies no hash: hashAlg is missing".into(),
                )
                .into());
            }
            implied.value
        }
        Some(_) if request.message.header.pvno < PVNO_3 => {
            return Err(bad_request("hashAlg needs pvno 3 (RFC 9810, 5.3.18)".into()).into());
        }
        Some(algorithm) => Hash::from_identifier(algorithm)
            .map_err(|why| Refusal::new(FailInfo::BAD_ALG, format!("hashAlg: {why}")))?
            .digest(certificate),
    };
    if status.cert_hash != expected {
        return Err(Refusal::new(
            FailInfo::BAD_CERT_ID,
            "certHash is not that of the certificate that was issued",
        )
        .into());
    }
    match &status.status_info {
        None => Ok(Event::Confirmed),
        Some(info) if info.status == PkiStatus::Accepted && info.fail_info.is_none() => {
            Ok(Event::Confirmed)
        }
        Some(info) if info.status == PkiStatus::Rejection => Ok(Event::Rejected {
            reason: info.summary(),
        }),
        Some(info) => {
            Err(bad_request(format!("a certConf cannot say '{}'", info.summary())).into())
        }
    }
}

fn check_nonce(request: &Request<'_>, transaction: &Transaction) -> Result<(), Refusal> {
    if request.message.header.recip_nonce == Some(&transaction.last_nonce) {
        return Ok(());
    }
    Err(Refusal::new(
        FailInfo::BAD_RECIPIENT_NONCE,
        "recipNonce is not the senderNonce of the last answer in this transaction",
    ))
}

fn describe(name: &Name<'_>) -> String {
    match name.is_null() {
        true => "NULL-DN".into(),
        false => name.to_string(),
    }
}
