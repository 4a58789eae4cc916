//! The rejection of an offer: a refusal, or the faults of the words.

use serde_json::json;
use wsag::faults::violations_fragment;
use wsag::{Fragment, Violation};

use crate::views::refusal::{RefusalView, refusal_document};

/// Why an offer is rejected.
pub(crate) enum Rejection {
    /// Its words are wrong.
    Violations(Vec<Violation>),
    /// The plan has no place for it.
    Refusal(Box<RefusalView>),
}

impl Rejection {
    /// As a foreign element.
    pub(crate) fn fragment(&self) -> Fragment {
        match self {
            Self::Refusal(refusal) => refusal_document(refusal).to_fragment(),
            Self::Violations(violations) => {
                let violations: Vec<_> = violations.iter().map(Into::into).collect();
                violations_fragment(&violations)
            }
        }
    }

    /// As it is stored, and shown in JSON.
    pub(crate) fn json(&self) -> String {
        let json = match self {
            Self::Refusal(refusal) => serde_json::to_string(refusal),
            Self::Violations(violations) => {
                let told = violations.iter();
                let told =
                    told.map(|violation| json!({ "path": violation.path, "message": violation.message }));
                serde_json::to_string(&json!({ "violations": told.collect::<Vec<_>>() }))
            }
        };
        json.unwrap_or_default()
    }
}
