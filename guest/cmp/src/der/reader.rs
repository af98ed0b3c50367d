use super::tag;
use crate::error::{Error, Result, Rule};
use crate::leniency::{Deviation, Tolerance};
use crate::limits;
use crate::oid::Oid;

/// One tag, length and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The identifier octet.
    pub tag: u8,
    /// The value.
    pub value: &'a [u8],
    /// Tag, length and value as they were read.
    pub raw: &'a [u8],
    /// Where `raw` starts in the whole input.
    pub offset: usize,
    pub(crate) tolerance: Tolerance,
}

impl<'a> Element<'a> {
    /// A reader over the value.
    pub fn contents(&self) -> Reader<'a> {
        Reader {
            rest: self.value,
            offset: self.value_offset() as u32,
            tolerance: self.tolerance,
        }
    }

    /// Fails with `rule` unless the deviation behind it is tolerated at `offset`.
    pub(crate) fn tolerate(&self, offset: usize, rule: Rule) -> Result<()> {
        match rule.deviation() {
            Some(deviation) if self.tolerance.covers(offset, deviation) => Ok(()),
            _ => Err(Error::new(offset, rule)),
        }
    }

    /// Reads what is inside a SEQUENCE SIZE (1..MAX) with `read`.
    pub(crate) fn list<T>(
        &self,
        read: impl FnMut(&mut Reader<'a>) -> Result<T>,
    ) -> Result<alloc::vec::Vec<T>> {
        if self.value.is_empty() {
            // The length octet, so that no other deviation has this offset.
            self.tolerate(self.offset + 1, Rule::EmptyList)?;
        }
        self.contents().collect(read)
    }

    /// Where the value starts in the whole input.
    pub(crate) fn value_offset(&self) -> usize {
        self.offset + self.raw.len() - self.value.len()
    }

    fn fault<T>(&self, rule: Rule) -> Result<T> {
        Err(Error::new(self.offset, rule))
    }

    /// The value of an INTEGER that fits.
    pub fn integer(&self) -> Result<i64> {
        let value = self.big_integer()?;
        if value.len() > 8 {
            return self.fault(Rule::Limit {
                what: "octets of this INTEGER",
                limit: 8,
            });
        }
        let negative = value[0] & 0x80 != 0;
        let start = if negative { -1i64 } else { 0 };
        Ok(value
            .iter()
            .fold(start, |sum, &octet| (sum << 8) | i64::from(octet)))
    }

    /// The octets of an INTEGER of any size, in two's complement.
    pub fn big_integer(&self) -> Result<&'a [u8]> {
        match self.value {
            [] => self.fault(Rule::NotDistinguished("an INTEGER without octets")),
            [0x00, next, ..] if next & 0x80 == 0 => self.fault(Rule::NotDistinguished(
                "an INTEGER with a needless leading octet",
            )),
            [0xff, next, ..] if next & 0x80 != 0 => self.fault(Rule::NotDistinguished(
                "an INTEGER with a needless leading octet",
            )),
            value => Ok(value),
        }
    }

    /// The octets of a BIT STRING without unused bits.
    pub fn octet_aligned_bits(&self) -> Result<&'a [u8]> {
        match self.bits()? {
            (0, bits) => Ok(bits),
            _ => self.fault(Rule::Content("a BIT STRING that does not fill its octets")),
        }
    }

    /// The number of unused bits and the octets of a BIT STRING.
    pub fn bits(&self) -> Result<(u8, &'a [u8])> {
        let Some((&unused, bits)) = self.value.split_first() else {
            return self.fault(Rule::NotDistinguished("a BIT STRING without octets"));
        };
        let padding_is_zero = match bits.last() {
            None => unused == 0,
            Some(last) => unused < 8 && last.trailing_zeros() >= u32::from(unused),
        };
        if padding_is_zero {
            Ok((unused, bits))
        } else {
            self.fault(Rule::NotDistinguished(
                "unused bits of a BIT STRING that are not zero",
            ))
        }
    }

    /// An OCTET STRING of a bounded length, for identifiers and nonces.
    pub fn identifier(&self) -> Result<&'a [u8]> {
        if self.value.len() > limits::IDENTIFIER {
            return self.fault(Rule::Limit {
                what: "octets of an identifier",
                limit: limits::IDENTIFIER,
            });
        }
        Ok(self.value)
    }

    /// The text of a UTF8String.
    pub fn utf8(&self) -> Result<&'a str> {
        core::str::from_utf8(self.value)
            .or_else(|_| self.fault(Rule::Content("a UTF8String that is not UTF-8")))
    }
}

/// Reads DER from borrowed octets and knows how far it has come.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    // Readers are copied a lot, and offsets beyond a message's are for errors only.
    offset: u32,
    tolerance: Tolerance,
}

