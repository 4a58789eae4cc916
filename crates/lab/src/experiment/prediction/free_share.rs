//! The free share of a system's nodes, hour by hour, and its forecast by smoothing.

use scheduler::prediction::series::STEPS_MAX;
use scheduler::prediction::{Series, Smoothing};
use scheduler::{Seconds, Time};

use advisor::workload::{Job, Workload};

const HOUR: Seconds = 3_600;
const HOURS_OF_DAY: usize = 24;

/// Hours ahead at which forecasts are judged.
const AHEAD: [usize; 3] = [1, 6, 24];

/// Hours that are learned from before a forecast is judged.
const HOURS_MIN: usize = 14 * HOURS_OF_DAY;

/// The free share up to any instant, and its forecast there: fitted again every day, brought up to date every hour.
pub(super) struct FreeShare {
    /// The mean of every hour of the workload.
    hourly: Vec<f64>,
    /// The nodes of the system.
    capacity: u32,
    /// The last forecast, and its hour.
    current: Option<(usize, Smoothing)>,
    /// Sums of absolute errors at each of [`AHEAD`], and how many.
    errors: [[f64; 3]; AHEAD.len()],
    judged: usize,
}

impl FreeShare {
    pub(super) fn new(workload: &Workload) -> Self {
        let hour_of = |time: Time| usize::try_from(time.seconds().div_euclid(HOUR)).unwrap_or(0);
        let last = workload.jobs.last();
        let hours = last.map_or(0, |job| hour_of(Time(job.submit)) + 1);
        let mut busy = vec![0.0; hours];
        for job in &workload.jobs {
            let ran = job.ran();
            for (at, busy) in busy.iter_mut().enumerate().skip(hour_of(ran.start)) {
                let start = HOUR * Seconds::try_from(at).unwrap_or(0);
                let inside = (ran.end.seconds().min(start + HOUR) - ran.start.seconds().max(start)).max(0);
                if inside == 0 {
                    break;
                }
                *busy += f64::from(job.nodes) * inside as f64;
            }
        }
        let all = f64::from(workload.capacity) * HOUR as f64;
        let free = |busy: f64| (1.0 - busy / all).clamp(0.0, 1.0);
        Self {
            hourly: busy.into_iter().map(free).collect(),
            capacity: workload.capacity,
            current: None,
            errors: [[0.0; 3]; AHEAD.len()],
            judged: 0,
        }
    }

    /// The forecast at an instant, from the hours that were over. `None` in the first one. Instants must not go back.
    pub(super) fn at(&mut self, now: Time) -> Option<&Smoothing> {
        let hour = usize::try_from(now.seconds().div_euclid(HOUR)).ok()?;
        let hour = hour.min(self.hourly.len());
        if hour == 0 {
            return None;
        }
        if self.current.as_ref().is_none_or(|(current, _)| *current != hour) {
            let series = self.series(hour);
            let smoothing = match &self.current {
                Some((fitted_at, fitted)) if fitted_at / HOURS_OF_DAY == hour / HOURS_OF_DAY => {
                    Smoothing::with_parameters(&series, fitted.parameters())
                }
                _ => {
                    let smoothing = Smoothing::fit(&series);
                    self.judge(hour, &smoothing);
                    smoothing
                }
            };
            self.current = Some((hour, smoothing));
        }
        self.current.as_ref().map(|(_, smoothing)| smoothing)
    }

    /// The share that a job left free in the hours in which it ran, its own nodes counted as free.
    pub(super) fn during(&self, job: &Job) -> f64 {
        let ran = job.ran();
        let [first, last] = [ran.start, ran.end].map(|time| time.seconds().div_euclid(HOUR));
        let hours = usize::try_from(first).unwrap_or(0)..=usize::try_from(last).unwrap_or(0);
        let known = self.hourly.get(hours).unwrap_or(&self.hourly);
        let own = f64::from(job.nodes) / f64::from(self.capacity) * ran.duration() as f64;
        let own = own / (HOUR * (last - first + 1)) as f64;
        (known.iter().sum::<f64>() / known.len().max(1) as f64 + own).clamp(0.0, 1.0)
    }

    fn series(&self, hour: usize) -> Series {
        let first = hour.saturating_sub(STEPS_MAX);
        let samples =
            (first..hour).map(|at| (Time(HOUR * Seconds::try_from(at).unwrap_or(0)), self.hourly[at]));
        Series::of(samples, HOUR)
    }

    /// Compares a forecast with the later value, beside the last value and the mean.
    fn judge(&mut self, hour: usize, smoothing: &Smoothing) {
        if hour < HOURS_MIN || hour + HOURS_OF_DAY > self.hourly.len() {
            return;
        }
        let past = &self.hourly[hour.saturating_sub(STEPS_MAX)..hour];
        let mean = past.iter().sum::<f64>() / past.len() as f64;
        let last = self.hourly[hour - 1];
        for (ahead, errors) in AHEAD.into_iter().zip(&mut self.errors) {
            let came = self.hourly[hour + ahead - 1];
            let foreseen = smoothing.ahead(ahead).unwrap_or(mean).clamp(0.0, 1.0);
            for (sum, forecast) in errors.iter_mut().zip([foreseen, last, mean]) {
                *sum += (forecast - came).abs();
            }
        }
        self.judged += 1;
    }

    /// Mean absolute errors by hours ahead: of smoothing, of the last value, of the mean. Empty if none was judged.
    pub(super) fn errors(&self) -> Vec<(usize, [f64; 3])> {
        let mean = |sums: &[f64; 3]| sums.map(|sum| sum / self.judged as f64);
        let judged = AHEAD.into_iter().zip(self.errors.iter().map(mean));
        judged.filter(|_| self.judged > 0).collect()
    }
}
