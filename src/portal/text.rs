//! Times, durations and states in words for people.

use domain::agreement::OfferKind;

use super::zone::Zone;
use crate::service::{AgreementView, MoneyView, RelaxationView};

/// A dateTime as the visitor reads it.
pub(super) fn moment(date_time: &str) -> String {
    Zone::present().tell(date_time)
}

/// A second of the plan as a dateTime in UTC; empty beyond the year 9999.
pub(super) fn date_time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| String::new(), |at| at.to_string())
}

/// The second of a dateTime, rounded down.
pub(super) fn second_of(date_time: &str) -> Option<i64> {
    date_time.parse().ok().map(jiff::Timestamp::as_second)
}

/// A number of seconds as `1 d 2 h 3 min 4 s`, without the parts that are zero.
pub(super) fn duration(seconds: i64) -> String {
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(amount, _)| *amount != 0)
        .map(|(amount, unit)| format!("{amount} {unit}"))
        .collect();
    if parts.is_empty() {
        "0 s".to_owned()
    } else {
        parts.join(" ")
    }
}

/// Where an agreement stands, in a word or two, and the class of its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateLabel {
    /// For people.
    pub(super) words: &'static str,
    /// For the style sheet.
    pub(super) class: &'static str,
}

/// Where an agreement stands.
pub(super) fn standing(agreement: &AgreementView) -> StateLabel {
    let outcome = agreement.outcome.as_deref();
    let (words, class) = match (
        agreement.state.as_str(),
        agreement.service_state.as_str(),
        outcome,
    ) {
        ("Observed", "NotReady", _) => ("Waiting", "waiting"),
        ("Observed", "Idle", _) if !agreement.pieces.is_empty() => ("Between two pieces", "running"),
        ("Observed", "Idle", _) => ("Reserved now", "running"),
        ("Observed", "Processing", _) if agreement.started.is_none() => ("Starting", "running"),
        ("Observed", "Processing", _) => ("Running", "running"),
        ("Observed", ..) => ("Ending", "running"),
        ("Pending" | "PendingAndTerminating", ..) => ("Being decided", "waiting"),
        ("ObservedAndTerminating", ..) => ("Being cancelled", "running"),
        ("Complete", _, Some("completed")) => ("Completed", "good"),
        ("Complete", _, Some("failed")) => ("Failed", "bad"),
        ("Complete", _, Some("killed")) => ("Stopped at the end of its time", "bad"),
        ("Complete", _, Some("lost")) => ("Lost", "bad"),
        ("Complete", _, Some("exceeded-memory")) => ("Stopped: too much memory", "bad"),
        ("Complete", _, Some("exceeded-processes")) => ("Stopped: too many processes", "bad"),
        ("Complete", _, Some("failed-staging")) => ("Stopped: files not moved", "bad"),
        ("Complete", _, Some("exceeded-files")) => ("Stopped: too much written", "bad"),
        ("Complete", ..) if agreement.superseded_by.is_some() => ("Changed", "over"),
        ("Complete", ..) => ("Over", "over"),
        ("Terminated", ..) => ("Cancelled", "over"),
        ("Rejected", ..) => ("Refused", "bad"),
        _ => ("Unknown", "over"),
    };
    StateLabel { words, class }
}

/// Whether an agreement will not change any more.
pub(super) fn is_final(agreement: &AgreementView) -> bool {
    matches!(agreement.state.as_str(), "Complete" | "Terminated" | "Rejected")
}

/// Whether all of an agreement can still change: its slot has not begun.
pub(super) fn can_change_wholly(agreement: &AgreementView) -> bool {
    agreement.state == "Observed" && agreement.service_state == "NotReady"
}

/// Whether the price of an agreement was or will be charged, as far as its state tells: not of one that was ended before its time, was
/// replaced, or was lost.
pub(super) fn is_price_due(agreement: &AgreementView) -> bool {
    let outcome = agreement.outcome.as_deref();
    !is_final(agreement) || outcome.is_some_and(|outcome| outcome != "lost")
}

/// When an agreement began and ended, as far as it has, and otherwise when it is to. What has no place has the time that was asked for.
pub(super) fn shown_time(agreement: &AgreementView) -> (String, String) {
    let start = agreement.planned_start.as_ref().unwrap_or(&agreement.ready);
    let end = agreement.planned_end.as_ref().unwrap_or(&agreement.deadline);
    let start = agreement.started.as_ref().unwrap_or(start);
    let end = agreement
        .ended
        .as_ref()
        .filter(|_| agreement.started.is_some())
        .unwrap_or(end);
    (start.clone(), end.clone())
}

/// A text as a cell of a file with comma-separated values (RFC 4180). A program for tables would take one that begins with a sign for a
/// formula, so an apostrophe stands before it.
pub(super) fn csv_cell(text: &str) -> String {
    let is_formula =
        text.trim_start().starts_with(['=', '+', '-', '@']) || text.starts_with(['\t', '\r', '\n']);
    let safe = if is_formula { "'" } else { "" };
    format!("\"{safe}{}\"", text.replace('"', "\"\""))
}

/// The name of an agreement on the pages, also where it has none.
pub(super) fn name(agreement: &AgreementView) -> String {
    name_or(agreement.name.as_deref(), agreement.application.as_deref())
}

