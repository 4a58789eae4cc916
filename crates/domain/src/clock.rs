//! The one clock. Everything that depends on the present takes it as an argument, so that a test can turn it.
//!
//! The plan is in wall time, which an administrator or a time server may step. Durations are measured by the time since the
//! machine's start, which cannot be stepped; the two together show when the wall time was stepped (`docs/design/service.md`).

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use scheduler::{Seconds, Time, counted};

/// Microseconds since the Unix epoch: the unit of everything that is recorded as it happened.
pub type Micros = i64;

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// A difference between the wall time and the time that has passed since the last look is a step where it is greater than this:
/// more than time servers slew in an hour (at most 500 millionths), less than a slot's start may be late.
pub const STEP_MIN: Micros = 2 * MICROS_PER_SECOND;
/// How long a step is reported after it was noticed.
const TOLD_FOR: Micros = 3_600 * MICROS_PER_SECOND;

/// Tells the time: the system's, or one that a test turns. Clones are the same clock.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    set: Option<Arc<Set>>,
    steps: Arc<Mutex<LastTimes>>,
}

/// A clock that a test turns.
#[derive(Debug, Default)]
struct Set {
    wall: AtomicI64,
    since_boot: AtomicI64,
}

/// A change of the wall time that is not the passing of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// By how many microseconds; below zero where the clock was set back.
    pub by: Micros,
    /// The wall time when it was noticed, after the step.
    pub at: Micros,
    /// When the step was noticed, in microseconds since the machine's start.
    since_boot: Micros,
}

/// The steps of the clock that were noticed while the process lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steps {
    /// How many.
    pub count: u64,
    /// The last one.
    pub last: Option<Step>,
    /// The latest wall time that was seen before the clock was set back, until that time has come again. Everything due before it
    /// has begun already, and nothing else begins until then.
    pub behind: Option<Micros>,
}

/// The times that one look keeps for the next.
#[derive(Debug, Default)]
struct LastTimes {
    /// Wall time and time since the machine's start.
    before: Option<(Micros, Micros)>,
    steps: Steps,
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands at `now` until [`Clock::set`] turns it.
    pub fn standing_at(now: Micros) -> Self {
        let set = Set {
            wall: AtomicI64::new(now),
            since_boot: AtomicI64::new(0),
        };
        Self {
            set: Some(Arc::new(set)),
            steps: Arc::default(),
        }
    }

    /// Sets a standing clock: forwards as if time passed, back as an administrator sets it. The system's clock is not ours to
    /// set, and stays as it is.
    pub fn set(&self, now: Micros) {
        if let Some(set) = &self.set {
            let before = set.wall.swap(now, Ordering::SeqCst);
            set.since_boot.fetch_add((now - before).max(0), Ordering::SeqCst);
        }
    }

    /// Steps a standing clock by this many microseconds, with no time passing.
    pub fn step(&self, by: Micros) {
        if let Some(set) = &self.set {
            set.wall.fetch_add(by, Ordering::SeqCst);
        }
    }

    /// Microseconds since the Unix epoch.
    pub fn micros(&self) -> Micros {
        match &self.set {
            Some(set) => set.wall.load(Ordering::SeqCst),
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX)),
        }
    }

    /// Microseconds since the machine's start, those in which it slept among them: never stepped, and the same for every
    /// process.
    pub fn since_boot(&self) -> Micros {
        if let Some(set) = &self.set {
            return set.since_boot.load(Ordering::SeqCst);
        }
        let now = clock_gettime(ClockId::Boottime);
        now.tv_sec * MICROS_PER_SECOND + now.tv_nsec / 1_000
    }

    /// Compares the wall time with the time that has passed since the last look; answers the step where there was one.
    fn look(&self) -> Option<Step> {
        let mut watched = self.watched();
        let (wall, since_boot) = (self.micros(), self.since_boot());
        let before = watched.before.replace((wall, since_boot));
        let (before_wall, before_boot) = before?;
        let expected = before_wall + (since_boot - before_boot);
        let steps = &mut watched.steps;
        if steps.behind.is_some_and(|latest| wall >= latest) {
            steps.behind = None;
        }
        let by = wall - expected;
        if by.abs() <= STEP_MIN {
            return None;
        }
        let step = Step {
            by,
            at: wall,
            since_boot,
        };
        if by < 0 {
            steps.behind = steps.behind.max(Some(expected));
        }
        steps.count += 1;
        steps.last = Some(step);
        Some(step)
    }

    /// The steps that were noticed so far.
    pub fn steps(&self) -> Steps {
        self.watched().steps
    }

    /// The message about the last step: for an hour after it, and as long as the clock is behind its earlier time.
    pub fn words_of_step(&self) -> Option<String> {
        let Steps { last, behind, .. } = self.steps();
        let step = last?;
        let recent = self.since_boot() - step.since_boot < TOLD_FOR;
        (recent || behind.is_some()).then(|| clock_step_in_words(step, behind))
    }

    /// Compares as [`Clock::look`] does; the step in words for operators, where there was one.
    pub fn look_in_words(&self) -> Option<String> {
        let step = self.look()?;
        Some(clock_step_in_words(step, self.steps().behind))
    }

    fn watched(&self) -> MutexGuard<'_, LastTimes> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current second, as the planner counts.
    pub fn now(&self) -> Time {
        second_of(self.micros())
    }
}

