//! A TOML file as JSON, with the place of everything in it.

use std::fmt;
use std::ops::Range;

use serde_json::{Map, Number, Value};
use toml::de::{DeArray, DeTable, DeValue};

/// One thing that is wrong, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file as it was named.
    pub file: String,
    /// Counted from 1; zero where the whole file is meant.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// The field, such as `issuers.test.server` or `tokens[0].name`; empty for the whole.
    pub path: String,
    /// What is wrong, and what to give instead.
    pub problem: String,
}

impl Mistake {
    /// Something about the file as a whole.
    pub fn of_file(file: &str, problem: String) -> Self {
        Mistake {
            file: file.to_owned(),
            line: 0,
            column: 0,
            path: String::new(),
            problem,
        }
    }

    /// Line and column, for sorting.
    pub fn place(&self) -> (usize, usize) {
        (self.line, self.column)
    }

    /// Whether it is about a section or something in it.
    pub(super) fn is_under(&self, section: &str) -> bool {
        self.path
            .strip_prefix(section)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// A value with the places of what is in it.
#[derive(Debug)]
enum Node {
    Leaf,
    List(Vec<(Range<usize>, Node)>),
    /// Name, its place, the place of the value, and the value.
    Table(Vec<(String, Range<usize>, Range<usize>, Node)>),
}

/// A file that was read.
#[derive(Debug)]
pub struct Document {
    name: String,
    text: String,
    json: Value,
    root: Node,
    whole: bool,
}

/// One step into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Field(String),
    Item(usize),
}

impl Document {
    /// Reads TOML, and says where it is none.
    pub fn parse(name: &str, text: &str) -> (Document, Vec<Mistake>) {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut document = Document {
            name: name.to_owned(),
            text: text.to_owned(),
            json: Value::Null,
            root: Node::Leaf,
            whole: true,
        };
        let mut mistakes: Vec<Mistake> = errors
            .iter()
            .map(|error| {
                let at = error.span().map_or(0, |span| span.start);
                document.at(at, String::new(), format!("no TOML: {}", error.message()))
            })
            .collect();
        let mut odd = Vec::new();
        let (json, root) = convert_table(table.get_ref(), &mut odd);
        for (span, problem) in odd {
            mistakes.push(document.at(span.start, String::new(), problem));
        }
        mistakes.sort_by_key(Mistake::place);
        document.json = json;
        document.root = root;
        document.whole = mistakes.is_empty();
        (document, mistakes)
    }

    /// Whether all of it is TOML.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The whole as JSON.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// A mistake with the field of this path: `a.b[2].c`. If there is no such field, because it
    /// has its default, the place is that of the nearest one around it.
    pub fn mistake(&self, path: &str, problem: String) -> Mistake {
        self.mistake_at(&tokens(path), problem)
    }

    /// The same for steps.
    pub(super) fn mistake_at(&self, path: &[Token], problem: String) -> Mistake {
        let mut node = &self.root;
        let mut at = 0;
        for (depth, token) in path.iter().enumerate() {
            let last = depth + 1 == path.len();
            match (node, token) {
                (Node::Table(fields), Token::Field(name)) => {
                    let Some((_, key, value, inner)) =
                        fields.iter().find(|(field, ..)| field == name)
                    else {
                        break;
                    };
                    // A number is wrong, or a table: then its name is what one looks for.
                    at = match inner {
                        Node::Table(_) => key.start,
                        _ if last => value.start,
                        _ => key.start,
                    };
                    node = inner;
                }
                (Node::List(items), Token::Item(index)) => {
                    let Some((span, inner)) = items.get(*index) else {
                        break;
                    };
                    at = span.start;
                    node = inner;
                }
                _ => break,
            }
        }
        self.at(at, written(path), problem)
    }

    /// A mistake with the name of a field.
    pub(super) fn mistake_in_name(&self, path: &[Token], problem: String) -> Mistake {
        let mut mistake = self.mistake_at(path, problem);
        let Some((Token::Field(name), above)) = path.split_last() else {
            return mistake;
        };
        if let Some(Node::Table(fields)) = self.node(above)
            && let Some((_, key, ..)) = fields.iter().find(|(field, ..)| field == name)
        {
            (mistake.line, mistake.column) = self.place(key.start);
        }
        mistake
    }

    fn node(&self, path: &[Token]) -> Option<&Node> {
        let mut node = &self.root;
        for token in path {
            node = match (node, token) {
                (Node::Table(fields), Token::Field(name)) => {
                    &fields.iter().find(|(field, ..)| field == name)?.3
                }
                (Node::List(items), Token::Item(index)) => &items.get(*index)?.1,
                _ => return None,
            };
        }
        Some(node)
    }

