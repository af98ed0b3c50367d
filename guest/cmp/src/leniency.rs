//! Deviations from DER that real peers show, each accepted only where its switch is on.

use alloc::string::String;
use alloc::vec::Vec;

use crate::der::Reader;
use crate::error::{Error, Result};
use crate::limits;

/// Which deviations are accepted. All are off by default: that is strict DER.
///
/// What is accepted is also reported, and the octets are kept: protection is computed over
/// the message as it was received. Writing a message anew from its fields gives DER for all
/// that is taken apart; what is kept as DER (names, algorithms' parameters, certificates,
/// values of InfoTypeAndValue) is written as it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Leniency {
    /// Lengths in more octets than needed (X.690, 10.1).
    pub non_minimal_lengths: bool,
    /// Fractions of a second that DER does not have: ending with zeros (X.690, 11.7.3), or
    /// in a time of a certificate or CRL at all (RFC 5280, 4.1.2.5.2). In messageTime and
    /// the other times of CMP a fraction in DER is legal and needs no switch.
    pub fractional_seconds: bool,
    /// raVerified with an EXPLICIT tag, `A0 02 05 00` in place of `80 00`: the module of
    /// RFC 4211 has IMPLICIT tags.
    pub explicit_ra_verified: bool,
    /// An optional field that is there with an empty SEQUENCE SIZE (1..MAX), such as
    /// extraCerts without a certificate. It is taken as absent.
    pub empty_lists: bool,
}

impl Leniency {
    /// Nothing but DER.
    pub const STRICT: Self = Self {
        non_minimal_lengths: false,
        fractional_seconds: false,
        explicit_ra_verified: false,
        empty_lists: false,
    };

    /// Whether this deviation is accepted.
    pub fn allows(self, deviation: Deviation) -> bool {
        match deviation {
            Deviation::NonMinimalLength => self.non_minimal_lengths,
            Deviation::FractionalSeconds => self.fractional_seconds,
            Deviation::ExplicitRaVerified => self.explicit_ra_verified,
            Deviation::EmptyList => self.empty_lists,
        }
    }
}

/// A deviation that has a switch in [`Leniency`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deviation {
    /// A length in more octets than needed.
    NonMinimalLength,
    /// A fraction of a second where DER or RFC 5280 has none.
    FractionalSeconds,
    /// raVerified with an EXPLICIT tag.
    ExplicitRaVerified,
    /// An empty SEQUENCE SIZE (1..MAX) in an optional field.
    EmptyList,
}

impl Deviation {
    /// The name of its switch, as in `wit/message.wit`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NonMinimalLength => "non-minimal-lengths",
            Self::FractionalSeconds => "fractional-seconds",
            Self::ExplicitRaVerified => "explicit-ra-verified",
            Self::EmptyList => "empty-lists",
        }
    }
}

/// One deviation that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toleration {
    /// What was accepted.
    pub which: Deviation,
    /// Octets from the start of the input.
    pub offset: usize,
    /// The field in the words of the RFC, as [`Error::path`] has it.
    pub path: String,
}

/// What was read, and what had to be tolerated for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tolerant<T> {
    /// What was read.
    pub value: T,
    /// The first deviations in the order of their offsets: [`limits::TOLERATIONS`] at most,
    /// fewer in a long input ([`limits::REREAD`]). Those after them are accepted unlisted.
    pub tolerations: Vec<Toleration>,
}

/// What a reader passes over without a fault: every deviation before an offset, where each
/// was judged already, and from there on those that are allowed.
///
/// Every reader and element carries one, so it is a number: the offset in the lower 24 bits,
/// which is more than [`limits::MESSAGE`], and a bit for each [`Deviation`] above them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tolerance(u32);

impl Tolerance {
    /// None at all: strict.
    pub(crate) const NONE: Self = Self(0);

    /// For octets that were read before and found acceptable.
    pub(crate) const JUDGED: Self = Self(u32::MAX);

    const UNTIL: u32 = (1 << 24) - 1;

    fn before(until: usize) -> Self {
        Self(u32::try_from(until).map_or(Self::UNTIL, |until| until.min(Self::UNTIL)))
    }

    fn and_beyond(self, leniency: Leniency) -> Self {
        let all = [
            Deviation::NonMinimalLength,
            Deviation::FractionalSeconds,
            Deviation::ExplicitRaVerified,
            Deviation::EmptyList,
        ];
        let allowed = all.into_iter().filter(|which| leniency.allows(*which));
        allowed.fold(self, |sum, which| Self(sum.0 | Self::bit(which)))
    }

    fn bit(deviation: Deviation) -> u32 {
        1 << (24 + deviation as u32)
    }

    #[cold]
    pub(crate) fn covers(self, offset: usize, deviation: Deviation) -> bool {
        offset < (self.0 & Self::UNTIL) as usize || self.0 & Self::bit(deviation) != 0
    }
}

/// Reads all of `der`.
///
/// The strict path stays free of bookkeeping this way: a deviation is a fault like any other,
/// with its offset and path. Where it is allowed, the input is read again with it tolerated.
/// This works because `read` comes upon deviations in the order of their offsets.
pub(crate) fn read_with<'a, T>(
    der: &'a [u8],
    leniency: Leniency,
    read: impl Fn(&mut Reader<'a>) -> Result<T>,
) -> Result<Tolerant<T>> {
    let mut tolerance = Tolerance::NONE;
    let mut tolerations = Vec::new();
    loop {
        let mut reader = Reader::tolerating(der, tolerance);
        let fault = match read(&mut reader).and_then(|value| reader.finish().map(|()| value)) {
            Ok(value) => return Ok(Tolerant { value, tolerations }),
            Err(fault) => fault,
        };
        let Some(which) = accepted(&fault, leniency, tolerance) else {
            return Err(fault);
        };
        let offset = fault.offset();
        tolerance = Tolerance::before(offset + 1);
        tolerations.push(Toleration {
            which,
            offset,
            path: fault.path(),
        });
        let read_again = tolerations.len() * der.len();
        if tolerations.len() == limits::TOLERATIONS || read_again >= limits::REREAD {
            tolerance = tolerance.and_beyond(leniency);
        }
    }
}

/// The deviation behind a fault, if it is allowed and new.
fn accepted(fault: &Error, leniency: Leniency, tolerance: Tolerance) -> Option<Deviation> {
    let which = fault.rule().deviation()?;
    let new = !tolerance.covers(fault.offset(), which);
    (leniency.allows(which) && new).then_some(which)
}
