//! A workload as executions of applications. Each is predicted from the executions that were over when it was submitted.

use std::collections::BTreeMap;

use scheduler::prediction::estimate::{Outcome, TRUST_RUNS};
use scheduler::prediction::reliability::{LEVELS, Reliability};
use scheduler::prediction::runs::{Event, events};
use scheduler::prediction::{Estimate, Evidence, Runs, Subject};
use scheduler::{Interval, Rate, Seconds, Time};

use super::load::FreeShare;
use advisor::workload::{Job, Workload};

/// Executions that are learned from before any is judged.
pub(super) const WARM_UP: usize = 500;

/// The interval over which the free share is foreseen: a reservation made a day ahead.
const DAY: Seconds = 86_400;

/// The predictions for a run before it was known.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Forecast {
    /// A number of seconds.
    Point(f64),
    /// The quantiles at [`LEVELS`].
    Quantiles([f64; LEVELS.len()]),
}

impl Forecast {
    /// The seconds that it states for a probability, which is one of [`LEVELS`].
    pub(super) fn quantile(&self, p: f64) -> f64 {
        match self {
            Self::Point(seconds) => *seconds,
            Self::Quantiles(quantiles) => {
                let at = LEVELS.iter().position(|level| *level >= p - 1e-9);
                quantiles[at.unwrap_or(LEVELS.len() - 1)]
            }
        }
    }
}

/// The sources of the forecasts that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Paper 004: the mean of past executions.
    Mean,
    /// With the free share of the nodes, smoothed.
    Smoothing,
    /// With trust as well.
    Trust,
    /// The mean of the user's last two runs.
    LastTwo,
    /// The user's own estimate.
    User,
    /// The blended and calibrated distribution, without users' estimates.
    Learned,
    /// The same, users' estimates taken into account.
    LearnedWithEstimate,
}

impl Source {
    pub(super) const ALL: [Self; 7] = [
        Self::Mean,
        Self::Smoothing,
        Self::Trust,
        Self::LastTwo,
        Self::User,
        Self::Learned,
        Self::LearnedWithEstimate,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Smoothing => "mean, smoothing",
            Self::Trust => "mean, smoothing, trust",
            Self::LastTwo => "user's last two runs",
            Self::User => "user's estimate",
            Self::Learned => "learned",
            Self::LearnedWithEstimate => "learned, estimates known",
        }
    }
}

/// Forecasts and outcomes of a workload.
pub(crate) struct Results {
    /// The jobs that are judged, by submission: those after the warm-up for which every source that has any forecast has one.
    pub(super) jobs: Vec<Job>,
    /// For each source that has any: its forecasts of those jobs.
    pub(super) forecasts: Vec<(Source, Vec<Forecast>)>,
    /// Mean absolute errors of the free share by hours ahead: smoothing, the last value, the mean.
    pub(super) ahead: Vec<(usize, [f64; 3])>,
}

impl Results {
    pub(super) fn of(&self, source: Source) -> Option<&[Forecast]> {
        let (_, forecasts) = self.forecasts.iter().find(|(other, _)| *other == source)?;
        Some(forecasts)
    }

    /// The books kept on a source, on a part of the jobs.
    pub(super) fn reliability(&self, source: Source, part: std::ops::Range<usize>) -> Option<Reliability> {
        let forecasts = self.of(source)?;
        let mut kept = Reliability::default();
        for (job, forecast) in self.jobs[part.clone()].iter().zip(&forecasts[part]) {
            kept.add(|p| forecast.quantile(p), job.run as f64);
        }
        Some(kept)
    }
}

/// The results of one pass over the workload.
pub(super) struct Pass {
    forecasts: Vec<(Source, Vec<Option<Forecast>>)>,
    ahead: Vec<(usize, [f64; 3])>,
}

/// The passes, which know nothing of each other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Task {
    /// Paper 004 and the simple rivals.
    Paper,
    /// The distribution without or with the users' estimates.
    Learned(Source),
}

