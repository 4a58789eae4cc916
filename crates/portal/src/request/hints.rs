//! What the fields of the form say of applications, resources and prices.

use domain::catalogue::ArgumentSpec;

use crate::text;
use service::{OfferedResourceView, PriceListView};

/// A resource with what its nodes have.
pub(super) fn hint_of_resource(resource: &OfferedResourceView) -> String {
    let number = |name: &str| resource.attributes.get(name).and_then(serde_json::Value::as_i64);
    let word = |name: &str| resource.attributes.get(name).and_then(serde_json::Value::as_str);
    let parts = [
        Some(text::nodes(resource.nodes)),
        number("cpus").map(|cpus| format!("{cpus} processors a node")),
        number("gpus").map(|gpus| format!("{gpus} GPUs a node")),
        number("memory_bytes").map(|bytes| format!("{} GB a node", bytes / 1_000_000_000)),
        word("cpu_architecture").map(ToOwned::to_owned),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    format!("{} ({})", resource.name, parts.join(", "))
}

/// The saving for a reservation that may move.
pub(super) fn hint_of_saving_by_slack(prices: Option<&PriceListView>) -> String {
    let Some(prices) = prices.filter(|prices| prices.flexible_percent > 0.0) else {
        return "It moves only where this lets others in or brings it forward, and never out of your times."
            .to_owned();
    };
    let half = text::duration(i64::try_from(prices.flexible_half_seconds).unwrap_or(i64::MAX));
    format!(
        "The more room it has between the earliest start and the deadline, the less it costs: up to {} % less, half of that \
         with {half} to spare.",
        prices.flexible_percent
    )
}

/// The expected value, without the name that its label has already.
pub(super) fn hint_of_argument(spec: &ArgumentSpec) -> String {
    let expected = spec.to_string();
    let expected = expected.strip_prefix(spec.name.as_str()).unwrap_or(&expected);
    format!(
        "{}.",
        text::capitalised(expected.trim_start_matches(", ")).replace('`', "")
    )
}
