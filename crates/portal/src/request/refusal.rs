//! Why a request has no place, and the changes that would help, each a link that fills the form with it.

use serde_json::Value;
use wsag::{Violation, ViolationKind, Violations};

use crate::request::filled_form::FilledForm;
use crate::request::problems::problems_of_offer;
use crate::text;
use service::{RefusalView, RelaxationView};

/// A slot that begins within this many seconds may have begun before it is requested. So it is requested without an earliest
/// start, and with a deadline that leaves as much time again.
const SLOT_IS_NEAR: i64 = 600;

/// Why a request has no place, and where it would have one.
#[derive(Default)]
pub(crate) struct Refusal {
    pub(crate) reason: &'static str,
    /// The particulars; empty where there are none.
    pub(crate) constraint: String,
    /// The faults of its words.
    pub(crate) faults: Vec<String>,
    /// Whether the party has too much already, so that another request would not help.
    pub(crate) is_of_quota: bool,
    /// The id under which the provider has noted it, where it has.
    pub(crate) id: Option<String>,
    /// The smallest changes that would do, each by itself.
    pub(crate) changes: Vec<Change>,
    /// The nearest slots.
    pub(crate) slots: Vec<NearSlot>,
}

/// A change, and the address of the form with it.
pub(crate) struct Change {
    pub(crate) words: String,
    pub(crate) address: String,
}

/// A slot outside the window that was asked for, and the address of the form that asks for it.
pub(crate) struct NearSlot {
    pub(crate) direction: &'static str,
    pub(crate) start: String,
    pub(crate) end: String,
    pub(crate) address: String,
}

/// A refusal as a negotiation keeps it.
pub(crate) enum StoredRefusal {
    /// The plan has no place.
    Refused(RefusalView),
    /// Its words are wrong.
    Wrong(Violations),
}

impl StoredRefusal {
    /// The refusal in an offer or an answer.
    pub(crate) fn read(refusal: &Value) -> Self {
        if let Ok(refusal) = serde_json::from_value(refusal.clone()) {
            return Self::Refused(refusal);
        }
        let told = refusal["violations"].as_array().into_iter().flatten();
        let violation = |value: &Value| Violation {
            path: value["path"].as_str().unwrap_or_default().to_owned(),
            kind: ViolationKind::Value,
            message: value["message"].as_str().unwrap_or_default().to_owned(),
        };
        Self::Wrong(Violations(told.map(violation).collect()))
    }
}

impl Refusal {
    /// The refusal of what a form has asked for.
    pub(crate) fn of(refusal: &RefusalView, form: &FilledForm, now: i64) -> Self {
        let changes = refusal.relaxations.iter().map(|change| Change {
            words: relaxation_in_words(change),
            address: form.address_with_change(change),
        });
        let slots = refusal.alternatives.iter().map(|slot| {
            let (start, end) = (slot.start.seconds(), slot.end.seconds());
            let near = start - now <= SLOT_IS_NEAR;
            let latest = if near { end + SLOT_IS_NEAR } else { end };
            NearSlot {
                direction: if slot.direction == "earlier" {
                    "Earlier"
                } else {
                    "Later"
                },
                start: text::date_time(start),
                end: text::date_time(end),
                address: form.address_within((start, latest), near),
            }
        });
        Self {
            reason: refusal_reason_in_words(refusal.reason.word()),
            constraint: refusal.binding_constraint.clone(),
            faults: Vec::new(),
            is_of_quota: refusal.reason.word() == "QUOTA_EXCEEDED",
            id: refusal.id.map(|id| id.to_string()),
            changes: changes.collect(),
            slots: slots.collect(),
        }
    }

    /// The refusal that a negotiation has kept of what a form asks for.
    pub(crate) fn of_kept(refusal: &Value, form: &FilledForm, now: i64) -> Self {
        let violations = match StoredRefusal::read(refusal) {
            StoredRefusal::Refused(refusal) => return Self::of(&refusal, form, now),
            StoredRefusal::Wrong(violations) => violations,
        };
        let faults = problems_of_offer(&violations, Vec::new()).into_iter();
        Self {
            reason: refusal_reason_in_words(""),
            faults: faults.map(|problem| problem.message).collect(),
            ..Self::default()
        }
    }
}

/// A change of the request that would have let it in.
fn relaxation_in_words(change: &RelaxationView) -> String {
    let at = |seconds| text::moment(&text::date_time(seconds));
    let parts = [
        change.nodes.map(|count| format!("on {}", text::nodes(count))),
        change
            .duration_seconds
            .map(|seconds| format!("for {}", text::duration(seconds))),
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
pub(crate) fn refusal_reason_in_words(word: &str) -> &'static str {
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
