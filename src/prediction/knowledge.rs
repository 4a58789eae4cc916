//! The knowledge from past executions and samples of resources.

use std::collections::BTreeMap;

use scheduler::prediction::estimate::{Outcome as Estimated, TRUST_RUNS};
use scheduler::prediction::runs::{Event, events};
use scheduler::prediction::{Estimate, Evidence, Prediction, Reliability, Runs, Series, Smoothing, Subject};
use scheduler::{Interval, Rate, Seconds};

use crate::agreement::{Agreement, RunOutcome, ServiceState};
use crate::clock::{MICROS_PER_SECOND, Micros, second_after, second_of};
use crate::store::{Condition, PastExecution, ResourceHour};

/// Length of the steps that samples are smoothed over.
const HOUR: Seconds = 3_600;

/// Executions of an application that a mean is taken of: the last ones, as programs and inputs change.
const MEAN_RUNS_MAX: usize = 1_000;

/// The length that work which was stopped at its slot's end is taken to need, as a multiple of its slot, where slots are sized:
/// only its least length is known.
const STOPPED_FACTOR: Seconds = 2;

/// Work with a length that is to be predicted.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    /// Name in the catalogue.
    pub application: &'a str,
    /// Version in the catalogue.
    pub version: Option<&'a str>,
    /// Its arguments; none where they are not known.
    pub arguments: Option<&'a [String]>,
    /// Its party; none where that is not known.
    pub party: Option<&'a str>,
    /// Where it is to run; none where that is not decided.
    pub resource: Option<&'a str>,
    /// On how many nodes; none where that is not known.
    pub nodes: Option<u32>,
}

/// The properties that make runs alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    Application(String),
    Version(String, String),
    Resource(String, String),
    Party(String, String),
    Arguments(String, Vec<String>),
    Exactly(String, Vec<String>, u32),
}

impl Work<'_> {
    /// Its likenesses, from any run of the application to one with the same arguments on as many nodes.
    fn subject(&self) -> Subject<Likeness> {
        let name = || self.application.to_owned();
        let any = Likeness::Application(name());
        let there = self
            .resource
            .map(|resource| Likeness::Resource(name(), resource.to_owned()));
        let mut levels = vec![any.clone()];
        levels.extend(
            self.version
                .map(|version| Likeness::Version(name(), version.to_owned())),
        );
        levels.extend(there.clone());
        levels.extend(self.party.map(|party| Likeness::Party(name(), party.to_owned())));
        if let Some(arguments) = self.arguments {
            levels.push(Likeness::Arguments(name(), arguments.to_vec()));
            levels.extend(
                self.nodes
                    .map(|nodes| Likeness::Exactly(name(), arguments.to_vec(), nodes)),
            );
        }
        Subject {
            levels,
            group: there.unwrap_or(any),
            limit: None,
        }
    }
}

/// The forecast of a resource.
#[derive(Debug, Clone, PartialEq)]
struct Resource {
    free_cpu: Option<Smoothing>,
    bandwidth_in: Option<Smoothing>,
    bandwidth_out: Option<Smoothing>,
}

/// The knowledge of the past. Runs are learned as work, in seconds at the reference rate, so that a run on one resource helps to
/// predict another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Knowledge {
    runs: Runs<Likeness>,
    /// Lengths by application, each with its resource, oldest first.
    lengths: BTreeMap<String, Vec<(String, Length)>>,
    /// By resource, oldest first.
    estimated: BTreeMap<String, Vec<Estimated>>,
    resources: BTreeMap<String, Resource>,
    /// Of the resources that are configured.
    rates: BTreeMap<String, Rate>,
    reliability: Reliability,
}

/// The length of such work, as far as one execution tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    /// It ended by itself after this many seconds.
    Whole(Seconds),
    /// It was stopped after this many, and would have taken longer.
    AtLeast(Seconds),
}

impl Length {
    /// The seconds that it was seen to run.
    const fn seconds(self) -> Seconds {
        match self {
            Self::Whole(seconds) | Self::AtLeast(seconds) => seconds,
        }
    }

    /// The length that a slot for such work should have had.
    const fn needed(self) -> Seconds {
        match self {
            Self::Whole(seconds) => seconds,
            Self::AtLeast(seconds) => seconds.saturating_mul(STOPPED_FACTOR),
        }
    }

