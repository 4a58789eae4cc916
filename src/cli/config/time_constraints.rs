//! `[[time_constraint]]`: languages of other systems in which offers and templates may say when.

use serde::Deserialize;
use wsag::languages::{TimeLanguage, TimeLanguages};

/// Most languages: each is compared with every element of a document.
const LANGUAGES_MAX: usize = 16;

/// A language, with the names that its elements have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TimeConstraint {
    namespace: String,
    element: String,
    #[serde(default = "start")]
    start: String,
    #[serde(default = "end")]
    end: String,
    #[serde(default = "duration")]
    duration: String,
}

fn start() -> String {
    "StartTime".to_owned()
}

fn end() -> String {
    "EndTime".to_owned()
}

fn duration() -> String {
    "Duration".to_owned()
}

impl TimeConstraint {
    fn language(&self) -> TimeLanguage {
        let texts = self.clone();
        TimeLanguage {
            namespace: texts.namespace,
            element: texts.element,
            start: texts.start,
            end: texts.end,
            duration: texts.duration,
        }
    }
}

/// The languages that are configured.
pub(super) fn languages(configured: &[TimeConstraint]) -> TimeLanguages {
    configured.iter().map(TimeConstraint::language).collect()
}

/// Checks the names.
///
/// # Errors
/// The key, and what is expected there.
pub(super) fn check(configured: &[TimeConstraint]) -> Result<(), String> {
    if configured.len() > LANGUAGES_MAX {
        return Err(format!(
            "time_constraint: expected at most {LANGUAGES_MAX} of them"
        ));
    }
    for (index, constraint) in configured.iter().enumerate() {
        let key = format!("time_constraint[{index}]");
        constraint
            .language()
            .check()
            .map_err(|why| format!("{key}.{why}"))?;
        let before = configured.iter().take(index);
        if before
            .map(|other| &other.namespace)
            .any(|other| *other == constraint.namespace)
        {
            return Err(format!(
                "{key}.namespace: expected another one than {:?}, which has an entry",
                constraint.namespace
            ));
        }
    }
    Ok(())
}
