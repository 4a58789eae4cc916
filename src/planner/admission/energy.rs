//! The energy that placements take, its cost and what it emits: the outlook of paper 004.

use std::collections::BTreeMap;

use scheduler::domain::{Forecast, Foreseen};
use scheduler::{Interval, Time};

use crate::agreement::{Currency, EnergyUse, Money, Slots};

/// Steps of a tariff beyond those of this number in a window are left out evenly: a search looks at each of them. An hour each, they
/// are ten days.
const STEPS_MAX: usize = 250;

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
    /// Millionths of the currency for a kilowatt-hour.
    pub micros: u32,
    /// Grams of carbon dioxide for a kilowatt-hour.
    pub grams: u32,
}

/// The power of nodes, and a tariff over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Energy {
    watts: BTreeMap<String, Watts>,
    /// The greatest power beyond that of an idle node: that of a resource whose power is not known.
    greatest: Option<u32>,
    /// By time, at least one; beside each the sums of price and grams over the seconds from the first one to it.
    tariff: Vec<(Kwh, [i128; 2])>,
    /// What a kilogram of carbon dioxide counts where places are compared, in millionths of the currency.
    carbon_kg_micros: u32,
}

impl Energy {
    /// The power of resources by name, a tariff in any order, and the cost of a kilogram of carbon dioxide where places are
    /// compared. After the last step, which lasts as long as the one before it, the mean of the tariff holds. None without a step.
    pub fn new(watts: BTreeMap<String, Watts>, mut tariff: Vec<Kwh>, carbon_kg_micros: u32) -> Option<Self> {
        tariff.sort_by_key(|of| of.from);
        tariff.extend(mean_after(&tariff));
        let mut sums = [0; 2];
        let mut before = *tariff.first()?;
        let with_sums = tariff.into_iter().map(|of| {
            let seconds = i128::from(of.from - before.from);
            sums[0] += seconds * i128::from(before.micros);
            sums[1] += seconds * i128::from(before.grams);
            before = of;
            (of, sums)
        });
        Some(Self {
            tariff: with_sums.collect(),
            greatest: watts.values().map(|of| of.beyond_idle()).max(),
            watts,
            carbon_kg_micros,
        })
    }

    /// The sums of price and grams from the first step to an instant. O(log n).
    fn sums(&self, until: Time) -> [i128; 2] {
        let after = self.tariff.partition_point(|(of, _)| of.from <= until);
        let (of, [micros, grams]) = self.tariff[after.saturating_sub(1)];
        let seconds = i128::from(until - of.from);
        [
            micros + seconds * i128::from(of.micros),
            grams + seconds * i128::from(of.grams),
        ]
    }

    /// The sums of price and grams over an interval.
    fn over(&self, of: Interval) -> [i128; 2] {
        let ([from, grams_from], [until, grams_until]) = (self.sums(of.start), self.sums(of.end));
        [until - from, grams_until - grams_from]
    }

    /// The energy of slots on a resource, with its cost and what it emits, each rounded to the nearest; none where the power of
    /// the resource is not known.
    pub(in crate::planner) fn of_slots(
        &self,
        resource: &str,
        slots: &Slots,
        currency: Currency,
    ) -> Option<EnergyUse> {
        /// Watt-seconds of a kilowatt-hour.
        const KWH: i128 = 3_600_000;
        let busy = i128::from(self.watts.get(resource)?.busy);
        let rounded = |of: i128, unit: i128| i64::try_from((of * busy + unit / 2).div_euclid(unit)).ok();
        let mut sums = [0; 3];
        for slot in slots.iter() {
            let (slot, nodes) = slot.stretch();
            let [micros, grams] = self.over(slot);
            for (sum, of) in sums.iter_mut().zip([slot.duration().into(), micros, grams]) {
                *sum += of * i128::from(nodes);
            }
        }
        Some(EnergyUse {
            watt_hours: rounded(sums[0], 3_600)?,
            cost: Money::new(rounded(sums[1], KWH)?, currency),
            carbon_grams: rounded(sums[2], KWH)?,
        })
    }

    /// The power of a node of a resource that is weighed: what it draws beyond an idle one, which is drawn anyway. None where no power is
    /// known.
    pub(in crate::planner) fn weighed_watts(&self, resource: &str) -> Option<u32> {
        let own = self.watts.get(resource).map(|of| of.beyond_idle());
        own.or(self.greatest)
    }

    /// What the energy of a slot counts where places are compared, in the unit of [`scheduler::domain::Candidate::cost`] in which
    /// a node and an hour cost millionths.
    fn weight(&self, watts: u32, nodes: u32, slot: Interval) -> u128 {
        // A sum of watts × seconds × millionths ÷ 3,600,000 is millionths; times 3,600 it is in the unit.
        const UNIT: u128 = 1_000;
        let [micros, grams] = self.over(slot).map(|of| u128::try_from(of).unwrap_or(0));
        let carbon = grams * u128::from(self.carbon_kg_micros) / 1_000;
        u128::from(watts) * u128::from(nodes) * (micros + carbon) / UNIT
    }

