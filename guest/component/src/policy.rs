use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abide_policy::mistake::{Check, Mistake};
use abide_policy::policies::Policies;
use serde::de::DeserializeOwned;

use crate::Component;
use crate::bindings::exports::abide::cmp::policy as wit;

impl wit::Guest for Component {
    fn check(policies: String) -> Vec<wit::Mistake> {
        parsed::<Policies>(&policies).err().unwrap_or_default()
    }

    fn complete(policies: String) -> Result<String, Vec<wit::Mistake>> {
        let policies: Policies = parsed(&policies)?;
        serde_json::to_string(&policies).map_err(|error| whole(error.to_string()))
    }
}

/// A policy, or all that is wrong with it.
pub(crate) fn parsed<P: Check + DeserializeOwned>(text: &str) -> Result<P, Vec<wit::Mistake>> {
    let policy: P = serde_json::from_str(text).map_err(|error| whole(error.to_string()))?;
    let mistakes = policy.mistakes();
    if mistakes.is_empty() {
        Ok(policy)
    } else {
        Err(reported(mistakes))
    }
}

pub(crate) fn reported(mistakes: Vec<Mistake>) -> Vec<wit::Mistake> {
    let mistakes = mistakes.into_iter();
    mistakes
        .map(|mistake| wit::Mistake {
            path: mistake.path,
            problem: mistake.problem.to_string(),
        })
        .collect()
}

pub(crate) fn whole(problem: String) -> Vec<wit::Mistake> {
    alloc::vec![wit::Mistake {
        path: String::new(),
        problem,
    }]
}
