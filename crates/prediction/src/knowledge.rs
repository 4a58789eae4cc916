//! The knowledge from past executions and samples of resources, and what it states about work: how long its slots are, when it
//! completes, and how sure that is.

mod builder;
mod published;

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::agreement::{Agreement, RunOutcome, ServiceState};
use domain::clock::{Micros, second_after, second_of};
use domain::past::{PastExecution, ResourceHour};
use scheduler::domain::Forecast;
use scheduler::prediction::estimate::EstimateOutcome as Estimated;
use scheduler::prediction::runs::{Event, events_of_runs};
use scheduler::prediction::{
    BlendedHistory, Distribution, Ladder, LearnedWeight, Learner, Part, Reliability, RunLosses, Runs,
};
use scheduler::{Interval, Rate, Seconds, Time};

use super::cache::{Cache, CacheKey};
use super::candidates::{Candidate, Progress, Source};
use super::foreseen_work::ForeseenWork;
use super::last_runs::LastRuns;
use super::last_values::LastValues;
use super::machines::{MachineConditions, Machines, kinds_of_machines, seconds_as_number};
use super::work::{Hold, Likeness, Work, WorkLength, as_seconds};
use builder::{ForeseenExecution, KnowledgeBuilder};

/// The knowledge of the past. Runs are learned as work, in seconds at the reference rate, so that a run on one resource helps to
/// predict another.
#[derive(Debug, Clone, PartialEq)]
pub struct Knowledge {
    /// The parts of an estimate that decide; none where estimates decide nothing but the length of slots.
    pub(super) choice: Option<Ladder>,
    /// The instant of the present.
    pub(super) now: Time,
    /// The configured resources.
    machines: Machines,
    kinds: BTreeMap<String, u32>,
    runs: Runs<Likeness>,
    /// In the order of [`Ladder::ALL`].
    learners: [Learner<Likeness>; Ladder::ALL.len()],
    /// Seconds of waiting for the process, by resource; and of all resources.
    queues: BTreeMap<String, LastValues>,
    queue_anywhere: LastValues,
    /// Logarithms of real times of transfers by their estimates, by resource.
    spreads: BTreeMap<String, LastValues>,
    /// Bytes moved in and out, by application, and by whether the resource copies all files.
    bytes: BTreeMap<(String, bool), [LastValues; 2]>,
    /// The last runs by resource, and what was lost of all of them.
    ended: BTreeMap<String, LastRuns>,
    losses: RunLosses,
    pub(super) conditions: BTreeMap<String, MachineConditions>,
    /// Lengths by application, each with its resource, oldest first.
    lengths: BTreeMap<String, Vec<(String, WorkLength)>>,
    /// The paper's estimates as they were made, by resource, oldest first.
    estimated: BTreeMap<String, Vec<Estimated>>,
    cache: Cache,
}

impl Default for Knowledge {
    /// That of a service that has just started.
    fn default() -> Self {
        Self::empty(Machines::new(), Some(Ladder::All), Time(0))
    }
}

