//! The configuration: one TOML file, every mistake in it with its place.
//!
//! The JSON schema `docs/abide.schema.json` says what may be in the file; it is published with
//! [`SCHEMA`]. What no schema can say is found by whoever knows: files that cannot be read here,
//! policies that contradict themselves by the component.

mod document;
mod judge;
mod sections;

pub use document::Mistake;
pub use sections::{
    Allow, Command, Config, Delivery, Issuer, Mac, Right, ServiceSection, Store, Tls, Token,
};

use std::path::{Path, PathBuf};

use abide_host::{Gate, HostError};
use serde_json::{Map, Value};

use crate::limits;
use crate::material::{self, Material};
use document::Document;

/// The JSON schema of the configuration (draft 2020-12).
pub const SCHEMA: &str = include_str!("../../../../docs/abide.schema.json");

/// The sections that the component judges.
pub const POLICIES: [&str; 7] = [
    "retry",
    "scheduler",
    "rate_limit",
    "outgoing",
    "qos",
    "cache_sharding",
    "zombie_check",
];

/// A configuration with everything that is wrong with it so far.
pub struct Draft {
    document: Document,
    config: Config,
    material: Material,
    mistakes: Vec<Mistake>,
}

impl Draft {
    /// Reads a file and all files that it names.
    pub async fn read(path: &Path) -> Draft {
        let name = path.display().to_string();
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let text = match read_text(path) {
            Ok(text) => text,
            Err(problem) => {
                let mut draft = Draft::parse(&name, folder, "").await;
                draft.mistakes = vec![Mistake::of_file(&name, problem)];
                return draft;
            }
        };
        Draft::parse(&name, folder, &text).await
    }

    /// Reads a text; `folder` is what its paths are relative to.
    pub async fn parse(name: &str, folder: PathBuf, text: &str) -> Draft {
        let (document, mut mistakes) = Document::parse(name, text);
        if document.is_whole() {
            mistakes = judge::against_schema(&document);
        }
        // What stands beside a broken line may be missing for that reason alone.
        let readable = match document.is_whole() {
            true => document.json(),
            false => &Value::Null,
        };
        let config = Config::from_json(readable, folder);
        let mut report = |path: &str, problem: String| {
            mistakes.push(document.mistake(path, problem));
        };
        let material = material::gather(&config, &mut report).await;
        Draft {
            document,
            config,
            material,
            mistakes,
        }
    }

    /// Lets the component judge the policies. Sections that are no policies by their form are
    /// left out: that was found before.
    pub async fn check_policies(&mut self, gate: &Gate) -> Result<(), HostError> {
        let mut sections = Map::new();
        for name in POLICIES {
            let broken = self.mistakes.iter().any(|mistake| mistake.is_under(name));
            if let (Some(section), false) = (self.document.json().get(name), broken) {
                sections.insert(name.to_owned(), section.clone());
            }
        }
        for mistake in gate
            .check_policies(&Value::Object(sections).to_string())
            .await?
        {
            let found = self.document.mistake(&mistake.path, mistake.problem);
            self.mistakes.push(found);
        }
        Ok(())
    }

    /// What was found, in the order of the file.
    pub fn mistakes(&mut self) -> &[Mistake] {
        self.mistakes.sort_by_key(|mistake| mistake.place());
        &self.mistakes
    }

    /// What the file says, as JSON.
    pub fn json(&self) -> &Value {
        self.document.json()
    }

    /// The configuration, as far as it could be read.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The configuration and what its files hold, or everything that is wrong with it.
    pub(crate) fn finish(mut self) -> Result<(Config, Material), Vec<Mistake>> {
        if self.mistakes().is_empty() {
            return Ok((self.config, self.material));
        }
        Err(self.mistakes)
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path)
        .map_err(|error| format!("cannot be read ({error}); name a file by --config FILE"))?;
    if bytes.len() > limits::CONFIG_FILE {
        return Err(format!(
            "has {} bytes; a configuration has at most {}",
            bytes.len(),
            limits::CONFIG_FILE
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        format!(
            "is not UTF-8 from byte {} on",
            error.utf8_error().valid_up_to()
        )
    })
}
