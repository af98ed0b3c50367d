//! How much there is to describe, before anything is.

use alloc::vec::Vec;

use crate::der::{Reader, tag};
use crate::error::{Error, Result, Rule};
use crate::limits;

/// Levels of structure that are looked into. Messages within messages to their limit, with
/// a certificate in the innermost and names in one of its extensions, have some fifty.
const LEVELS: usize = 64;

/// Refuses what would give more JSON than memory and patience allow.
///
/// Elements are counted, also those inside an OCTET STRING, as extensions have them. Of
/// what one structure contains no more than [`limits::ELEMENTS`] count: longer lists are not
/// described element by element.
pub(super) fn check(input: &[u8]) -> Result<()> {
    let mut count = 0;
    let mut open: Vec<(Reader<'_>, usize)> = Vec::new();
    let mut current = (Reader::judged(input), 0);
    loop {
        let (contents, seen) = &mut current;
        let next = match *seen < limits::ELEMENTS {
            true => contents.any().ok(),
            false => None,
        };
        let Some(element) = next else {
            match open.pop() {
                Some(outer) => current = outer,
                None => return Ok(()),
            }
            continue;
        };
        *seen += 1;
        count += 1;
        if count > limits::DESCRIBED {
            let rule = Rule::Limit {
                what: "elements of what is described",
                limit: limits::DESCRIBED,
            };
            return Err(Error::new(element.offset, rule));
        }
        let constructed = element.tag & 0x20 != 0 || element.tag == tag::OCTET_STRING;
        if constructed && open.len() < LEVELS {
            let inner = (element.contents(), 0);
            open.push(core::mem::replace(&mut current, inner));
        }
    }
}
