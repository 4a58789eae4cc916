//! Why a request has no place, and the changes that would help, each a link that fills the form with it.

use crate::negotiation::RefusalView;
use crate::portal::request::values_of_request::{form_address, with_change, with_deadline, with_start};
use crate::portal::text;
use crate::portal::values::Values;

/// A slot that begins within this many seconds may have begun before it is requested. So it is requested without an earliest
/// start, and with a deadline that leaves as much time again.
const SLOT_IS_NEAR: i64 = 600;

/// Why a request has no place, and where it would have one.
pub(in crate::portal) struct Refusal {
    pub(in crate::portal) reason: &'static str,
    pub(in crate::portal) constraint: String,
    /// The id under which the provider has noted it, where it has.
    pub(in crate::portal) id: Option<String>,
    /// The smallest changes that would do, each by itself.
    pub(in crate::portal) changes: Vec<Change>,
    /// The nearest slots.
    pub(in crate::portal) slots: Vec<NearSlot>,
}

/// A change, and the address of the form with it.
pub(in crate::portal) struct Change {
    pub(in crate::portal) words: String,
    pub(in crate::portal) address: String,
}

/// A slot outside the window that was asked for, and the address of the form that asks for it.
pub(in crate::portal) struct NearSlot {
    pub(in crate::portal) direction: &'static str,
    pub(in crate::portal) start: String,
    pub(in crate::portal) end: String,
    pub(in crate::portal) address: String,
}

impl Refusal {
    /// The refusal of what a form has asked for.
    pub(in crate::portal) fn of(refusal: &RefusalView, values: &Values, now: i64) -> Self {
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
