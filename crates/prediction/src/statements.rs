//! What is stated about work: how long its slots are, when it completes, and how sure that is.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::agreement::{Agreement, ServiceState};
use domain::clock::Micros;
use scheduler::domain::Forecast;
use scheduler::prediction::{BlendedHistory, Ladder, LearnedWeight, Part};
use scheduler::{Interval, Seconds};

use super::cache::{ForeseenWork, Key};
use super::candidates::Progress;
use super::knowledge::{Knowledge, speed_of_rate};
use super::machines::seconds_as_number;
use super::work::{Hold, Likeness, Work, as_seconds};

/// How much the parts of an estimate count on a resource, and what the trust in it is.
#[derive(Debug, Clone, Copy)]
pub struct ResourceWeights<'a> {
    /// Which.
    pub resource: &'a str,
    /// In the order of [`Part::ALL`].
    pub weights: &'a [LearnedWeight; Part::ALL.len()],
    /// RT in seconds.
    pub rt: Option<f64>,
    /// The probability that a run there is not lost.
    pub kept: f64,
}

impl Knowledge {
    /// The parts of an estimate that decide; none where estimates decide nothing.
    pub fn deciding_ladder(&self) -> Option<Ladder> {
        self.choice
    }

    /// What was learned of each resource, where all parts are counted.
    pub fn weights(&self) -> impl Iterator<Item = ResourceWeights<'_>> {
        let all = self.learner(Ladder::All);
        all.weights().map(move |(resource, weights)| ResourceWeights {
            resource,
            weights,
            rt: all.rt(resource),
            kept: self.losses_on(resource).kept(self.losses_anywhere()),
        })
    }

    /// What is foreseen of work on each resource, by the parts that decide. A violation costs `penalty`, in the unit in which costs
    /// are compared. None where nothing is known, or estimates decide nothing. What was asked about before is found at once.
    pub fn foreseen(&self, work: &Work, hold: Hold, penalty: u128) -> Option<Arc<ForeseenWork>> {
        let ladder = self.choice.filter(|_| !self.is_empty())?;
        // Where it runs is what is to be found.
        let work = Work {
            resource: None,
            ..*work
        };
        let key = Key::of(&work, hold, penalty);
        self.cache.get(key, || self.foresee(&work, hold, penalty, ladder))
    }

    fn foresee(&self, work: &Work, hold: Hold, penalty: u128, ladder: Ladder) -> Option<ForeseenWork> {
        let counts_losses = ladder.counts(Part::Trust) && self.losses_anywhere().lost > 0;
        match hold {
            // Only which resources lose work says something there.
            Hold::ByLaw(_) if !counts_losses => return None,
            _ => {}
        }
        let any = self.base(work);
        let mut of_kinds: BTreeMap<Option<u32>, Arc<BlendedHistory>> = BTreeMap::new();
        let mut alike: BTreeMap<Option<u32>, Arc<Forecast>> = BTreeMap::new();
        let mut by_name = Vec::with_capacity(self.machines.len());
        let in_service = self.machines.iter().filter(|(_, machine)| !machine.is_retired);
        for name in in_service.map(|(name, _)| name) {
            let there = Work {
                resource: Some(name),
                ..*work
            };
            let kind = self.kind(Some(name));
            let has_runs = {
                let level = Likeness::Resource(work.application.to_owned(), name.clone());
                self.runs.count(&level) > 0
            };
            let is_known = has_runs || self.is_known(name);
            if let Some(same) = alike.get(&kind).filter(|_| !is_known) {
                by_name.push((name.clone(), Arc::clone(same)));
                continue;
            }
            let (base, speed) = match (&any, hold) {
                (Some(_), _) => {
                    // Without runs of its own it has the history of its kind.
                    let shared = of_kinds.get(&kind).filter(|_| !has_runs).cloned();
                    let base = shared.or_else(|| self.base(&there))?;
                    if !has_runs {
                        of_kinds.insert(kind, Arc::clone(&base));
                    }
                    (base, speed_of_rate(self.rate(Some(name))))
                }
                // Nothing is known of it but what its requester says.
                (None, Hold::Stated(seconds)) => (Arc::new(BlendedHistory::exactly(seconds)), 1.0),
                (None, Hold::ByLaw(seconds)) => (
                    Arc::new(BlendedHistory::exactly(seconds)),
                    speed_of_rate(self.rate(Some(name))),
                ),
                (None, Hold::Sized(_)) => return None,
            };
            let hold = match hold {
                Hold::ByLaw(work) => Hold::ByLaw(self.rate(Some(name)).duration(work)),
                hold => hold,
            };
            let candidate = self.candidate(&there, base, speed, ladder);
            let forecast = Arc::new(candidate.forecast(hold, penalty, self.now));
            if !is_known {
                alike.insert(kind, Arc::clone(&forecast));
            }
            by_name.push((name.clone(), forecast));
        }
        Some(ForeseenWork::new(by_name))
    }

    /// The whole seconds at the reference rate that hold the work with this probability, by the past run times alone; none without
    /// any execution of the application.
    pub fn slot(&self, work: &Work, probability: f64) -> Option<Seconds> {
        let base = self.base(work)?;
        let candidate = self.candidate(work, base, 1.0, Ladder::History);
        Some(candidate.slot(probability, self.now))
    }

    /// The probability that work ends by itself in a slot of the resource that it names, or at the reference rate where it names
    /// none, and is not lost; none without any execution of the application.
    pub fn probability(&self, work: &Work, slot: Interval) -> Option<f64> {
        let candidate = self.deciding_candidate(work)?;
        Some(candidate.probability_within(slot, seconds_as_number(slot.duration()), Progress::Waits))
    }

    /// The probability that an agreement's job ends by itself before its slot does and is not lost, given that it has not ended
    /// yet. None where it runs nothing, is over, or nothing is known of its application.
    pub fn confidence(&self, agreement: &Agreement, now: Micros) -> Option<f64> {
        let is_over = agreement.ended.is_some()
            || agreement.state.is_final()
            || agreement.service == ServiceState::Completed;
        let job = agreement.job.as_ref().filter(|_| !is_over)?;
        let work = Work {
            resource: Some(&agreement.resource),
            ..Work::of_job(&agreement.party, job, agreement.nodes())
        };
        let candidate = self.deciding_candidate(&work)?;
        let slot = agreement.placement();
        if agreement.started.is_none() {
            return Some(candidate.probability_within(
                slot,
                seconds_as_number(agreement.duration),
                Progress::Waits,
            ));
        }
        // As before it began: the loss by saving its work and resuming it is not known.
        let progress = if agreement.is_being_brought() {
            Progress::Brings
        } else {
            Progress::Runs
        };
        // Its process has not run while its files were brought.
        let brought = job.brought.map_or(0, |brought| brought.before);
        let done = as_seconds(agreement.run_time_by(now) - brought);
        let all = as_seconds(agreement.run_time_to_end() - brought);
        let rounded = |seconds: f64| {
            candidate.probability_within(slot, seconds, progress) / candidate.probability_kept()
        };
        let (before, whole) = (rounded(done), rounded(all));
        let left = 1.0 - before;
        let rest = if all > 0.0 {
            ((all - done) / all).clamp(0.0, 1.0)
        } else {
            0.0
        };
        Some(if left > 0.0 {
            // It can only be lost in the time that is left.
            ((whole - before) / left).clamp(0.0, 1.0) * candidate.probability_kept().powf(rest)
        } else {
            0.0
        })
    }
}
