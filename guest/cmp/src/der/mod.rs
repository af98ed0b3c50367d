//! The distinguished encoding rules (X.690), as far as CMP needs them: a reader over
//! borrowed octets that knows its position, and a writer.

mod integer;
mod reader;
mod writer;

pub use integer::Integer;
pub use reader::{Element, Reader};
pub use writer::Writer;

/// Identifier octets.
pub mod tag {
    /// BOOLEAN.
    pub const BOOLEAN: u8 = 0x01;
    /// INTEGER.
    pub const INTEGER: u8 = 0x02;
    /// BIT STRING.
    pub const BIT_STRING: u8 = 0x03;
    /// OCTET STRING.
    pub const OCTET_STRING: u8 = 0x04;
    /// NULL.
    pub const NULL: u8 = 0x05;
    /// OBJECT IDENTIFIER.
    pub const OID: u8 = 0x06;
    /// ENUMERATED.
    pub const ENUMERATED: u8 = 0x0a;
    /// UTF8String.
    pub const UTF8_STRING: u8 = 0x0c;
    /// PrintableString.
    pub const PRINTABLE_STRING: u8 = 0x13;
    /// TeletexString.
    pub const TELETEX_STRING: u8 = 0x14;
    /// IA5String.
    pub const IA5_STRING: u8 = 0x16;
    /// UTCTime.
    pub const UTC_TIME: u8 = 0x17;
    /// GeneralizedTime.
    pub const GENERALIZED_TIME: u8 = 0x18;
    /// BMPString.
    pub const BMP_STRING: u8 = 0x1e;
    /// SEQUENCE and SEQUENCE OF.
    pub const SEQUENCE: u8 = 0x30;
    /// SET and SET OF.
    pub const SET: u8 = 0x31;

    /// The identifier octet of a constructed context-specific tag `[number]`.
    pub const fn constructed(number: u8) -> u8 {
        0xa0 | number
    }

    /// The identifier octet of a primitive context-specific tag `[number]`.
    pub const fn primitive(number: u8) -> u8 {
        0x80 | number
    }
}
