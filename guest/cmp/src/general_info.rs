//! InfoTypeAndValue (RFC 9810, 5.3.19).

use crate::der::{Element, Reader, Writer};
use crate::error::Result;
use crate::oid::{self, Oid};

/// A piece of information of a named type.
///
/// ```text
/// InfoTypeAndValue ::= SEQUENCE {
///     infoType   INFO-TYPE-AND-VALUE.&id({SupportedInfoSet}),
///     infoValue  INFO-TYPE-AND-VALUE.&Type({SupportedInfoSet}{@infoType}) OPTIONAL }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfoTypeAndValue<'a> {
    /// What kind of information it is.
    pub info_type: Oid<'a>,
    /// One DER element, if there is a value.
    pub value: Option<&'a [u8]>,
}

impl<'a> InfoTypeAndValue<'a> {
    /// `implicitConfirm`, whose value is NULL (RFC 9810, 5.1.1.1).
    pub const IMPLICIT_CONFIRM: InfoTypeAndValue<'static> = InfoTypeAndValue {
        info_type: oid::IT_IMPLICIT_CONFIRM,
        value: Some(&[0x05, 0x00]),
    };

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut contents = reader.sequence()?;
        let info_type = contents.oid()?;
        let value = match contents.is_empty() {
            true => None,
            false => Some(contents.any()?).map(|element: Element<'a>| element.raw),
        };
        contents.finish()?;
        Ok(Self { info_type, value })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.oid(self.info_type);
            if let Some(value) = self.value {
                w.raw(value);
            }
        });
    }
}
