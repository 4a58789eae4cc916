//! The description of a slot for its party.

use scheduler::Seconds;

use crate::agreement::Agreement;

/// Which of the slots of an agreement has this index, in words for its party; none where there is one only.
pub(super) fn piece_of(agreement: &Agreement, index: usize) -> String {
    match agreement.slots.pieces().len() {
        0 => String::new(),
        of => format!("piece {} of {of} ", index + 1),
    }
}

/// How much earlier or later, in words.
pub(super) fn time_difference_in_words(seconds: Seconds) -> String {
    let direction = if seconds < 0 { "earlier" } else { "later" };
    format!("{} seconds {direction}", seconds.abs())
}
