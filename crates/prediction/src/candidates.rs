//! The one estimate of work on a candidate resource. Offers, quotes, predictions, confidences and repairs all read it.

use std::sync::Arc;

use scheduler::domain::{Forecast, ForeseenTimes};
use scheduler::prediction::estimate::{load_factor, trans_t_estimation};
use scheduler::prediction::losses::expected_completion;
use scheduler::prediction::{
    Amounts, BlendedHistory, Calibration, Distribution, Part, Parts, Shares, whole_seconds,
};
use scheduler::{Interval, Seconds, Time};

use super::machines::{HOUR, HOURS_AHEAD, MachineCondition, MachineConditions, seconds_as_number};
use super::work::Hold;

/// Hours whose starts are told apart; later starts are taken to be as the mean of a week.
const STEPS: i64 = 14 * 24;

/// From so many seconds ahead on, conditions are foreseen as the mean of a week.
const BEYOND: Seconds = (HOURS_AHEAD as Seconds + 1) * HOUR;

/// Starts whose slots and completions differ by less than one part in this number are not told apart: that is less than
/// estimates are known to, and few steps are searched fast.
const STEP_PART: i64 = 50;

/// A share of a correction below this changes nothing that can be seen.
const SHARE_MIN: f64 = 0.01;

/// Millionths in a whole.
pub(super) const MILLION: f64 = 1e6;

/// How far work has come in its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Its slot has not begun, or its process has not.
    Waits,
    /// Its files are being brought.
    Brings,
    /// Its process runs.
    Runs,
}

/// Work on one resource, with all that is known about it there.
pub(super) struct Candidate<'a> {
    pub(super) base: Arc<BlendedHistory>,
    /// Work done in a second, in the unit of the base.
    pub(super) speed: f64,
    pub(super) shares: Shares,
    pub(super) calibration: &'a Calibration,
    pub(super) trust: f64,
    pub(super) queue: Option<&'a Distribution>,
    pub(super) spread: Option<&'a Distribution>,
    pub(super) conditions: Option<&'a MachineConditions>,
    /// In and out.
    pub(super) bytes: [u64; 2],
    /// The probability that a run there is not lost.
    pub(super) kept: f64,
}

scheduler::worded! {
    /// Where a base comes from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Source {
        /// From executions of the application on this resource, among others.
        Here = "executions on this resource among others",
        /// From executions on resources of the same rate and attributes, among others.
        Like = "executions on resources of the same rate and attributes, as there is none on this one",
        /// From executions on other resources, scaled by the rates.
        Others = "executions on other resources, scaled by their rates, as there is none on this one",
        /// From no execution: the stated or the template's duration.
        Nothing = "no execution",
    }
}

