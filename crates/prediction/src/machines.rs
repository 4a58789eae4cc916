//! The resources that work can run on, as far as predictions have to know them, and their conditions hour by hour.

use std::collections::BTreeMap;

use domain::past::{Condition, ResourceHour};
use scheduler::domain::Attribute;
use scheduler::prediction::smoothing::SmoothingReplay;
use scheduler::prediction::{Outlook, Series, Smoothing};
use scheduler::{Interval, Rate, Seconds, Time};

/// Length of the steps that samples are smoothed over.
pub(super) const HOUR: Seconds = 3_600;

/// Hours that are foreseen one by one; later ones are taken to be as the mean of a week.
pub(super) const HOURS_AHEAD: u16 = 21 * 24;

/// A resource as predictions know it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Machine {
    /// Whether nothing new runs on it: its past is learned from, and nothing is foreseen there.
    pub is_retired: bool,
    /// How fast its nodes work.
    pub rate: Rate,
    /// Its nodes.
    pub nodes: u32,
    /// The attributes of its nodes.
    pub attributes: BTreeMap<String, Attribute>,
    /// Whether the share of its processors that is sampled as free is what all work leaves, that of agreements too.
    pub counts_own_work: bool,
    /// Whether the files of a job are copied to it and from it, also those that are uploaded to the service.
    pub copies_files: bool,
}

/// The resources by name.
pub type Machines = BTreeMap<String, Machine>;

/// Machines by name with the number of their kind: those of one kind have the same rate and attributes.
pub(super) fn kinds_of_machines(machines: &Machines) -> BTreeMap<String, u32> {
    let mut numbers = BTreeMap::new();
    for machine in machines.values() {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        numbers.entry((machine.rate, &machine.attributes)).or_insert(next);
    }
    let kind = |machine: &Machine| numbers[&(machine.rate, &machine.attributes)];
    machines
        .iter()
        .map(|(name, machine)| (name.clone(), kind(machine)))
        .collect()
}

/// A condition of a resource: what was seen, and what is foreseen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MachineCondition {
    pub(super) series: Series,
    pub(super) smoothing: Smoothing,
    pub(super) outlook: Outlook,
}

impl MachineCondition {
    fn of(samples: impl Iterator<Item = (Time, f64)>, now: Time, most: f64) -> Option<Self> {
        let series = Series::of(samples, HOUR);
        let smoothing = (!series.values().is_empty()).then(|| Smoothing::fit(&series))?;
        let range = smoothing.positive_range();
        // A forecast of no bandwidth would make a transfer endless.
        let bounds = if most > 1.0 { range? } else { (0.0, most) };
        Some(Self {
            outlook: smoothing.outlook(now, HOURS_AHEAD.into(), bounds)?,
            series,
            smoothing,
        })
    }

    /// As it was known at past instants.
    pub(super) fn replay(&self) -> SmoothingReplay<'_> {
        SmoothingReplay::new(&self.series, self.smoothing.parameters())
    }
}

/// The conditions of a resource.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct MachineConditions {
    pub(super) free_cpu: Option<MachineCondition>,
    pub(super) bandwidth_in: Option<MachineCondition>,
    pub(super) bandwidth_out: Option<MachineCondition>,
}

impl MachineConditions {
    /// Those of all resources, from `now` on. An hour that is not over yet would be known by a few of its minutes, and by others at
    /// each look; it is left out, unless it is the first that is known of a resource.
    pub(super) fn of(hours: &[ResourceHour], now: Time) -> BTreeMap<String, Self> {
        let series_of =
            |hours: &[ResourceHour], what: fn(&Condition) -> Option<i64>, unit: f64, most: f64| {
                #[expect(clippy::cast_precision_loss, reason = "millionths and bytes a second")]
                let samples = hours
                    .iter()
                    .filter_map(|hour| Some((hour.start, what(&hour.condition)? as f64 / unit)));
                MachineCondition::of(samples, now, most)
            };
        hours
            .chunk_by(|a, b| a.resource == b.resource)
            .map(|hours| {
                let over = hours.partition_point(|hour| hour.start + HOUR <= now).max(1);
                (&hours[0].resource, &hours[..over])
            })
            .map(|(resource, hours)| {
                // The rates that transfers have had say more than the room that lines had by their speed: the other end and the
                // way there are in them. The two are not mixed.
                let bandwidth = |transfers, lines| {
                    series_of(hours, transfers, 1.0, f64::INFINITY)
                        .or_else(|| series_of(hours, lines, 1.0, f64::INFINITY))
                };
                let conditions = Self {
                    free_cpu: series_of(hours, |condition| condition.free_cpu, 1e6, 1.0),
                    bandwidth_in: bandwidth(|each| each.transfer_in, |each| each.bandwidth_in),
                    bandwidth_out: bandwidth(|each| each.transfer_out, |each| each.bandwidth_out),
                };
                (resource.clone(), conditions)
            })
            .collect()
    }

    /// The share of the processors that other work left free while an execution ran on some of the nodes of a machine; the
    /// usual one where no sample tells. `None` of a resource without samples.
    pub(super) fn free_during(&self, run: Interval, nodes: u32, on: Option<&Machine>) -> Option<f64> {
        let series = &self.free_cpu.as_ref()?.series;
        let Some(free) = series.mean_over(run) else {
            return series.mean();
        };
        let own = on.filter(|machine| machine.counts_own_work && machine.nodes > 0);
        let own = own.map_or(0.0, |machine| f64::from(nodes) / f64::from(machine.nodes));
        // The part of the hours that it ran in.
        let hours = run.end.seconds().div_euclid(HOUR) - run.start.seconds().div_euclid(HOUR) + 1;
        let part = seconds_as_number(run.duration()) / seconds_as_number(hours * HOUR);
        Some((free + own * part).min(1.0))
    }
}

/// Seconds as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "seconds of a plan are far below 2⁵³")]
pub(super) fn seconds_as_number(seconds: Seconds) -> f64 {
    seconds as f64
}
