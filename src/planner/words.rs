//! The description of a slot for its party, and numbers of things in words.

use std::fmt::Display;

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
    format!("{} {direction}", counted(seconds.abs(), "second"))
}

/// A number of things in words: "1 node", "2 nodes".
pub(super) fn counted(count: impl Display, thing: &str) -> String {
    let number = count.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_thing_is_told_as_one() {
        assert_eq!(counted(1, "node"), "1 node");
        assert_eq!(counted(0, "node"), "0 nodes");
        assert_eq!(counted(11, "second"), "11 seconds");
        assert_eq!(time_difference_in_words(-1), "1 second earlier");
        assert_eq!(time_difference_in_words(60), "60 seconds later");
    }
}
