//! The configuration: one TOML file, every mistake in it with its place.
//!
//! The JSON schema `docs/abide.schema.json` says what may be in the file; it is published with
//! [`SCHEMA`]. What no schema can say is found by whoever knows: files that cannot be read here,
//! policies that contradict themselves by the component.

mod document;
mod import;
mod judge;
mod sections;

pub use document::{Document, Mistake};
pub use import::{ImportError, import};
pub use judge::against_schema;
pub use sections::{
    Allow, Command, Config, Delivery, Issuer, Mac, Right, ServiceSection, Store, Tls, Token,
};

use std::path::{Path, PathBuf};

use abide_host::{Gate, HostError};
use serde_json::{Map, Value};

use crate::limits;
use crate::material::{self, Material};

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
    warnings: Vec<Mistake>,
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
            mistakes = judge::against_schema(&document, SCHEMA);
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
            warnings: Vec::new(),
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
        self.check_lists();
        self.check_endpoints(gate).await
    }

    /// Who is in both lists of a limit is only learnt from, as the document of the lists has it.
    fn check_lists(&mut self) {
        for section in ["rate_limit", "outgoing"] {
            let list = |name: &str| self.document.json()[section][name].as_array();
            let enforcing = list("enforcing").map(Vec::as_slice).unwrap_or_default();
            let ignoring = list("ignoring").into_iter().flatten().enumerate();
            for (index, name) in ignoring.filter(|(_, name)| enforcing.contains(name)) {
                let problem = format!(
                    "{name} is also in enforcing, and so only learnt from: take it out of one"
                );
                let at = format!("{section}.ignoring[{index}]");
                self.warnings.push(self.document.mistake(&at, problem));
            }
        }
    }

    /// Lets the component judge the endpoints of each issuer. What is allowed but hardly meant is
    /// a warning.
    async fn check_endpoints(&mut self, gate: &Gate) -> Result<(), HostError> {
        for (name, issuer) in &self.config.issuers {
            let Some(routing) = material::routing(issuer) else {
                continue;
            };
            let at = |path: &str| {
                let dot = if path.is_empty() { "" } else { "." };
                format!("issuers.{name}{dot}{path}")
            };
            match gate.router(&routing).await? {
                Err(mistakes) => {
                    for mistake in mistakes {
                        let found = self.document.mistake(&at(&mistake.path), mistake.problem);
                        self.mistakes.push(found);
                    }
                }
                Ok(router) => {
                    for finding in router.lint().await? {
                        let found = self.document.mistake(&at(&finding.path), finding.problem);
                        self.warnings.push(found);
                    }
                }
            }
        }
        self.warnings.sort_by_key(Mistake::place);
        Ok(())
    }

    /// What is allowed but hardly meant, in the order of the file.
    pub fn warnings(&self) -> &[Mistake] {
        &self.warnings
    }

    /// The routing of an issuer with several endpoints, as JSON for [`Gate::router`], whatever is
    /// wrong elsewhere.
    pub fn routing(&self, issuer: &str) -> Option<String> {
        material::routing(self.config.issuers.get(issuer)?)
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

/// The text of a configuration file, or why it cannot be one.
pub fn read_text(path: &Path) -> Result<String, String> {
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
