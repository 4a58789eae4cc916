//! The energy that placements take, its cost and what it emits: the outlook of paper 004.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::agreement::{Currency, EnergyUse, Money, Slots};
use scheduler::domain::{Forecast, ForeseenTimes};
use scheduler::{Interval, Seconds, Time};

/// Steps of a tariff beyond those of this number in a window are left out evenly: a search looks at each of them. An hour each, they
/// are ten days. What is weighed of a start at one of the others is right.
pub(crate) const STEPS_MAX: usize = 250;

/// The power of a node in watts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watts {
    /// While it works.
    pub busy: u32,
    /// While it waits.
    pub idle: u32,
}

/// A step of a tariff: from an instant on to the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kwh {
    /// The first step holds before it, too.
    pub from: Time,
    /// Millionths of the currency for a kilowatt-hour; below zero where the provider is paid for taking it.
    pub micros: i64,
    /// Grams of carbon dioxide for a kilowatt-hour.
    pub grams: u32,
}

/// The power of the work of a node, in watts: what it draws beyond an idle one, which is drawn anyway. Two where it is not known, of which the
/// dearer counts: where energy costs something the greater, and where it earns something the less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Power {
    least: u32,
    most: u32,
}

/// The power of nodes, and a tariff over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Energy {
    watts: BTreeMap<String, Watts>,
    /// The least and the greatest power of work: of a resource whose power is not known, the dearer one counts.
    extremes: Option<Power>,
    /// By time; beside each step the sums of price and grams over the seconds from the first one to it. None while it is not known.
    tariff: Arc<[(Kwh, [i128; 2])]>,
    /// What a kilogram of carbon dioxide counts where places are compared, in millionths of the currency.
    carbon_kg_micros: u32,
}

impl Energy {
    /// The power of resources by name, a tariff in any order, and the cost of a kilogram of carbon dioxide where places are
    /// compared. After the last step, which lasts as long as the one before it, the mean of the tariff holds. Without a step no energy is
    /// known.
    pub fn new(watts: BTreeMap<String, Watts>, tariff: Vec<Kwh>, carbon_kg_micros: u32) -> Self {
        let each = || watts.values().map(|watts| watts.beyond_idle());
        let extremes = each().min().zip(each().max());
        let energy = Self {
            tariff: [].into(),
            extremes: extremes.map(|(least, most)| Power { least, most }),
            watts,
            carbon_kg_micros,
        };
        energy.with_tariff(tariff)
    }

    /// This energy with another tariff.
    pub(crate) fn with_tariff(&self, mut tariff: Vec<Kwh>) -> Self {
        // Of several steps from one instant on the last one counts, as in a series to which corrections are appended.
        tariff.reverse();
        tariff.sort_by_key(|each| each.from);
        tariff.dedup_by_key(|each| each.from);
        tariff.extend(mean_of_tariff(&tariff));
        let mut sums = [0; 2];
        let mut before = None::<Kwh>;
        let with_sums = tariff.into_iter().map(|tariff| {
            let before = before.replace(tariff).unwrap_or(tariff);
            let seconds = i128::from(tariff.from - before.from);
            sums[0] += seconds * i128::from(before.micros);
            sums[1] += seconds * i128::from(before.grams);
            (tariff, sums)
        });
        Self {
            tariff: with_sums.collect(),
            ..self.clone()
        }
    }

    /// Whether its tariff is known.
    fn has_tariff(&self) -> bool {
        !self.tariff.is_empty()
    }

    /// Whether it can tell places apart: its tariff is known, and so is the power of work on some resource.
    pub(crate) fn has_weight(&self) -> bool {
        self.has_tariff() && self.extremes.is_some_and(|extreme| extreme.most > 0)
    }

    /// The sums of price and grams over an interval. O(log n).
    fn sums_over(&self, interval: Interval) -> [i128; 2] {
        let sums = |until| EnergyTariffSums::at(&self.tariff, until).sums(until);
        let ([from, grams_from], [until, grams_until]) = (sums(interval.start), sums(interval.end));
        [until - from, grams_until - grams_from]
    }