    /// A forecast of work on nodes of this power with the weight of its energy as a part of its loss, for starts in a window. Between the
    /// starts at which a slot meets another step of the tariff or ceases to meet one, the weight is linear: all of them count as the dearer end.
    /// O(k log n) for k steps of forecast and tariff in the window.
    pub(in crate::planner) fn weighed(
        &self,
        watts: u32,
        nodes: u32,
        foreseen: &Forecast,
        window: Interval,
    ) -> Option<Forecast> {
        let first = self.tariff.partition_point(|(of, _)| of.from <= window.start);
        let met = &self.tariff[first..];
        let met = &met[..met.partition_point(|(of, _)| of.from < window.end)];
        let every = met.len().div_ceil(STEPS_MAX).max(1);
        let of_tariff = met.iter().step_by(every).flat_map(|(of, _)| {
            let hold = foreseen.at(of.from).hold;
            [of.from - hold, of.from]
        });
        let of_forecast = foreseen.steps().map(|(starts, _)| starts.start);
        let inside = |at: &Time| window.start < *at && *at < window.end;
        let mut starts: Vec<Time> = of_forecast.chain(of_tariff).filter(inside).collect();
        starts.push(window.start);
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([window.end]);
        let steps = starts.iter().zip(ends).map(|(start, end)| {
            let of = foreseen.at(*start);
            let weight = |at: Time| self.weight(watts, nodes, Interval::of(at, of.hold));
            let loss = of.loss.saturating_add(weight(*start).max(weight(end)));
            (*start, Foreseen { loss, ..of })
        });
        Forecast::new(steps.collect())
    }
}

impl Watts {
    /// The power of work: what a busy node draws beyond an idle one.
    fn beyond_idle(self) -> u32 {
        self.busy.saturating_sub(self.idle)
    }
}

/// The mean of a tariff over its time, from its end on; none of one step, which holds for ever.
fn mean_after(tariff: &[Kwh]) -> Option<Kwh> {
    let (first, [.., before, last]) = (tariff.first()?, tariff) else {
        return None;
    };
    let end = last.from + (last.from - before.from);
    let ends = tariff.iter().skip(1).map(|of| of.from).chain([end]);
    let (mut micros, mut grams) = (0, 0);
    for (of, until) in tariff.iter().zip(ends) {
        let seconds = u128::try_from(until - of.from).unwrap_or(0);
        micros += seconds * u128::from(of.micros);
        grams += seconds * u128::from(of.grams);
    }
    let all = u128::try_from(end - first.from).ok().filter(|all| *all > 0)?;
    Some(Kwh {
        from: end,
        micros: u32::try_from(micros / all).ok()?,
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
        Energy::new(watts.into(), tariff, carbon_kg_micros).unwrap()
    }

    /// Two nodes of 500 W for two hours are 2 kWh, half of it at each price: 0.30 + 0.10, and 300 + 100 g.
    #[test]
    fn the_energy_of_a_slot_by_hand() {
        let slots = Slots::one((Interval::of(Time(9 * HOUR), 2 * HOUR), 2));
        let eur = Currency::parse("EUR").unwrap();
        let of = energy(0).of_slots("fast", &slots, eur).unwrap();
        assert_eq!(of.watt_hours, 2_000);
        assert_eq!(of.cost, Money::new(400_000, eur));
        assert_eq!(of.carbon_grams, 400);
        let before = Slots::one((Interval::of(Time(-HOUR), HOUR), 1));
        let of = energy(0).of_slots("fast", &before, eur).unwrap();
        assert_eq!(
            of.cost,
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
            let watts = energy.weighed_watts("fast").unwrap();
            let hour = Forecast::constant(Foreseen::exact(HOUR));
            let of = energy.weighed(watts, 1, &hour, window).unwrap();
            for (start, micros) in [
                (0, 120_000),
                (HOUR, 120_000),
                (9 * HOUR, 120_000),
                (10 * HOUR, 40_000),
            ] {
                assert_eq!(of.at(Time(start)).loss, factor * micros * 3_600, "{start}");
            }
            // It begins in the cheap hours and ends after the dear ones.
            assert_eq!(of.at(Time(9 * HOUR + 1_800)).loss, factor * 120_000 * 3_600);
            assert_eq!(of.at(Time(0)).hold, HOUR);
        }
    }

    /// 10 hours at 0.30 and 40 at 0.10 are 0.14 in the mean.
    #[test]
    fn after_a_tariff_its_mean_holds_and_a_resource_without_stated_power_draws_the_most() {
        let energy = energy(0);
        let after = energy.over(Interval::of(Time(50 * HOUR), HOUR));
        assert_eq!(after, [140_000 * 3_600, 140 * 3_600]);
        assert_eq!(
            energy.over(Interval::of(Time(49 * HOUR), HOUR)),
            [100_000 * 3_600, 100 * 3_600]
        );
        assert_eq!(energy.weighed_watts("other"), Some(400));
    }
}
