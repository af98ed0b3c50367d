//! A JSON description as indented text.

use serde_json::Value;

use crate::text::printable;

/// Spaces for each level.
const INDENT: usize = 2;

/// Renders a description: one member a line, nested values indented, multi-line
/// texts (PEM) below their name.
pub(crate) fn render(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(_) | Value::Array(_) => nested(&mut out, value, 0),
        scalar => line(&mut out, 0, &scalar_text(scalar)),
    }
    out
}

fn nested(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                member(out, &format!("{}:", printable(name)), value, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                member(out, "-", item, depth);
            }
        }
        scalar => line(out, depth, &scalar_text(scalar)),
    }
}

fn member(out: &mut String, head: &str, value: &Value, depth: usize) {
    match value {
        Value::Object(members) if members.is_empty() => {
            line(out, depth, &format!("{head} (empty)"))
        }
        Value::Array(items) if items.is_empty() => line(out, depth, &format!("{head} (none)")),
        Value::Object(_) | Value::Array(_) => {
            line(out, depth, head);
            nested(out, value, depth + 1);
        }
        Value::String(text) if text.trim_end().contains('\n') => {
            line(out, depth, head);
            for row in text.lines() {
                line(out, depth + 1, &printable(row));
            }
        }
        scalar => line(out, depth, &format!("{head} {}", scalar_text(scalar))),
    }
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Null => "-".into(),
        other => other.to_string(),
    }
}

fn line(out: &mut String, depth: usize, text: &str) {
    out.extend(std::iter::repeat_n(' ', depth * INDENT));
    out.push_str(text.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_nesting_are_kept_and_controls_are_not() {
        let value: Value = serde_json::from_str(
            r#"{"pvno":2,"header":{"sender":"CN=\u001b[31m","zeta":null,"alpha":[1,{"x":true}]},
                "extraCerts":[],"pem":"a\nb\n"}"#,
        )
        .unwrap();
        let expected = "\
pvno: 2
header:
  sender: CN=\\u{1b}[31m
  zeta: -
  alpha:
    - 1
    -
      x: true
extraCerts: (none)
pem:
  a
  b
";
        assert_eq!(render(&value), expected);
    }
}