impl Candidate<'_> {
    /// The parts that are left of work in a slot.
    fn parts(&self, slot: Interval, progress: Progress) -> Parts<'_> {
        Parts {
            base: &self.base,
            speed: self.speed,
            load: self.load(slot),
            queue: self.queue.filter(|_| progress == Progress::Waits),
            transfers: self.transfers(slot, progress),
            spread: self.spread,
            trust: self.trust,
        }
    }

    /// The factor of the load that is foreseen in an interval.
    pub(super) fn load(&self, slot: Interval) -> Option<f64> {
        let seen = self.conditions?.free_cpu.as_ref()?;
        Some(load_factor(seen.outlook.mean_over(slot)))
    }

    /// The seconds of the transfers that are left in a slot, at the bandwidth that is foreseen.
    pub(super) fn transfers(&self, slot: Interval, progress: Progress) -> f64 {
        let seconds_of = |seen: Option<&MachineCondition>, bytes: u64| {
            let seen = seen.filter(|_| bytes > 0);
            seen.map_or(0.0, |seen| {
                trans_t_estimation(bytes, seen.outlook.mean_over(slot).max(1.0))
            })
        };
        let conditions = self.conditions;
        let out = seconds_of(
            conditions.and_then(|condition| condition.bandwidth_out.as_ref()),
            self.bytes[1],
        );
        if progress == Progress::Runs {
            return out;
        }
        out + seconds_of(
            conditions.and_then(|condition| condition.bandwidth_in.as_ref()),
            self.bytes[0],
        )
    }

    /// The probability that the work ends by itself within so many seconds from where it is, and is not lost.
    pub(super) fn probability_within(&self, slot: Interval, seconds: f64, progress: Progress) -> f64 {
        let level = self.parts(slot, progress).level(seconds, &self.shares);
        self.kept * self.calibration.probability(level)
    }

    /// The probability that a run is not lost.
    pub(super) fn probability_kept(&self) -> f64 {
        self.kept
    }

    /// How much each part counts.
    pub(super) fn shares(&self) -> &Shares {
        &self.shares
    }

    /// The outcomes that calibrate it.
    pub(super) fn outcomes(&self) -> usize {
        self.calibration.outcomes()
    }

    /// Runs that are most like it.
    pub(super) fn runs(&self) -> usize {
        self.base.runs
    }

    /// The seconds that hold the work with probability `p` in a slot that starts at an instant, part by part.
    pub(super) fn amounts(&self, p: f64, start: Time) -> (Amounts, f64, f64) {
        let now = Interval::of(start, 1);
        let parts = self.parts(now, Progress::Waits);
        let amounts = parts.amounts(self.calibration.level(p), &self.shares);
        // The load is foreseen over the time that it would take on free processors.
        let slot = Interval::of(start, whole_seconds(amounts.seconds(1.0, parts.transfers)));
        let parts = self.parts(slot, Progress::Waits);
        (amounts, parts.load_factor(&self.shares), parts.transfers)
    }

    /// The whole seconds of a slot that holds the work with probability `p`, where it starts at an instant.
    pub(super) fn slot(&self, p: f64, start: Time) -> Seconds {
        let (amounts, load, transfers) = self.amounts(p, start);
        whole_seconds(amounts.seconds(load, transfers))
    }

    /// Whether its slot depends on its start.
    fn varies(&self) -> bool {
        let counts = |part| self.shares.of(part) > SHARE_MIN;
        let Some(conditions) = self.conditions else {
            return false;
        };
        let loaded = conditions.free_cpu.is_some() && self.base.unloaded.is_some();
        let moves = |seen: &Option<MachineCondition>, bytes: u64| seen.is_some() && bytes > 0;
        let transfers =
            moves(&conditions.bandwidth_in, self.bytes[0]) || moves(&conditions.bandwidth_out, self.bytes[1]);
        loaded && counts(Part::Load) || transfers && counts(Part::Transfers)
    }

    /// What is foreseen of a slot, by its start from `now` on. A violation costs `penalty`.
    pub(super) fn forecast(&self, hold: Hold, penalty: u128, now: Time) -> Forecast {
        let sized = match hold {
            Hold::Sized(ppm) => {
                let level = self.calibration.level(f64::from(ppm) / MILLION);
                Some(
                    self.parts(Interval::of(now, 1), Progress::Waits)
                        .amounts(level, &self.shares),
                )
            }
            Hold::Stated(_) | Hold::ByLaw(_) => None,
        };
        let mean = self
            .parts(Interval::of(now, 1), Progress::Waits)
            .mean(&self.shares, self.calibration);
        let at = |start: Time| {
            // The load is foreseen over the time that it would take on free processors.
            let stated = match hold {
                Hold::Stated(seconds) | Hold::ByLaw(seconds) => seconds,
                Hold::Sized(_) => 1,
            };
            let whole = sized.map_or(stated, |sized| {
                let transfers = self.transfers(Interval::of(start, HOUR), Progress::Waits);
                whole_seconds(sized.seconds(1.0, transfers))
            });
            let slot = Interval::of(start, whole);
            let parts = self.parts(slot, Progress::Waits);
            let (load, transfers) = (parts.load_factor(&self.shares), parts.transfers);
            let held = sized.map_or(stated, |sized| whole_seconds(sized.seconds(load, transfers)));
            let once = match hold {
                // What follows from the requester's law is no estimate.
                Hold::ByLaw(seconds) => seconds_as_number(seconds),
                _ => mean.seconds(load, transfers),
            };
            ForeseenTimes {
                hold: held,
                completion: whole_seconds(expected_completion(once, held, self.kept)),
                loss: i128::try_from(self.loss(penalty, hold, Interval::of(start, held)))
                    .unwrap_or(i128::MAX),
                rise: 0,
            }
        };
        if !self.varies() {
            return Forecast::constant(at(now));
        }
        let first = Time(now.seconds().div_euclid(HOUR) * HOUR);
        let mut steps: Vec<(Time, ForeseenTimes)> = Vec::new();
        // The values with which the present step began.
        let mut began: Option<ForeseenTimes> = None;
        for step in 0..=STEPS {
            let start = first + step * HOUR;
            // In the middle of the hour; after the last one as in the mean of a week.
            let foreseen = at(if step < STEPS {
                start + HOUR / 2
            } else {
                first + BEYOND
            });
            match (&began, steps.last_mut()) {
                (Some(first), Some((_, last))) if are_near_for_candidate(*first, foreseen) => {
                    last.hold = last.hold.max(foreseen.hold);
                    last.completion = last.completion.max(foreseen.completion);
                    last.loss = last.loss.max(foreseen.loss);
                }
                _ => {
                    began = Some(foreseen);
                    steps.push((start, foreseen));
                }
            }
        }
        Forecast::new(steps).unwrap_or_else(|| Forecast::constant(at(now)))
    }

    /// The expected cost of a violation: of work that does not end by itself in its slot, or is lost.
    fn loss(&self, penalty: u128, hold: Hold, slot: Interval) -> u128 {
        if penalty == 0 {
            return 0;
        }
        let ends = match hold {
            Hold::Sized(ppm) => self.kept * f64::from(ppm) / MILLION,
            Hold::Stated(_) => {
                self.probability_within(slot, seconds_as_number(slot.duration()), Progress::Waits)
            }
            Hold::ByLaw(_) => self.kept,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a million, from 0 to all of it"
        )]
        let parts = ((1.0 - ends).clamp(0.0, 1.0) * MILLION).round() as u128;
        penalty.saturating_mul(parts) / 1_000_000
    }
}

/// Whether two starts need not be told apart.
fn are_near_for_candidate(one: ForeseenTimes, other: ForeseenTimes) -> bool {
    let close = |one: Seconds, other: Seconds| (one - other).abs() <= one / STEP_PART;
    close(one.hold, other.hold) && close(one.completion, other.completion)
}