    /// The energy of slots on a resource, with its cost and what it emits, each rounded to the nearest; none where the power of
    /// the resource is not known.
    pub(crate) fn of_slots(&self, resource: &str, slots: &Slots, currency: Currency) -> Option<EnergyUse> {
        /// Watt-seconds of a kilowatt-hour.
        const KWH: i128 = 3_600_000;
        let busy = i128::from(self.watts.get(resource).filter(|_| self.has_tariff())?.busy);
        let rounded = |number: i128| i64::try_from((number * busy + KWH / 2).div_euclid(KWH)).ok();
        let mut sums = [0; 2];
        for slot in slots.iter() {
            let (slot, nodes) = slot.stretch();
            for (sum, one_sum) in sums.iter_mut().zip(self.sums_over(slot)) {
                *sum += one_sum * i128::from(nodes);
            }
        }
        Some(EnergyUse {
            watt_hours: self.watt_hours(resource, slots.node_seconds())?,
            cost: Money::new(rounded(sums[0])?, currency),
            carbon_grams: rounded(sums[1])?,
        })
    }

    /// The watt-hours of so many node-seconds of work on a resource, rounded to the nearest; none where its power is not known.
    pub fn watt_hours(&self, resource: &str, node_seconds: u128) -> Option<i64> {
        let busy = u128::from(self.watts.get(resource)?.busy);
        i64::try_from((node_seconds * busy + 1_800) / 3_600).ok()
    }

    /// The power of a node of a resource that is weighed. None where no power is known.
    pub(crate) fn weighed_power(&self, resource: &str) -> Option<Power> {
        let own = self.watts.get(resource).map(|watts| watts.beyond_idle());
        let exact = |watts| Power {
            least: watts,
            most: watts,
        };
        own.map(exact).or(self.extremes)
    }

    /// What energy counts where places are compared, by the sums of price and grams over its slot, in the unit of
    /// [`scheduler::domain::Candidate::cost`] in which a node and an hour cost millionths.
    fn weight(&self, power: Power, nodes: u32, [micros, grams]: [i128; 2]) -> i128 {
        // A sum of watts × seconds × millionths ÷ 3,600,000 is millionths; times 3,600 it is in the unit.
        const UNIT: i128 = 1_000;
        let carbon = grams * i128::from(self.carbon_kg_micros) / 1_000;
        let watts = if micros + carbon < 0 {
            power.least
        } else {
            power.most
        };
        (i128::from(watts) * i128::from(nodes) * (micros + carbon)).div_euclid(UNIT)
    }

    /// A forecast of work on nodes of this power with the weight of its energy as a part of its loss, for starts in a window. Between the
    /// starts at which a slot meets another step of the tariff or ceases to meet one, the weight is linear, and so is the loss. It looks at
    /// `most` steps of the tariff at most, evenly spread. None where no start is in the window.
    /// O(k) for k steps of forecast and tariff in the window, and O(log n) for each step of the forecast.
    pub(crate) fn weighed(
        &self,
        power: Power,
        (nodes, window): (u32, Interval),
        foreseen: &Forecast,
        most: usize,
    ) -> Option<Forecast> {
        let met = energy_steps_between(&self.tariff, |(each, _)| each.from, window);
        let count = met.len().min(most);
        let met: Vec<Time> = (0..count)
            .map(|nth| met[nth * met.len() / count].0.from)
            .collect();
        let mut steps = Vec::with_capacity(2 * met.len() + 4);
        for (within, times) in foreseen.steps().filter(|(within, _)| within.meets(window)) {
            // To the last start of a slot that ends in the window.
            let (from, last) = (within.start.max(window.start), window.end - times.hold);
            let starts = Interval::new(from, within.end.min(last + 1).max(from + 1));
            let (mut begun, mut ended) = (
                EnergyTariffSums::at(&self.tariff, from),
                EnergyTariffSums::at(&self.tariff, from + times.hold),
            );
            let mut loss = |at: Time| {
                let ([from, grams_from], [until, grams_until]) =
                    (begun.sums(at), ended.sums(at + times.hold));
                times
                    .loss
                    .saturating_add(self.weight(power, nodes, [until - from, grams_until - grams_from]))
            };
            let (mut start, mut here) = (from, loss(from));
            if steps.is_empty() {
                // The loss of a first step is constant.
                steps.push((window.start - 1, ForeseenTimes { loss: here, ..times }));
            }
            for bound in energy_bounds(&met, starts, (times.hold, last)) {
                let there = loss(bound);
                let rise = there.saturating_sub(here);
                steps.push((
                    start,
                    ForeseenTimes {
                        loss: here,
                        rise,
                        ..times
                    },
                ));
                (start, here) = (bound, there);
            }
            steps.push((start, ForeseenTimes { loss: here, ..times }));
        }
        Forecast::new(steps)
    }
}

/// The sums of price and grams along a tariff, for instants in order.
struct EnergyTariffSums<'a> {
    /// From the step of the last instant on.
    tariff: &'a [(Kwh, [i128; 2])],
}

