//! What the CA says no with.

use abide_cmp::FailInfo;

/// A reason for the client, in the words of the protocol and in those of people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The bit of PKIFailureInfo.
    pub(crate) fail_info: FailInfo,
    /// What is wrong and what to do.
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(fail_info: FailInfo, text: impl Into<String>) -> Self {
        Self {
            fail_info,
            text: text.into(),
        }
    }

    /// One line: the bits and the text.
    pub(crate) fn summary(&self) -> String {
        let names: Vec<_> = self.fail_info.names().collect();
        format!("{}: {}", names.join(" "), self.text)
    }
}

/// Why a request gets no ordinary answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The request is refused, and the client is told.
    Refused(Refusal),
    /// The CA itself fails, and nothing is promised to the client.
    Failed(anyhow::Error),
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<anyhow::Error> for Trouble {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}