impl<'a> Reader<'a> {
    /// A reader from the start of `input`.
    pub fn new(input: &'a [u8]) -> Self {
        Self::tolerating(input, Tolerance::NONE)
    }

    /// A reader over octets that were read before and found acceptable: a deviation that was
    /// tolerated then is tolerated again.
    pub(crate) fn judged(input: &'a [u8]) -> Self {
        Self::tolerating(input, Tolerance::JUDGED)
    }

    pub(crate) fn tolerating(input: &'a [u8], tolerance: Tolerance) -> Self {
        Self {
            rest: input,
            offset: 0,
            tolerance,
        }
    }

    /// Octets read so far, from the start of the whole input.
    pub fn offset(&self) -> usize {
        self.offset as usize
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A fault at the present position.
    pub fn fault<T>(&self, rule: Rule) -> Result<T> {
        Err(Error::new(self.offset(), rule))
    }

    /// Fails unless everything was read.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            self.fault(Rule::TrailingOctets)
        }
    }

    /// The next identifier octet.
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The next element, whatever it is.
    pub fn any(&mut self) -> Result<Element<'a>> {
        let offset = self.offset();
        let fault = |rule| Err(Error::new(offset, rule));
        let (tag, length, header) = match *self.rest {
            [] => return fault(Rule::Truncated),
            [tag, ..] if tag & 0x1f == 0x1f => return fault(Rule::HighTagNumber),
            [_] => return fault(Rule::Truncated),
            [tag, length @ 0..0x80, ..] => (tag, usize::from(length), 2),
            [_, 0x80, ..] => return fault(Rule::IndefiniteLength),
            [tag, count, ref rest @ ..] => {
                let count = usize::from(count & 0x7f);
                // Four octets of length are far beyond the longest message.
                if count > 4 {
                    return fault(Rule::Limit {
                        what: "octets",
                        limit: limits::MESSAGE,
                    });
                }
                let Some(octets) = rest.get(..count) else {
                    return fault(Rule::Truncated);
                };
                let length = octets
                    .iter()
                    .fold(0usize, |sum, &o| (sum << 8) | usize::from(o));
                if (length < 0x80 || octets[0] == 0)
                    && !self.tolerance.covers(offset, Deviation::NonMinimalLength)
                {
                    return fault(Rule::LengthNotMinimal);
                }
                (tag, length, 2 + count)
            }
        };
        let Some(end) = header
            .checked_add(length)
            .filter(|&end| end <= self.rest.len())
        else {
            return fault(Rule::Truncated);
        };
        let (raw, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.offset = (offset + end) as u32;
        Ok(Element {
            tag,
            value: &raw[header..],
            raw,
            offset,
            tolerance: self.tolerance,
        })
    }

    /// The next element, which must have this tag.
    pub fn element(&mut self, tag: u8, expected: &'static str) -> Result<Element<'a>> {
        match self.peek() {
            Some(found) if found == tag => self.any(),
            Some(found) => self.fault(Rule::UnexpectedTag { expected, found }),
            None => self.fault(Rule::Missing(expected)),
        }
    }

    /// The next element if it has this tag.
    pub fn optional(&mut self, tag: u8) -> Result<Option<Element<'a>>> {
        if self.peek() == Some(tag) {
            self.any().map(Some)
        } else {
            Ok(None)
        }
    }

    /// The contents of the next element, which must be a SEQUENCE.
    pub fn sequence(&mut self) -> Result<Reader<'a>> {
        Ok(self.element(tag::SEQUENCE, "a SEQUENCE")?.contents())
    }

    /// The one element inside an EXPLICIT `[number]`, if it is there.
    pub fn explicit<T>(
        &mut self,
        number: u8,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(outer) = self.optional(tag::constructed(number))? else {
            return Ok(None);
        };
        let mut inner = outer.contents();
        let value = read(&mut inner)?;
        inner.finish()?;
        Ok(Some(value))
    }

    /// Reads elements with `read` until the end.
    pub fn collect<T>(
        &mut self,
        read: impl FnMut(&mut Reader<'a>) -> Result<T>,
    ) -> Result<alloc::vec::Vec<T>> {
        self.collect_up_to(limits::ELEMENTS, "elements", read)
    }

    /// Reads at most `limit` elements with `read` until the end.
    pub(crate) fn collect_up_to<T>(
        &mut self,
        limit: usize,
        what: &'static str,
        mut read: impl FnMut(&mut Reader<'a>) -> Result<T>,
    ) -> Result<alloc::vec::Vec<T>> {
        let mut items = alloc::vec::Vec::new();
        while !self.is_empty() {
            if items.len() == limit {
                return self.fault(Rule::Limit { what, limit });
            }
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// Reads a SEQUENCE SIZE (1..MAX) of elements with `read`.
    pub fn sequence_of<T>(
        &mut self,
        read: impl FnMut(&mut Reader<'a>) -> Result<T>,
    ) -> Result<alloc::vec::Vec<T>> {
        self.element(tag::SEQUENCE, "a SEQUENCE")?.list(read)
    }

    /// An INTEGER that fits 64 bits.
    pub fn integer(&mut self) -> Result<i64> {
        self.element(tag::INTEGER, "an INTEGER")?.integer()
    }

    /// An OBJECT IDENTIFIER.
    pub fn oid(&mut self) -> Result<Oid<'a>> {
        let element = self.element(tag::OID, "an OBJECT IDENTIFIER")?;
        if element.value.len() > limits::OID {
            return element.fault(Rule::Limit {
                what: "octets of an OBJECT IDENTIFIER",
                limit: limits::OID,
            });
        }
        Oid::from_content(element.value).map_or_else(
            || {
                element.fault(Rule::NotDistinguished(
                    "an OBJECT IDENTIFIER that is malformed",
                ))
            },
            Ok,
        )
    }

    /// An OCTET STRING.
    pub fn octet_string(&mut self) -> Result<Element<'a>> {
        self.element(tag::OCTET_STRING, "an OCTET STRING")
    }

    /// A BOOLEAN.
    pub fn boolean(&mut self) -> Result<bool> {
        let element = self.element(tag::BOOLEAN, "a BOOLEAN")?;
        match element.value {
            [0x00] => Ok(false),
            [0xff] => Ok(true),
            _ => element.fault(Rule::NotDistinguished("a BOOLEAN other than 00 and FF")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(octets: &[u8]) -> Result<Element<'_>> {
        Reader::new(octets).any()
    }

    #[test]
    fn lengths_are_definite_and_minimal() {
        assert_eq!(any(&[0x04, 0x01, 0xaa]).unwrap().value, &[0xaa]);
        assert_eq!(
            *any(&[0x30, 0x80, 0, 0]).unwrap_err().rule(),
            Rule::IndefiniteLength
        );
        assert_eq!(
            *any(&[0x04, 0x81, 0x01, 0xaa]).unwrap_err().rule(),
            Rule::LengthNotMinimal
        );
        assert_eq!(
            *any(&[0x04, 0x82, 0x00, 0x80]).unwrap_err().rule(),
            Rule::LengthNotMinimal
        );
        let mut long = alloc::vec![0x04, 0x81, 0x80];
        long.resize(3 + 128, 0);
        assert_eq!(any(&long).unwrap().value.len(), 128);
        long.pop();
        assert_eq!(*any(&long).unwrap_err().rule(), Rule::Truncated);
        assert!(any(&[0x04, 0x85, 1, 0, 0, 0, 0]).is_err());
        assert_eq!(
            *any(&[0x04, 0x84, 0xff, 0xff, 0xff, 0xff])
                .unwrap_err()
                .rule(),
            Rule::Truncated
        );
        assert_eq!(
            *any(&[0x1f, 0x20, 0x00]).unwrap_err().rule(),
            Rule::HighTagNumber
        );
    }

    #[test]
    fn integers_are_minimal_and_signed() {
        let integer = |octets: &[u8]| Reader::new(octets).integer();
        assert_eq!(integer(&[2, 1, 0]).unwrap(), 0);
        assert_eq!(integer(&[2, 1, 0xff]).unwrap(), -1);
        assert_eq!(integer(&[2, 2, 0x00, 0x80]).unwrap(), 128);
        assert_eq!(integer(&[2, 2, 0xff, 0x7f]).unwrap(), -129);
        assert_eq!(
            integer(&[2, 8, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).unwrap(),
            i64::MAX
        );
        assert!(integer(&[2, 9, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(integer(&[2, 2, 0x00, 0x7f]).is_err());
        assert!(integer(&[2, 2, 0xff, 0x80]).is_err());
        assert!(integer(&[2, 0]).is_err());
    }

    #[test]
    fn unused_bits_are_zero() {
        let bits = |octets: &[u8]| any(octets).and_then(|e| e.bits().map(|(u, b)| (u, b.to_vec())));
        assert_eq!(bits(&[3, 2, 7, 0x80]).unwrap(), (7, alloc::vec![0x80]));
        assert!(bits(&[3, 2, 7, 0x81]).is_err());
        assert!(bits(&[3, 1, 1]).is_err());
        assert!(bits(&[3, 2, 8, 0]).is_err());
        assert!(bits(&[3, 0]).is_err());
    }

    #[test]
    fn faults_know_their_offset() {
        let input = [0x30, 0x05, 0x02, 0x01, 0x00, 0x04, 0x00];
        let mut outer = Reader::new(&input).sequence().unwrap();
        outer.integer().unwrap();
        let fault = outer.integer().unwrap_err();
        assert_eq!(fault.offset(), 5);
        assert_eq!(
            *fault.rule(),
            Rule::UnexpectedTag {
                expected: "an INTEGER",
                found: 4
            }
        );
    }
}