impl<'a> EnergyTariffSums<'a> {
    /// From an instant on. O(log n).
    fn at(tariff: &'a [(Kwh, [i128; 2])], from: Time) -> Self {
        let after = tariff.partition_point(|(each, _)| each.from <= from);
        Self {
            tariff: &tariff[after.saturating_sub(1)..],
        }
    }

    /// The sums from the first step of the tariff to an instant.
    fn sums(&mut self, until: Time) -> [i128; 2] {
        while let [_, rest @ ..] = self.tariff
            && rest.first().is_some_and(|(next, _)| next.from <= until)
        {
            self.tariff = rest;
        }
        let Some((kwh, [micros, grams])) = self.tariff.first() else {
            return [0; 2];
        };
        let seconds = i128::from(until - kwh.from);
        [
            micros + seconds * i128::from(kwh.micros),
            grams + seconds * i128::from(kwh.grams),
        ]
    }
}

/// The instants after the first of these starts at which the weight of a slot takes another course, and the end of the starts: where
/// it begins with a step of the tariff, where it ends with one, and the last start that counts.
fn energy_bounds(met: &[Time], starts: Interval, (hold, last): (Seconds, Time)) -> Vec<Time> {
    let ends = Interval::new(starts.start + hold, starts.end + hold);
    let ended = energy_steps_between(met, |at| *at, ends)
        .iter()
        .map(|at| *at - hold);
    let begun = energy_steps_between(met, |at| *at, starts).iter().copied();
    let mut bounds: Vec<Time> = ended.chain(begun).collect();
    bounds.extend((starts.start < last && last < starts.end).then_some(last));
    bounds.push(starts.end);
    // They are three rows in order already.
    bounds.sort();
    bounds.dedup();
    bounds
}

/// The part of a list in order of time that lies inside an interval, after its first instant.
fn energy_steps_between<T>(list: &[T], time: impl Fn(&T) -> Time, interval: Interval) -> &[T] {
    let first = list.partition_point(|item| time(item) <= interval.start);
    let rest = &list[first..];
    &rest[..rest.partition_point(|item| time(item) < interval.end)]
}

impl Watts {
    /// The power of work: what a busy node draws beyond an idle one.
    fn beyond_idle(self) -> u32 {
        self.busy.saturating_sub(self.idle)
    }
}

