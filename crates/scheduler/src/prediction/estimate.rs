//! The completion estimate of paper 004 (algorithms 1 and 2), as a chain of steps that can be explained. Its functions have the
//! paper's names.

use std::fmt;

use super::runs::mean_with_stopped_runs;
use super::{Smoothing, count_as_real, whole_as_real, whole_seconds};
use crate::counts_in_words::counted;
use crate::rate::Rate;
use crate::time::{Interval, Seconds};

/// Executions that the trust in a resource is the mean of (the paper's N).
pub const TRUST_RUNS: usize = 10;

/// An execution's estimate and its real time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EstimateOutcome {
    /// As it was estimated.
    pub estimated: Seconds,
    /// Its real time. Where the work was stopped before it was over, the longer of the time that it had and the estimate: it is
    /// known how far the estimate was exceeded, and nothing of an estimate that was not.
    pub real: Seconds,
}

/// RT(R), equation 1: the mean of estimated − real, in seconds, over the last [`TRUST_RUNS`] of the executions on a
/// resource, given oldest first. `None` without any. Negative where work takes longer there than estimated.
pub fn rt(outcomes: &[EstimateOutcome]) -> Option<f64> {
    let last = &outcomes[outcomes.len().saturating_sub(TRUST_RUNS)..];
    let sum: f64 = last
        .iter()
        .map(|o| whole_as_real(o.estimated) - whole_as_real(o.real))
        .sum();
    (!last.is_empty()).then(|| sum / count_as_real(last.len()))
}

/// Algorithm 1, line 8: `ExecutionTime`, the mean of past executions of the application on the resource, in seconds, their waits in the queue
/// included. The ones that were stopped before they were over count as those that took longer. `None` without any.
pub fn execution_time(over: Vec<f64>, stopped: Vec<f64>) -> Option<f64> {
    mean_with_stopped_runs(over, stopped)
}

/// Algorithm 1, line 9: `CPU_free`, the share of the processors that the exponential smoothing `ES_cpu` foresees free from the start
/// to the deadline, from 0 to 1. `None` without samples.
pub fn cpu_free(es_cpu: &Smoothing, gap: Interval) -> Option<f64> {
    Some(es_cpu.mean_over(gap)?.clamp(0.0, 1.0))
}

/// Algorithm 1, line 10: 2 − `CPU_free`, the factor by which the load makes an execution longer.
pub fn load_factor(cpu_free: f64) -> f64 {
    2.0 - cpu_free.clamp(0.0, 1.0)
}

/// Algorithm 1: `ExecT_Estimation`, the mean of past executions, queueing included, under the load that is foreseen.
pub fn exec_t_estimation(mean: f64, cpu_free: f64) -> f64 {
    mean * load_factor(cpu_free)
}

/// `TransT_Estimation` of algorithm 2, lines 8 and 9: the seconds for bytes at a bandwidth in bytes a second.
#[expect(
    clippy::cast_precision_loss,
    reason = "bytes beyond 2⁵³ are known to a part in 10¹⁵"
)]
pub fn trans_t_estimation(bytes: u64, bandwidth: f64) -> f64 {
    bytes as f64 / bandwidth
}

/// Algorithm 2, lines 10 to 14: `JT`, the seconds to the completion of the job. The trust is added where it is negative.
pub fn jt(prolog: f64, exec_t: f64, rt: f64, epilog: f64) -> f64 {
    prolog + exec_t + (-rt).max(0.0) + epilog
}

/// The evidence for an estimate.
#[derive(Debug, Clone, Default)]
pub struct Evidence<'a> {
    /// Run and queue times of past executions of the application on the resource.
    pub here: &'a [Seconds],
    /// Those of executions that were stopped at their slots' ends, and would have taken longer.
    pub stopped_here: &'a [Seconds],
    /// Those of the application on all resources, each with the rate of its resource.
    pub anywhere: &'a [(Seconds, Rate)],
    /// The stopped ones there.
    pub stopped_anywhere: &'a [(Seconds, Rate)],
    /// The rate of the resource.
    pub rate: Rate,
    /// The requester's own duration.
    pub requested: Option<Seconds>,
    /// The template's duration.
    pub default: Seconds,
    /// The share of the resource's processors that was free, from 0 to 1.
    pub free_cpu: Option<&'a Smoothing>,
    /// Bytes to bring before the start.
    pub input_bytes: u64,
    /// Bytes to take away after the end.
    pub output_bytes: u64,
    /// Bytes per second towards the resource.
    pub bandwidth_in: Option<&'a Smoothing>,
    /// Bytes per second from the resource.
    pub bandwidth_out: Option<&'a Smoothing>,
    /// Estimates and outcomes on the resource, of any application, oldest first.
    pub outcomes: &'a [EstimateOutcome],
}

