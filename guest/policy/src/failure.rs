//! Classes of failure: what went wrong decides which tier of waiting applies.
//!
//! A transaction ends with classes of its own. An answer that is no CMP answer is
//! [`Class::Refused`] here; a deadline that passed is the class of what went on until then,
//! mostly [`Class::Transient`].

use core::fmt;

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Class {
    /// No connection, a timeout, or a passing HTTP status without a CMP body. The same request
    /// is sent again inside its transaction; the order's count stays.
    Transient,
    /// The endpoint asks for less. Counted per endpoint; the order's count stays.
    Throttled,
    /// An authenticated refusal that a repetition cannot mend.
    Refused,
    /// An answer that must not be believed, or a certificate that must not be used. Alarmed.
    Security,
    /// A configuration that can never work. It stops until somebody changes it or renews by hand.
    Permanent,
}

impl Class {
    /// The class of an HTTP answer without a CMP body.
    ///
    /// A passing status with a `Retry-After` is a request for less (RFC 9110, 10.2.3), and so
    /// are 429 (RFC 6585, 4) and 503 without one. A status that does not pass by itself, such as
    /// 404, is a refusal: the path may be wrong or the CA not rolled out yet, so it is tried
    /// again, but with the patience of a failed issuance.
    pub fn of_http(status: u16, has_retry_after: bool) -> Self {
        match status {
            429 | 503 => Self::Throttled,
            408 | 425 | 500..=599 if has_retry_after => Self::Throttled,
            408 | 425 | 500..=599 => Self::Transient,
            _ => Self::Refused,
        }
    }

    /// The class of an authenticated rejection, by the bits of its PKIFailureInfo (RFC 9810,
    /// 5.2.3): bit n of `fail_info` is named bit n.
    pub fn of_rejection(fail_info: u32) -> Self {
        const SYSTEM_UNAVAIL: u32 = 1 << 24;
        if fail_info & SYSTEM_UNAVAIL != 0 {
            Self::Throttled
        } else {
            Self::Refused
        }
    }

    /// Whether it counts as a failed issuance of the order when it ends a transaction.
    ///
    /// A transient failure does once it has outlasted the transaction's deadline.
    pub fn counts(self) -> bool {
        self != Self::Throttled
    }

    /// Whether somebody should be told at once.
    pub fn alarms(self) -> bool {
        matches!(self, Self::Security | Self::Permanent)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transient => "transient",
            Self::Throttled => "throttled",
            Self::Refused => "refused",
            Self::Security => "security",
            Self::Permanent => "permanent",
        })
    }
}