impl Task {
    pub(super) const ALL: [Self; 3] = [
        Self::Paper,
        Self::Learned(Source::Learned),
        Self::Learned(Source::LearnedWithEstimate),
    ];

    pub(super) fn run(self, workload: &Workload) -> Pass {
        match self {
            Self::Paper => Paper::new(workload).run(),
            Self::Learned(source) => learned(workload, source),
        }
    }
}

/// Puts the passes together.
pub(super) fn results(workload: &Workload, passes: Vec<Pass>) -> Results {
    let warm = warm_from(workload);
    let ahead = passes.first().map(|pass| pass.ahead.clone()).unwrap_or_default();
    let forecasts: Vec<(Source, Vec<Option<Forecast>>)> = passes
        .into_iter()
        .flat_map(|pass| pass.forecasts)
        .filter(|(_, of)| of[warm..].iter().any(Option::is_some))
        .collect();
    let judged: Vec<usize> = (warm..workload.jobs.len())
        .filter(|job| forecasts.iter().all(|(_, of)| of[*job].is_some()))
        .collect();
    Results {
        jobs: judged.iter().map(|job| workload.jobs[*job]).collect(),
        forecasts: forecasts
            .into_iter()
            .map(|(source, of)| (source, judged.iter().filter_map(|job| of[*job].clone()).collect()))
            .collect(),
        ahead,
    }
}

/// The first job by which enough others had ended.
fn warm_from(workload: &Workload) -> usize {
    let mut ended = 0;
    for event in order(workload) {
        match event {
            Event::Ended(_) => ended += 1,
            Event::Asked(job) if ended >= WARM_UP => return job,
            Event::Asked(_) => {}
        }
    }
    workload.jobs.len()
}

fn order(workload: &Workload) -> Vec<Event> {
    events(
        workload
            .jobs
            .iter()
            .map(|job| Interval::new(Time(job.submit), job.ran().end)),
    )
}

/// A level of likeness: its kind, and the properties that are alike.
type Key = (u8, [u64; 3]);

/// The likenesses of a job, from any job to one of the same executable.
fn subject(job: &Job, source: Source) -> Subject<Key> {
    let anybody = (0, [0; 3]);
    let mut levels = vec![anybody];
    let nodes = u64::from(job.nodes);
    let estimate = job
        .estimate
        .filter(|seconds| source == Source::LearnedWithEstimate && *seconds > 0);
    let asked = estimate.and_then(|seconds| u64::try_from(seconds).ok());
    match asked {
        None => levels.push((1, [u64::from(job.nodes.ilog2()), 0, 0])),
        Some(asked) => levels.push((2, [asked, 0, 0])),
    }
    let user = job.user.map(|user| (3, [user, 0, 0]));
    levels.extend(user);
    if let Some(user) = job.user {
        match asked {
            None => levels.push((4, [user, nodes, 0])),
            Some(asked) => levels.extend([(5, [user, asked, 0]), (6, [user, asked, nodes])]),
        }
    }
    levels.extend(
        job.executable
            .map(|executable| (7, [executable, job.user.unwrap_or(0), 0])),
    );
    Subject {
        levels,
        group: user.unwrap_or(anybody),
        limit: estimate,
    }
}

fn learned(workload: &Workload, source: Source) -> Pass {
    let jobs = &workload.jobs;
    let known = source == Source::Learned || jobs.iter().any(|job| job.estimate.is_some());
    let mut runs = Runs::default();
    let mut forecasts = vec![None; jobs.len()];
    let mut levels = vec![None; jobs.len()];
    for event in if known { order(workload) } else { Vec::new() } {
        match event {
            Event::Asked(job) => {
                if let Some(prediction) = runs.predict(&subject(&jobs[job], source)) {
                    let quantiles = LEVELS.map(|p| prediction.quantile(p));
                    forecasts[job] = Some(Forecast::Quantiles(quantiles));
                    levels[job] = Some(prediction.level(jobs[job].run));
                }
            }
            Event::Ended(job) => runs.learn(&subject(&jobs[job], source), jobs[job].run, levels[job]),
        }
    }
    Pass {
        forecasts: vec![(source, forecasts)],
        ahead: Vec::new(),
    }
}

