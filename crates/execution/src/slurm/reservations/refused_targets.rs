//! Reservations that Slurm has refused: the same ones are not asked for again at once.

use std::time::{Duration, Instant};

use domain::clock::Clock;

use crate::slurm::reservations::target::Target;

/// How long after refusals the same reservations are asked for again, at first and at most; it doubles in between.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(16));

/// The reservations that Slurm was last asked for, where it has refused some.
#[derive(Debug)]
pub(crate) struct RefusedTargets {
    targets: Vec<Target>,
    said: Vec<String>,
    at: Instant,
    pause: Duration,
}

impl RefusedTargets {
    /// Slurm's words where it has just refused some of these reservations: they are not asked for again yet. They are where one
    /// of them is new or begins soon.
    pub(super) fn said_just_now(&self, unmet: &[&Target]) -> Option<Vec<String>> {
        let is_same = unmet.iter().copied().eq(&self.targets);
        (is_same && self.at.elapsed() < self.pause).then(|| self.said.clone())
    }

    /// Remembers which reservations Slurm has refused, after the ones that it has refused before; none where it has refused none.
    /// One that begins before the pause is over does not wait for its end.
    pub(super) fn after(before: Option<Self>, unmet: &[&Target], said: &[String]) -> Option<Self> {
        if said.is_empty() {
            return None;
        }
        let same = before.filter(|before| before.targets.len() == unmet.len());
        let pause = same.map_or(ASK_AGAIN.0, |same| (same.pause * 2).min(ASK_AGAIN.1));
        let soon = Clock::system().now() + i64::try_from(pause.as_secs()).unwrap_or(i64::MAX);
        let is_due = unmet.iter().any(|target| target.interval.start <= soon);
        Some(Self {
            targets: unmet.iter().map(|target| (*target).clone()).collect(),
            said: said.to_vec(),
            at: Instant::now(),
            pause: if is_due { ASK_AGAIN.0 } else { pause },
        })
    }
}

#[cfg(test)]
mod tests {
    use domain::agreement::Run;
    use scheduler::Interval;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn what_was_refused_just_now_waits_until_anything_else_is_wanted() {
        let target = |nodes: &[&str]| Target {
            id: Run::first(Uuid::nil()),
            interval: Interval::of(Clock::system().now() + 3_600, 60),
            nodes: nodes.iter().map(|name| (*name).to_owned()).collect(),
            user: "nobody".into(),
            party: String::new(),
            application: String::new(),
            is_awaited: false,
            handed: false,
            behind_own_jobs: false,
        };
        let (first, other) = (target(&["n1"]), target(&["n2"]));
        let said = vec!["no".to_owned()];
        let mut refused = None;
        for expected in [2, 4, 8, 16, 16] {
            refused = RefusedTargets::after(refused, &[&first], &said);
            let pause = refused.as_ref().map(|refused| refused.pause);
            assert_eq!(pause, Some(Duration::from_secs(expected)));
        }
        let said_of = |unmet: &[&Target]| refused.as_ref().and_then(|refused| refused.said_just_now(unmet));
        assert_eq!(said_of(&[&first]), Some(said.clone()));
        assert_eq!(said_of(&[&other]), None);
        assert_eq!(said_of(&[&first, &other]), None);
        // One that begins soon is asked for more often.
        let due = Target {
            interval: Interval::of(Clock::system().now(), 60),
            ..target(&["n1"])
        };
        let refused = RefusedTargets::after(refused, &[&due], &said);
        let pause = refused.as_ref().map(|refused| refused.pause);
        assert_eq!(pause, Some(ASK_AGAIN.0));
        assert!(RefusedTargets::after(refused, &[&due], &[]).is_none());
    }
}
