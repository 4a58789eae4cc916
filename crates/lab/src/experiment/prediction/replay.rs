//! A workload as executions of applications. Each is predicted from the executions that were over when it was submitted.

use std::array;
use std::collections::BTreeMap;

use scheduler::prediction::estimate::{EstimateOutcome, TRUST_RUNS, cpu_free, load_factor};
use scheduler::prediction::reliability::{LEVELS, Reliability};
use scheduler::prediction::runs::{Event, events_of_runs};
use scheduler::prediction::{Estimate, Evidence, Ladder, Learner, Parts, RealDuration, Runs, Subject};
use scheduler::{Interval, Rate, Seconds, Time};

use super::free_share::FreeShare;
use crate::whole_seconds;
use advisor::workload::{Job, Workload};

/// Executions that are learned from before any is judged.
pub(super) const WARM_UP: usize = 500;

/// The interval over which the free share is foreseen: a reservation made a day ahead.
const DAY: Seconds = 86_400;

/// The seconds stated for a run at [`LEVELS`] before it was known; the same at all of them by a source that knows one number.
pub(super) type Forecast = [f64; LEVELS.len()];

/// The seconds that a forecast states for a probability, which is one of [`LEVELS`].
pub(super) fn quantile_of_replayed_forecast(forecast: &Forecast, p: f64) -> f64 {
    let at = LEVELS.iter().position(|level| *level >= p - 1e-9);
    forecast[at.unwrap_or(LEVELS.len() - 1)]
}

/// The sources of the forecasts that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Paper 004: the mean of past executions.
    Mean,
    /// With the free share of the nodes, smoothed.
    Smoothing,
    /// With trust as well: JT as printed, without transfers, of which the logs know nothing.
    Trust,
    /// The mean of the user's last two runs.
    LastTwo,
    /// The user's own estimate.
    User,
    /// The learned distribution with load and trust as far as they have helped, by which the service decides unless it is told otherwise.
    Weighted,
    /// The blended and calibrated distribution, without users' estimates.
    Learned,
    /// The same, users' estimates taken into account.
    LearnedWithEstimate,
}

impl Source {
    pub(super) const ALL: [Self; 8] = [
        Self::Mean,
        Self::Smoothing,
        Self::Trust,
        Self::LastTwo,
        Self::User,
        Self::Weighted,
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
            Self::Weighted => "learned, parts weighted",
            Self::Learned => "learned",
            Self::LearnedWithEstimate => "learned, estimates known",
        }
    }
}

/// The sources that state a distribution.
pub(super) const LEARNED: [Source; 2] = [Source::Learned, Source::LearnedWithEstimate];

/// Forecasts and outcomes of a workload.
pub(crate) struct PredictionReplay {
    /// The jobs that are judged, by submission: those after the warm-up for which every source that has any forecast has one.
    pub(super) jobs: Vec<Job>,
    /// For each source that has any: its forecasts of those jobs.
    pub(super) forecasts: Vec<(Source, Vec<Forecast>)>,
    /// Mean absolute errors of the free share by hours ahead: smoothing, the last value, the mean.
    pub(super) ahead: Vec<(usize, [f64; 3])>,
}

impl PredictionReplay {
    pub(super) fn of(&self, source: Source) -> Option<&[Forecast]> {
        let (_, forecasts) = self.forecasts.iter().find(|(other, _)| *other == source)?;
        Some(forecasts)
    }

    /// The books kept on a source, on a part of the jobs.
    pub(super) fn reliability(&self, source: Source, part: std::ops::Range<usize>) -> Option<Reliability> {
        let forecasts = self.of(source)?;
        let mut kept = Reliability::default();
        for (job, forecast) in self.jobs[part.clone()].iter().zip(&forecasts[part]) {
            kept.add(|p| quantile_of_replayed_forecast(forecast, p), job.run as f64);
        }
        Some(kept)
    }
}

/// The results of one pass over the workload.
pub(super) struct PredictionPass {
    forecasts: Vec<(Source, Vec<Option<Forecast>>)>,
    ahead: Vec<(usize, [f64; 3])>,
}

/// The passes, which know nothing of each other: paper 004 and the simple rivals; the distribution with weighted parts; and the
/// distribution alone, without and with the users' estimates.
pub(super) const PASSES: [fn(&Workload) -> PredictionPass; 4] = [
    replay_as_paper,
    replay_weighted,
    |workload| replay_learning(workload, Source::Learned),
    |workload| replay_learning(workload, Source::LearnedWithEstimate),
];