/// One step of an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EstimateStep {
    /// The mean of a number of executions, in seconds.
    Mean {
        /// Whether they were on other resources, and are scaled by the rates.
        elsewhere: bool,
        /// Executions.
        runs: usize,
        /// The number of them that were stopped, and count as longer.
        stopped: usize,
        /// Their mean.
        seconds: f64,
    },
    /// The requester's own duration.
    Requested {
        /// The duration.
        seconds: f64,
    },
    /// The duration of the template.
    Default {
        /// Its duration.
        seconds: f64,
    },
    /// × (2 − free share of the processors).
    FreeCpu {
        /// As foreseen over the interval, from 0 to 1.
        share: f64,
        /// The name of the method; `None` where there are no samples, and all is taken to be free.
        method: Option<&'static str>,
        /// The execution time after it.
        seconds: f64,
    },
    /// The time added because the resource was slower than estimated.
    Trust {
        /// RT(R) in seconds.
        trust: f64,
        /// Executions that it is the mean of.
        runs: usize,
        /// The execution time after it.
        seconds: f64,
    },
    /// Bringing the input.
    Prolog(EstimatedTransfer),
    /// Taking the output away.
    Epilog(EstimatedTransfer),
    /// The sum of prolog, execution and epilog, rounded up.
    Completion {
        /// Whole seconds from start to completion.
        seconds: Seconds,
    },
}

/// Bytes on their way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EstimatedTransfer {
    /// How many.
    pub bytes: u64,
    /// Bytes per second as foreseen; `None` where there are no samples, and then no time is counted.
    pub bandwidth: Option<f64>,
    /// How long it takes.
    pub seconds: f64,
}

/// A completion estimate with how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The steps in order; the last is the completion.
    pub steps: Vec<EstimateStep>,
    /// Seconds of execution alone.
    pub execution: f64,
    /// Seconds to bring the input.
    pub prolog: f64,
    /// Seconds to take the output away.
    pub epilog: f64,
    /// Whole seconds from start to completion.
    pub completion: Seconds,
}

impl Estimate {
    /// The estimate for work in the gap from its start to its deadline. There is none without a gap (algorithm 2, line 7): the
    /// caller has found one. Takes steps in proportion to the evidence and to the samples over the gap.
    pub fn over(gap: Interval, evidence: &Evidence) -> Self {
        let mut steps = Vec::with_capacity(6);
        let (first, mean) = evidence.base();
        steps.push(first);
        let foreseen = evidence
            .free_cpu
            .and_then(|series| Some((cpu_free(series, gap)?, series.method().name())));
        let share = foreseen.map_or(1.0, |(share, _)| share);
        let mut execution = exec_t_estimation(mean, share);
        steps.push(EstimateStep::FreeCpu {
            share,
            method: foreseen.map(|(_, method)| method),
            seconds: execution,
        });
        if let Some(trust) = rt(evidence.outcomes) {
            execution = jt(0.0, execution, trust, 0.0);
            steps.push(EstimateStep::Trust {
                trust,
                runs: evidence.outcomes.len().min(TRUST_RUNS),
                seconds: execution,
            });
        }
        let prolog = EstimatedTransfer::over(gap, evidence.input_bytes, evidence.bandwidth_in);
        let epilog = EstimatedTransfer::over(gap, evidence.output_bytes, evidence.bandwidth_out);
        steps.extend((prolog.bytes > 0).then_some(EstimateStep::Prolog(prolog)));
        steps.extend((epilog.bytes > 0).then_some(EstimateStep::Epilog(epilog)));
        // The trust is in the execution already.
        let completion = whole_seconds(jt(prolog.seconds, execution, 0.0, epilog.seconds));
        steps.push(EstimateStep::Completion { seconds: completion });
        Self {
            steps,
            execution,
            prolog: prolog.seconds,
            epilog: epilog.seconds,
            completion,
        }
    }
}

