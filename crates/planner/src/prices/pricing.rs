//! The provider's price list, and how it prices something.
//!
//! A price is exact until [`Price::micros`] rounds it to a millionth of the currency, once, half up. [`Tariff::price`]
//! and [`Pricing::load`] say where a number is rounded before that.

use std::collections::BTreeMap;

use domain::agreement::{Currency, Money, PriceDiscounts, Slots, Stretch};
use domain::resources::Resource;
use scheduler::pricing::{Discount, Price, PricedUsage, Tariff, price_load_factor};
use scheduler::{Fraction, Interval, SlotTree, Time, counted};

use crate::prices::energy::Energy;
use crate::prices::payer::{Payer, ShapeFreedom};

/// A provider's price list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pricing {
    /// The currency of all prices.
    pub currency: Currency,
    /// Millionths of the currency for a node and an hour.
    pub node_hour_micros: u32,
    /// Millionths for a node and an hour of the resources that have a price of their own, by name.
    pub resources: BTreeMap<String, u32>,
    /// The part of the price that each party with a price profile pays, by the party's name (002, section 3.2).
    pub profiles: BTreeMap<String, Fraction>,
    /// Off for a completion at the deadline, in proportion to the wait since the ready time for an earlier one (002, algorithm 2),
    /// at most the whole.
    pub late: Fraction,
    /// On top where all nodes of the resource are taken for the whole window, in proportion where fewer are.
    pub busy: Fraction,
    /// Off for slack that the provider may still use: never quite `most`, half of it at `half` seconds.
    pub flexible: Discount,
    /// Off for a request whose work may be cut (the incentive of 002, algorithm 2), at most the whole.
    pub preemptive: Fraction,
    /// Off for the shapes that a request allows, by their number.
    pub shapes: Discount,
    /// The fee for ending an agreement before its slot, as a part of its price, at most the whole.
    pub cancellation: Fraction,
    /// The fee for a change of an agreement, beside the difference of the prices, as a part of its price, at most the
    /// whole.
    pub change: Fraction,
    /// The energy of placements, where it is stated: shown with offers, and weighed where costs decide.
    pub energy: Option<Energy>,
}

/// The request that is priced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Priced<'a> {
    /// The party that pays.
    pub(crate) payer: Payer<'a>,
    /// The shapes that its request may have on the resource.
    pub(crate) freedom: ShapeFreedom,
    /// The nodes and the time that it uses.
    pub(crate) node_seconds: u128,
    /// Where it is placed, or would be in one piece that completes with its last one.
    pub(crate) slot: Interval,
    /// Where it may be placed.
    pub(crate) window: Interval,
}

impl<'a> Priced<'a> {
    /// Nodes in one slot, which could have no other shape.
    pub(crate) fn rigid(payer: Payer<'a>, (slot, nodes): Stretch, window: Interval) -> Self {
        Self {
            payer,
            freedom: ShapeFreedom::NONE,
            node_seconds: u128::from(nodes) * u128::from(slot.duration().max(0).unsigned_abs()),
            slot,
            window,
        }
    }

    /// Nodes in one slot of a resource.
    pub(crate) fn of(payer: Payer<'a>, on: &Resource, stretch: Stretch, window: Interval) -> Self {
        Self {
            freedom: payer.shapes.on(on),
            ..Self::rigid(payer, stretch, window)
        }
    }

    /// As long a slot at another time.
    pub(crate) fn at(self, slot: Interval) -> Self {
        Self { slot, ..self }
    }

    /// Slots of a resource: the price is the same as in one that completes with the last of them.
    pub(crate) fn of_slots(payer: Payer<'a>, on: &Resource, slots: &Slots, window: Interval) -> Self {
        let end = slots.placement().end;
        Self {
            payer,
            freedom: payer.shapes.on(on),
            node_seconds: slots.node_seconds(),
            slot: Interval::new(end - slots.seconds(), end),
            window,
        }
    }
}

impl Pricing {
    /// A price for a node and an hour, with no other rules.
    pub fn flat(node_hour_micros: u32, currency: Currency) -> Self {
        Self {
            currency,
            node_hour_micros,
            resources: BTreeMap::new(),
            profiles: BTreeMap::new(),
            late: Fraction::percent(0),
            busy: Fraction::percent(0),
            flexible: Discount::NONE,
            preemptive: Fraction::percent(0),
            shapes: Discount::NONE,
            cancellation: Fraction::percent(0),
            change: Fraction::percent(0),
            energy: None,
        }
    }

    /// The price of a node for an hour on a resource, in millionths of the currency, before all rules.
    pub(crate) fn node_hour(&self, resource: &str) -> u32 {
        *self.resources.get(resource).unwrap_or(&self.node_hour_micros)
    }

