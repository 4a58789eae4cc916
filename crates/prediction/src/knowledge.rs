//! The knowledge from past executions and samples of resources, and how it is learned.

use std::collections::BTreeMap;

use domain::agreement::RunOutcome;
use domain::clock::{second_after, second_of};
use domain::past::{PastExecution, ResourceHour};
use scheduler::prediction::estimate::{
    EstimateOutcome as Estimated, TRUST_RUNS, load_factor, trans_t_estimation,
};
use scheduler::prediction::runs::{Event, events_of_runs};
use scheduler::prediction::smoothing::Replay;
use scheduler::prediction::{
    Distribution, Estimate, Evidence, JudgedStatement, Ladder, Learner, Parts, RealDuration, Reliability,
    RunLosses, Runs,
};
use scheduler::{Interval, Rate, Seconds, Time};

use super::cache::Cache;
use super::machines::{Conditions, MachineCondition, Machines, kinds_of_machines};
use super::windows::{LastRuns, LastValues};
use super::work::{Length, Likeness, Work, as_seconds};

/// Executions of an application that a mean is taken of: the last ones, as programs and inputs change.
const MEAN_RUNS_MAX: usize = 1_000;

/// The knowledge of the past. Runs are learned as work, in seconds at the reference rate, so that a run on one resource helps to
/// predict another.
#[derive(Debug, Clone, PartialEq)]
pub struct Knowledge {
    /// The parts of an estimate that decide; none where estimates decide nothing but the length of slots.
    pub(super) choice: Option<Ladder>,
    /// The instant of the present.
    pub(super) now: Time,
    /// The configured resources.
    pub(super) machines: Machines,
    kinds: BTreeMap<String, u32>,
    pub(super) runs: Runs<Likeness>,
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
    pub(super) conditions: BTreeMap<String, Conditions>,
    /// Lengths by application, each with its resource, oldest first.
    lengths: BTreeMap<String, Vec<(String, Length)>>,
    /// The paper's estimates by resource, oldest first.
    estimated: BTreeMap<String, Vec<Estimated>>,
    pub(super) cache: Cache,
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

/// What was foreseen of an execution when it was agreed.
#[derive(Debug, Clone, Copy, Default)]
struct ForeseenExecution {
    /// By each learner; none where nothing was known of its application.
    judged: Option<[JudgedStatement; Ladder::ALL.len()]>,
    /// The paper's estimate.
    estimated: Seconds,
    /// Seconds of its transfers at the bandwidth that was foreseen.
    transfers: f64,
}

/// The conditions of a resource as they were known at the instants of the past.
struct Replays<'a> {
    free_cpu: Option<Replay<'a>>,
    bandwidths: [Option<Replay<'a>>; 2],
}

/// Knowledge on its way.
struct KnowledgeBuilder<'a> {
    known: Knowledge,
    conditions: &'a BTreeMap<String, Conditions>,
    replays: BTreeMap<&'a str, Replays<'a>>,
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
        let conditions = Conditions::of(hours, now);
        let mut learning = KnowledgeBuilder {
            known: Self::empty(machines, choice, now),
            conditions: &conditions,
            replays: BTreeMap::new(),
        };
        let lost = |past: &PastExecution| past.execution.outcome == RunOutcome::Lost;
        for past in past {
            if lost(past) || Length::of(past).is_some() {
                let ended = &mut learning.known.ended;
                let last = ended.entry(past.execution.resource.clone()).or_default();
                last.push(lost(past));
            }
        }
        let past: Vec<(&PastExecution, Length)> = past
            .iter()
            .filter_map(|past| Some((past, Length::of(past)?)))
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

