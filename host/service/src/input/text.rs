//! Text from peers on its way to a terminal, and command lines on their way to a person.

use std::fmt::Write as _;

/// Makes text from a peer safe for a terminal: what moves the cursor, changes
/// colours or reverses the reading direction is shown as an escape instead.
/// Newlines are escaped too, so that one message stays one line.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                _ => write!(out, "\\u{{{:x}}}", u32::from(c)).expect("a String takes all"),
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Format characters that reorder or hide what stands beside them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// A command line that a shell reads back as the same words. A secret given as
/// `pass:…` is left out: the line may end in a log.
pub fn command_line<I: IntoIterator<Item = String>>(words: I) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| quote(&masked(word))).collect();
    quoted.join(" ")
}

fn masked(word: String) -> String {
    if word.starts_with("pass:") {
        return "pass:…".into();
    }
    match word.split_once("=pass:") {
        Some((option, _)) if option.starts_with("--") => format!("{option}=pass:…"),
        _ => word,
    }
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+…".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", printable(word).replace('\'', r"'\''"))
    }
}

/// Lowercase hexadecimal, as the store keeps transactionIDs.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(out, "{byte:02x}").expect("a String takes all");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_controls_do_not_pass() {
        assert_eq!(printable("a\x1b[31mred\x07"), r"a\u{1b}[31mred\u{7}");
        assert_eq!(printable("two\nlines\r\t"), r"two\nlines\r\t");
        assert_eq!(
            printable("\u{9b}0m\u{202e}gnp.exe"),
            r"\u{9b}0m\u{202e}gnp.exe"
        );
    }

    #[test]
    fn ordinary_text_passes_unchanged() {
        let text = "Müller & Söhne, 東京 – «ok» \\u{1b}";
        assert_eq!(printable(text), text);
    }

    #[test]
    fn command_lines_read_back_and_keep_secrets() {
        let words = [
            "abide",
            "--subject",
            "/CN=it's me",
            "--secret",
            "pass:hush",
            "--a=pass:hush",
        ];
        assert_eq!(
            command_line(words.map(String::from)),
            r"abide --subject '/CN=it'\''s me' --secret pass:… --a=pass:…"
        );
        assert_eq!(command_line([String::new()]), "''");
    }

    #[test]
    fn hexadecimal_is_lowercase() {
        assert_eq!(hex(&[0, 0x0a, 0xff]), "000aff");
    }
}
