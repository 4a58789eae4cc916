//! The description of a slot for its party, and numbers of things in words.

use domain::agreement::Agreement;
use scheduler::{Seconds, counted};

/// Which of the slots of an agreement has this index, in words for its party; none where there is one only.
pub(super) fn piece_in_words(agreement: &Agreement, index: usize) -> String {
    match agreement.slots.pieces().len() {
        0 => String::new(),
        pieces => format!("piece {} of {pieces} ", index + 1),
    }
}

/// How much earlier or later, in words.
pub(super) fn time_difference_in_words(seconds: Seconds) -> String {
    let direction = if seconds < 0 { "earlier" } else { "later" };
    format!("{} {direction}", counted(seconds.abs(), "second"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_with_its_direction() {
        assert_eq!(time_difference_in_words(-1), "1 second earlier");
        assert_eq!(time_difference_in_words(60), "60 seconds later");
    }
}
