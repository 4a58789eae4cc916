//! Wrong keys, counted by the address that they come from. A key cannot be guessed; an address that tries many is answered ever later,
//! so that it costs the service little and is noticed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Api, Error, Origin};

/// Wrong keys of an address that are answered at once: people mistype, and a client may not know yet that its key was revoked.
const FREE: u32 = 5;
/// How long an address has to send no wrong key until it is forgotten.
const REMEMBERED: Duration = Duration::from_mins(1);
/// How long the answer to the first wrong key after these waits; that to each further one twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(50);
/// The longest delay. While it lasts, the request holds a place among those of its address for wrong keys.
const LONGEST_DELAY: Duration = Duration::from_secs(2);
/// Addresses that are remembered. Where there are more, the oldest are forgotten.
const ADDRESSES_MAX: usize = 10_000;

/// The wrong keys of the last time. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct WrongKeys(Arc<Mutex<WrongKeyCounts>>);

#[derive(Debug, Default)]
struct WrongKeyCounts {
    /// By address, how many keys were wrong, and when the last one came.
    by_address: HashMap<Origin, (u32, Instant)>,
    /// Answers that were delayed since the process was started.
    delayed: u64,
}

impl WrongKeys {
    /// Counts a wrong key that came from an address, where that is known, and waits until it may be answered.
    pub async fn wait_after(&self, origin: Option<Origin>) {
        let delay = self.count(origin, Instant::now());
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    /// Answers that were delayed.
    pub(super) fn delayed(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).delayed
    }

    /// Counts one. Returns how long its answer has to wait.
    fn count(&self, origin: Option<Origin>, now: Instant) -> Duration {
        let Some(origin) = origin else {
            return Duration::ZERO;
        };
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.by_address.len() >= ADDRESSES_MAX && !seen.by_address.contains_key(&origin) {
            let is_recent = |last: &Instant| now.duration_since(*last) < REMEMBERED / 2;
            seen.by_address.retain(|_, (_, last)| is_recent(last));
            if seen.by_address.len() >= ADDRESSES_MAX {
                seen.by_address.clear();
            }
        }
        let (wrong, last) = seen.by_address.entry(origin).or_insert((0, now));
        if now.duration_since(*last) >= REMEMBERED {
            *wrong = 0;
        }
        (*wrong, *last) = (wrong.saturating_add(1), now);
        let Some(doublings) = wrong.checked_sub(FREE + 1) else {
            return Duration::ZERO;
        };
        seen.delayed += 1;
        let delay = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(doublings));
        delay.min(LONGEST_DELAY)
    }
}

impl Api {
    /// Counts a wrong key that came from an address, and waits until it may be answered.
    ///
    /// # Errors
    /// [`Error::TooManyAtOnce`] where as many of the address wait already.
    pub async fn delay_wrong_key(&self, origin: Option<Origin>) -> Result<(), Error> {
        let _place = self.places.take_wrong(origin)?;
        self.wrong_keys.wait_after(origin).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn the_answers_to_an_address_that_tries_many_keys_come_ever_later_and_those_to_others_do_not() {
        let keys = WrongKeys::default();
        let [one, other] = [1, 2].map(|number| Some(Origin::from(IpAddr::from([192, 0, 2, number]))));
        let now = Instant::now();
        let delays: Vec<_> = (0..13).map(|_| keys.count(one, now).as_millis()).collect();
        assert_eq!(
            delays,
            [0, 0, 0, 0, 0, 50, 100, 200, 400, 800, 1_600, 2_000, 2_000]
        );
        assert_eq!(
            (keys.count(other, now), keys.count(None, now)),
            (Duration::ZERO, Duration::ZERO)
        );
        assert_eq!(keys.delayed(), 8);
        assert_eq!(
            keys.count(one, now + REMEMBERED),
            Duration::ZERO,
            "it is forgotten"
        );
    }

    #[test]
    fn the_addresses_that_are_remembered_are_bounded() {
        let keys = WrongKeys::default();
        let now = Instant::now();
        for number in 0..3 * u32::try_from(ADDRESSES_MAX).unwrap() {
            keys.count(Some(Origin::from(IpAddr::from(number.to_be_bytes()))), now);
        }
        assert!(keys.0.lock().unwrap().by_address.len() <= ADDRESSES_MAX);
    }
}
