//! The description of a slot for its party, the names of its nodes, and numbers of things in words.

use domain::agreement::Agreement;
use domain::resources::LOCAL;
use scheduler::{Seconds, counted};

use crate::context::View;

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

/// Whether a resource is this machine.
pub(crate) fn is_local(view: View<'_>, resource: &str) -> bool {
    let one_resource = view.schedules.named(resource);
    one_resource.is_some_and(|each| each.resource.kind == LOCAL)
}

/// The names of some nodes of a resource, for people.
pub(crate) fn names_of(view: View<'_>, resource: &str, nodes: &[u32]) -> String {
    let one_resource = view.schedules.named(resource);
    one_resource.map_or_else(String::new, |each| each.resource.names_of(nodes))
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