    /// The real length with which an estimate is compared. For work that was stopped it is known by how much it exceeded its
    /// estimate, and nothing where it did not.
    fn real(self, estimated: Seconds) -> Seconds {
        match self {
            Self::Whole(seconds) => seconds,
            Self::AtLeast(seconds) => seconds.max(estimated),
        }
    }
}

/// The lengths of executions, and apart from them those of the stopped ones.
fn parted<T>(lengths: impl Iterator<Item = (Length, T)>) -> (Vec<T>, Vec<T>) {
    let (mut whole, mut stopped) = (Vec::new(), Vec::new());
    for (length, what) in lengths {
        match length {
            Length::Whole(_) => whole.push(what),
            Length::AtLeast(_) => stopped.push(what),
        }
    }
    (whole, stopped)
}

/// A slot that holds its work with a stated probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot {
    /// The probability.
    pub probability: f64,
    /// Its whole seconds, transfers included.
    pub seconds: Seconds,
    /// Runs that are most like it.
    pub runs: usize,
    /// Outcomes that calibrate it.
    pub outcomes: usize,
}

/// The prediction for work, and its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Paper 004's estimate, step by step.
    pub estimate: Estimate,
    /// The slot to reserve; none without any execution of the application.
    pub slot: Option<Slot>,
    /// The probability that it completes before the gap ends; none in the same case.
    pub confidence: Option<f64>,
}

/// The values that the requester and the template give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Given {
    /// The requester's own duration.
    pub requested: Option<Seconds>,
    /// The template's.
    pub default: Seconds,
    /// Bytes to bring before the start.
    pub input_bytes: u64,
    /// Bytes to take away after the end.
    pub output_bytes: u64,
}

impl Knowledge {
    /// From executions by their ends, and the hours of resources. Each execution is first predicted from the executions that had
    /// ended when it was agreed, so that each prediction is compared with its outcome. Takes some microseconds an execution.
    /// Resources without a given rate have the reference's.
    pub fn of(past: &[PastExecution], hours: &[ResourceHour], rates: BTreeMap<String, Rate>) -> Self {
        let mut known = Self {
            resources: resources(hours),
            rates,
            ..Self::default()
        };
        let past: Vec<(&PastExecution, Length)> = past
            .iter()
            .filter_map(|past| Some((past, length(past)?)))
            .collect();
        let spans = past
            .iter()
            .map(|(past, _)| Interval::new(second_of(past.agreed), second_after(past.execution.ended)));
        let mut foreseen: Vec<(Option<f64>, Seconds)> = vec![(None, 0); past.len()];
        for event in events(spans) {
            match event {
                Event::Asked(at) => foreseen[at] = known.foresee(past[at].0, past[at].1),
                Event::Ended(at) => known.add(past[at].0, past[at].1, foreseen[at]),
            }
        }
        known
    }

    /// The level at which an execution will be found, and the paper's estimate of it.
    fn foresee(&mut self, past: &PastExecution, length: Length) -> (Option<f64>, Seconds) {
        let execution = &past.execution;
        let subject = work(past).subject();
        let prediction = self.runs.predict(&subject);
        let done = self.work_of(length.needed(), Some(&execution.resource));
        let level = prediction.as_ref().map(|prediction| prediction.level(done));
        let stated = |p: f64| prediction.as_ref().map(|prediction| prediction.quantile(p));
        if prediction.is_some() {
            #[expect(clippy::cast_precision_loss, reason = "run times are far below 2⁵³ seconds")]
            self.reliability
                .add(|p| stated(p).unwrap_or_default(), done as f64);
        }
        let given = Given {
            requested: Some(execution.planned.duration()),
            ..Given::default()
        };
        // The samples of then are not kept at the grain of then: the estimate is made without them.
        let estimate = self.estimate(&work(past), execution.planned, given, None);
        (level, estimate.completion)
    }

