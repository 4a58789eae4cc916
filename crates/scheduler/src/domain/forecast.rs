//! The times and losses that are foreseen of a task on each resource, by the instant at which it would start there.

use crate::time::{Interval, Seconds, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The times and the loss that are foreseen of a placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeseenTimes {
    /// Seconds for which the nodes are held: the length of the slot.
    pub hold: Seconds,
    /// Seconds from the start to the expected completion. More than `hold` where lost work is run again, less where the
    /// slot has a reserve.
    pub completion: Seconds,
    /// What it costs beside the price of its nodes, such as the expected cost of a violation, in the unit of
    /// [`Candidate::cost`](super::Candidate::cost). Below zero where it earns something.
    pub loss: i128,
    /// By how much the loss is greater at the end of a step than at its beginning; in between it is linear, rounded down. The first
    /// and the last step of a forecast have no ends, and their loss is constant.
    pub rise: i128,
}

impl ForeseenTimes {
    /// A slot that is held for as long as the work takes.
    pub const fn exact(hold: Seconds) -> Self {
        Self {
            hold,
            completion: hold,
            loss: 0,
            rise: 0,
        }
    }

    /// The less of each.
    fn least(self, other: Self) -> Self {
        Self {
            hold: self.hold.min(other.hold),
            completion: self.completion.min(other.completion),
            loss: self.loss.min(other.loss),
            rise: 0,
        }
    }

    /// The same with the least loss of its step.
    pub(super) fn at_least(self) -> Self {
        Self {
            loss: self.loss.saturating_add(self.rise.min(0)),
            rise: 0,
            ..self
        }
    }
}

/// Starts for which the same is foreseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ForecastStep {
    /// The first one reaches back to the beginning of time, the last one to its end.
    pub(super) starts: Interval,
    pub(super) foreseen: ForeseenTimes,
    /// No start in this step or a later one has less of any of the three.
    pub(super) least: ForeseenTimes,
    /// The earliest completion of all starts in later steps.
    later: Time,
}

impl ForecastStep {
    /// What is foreseen of a start in this step.
    pub(super) fn at(&self, start: Time) -> ForeseenTimes {
        let ForeseenTimes { loss, rise, .. } = self.foreseen;
        if rise == 0 {
            return self.foreseen;
        }
        let (passed, all) = (start - self.starts.start, self.starts.duration());
        let risen = rise.saturating_mul(passed.into()).div_euclid(all.into());
        ForeseenTimes {
            loss: loss.saturating_add(risen),
            rise: 0,
            ..self.foreseen
        }
    }

    /// The earliest expected completion of a start at or after `t`, which is in this step, where everything is free.
    pub(super) fn earliest_completion(&self, t: Time) -> Time {
        (t + self.foreseen.completion).min(self.later)
    }
}

/// What is foreseen of a task on one resource, by the instant at which it starts: constant in steps, the loss linear in them.
///
/// ```
/// use scheduler::Time;
/// use scheduler::domain::{Forecast, ForeseenTimes};
/// let (day, night) = (ForeseenTimes::exact(4_000), ForeseenTimes::exact(3_000));
/// let forecast = Forecast::new(vec![(Time(0), day), (Time(50_000), night)]).ok_or("faulty")?;
/// assert_eq!(forecast.at(Time(49_999)), day);
/// assert_eq!(forecast.at(Time(50_000)), night);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// By time, at least one.
    steps: Box<[ForecastStep]>,
}

impl Forecast {
    /// The same for every start. A hold and a completion are 1 s at least.
    pub fn constant(foreseen: ForeseenTimes) -> Self {
        let foreseen = ForeseenTimes {
            hold: foreseen.hold.max(1),
            completion: foreseen.completion.max(1),
            ..foreseen
        };
        Self::of(vec![(Time::MIN, foreseen)])
    }

