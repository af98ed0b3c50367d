//! A JSON description as indented text.

use serde_json::{Map, Value};

use crate::text::printable;
use crate::when;

/// Spaces for each level.
const INDENT: usize = 2;

/// Hexadecimal digits in a line: 32 octets.
const HEX_LINE: usize = 64;

/// Characters of a list that stays in one line.
const LIST_LINE: usize = 80;

/// Members that say what an object is: they go on the line that names it.
const LEADS: [&str; 5] = ["algorithm", "type", "extnID", "infoType", "accessMethod"];

/// Members that hold the rest of such an object: their name says nothing more.
const CONTENTS: [&str; 5] = [
    "extnValue",
    "infoValue",
    "value",
    "content",
    "accessLocation",
];

/// Renders a description: one member a line, nested values indented, long octets and texts
/// of several lines (PEM) below their name. Times are told with their distance from
/// `now_ms`.
pub(super) fn render(value: &Value, now_ms: u64) -> String {
    let mut text = Text {
        out: String::new(),
        now_ms,
    };
    match value {
        Value::Object(members) => text.members(members.iter(), 0),
        other => text.member("-", other, 0),
    }
    text.out
}

struct Text {
    out: String,
    now_ms: u64,
}

impl Text {
    fn members<'v>(
        &mut self,
        members: impl Iterator<Item = (&'v String, &'v Value)>,
        depth: usize,
    ) {
        for (name, value) in members {
            self.member(&format!("{}:", printable(name)), value, depth);
        }
    }

    fn member(&mut self, head: &str, value: &Value, depth: usize) {
        match value {
            Value::Object(members) => self.object(head, members, depth),
            Value::Array(items) => match in_one_line(items) {
                Some(list) => self.line(depth, &format!("{head} {list}")),
                None => {
                    self.line(depth, head);
                    for item in items {
                        self.item(item, depth + 1);
                    }
                }
            },
            Value::String(text) if text.trim_end().contains('\n') => {
                self.line(depth, head);
                for row in text.lines() {
                    self.line(depth + 1, &printable(row));
                }
            }
            Value::String(digits) if digits.len() > HEX_LINE && is_hex(digits) => {
                self.line(depth, head);
                for row in digits.as_bytes().chunks(HEX_LINE) {
                    self.line(depth + 1, &String::from_utf8_lossy(row));
                }
            }
            scalar => {
                let scalar = self.scalar(scalar);
                self.line(depth, &format!("{head} {scalar}"));
            }
        }
    }

    fn object(&mut self, head: &str, members: &Map<String, Value>, depth: usize) {
        let mut members = members.iter().peekable();
        let lead =
            members.next_if(|(name, value)| LEADS.contains(&name.as_str()) && is_scalar(value));
        let Some((_, lead)) = lead else {
            if members.peek().is_none() {
                return self.line(depth, &format!("{head} (empty)"));
            }
            self.line(depth, head);
            return self.members(members, depth + 1);
        };
        let mut head = format!("{head} {}", self.scalar(lead));
        if members.next_if(|(name, _)| *name == "critical").is_some() {
            head.push_str(" (critical)");
        }
        let rest: Vec<_> = members.collect();
        match rest[..] {
            [(name, value)] if CONTENTS.contains(&name.as_str()) => {
                self.contents(&head, value, depth);
            }
            _ => {
                self.line(depth, &head);
                self.members(rest.into_iter(), depth + 1);
            }
        }
    }

    /// What an object holds, whose head is said.
    fn contents(&mut self, head: &str, value: &Value, depth: usize) {
        match value {
            Value::Object(members) => {
                self.line(depth, head);
                self.members(members.iter(), depth + 1);
            }
            Value::Array(items) if in_one_line(items).is_none() => self.member(head, value, depth),
            other => self.member(&format!("{head}:"), other, depth),
        }
    }

    /// An element of a list: an object begins beside its dash.
    fn item(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Object(members) if !leads(members) && !members.is_empty() => {
                let start = self.out.len();
                self.members(members.iter(), depth + 1);
                let dash = start + depth * INDENT;
                self.out.replace_range(dash..dash + 1, "-");
            }
            other => self.member("-", other, depth),
        }
    }

    fn scalar(&self, value: &Value) -> String {
        match value {
            Value::String(text) => match when::from_rfc3339(text) {
                Some(at_ms) => format!("{text} ({})", when::distance(self.now_ms, at_ms)),
                None => printable(text),
            },
            Value::Null => "-".into(),
            other => other.to_string(),
        }
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.out.extend(std::iter::repeat_n(' ', depth * INDENT));
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }
}

fn leads(members: &Map<String, Value>) -> bool {
    let first = members.iter().next();
    first.is_some_and(|(name, value)| LEADS.contains(&name.as_str()) && is_scalar(value))
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

fn is_hex(text: &str) -> bool {
    text.len().is_multiple_of(2)
        && text
            .bytes()
            .all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
}

/// A short list of words, as failInfo and keyUsage are; none where it needs its lines.
fn in_one_line(items: &[Value]) -> Option<String> {
    if items.is_empty() {
        return Some("(none)".into());
    }
    let word = |item: &Value| match item {
        Value::String(text) if !text.contains([' ', ',', '\n']) => Some(printable(text)),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let words: Vec<_> = items.iter().map(word).collect::<Option<_>>()?;
    let list = words.join(", ");
    (list.len() <= LIST_LINE).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_nesting_are_kept_and_controls_are_not() {
        let value: Value = serde_json::from_str(
            r#"{"pvno":2,"header":{"sender":"CN=\u001b[31m","zeta":null,"alpha":[1,{"x":true,"y":2}]},
                "extraCerts":[],"failInfo":["badAlg","badPOP"],"texts":["two words"],"pem":"a\nb\n"}"#,
        )
        .unwrap();
        let expected = "\
pvno: 2
header:
  sender: CN=\\u{1b}[31m
  zeta: -
  alpha:
    - 1
    - x: true
      y: 2
extraCerts: (none)
failInfo: badAlg, badPOP
texts:
  - two words
pem:
  a
  b
";
        assert_eq!(render(&value, 0), expected);
    }

    #[test]
    fn what_an_object_is_stands_beside_its_name() {
        let value: Value = serde_json::from_str(
            r#"{"body":{"type":"genm","content":[{"infoType":"id-it-caCerts"}]},
                "alg":{"algorithm":"id-PBMAC1","salt":"00"},
                "extensions":[{"extnID":"id-ce-keyUsage","critical":true,
                    "extnValue":["keyCertSign","cRLSign"]},
                    {"extnID":"x","extnValue":{"cA":false}}]}"#,
        )
        .unwrap();
        let expected = "\
body: genm
  - id-it-caCerts
alg: id-PBMAC1
  salt: 00
extensions:
  - id-ce-keyUsage (critical): keyCertSign, cRLSign
  - x
    cA: false
";
        assert_eq!(render(&value, 0), expected);
    }

    /// 2024-02-17T17:12:09Z is 1708189929 (`date -u -d … +%s`).
    #[test]
    fn times_have_a_distance_and_long_octets_have_lines() {
        let octets = "ab".repeat(40);
        let value = serde_json::json!({"at": "2024-02-17T17:12:09Z", "octets": octets});
        let expected = format!(
            "at: 2024-02-17T17:12:09Z (in 9 s)\noctets:\n  {}\n  {}\n",
            "ab".repeat(32),
            "ab".repeat(8)
        );
        assert_eq!(render(&value, 1_708_189_920_000), expected);
    }
}
