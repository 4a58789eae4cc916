//! The distribution of a run time, from the runs that are most like it.
//!
//! The likeness of runs has levels, from the most general to the most particular: any run, a run of the application, of this
//! party, on as many nodes, on this resource. Each level is a history; the particular ones are the most precise and have the
//! fewest runs. So they are blended as a chain of Dirichlet processes. Of the weight, a level with n effective runs takes
//! n / (n + [`PRIOR_RUNS`]) and leaves the rest to the level above it. The most general level takes the remainder. Within a
//! particular level, each run weighs [`DECAY`] of the next, because a party mostly repeats the runs that it makes now.
//!
//! Run times are compared by their logarithms: errors of run times are factors. A time limit is known where the requester or the
//! trace gives one. Then a past run that reached its limit gives its limit and not its work: it counts as one that reaches the
//! new limit.
//!
//! The statements of the blend are corrected by a [`Calibration`]: that of the subject's group if it has enough outcomes, else
//! that of all.
//!
//! A run may be learned with the load under which it took its time. [`Runs::base`] also blends the times that the runs would have
//! taken on free processors.

use std::collections::{BTreeMap, VecDeque};

use super::calibration::Calibrations;
use super::{Calibration, Distribution, count_as_real, whole_as_real, whole_seconds};
use crate::time::{Interval, Seconds, Time};

/// Runs remembered at a level.
pub const RUNS_MAX: usize = 200;

/// How many runs of a particular level weigh as much as all that the more general levels know.
const PRIOR_RUNS: f64 = 6.0;

/// The weight of a run relative to the next, at all but the most general level.
const DECAY: f64 = 0.88;

/// A run within this part of its limit has reached it: batch systems look at the clock once in a while.
const LIMIT_REACHED: f64 = 0.01;

/// Shorter runs, in seconds, are not told apart.
const SHORTEST: f64 = 0.001;

/// How far beyond its limit a run is taken to go, as a logarithm: 10 %.
const OVERRUN_MAX: f64 = 0.1;

/// The subject of a prediction or of an outcome.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject<K> {
    /// Its likenesses, from the most general to the most particular.
    pub levels: Vec<K>,
    /// The group that calibrates it with its outcomes: the application on the resource, for example.
    pub group: K,
    /// The run time at which it is stopped or was expected to end, where its requester gave one.
    pub limit: Option<Seconds>,
}

/// A run that is over, as logarithms of seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PastRun {
    length: f64,
    limit: Option<f64>,
    /// The part of the length that is due to the load.
    load: f64,
}

impl PastRun {
    fn new(seconds: Seconds, limit: Option<Seconds>) -> Self {
        let log = |seconds: Seconds| whole_as_real(seconds.max(1)).ln();
        Self {
            length: log(seconds),
            limit: limit.filter(|limit| *limit > 0).map(log),
            load: 0.0,
        }
    }

    /// The length of the run under another limit.
    fn under(self, limit: Option<f64>) -> f64 {
        match (limit, self.limit) {
            (None, _) => self.length,
            (Some(new), Some(old)) if self.length >= old - LIMIT_REACHED => {
                new + (self.length - old).min(OVERRUN_MAX)
            }
            (Some(new), _) => self.length.min(new),
        }
    }
}

/// Runs by their likeness, and how well they predicted. Takes memory in proportion to the number of levels learned, at most
/// [`RUNS_MAX`] runs each.
#[derive(Debug, Clone, PartialEq)]
pub struct Runs<K> {
    histories: BTreeMap<K, VecDeque<PastRun>>,
    calibrations: Calibrations<K>,
    /// Whether any run was learned with its load.
    loaded: bool,
}

/// The blended histories of work, as logarithms of seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct BlendedHistory {
    /// The times that the runs took.
    pub plain: Distribution,
    /// The times that they would have taken on free processors; `None` where the load of none is known.
    pub unloaded: Option<Distribution>,
    /// Runs at the most particular level that has any.
    pub runs: usize,
}

