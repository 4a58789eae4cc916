//! How many changes of reservations a cluster gets in a minute: its controller has others to serve, too.

use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_mins(1);

/// The changes of the last minute.
#[derive(Debug)]
pub(crate) struct ReservationRate {
    most: usize,
    made: Vec<Instant>,
}

impl ReservationRate {
    /// A limit of `a_minute` changes in any minute.
    pub(crate) fn new(a_minute: u32) -> Self {
        Self {
            most: usize::try_from(a_minute).unwrap_or(usize::MAX),
            made: Vec::new(),
        }
    }

    /// Whether another change may be made. Half of them are kept for urgent changes.
    pub(crate) fn has_room(&mut self, is_urgent: bool, now: Instant) -> bool {
        self.made.retain(|at| now.saturating_duration_since(*at) < MINUTE);
        let most = if is_urgent { self.most } else { self.most / 2 };
        self.made.len() < most
    }

    /// Counts a change.
    pub(crate) fn note(&mut self, now: Instant) {
        self.made.push(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_so_many_changes_and_half_of_them_are_for_what_is_urgent() {
        let (mut rate, began) = (ReservationRate::new(6), Instant::now());
        let mut take = |is_urgent, now| {
            let may = rate.has_room(is_urgent, now);
            if may {
                rate.note(now);
            }
            may
        };
        let second = Duration::from_secs(1);
        let others = (0..10).filter(|_| take(false, began)).count();
        let urgent = (0..10).filter(|_| take(true, began + 30 * second)).count();
        assert_eq!((others, urgent), (3, 3));
        assert!(!take(true, began + 59 * second));
        assert!(take(true, began + 60 * second));
        assert!(!take(false, began + 61 * second), "four of the last minute");
        assert!(take(false, began + 90 * second));
    }
}
