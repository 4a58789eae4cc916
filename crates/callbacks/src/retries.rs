//! When a call that has failed is tried again, and when it is given up.

use domain::clock::{MICROS_PER_SECOND, Micros};

/// The wait before the second try, and the longest; it doubles in between.
const RETRY: (Micros, Micros) = (MICROS_PER_SECOND, 3_600 * MICROS_PER_SECOND);
/// A decision or an event is dropped this long after the first attempt to tell it failed: the client can still ask. The time in which
/// the service was down before that attempt does not count. While a receiver takes nothing, its events are dropped this long after they
/// happened.
pub(super) const GIVEN_UP_AFTER: Micros = 24 * 3_600 * MICROS_PER_SECOND;

/// Whether something that cannot be told since an instant, the first failure, is tried no more.
pub(super) fn is_given_up(failing: Option<Micros>, now: Micros) -> bool {
    failing.is_some_and(|since| now - since >= GIVEN_UP_AFTER)
}

/// How long to wait after this many tries before the last one.
pub(super) fn wait_before_retry(attempts: u32) -> Micros {
    let doubled = RETRY.0.checked_shl(attempts.min(30)).unwrap_or(RETRY.1);
    doubled.clamp(RETRY.0, RETRY.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_an_hour() {
        assert_eq!(wait_before_retry(0), MICROS_PER_SECOND);
        assert_eq!(wait_before_retry(5), 32 * MICROS_PER_SECOND);
        assert_eq!(wait_before_retry(12), RETRY.1);
        assert_eq!(wait_before_retry(u32::MAX), RETRY.1);
    }
}
