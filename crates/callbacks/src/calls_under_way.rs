//! The decisions and receivers that have their turn at the same time.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{AT_ONCE_MAX, OF_EACH_MAX};

/// The decisions and receivers that are being told now, each with its party.
#[derive(Default)]
pub(super) struct CallsUnderWay(BTreeMap<Uuid, String>);

impl CallsUnderWay {
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= AT_ONCE_MAX
    }

    /// Takes a place for a decision or a receiver of a party; false where none is free, or where it has one.
    pub(super) fn take_place(&mut self, id: Uuid, party: &str) -> bool {
        let of_party = self.0.values().filter(|other| *other == party);
        if self.is_full() || of_party.count() >= OF_EACH_MAX || self.0.contains_key(&id) {
            return false;
        }
        self.0.insert(id, party.to_owned());
        true
    }

    /// Frees the place of a decision or a receiver that was told.
    pub(super) fn free_place(&mut self, id: Uuid) {
        self.0.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_party_has_a_bounded_number_of_places_and_something_one() {
        let mut in_flight = CallsUnderWay::default();
        let one = Uuid::now_v7();
        assert!(in_flight.take_place(one, "physics") && !in_flight.take_place(one, "physics"));
        let more = (0..10).filter(|_| in_flight.take_place(Uuid::now_v7(), "physics"));
        assert_eq!(more.count(), OF_EACH_MAX - 1);
        let take_other = |number: &usize| in_flight.take_place(Uuid::now_v7(), &number.to_string());
        let others = (0..2 * AT_ONCE_MAX).filter(take_other);
        assert_eq!(others.count(), AT_ONCE_MAX - OF_EACH_MAX);
        in_flight.free_place(one);
        assert!(
            in_flight.take_place(Uuid::now_v7(), "physics"),
            "it is free again"
        );
    }
}
