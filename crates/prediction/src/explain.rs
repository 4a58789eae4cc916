//! A prediction with its reasons, for people.

use scheduler::prediction::{Estimate, Ladder, Part};
use scheduler::{Interval, Seconds, counted};

use super::candidates::{MILLION, Progress, Source};
use super::knowledge::{GivenDurations, Knowledge};
use super::machines::seconds_as_number;
use super::work::{Hold, Work};

/// Runs on which a probability is stated to a person: fewer say little about how long the next one takes.
pub const STATED_RUNS_MIN: usize = 10;

/// The prediction for work on a resource, and its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Paper 004's estimate, step by step.
    pub estimate: Estimate,
    /// The estimate that decides, part by part; none without any execution of the application.
    pub decides: Option<EstimateExplanation>,
}

/// The estimate that sizes slots and chooses resources.
#[derive(Debug, Clone, PartialEq)]
pub struct EstimateExplanation {
    /// Whether it is paper 004's as printed, which states no probability; those beside it are then of all parts by their weights.
    pub is_published: bool,
    /// Where the run times come from.
    pub source: Source,
    /// Runs that are most like it.
    pub runs: usize,
    /// Outcomes that calibrate it.
    pub outcomes: usize,
    /// The probability with which the slot holds the work.
    pub probability: f64,
    /// Seconds of the run that are not exceeded with that probability, before the load.
    pub run: f64,
    /// Its parts in order, each with its share and what it does: load as a factor, the others in seconds.
    pub parts: Vec<(Part, f64, f64)>,
    /// The free share of the processors that is foreseen; none without samples.
    pub free_cpu: Option<f64>,
    /// Whole seconds from the start to the expected completion.
    pub completion: Seconds,
    /// The probability that a run there is not lost.
    pub kept: f64,
    /// The probability that it ends in its slot, and is not lost.
    pub in_slot: f64,
    /// The probability that it ends before the gap ends where it starts with it.
    pub confidence: f64,
}

impl Knowledge {
    /// The prediction for work in a gap on the resource that it names, from its start to its deadline: for a slot of so many seconds
    /// that begins with the gap, and that was to hold it with a probability in millionths.
    pub fn explain(
        &self,
        work: &Work,
        gap: Interval,
        slot: Seconds,
        given: GivenDurations,
        ppm: u32,
    ) -> Explanation {
        let conditions = work.resource.and_then(|name| self.conditions.get(name));
        Explanation {
            estimate: self.estimate(work, gap, given, conditions),
            decides: self.explained(work, gap, slot, ppm),
        }
    }

    fn explained(&self, work: &Work, gap: Interval, slot: Seconds, ppm: u32) -> Option<EstimateExplanation> {
        let (candidate, stating) = (self.deciding_candidate(work)?, self.stating_candidate(work)?);
        let probability = f64::from(ppm) / MILLION;
        let resource = work.resource.unwrap_or_default();
        let (amounts, load, transfers) = candidate.amounts(probability, gap.start);
        let shares = candidate.shares();
        let share = |part| shares.of(part);
        let waits = self
            .queue(work.resource)
            .map_or(0.0, |queue| queue.quantile(probability));
        let counts = |part: &(Part, f64, f64)| self.choice.unwrap_or(Ladder::History).counts(part.0);
        let parts = [
            (Part::Load, share(Part::Load), load),
            (
                Part::Trust,
                share(Part::Trust),
                share(Part::Trust) * candidate.trust,
            ),
            (
                Part::Transfers,
                share(Part::Transfers),
                amounts.transfers * transfers,
            ),
            (Part::Queue, share(Part::Queue), share(Part::Queue) * waits),
        ];
        let held = Interval::of(gap.start, slot);
        let seen = self
            .conditions
            .get(resource)
            .and_then(|condition| condition.free_cpu.as_ref());
        let stated = candidate.forecast(Hold::Stated(slot), 0, self.now);
        Some(EstimateExplanation {
            is_published: self.choice == Some(Ladder::Published),
            source: self.source(work),
            runs: candidate.runs(),
            outcomes: stating.outcomes(),
            probability,
            run: amounts.run,
            parts: parts.into_iter().filter(counts).collect(),
            free_cpu: seen.map(|seen| seen.outlook.mean_over(held)),
            completion: stated.at(gap.start).completion,
            kept: stating.probability_kept(),
            in_slot: stating.probability_within(held, seconds_as_number(slot), Progress::Waits),
            confidence: stating.probability_within(held, seconds_as_number(gap.duration()), Progress::Waits),
        })
    }
}

impl EstimateExplanation {
    /// A probability, where there are enough runs to state one.
    pub fn stated(&self, probability: f64) -> Option<f64> {
        (self.runs >= STATED_RUNS_MIN).then_some(probability)
    }

    /// Its parts in words, a line each.
    pub fn lines(&self) -> Vec<String> {
        let held = self.stated(self.probability).filter(|_| !self.is_published);
        let held = held.map_or_else(String::new, |sure| format!(" hold it with probability {sure}"));
        let mut lines = vec![format!(
            "the run: {:.1} s{held}, from {} ({} most like it)",
            self.run,
            self.source,
            counted(self.runs, "run")
        )];
        for (part, share, value) in &self.parts {
            let share = format!("share {share:.2}");
            lines.push(match part {
                Part::Load => match self.free_cpu {
                    Some(free) if self.is_published => {
                        format!("× {value:.3} for the load: 2 − {free:.3} foreseen in the slot")
                    }
                    Some(free) => format!(
                        "× {value:.3} for the load: 2 − {free:.3} foreseen against the load of past runs ({share})"
                    ),
                    None => "× 1 for the load: no samples of the processors".to_owned(),
                },
                Part::Trust => format!("+ {value:.1} s by which estimates there were short ({share})"),
                Part::Transfers => format!("+ {value:.1} s of transfers ({share})"),
                Part::Queue => format!("+ {value:.1} s until the process starts ({share})"),
            });
        }
        if self.kept < 1.0 {
            lines.push(format!(
                "{:.1} % of runs there are lost, and are run again",
                100.0 * (1.0 - self.kept)
            ));
        }
        lines
    }
}
