//! Whether a peer is asked: not while it fails, and not too often. And how it has done so far.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::clock::{Clock, MICROS_PER_SECOND, Micros};
use task::lock::lock;

/// How long a peer is not asked after its first failure, and at most; it doubles in between.
const BACK_OFF: (Micros, Micros) = (MICROS_PER_SECOND, 300 * MICROS_PER_SECOND);
/// Bytes of an error that are kept.
const ERROR_MAX: usize = 300;

/// How a peer does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerHealth {
    /// Whether its last answer came, and could be read; also before the first question.
    pub is_reachable: bool,
    /// Since when it does not answer, by our clock; none where it does.
    pub since: Option<Micros>,
    /// Why it last did not, in words.
    pub last_error: Option<String>,
    /// For how many more microseconds it is not asked because it failed; none where it is asked.
    pub not_asked_for: Option<Micros>,
    /// Questions that it was asked.
    pub asked: u64,
    /// Questions that it answered in time.
    pub answered: u64,
    /// Questions that it answered without an offer.
    pub refused: u64,
    /// Questions that it did not answer in time.
    pub late: u64,
    /// Questions that failed otherwise: no connection, a fault of its own, an answer that cannot be read.
    pub failed: u64,
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QuestionOutcome {
    /// It was answered, with offers or without.
    Answered { has_offers: bool },
    /// No answer came in time.
    Late,
    /// It failed, for a reason in words. The peer may say how long it is to be left alone.
    Failed(String, Option<Duration>),
}

/// Decides whether a peer is asked. Cheap to clone, and one for all clones.
#[derive(Debug, Clone)]
pub(super) struct Breaker {
    clock: Clock,
    per_minute: u32,
    state: Arc<Mutex<BreakerState>>,
}

/// Times are in microseconds since the machine's start.
#[derive(Debug, Default)]
struct BreakerState {
    health: PeerHealth,
    /// Failures since it last answered.
    failures: u32,
    /// Until then it is not asked.
    closed_until: Option<Micros>,
    /// Whether it is being asked once, to see whether it answers again.
    is_tried: bool,
    /// When the present minute began, and the questions in it.
    minute: (Micros, u32),
}

/// A question that may be asked. It counts once its outcome is told.
#[derive(Debug)]
pub(super) struct BreakerAdmission {
    breaker: Breaker,
    is_trial: bool,
    is_told: bool,
}

