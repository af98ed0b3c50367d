use alloc::borrow::Cow;

use super::{Element, Writer, tag};
use crate::error::{Error, Result, Rule};
use crate::leniency::Tolerance;
use crate::limits;

/// An INTEGER that may be larger than the machine's, kept as its octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integer<'a>(Cow<'a, [u8]>);

impl<'a> Integer<'a> {
    /// Reads an INTEGER of at most [`limits::INTEGER`] octets.
    pub(crate) fn from_element(element: &Element<'a>) -> Result<Self> {
        let octets = element.big_integer()?;
        if octets.len() > limits::INTEGER {
            let rule = Rule::Limit {
                what: "octets of an INTEGER",
                limit: limits::INTEGER,
            };
            return Err(Error::new(element.offset, rule));
        }
        Ok(Self(Cow::Borrowed(octets)))
    }

    /// From octets in two's complement; none where DER would write them otherwise.
    pub fn from_octets(octets: &'a [u8]) -> Option<Self> {
        let element = Element {
            tag: tag::INTEGER,
            value: octets,
            raw: octets,
            offset: 0,
            tolerance: Tolerance::NONE,
        };
        Self::from_element(&element).ok()
    }

    /// The octets in two's complement.
    pub fn octets(&self) -> &[u8] {
        &self.0
    }

    /// The value, or the nearest that fits.
    pub fn saturating(&self) -> i64 {
        let negative = self.0[0] & 0x80 != 0;
        if self.0.len() > 8 {
            return if negative { i64::MIN } else { i64::MAX };
        }
        let start = if negative { -1 } else { 0 };
        self.0
            .iter()
            .fold(start, |sum, &octet| (sum << 8) | i64::from(octet))
    }
}

impl From<i64> for Integer<'_> {
    fn from(value: i64) -> Self {
        let der = Writer::encode(|w| w.integer(value));
        Self(Cow::Owned(der[2..].to_vec()))
    }
}

impl Writer {
    /// An INTEGER of any size.
    pub fn big_integer(&mut self, value: &Integer<'_>) {
        self.element(tag::INTEGER, value.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;

    #[test]
    fn values_that_do_not_fit_saturate() {
        let read = |der: &[u8]| {
            let element = Reader::new(der).any().unwrap();
            Integer::from_element(&element).map(|integer| integer.saturating())
        };
        assert_eq!(read(&[2, 1, 0]).unwrap(), 0);
        assert_eq!(read(&[2, 1, 0xff]).unwrap(), -1);
        assert_eq!(
            read(&[2, 8, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).unwrap(),
            i64::MAX
        );
        assert_eq!(
            read(&[2, 9, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]).unwrap(),
            i64::MAX
        );
        assert_eq!(
            read(&[2, 9, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0]).unwrap(),
            i64::MIN
        );
        let mut long = alloc::vec![2, 33, 1];
        long.resize(35, 0);
        assert!(read(&long).is_err());
    }

    #[test]
    fn small_values_come_back() {
        for value in [0, 1, -1, 127, 128, -128, -129, i64::MAX, i64::MIN] {
            assert_eq!(Integer::from(value).saturating(), value);
        }
    }
}
