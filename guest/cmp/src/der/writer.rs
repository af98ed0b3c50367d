use alloc::vec::Vec;

use super::tag;
use crate::oid::Oid;

/// Writes DER. Lengths are put in once the contents are known.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// An empty writer.
    pub fn new() -> Self {
        Self::default()
    }

    /// The octets written.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }

    /// The octets that `write` writes.
    pub fn encode(write: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut writer = Self::new();
        write(&mut writer);
        writer.finish()
    }

    /// Octets that are DER already.
    pub fn raw(&mut self, der: &[u8]) {
        self.out.extend_from_slice(der);
    }

    /// An element whose value is given.
    pub fn element(&mut self, tag: u8, value: &[u8]) {
        self.out.push(tag);
        let (octets, count) = length(value.len());
        self.out.extend_from_slice(&octets[..count]);
        self.out.extend_from_slice(value);
    }

    /// An element whose value is written by `contents`.
    pub fn nested(&mut self, tag: u8, contents: impl FnOnce(&mut Self)) {
        self.out.push(tag);
        let start = self.out.len();
        contents(self);
        let (octets, count) = length(self.out.len() - start);
        self.out
            .splice(start..start, octets[..count].iter().copied());
    }

    /// A SEQUENCE.
    pub fn sequence(&mut self, contents: impl FnOnce(&mut Self)) {
        self.nested(tag::SEQUENCE, contents);
    }

    /// An EXPLICIT `[number]`.
    pub fn explicit(&mut self, number: u8, contents: impl FnOnce(&mut Self)) {
        self.nested(tag::constructed(number), contents);
    }

    /// An INTEGER.
    pub fn integer(&mut self, value: i64) {
        let octets = value.to_be_bytes();
        let sign = if value < 0 { 0xff } else { 0x00 };
        let needless = octets
            .windows(2)
            .take_while(|pair| pair[0] == sign && (pair[1] & 0x80) == (sign & 0x80))
            .count();
        self.element(tag::INTEGER, &octets[needless..]);
    }

    /// An OBJECT IDENTIFIER.
    pub fn oid(&mut self, oid: Oid<'_>) {
        self.element(tag::OID, oid.content());
    }

    /// An OCTET STRING.
    pub fn octet_string(&mut self, value: &[u8]) {
        self.element(tag::OCTET_STRING, value);
    }

    /// A BIT STRING without unused bits, under its own or a context-specific tag.
    pub fn bits(&mut self, tag: u8, value: &[u8]) {
        self.nested(tag, |w| {
            w.out.push(0);
            w.raw(value);
        });
    }

    /// A NULL.
    pub fn null(&mut self) {
        self.element(tag::NULL, &[]);
    }

    /// A UTF8String.
    pub fn utf8(&mut self, text: &str) {
        self.element(tag::UTF8_STRING, text.as_bytes());
    }
}

/// The shortest length octets, and how many of them.
fn length(length: usize) -> ([u8; 9], usize) {
    let mut octets = [0; 9];
    if length < 0x80 {
        octets[0] = length as u8;
        return (octets, 1);
    }
    let big_endian = (length as u64).to_be_bytes();
    let skip = big_endian.iter().take_while(|&&octet| octet == 0).count();
    let count = 8 - skip;
    octets[0] = 0x80 | count as u8;
    octets[1..=count].copy_from_slice(&big_endian[skip..]);
    (octets, 1 + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_minimal() {
        let integer = |value| Writer::encode(|w| w.integer(value));
        assert_eq!(integer(0), [2, 1, 0]);
        assert_eq!(integer(-1), [2, 1, 0xff]);
        assert_eq!(integer(127), [2, 1, 0x7f]);
        assert_eq!(integer(128), [2, 2, 0, 0x80]);
        assert_eq!(integer(-128), [2, 1, 0x80]);
        assert_eq!(integer(-129), [2, 2, 0xff, 0x7f]);
        assert_eq!(integer(i64::MIN), [2, 8, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn lengths_are_minimal() {
        let nested = |n: usize| Writer::encode(|w| w.sequence(|w| w.raw(&alloc::vec![5; n])));
        assert_eq!(nested(127)[..2], [0x30, 0x7f]);
        assert_eq!(nested(128)[..3], [0x30, 0x81, 0x80]);
        assert_eq!(nested(256)[..4], [0x30, 0x82, 1, 0]);
        assert_eq!(nested(65536)[..5], [0x30, 0x83, 1, 0, 0]);
    }
}
