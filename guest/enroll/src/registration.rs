//! What a registration authority does besides (RFC 9483, 5.2): it vouches for a proof of
//! possession, and adds its protection to a request.

use abide_cmp::{
    Certificate, GeneralName, PkiBody, PkiHeader, PkiMessage, Time, protection::SignatureAlgorithm,
};
use minicbor::bytes::ByteVec;

use crate::driver::Error;
use crate::enrollment::{Credential, Enrollment, Operation, Registration};
use crate::host::Host;
use crate::plan::{Plan, invalid};
use crate::record::TransactionRecord;
use crate::request;

/// Whether raVerified takes the place of the proof of possession.
pub(crate) fn is_ra_verified(enrollment: &Enrollment) -> bool {
    let registration = enrollment.registration.as_ref();
    registration.is_some_and(|registration| registration.ra_verified)
}

/// Whether the request goes out in a nested message.
pub(crate) fn adds_protection(enrollment: &Enrollment) -> bool {
    let registration = enrollment.registration.as_ref();
    registration.is_some_and(|registration| registration.added_protection.is_some())
}

/// Checks what a registration authority gives, before anything is stored.
pub(crate) fn check(enrollment: &Enrollment, host: &dyn Host) -> Result<(), Error> {
    let Some(registration) = &enrollment.registration else {
        return Ok(());
    };
    if registration.ra_verified {
        if !matches!(enrollment.operation, Operation::Ir | Operation::Cr) {
            return Err(invalid(
                "raVerified goes with ir and cr: a kur keeps its protection, and a p10cr its \
                 signature (RFC 9483, 5.2.3)",
            ));
        }
        if matches!(enrollment.credential, Credential::Secret(_))
            && registration.added_protection.is_none()
        {
            return Err(invalid(
                "raVerified is the word of a registration authority, which is known by its \
                 certificate: sign the request, or add a protection (RFC 9483, 5.2.3)",
            ));
        }
    }
    let Some(credential) = &registration.added_protection else {
        return Ok(());
    };
    let own = Certificate::from_der(&credential.certificate)
        .map_err(|error| invalid(alloc::format!("the RA's certificate: {error}")))?;
    let key = host
        .public_key(&credential.key)
        .map_err(|error| Error::Key(error.0))?;
    if key != own.public_key.raw {
        return Err(invalid(alloc::format!(
            "the RA's private key does not belong to its certificate ('{}')",
            own.subject
        )));
    }
    SignatureAlgorithm::for_key(&own.public_key)
        .map_err(|error| invalid(alloc::format!("the RA's key: {error}")))?;
    Ok(())
}

impl Registration {
    /// Gives everything that decides how a request looks, field by field.
    pub(crate) fn add_to(&self, mut add: impl FnMut(&[u8])) {
        add(b"registration");
        add(&[u8::from(self.ra_verified)]);
        if let Some(credential) = &self.added_protection {
            add(&credential.certificate);
            credential.chain.iter().for_each(|der| add(der));
        }
    }
}

/// Wraps the request that was just made in a nested message, where protection is to be added.
/// transactionID and senderNonce are those of the request (RFC 9483, 5.2.2.1), so that the
/// answer fits both. What follows the request needs no approval and goes as it is.
pub(crate) fn wrap(
    plan: &Plan<'_>,
    host: &dyn Host,
    record: &mut TransactionRecord,
    now_ms: u64,
) -> Result<(), Error> {
    let registration = plan.enrollment.registration.as_ref();
    let Some(credential) = registration.and_then(|given| given.added_protection.as_ref()) else {
        return Ok(());
    };
    let unreadable =
        |error: abide_cmp::Error| Error::Invalid(alloc::format!("the own request: {error}"));
    let inner = PkiMessage::from_der(&record.last_request).map_err(unreadable)?;
    let own = Certificate::from_der(&credential.certificate).map_err(unreadable)?;
    let mut header = PkiHeader::new(
        GeneralName::Directory(own.subject.clone()),
        inner.header.recipient.clone(),
    );
    header.pvno = inner.header.pvno;
    header.message_time = Some(Time::from_unix((now_ms / 1000) as i64));
    header.sender_kid = own.subject_key_identifier();
    header.transaction_id = inner.header.transaction_id;
    header.sender_nonce = inner.header.sender_nonce;
    let body = PkiBody::Nested(alloc::vec![&record.last_request[..]]);
    let nested = request::sign(credential, host, header, &body)?;
    record.last_request = ByteVec::from(nested);
    Ok(())
}

/// The answer inside an answer that comes nested, which it need not (RFC 9483, 5.2.2.1). What
/// protects it counts, and is checked as that of any answer; the protection around it does not.
pub(crate) fn unwrapped<'r>(plan: &Plan<'_>, message: PkiMessage<'r>) -> PkiMessage<'r> {
    match message.body {
        PkiBody::Nested(ref messages) if adds_protection(plan.enrollment) => match messages[..] {
            [single] => {
                let leniency = plan.enrollment.allow.leniency();
                let inner = PkiMessage::from_der_with(single, leniency);
                inner.map_or(message, |inner| inner.value)
            }
            _ => message,
        },
        _ => message,
    }
}