/// Puts the passes together.
pub(super) fn join_replayed_passes(workload: &Workload, passes: Vec<PredictionPass>) -> PredictionReplay {
    let warm = first_warm_job(workload);
    let ahead = passes.first().map(|pass| pass.ahead.clone()).unwrap_or_default();
    let mut forecasts: Vec<_> = passes.into_iter().flat_map(|pass| pass.forecasts).collect();
    forecasts.retain(|(_, forecast)| forecast[warm..].iter().any(Option::is_some));
    let judged: Vec<usize> = (warm..workload.jobs.len())
        .filter(|job| forecasts.iter().all(|(_, forecast)| forecast[*job].is_some()))
        .collect();
    let of_judged = |(source, each): (Source, Vec<Option<Forecast>>)| {
        (source, judged.iter().filter_map(|job| each[*job]).collect())
    };
    PredictionReplay {
        jobs: judged.iter().map(|job| workload.jobs[*job]).collect(),
        forecasts: forecasts.into_iter().map(of_judged).collect(),
        ahead,
    }
}

/// The first job by which enough others had ended.
fn first_warm_job(workload: &Workload) -> usize {
    let mut ended = 0;
    for event in order_events_to_replay(workload) {
        match event {
            Event::Ended(_) => ended += 1,
            Event::Asked(job) if ended >= WARM_UP => return job,
            Event::Asked(_) => {}
        }
    }
    workload.jobs.len()
}

fn order_events_to_replay(workload: &Workload) -> Vec<Event> {
    let span = |job: &Job| Interval::new(Time(job.submit), job.ran().end);
    events_of_runs(workload.jobs.iter().map(span))
}

/// A level of likeness: its kind, and the properties that are alike.
type Key = (u8, [u64; 3]);

/// The likenesses of a job, from any job to one of the same executable.
fn subject_of_replayed_job(job: &Job, source: Source) -> Subject<Key> {
    let (nodes, anybody) = (u64::from(job.nodes), (0, [0; 3]));
    let known = source == Source::LearnedWithEstimate;
    let estimate = job.estimate.filter(|seconds| known && *seconds > 0);
    let asked = estimate.and_then(|seconds| u64::try_from(seconds).ok());
    let size = (1, [u64::from(job.nodes.ilog2()), 0, 0]);
    let mut levels = vec![anybody, asked.map_or(size, |asked| (2, [asked, 0, 0]))];
    let user = job.user.map(|user| (3, [user, 0, 0]));
    levels.extend(user);
    match (job.user, asked) {
        (None, _) => {}
        (Some(user), None) => levels.push((4, [user, nodes, 0])),
        (Some(user), Some(asked)) => levels.extend([(5, [user, asked, 0]), (6, [user, asked, nodes])]),
    }
    let executable = |executable| (7, [executable, job.user.unwrap_or(0), 0]);
    levels.extend(job.executable.map(executable));
    Subject {
        levels,
        group: user.unwrap_or(anybody),
        limit: estimate,
    }
}

fn replay_learning(workload: &Workload, source: Source) -> PredictionPass {
    let jobs = &workload.jobs;
    let known = source == Source::Learned || jobs.iter().any(|job| job.estimate.is_some());
    let mut runs = Runs::default();
    let mut forecasts = vec![None; jobs.len()];
    let mut levels = vec![None; jobs.len()];
    for event in if known {
        order_events_to_replay(workload)
    } else {
        Vec::new()
    } {
        match event {
            Event::Asked(job) => {
                if let Some(prediction) = runs.predict(&subject_of_replayed_job(&jobs[job], source)) {
                    forecasts[job] = Some(LEVELS.map(|p| prediction.quantile(p)));
                    levels[job] = Some(prediction.level(jobs[job].run));
                }
            }
            Event::Ended(job) => runs.learn(
                &subject_of_replayed_job(&jobs[job], source),
                jobs[job].run,
                levels[job],
            ),
        }
    }
    PredictionPass {
        forecasts: vec![(source, forecasts)],
        ahead: Vec::new(),
    }
}