    /// The load factor of a window on a resource: 1 where its nodes are free throughout, 1 + `busy` where they are taken,
    /// rounded down to a hundredth of a percent. The priced request must not be on the tree; if it is there, its
    /// node-seconds are `not_counted`. O(log n).
    pub(crate) fn load(&self, tree: &SlotTree, window: Interval, not_counted: u128) -> Fraction {
        let length = u128::from(window.duration().max(0).unsigned_abs());
        let taken = u128::from(tree.busy_area(window)).saturating_sub(not_counted);
        price_load_factor(self.busy, taken, u128::from(tree.capacity()) * length)
    }

    /// The price of a placement on a resource at `now`: 002's for its area, its completion and the shapes that its request allows there,
    /// × the load factor, × (1 − `d_max`·w/(w + w50)) with w the slack of its window that the provider may still use: the part of it in
    /// which the placement may move, and no more than the time until it begins, since it moves no more then. None where the price is more
    /// than an amount can hold.
    pub(crate) fn price(
        &self,
        resource: &str,
        load: Fraction,
        now: Time,
        one_priced: Priced<'_>,
    ) -> Option<Money> {
        let tariff = Tariff {
            micros_per_node_hour: self.node_hour(resource),
            late: self.late,
            saving_step: Price::from_units(1),
            profile: *self
                .profiles
                .get(one_priced.payer.party)
                .unwrap_or(&Fraction::percent(100)),
            incentive: self.preemptive,
            flexibility: self.shapes,
        };
        let freedom = one_priced.freedom;
        let usage =
            PricedUsage::rigid_since_ready(one_priced.node_seconds, one_priced.slot, one_priced.window, now)
                .with_shapes(freedom.is_preemptive, freedom.shapes, freedom.fastest);
        let wait = (one_priced.slot.start - now).max(0);
        let slack = (one_priced.window.duration() - one_priced.slot.duration()).min(wait);
        let slack = one_priced
            .payer
            .fix_at
            .map_or(slack, |part| part.rounded_up(slack));
        let price = tariff.price(&usage)?.flexible(load, self.flexible, slack)?;
        let micros = i64::try_from(price.max(Price::default()).micros()).ok()?;
        Some(Money::new(micros, self.currency))
    }

    /// The parts of a price, in words: first the nodes, then the amount that each rule adds or takes off. The price is
    /// their sum. The rest that nothing else explains comes from the load of its window when it was priced.
    pub(crate) fn parts(
        &self,
        on: &str,
        now: Time,
        (what_is_priced, size): (Priced<'_>, &str),
        price: Money,
    ) -> Option<String> {
        let steps = self.steps(on, now, what_is_priced)?;
        let mut so_far = steps[0].1;
        let mut words = format!(
            "{so_far} for {size} for {}",
            counted(what_is_priced.slot.duration(), "second")
        );
        let busy = ("for how busy its window was", price);
        for (what, next) in steps.into_iter().skip(1).chain([busy]) {
            let difference = next.micros - so_far.micros;
            let part = Money::new(difference.abs(), self.currency);
            match difference.signum() {
                1 => words += &format!(", {part} more {what}"),
                -1 => words += &format!(", {part} less {what}"),
                _ => {}
            }
            so_far = next;
        }
        Some(words)
    }

    /// How much less a placement costs because its work may be cut, and by the number of its shapes, as in the [`Pricing::parts`]; none
    /// where it costs no less by either.
    pub(crate) fn discounts(&self, on: &str, now: Time, one_priced: Priced<'_>) -> Option<PriceDiscounts> {
        let steps = self.steps(on, now, one_priced)?;
        let less = |what: &str| {
            let at = steps.iter().position(|(step, _)| *step == what)?;
            let micros = steps[at - 1].1.micros - steps[at].1.micros;
            (micros != 0).then(|| Money::new(micros, self.currency))
        };
        let discounts = PriceDiscounts {
            preemptive: less(FOR_CUTS),
            shapes: less(FOR_SHAPES),
        };
        (discounts != PriceDiscounts::default()).then_some(discounts)
    }

    /// What a placement costs by the first rules of the list alone: by no rule, by one, and so on up to all but the load.
    fn steps(&self, on: &str, now: Time, one_priced: Priced<'_>) -> Option<Vec<(&'static str, Money)>> {
        let mut rules = Self::flat(self.node_hour(on), self.currency);
        let price = |rules: &Self| rules.price(on, Fraction::percent(100), now, one_priced);
        let mut steps = vec![("", price(&rules)?)];
        rules.late = self.late;
        steps.push(("for completing late", price(&rules)?));
        rules.profiles.clone_from(&self.profiles);
        steps.push(("by the profile of its party", price(&rules)?));
        rules.preemptive = self.preemptive;
        steps.push((FOR_CUTS, price(&rules)?));
        rules.shapes = self.shapes;
        steps.push((FOR_SHAPES, price(&rules)?));
        rules.flexible = self.flexible;
        steps.push(("for its slack", price(&rules)?));
        Some(steps)
    }
}

/// The rules of a price list that offers show by their amounts.
const FOR_CUTS: &str = "because its work may be cut";
const FOR_SHAPES: &str = "for the number of its shapes";

#[cfg(test)]
mod tests;