/// The name of a reservation, else its application, else that nodes are reserved.
pub(super) fn name_or(name: Option<&str>, application: Option<&str>) -> String {
    let name = name.filter(|name| !name.trim().is_empty());
    name.or(application).unwrap_or("Reserved nodes").to_owned()
}

/// `1 node`, `2 nodes`.
pub(super) fn nodes(count: u32) -> String {
    format!("{count} {}", if count == 1 { "node" } else { "nodes" })
}

/// `2 nodes for 1 h`.
pub(super) fn size(count: u32, seconds: i64) -> String {
    format!("{} for {}", nodes(count), duration(seconds))
}

/// By how much a price differs from the one that it replaces.
pub(super) fn difference(money: &MoneyView) -> String {
    match money.amount.strip_prefix('-') {
        Some(less) => format!("{less} {} less than now", money.currency),
        None if money.amount == "0" => "the same price as now".to_owned(),
        None => format!("{money} more than now"),
    }
}

/// How an offer differs from the request.
pub(super) fn kind(kind: OfferKind) -> &'static str {
    match kind {
        OfferKind::Exact => "as it was asked for",
        OfferKind::Earlier => "earlier than asked for",
        OfferKind::Later => "later than asked for",
        OfferKind::Fewer => "on fewer nodes than asked for",
        OfferKind::More => "on more nodes than asked for",
        OfferKind::Shorter => "shorter than asked for",
        OfferKind::InPieces => "as it was asked for, in pieces",
    }
}

/// Why the provider proposes something by itself.
pub(super) fn proposal(why: &str, penalties: &[MoneyView]) -> String {
    if why != "broken" {
        return "The provider proposes this: in another place the reservation would let others in. Nothing moves unless you accept."
            .to_owned();
    }
    let paid: Vec<_> = penalties.iter().map(ToString::to_string).collect();
    let paid = match paid.as_slice() {
        [] => String::new(),
        amounts => format!(
            " {} were paid to you for that in any case.",
            amounts.join(" and ")
        ),
    };
    format!(
        "The reservation could not be kept, since its nodes are out of use.{paid} The provider proposes this instead."
    )
}

/// Energy, to the thousandth of a kilowatt-hour.
#[expect(clippy::cast_precision_loss, reason = "watt-hours lie far below 2⁵³")]
pub(super) fn kilowatt_hours(watt_hours: i64) -> String {
    format!("{} kWh", watt_hours as f64 / 1e3)
}

/// A change of the request that would have let it in.
pub(super) fn change(change: &RelaxationView) -> String {
    let at = |seconds| moment(&date_time(seconds));
    let parts = [
        change.nodes.map(|count| format!("on {}", nodes(count))),
        change
            .duration_seconds
            .map(|seconds| format!("for {}", duration(seconds))),
        change
            .ready
            .map(|ready| format!("from {} on", at(ready.seconds()))),
        change
            .deadline
            .map(|end| format!("with a deadline of {}", at(end.seconds()))),
        change
            .budget
            .map(|budget| format!("for {budget}, the lowest possible price")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

/// Why an offer has no place, in words for a visitor with a form; the word of the closed list says which reason it is.
pub(super) fn reason(word: &str) -> &'static str {
    match word {
        "NO_CAPACITY_IN_WINDOW" => "There is no room for it between the earliest start and the deadline.",
        "SIZE_EXCEEDS_CAPACITY" => "It asks for more nodes than the provider has.",
        "WINDOW_CONTRADICTORY" => "The deadline is too near to the earliest start.",
        "WINDOW_IN_THE_PAST" => "It is too late to end before the deadline.",
        "HORIZON_EXCEEDED" => "It lies further ahead than the provider plans.",
        "QUOTA_EXCEEDED" => "It would exceed what you may reserve.",
        "BUDGET_TOO_LOW" => "It costs more than it may.",
        "RESOURCE_NOT_OFFERED" => "There is no such resource here.",
        _ => "The provider does not allow it.",
    }
}

/// A text with a capital at its beginning.
pub(super) fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().to_string());
    format!("{first}{}", characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_of_the_plan_are_written_as_date_times() {
        assert_eq!(date_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(date_time(i64::MAX), "");
    }

    #[test]
    fn what_costs_less_is_said_to_cost_less() {
        let told = |amount: &str| {
            difference(&MoneyView {
                amount: amount.to_owned(),
                currency: "EUR".to_owned(),
            })
        };
        assert_eq!(told("1.5"), "1.5 EUR more than now");
        assert_eq!(told("-0.25"), "0.25 EUR less than now");
        assert_eq!(told("0"), "the same price as now");
    }

    #[test]
    fn no_cell_is_a_formula_or_ends_early() {
        for (text, cell) in [
            ("plain", "\"plain\""),
            ("a \"b\", c", "\"a \"\"b\"\", c\""),
            ("=1+1", "\"'=1+1\""),
            (" @x", "\"' @x\""),
            ("-2", "\"'-2\""),
            ("\t=1", "\"'\t=1\""),
        ] {
            assert_eq!(csv_cell(text), cell);
        }
    }

    #[test]
    fn durations_leave_out_what_is_zero() {
        for (seconds, words) in [
            (0, "0 s"),
            (59, "59 s"),
            (3_600, "1 h"),
            (5_430, "1 h 30 min 30 s"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(seconds), words);
        }
    }
}