/// The values that the requester and the template give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GivenDurations {
    /// The requester's own duration.
    pub requested: Option<Seconds>,
    /// The template's.
    pub default: Seconds,
}

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
    fn empty(machines: Machines, choice: Option<Ladder>, now: Time) -> Self {
        Self {
            choice,
            now,
            kinds: kinds_of_machines(&machines),
            machines,
            runs: Runs::default(),
            learners: Ladder::ALL.map(Learner::new),
            queues: BTreeMap::new(),
            queue_anywhere: LastValues::default(),
            spreads: BTreeMap::new(),
            bytes: BTreeMap::new(),
            ended: BTreeMap::new(),
            losses: RunLosses::default(),
            conditions: BTreeMap::new(),
            lengths: BTreeMap::new(),
            estimated: BTreeMap::new(),
            cache: Cache::default(),
        }
    }

    /// From executions by their ends, and the hours of resources, as of `now`. Each execution is first predicted from the executions
    /// that had ended when it was agreed, so that each prediction is compared with its outcome. Takes some hundred
    /// microseconds an execution. Resources that are not among the machines have the reference rate.
    pub fn of(
        past: &[PastExecution],
        hours: &[ResourceHour],
        (machines, choice): (Machines, Option<Ladder>),
        now: Time,
    ) -> Self {
        let conditions = MachineConditions::of(hours, now);
        let mut learning = KnowledgeBuilder {
            known: Self::empty(machines, choice, now),
            conditions: &conditions,
            replays: BTreeMap::new(),
        };
        let lost = |past: &PastExecution| past.execution.outcome == RunOutcome::Lost;
        for past in past {
            if lost(past) || WorkLength::of(past).is_some() {
                let ended = &mut learning.known.ended;
                let last = ended.entry(past.execution.resource.clone()).or_default();
                last.push(lost(past));
            }
        }
        let past: Vec<(&PastExecution, WorkLength)> = past
            .iter()
            .filter_map(|past| Some((past, WorkLength::of(past)?)))
            .collect();
        let spans = past
            .iter()
            .map(|(past, _)| Interval::new(second_of(past.agreed), second_after(past.execution.ended)));
        let mut foreseen = vec![ForeseenExecution::default(); past.len()];
        for event in events_of_runs(spans) {
            match event {
                Event::Asked(at) => foreseen[at] = learning.foresee(past[at].0, &past[at].1),
                Event::Ended(at) => learning.add(past[at].0, &past[at].1, &foreseen[at]),
            }
        }
        let mut known = learning.known;
        let all = known.ended.values().map(LastRuns::losses);
        known.losses = all.fold(RunLosses::default(), |sum, losses| RunLosses {
            runs: sum.runs + losses.runs,
            lost: sum.lost + losses.lost,
        });
        known.conditions = conditions;
        known
    }

    /// The learner of some parts.
    pub(super) fn learner(&self, ladder: Ladder) -> &Learner<Likeness> {
        &self.learners[ladder as usize]
    }

    /// Whether anything is known of a resource itself.
    pub(super) fn is_known(&self, resource: &str) -> bool {
        self.ended.contains_key(resource) || self.conditions.contains_key(resource)
    }

    /// Whether no execution is known.
    pub(super) fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }

    /// The kind of a resource.
    pub(super) fn kind(&self, resource: Option<&str>) -> Option<u32> {
        self.kinds.get(resource?).copied()
    }

    /// The waits for the process on a resource; on any where none is meant.
    pub(super) fn queue(&self, resource: Option<&str>) -> Option<&Distribution> {
        let last = match resource {
            Some(resource) => self.queues.get(resource)?,
            None => &self.queue_anywhere,
        };
        last.distribution()
    }

    /// How far transfers to and from a resource took longer than estimated.
    pub(super) fn transfer_spread(&self, resource: Option<&str>) -> Option<&Distribution> {
        self.spreads.get(resource?)?.distribution()
    }

    /// Bytes that are moved in and out of work on its resource: those that it says, else the mean of past executions of its
    /// application. A resource that is another machine has copies of uploaded files and of all outputs, too.
    pub(super) fn bytes(&self, work: &Work) -> [u64; 2] {
        let copies = self.copies_files(work.resource);
        let past = self.bytes.get(&(work.application.to_owned(), copies));
        let usual = |direction: usize| {
            let mean = past.and_then(|past| past[direction].mean()).unwrap_or(0.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a mean of counts of bytes, which saturates"
            )]
            let bytes = mean.round() as u64;
            bytes
        };
        let [input, output] = [work.input_bytes, work.output_bytes];
        if copies {
            let input = input.map(|bytes| bytes.saturating_add(work.uploaded_bytes));
            [
                input.unwrap_or_else(|| usual(0)),
                output.unwrap_or(0).max(usual(1)),
            ]
        } else {
            [
                input.unwrap_or_else(|| usual(0)),
                output.unwrap_or_else(|| usual(1)),
            ]
        }
    }

    /// Whether all files of a job are copied to a resource and from there.
    fn copies_files(&self, resource: Option<&str>) -> bool {
        let machine = resource.and_then(|name| self.machines.get(name));
        machine.is_some_and(|machine| machine.copies_files)
    }

    /// What is known of the runs that a resource lost.
    pub(super) fn losses_on(&self, resource: &str) -> RunLosses {
        self.ended
            .get(resource)
            .map_or_else(RunLosses::default, LastRuns::losses)
    }

    /// What is known of the runs that all resources lost.
    pub(super) fn losses_anywhere(&self) -> RunLosses {
        self.losses
    }

    /// The rate of a resource, where one is meant.
    pub(super) fn rate(&self, resource: Option<&str>) -> Rate {
        let machine = resource.and_then(|name| self.machines.get(name));
        machine.map(|machine| machine.rate).unwrap_or_default()
    }

    /// How good its statements have been: those of the parts that decide.
    pub fn reliability(&self) -> &Reliability {
        // Of what decides: the chosen parts, or the past run times alone.
        self.learner(self.choice.unwrap_or(Ladder::History)).reliability()
    }

    /// How good the statements of each combination of parts have been.
    pub fn reliabilities(&self) -> impl Iterator<Item = (Ladder, &Reliability)> {
        self.learners
            .iter()
            .map(|learner| (learner.ladder(), learner.reliability()))
    }

    /// Where what is known of the run time of work on its resource comes from.
    pub(super) fn source(&self, work: &Work) -> Source {
        let name = || work.application.to_owned();
        let any = |level: Likeness| self.runs.count(&level) > 0;
        let there = work
            .resource
            .map(|there| Likeness::Resource(name(), there.to_owned()));
        let kind = self.kind(work.resource).map(|kind| Likeness::Kind(name(), kind));
        if there.is_some_and(any) {
            Source::Here
        } else if kind.is_some_and(any) {
            Source::Like
        } else if any(Likeness::Application(name())) {
            Source::Others
        } else {
            Source::Nothing
        }
    }

    /// What is known of the run time of work on its resource, for the parts of a ladder; none without any execution of the
    /// application.
    pub(super) fn base(&self, work: &Work, ladder: Ladder) -> Option<Arc<BlendedHistory>> {
        let base = match ladder {
            Ladder::Published => self.published_mean(work)?,
            _ => self.runs.base(&work.levels(self.kind(work.resource)))?,
        };
        Some(Arc::new(base))
    }

    /// The work done in a second on a resource, in the unit of a base: the mean of a resource is in its own seconds.
    fn speed(&self, resource: Option<&str>, ladder: Ladder) -> f64 {
        match ladder {
            Ladder::Published => 1.0,
            _ => speed_of_rate(self.rate(resource)),
        }
    }

    /// Work on its resource, by the parts of a ladder. Without a resource at the reference rate.
    pub(super) fn candidate(
        &self,
        work: &Work,
        base: Arc<BlendedHistory>,
        speed: f64,
        ladder: Ladder,
    ) -> Candidate<'_> {
        let learner = self.learner(ladder);
        let resource = work.resource.unwrap_or_default();
        let published = ladder == Ladder::Published;
        let kept = if counts_losses(ladder) && work.resource.is_some() {
            self.losses_on(resource).kept(self.losses_anywhere())
        } else {
            1.0
        };
        let published_trust = || self.published_rt(resource).map_or(0.0, |rt| (-rt).max(0.0));
        Candidate {
            base,
            speed,
            shares: learner.shares(resource),
            calibration: learner.calibration(&work.group()),
            trust: if published {
                published_trust()
            } else {
                learner.trust(resource)
            },
            queue: self.queue(work.resource).filter(|_| !published),
            spread: self.transfer_spread(work.resource).filter(|_| !published),
            conditions: self.conditions.get(resource),
            bytes: self.bytes(work),
            kept,
        }
    }

    /// Work on the resource that it names, by the parts that decide; none without any execution of its application.
    pub(super) fn deciding_candidate(&self, work: &Work) -> Option<Candidate<'_>> {
        self.candidate_by(work, self.choice.unwrap_or(Ladder::History))
    }

    /// Work on the resource that it names, by the parts that state probabilities: the published estimate states none, so that all do
    /// where it decides.
    pub(super) fn stating_candidate(&self, work: &Work) -> Option<Candidate<'_>> {
        match self.choice {
            Some(Ladder::Published) => self.candidate_by(work, Ladder::All),
            _ => self.deciding_candidate(work),
        }
    }

    fn candidate_by(&self, work: &Work, ladder: Ladder) -> Option<Candidate<'_>> {
        let speed = self.speed(work.resource, ladder);
        Some(self.candidate(work, self.base(work, ladder)?, speed, ladder))
    }

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
        let key = CacheKey::of(&work, hold, penalty);
        self.cache.get(key, || self.foresee(&work, hold, penalty, ladder))
    }

    fn foresee(&self, work: &Work, hold: Hold, penalty: u128, ladder: Ladder) -> Option<ForeseenWork> {
        let weighs_losses = counts_losses(ladder) && self.losses_anywhere().lost > 0;
        match hold {
            // Only which resources lose work says something there.
            Hold::ByLaw(_) if !weighs_losses => return None,
            _ => {}
        }
        let any = self.base(work, ladder);
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
                    let base = shared.or_else(|| self.base(&there, ladder))?;
                    if !has_runs {
                        of_kinds.insert(kind, Arc::clone(&base));
                    }
                    (base, self.speed(Some(name), ladder))
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
        let ladder = self.choice.filter(|choice| *choice == Ladder::Published);
        let ladder = ladder.unwrap_or(Ladder::History);
        let base = self.base(work, ladder)?;
        let candidate = self.candidate(work, base, 1.0, ladder);
        Some(candidate.slot(probability, self.now))
    }

    /// The probability that work ends by itself in a slot of the resource that it names, or at the reference rate where it names
    /// none, and is not lost; none without any execution of the application.
    pub fn probability(&self, work: &Work, slot: Interval) -> Option<f64> {
        let candidate = self.stating_candidate(work)?;
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
        let candidate = self.stating_candidate(&work)?;
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

/// Whether the runs that a resource loses count beside the parts of a ladder.
fn counts_losses(ladder: Ladder) -> bool {
    ladder.counts(Part::Trust) && ladder != Ladder::Published
}

/// Work done in a second, as a number.
fn speed_of_rate(rate: Rate) -> f64 {
    f64::from(rate.millionths()) / f64::from(Rate::REFERENCE.millionths())
}