    /// Paper 004's estimate for work in a gap.
    pub(super) fn estimate(
        &self,
        work: &Work,
        gap: Interval,
        given: GivenDurations,
        conditions: Option<&Conditions>,
    ) -> Estimate {
        let lengths = self.lengths.get(work.application).map_or(&[][..], Vec::as_slice);
        let own = lengths
            .iter()
            .filter(|(resource, _)| work.resource == Some(resource));
        let (here, stopped_here) = part_stopped_executions(own.map(|(_, length)| (*length, length.seconds)));
        // Of other resources only where there is nothing of this one: it is looked at for each of many executions.
        let known_here = !(here.is_empty() && stopped_here.is_empty());
        let others = if known_here { &[][..] } else { lengths };
        let rated = others
            .iter()
            .map(|(resource, length)| (*length, (length.seconds, self.rate(Some(resource)))));
        let (anywhere, stopped_anywhere) = part_stopped_executions(rated);
        let outcomes = work.resource.and_then(|resource| self.estimated.get(resource));
        let [input_bytes, output_bytes] = self.bytes(work);
        let smoothing = |function: fn(&Conditions) -> Option<&MachineCondition>| {
            Some(&conditions.and_then(function)?.smoothing)
        };
        Estimate::over(
            gap,
            &Evidence {
                here: &here,
                stopped_here: &stopped_here,
                anywhere: &anywhere,
                stopped_anywhere: &stopped_anywhere,
                rate: self.rate(work.resource),
                requested: given.requested,
                default: given.default,
                free_cpu: smoothing(|each| each.free_cpu.as_ref()),
                input_bytes,
                output_bytes,
                bandwidth_in: smoothing(|each| each.bandwidth_in.as_ref()),
                bandwidth_out: smoothing(|each| each.bandwidth_out.as_ref()),
                outcomes: outcomes.map_or(&[][..], Vec::as_slice),
            },
        )
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
}

impl KnowledgeBuilder<'_> {
    /// The conditions of a resource as they were known when an execution was agreed, for its slot: the factor of its load, and the
    /// seconds of its transfers.
    fn conditions_then(&mut self, past: &PastExecution) -> (Option<f64>, f64) {
        let execution = &past.execution;
        let Some((name, conditions)) = self.conditions.get_key_value(&execution.resource) else {
            return (None, 0.0);
        };
        let replays = self.replays.entry(name).or_insert_with(|| Replays {
            free_cpu: conditions.free_cpu.as_ref().map(|condition| condition.replay()),
            bandwidths: [&conditions.bandwidth_in, &conditions.bandwidth_out]
                .map(|each| each.as_ref().map(|condition| condition.replay())),
        });
        let then = second_of(past.agreed);
        let free = replays.free_cpu.as_mut();
        let load = free.and_then(|replay| replay.mean_over(then, execution.planned));
        let bytes = self.known.bytes(&Work::of_past(past));
        let mut transfers = 0.0;
        for (replay, bytes) in replays.bandwidths.iter_mut().zip(bytes) {
            let bandwidth = replay.as_mut().filter(|_| bytes > 0);
            let bandwidth = bandwidth.and_then(|replay| replay.mean_over(then, execution.planned));
            transfers += bandwidth.map_or(0.0, |bandwidth| trans_t_estimation(bytes, bandwidth.max(1.0)));
        }
        (load.map(load_factor), transfers)
    }

    /// What was foreseen of an execution when it was agreed, held against what came of it.
    fn foresee(&mut self, past: &PastExecution, length: &Length) -> ForeseenExecution {
        let execution = &past.execution;
        let (load, transfers) = self.conditions_then(past);
        let work = Work::of_past(past);
        let given = GivenDurations {
            requested: Some(execution.planned.duration()),
            ..GivenDurations::default()
        };
        // The samples of then are not kept at the grain of then: the paper's estimate is made without them.
        let estimated = self
            .known
            .estimate(&work, execution.planned, given, None)
            .completion;
        let resource = execution.resource.as_str();
        let levels = work.levels(self.known.kind(work.resource));
        let Some(base) = self.known.runs.base(&levels) else {
            return ForeseenExecution {
                judged: None,
                estimated,
                transfers,
            };
        };
        let speed = speed_of_rate(self.known.rate(work.resource));
        let Knowledge {
            learners,
            queues,
            spreads,
            ..
        } = &mut self.known;
        let parts = Parts {
            base: &base,
            speed,
            load,
            queue: queues.get(resource).and_then(LastValues::distribution),
            transfers,
            spread: spreads.get(resource).and_then(LastValues::distribution),
            trust: 0.0,
        };
        let came = RealDuration {
            seconds: length.whole,
            needed: length.needed(length.whole),
            stopped: length.stopped,
        };
        let group = work.group();
        let judged = learners
            .each_mut()
            .map(|learner| learner.judge(resource, &group, &parts, came));
        ForeseenExecution {
            judged: Some(judged),
            estimated,
            transfers,
        }
    }

