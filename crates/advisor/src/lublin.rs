//! A workload model, so that the experiments run where there is no trace: U. Lublin and D. G. Feitelson, "The workload on
//! parallel supercomputers: modeling the characteristics of rigid jobs", 2003.
//!
//! Sizes: a job is serial, or its size is two to a power drawn from a two-stage uniform distribution, whole for most jobs. Run
//! times: the logarithm is hyper-gamma distributed, and larger jobs are more often of the longer kind. Arrivals: a gap with a
//! gamma-distributed logarithm is spent over the half-hours of the day, and busy half-hours take less of the clock. The
//! parameters are the published ones for jobs of one kind on 128 nodes.

use scheduler::Seconds;

use crate::random::Random;
use crate::workload::{Job, Workload, WorkloadOmissions};

const CAPACITY: u32 = 128;
/// Part of jobs that are serial, and that are parallel with a size of a power of two.
const SERIAL: f64 = 0.244;
const POWER_OF_TWO: f64 = 0.576;
/// Two-stage uniform logarithm (base 2) of the size: low, middle, high, and how often below the middle.
const SIZE: (f64, f64, f64, f64) = (0.8, 4.5, 7.0, 0.86);
/// Gamma distributions of the logarithm of the run time: shape and scale of the short and of the long kind.
const SHORT: (f64, f64) = (4.2, 0.94);
const LONG: (f64, f64) = (312.0, 0.03);
/// How often the short kind: this much for each node, added to that.
const SHORT_PER_NODE: f64 = -0.0054;
const SHORT_BASE: f64 = 0.78;
/// The largest logarithm of a run time: about 45 hours.
const RUN_LOG_MAX: f64 = 12.0;
/// Gamma distribution of the logarithm of the gap between arrivals; the last factor turns rush hours into all hours.
const GAP: (f64, f64) = (10.230_3 * 1.022_5, 0.487_1);
const GAP_LOG_MAX: f64 = 13.0;
/// Gamma distribution of arrivals over the half-hours of a day that begins with its eleventh.
const DAY: (f64, f64) = (8.173_7, 3.963_1);
const DAY_STARTS: usize = 11;

const HALF_HOURS: usize = 48;
const HALF_HOUR: f64 = 1_800.0;

/// The stream of draws of the model.
const STREAM: u64 = 0x4C75_626C;

/// Jobs for `seconds` from the midnight of a day, on 128 nodes.
pub fn generate_lublin_jobs(seed: u64, seconds: Seconds) -> Workload {
    let mut random = Random::new(seed, &[STREAM]);
    let mut clock = LublinClock::new();
    let mut jobs = Vec::new();
    loop {
        let submit = clock.next_arrival(&mut random);
        if submit >= seconds {
            break;
        }
        let nodes = draw_lublin_size(&mut random);
        jobs.push(Job {
            submit,
            run: draw_lublin_run_time(&mut random, nodes),
            nodes,
            ..Job::default()
        });
    }
    Workload {
        name: format!("Lublin–Feitelson model, seed {seed}"),
        capacity: CAPACITY,
        jobs,
        notice: Vec::new(),
        left_out: WorkloadOmissions::default(),
    }
}

fn draw_lublin_size(random: &mut Random) -> u32 {
    let kind = random.unit();
    if kind < SERIAL {
        return 1;
    }
    let (low, middle, high, below) = SIZE;
    let mut logarithm = if random.chance(below) {
        random.uniform(low, middle)
    } else {
        random.uniform(middle, high)
    };
    if kind < SERIAL + POWER_OF_TWO {
        logarithm = logarithm.round();
    }
    whole_lublin_number(logarithm.exp2()).clamp(1, CAPACITY)
}

fn draw_lublin_run_time(random: &mut Random, nodes: u32) -> Seconds {
    let short = SHORT_PER_NODE * f64::from(nodes) + SHORT_BASE;
    loop {
        let (shape, scale) = if random.chance(short) { SHORT } else { LONG };
        let logarithm = random.gamma(shape, scale);
        if logarithm <= RUN_LOG_MAX {
            return Seconds::from(whole_lublin_number(logarithm.exp())).max(1);
        }
    }
}

/// The time of the last arrival, and how fast arrivals come in each half-hour of the day.
struct LublinClock {
    seconds: f64,
    weights: [f64; HALF_HOURS],
}

