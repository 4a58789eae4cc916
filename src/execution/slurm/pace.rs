//! How many changes of reservations a cluster gets in a minute: its controller has others to serve, too.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_mins(1);

/// The changes of the last minute.
#[derive(Debug)]
pub(super) struct Pace {
    most: usize,
    made: VecDeque<Instant>,
}

impl Pace {
    /// A pace of so many changes in any minute.
    pub(super) fn new(a_minute: u32) -> Self {
        Self {
            most: usize::try_from(a_minute).unwrap_or(usize::MAX),
            made: VecDeque::new(),
        }
    }

    /// Whether another change may be made. Half of them are kept for what is urgent. O(1) amortized.
    pub(super) fn has_room(&mut self, is_urgent: bool, now: Instant) -> bool {
        while self
            .made
            .front()
            .is_some_and(|at| now.saturating_duration_since(*at) >= MINUTE)
        {
            self.made.pop_front();
        }
        let most = if is_urgent { self.most } else { self.most / 2 };
        self.made.len() < most
    }

    /// Counts a change.
    pub(super) fn note(&mut self, now: Instant) {
        self.made.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_so_many_changes_and_half_of_them_are_for_what_is_urgent() {
        let (mut pace, began) = (Pace::new(6), Instant::now());
        let mut take = |is_urgent, now| {
            let may = pace.has_room(is_urgent, now);
            if may {
                pace.note(now);
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