impl BlendedHistory {
    /// The estimate of work from the mean of its runs, in seconds on free processors: a number without a probability.
    pub fn of_mean(seconds: f64, runs: usize) -> Self {
        let length = Distribution::point(seconds.max(SHORTEST).ln());
        Self {
            unloaded: Some(length.clone()),
            plain: length,
            runs,
        }
    }

    /// That of work that is known to take so many seconds.
    pub fn exactly(seconds: Seconds) -> Self {
        let length = PastRun::new(seconds, None).length;
        Self {
            plain: Distribution::point(length),
            unloaded: None,
            runs: 0,
        }
    }
}

impl<K> Default for Runs<K> {
    fn default() -> Self {
        Self {
            histories: BTreeMap::new(),
            calibrations: Calibrations::default(),
            loaded: false,
        }
    }
}

/// The distribution of a run time.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction<'a> {
    /// Of logarithms of seconds, before the correction.
    distribution: Distribution,
    calibration: &'a Calibration,
    /// Runs at the most particular level that has any.
    runs: usize,
}

impl<K: Ord + Clone> Runs<K> {
    /// The prediction of a run time. `None` where no level of the subject has a run. Takes steps in proportion to the runs that
    /// it blends, and their sorting.
    pub fn predict(&self, subject: &Subject<K>) -> Option<Prediction<'_>> {
        let limit = PastRun::new(1, subject.limit).limit;
        let (distribution, runs) = self.blend(&subject.levels, |run| run.under(limit))?;
        Some(Prediction {
            distribution,
            calibration: self.calibrations.of(&subject.group),
            runs,
        })
    }

    /// The histories of these levels, blended, before any correction. Otherwise as [`Runs::predict`].
    pub fn base(&self, levels: &[K]) -> Option<BlendedHistory> {
        let (plain, runs) = self.blend(levels, |run| run.length)?;
        let unloaded = self
            .loaded
            .then(|| self.blend(levels, |run| run.length - run.load));
        Some(BlendedHistory {
            plain,
            unloaded: unloaded.flatten().map(|(distribution, _)| distribution),
            runs,
        })
    }

    /// The runs that are known of a level.
    pub fn count(&self, level: &K) -> usize {
        self.histories.get(level).map_or(0, VecDeque::len)
    }

    /// The blend of what `length` says of the runs of these levels, and the number of runs at the most particular one that has
    /// any.
    fn blend(&self, levels: &[K], length: impl Fn(&PastRun) -> f64) -> Option<(Distribution, usize)> {
        let histories: Vec<&VecDeque<PastRun>> = levels
            .iter()
            .filter_map(|level| self.histories.get(level))
            .collect();
        let mut weighted = Vec::new();
        let mut rest = 1.0;
        for (depth, history) in histories.iter().enumerate().rev() {
            let decay: f64 = if depth == 0 { 1.0 } else { DECAY };
            let weights = std::iter::successors(Some(1.0), |weight| Some(weight * decay));
            let weights: Vec<f64> = weights.take(history.len()).collect();
            let effective: f64 = weights.iter().sum();
            let share = if depth == 0 {
                rest
            } else {
                rest * effective / (effective + PRIOR_RUNS)
            };
            let newest_first = history.iter().rev().map(&length);
            weighted.extend(newest_first.zip(weights.iter().map(|weight| share * weight / effective)));
            rest -= share;
        }
        let runs = histories.last().map_or(0, |history| history.len());
        Some((Distribution::of(weighted)?, runs))
    }

    /// Learns a run that is over, and how the prediction that was made for it, before it was known, came out: its
    /// [`Prediction::level`].
    pub fn learn(&mut self, subject: &Subject<K>, run: Seconds, level: Option<f64>) {
        self.add(&subject.levels, PastRun::new(run, subject.limit));
        if let Some(level) = level {
            self.calibrations.observe(&subject.group, level);
        }
    }

    /// Learns a run of so many seconds that is over for these levels, and the factor by which the load made it longer, where that is
    /// known.
    pub fn learn_loaded(&mut self, levels: &[K], seconds: f64, factor: Option<f64>) {
        self.loaded |= factor.is_some();
        let run = PastRun {
            length: seconds.max(SHORTEST).ln(),
            limit: None,
            load: factor.map_or(0.0, f64::ln),
        };
        self.add(levels, run);
    }

    fn add(&mut self, levels: &[K], run: PastRun) {
        for key in levels {
            let history = self.histories.entry(key.clone()).or_default();
            history.push_back(run);
            if history.len() > RUNS_MAX {
                history.pop_front();
            }
        }
    }
}