/// Paper 004, and the simple rivals.
struct Paper<'a> {
    jobs: &'a [Job],
    order: Vec<Event>,
    free: FreeShare,
    of_application: BTreeMap<(u64, Option<u64>), Vec<Seconds>>,
    of_user: BTreeMap<Option<u64>, Vec<Seconds>>,
    of_anybody: Vec<(Seconds, Rate)>,
    outcomes: Vec<Outcome>,
    forecasts: [Vec<Option<Forecast>>; 5],
}

impl<'a> Paper<'a> {
    fn new(workload: &'a Workload) -> Self {
        Self {
            jobs: &workload.jobs,
            order: order(workload),
            free: FreeShare::new(workload),
            of_application: BTreeMap::new(),
            of_user: BTreeMap::new(),
            of_anybody: Vec::new(),
            outcomes: Vec::new(),
            forecasts: std::array::from_fn(|_| vec![None; workload.jobs.len()]),
        }
    }

    fn run(mut self) -> Pass {
        for event in std::mem::take(&mut self.order) {
            match event {
                Event::Asked(job) => self.predict(job),
                Event::Ended(job) => self.learn(job),
            }
        }
        let sources = [
            Source::Mean,
            Source::Smoothing,
            Source::Trust,
            Source::LastTwo,
            Source::User,
        ];
        Pass {
            forecasts: sources.into_iter().zip(self.forecasts).collect(),
            ahead: self.free.errors(),
        }
    }

    fn predict(&mut self, at: usize) {
        let job = self.jobs[at];
        let user = self.of_user.get(&job.user).map(Vec::as_slice);
        if let Some(estimate) = job.estimate.filter(|seconds| *seconds > 0) {
            self.forecasts[4][at] = Some(Forecast::Point(estimate as f64));
        }
        if let Some(last) = user.map(|runs| &runs[runs.len().saturating_sub(2)..]) {
            let mean = last.iter().sum::<Seconds>() as f64 / last.len().max(1) as f64;
            self.forecasts[3][at] = Some(Forecast::Point(mean));
        }
        let application = job
            .executable
            .and_then(|executable| self.of_application.get(&(executable, job.user)));
        let here = application.map(Vec::as_slice).or(user).unwrap_or_default();
        if here.is_empty() && self.of_anybody.is_empty() {
            return;
        }
        let gap = Interval::of(Time(job.submit), DAY);
        let free = self.free.at(Time(job.submit));
        let mut evidence = Evidence {
            here,
            anywhere: &self.of_anybody,
            ..Evidence::default()
        };
        let mut completion = |source: usize, evidence: &Evidence| {
            let seconds = Estimate::over(gap, evidence).completion;
            self.forecasts[source][at] = Some(Forecast::Point(seconds as f64));
        };
        completion(0, &evidence);
        evidence.free_cpu = free;
        completion(1, &evidence);
        evidence.outcomes = &self.outcomes;
        completion(2, &evidence);
    }

    fn learn(&mut self, at: usize) {
        let job = self.jobs[at];
        if let Some(executable) = job.executable {
            self.of_application
                .entry((executable, job.user))
                .or_default()
                .push(job.run);
        }
        self.of_user.entry(job.user).or_default().push(job.run);
        self.of_anybody.push((job.run, Rate::REFERENCE));
        if let Some(forecast) = &self.forecasts[2][at] {
            // Estimates are whole seconds that a plan can hold.
            #[expect(clippy::cast_possible_truncation, reason = "a whole number of seconds")]
            let estimated = forecast.quantile(0.5) as Seconds;
            self.outcomes.push(Outcome {
                estimated,
                real: job.run,
            });
            if self.outcomes.len() > TRUST_RUNS {
                self.outcomes.remove(0);
            }
        }
    }
}
