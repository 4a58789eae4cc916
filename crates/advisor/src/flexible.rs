//! Papers 000 and 001: advance reservations that may start anywhere inside a window.
//!
//! Each job becomes a request for exactly its run time and size. Its deadline is its submission plus p times its run time, p
//! a Poisson number of mean 5; rigid, it must start one run time before. Half of the jobs are flexible: their interval is
//! longer than their run time by X percent, X a Poisson number, and extends towards earlier starts, not before submission.

use scheduler::{Fraction, Interval, Order, Request, Seconds, Time};

use crate::policy::{Alternatives, Policy};
use crate::random::Random;
use crate::replay::{ReplayAsk, ReplayOutcomes, replay_asks};
use crate::workload::{WINDOW_SECONDS, Window};

/// Loads in percent of the submissions in the workload.
pub const LOADS: [u32; 3] = [100, 125, 150];

/// Mean interval sizes, and thresholds of alternatives, in percent of the run time.
pub const PHIS: [u32; 3] = [25, 50, 100];

/// The stream of draws of these experiments.
const STREAM: u64 = 0x0F1E;

/// Random numbers that are drawn once for a job and hold in all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    /// p: run times from submission to deadline.
    pub deadline_factor: u32,
    /// Whether it is in the flexible half.
    pub flexible: bool,
    /// X for each of [`PHIS`].
    pub extension_percent: [u32; 3],
    /// Part of its run time that it really takes where users overestimate.
    pub run_percent: u32,
}

/// The users that take alternatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takers {
    /// No user.
    Nobody,
    /// The half that is flexible in other runs.
    Half,
    /// All users.
    All,
}

/// One run of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlexibleRun {
    /// Load in percent.
    pub load: u32,
    /// Where the flexible half has longer intervals than the run time: their index in [`PHIS`].
    pub phi: Option<usize>,
    /// Whether jobs end before their time.
    pub overestimated: bool,
    /// The users that take alternatives.
    pub takers: Takers,
    /// How the provider plans.
    pub policy: Policy,
}

impl FlexibleRun {
    /// Rigid requests, first come first served.
    pub fn rigid(load: u32) -> Self {
        Self {
            load,
            phi: None,
            overestimated: false,
            takers: Takers::Nobody,
            policy: Policy::of(Order::Fifo),
        }
    }

    /// Flexible requests in an order; `phi` indexes [`PHIS`].
    pub fn flexible(load: u32, phi: usize, order: Order) -> Self {
        Self {
            phi: Some(phi),
            policy: Policy::of(order),
            ..Self::rigid(load)
        }
    }

    /// Rigid requests, in order of deadlines, with alternatives up to `phi` of [`PHIS`].
    pub fn with_alternatives(load: u32, phi: usize, takers: Takers, earlier_only: bool) -> Self {
        let alternatives = Alternatives {
            phi_max: Fraction::percent(PHIS[phi]),
            earlier_only,
        };
        Self {
            takers,
            policy: Policy {
                alternatives: Some(alternatives),
                ..Policy::of(Order::Edf)
            },
            ..Self::rigid(load)
        }
    }
}

/// The draws of the jobs of a window.
pub fn draw_flexible_jobs(seed: u64, window: &Window) -> Vec<Draws> {
    (0..window.jobs.len() as u64)
        .map(|job| {
            let mut random = Random::new(seed, &[STREAM, window.index as u64, job]);
            Draws {
                deadline_factor: random.poisson(5.0).max(1),
                flexible: random.chance(0.5),
                extension_percent: PHIS.map(|phi| random.poisson(f64::from(phi))),
                run_percent: random.poisson(80.0).min(100),
            }
        })
        .collect()
}

/// The requests of the jobs of a window in a run.
pub fn flexible_asks(window: &Window, draws: &[Draws], run: &FlexibleRun) -> Vec<ReplayAsk> {
    let jobs = window.jobs.iter().zip(draws).zip(0..);
    jobs.map(|((job, draws), id)| {
        let submit = scale_to_load(job.submit, run.load);
        let duration = job.run;
        let deadline = submit + duration * Seconds::from(draws.deadline_factor);
        let latest = deadline - duration;
        let ready = match run.phi {
            Some(phi) if draws.flexible => {
                // Windows round inward.
                let longer = duration * Seconds::from(draws.extension_percent[phi]) / 100;
                submit.max(latest - longer)
            }
            _ => latest,
        };
        let real = if run.overestimated {
            (duration * Seconds::from(draws.run_percent) / 100).max(1)
        } else {
            duration
        };
        ReplayAsk {
            request: Request {
                id,
                submitted: Time(submit),
                ready: Time(ready),
                deadline: Time(deadline),
                duration,
                nodes: job.nodes,
                revenue: 0,
            },
            run: real,
            takes_alternatives: match run.takers {
                Takers::Nobody => false,
                Takers::Half => draws.flexible,
                Takers::All => true,
            },
        }
    })
    .collect()
}

/// Plays a run of a window.
pub fn play_flexible_run(
    capacity: u32,
    window: &Window,
    draws: &[Draws],
    run: &FlexibleRun,
) -> ReplayOutcomes {
    replay_asks(capacity, run.policy, &flexible_asks(window, draws, run))
}

/// Utilisation in percent of the part of time that the submissions of a window take at a load.
pub fn flexible_utilisation_percent(capacity: u32, outcome: &ReplayOutcomes, load: u32) -> f64 {
    let span = Interval::new(Time(0), Time(scale_to_load(WINDOW_SECONDS, load)));
    100.0 * outcome.utilisation(capacity, span)
}

/// A time of the workload when submissions come `load` percent as fast.
fn scale_to_load(seconds: Seconds, load: u32) -> Seconds {
    seconds * 100 / Seconds::from(load)
}
