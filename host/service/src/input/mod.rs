//! What people name on a command line or in a configuration: files, secrets, names, URLs.
//!
//! Every error begins with the option or field that named the thing, and says what to give
//! instead.

pub mod der;
pub mod files;
pub mod names;
pub mod pem;
pub mod secret;
pub mod text;

use std::fmt;

/// Who has to act on an [`InputError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Whoever gave it.
    Given,
    /// Whoever runs this host.
    Host,
}

/// Something that was given cannot be used, or a file cannot be written: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// Who has to act.
    pub fault: Fault,
    /// The line.
    pub message: String,
}

impl InputError {
    /// What was given is at fault.
    pub fn given(message: impl Into<String>) -> Self {
        Self {
            fault: Fault::Given,
            message: message.into(),
        }
    }

    /// This host is at fault.
    pub fn host(message: impl Into<String>) -> Self {
        Self {
            fault: Fault::Host,
            message: message.into(),
        }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for InputError {}
