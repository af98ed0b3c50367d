//! What real CAs do against the rules, and what may be accepted of it.

/// One thing that a CA in the field is known to do against RFC 9483, and that is refused
/// unless it is allowed by name: it takes something away from what an answer proves, or from
/// DER. What takes nothing away is always accepted; `docs/conformance.md` lists both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// A request under a MAC is answered under a signature (RFC 9483, 3.2 and 4.1.5). EJBCA
    /// does so unless it is told otherwise, and Siemens' RA always. Whoever holds a signing
    /// certificate under a trusted root can then answer in place of the CA that shares the
    /// secret.
    SignedAnswerToMac,
    /// The CA signs its messages with its CA certificate, whose keyUsage has keyCertSign and
    /// lacks digitalSignature (RFC 9483, 3.2 and 3.5). Nokia's NCM, Insta Certifier and
    /// Siemens' test CA do.
    CaWithoutDigitalSignature,
    /// senderKID of the answer is that of the request, not that of the signer (RFC 9483, 3.1
    /// and 3.5). The signer is found by its name then.
    SenderKidEchoed,
    /// messageTime and other times with fractions of a second that end with zeros, which is
    /// not DER (X.690, 11.7.3). Peers built on Bouncy Castle write milliseconds.
    FractionalSeconds,
    /// An optional list that is there and empty, such as extraCerts without a certificate
    /// (RFC 9810, 5.1: SIZE (1..MAX)). OpenSSL's own test data has one.
    EmptyLists,
}

impl Deviation {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::SignedAnswerToMac,
        Self::CaWithoutDigitalSignature,
        Self::SenderKidEchoed,
        Self::FractionalSeconds,
        Self::EmptyLists,
    ];

    /// The name of its option, as in `wit/transactions.wit`.
    pub fn name(self) -> &'static str {
        match self {
            Self::SignedAnswerToMac => "signed-answer-to-mac",
            Self::CaWithoutDigitalSignature => "ca-without-digital-signature",
            Self::SenderKidEchoed => "sender-kid-echoed",
            Self::FractionalSeconds => "fractional-seconds",
            Self::EmptyLists => "empty-lists",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Which deviations are accepted. None is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deviations(u8);

impl Deviations {
    /// What is always accepted and nothing more.
    pub const NONE: Self = Self(0);

    /// These and one more.
    #[must_use]
    pub fn with(self, deviation: Deviation) -> Self {
        Self(self.0 | deviation.bit())
    }

    /// Whether this one is accepted.
    pub fn allow(self, deviation: Deviation) -> bool {
        self.0 & deviation.bit() != 0
    }

    /// As they are stored.
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// Deviations of the encoding.
    pub(crate) fn leniency(self) -> abide_cmp::Leniency {
        abide_cmp::Leniency {
            fractional_seconds: self.allow(Deviation::FractionalSeconds),
            empty_lists: self.allow(Deviation::EmptyLists),
            ..abide_cmp::Leniency::STRICT
        }
    }
}

impl FromIterator<Deviation> for Deviations {
    fn from_iter<I: IntoIterator<Item = Deviation>>(deviations: I) -> Self {
        deviations.into_iter().fold(Self::NONE, Self::with)
    }
}

/// The option under which the encoding would have been read.
pub(crate) fn of_encoding(deviation: abide_cmp::Deviation) -> Option<Deviation> {
    match deviation {
        abide_cmp::Deviation::FractionalSeconds => Some(Deviation::FractionalSeconds),
        abide_cmp::Deviation::EmptyList => Some(Deviation::EmptyLists),
        // Only requests have raVerified, and no CA is known for the other.
        abide_cmp::Deviation::ExplicitRaVerified | abide_cmp::Deviation::NonMinimalLength => None,
    }
}
