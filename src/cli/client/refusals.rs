//! Refusals and other problems that the service answers with, in words.

use reqwest::StatusCode;
use scheduler::counted;
use serde_json::Value;

use super::{list_or_empty, text_or_empty};
use crate::cli::money::money_in_words;

/// A problem in words: the fault, its place, and the alternatives.
pub(super) fn refusal_or_problem_in_words(status: StatusCode, problem: &Value) -> String {
    let Some(detail) = problem["detail"].as_str() else {
        return format!("the service answers {status}");
    };
    let text = broken_rules_in_words(problem).unwrap_or_else(|| format!("{detail} ({status})"));
    let explained = problem["refusal"]["id"].as_str();
    let explained = explained.map_or_else(String::new, how_to_explain);
    text + &alternatives_of_refusal(&problem["refusal"]) + &explained
}

/// The line that tells how to see more about a refusal.
pub(super) fn how_to_explain(id: &str) -> String {
    format!("\n  to see why: bespeak explain {id}")
}

/// The rules that a request breaks, each with its place; that of all of it has no name.
fn broken_rules_in_words(told: &Value) -> Option<String> {
    let violations = told["violations"].as_array()?;
    let mut lines = format!("the request breaks {}:", counted(violations.len(), "rule"));
    for violation in violations {
        let path = text_or_empty(&violation["path"]);
        if !path.is_empty() {
            lines += &format!("\n  {path}");
        }
        lines += &format!("\n    {}", text_or_empty(&violation["message"]));
    }
    Some(lines)
}

/// The alternatives of a refusal, a line each, indented.
fn alternatives_of_refusal(refusal: &Value) -> String {
    let mut lines = String::new();
    for alternative in list_or_empty(&refusal["alternatives"]) {
        lines += &format!(
            "\n  possible {}: {} to {}",
            text_or_empty(&alternative["direction"]),
            text_or_empty(&alternative["start"]),
            text_or_empty(&alternative["end"])
        );
    }
    for relaxation in list_or_empty(&refusal["relaxations"]) {
        let parts = [
            ("ready", "a window from "),
            ("deadline", "a deadline of "),
            ("nodes", "nodes "),
            ("durationSeconds", "a duration in seconds of "),
            ("budget", "a budget of "),
        ];
        let parts = parts.into_iter().filter_map(|(key, words)| {
            let value = &relaxation[key];
            let value = value
                .as_str()
                .map(ToOwned::to_owned)
                .or_else(|| value.as_u64().map(|n| n.to_string()))
                .or_else(|| money_in_words(value));
            Some(format!("{words}{}", value?))
        });
        lines += &format!(
            "\n  it would fit with {}",
            parts.collect::<Vec<_>>().join(" and ")
        );
    }
    lines
}

/// The reason why there is no offer: a refusal's reason and its relaxations, or the rules that are broken.
pub(super) fn refusal_in_words(told: &Value) -> String {
    broken_rules_in_words(told).unwrap_or_else(|| {
        let reason = told["reason"].as_str().unwrap_or("nothing can be had");
        let binding = text_or_empty(&told["bindingConstraint"]);
        format!("{reason}: {binding}{}", alternatives_of_refusal(told))
    })
}