impl Evidence<'_> {
    /// The execution time before any correction, from the best source that there is.
    fn base(&self) -> (EstimateStep, f64) {
        self.executed().unwrap_or_else(|| {
            if let Some(seconds) = self.requested.map(whole_as_real) {
                return (EstimateStep::Requested { seconds }, seconds);
            }
            let seconds = whole_as_real(self.default);
            (EstimateStep::Default { seconds }, seconds)
        })
    }

    /// The mean of the executions on the resource, else of those elsewhere; `None` without any. O(n log n).
    pub fn executed(&self) -> Option<(EstimateStep, f64)> {
        let mean = |elsewhere, over: Vec<f64>, stopped: Vec<f64>| {
            let (runs, of_them) = (over.len() + stopped.len(), stopped.len());
            let seconds = execution_time(over, stopped)?;
            let mean = EstimateStep::Mean {
                elsewhere,
                runs,
                stopped: of_them,
                seconds,
            };
            Some((mean, seconds))
        };
        let lengths = |runs: &[Seconds]| runs.iter().map(|run| whole_as_real(*run)).collect();
        let factor_of = |rate: Rate| f64::from(rate.millionths());
        let scaled = |runs: &[(Seconds, Rate)]| {
            let scaled = runs
                .iter()
                .map(|(run, rate)| whole_as_real(*run) * factor_of(*rate) / factor_of(self.rate));
            scaled.collect()
        };
        mean(false, lengths(self.here), lengths(self.stopped_here))
            .or_else(|| mean(true, scaled(self.anywhere), scaled(self.stopped_anywhere)))
    }
}

impl EstimatedTransfer {
    /// Bytes by the bandwidth foreseen over the gap, which is never less than the least that was seen: a forecast of
    /// nothing would make a transfer endless.
    fn over(gap: Interval, bytes: u64, bandwidth: Option<&Smoothing>) -> Self {
        let bandwidth = bandwidth.filter(|_| bytes > 0).and_then(|series| {
            let (least, most) = series.positive_range()?;
            Some(series.mean_over(gap)?.clamp(least, most))
        });
        Self {
            bytes,
            bandwidth,
            seconds: bandwidth.map_or(0.0, |bandwidth| trans_t_estimation(bytes, bandwidth)),
        }
    }
}

impl fmt::Display for EstimateStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mean {
                elsewhere,
                runs,
                stopped,
                seconds,
            } => {
                let place = if *elsewhere {
                    "other resources, scaled by their rates"
                } else {
                    "this resource"
                };
                let stopped = match stopped {
                    0 => String::new(),
                    stopped => format!(" ({stopped} stopped, counted as what took longer)"),
                };
                let runs = counted(runs, "execution");
                write!(f, "mean of {runs} on {place}{stopped}: {seconds:.1} s")
            }
            Self::Requested { seconds } => write!(f, "the requester's own duration: {seconds:.1} s"),
            Self::Default { seconds } => write!(f, "the template's duration: {seconds:.1} s"),
            Self::FreeCpu {
                share,
                method: Some(method),
                seconds,
            } => write!(
                f,
                "× (2 − {share:.3}), the free share of the processors foreseen by {method}: {seconds:.1} s"
            ),
            Self::FreeCpu { method: None, .. } => {
                f.write_str("× (2 − 1): no samples of the processors, all taken to be free")
            }
            Self::Trust { trust, runs, seconds } if *trust < 0.0 => write!(
                f,
                "+ {:.1} s, by which the last {runs} estimates on this resource were short: {seconds:.1} s",
                -trust
            ),
            Self::Trust { trust, runs, .. } => write!(
                f,
                "+ 0 s: the last {runs} estimates on this resource were long by {trust:.1} s"
            ),
            Self::Prolog(transfer) => write!(f, "+ {transfer} to bring the input"),
            Self::Epilog(transfer) => write!(f, "+ {transfer} to take the output away"),
            Self::Completion { seconds } => write!(f, "completion {seconds} s after the start"),
        }
    }
}

impl fmt::Display for EstimatedTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, seconds, .. } = self;
        match self.bandwidth {
            Some(bandwidth) => write!(
                f,
                "{seconds:.1} s for {} at {bandwidth:.0} bytes/s",
                counted(bytes, "byte")
            ),
            None => write!(f, "0 s for {} at an unknown bandwidth", counted(bytes, "byte")),
        }
    }
}