    /// A forecast of steps, each from an instant on to the next one; the first one also holds for every earlier start. They are
    /// sorted here; of several from the same instant on the last one counts. `None` where there is no step, or a hold or
    /// completion below 1. O(k log k) for k steps.
    pub fn new(mut steps: Vec<(Time, ForeseenTimes)>) -> Option<Self> {
        let sound = |times: &ForeseenTimes| times.hold >= 1 && times.completion >= 1;
        if steps.is_empty() || !steps.iter().all(|(_, step)| sound(step)) {
            return None;
        }
        steps.sort_by_key(|(from, _)| *from);
        steps.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = next.1;
            }
            same
        });
        steps.dedup_by(|next, kept| next.1 == kept.1 && kept.1.rise == 0);
        Some(Self::of(steps))
    }

    /// Of steps in order, at least one.
    fn of(steps: Vec<(Time, ForeseenTimes)>) -> Self {
        let (mut end, mut least, mut later) = (Time(i64::MAX), None::<ForeseenTimes>, Time(i64::MAX));
        let count = steps.len();
        let backwards = steps
            .into_iter()
            .enumerate()
            .rev()
            .map(|(number, (from, foreseen))| {
                let start = if number == 0 { Time(i64::MIN) } else { from };
                let has_ends = number > 0 && end < Time(i64::MAX);
                let rise = if has_ends { foreseen.rise } else { 0 };
                let foreseen = ForeseenTimes { rise, ..foreseen };
                let of_rest = foreseen.at_least();
                let of_rest = least.map_or(of_rest, |least| least.least(of_rest));
                let step = ForecastStep {
                    starts: Interval::new(start, end),
                    foreseen,
                    least: of_rest,
                    later,
                };
                (end, least, later) = (start, Some(of_rest), later.min(from + foreseen.completion));
                step
            });
        let mut steps = Vec::with_capacity(count);
        steps.extend(backwards);
        steps.reverse();
        Self {
            steps: steps.into_boxed_slice(),
        }
    }

    /// What is foreseen of a start. O(log k).
    pub fn at(&self, start: Time) -> ForeseenTimes {
        self.step(start).at(start)
    }

    /// The longest hold of the starts in an interval; of its first second where it is empty. O(k).
    pub fn longest_hold(&self, starts: Interval) -> Seconds {
        let last = starts.end.max(starts.start + 1);
        let rest = &self.steps[self.number(starts.start)..];
        let met = rest.iter().take_while(|step| step.starts.start < last);
        met.map(|step| step.foreseen.hold).max().unwrap_or(1)
    }

    /// Its steps in order: the starts for which each holds, and what is foreseen of them. The first begins with time and the
    /// last ends with it.
    pub fn steps(&self) -> impl Iterator<Item = (Interval, ForeseenTimes)> {
        self.steps.iter().map(|step| (step.starts, step.foreseen))
    }

    /// The number of the step that holds a start.
    fn number(&self, start: Time) -> usize {
        match self.steps.len() {
            1 => 0,
            _ => self
                .steps
                .partition_point(|step| step.starts.start <= start)
                .saturating_sub(1),
        }
    }

    /// The step that holds a start.
    pub(super) fn step(&self, start: Time) -> &ForecastStep {
        &self.steps[self.number(start)]
    }

    /// Whether a slot lies in a window where everything is free.
    pub(super) fn fits(&self, window: Interval) -> bool {
        let mut start = window.start;
        while start < window.end {
            let step = self.step(start);
            if start + step.foreseen.hold <= window.end {
                return true;
            }
            if start + step.least.hold > window.end {
                return false;
            }
            start = step.starts.end;
        }
        false
    }

    /// The latest start of `starts` with a slot that ends by `end` where everything is free, and what is foreseen of it.
    pub(super) fn latest_start(&self, starts: Interval, end: Time) -> Option<(Time, ForeseenTimes)> {
        let mut last = starts.end - 1;
        while last >= starts.start {
            let ForecastStep {
                starts: within,
                foreseen,
                ..
            } = self.step(last);
            let start = last.min(end - foreseen.hold);
            if start >= within.start.max(starts.start) {
                return Some((start, *foreseen));
            }
            last = within.start - 1;
        }
        None
    }
}

/// The forecasts of all resources for which something is foreseen; the others go by their rate. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecasts {
    /// By id.
    by_resource: Arc<[OfResource]>,
}

/// The forecast for a resource. Its least lies here, so that a decision reads the steps of few forecasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OfResource {
    resource: u64,
    /// Less is never foreseen.
    pub(super) least: ForeseenTimes,
    pub(super) forecast: Arc<Forecast>,
}

impl Forecasts {
    /// Forecasts by the id of the resource; of several for one the last one counts. O(r log r).
    pub fn new(forecasts: impl IntoIterator<Item = (u64, Arc<Forecast>)>) -> Self {
        let sorted: BTreeMap<_, _> = forecasts.into_iter().collect();
        let each = sorted.into_iter().map(|(resource, forecast)| OfResource {
            resource,
            least: forecast.steps[0].least,
            forecast,
        });
        Self {
            by_resource: each.collect(),
        }
    }

    /// The same with another forecast for a resource that has one. O(r).
    #[must_use]
    pub fn with(&self, resource: u64, forecast: &Arc<Forecast>) -> Self {
        let each = self.by_resource.iter().map(|each| {
            if each.resource == resource {
                OfResource {
                    resource,
                    least: forecast.steps[0].least,
                    forecast: Arc::clone(forecast),
                }
            } else {
                each.clone()
            }
        });
        Self {
            by_resource: each.collect(),
        }
    }