    fn add(&mut self, past: &PastExecution, length: &Length, foreseen: &ForeseenExecution) {
        let (execution, work) = (&past.execution, Work::of_past(past));
        let resource = &execution.resource;
        let known = &mut self.known;
        let ran = Interval::new(
            second_of(execution.ended.saturating_sub(execution.run_time.max(0))),
            second_after(execution.ended),
        );
        let conditions = self.conditions.get(resource);
        let machine = known.machines.get(resource);
        let free = conditions.and_then(|condition| condition.free_during(ran, execution.nodes, machine));
        let done = length.needed(length.run) * speed_of_rate(known.rate(Some(resource)));
        let levels = work.levels(known.kind(work.resource));
        known.runs.learn_loaded(&levels, done, free.map(load_factor));
        if let Some(judged) = &foreseen.judged {
            let group = work.group();
            for (learner, judged) in known.learners.iter_mut().zip(judged) {
                learner.learn(resource, &group, *judged);
            }
        }
        let waited = as_seconds(execution.queue_time);
        known.queues.entry(resource.clone()).or_default().push(waited);
        known.queue_anywhere.push(waited);
        let copied = as_seconds(execution.transfer_in.saturating_add(execution.transfer_out));
        if foreseen.transfers > 0.0 {
            let spread = (copied / foreseen.transfers).ln().max(LEAST_SPREAD);
            known.spreads.entry(resource.clone()).or_default().push(spread);
        }
        let copies = known.copies_files(Some(resource));
        let key = (execution.application.clone(), copies);
        let bytes = known.bytes.entry(key).or_default();
        for (last, bytes) in bytes.iter_mut().zip([execution.moved_in, execution.moved_out]) {
            #[expect(
                clippy::cast_precision_loss,
                reason = "bytes beyond 2⁵³ are known to a part in 10¹⁵"
            )]
            last.push(bytes.max(0) as f64);
        }
        let lengths = known.lengths.entry(execution.application.clone()).or_default();
        lengths.push((resource.clone(), *length));
        if lengths.len() > MEAN_RUNS_MAX {
            lengths.remove(0);
        }
        let outcomes = known.estimated.entry(resource.clone()).or_default();
        outcomes.push(Estimated {
            estimated: foreseen.estimated,
            real: length.real(foreseen.estimated),
        });
        if outcomes.len() > TRUST_RUNS {
            outcomes.remove(0);
        }
    }
}

/// The logarithm of a transfer that takes no time at all.
const LEAST_SPREAD: f64 = -10.0;

/// The lengths of executions, and apart from them those of the stopped ones.
fn part_stopped_executions<T>(lengths: impl Iterator<Item = (Length, T)>) -> (Vec<T>, Vec<T>) {
    let (mut whole, mut stopped) = (Vec::new(), Vec::new());
    for (length, what) in lengths {
        if length.stopped {
            stopped.push(what);
        } else {
            whole.push(what);
        }
    }
    (whole, stopped)
}

/// Work done in a second, as a number.
pub(super) fn speed_of_rate(rate: Rate) -> f64 {
    f64::from(rate.millionths()) / f64::from(Rate::REFERENCE.millionths())
}