/// The mean of a tariff over its time, from its end on; none of one step, which holds for ever.
fn mean_of_tariff(tariff: &[Kwh]) -> Option<Kwh> {
    let (first, [.., before, last]) = (tariff.first()?, tariff) else {
        return None;
    };
    let end = last.from + (last.from - before.from);
    let ends = tariff.iter().skip(1).map(|tariff| tariff.from).chain([end]);
    let (mut micros, mut grams) = (0, 0);
    for (kwh, until) in tariff.iter().zip(ends) {
        let seconds = i128::from(until - kwh.from);
        micros += seconds * i128::from(kwh.micros);
        grams += seconds * i128::from(kwh.grams);
    }
    let all = i128::from(end - first.from);
    Some(Kwh {
        from: end,
        micros: i64::try_from(micros.div_euclid(all)).ok()?,
        grams: u32::try_from(grams / all).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600;

    /// A kilowatt-hour costs 0.30 and 300 g by day, 0.10 and 100 g from ten hours on.
    fn energy(carbon_kg_micros: u32) -> Energy {
        let step = |from, micros, grams| Kwh {
            from: Time(from),
            micros,
            grams,
        };
        let watts = [("fast".to_owned(), Watts { busy: 500, idle: 100 })];
        let end = step(30 * HOUR, 100_000, 100);
        let tariff = vec![step(10 * HOUR, 100_000, 100), end, step(0, 300_000, 300)];
        Energy::new(watts.into(), tariff, carbon_kg_micros)
    }

    /// Two nodes of 500 W for two hours are 2 kWh, half of it at each price: 0.30 + 0.10, and 300 + 100 g.
    #[test]
    fn the_energy_of_a_slot_by_hand() {
        let slots = Slots::one((Interval::of(Time(9 * HOUR), 2 * HOUR), 2));
        let eur = Currency::parse("EUR").unwrap();
        let of_slot = energy(0).of_slots("fast", &slots, eur).unwrap();
        assert_eq!(of_slot.watt_hours, 2_000);
        assert_eq!(of_slot.cost, Money::new(400_000, eur));
        assert_eq!(of_slot.carbon_grams, 400);
        let before = Slots::one((Interval::of(Time(-HOUR), HOUR), 1));
        let one_of_slot = energy(0).of_slots("fast", &before, eur).unwrap();
        assert_eq!(
            one_of_slot.cost,
            Money::new(150_000, eur),
            "the first step holds before it"
        );
        assert_eq!(energy(0).of_slots("other", &slots, eur), None);
    }

    /// 400 W more than idle for an hour are 0.4 kWh: 0.12 by day, 0.04 by night; times 3,600 s. With 1.00 for a kilogram 120 g and 40 g
    /// cost as much again.
    #[test]
    fn hours_are_weighed_by_hand() {
        for (carbon_kg_micros, factor) in [(0, 1), (1_000_000, 2)] {
            let energy = energy(carbon_kg_micros);
            let window = Interval::new(Time(0), Time(24 * HOUR));
            let power = energy.weighed_power("fast").unwrap();
            let hour = Forecast::constant(ForeseenTimes::exact(HOUR));
            let weighed = energy.weighed(power, (1, window), &hour, STEPS_MAX).unwrap();
            for (start, micros) in [
                (0, 120_000),
                (HOUR, 120_000),
                (9 * HOUR, 120_000),
                // A half of it in the dear hours, and a half in the cheap ones; then a quarter.
                (9 * HOUR + 1_800, 80_000),
                (9 * HOUR + 2_700, 60_000),
                (10 * HOUR, 40_000),
                (23 * HOUR, 40_000),
            ] {
                assert_eq!(weighed.at(Time(start)).loss, factor * micros * 3_600, "{start}");
            }
            assert_eq!(weighed.at(Time(0)).hold, HOUR);
        }
    }

    /// 10 hours at 0.30 and 40 at 0.10 are 0.14 in the mean.
    #[test]
    fn after_a_tariff_its_mean_holds_and_a_resource_without_stated_power_draws_the_most() {
        let energy = energy(0);
        let after = energy.sums_over(Interval::of(Time(50 * HOUR), HOUR));
        assert_eq!(after, [140_000 * 3_600, 140 * 3_600]);
        assert_eq!(
            energy.sums_over(Interval::of(Time(49 * HOUR), HOUR)),
            [100_000 * 3_600, 100 * 3_600]
        );
        let other = energy.weighed_power("other").unwrap();
        assert_eq!((other.least, other.most), (400, 400));
    }

    /// For two hours a kilowatt-hour earns 0.05. 400 W more than idle earn 0.02 in one of them; a resource of unknown power counts as the one
    /// of 100 W there, and as the one of 400 W where it costs 0.10. After the series its mean holds.
    #[test]
    fn energy_that_earns_something_is_weighed_by_hand() {
        let step = |from, micros| Kwh {
            from: Time(from * HOUR),
            micros,
            grams: 0,
        };
        let watts = |busy| Watts { busy, idle: 100 };
        let known = [("fast".to_owned(), watts(500)), ("slow".to_owned(), watts(200))];
        let tariff = vec![step(0, 100_000), step(1, -50_000), step(3, 100_000), step(4, -1)];
        let energy = Energy::new(known.into(), tariff, 0);
        let hour = Forecast::constant(ForeseenTimes::exact(HOUR));
        let window = Interval::new(Time(0), Time(4 * HOUR));
        for (resource, micros) in [
            ("fast", [40_000, -20_000, -20_000, 40_000]),
            ("slow", [10_000, -5_000, -5_000, 10_000]),
            ("other", [40_000, -5_000, -5_000, 40_000]),
        ] {
            let power = energy.weighed_power(resource).unwrap();
            let weighed = energy.weighed(power, (1, window), &hour, STEPS_MAX).unwrap();
            for (start, micros) in (0..).zip(micros) {
                assert_eq!(
                    weighed.at(Time(start * HOUR)).loss,
                    micros * 3_600,
                    "{resource} {start}"
                );
            }
        }
        let eur = Currency::parse("EUR").unwrap();
        let slots = Slots::one((Interval::of(Time(HOUR), 2 * HOUR), 1));
        let of_slot = energy.of_slots("fast", &slots, eur).unwrap();
        assert_eq!(
            of_slot.cost,
            Money::new(-50_000, eur),
            "500 W for two hours are 1 kWh"
        );
        let after = energy.sums_over(Interval::of(Time(9 * HOUR), HOUR));
        // (100,000 − 2 × 50,000 + 100,000 − 1) ÷ 5, rounded down.
        assert_eq!(after[0], 19_999 * 3_600);
    }
}
