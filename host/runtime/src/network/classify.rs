//! Which of the contract's errors a failed exchange is. What matters most is whether the request
//! can have been delivered: only if that is certainly not so may anybody ask anew.

use std::error::Error;
use std::io;

use reqwest::Url;
use rustls::AlertDescription;

use crate::error::chain;
use crate::wit::network::NetworkError;

/// No answer came.
pub(super) fn request(url: &Url, error: reqwest::Error) -> NetworkError {
    let text = text(url, &error);
    let tls = find::<rustls::Error>(&error);
    if error.is_connect() {
        // A proxy's refusal of its tunnel counts here too: the request stayed at home.
        return match tls {
            Some(_) => NetworkError::Tls(text),
            None => NetworkError::Unreachable(text),
        };
    }
    // With TLS 1.3 a server judges our certificate after we have sent the request, and throws
    // the request away unread with the connection.
    if let Some(rustls::Error::AlertReceived(alert)) = tls
        && about_certificates(*alert)
    {
        return NetworkError::Tls(text);
    }
    if error.is_builder() {
        return NetworkError::BadEndpoint(text);
    }
    answer(url, error)
}

/// The answer broke off.
pub(super) fn answer(url: &Url, error: reqwest::Error) -> NetworkError {
    let text = text(url, &error);
    if error.is_timeout() {
        NetworkError::Timeout(text)
    } else {
        NetworkError::Interrupted(text)
    }
}

/// The alerts by which a server refuses a client's certificate (RFC 8446, 6.2).
fn about_certificates(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::AccessDenied
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::HandshakeFailure
            | AlertDescription::UnknownCA
            | AlertDescription::UnsupportedCertificate
    )
}

/// The endpoint and the causes in one line. The outermost error only says that a request failed.
fn text(url: &Url, error: &reqwest::Error) -> String {
    match error.source() {
        Some(cause) => format!("{url}: {}", chain(cause)),
        None => format!("{url}: {}", chain(error)),
    }
}

/// The first cause of a type. An I/O error hides what it was made from from the usual walk.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .map(|inner| inner as &(dyn Error + 'static));
        next = inner.or_else(|| error.source());
    }
    None
}