impl Prediction<'_> {
    /// The seconds within which the run ends with probability `p`.
    pub fn quantile(&self, p: f64) -> f64 {
        self.distribution.quantile(self.calibration.level(p)).exp()
    }

    /// The whole seconds of a slot that holds the run with probability `p`.
    pub fn slot(&self, p: f64) -> Seconds {
        whole_seconds(self.quantile(p))
    }

    /// The probability that the run ends within this many seconds.
    pub fn probability_within(&self, seconds: f64) -> f64 {
        if seconds > 0.0 {
            self.calibration
                .probability(self.distribution.probability(seconds.ln()))
        } else {
            0.0
        }
    }

    /// Where an outcome falls in the distribution before its correction: the input of [`Runs::learn`].
    pub fn level(&self, run: Seconds) -> f64 {
        self.distribution.probability(whole_as_real(run.max(1)).ln())
    }

    /// Runs at the most particular level that has any.
    pub fn runs(&self) -> usize {
        self.runs
    }
}

/// The events of runs that are replayed, each named by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Its length is asked for, and runs that had ended by then are known.
    Asked(usize),
    /// It ended, and its length is known from now on.
    Ended(usize),
}

/// The order of events of runs that were asked for at the start and ended at the end of each interval. At the same instant, a run
/// that ends is known to one that is asked for; a run ends after it was asked for, even where its interval says otherwise.
pub fn events_of_runs(spans: impl IntoIterator<Item = Interval>) -> Vec<Event> {
    let mut order: Vec<(Time, bool, usize)> = Vec::new();
    for (run, span) in spans.into_iter().enumerate() {
        order.push((span.start, true, run));
        order.push((span.end.max(span.start + 1), false, run));
    }
    order.sort_unstable();
    let event = |(_, asked, run)| {
        if asked {
            Event::Asked(run)
        } else {
            Event::Ended(run)
        }
    };
    order.into_iter().map(event).collect()
}

/// The mean of run times where some were stopped before they were over, in their unit. Of a stopped run it is known only that it
/// would have taken longer. `None` of none at all.
///
/// Without them long work would look rare, and with their own lengths it would look short. So the weight of each goes to the runs
/// that are known to be longer, in proportion to their weights (Efron's redistribution to the right, 1967; the resulting
/// distribution is the estimate of Kaplan and Meier, 1958). A stopped run without a known longer one counts with its own length,
/// which is the least that it can be. Takes n log n steps where any was stopped, else n.
pub(super) fn mean_with_stopped_runs(over: Vec<f64>, stopped: Vec<f64>) -> Option<f64> {
    let all = over.len() + stopped.len();
    if stopped.is_empty() {
        return (all > 0).then(|| over.into_iter().sum::<f64>() / count_as_real(all));
    }
    let over = over.into_iter().map(|run| (run, false));
    let mut runs: Vec<(f64, bool)> = over.chain(stopped.into_iter().map(|run| (run, true))).collect();
    // Of equal ones the completed runs come first: a run that was stopped there would have taken longer than they did.
    runs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut sum, mut weight) = (0.0, 1.0);
    for (at, (run, stopped)) in runs.into_iter().enumerate() {
        let longer = all - at - 1;
        if stopped && longer > 0 {
            weight *= count_as_real(longer + 1) / count_as_real(longer);
        } else {
            sum += run * weight;
        }
    }
    Some(sum / count_as_real(all))
}