impl Breaker {
    pub(super) fn new(clock: Clock, per_minute: u32) -> Self {
        let state = BreakerState {
            health: PeerHealth {
                is_reachable: true,
                ..PeerHealth::default()
            },
            ..BreakerState::default()
        };
        Self {
            clock,
            per_minute,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Lets a question through.
    ///
    /// # Errors
    /// Why it is not asked, in words.
    pub(super) fn admit(&self) -> Result<BreakerAdmission, String> {
        let now = self.clock.since_boot();
        let mut state = lock(&self.state);
        let is_trial = state.failures > 0;
        let is_left_alone = state.is_tried || state.closed_until.is_some_and(|until| now < until);
        if is_trial && is_left_alone {
            let why = state.health.last_error.clone().unwrap_or_default();
            return Err(format!("it is not asked for a while, because it failed: {why}"));
        }
        if now - state.minute.0 >= 60 * MICROS_PER_SECOND {
            state.minute = (now, 0);
        }
        if state.minute.1 >= self.per_minute {
            let most = self.per_minute;
            return Err(format!(
                "it has been asked {most} times in this minute, which is the most"
            ));
        }
        state.minute.1 += 1;
        state.is_tried = is_trial;
        state.health.asked += 1;
        Ok(BreakerAdmission {
            breaker: self.clone(),
            is_trial,
            is_told: false,
        })
    }

    /// Notes that a message which was no question was answered, or was not.
    pub(super) fn note(&self, failure: Option<(String, Option<Duration>)>) {
        match failure {
            None => lock(&self.state).answered(),
            Some((why, wait)) => self.fail(&why, wait),
        }
    }

    /// How the peer does.
    pub(super) fn health(&self) -> PeerHealth {
        let now = self.clock.since_boot();
        let state = lock(&self.state);
        PeerHealth {
            not_asked_for: state
                .closed_until
                .map(|until| until - now)
                .filter(|left| *left > 0),
            ..state.health.clone()
        }
    }

    fn fail(&self, why: &str, wait: Option<Duration>) {
        let (now, wall) = (self.clock.since_boot(), self.clock.micros());
        let mut state = lock(&self.state);
        let health = &mut state.health;
        health.is_reachable = false;
        health.since.get_or_insert(wall);
        health.last_error = Some(why.chars().take(ERROR_MAX).collect());
        // Failures of what was sent before it was left alone say nothing new.
        if state.closed_until.is_some_and(|until| now < until) {
            return;
        }
        let doubled = BACK_OFF
            .0
            .checked_shl(state.failures.min(30))
            .unwrap_or(BACK_OFF.1);
        let said = wait
            .and_then(|wait| Micros::try_from(wait.as_micros()).ok())
            .unwrap_or(0);
        let wait = doubled.max(said).min(BACK_OFF.1);
        state.failures = state.failures.saturating_add(1);
        state.closed_until = Some(now + wait);
    }
}

impl BreakerState {
    fn answered(&mut self) {
        (self.failures, self.closed_until) = (0, None);
        (self.health.is_reachable, self.health.since) = (true, None);
    }
}

impl BreakerAdmission {
    /// Tells the outcome of the question.
    pub(super) fn tell(mut self, outcome: QuestionOutcome) {
        self.is_told = true;
        let mut state = lock(&self.breaker.state);
        state.is_tried &= !self.is_trial;
        let why = match outcome {
            QuestionOutcome::Answered { has_offers } => {
                state.answered();
                state.health.answered += 1;
                state.health.refused += u64::from(!has_offers);
                return;
            }
            QuestionOutcome::Late => {
                state.health.late += 1;
                ("it does not answer in time".to_owned(), None)
            }
            QuestionOutcome::Failed(why, wait) => {
                state.health.failed += 1;
                (why, wait)
            }
        };
        drop(state);
        self.breaker.fail(&why.0, why.1);
    }
}

impl Drop for BreakerAdmission {
    fn drop(&mut self) {
        if !self.is_told && self.is_trial {
            lock(&self.breaker.state).is_tried = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Micros = MICROS_PER_SECOND;

    fn failed() -> QuestionOutcome {
        QuestionOutcome::Failed("connection refused".into(), None)
    }

    fn pass(clock: &Clock, time: Micros) {
        clock.set(clock.micros() + time);
    }

    #[test]
    fn after_failures_it_is_asked_once_after_a_time_that_doubles_up_to_five_minutes() {
        let clock = Clock::standing_at(1_000 * SECOND);
        let breaker = Breaker::new(clock.clone(), 1_000);
        assert!(breaker.health().is_reachable);
        breaker.admit().unwrap().tell(failed());
        let mut expected = SECOND;
        for _ in 0..12 {
            assert_eq!(breaker.health().not_asked_for, Some(expected));
            pass(&clock, expected - 1);
            assert!(breaker.admit().unwrap_err().contains("connection refused"));
            pass(&clock, 1);
            let trial = breaker.admit().unwrap();
            assert!(breaker.admit().is_err(), "one at a time");
            trial.tell(failed());
            expected = (expected * 2).min(300 * SECOND);
        }
        let health = breaker.health();
        assert!(
            !health.is_reachable && health.since == Some(1_000 * SECOND),
            "{health:?}"
        );
        assert_eq!((health.asked, health.failed, health.answered), (13, 13, 0));
        pass(&clock, expected);
        // A trial without an outcome says nothing, and the next one may come.
        drop(breaker.admit().unwrap());
        breaker
            .admit()
            .unwrap()
            .tell(QuestionOutcome::Answered { has_offers: false });
        let health = breaker.health();
        assert!(health.is_reachable && health.since.is_none() && health.not_asked_for.is_none());
        assert_eq!((health.answered, health.refused), (1, 1));
        let many: Vec<_> = (0..10).map(|_| breaker.admit().unwrap()).collect();
        // Failures at the same time count as one.
        for questions in many {
            questions.tell(QuestionOutcome::Late);
        }
        assert_eq!(breaker.health().not_asked_for, Some(SECOND));
        assert_eq!(breaker.health().late, 10);
    }

    #[test]
    fn it_says_itself_how_long_it_is_left_alone() {
        let breaker = Breaker::new(Clock::standing_at(0), 10);
        let busy = |seconds| Some(("it is busy".to_owned(), Some(Duration::from_secs(seconds))));
        breaker.note(busy(60));
        assert_eq!(breaker.health().not_asked_for, Some(60 * SECOND));
        breaker.note(None);
        assert_eq!(breaker.health().not_asked_for, None);
        breaker.note(busy(100_000));
        assert_eq!(breaker.health().not_asked_for, Some(300 * SECOND));
    }

    #[test]
    fn it_is_asked_so_often_in_a_minute_and_no_oftener() {
        let clock = Clock::standing_at(0);
        let breaker = Breaker::new(clock.clone(), 3);
        for _ in 0..3 {
            breaker
                .admit()
                .unwrap()
                .tell(QuestionOutcome::Answered { has_offers: true });
        }
        assert!(breaker.admit().unwrap_err().contains("3 times in this minute"));
        pass(&clock, 60 * SECOND);
        breaker.admit().unwrap();
    }
}