impl LublinClock {
    fn new() -> Self {
        let mut weights = [0.0; HALF_HOURS];
        for bucket in DAY_STARTS..DAY_STARTS + HALF_HOURS {
            // Buckets of the model are numbered from 1.
            weights[(bucket - 1) % HALF_HOURS] =
                arrival_density_over(bucket as f64 - 0.5, bucket as f64 + 0.5);
        }
        let mean = weights.iter().sum::<f64>() / HALF_HOURS as f64;
        Self {
            seconds: 0.0,
            weights: weights.map(|weight| weight / mean),
        }
    }

    /// The next arrival, in whole seconds from the start.
    fn next_arrival(&mut self, random: &mut Random) -> Seconds {
        let logarithm = loop {
            let logarithm = random.gamma(GAP.0, GAP.1);
            if logarithm <= GAP_LOG_MAX {
                break logarithm;
            }
        };
        // Seconds of a mean half-hour still to be spent.
        let mut gap = logarithm.exp();
        loop {
            let passed = self.seconds / HALF_HOUR;
            let weight = self.weights
                [whole_lublin_number(passed.rem_euclid(HALF_HOURS as f64).floor()) as usize % HALF_HOURS];
            let rest = (passed.floor() + 1.0) * HALF_HOUR - self.seconds;
            if gap < rest * weight {
                self.seconds += gap / weight;
                // Below 2⁵³, as workloads end long before.
                #[expect(clippy::cast_possible_truncation, reason = "whole seconds of a workload")]
                return self.seconds.floor() as Seconds;
            }
            gap -= rest * weight;
            self.seconds = (passed.floor() + 1.0) * HALF_HOUR;
        }
    }
}

/// The integral of the gamma density of arrivals over the day between two half-hours, up to a constant factor (Simpson's
/// rule; the weights are divided by their mean, so the factor does not matter).
fn arrival_density_over(low: f64, high: f64) -> f64 {
    let density = |x: f64| x.powf(DAY.0 - 1.0) * (-x / DAY.1).exp();
    (high - low) / 6.0 * (density(low) + 4.0 * density(f64::midpoint(low, high)) + density(high))
}

/// A number from 0 to 2³² rounded to a whole one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes and run times are far below 2³² and not negative; the cast saturates"
)]
fn whole_lublin_number(number: f64) -> u32 {
    number.round() as u32
}

#[cfg(test)]
mod tests {
    use super::{CAPACITY, generate_lublin_jobs};

    const DAY_SECONDS: i64 = 86_400;

    #[test]
    fn the_same_seed_gives_the_same_jobs_and_another_seed_others() {
        let jobs = |seed| generate_lublin_jobs(seed, 5 * DAY_SECONDS).jobs;
        assert_eq!(jobs(1), jobs(1));
        assert_ne!(jobs(1), jobs(2));
    }

    #[test]
    fn sizes_run_times_and_arrivals_have_the_shape_of_the_model() {
        let jobs = generate_lublin_jobs(1, 400 * DAY_SECONDS).jobs;
        let part =
            |test: &dyn Fn(&&super::Job) -> bool| jobs.iter().filter(test).count() as f64 / jobs.len() as f64;
        assert!(jobs.windows(2).all(|pair| pair[0].submit <= pair[1].submit));
        assert!(jobs.iter().all(|job| (1..=CAPACITY).contains(&job.nodes)));
        // The longest run: e¹² seconds.
        assert!(jobs.iter().all(|job| (1..=162_755).contains(&job.run)));
        let serial = part(&|job| job.nodes == 1);
        assert!((serial - 0.244).abs() < 0.02, "{serial} are serial");
        let powers = part(&|job| job.nodes > 1 && job.nodes.is_power_of_two());
        assert!((0.57..0.68).contains(&powers), "{powers} are of a power of two");
        let per_day = jobs.len() as f64 / 400.0;
        assert!((60.0..110.0).contains(&per_day), "{per_day} jobs a day");
        let by_day = part(&|job| (9..18).contains(&(job.submit % DAY_SECONDS / 3_600)));
        let by_night = part(&|job| (0..7).contains(&(job.submit % DAY_SECONDS / 3_600)));
        assert!(by_day > 2.0 * by_night, "{by_day} by day, {by_night} by night");
    }
}