/// The distribution with the parts of paper 004 as far as they have helped, as the service learns them.
fn replay_weighted(workload: &Workload) -> PredictionPass {
    let jobs = &workload.jobs;
    let mut free = FreeShare::new(workload);
    let (mut runs, mut learner) = (Runs::default(), Learner::new(Ladder::All));
    let mut forecasts = vec![None; jobs.len()];
    let mut judged = vec![None; jobs.len()];
    let resource = workload.name.as_str();
    for event in order_events_to_replay(workload) {
        let (Event::Asked(at) | Event::Ended(at)) = event;
        let job = &jobs[at];
        let Subject { levels, group, .. } = subject_of_replayed_job(job, Source::Weighted);
        let seconds = job.run as f64;
        if let Event::Ended(_) = event {
            runs.learn_loaded(&levels, seconds, Some(load_factor(free.during(job))));
            if let Some(judged) = judged[at] {
                learner.learn(resource, &group, judged);
            }
            continue;
        }
        let Some(base) = runs.base(&levels) else { continue };
        let submitted = Time(job.submit);
        let foreseen = free.at(submitted);
        let foreseen = foreseen.and_then(|series| cpu_free(series, Interval::of(submitted, DAY)));
        let parts = Parts {
            base: &base,
            speed: 1.0,
            load: foreseen.map(load_factor),
            queue: None,
            transfers: 0.0,
            spread: None,
            trust: learner.trust(resource),
        };
        let (shares, calibration) = (learner.shares(resource), learner.calibration(&group));
        forecasts[at] = Some(LEVELS.map(|p| parts.quantile(calibration.level(p), &shares)));
        let came = RealDuration {
            seconds,
            needed: seconds,
            stopped: false,
        };
        judged[at] = Some(learner.judge(resource, &group, &parts, came));
    }
    PredictionPass {
        forecasts: vec![(Source::Weighted, forecasts)],
        ahead: Vec::new(),
    }
}

/// Paper 004, and the simple rivals.
fn replay_as_paper(workload: &Workload) -> PredictionPass {
    let mut free = FreeShare::new(workload);
    let mut of_application: BTreeMap<(u64, Option<u64>), Vec<Seconds>> = BTreeMap::new();
    let mut of_user: BTreeMap<Option<u64>, Vec<Seconds>> = BTreeMap::new();
    let mut of_anybody: Vec<(Seconds, Rate)> = Vec::new();
    let mut outcomes: Vec<EstimateOutcome> = Vec::new();
    // Of the first five sources.
    let mut forecasts: [Vec<Option<Forecast>>; 5] = array::from_fn(|_| vec![None; workload.jobs.len()]);
    let point = |seconds: f64| Some([seconds; LEVELS.len()]);
    for event in order_events_to_replay(workload) {
        let (Event::Asked(at) | Event::Ended(at)) = event;
        let job = &workload.jobs[at];
        let application = job.executable.map(|executable| (executable, job.user));
        if let Event::Ended(_) = event {
            if let Some(application) = application {
                of_application.entry(application).or_default().push(job.run);
            }
            of_user.entry(job.user).or_default().push(job.run);
            of_anybody.push((job.run, Rate::REFERENCE));
            if let Some(forecast) = &forecasts[2][at] {
                let estimated = whole_seconds(quantile_of_replayed_forecast(forecast, 0.5));
                let real = job.run;
                outcomes.push(EstimateOutcome { estimated, real });
                if outcomes.len() > TRUST_RUNS {
                    outcomes.remove(0);
                }
            }
            continue;
        }
        let user = of_user.get(&job.user);
        if let Some(estimate) = job.estimate.filter(|seconds| *seconds > 0) {
            forecasts[4][at] = point(estimate as f64);
        }
        if let Some(last) = user.map(|runs| &runs[runs.len().saturating_sub(2)..]) {
            forecasts[3][at] = point(last.iter().sum::<Seconds>() as f64 / last.len() as f64);
        }
        let here = application
            .and_then(|application| of_application.get(&application))
            .or(user);
        if here.is_none() && of_anybody.is_empty() {
            continue;
        }
        let gap = Interval::of(Time(job.submit), DAY);
        let mut evidence = Evidence {
            here: here.map_or(&[], Vec::as_slice),
            anywhere: &of_anybody,
            ..Evidence::default()
        };
        let completion = |evidence: &Evidence| point(Estimate::over(gap, evidence).completion as f64);
        forecasts[0][at] = completion(&evidence);
        evidence.free_cpu = free.at(Time(job.submit));
        forecasts[1][at] = completion(&evidence);
        evidence.outcomes = &outcomes;
        forecasts[2][at] = completion(&evidence);
    }
    PredictionPass {
        forecasts: Source::ALL.into_iter().zip(forecasts).collect(),
        ahead: free.errors(),
    }
}
