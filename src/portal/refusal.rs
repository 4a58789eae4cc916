//! Why a request has no place, and the changes that would help, each a link that fills the form with it.

use super::request_values::{form_address, with_change, with_deadline, with_start};
use super::text;
use super::values::Values;
use crate::negotiation::RefusalView;

/// A slot that begins within this many seconds may have begun before it is requested. So it is requested without an earliest
/// start, and with a deadline that leaves as much time again.
const SLOT_IS_NEAR: i64 = 600;

/// Why a request has no place, and where it would have one.
pub(super) struct Refusal {
    pub(super) reason: &'static str,
    pub(super) constraint: String,
    /// The id under which the provider has noted it, where it has.
    pub(super) id: Option<String>,
    /// The smallest changes that would do, each by itself.
    pub(super) changes: Vec<Change>,
    /// The nearest slots.
    pub(super) slots: Vec<NearSlot>,
}

/// A change, and the address of the form with it.
pub(super) struct Change {
    pub(super) words: String,
    pub(super) address: String,
}

/// A slot outside the window that was asked for, and the address of the form that asks for it.
pub(super) struct NearSlot {
    pub(super) direction: &'static str,
    pub(super) start: String,
    pub(super) end: String,
    pub(super) address: String,
}

impl Refusal {
    /// The refusal of what a form has asked for.
    pub(super) fn of(refusal: &RefusalView, values: &Values, now: i64) -> Self {
        let changes = refusal.relaxations.iter().map(|change| Change {
            words: text::change(change),
            address: form_address(&with_change(values, change)),
        });
        let slots = refusal.alternatives.iter().map(|slot| {
            let (start, end) = (slot.start.seconds(), slot.end.seconds());
            let near = start - now <= SLOT_IS_NEAR;
            let (from, to) = if near {
                (None, end + SLOT_IS_NEAR)
            } else {
                (Some(start), end)
            };
            NearSlot {
                direction: if slot.direction == "earlier" {
                    "Earlier"
                } else {
                    "Later"
                },
                start: text::date_time(start),
                end: text::date_time(end),
                address: form_address(&with_deadline(with_start(values.clone(), from), Some(to))),
            }
        });
        Self {
            reason: text::reason(refusal.reason.word()),
            constraint: refusal.binding_constraint.clone(),
            id: refusal.id.map(|id| id.to_string()),
            changes: changes.collect(),
            slots: slots.collect(),
        }
    }
}
