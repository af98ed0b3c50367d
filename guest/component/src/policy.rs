use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abide_policy::mistake::Check;
use abide_policy::policies::Policies;

use crate::Component;
use crate::bindings::exports::abide::cmp::policy as wit;

impl wit::Guest for Component {
    fn check(policies: String) -> Vec<wit::Mistake> {
        match read(&policies) {
            Ok(_) => Vec::new(),
            Err(mistakes) => mistakes,
        }
    }

    fn complete(policies: String) -> Result<String, Vec<wit::Mistake>> {
        let policies = read(&policies)?;
        serde_json::to_string(&policies).map_err(|error| alloc::vec![whole(error.to_string())])
    }
}

/// The policies, or all that is wrong with them.
fn read(text: &str) -> Result<Policies, Vec<wit::Mistake>> {
    let policies: Policies =
        serde_json::from_str(text).map_err(|error| alloc::vec![whole(error.to_string())])?;
    let mistakes = policies.mistakes();
    if mistakes.is_empty() {
        Ok(policies)
    } else {
        Err(mistakes
            .into_iter()
            .map(|mistake| wit::Mistake {
                path: mistake.path,
                problem: mistake.problem.to_string(),
            })
            .collect())
    }
}

fn whole(problem: String) -> wit::Mistake {
    wit::Mistake {
        path: String::new(),
        problem,
    }
}