    fn add(&mut self, past: &PastExecution, length: Length, (level, estimated): (Option<f64>, Seconds)) {
        let execution = &past.execution;
        let done = self.work_of(length.needed(), Some(&execution.resource));
        self.runs.learn(&work(past).subject(), done, level);
        let lengths = self.lengths.entry(execution.application.clone()).or_default();
        lengths.push((execution.resource.clone(), length));
        if lengths.len() > MEAN_RUNS_MAX {
            lengths.remove(0);
        }
        let outcomes = self.estimated.entry(execution.resource.clone()).or_default();
        outcomes.push(Estimated {
            estimated,
            real: length.real(estimated),
        });
        if outcomes.len() > TRUST_RUNS {
            outcomes.remove(0);
        }
    }

    fn estimate(&self, work: &Work, gap: Interval, given: Given, resource: Option<&Resource>) -> Estimate {
        let lengths = self.lengths.get(work.application).map_or(&[][..], Vec::as_slice);
        let own = lengths
            .iter()
            .filter(|(resource, _)| work.resource == Some(resource));
        let (here, stopped_here) = parted(own.map(|(_, length)| (*length, length.seconds())));
        // Of other resources only where there is nothing of this one: it is looked at for each of many executions.
        let known_here = !(here.is_empty() && stopped_here.is_empty());
        let others = if known_here { &[][..] } else { lengths };
        let rated = others
            .iter()
            .map(|(resource, length)| (*length, (length.seconds(), self.rate(Some(resource)))));
        let (anywhere, stopped_anywhere) = parted(rated);
        let outcomes = work.resource.and_then(|resource| self.estimated.get(resource));
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
                free_cpu: resource.and_then(|resource| resource.free_cpu.as_ref()),
                input_bytes: given.input_bytes,
                output_bytes: given.output_bytes,
                bandwidth_in: resource.and_then(|resource| resource.bandwidth_in.as_ref()),
                bandwidth_out: resource.and_then(|resource| resource.bandwidth_out.as_ref()),
                outcomes: outcomes.map_or(&[][..], Vec::as_slice),
            },
        )
    }

    /// The rate of a resource, where one is meant.
    fn rate(&self, resource: Option<&str>) -> Rate {
        resource
            .and_then(|name| self.rates.get(name))
            .copied()
            .unwrap_or_default()
    }

    /// Seconds at the reference rate of work that took this long on a resource.
    fn work_of(&self, length: Seconds, resource: Option<&str>) -> Seconds {
        let millionths = i128::from(length) * i128::from(self.rate(resource).millionths());
        let work = millionths.div_euclid(i128::from(Rate::REFERENCE.millionths()));
        Seconds::try_from(work).unwrap_or(Seconds::MAX).max(1)
    }

    /// The prediction for work in a gap, from its start to its deadline.
    pub fn explain(&self, work: &Work, gap: Interval, given: Given, probability: f64) -> Explanation {
        let resource = work.resource.and_then(|name| self.resources.get(name));
        let estimate = self.estimate(work, gap, given, resource);
        let subject = work.subject();
        let prediction = self.runs.predict(&subject);
        let transfers = estimate.prolog + estimate.epilog;
        let rate = self.rate(work.resource);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "seconds of a window and of transfers, which saturate"
        )]
        let (length, whole) = (gap.duration() as f64, transfers.ceil() as Seconds);
        Explanation {
            slot: prediction.as_ref().map(|prediction| Slot {
                probability,
                seconds: rate.duration(prediction.slot(probability)).saturating_add(whole),
                runs: prediction.runs(),
                outcomes: prediction.outcomes(),
            }),
            confidence: prediction
                .map(|prediction| prediction.probability_within((length - transfers) * speed(rate))),
            estimate,
        }
    }

    /// The whole seconds at the reference rate that hold the work with this probability; none without any execution of the application.
    pub fn slot(&self, work: &Work, probability: f64) -> Option<Seconds> {
        Some(self.runs.predict(&work.subject())?.slot(probability))
    }

    /// The probability that work ends within this many seconds of the resource that it names, or at the reference rate where it
    /// names none; none without any execution of the application.
    pub fn probability(&self, work: &Work, seconds: Seconds) -> Option<f64> {
        let prediction = self.runs.predict(&work.subject())?;
        let micros = seconds.saturating_mul(MICROS_PER_SECOND);
        Some(within(&prediction, micros, self.rate(work.resource)))
    }

    /// The probability that an agreement's job ends by itself before its slot does, given that it has not ended yet. None
    /// where it runs nothing, is over, or nothing is known of its application.
    pub fn confidence(&self, agreement: &Agreement, now: Micros) -> Option<f64> {
        let job = agreement.job.as_ref()?;
        if agreement.ended.is_some()
            || agreement.state.is_final()
            || agreement.service == ServiceState::Completed
        {
            return None;
        }
        let work = Work {
            application: &job.application,
            version: job.version.as_deref(),
            arguments: Some(&job.arguments),
            party: Some(&agreement.party),
            resource: Some(&agreement.resource),
            nodes: Some(agreement.nodes()),
        };
        let prediction = self.runs.predict(&work.subject())?;
        let rate = self.rate(work.resource);
        if agreement.started.is_none() {
            let whole = agreement.duration * MICROS_PER_SECOND;
            return Some(within(&prediction, whole, rate));
        }
        // As before it began: the loss by saving its work and resuming it is not known.
        let (done, all) = (agreement.run_time_by(now), agreement.run_time_to_end());
        let (before, whole) = (within(&prediction, done, rate), within(&prediction, all, rate));
        let left = 1.0 - before;
        Some(if left > 0.0 {
            ((whole - before) / left).clamp(0.0, 1.0)
        } else {
            0.0
        })
    }

    /// How good its statements have been.
    pub fn reliability(&self) -> &Reliability {
        &self.reliability
    }
}