/// The second that an instant in microseconds lies in.
pub fn second_of(micros: Micros) -> Time {
    Time(micros.div_euclid(MICROS_PER_SECOND))
}

/// The first second that begins at or after an instant in microseconds.
pub fn second_after(micros: Micros) -> Time {
    Time(-(-micros).div_euclid(MICROS_PER_SECOND))
}

/// A second as people read it; its number, where it is beyond the end of the calendar.
pub fn time_in_words(time: Time) -> String {
    jiff::Timestamp::from_second(time.seconds())
        .map_or_else(|_| time.to_string(), |instant| instant.to_string())
}

/// How much earlier or later something is by a number of seconds, in words.
pub fn time_difference_in_words(seconds: Seconds) -> String {
    let direction = if seconds < 0 { "earlier" } else { "later" };
    format!("{} {direction}", counted(seconds.abs(), "second"))
}

/// A step and its consequences, in words for operators.
fn clock_step_in_words(step: Step, behind: Option<Micros>) -> String {
    let instant = |at: Micros| time_in_words(second_of(at));
    let direction = if step.by < 0 { "back" } else { "forward" };
    let seconds = (step.by.abs() + MICROS_PER_SECOND / 2) / MICROS_PER_SECOND;
    let what = format!(
        "the clock was set {direction} by {}, to {}",
        counted(seconds, "second"),
        instant(step.at)
    );
    match behind {
        Some(latest) => {
            let latest = instant(latest);
            format!("{what}: nothing begins before {latest}, and running work goes on to the end of its slot")
        }
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_round_to_the_second_they_lie_in_and_to_the_one_after() {
        for (micros, within, after) in [
            (0, 0, 0),
            (1, 0, 1),
            (999_999, 0, 1),
            (1_000_000, 1, 1),
            (1_000_001, 1, 2),
            (-1, -1, 0),
        ] {
            assert_eq!(second_of(micros), Time(within), "{micros}");
            assert_eq!(second_after(micros), Time(after), "{micros}");
        }
    }

    #[test]
    fn a_standing_clock_moves_only_when_turned() {
        let clock = Clock::standing_at(5 * MICROS_PER_SECOND);
        let other = clock.clone();
        clock.set(7 * MICROS_PER_SECOND);
        assert_eq!(other.now(), Time(7));
    }

    const MINUTE: Micros = 60 * MICROS_PER_SECOND;

    #[test]
    fn steps_are_told_from_the_passing_of_time() {
        let clock = Clock::standing_at(1_000 * MINUTE);
        assert_eq!(clock.look(), None, "there was no look before");
        clock.set(1_090 * MINUTE);
        assert_eq!(clock.look(), None, "an hour and a half has passed");
        clock.step(STEP_MIN);
        assert_eq!(clock.look(), None, "so much may be slewed");
        assert_eq!((clock.steps(), clock.words_of_step()), (Steps::default(), None));
        clock.step(60 * MINUTE);
        assert_eq!(clock.look().map(|step| step.by), Some(60 * MINUTE));
        assert_eq!(clock.look(), None, "it is noticed once");
        let steps = clock.steps();
        assert_eq!((steps.count, steps.behind), (1, None));
        let told = clock.words_of_step().unwrap_or_default();
        assert!(
            told.starts_with("the clock was set forward by 3600 seconds, to 1970-"),
            "{told}"
        );
        clock.set(clock.micros() + 59 * MINUTE);
        assert!(clock.words_of_step().is_some());
        clock.set(clock.micros() + MINUTE);
        assert_eq!(clock.words_of_step(), None, "an hour later it is no news");
        assert_eq!(clock.steps().count, 1);
    }

    #[test]
    fn a_clock_that_was_set_back_is_behind_until_it_has_caught_up() {
        let clock = Clock::standing_at(1_000 * MINUTE);
        clock.look();
        clock.step(-100 * MINUTE);
        assert_eq!(clock.look().map(|step| step.by), Some(-100 * MINUTE));
        assert_eq!(clock.steps().behind, Some(1_000 * MINUTE));
        clock.set(910 * MINUTE);
        clock.look();
        // Set back again: the latest time seen before the first step counts.
        clock.step(-10 * MINUTE);
        assert!(clock.look().is_some());
        assert_eq!(
            (clock.steps().count, clock.steps().behind),
            (2, Some(1_000 * MINUTE))
        );
        clock.set(999 * MINUTE);
        clock.look();
        let told = clock.words_of_step().unwrap_or_default();
        assert!(
            told.contains("set back by 600 seconds"),
            "longer than an hour: {told}"
        );
        assert!(
            told.contains("nothing begins before 1970-01-01T16:40:00Z"),
            "{told}"
        );
        clock.set(1_000 * MINUTE);
        clock.look();
        assert_eq!(clock.words_of_step(), None);
    }

    #[test]
    fn a_difference_is_told_with_its_direction() {
        assert_eq!(time_difference_in_words(-1), "1 second earlier");
        assert_eq!(time_difference_in_words(60), "60 seconds later");
    }
}