    fn at(&self, offset: usize, path: String, problem: String) -> Mistake {
        let (line, column) = self.place(offset);
        Mistake {
            file: self.name.clone(),
            line,
            column,
            path,
            problem,
        }
    }

    fn place(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (
            before.matches('\n').count() + 1,
            before[line_start..].chars().count() + 1,
        )
    }
}

/// The steps of a path as the component writes it.
fn tokens(path: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let (name, rest) = part.split_once('[').unwrap_or((part, ""));
        if !name.is_empty() {
            tokens.push(Token::Field(name.to_owned()));
        }
        for index in rest.split('[') {
            if let Ok(index) = index.trim_end_matches(']').parse() {
                tokens.push(Token::Item(index));
            }
        }
    }
    tokens
}

fn written(path: &[Token]) -> String {
    let mut text = String::new();
    for token in path {
        match token {
            Token::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Token::Item(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// What TOML can say and this configuration cannot use.
type Odd = Vec<(Range<usize>, String)>;

fn convert_table(table: &DeTable<'_>, odd: &mut Odd) -> (Value, Node) {
    let mut json = Map::new();
    let mut fields = Vec::new();
    for (key, value) in table.iter() {
        let name = key.get_ref().to_string();
        let (inner, node) = convert(value.get_ref(), &value.span(), odd);
        json.insert(name.clone(), inner);
        fields.push((name, key.span(), value.span(), node));
    }
    (Value::Object(json), Node::Table(fields))
}

fn convert_list(list: &DeArray<'_>, odd: &mut Odd) -> (Value, Node) {
    let mut json = Vec::new();
    let mut items = Vec::new();
    for value in list.iter() {
        let (inner, node) = convert(value.get_ref(), &value.span(), odd);
        json.push(inner);
        items.push((value.span(), node));
    }
    (Value::Array(json), Node::List(items))
}

fn convert(value: &DeValue<'_>, span: &Range<usize>, odd: &mut Odd) -> (Value, Node) {
    let leaf = match value {
        DeValue::Table(table) => return convert_table(table, odd),
        DeValue::Array(list) => return convert_list(list, odd),
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(value) => Value::from(*value),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::from(number),
            Err(_) => {
                odd.push((span.clone(), format!("{number} is too large a number")));
                Value::Null
            }
        },
        DeValue::Float(number) => {
            let parsed = number.as_str().parse().ok().and_then(Number::from_f64);
            parsed.map_or_else(
                || {
                    odd.push((span.clone(), format!("{number} is no number of use here")));
                    Value::Null
                },
                Value::Number,
            )
        }
        DeValue::Datetime(time) => {
            odd.push((span.clone(), format!("{time}: no field holds a date")));
            Value::Null
        }
    };
    (leaf, Node::Leaf)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[a]\nb = 1\n[[a.c]]\nd = \"ä\"\ne = { f = [10, 20] } # x\n";

    #[track_caller]
    fn place(path: &str) -> (usize, usize) {
        let (document, mistakes) = Document::parse("x.toml", TEXT);
        assert_eq!(mistakes, []);
        document.mistake(path, String::new()).place()
    }

    /// Counted by hand.
    #[test]
    fn everything_has_its_place() {
        assert_eq!(place("a.b"), (2, 5));
        assert_eq!(place("a.c[0].d"), (4, 5));
        assert_eq!(place("a.c[0].e"), (5, 1));
        assert_eq!(place("a.c[0].e.f[1]"), (5, 16));
        // Absent: the table that it would stand in.
        assert_eq!(place("a.c[0].z"), place("a.c[0]"));
        assert_eq!(place("z"), (1, 1));
    }

    #[test]
    fn every_broken_line_is_named() {
        let (_, mistakes) = Document::parse("x.toml", "a = \nb = 1\nc = [1,\nd = 2024-01-01\n");
        assert!(mistakes.len() >= 2, "{mistakes:?}");
        assert_eq!(mistakes[0].line, 1);
        let (_, mistakes) = Document::parse("x.toml", "d = 2024-01-01\nn = 9223372036854775808");
        let lines: Vec<usize> = mistakes.iter().map(|mistake| mistake.line).collect();
        assert_eq!(lines, [1, 2]);
    }

    #[test]
    fn a_mistake_reads_like_a_compilers() {
        let (document, _) = Document::parse("x.toml", TEXT);
        let mistake = document.mistake("a.c[0].d", "is wrong".to_owned());
        assert_eq!(mistake.to_string(), "x.toml:4:5: a.c[0].d: is wrong");
        let mistake = Mistake::of_file("x.toml", "is no file".to_owned());
        assert_eq!(mistake.to_string(), "x.toml: is no file");
    }
}