/// Work done in a second, as a number.
fn speed(rate: Rate) -> f64 {
    f64::from(rate.millionths()) / f64::from(Rate::REFERENCE.millionths())
}

fn within(prediction: &Prediction, micros: Micros, rate: Rate) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "run times are far below 2⁵³ microseconds"
    )]
    let seconds = micros as f64 / MICROS_PER_SECOND as f64;
    prediction.probability_within(seconds * speed(rate))
}

fn work(past: &PastExecution) -> Work<'_> {
    let execution = &past.execution;
    Work {
        application: &execution.application,
        version: execution.version.as_deref(),
        arguments: Some(&execution.arguments),
        party: Some(&past.party),
        resource: Some(&execution.resource),
        nodes: Some(execution.nodes),
    }
}

/// The length of such work, as far as an execution tells it: the wait for its process and its run. None of one that was ended
/// from outside.
fn length(past: &PastExecution) -> Option<Length> {
    let execution = &past.execution;
    let micros = execution
        .queue_time
        .max(0)
        .saturating_add(execution.run_time.max(0));
    let seconds = second_after(micros).seconds().max(1);
    match execution.outcome {
        RunOutcome::Completed | RunOutcome::Failed { .. } => Some(Length::Whole(seconds)),
        RunOutcome::Killed => Some(Length::AtLeast(seconds)),
        RunOutcome::Checkpointed
        | RunOutcome::Terminated
        | RunOutcome::Exceeded { .. }
        | RunOutcome::Unstaged
        | RunOutcome::Lost => None,
    }
}

fn resources(hours: &[ResourceHour]) -> BTreeMap<String, Resource> {
    let of = |hours: &[ResourceHour], what: fn(&Condition) -> Option<i64>, unit: f64| {
        #[expect(clippy::cast_precision_loss, reason = "millionths and bytes a second")]
        let samples = hours
            .iter()
            .filter_map(|hour| Some((hour.start, what(&hour.condition)? as f64 / unit)));
        let series = Series::of(samples, HOUR);
        (!series.values().is_empty()).then(|| Smoothing::fit(&series))
    };
    hours
        .chunk_by(|a, b| a.resource == b.resource)
        .map(|hours| {
            // The rates that transfers have had say more than the room that lines had by their speed: the other end and the way
            // there are in them. The two are not mixed.
            let bandwidth = |transfers, lines| of(hours, transfers, 1.0).or_else(|| of(hours, lines, 1.0));
            let resource = Resource {
                free_cpu: of(hours, |condition| condition.free_cpu, 1e6),
                bandwidth_in: bandwidth(|of| of.transfer_in, |of| of.bandwidth_in),
                bandwidth_out: bandwidth(|of| of.transfer_out, |of| of.bandwidth_out),
            };
            (hours[0].resource.clone(), resource)
        })
        .collect()
}
