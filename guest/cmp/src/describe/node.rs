//! JSON whose members keep their order.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Serialize, Serializer};

use crate::der::{Element, Integer};

/// A JSON value whose members keep their order.
pub(super) enum Node {
    Absent,
    Text(String),
    Number(i64),
    Bool(bool),
    List(Vec<Node>),
    Object(Vec<(&'static str, Node)>),
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (*name, value)))
            }
        }
    }
}

/// An object without the members that are absent or empty lists.
pub(super) fn object<const N: usize>(members: [(&'static str, Node); N]) -> Node {
    let present = |(_, value): &(_, Node)| match value {
        Node::Absent => false,
        Node::List(items) => !items.is_empty(),
        _ => true,
    };
    let mut members: Vec<_> = members.into_iter().filter(present).collect();
    // A message can have a hundred thousand objects with one member each.
    members.shrink_to_fit();
    Node::Object(members)
}

pub(super) fn text(value: impl ToString) -> Node {
    Node::Text(value.to_string())
}

pub(super) fn hex(octets: &[u8]) -> Node {
    let mut out = String::with_capacity(octets.len() * 2);
    crate::name::push_hex(&mut out, octets);
    Node::Text(out)
}

/// An INTEGER: a number where it fits, else its octets in two's complement.
pub(super) fn integer(octets: &[u8]) -> Node {
    match Integer::from_octets(octets) {
        Some(number) if octets.len() <= 8 => Node::Number(number.saturating()),
        _ => hex(octets),
    }
}

/// The value of an INTEGER element, or the element as it is.
pub(super) fn integer_element(element: &Element<'_>) -> Node {
    match element.big_integer() {
        Ok(octets) => integer(octets),
        Err(_) => hex(element.raw),
    }
}

/// Octets as text, where they are text without control characters.
pub(super) fn readable(octets: &[u8]) -> Option<&str> {
    let text = core::str::from_utf8(octets).ok()?;
    let readable = !text.is_empty() && !text.chars().any(char::is_control);
    readable.then_some(text)
}

pub(super) fn optional<T>(value: Option<T>, describe: impl FnOnce(T) -> Node) -> Node {
    value.map_or(Node::Absent, describe)
}

pub(super) fn list<T>(items: &[T], describe: impl FnMut(&T) -> Node) -> Node {
    Node::List(items.iter().map(describe).collect())
}

/// The names of the bits that are set in a named bit list.
pub(super) fn bit_names(octets: &[u8], names: &[&str]) -> Node {
    let bits = (0..octets.len() * 8).filter(|bit| octets[bit / 8] & (0x80 >> (bit % 8)) != 0);
    Node::List(
        bits.map(|bit| match names.get(bit) {
            Some(name) => text(name),
            None => text(alloc::format!("bit {bit}")),
        })
        .collect(),
    )
}
