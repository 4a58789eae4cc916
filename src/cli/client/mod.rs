//! The client's subcommands, and the JSON values of answers that they share.

pub(super) mod agreements;
pub(super) mod call_backs;
pub(super) mod change;
pub(super) mod executions;
pub(super) mod explain;
pub(super) mod files;
mod ids;
pub(super) mod job_output;
pub(super) mod negotiations;
pub(super) mod offers;
mod options;
pub(super) mod predict;
mod refusals;
mod server;
pub(super) mod templates;
pub(super) mod terminate;
pub(super) mod usage;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub(super) use agreements::print_agreement;
pub(super) use ids::{AgreementOptions, IdOrName};
pub(super) use options::{DryRun, parse_limit_option};
pub(super) use server::{Query, Server};

use super::Failure;

/// An answer of the service as the value that it is.
pub(super) fn read_answer<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|why| Failure::Unavailable(format!("the service speaks another version: {why}")))
}

/// A text as one part of a path.
pub(super) fn escape_path_part(text: &str) -> String {
    let text: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    text.replace('+', "%20")
}

/// A text; empty where there is none.
pub(super) fn text_or_empty(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The values of a list; none where there is no list.
pub(super) fn list_or_empty(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A value as JSON.
pub(super) fn print_json(value: &Value) {
    say!("{value:#}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_names_what_it_did() {
        assert_eq!(escape_path_part("n[1-3],big_1"), "n%5B1-3%5D%2Cbig_1");
        assert_eq!(escape_path_part("a/b?c%é"), "a%2Fb%3Fc%25%C3%A9");
    }
}