    /// The forecast for a resource. O(log r).
    pub fn of(&self, resource: u64) -> Option<&Forecast> {
        let by_resource = &self.by_resource;
        let number = by_resource.binary_search_by_key(&resource, |each| each.resource);
        Some(&by_resource[number.ok()?].forecast)
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (u64, &OfResource)> {
        self.by_resource.iter().map(|each| (each.resource, each))
    }
}

#[cfg(test)]
mod tests {
    use super::{Forecast, ForeseenTimes};
    use crate::time::{Interval, Time};

    const SLOW: ForeseenTimes = ForeseenTimes {
        hold: 40,
        completion: 50,
        loss: 7,
        rise: 0,
    };
    const FAST: ForeseenTimes = ForeseenTimes {
        hold: 10,
        completion: 12,
        loss: 9,
        rise: 0,
    };

    #[test]
    fn a_forecast_is_constant_in_steps() {
        let steps = vec![
            (Time(300), SLOW),
            (Time(100), SLOW),
            (Time(200), SLOW),
            (Time(200), FAST),
        ];
        let forecast = Forecast::new(steps).unwrap();
        let at: Vec<_> = [-5, 100, 199, 200, 299, 300, 9_999]
            .map(|t| forecast.at(Time(t)).hold)
            .into();
        assert_eq!(at, [40, 40, 40, 10, 10, 40, 40]);
        assert_eq!(forecast.steps().count(), 3);
        let longest = |from, to| forecast.longest_hold(Interval::new(Time(from), Time(to)));
        assert_eq!(
            [
                longest(200, 300),
                longest(200, 301),
                longest(199, 201),
                longest(250, 250)
            ],
            [10, 40, 40, 10]
        );
    }

    /// From 100 to 110 the loss falls from 9 to −21, by 3 a second. The first and the last step have no ends.
    #[test]
    fn a_loss_is_linear_in_its_step() {
        let falls = ForeseenTimes { rise: -30, ..FAST };
        let steps = vec![(Time(0), falls), (Time(100), falls), (Time(110), falls)];
        let forecast = Forecast::new(steps).unwrap();
        let at = [-5, 99, 100, 101, 109, 110, 9_999].map(|t| forecast.at(Time(t)).loss);
        assert_eq!(at, [9, 9, 9, 6, -18, 9, 9]);
        assert_eq!(forecast.step(Time(0)).least.loss, -21);
        assert_eq!(forecast.step(Time(110)).least.loss, 9);
    }

    #[test]
    fn what_cannot_be_is_no_forecast() {
        let never = ForeseenTimes { hold: 0, ..SLOW };
        let before = ForeseenTimes {
            completion: 0,
            ..SLOW
        };
        assert_eq!(Forecast::new(vec![]), None);
        assert_eq!(Forecast::new(vec![(Time(0), SLOW), (Time(1), never)]), None);
        assert_eq!(Forecast::new(vec![(Time(0), before)]), None);
        assert_eq!(Forecast::constant(never).at(Time(3)).hold, 1);
        assert_eq!(
            Forecast::new(vec![(Time(5), SLOW)]),
            Some(Forecast::constant(SLOW))
        );
    }

    #[test]
    fn its_bounds_are_those_of_a_free_plan() {
        let forecast = Forecast::new(vec![(Time(0), SLOW), (Time(30), FAST), (Time(60), SLOW)]).unwrap();
        // At once it would be complete at 70, in the next step at 42.
        assert_eq!(forecast.step(Time(20)).earliest_completion(Time(20)), Time(42));
        assert_eq!(forecast.step(Time(31)).earliest_completion(Time(31)), Time(43));
        let latest = |from, to, end| {
            let starts = Interval::new(Time(from), Time(to));
            forecast
                .latest_start(starts, Time(end))
                .map(|(t, latest_start)| (t.0, latest_start.hold))
        };
        assert_eq!(latest(0, 100, 120), Some((80, 40)));
        // From 60 on it would be too long.
        assert_eq!(latest(0, 100, 99), Some((59, 10)));
        assert_eq!(latest(0, 100, 45), Some((35, 10)));
        assert_eq!(latest(60, 100, 99), None);
        assert_eq!(latest(0, 20, 99), Some((19, 40)));
        let fits = |from, to| forecast.fits(Interval::new(Time(from), Time(to)));
        assert_eq!(
            [
                fits(0, 40),
                fits(0, 39),
                fits(1, 40),
                fits(60, 99),
                fits(0, 29),
                fits(5, 5)
            ],
            [true, false, true, false, false, false]
        );
    }
}
