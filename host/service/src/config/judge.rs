//! What the schema finds, in words for whoever wrote the file.

use boon::{Compiler, ErrorKind, InstanceToken, Schemas, ValidationError};
use serde_json::Value;

use super::document::{Document, Mistake, Token};

/// The place of the schema in itself.
const ID: &str = "urn:abide:schema:config";

/// How alike two words must be for one to be meant by the other (Jaro-Winkler).
const ALIKE: f64 = 0.8;

/// Everything in which a document is not what a JSON schema (draft 2020-12) wants.
pub fn against_schema(document: &Document, schema: &str) -> Vec<Mistake> {
    let ours = |what: &dyn std::fmt::Display| {
        let text = format!("abide's own schema cannot be used ({what}); please report it");
        vec![document.mistake("", text)]
    };
    let schema: Value = match serde_json::from_str(schema) {
        Ok(schema) => schema,
        Err(error) => return ours(&error),
    };
    let mut schemas = Schemas::new();
    let mut compiler = Compiler::new();
    if let Err(error) = compiler.add_resource(ID, schema.clone()) {
        return ours(&error);
    }
    let index = match compiler.compile(ID, &mut schemas) {
        Ok(index) => index,
        Err(error) => return ours(&error),
    };
    let mut judge = Judge {
        document,
        schema: &schema,
        found: Vec::new(),
    };
    if let Err(error) = schemas.validate(document.json(), index) {
        judge.error(&error);
    }
    let mut found = judge.found;
    found.dedup();
    found
}

struct Judge<'a> {
    document: &'a Document,
    schema: &'a Value,
    found: Vec<Mistake>,
}

impl Judge<'_> {
    fn error(&mut self, error: &ValidationError<'_, '_>) {
        let path: Vec<Token> = error.instance_location.tokens.iter().map(token).collect();
        let problem = match &error.kind {
            ErrorKind::OneOf(_) | ErrorKind::AnyOf => match nearest(error) {
                // One of the forms is meant, and something in it is wrong.
                Some(meant) => return self.error(meant),
                None => format!("is none of these forms: {}", self.forms(error.schema_url)),
            },
            _ if !error.causes.is_empty() => {
                for cause in &error.causes {
                    self.error(cause);
                }
                return;
            }
            ErrorKind::AdditionalProperties { got } => {
                for name in got {
                    let problem = self.unknown(name, error.schema_url);
                    let mut path = path.clone();
                    path.push(Token::Field(name.to_string()));
                    self.found
                        .push(self.document.mistake_in_name(&path, problem));
                }
                return;
            }
            ErrorKind::PropertyName { prop } => {
                let mut path = path.clone();
                path.push(Token::Field(prop.clone()));
                let problem =
                    "a name has letters, digits, dots, dashes and underscores, at most 64"
                        .to_owned();
                self.found
                    .push(self.document.mistake_in_name(&path, problem));
                return;
            }
            ErrorKind::Required { want } => {
                let names: Vec<String> = want.iter().map(|name| format!("`{name}`")).collect();
                format!("{} is missing", names.join(" and "))
            }
            ErrorKind::Type { got, want } => format!("is {}; give {}", a(got), want_of(want)),
            ErrorKind::Enum { want } => {
                let known: Vec<String> = want.iter().map(plain).collect();
                let given = self.given(&path);
                let hint = like(&given, known.iter().map(String::as_str));
                format!("{given:?} is none of {}{hint}", known.join(", "))
            }
            ErrorKind::Const { want } => format!("must be {want}"),
            ErrorKind::Minimum { got, want } if want.as_i64() == Some(0) => {
                format!("{got} is negative; give 0 or more")
            }
            ErrorKind::Minimum { got, want } => format!("{got} is too small; give {want} or more"),
            ErrorKind::Maximum { got, want } => format!("{got} is too large; give {want} or less"),
            ErrorKind::MinLength { .. } => "is empty".to_owned(),
            ErrorKind::MaxLength { got, want } => {
                format!("has {got} characters; at most {want} are allowed")
            }
            ErrorKind::MinItems { got, want } => {
                format!("has {got} entries; at least {want} are needed")
            }
            ErrorKind::MaxItems { got, want } => {
                format!("has {got} entries; at most {want} are allowed")
            }
            ErrorKind::MinProperties { .. } => "is empty; name at least one".to_owned(),
            ErrorKind::Pattern { got, want } => format!("{got:?} is not written as {want}"),
            other => other.to_string(),
        };
        self.found.push(self.document.mistake_at(&path, problem));
    }

    fn unknown(&self, name: &str, schema_url: &str) -> String {
        let known: Vec<&str> = self
            .part(schema_url)
            .and_then(|schema| schema.get("properties"))
            .and_then(Value::as_object)
            .map(|fields| fields.keys().map(String::as_str).collect())
            .unwrap_or_default();
        let hint = like(name, known.iter().copied());
        match hint.is_empty() {
            true => format!("there is no such field; known are {}", known.join(", ")),
            false => format!("there is no such field{hint}"),
        }
    }

    fn forms(&self, schema_url: &str) -> String {
        let url = schema_url.trim_end_matches("/oneOf");
        self.part(url)
            .and_then(|schema| schema.get("description"))
            .and_then(Value::as_str)
            .unwrap_or("see `abide config schema`")
            .to_owned()
    }

    fn part(&self, schema_url: &str) -> Option<&Value> {
        let (_, pointer) = schema_url.split_once('#')?;
        self.schema.pointer(pointer)
    }

    fn given(&self, path: &[Token]) -> String {
        let mut value = self.document.json();
        for token in path {
            let inner = match token {
                Token::Field(name) => value.get(name),
                Token::Item(index) => value.get(index),
            };
            value = inner.unwrap_or(&Value::Null);
        }
        plain(value)
    }
}

/// Of the forms that a value may have, the one whose first word it has: its errors lie deeper
/// than the value itself.
fn nearest<'a, 's, 'v>(error: &'a ValidationError<'s, 'v>) -> Option<&'a ValidationError<'s, 'v>> {
    let here = error.instance_location.tokens.len();
    error
        .causes
        .iter()
        .find(|cause| leaves(cause, &|leaf| leaf.instance_location.tokens.len() > here))
}

/// Whether something holds for all leaves.
fn leaves(
    error: &ValidationError<'_, '_>,
    holds: &dyn Fn(&ValidationError<'_, '_>) -> bool,
) -> bool {
    match error.causes.is_empty() {
        true => holds(error),
        false => error.causes.iter().all(|cause| leaves(cause, holds)),
    }
}

fn token(token: &InstanceToken<'_>) -> Token {
    match token {
        InstanceToken::Prop(name) => Token::Field(name.to_string()),
        InstanceToken::Item(index) => Token::Item(*index),
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// `; did you mean …?`, or nothing.
fn like<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    known
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map_or_else(String::new, |(_, candidate)| {
            format!("; did you mean `{candidate}`?")
        })
}

fn a(kind: &boon::Type) -> &'static str {
    match kind {
        boon::Type::Null => "nothing",
        boon::Type::Boolean => "true or false",
        boon::Type::Number => "a number with a fraction",
        boon::Type::Integer => "a number",
        boon::Type::String => "a text",
        boon::Type::Array => "a list",
        boon::Type::Object => "a table",
    }
}

fn want_of(kinds: &boon::Types) -> String {
    let words: Vec<&str> = kinds
        .iter()
        .map(|kind| match kind {
            boon::Type::Integer => "a whole number",
            boon::Type::Number => "a number",
            other => a(&other),
        })
        .collect();
    words.join(" or ")
}
