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
mod query;
mod refusals;
mod server;
pub(super) mod templates;
pub(super) mod terminate;
pub(super) mod usage;

use serde_json::Value;

pub(super) use agreements::print_agreement;
pub(super) use ids::{AgreementOptions, IdOrName};
pub(super) use options::{DryRun, parse_limit_option};
pub(super) use query::{Query, escape_path_part};
pub(super) use server::{Server, read_answer};

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
