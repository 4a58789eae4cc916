//! How the knowledge is learned, execution by execution.

use std::collections::BTreeMap;

use domain::clock::{second_after, second_of};
use domain::past::PastExecution;
use scheduler::Interval;
use scheduler::prediction::estimate::{
    EstimateOutcome as Estimated, TRUST_RUNS, load_factor, trans_t_estimation,
};
use scheduler::prediction::smoothing::SmoothingReplay;
use scheduler::prediction::{JudgedStatement, Ladder, Parts, RealDuration};

use super::{Knowledge, speed_of_rate};
use crate::last_values::LastValues;
use crate::machines::MachineConditions;
use crate::work::{Work, WorkLength, as_seconds};

/// Executions of an application that a mean is taken of: the last ones, as programs and inputs change.
const MEAN_RUNS_MAX: usize = 1_000;

/// The logarithm of a transfer that takes no time at all.
const LEAST_SPREAD: f64 = -10.0;

/// What was foreseen of an execution when it was agreed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ForeseenExecution {
    /// By each learner; none where nothing was known of its application.
    judged: Option<[JudgedStatement; Ladder::ALL.len()]>,
    /// Seconds of its transfers at the bandwidth that was foreseen.
    transfers: f64,
}

/// The conditions of a resource as they were known at the instants of the past.
pub(super) struct Replays<'a> {
    free_cpu: Option<SmoothingReplay<'a>>,
    bandwidths: [Option<SmoothingReplay<'a>>; 2],
}

/// Knowledge on its way.
pub(super) struct KnowledgeBuilder<'a> {
    pub(super) known: Knowledge,
    pub(super) conditions: &'a BTreeMap<String, MachineConditions>,
    pub(super) replays: BTreeMap<&'a str, Replays<'a>>,
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
    pub(super) fn foresee(&mut self, past: &PastExecution, length: &WorkLength) -> ForeseenExecution {
        let execution = &past.execution;
        let (load, transfers) = self.conditions_then(past);
        let work = Work::of_past(past);
        let resource = execution.resource.as_str();
        let levels = work.levels(self.known.kind(work.resource));
        let bases = self
            .known
            .runs
            .base(&levels)
            .zip(self.known.published_mean(&work));
        let Some((base, mean)) = bases else {
            return ForeseenExecution {
                judged: None,
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
        let published = Parts {
            base: &mean,
            speed: 1.0,
            queue: None,
            spread: None,
            ..parts
        };
        let came = RealDuration {
            seconds: length.whole,
            needed: length.needed(length.whole),
            stopped: length.stopped,
        };
        let group = work.group();
        let judged = learners.each_mut().map(|learner| {
            let parts = match learner.ladder() {
                Ladder::Published => &published,
                _ => &parts,
            };
            learner.judge(resource, &group, parts, came)
        });
        ForeseenExecution {
            judged: Some(judged),
            transfers,
        }
    }

    /// Adds what came of an execution.
    pub(super) fn add(&mut self, past: &PastExecution, length: &WorkLength, foreseen: &ForeseenExecution) {
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
        let estimated = execution.estimate;
        if estimated == 0 {
            return;
        }
        let outcomes = known.estimated.entry(resource.clone()).or_default();
        outcomes.push(Estimated {
            estimated,
            real: length.real(estimated),
        });
        if outcomes.len() > TRUST_RUNS {
            outcomes.remove(0);
        }
    }
}
