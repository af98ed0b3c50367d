//! Selectors as Spinnaker's files name them.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::Selector;

/// What lies under `config` beside `selectorClass`. Which fields are needed depends on the class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(default, deny_unknown_fields, rename_all = "camelCase")
)]
pub struct ClassConfig {
    /// The class; none is the default selector.
    pub selector_class: Option<String>,
    /// Of `ByAccountServiceSelector`.
    pub account_pattern: Option<String>,
    /// Of `ByApplicationServiceSelector`.
    pub application_pattern: Option<String>,
    /// Of `ByAuthenticatedUserServiceSelector`.
    pub users: Option<Vec<String>>,
    /// Of `ByCloudProviderServiceSelector`.
    pub cloud_providers: Option<Vec<String>>,
    /// Of `ByExecutionTypeServiceSelector`, and of `ByOriginServiceSelector` if it is there.
    pub execution_types: Option<Vec<String>>,
    /// Of `ByOriginServiceSelector` and `ByUserOriginSelector`.
    pub origin: Option<String>,
    /// Of `ByLocationServiceSelector`.
    pub locations: Option<Vec<String>>,
}

/// Why a class is no selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClassError {
    /// A class that is not known, in a package that is not known, or not a class.
    Unknown(String),
    /// A field that the class needs is not there.
    Missing {
        /// The class.
        class: &'static str,
        /// The field.
        field: &'static str,
    },
}

impl Selector {
    /// The selector that a class of kork or Orca with its fields means. Abide's own short names
    /// are accepted as well.
    pub fn from_class(config: &ClassConfig) -> Result<Self, ClassError> {
        let Some(given) = &config.selector_class else {
            return Ok(Self::Default);
        };
        let simple = PACKAGES
            .iter()
            .find_map(|package| given.strip_prefix(package))
            .unwrap_or(given);
        let class = CLASSES
            .iter()
            .find(|(class, short)| *class == simple || short == given)
            .map(|(class, _)| *class)
            .ok_or_else(|| ClassError::Unknown(given.clone()))?;
        let text = |field: &'static str, value: &Option<String>| {
            value.clone().ok_or(ClassError::Missing { class, field })
        };
        let list = |field: &'static str, value: &Option<Vec<String>>| {
            value.clone().ok_or(ClassError::Missing { class, field })
        };
        Ok(match class {
            "ByAccountServiceSelector" => {
                Self::Account(text("accountPattern", &config.account_pattern)?)
            }
            "ByApplicationServiceSelector" => {
                Self::Application(text("applicationPattern", &config.application_pattern)?)
            }
            "ByAuthenticatedUserServiceSelector" => Self::User(list("users", &config.users)?),
            "ByCloudProviderServiceSelector" => {
                Self::CloudProvider(list("cloudProviders", &config.cloud_providers)?)
            }
            "ByExecutionTypeServiceSelector" => {
                Self::ExecutionType(list("executionTypes", &config.execution_types)?)
            }
            "ByOriginServiceSelector" => Self::Origin {
                origin: text("origin", &config.origin)?,
                execution_types: config
                    .execution_types
                    .clone()
                    .unwrap_or_else(|| EXECUTION_TYPES.map(ToOwned::to_owned).into()),
            },
            "ByLocationServiceSelector" => Self::Location(list("locations", &config.locations)?),
            "ByUserOriginSelector" => Self::UserOrigin(text("origin", &config.origin)?),
            _ => Self::Default,
        })
    }
}

/// Where selectors live in kork, Orca and gate.
const PACKAGES: [&str; 3] = [
    "com.netflix.spinnaker.kork.web.selector.",
    "com.netflix.spinnaker.orca.clouddriver.config.",
    "com.netflix.spinnaker.gate.services.internal.",
];

/// The nine classes, with abide's short names.
const CLASSES: [(&str, &str); 9] = [
    ("DefaultServiceSelector", "default"),
    ("ByAccountServiceSelector", "account"),
    ("ByApplicationServiceSelector", "application"),
    ("ByAuthenticatedUserServiceSelector", "user"),
    ("ByCloudProviderServiceSelector", "cloud-provider"),
    ("ByExecutionTypeServiceSelector", "execution-type"),
    ("ByOriginServiceSelector", "origin"),
    ("ByLocationServiceSelector", "location"),
    ("ByUserOriginSelector", "user-origin"),
];

/// What kork takes `ByOriginServiceSelector` to mean where no types are given.
const EXECUTION_TYPES: [&str; 2] = ["pipeline", "orchestration"];

impl fmt::Display for ClassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(class) => {
                write!(f, "selectorClass {class:?} is none of")?;
                for (index, (class, short)) in CLASSES.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma} {class} ({short})")?;
                }
                Ok(())
            }
            Self::Missing { class, field } => write!(f, "{class} needs {field}"),
        }
    }
}

impl core::error::Error for ClassError {}
