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
mod tests {
    use super::*;
    use crate::prices::payer::AllowedShapes;
    use domain::agreement::{BarredResource, Filter, Measure, Shape};
    use domain::resources::Scaling;
    use scheduler::Rate;
    use scheduler::domain::Attribute;
    use scheduler::preemptive::Preemption;

    const EUR: &str = "EUR";
    const LOCAL: &str = "local";

    fn pricing() -> Pricing {
        Pricing::flat(100_000, Currency::parse(EUR).unwrap())
    }

    /// Days before the window.
    const LONG_BEFORE: Time = Time(-864_000);

    /// The price of two nodes for an hour in a window of this number of hours, asked for long before.
    fn micros(pricing: &Pricing, tree: &SlotTree, hours: i64, at: i64) -> i64 {
        micros_where_it_moves(None, pricing, tree, hours, at)
    }

    fn micros_where_it_moves(
        fix_at: Option<Fraction>,
        pricing: &Pricing,
        tree: &SlotTree,
        hours: i64,
        at: i64,
    ) -> i64 {
        let window = Interval::of(Time(0), hours * 3_600);
        let payer = Payer {
            party: "physics",
            budget: None,
            fix_at,
            shapes: AllowedShapes::ONE,
        };
        let priced = Priced::rigid(payer, (Interval::of(Time(at), 3_600), 2), window);
        let load = pricing.load(tree, window, 0);
        pricing.price(LOCAL, load, LONG_BEFORE, priced).unwrap().micros
    }

    #[test]
    fn each_rule_changes_the_price_as_it_says() {
        let free = SlotTree::new(4);
        let mut pricing = pricing();
        assert_eq!(
            micros(&pricing, &free, 1, 0),
            200_000,
            "2 nodes, an hour, 0.10 each"
        );
        pricing.resources.insert("local".into(), 300_000);
        assert_eq!(
            micros(&pricing, &free, 1, 0),
            600_000,
            "the resource has its own price"
        );
        pricing.resources.clear();
        pricing.profiles.insert("physics".into(), Fraction::percent(50));
        assert_eq!(micros(&pricing, &free, 1, 0), 100_000, "the party has a profile");
        pricing.profiles.clear();
        pricing.flexible = Discount {
            most: Fraction::percent(40),
            half: 3_600,
        };
        assert_eq!(micros(&pricing, &free, 1, 0), 200_000, "no slack, no discount");
        assert_eq!(
            micros(&pricing, &free, 2, 0),
            160_000,
            "half of the discount at w50"
        );
        assert_eq!(
            micros(&pricing, &free, 4, 0),
            140_000,
            "w/(w + w50) is three quarters"
        );
        for (percent, micros) in [(0, 200_000), (50, 152_000), (100, 140_000)] {
            let moves = Some(Fraction::percent(percent));
            let price = micros_where_it_moves(moves, &pricing, &free, 4, 0);
            assert_eq!(price, micros, "it may be moved for {percent} % of its wait");
        }
        pricing.busy = Fraction::percent(50);
        let mut half = SlotTree::new(4);
        half.reserve(Interval::of(Time(0), 7_200), 2).unwrap();
        assert_eq!(micros(&pricing, &half, 2, 0), 200_000, "a half of a half on top");
    }

    #[test]
    fn slack_earns_a_discount_for_the_time_in_which_it_can_be_used() {
        let mut pricing = pricing();
        pricing.flexible = Discount {
            most: Fraction::percent(40),
            half: 3_600,
        };
        let free = SlotTree::new(4);
        let payer = Payer {
            party: "physics",
            budget: None,
            fix_at: None,
            shapes: AllowedShapes::ONE,
        };
        // Two nodes for an hour in a window of ten: at most 9 hours of slack, of which the wait until the start can be used.
        let window = Interval::of(Time(0), 36_000);
        let plain = pricing.load(&free, window, 0);
        for (now, start, micros) in [
            // It begins at once: nobody can move it.
            (0, 0, 200_000),
            // An hour: 40 % × 1/2. Three: 40 % × 3/4. Nine: 40 % × 9/10.
            (0, 3_600, 160_000),
            (0, 10_800, 140_000),
            (0, 32_400, 128_000),
            // The window is known a day before: all of its slack.
            (-86_400, 0, 128_000),
            // Half of an hour is over.
            (1_800, 3_600, 173_333),
        ] {
            let priced = Priced::rigid(payer, (Interval::of(Time(start), 3_600), 2), window);
            let price = pricing.price(LOCAL, plain, Time(now), priced).unwrap();
            assert_eq!(price.micros, micros, "at {now} from {start}");
        }
    }

    /// Two nodes for an hour that cost 20, and half of that for a completion at the deadline.
    fn half_off_when_late() -> Pricing {
        let mut pricing = Pricing::flat(10_000_000, Currency::parse(EUR).unwrap());
        pricing.late = Fraction::percent(50);
        pricing
    }

    /// The price of that hour from `start` on in a window, asked for at `now`.
    fn price_of_hour(pricing: &Pricing, now: i64, start: i64, window: (i64, i64)) -> i64 {
        let payer = Payer {
            party: "physics",
            budget: None,
            fix_at: None,
            shapes: AllowedShapes::ONE,
        };
        let window = Interval::new(Time(window.0), Time(window.1));
        let priced = Priced::rigid(payer, (Interval::of(Time(start), 3_600), 2), window);
        let price = pricing.price(LOCAL, Fraction::percent(100), Time(now), priced);
        price.unwrap().micros
    }

    #[test]
    fn the_saving_for_a_late_completion_counts_from_the_ready_time() {
        let pricing = half_off_when_late();
        let day = 86_400;
        let tomorrow = |start, end| price_of_hour(&pricing, 0, day + start, (day, day + end));
        assert_eq!(
            tomorrow(0, 3_600),
            20_000_000,
            "its time is exact: it waits for nothing"
        );
        assert_eq!(tomorrow(0, 7_200), 20_000_000, "it begins when it is ready");
        assert_eq!(tomorrow(3_600, 7_200), 10_000_000, "it completes at its deadline");
        assert_eq!(
            tomorrow(3_600, 10_800),
            15_000_000,
            "it waits for half of its slack"
        );
        // Ready since an hour ago: only what is left of the window counts.
        assert_eq!(price_of_hour(&pricing, 3_600, 3_600, (0, 10_800)), 20_000_000);
        assert_eq!(price_of_hour(&pricing, 3_600, 7_200, (0, 10_800)), 10_000_000);
    }

    #[test]
    fn a_slightly_wider_window_costs_no_more_than_it_saves() {
        let pricing = half_off_when_late();
        let price = |wait: i64, slack: i64| price_of_hour(&pricing, 0, wait, (0, 3_600 + slack));
        let rigid = price(0, 0);
        for wait in [0, 1, 2, 60, 1_800, 3_599] {
            for slack in wait..3_600 {
                let (before, wider) = (price(wait, slack), price(wait, slack + 1));
                assert!(
                    wider <= before && before <= rigid,
                    "{wait} of {slack}: {before}, then {wider}"
                );
            }
        }
        // A second of a longer slack costs its proportion, and no unit of the currency.
        for (wait, slack) in [(3_600, 3_600), (5_000, 10_800), (10_800, 10_800)] {
            let more = price(wait, slack + 1) - price(wait, slack);
            assert!(
                (0..=10_000_000 / slack + 1).contains(&more),
                "{wait} of {slack}: {more}"
            );
        }
    }

    #[test]
    fn a_late_completion_saves_in_proportion_to_its_wait() {
        let free = SlotTree::new(4);
        let mut pricing = Pricing::flat(10_000_000, Currency::parse(EUR).unwrap());
        pricing.late = Fraction::percent(60);
        let window = Interval::of(Time(0), 14_400);
        let payer = Payer {
            party: "physics",
            budget: None,
            fix_at: None,
            shapes: AllowedShapes::ONE,
        };
        let price = |hour: i64| {
            let priced = Priced::rigid(payer, (Interval::of(Time(hour * 3_600), 3_600), 2), window);
            let load = pricing.load(&free, window, 0);
            pricing.price(LOCAL, load, Time(0), priced).unwrap().micros / 1_000_000
        };
        let prices: Vec<i64> = (0..=3).map(price).collect();
        assert_eq!(prices, [20, 16, 12, 8]);
    }

    const HOUR: i64 = 3_600;

    /// A resource of eight nodes of that rate.
    fn local(rate: Rate) -> Resource {
        Resource {
            rate,
            ..Resource::new(LOCAL, LOCAL, 8)
        }
    }

    /// The price of four node-hours on two nodes at 0, on a resource of that rate, for a request with these sizes and cuts.
    fn price_in_shapes(pricing: &Pricing, rate: Rate, sizes: &[(u32, i64)], cuts: Option<Preemption>) -> i64 {
        price_where_allowed(pricing, &local(rate), sizes, cuts, (&[], &[]))
    }

    /// The price of two nodes for two hours of work at 0 on a resource, for a request with these sizes, cuts, conditions and barred resources.
    fn price_where_allowed(
        pricing: &Pricing,
        on: &Resource,
        sizes: &[(u32, i64)],
        cuts: Option<Preemption>,
        (filters, barred): (&[Filter], &[BarredResource]),
    ) -> i64 {
        let sizes: Vec<Shape> = (sizes.iter())
            .map(|(nodes, duration)| Shape {
                nodes: *nodes,
                duration: *duration,
            })
            .collect();
        let payer = Payer {
            party: "physics",
            budget: None,
            fix_at: None,
            shapes: AllowedShapes {
                sizes: &sizes,
                scaling: Scaling::ReferenceRate,
                cuts: cuts.unwrap_or(Preemption::NONE),
                filters,
                barred,
            },
        };
        let slot = Interval::of(Time(0), on.rate.duration(2 * HOUR));
        let priced = Priced::of(payer, on, (slot, 2), Interval::of(Time(0), 4 * HOUR));
        let price = pricing.price(LOCAL, Fraction::percent(100), Time(0), priced);
        price.unwrap().micros
    }

    #[test]
    fn work_that_may_be_cut_and_a_choice_of_shapes_cost_less() {
        let mut pricing = pricing();
        let cut = Preemption::new(2, 500_000, false);
        let five: Vec<(u32, i64)> = (2..=6).map(|nodes| (nodes, 2 * HOUR)).collect();
        let price = |pricing: &Pricing, sizes: &[(u32, i64)], cuts| {
            price_in_shapes(pricing, Rate::REFERENCE, sizes, cuts)
        };
        assert_eq!(price(&pricing, &five, cut), 400_000, "no key is set");
        pricing.preemptive = Fraction::percent(30);
        assert_eq!(price(&pricing, &five, None), 400_000, "it may not be cut");
        assert_eq!(price(&pricing, &five[..1], cut), 280_000);
        pricing.preemptive = Fraction::percent(0);
        pricing.shapes = Discount::of_shapes(Fraction::percent(40));
        assert_eq!(price(&pricing, &five[..1], None), 400_000, "one shape");
        assert_eq!(
            price(&pricing, &five, None),
            320_000,
            "four beyond the first: half of it"
        );
        // One size in one piece, or cut in the middle: one beyond the first, and 1/5 of 40 %.
        assert_eq!(price(&pricing, &five[..1], cut), 368_000);
        pricing.preemptive = Fraction::percent(30);
        assert_eq!(price(&pricing, &five[..1], cut), 257_600, "one after the other");
    }

    #[test]
    fn the_wait_counts_from_the_shortest_of_all_sizes() {
        let mut pricing = pricing();
        pricing.late = Fraction::percent(60);
        // Two hours of a window of four: it began at once, on the size that it has.
        assert_eq!(
            price_in_shapes(&pricing, Rate::REFERENCE, &[(2, 2 * HOUR)], None),
            400_000
        );
        // On four nodes it would have taken an hour: it completes a third of three hours later, for a fifth less.
        let sizes = [(4, HOUR), (2, 2 * HOUR)];
        assert_eq!(price_in_shapes(&pricing, Rate::REFERENCE, &sizes, None), 320_000);
        // At twice the rate an hour, and half an hour on four nodes: a seventh of three and a half hours later.
        let twice = Rate::from_millionths(2_000_000).unwrap();
        assert_eq!(price_in_shapes(&pricing, twice, &sizes, None), 182_857);
    }

    #[test]
    fn a_size_that_the_resource_cannot_have_lowers_no_price() {
        let mut pricing = pricing();
        pricing.late = Fraction::percent(60);
        pricing.shapes = Discount::of_shapes(Fraction::percent(40));
        let mut on = local(Rate::REFERENCE);
        on.attributes.insert("cpus".into(), Attribute::Number(8));
        let price = |sizes: &[(u32, i64)], filters: &[Filter], barred: &[BarredResource]| {
            price_where_allowed(&pricing, &on, sizes, None, (filters, barred))
        };
        let alone = price(&[(2, 2 * HOUR)], &[], &[]);
        assert_eq!(alone, 400_000);
        // More nodes than it has: a second would be its fastest time.
        assert_eq!(price(&[(64, 1), (2, 2 * HOUR)], &[], &[]), alone);
        let two = [(4, HOUR), (2, 2 * HOUR)];
        assert!(price(&two, &[], &[]) < alone);
        let barred = BarredResource {
            resource: LOCAL.into(),
            sizes: vec![Shape {
                nodes: 4,
                duration: HOUR,
            }],
            why: String::new(),
        };
        assert_eq!(price(&two, &[], &[barred]), alone, "its cluster would refuse it");
        // At most 16 processors in all, of 8 on each node.
        let total = Filter::Number {
            attribute: "cpus".into(),
            measure: Measure::Total,
            within: vec![(0, 16)],
        };
        assert_eq!(
            price(&two, &[total], &[]),
            alone,
            "it does not meet the conditions"
        );
    }

    #[test]
    fn the_parts_of_a_price_add_up_to_it() {
        let mut pricing = pricing();
        pricing.preemptive = Fraction::percent(30);
        pricing.shapes = Discount::of_shapes(Fraction::percent(40));
        let payer = Payer {
            party: "physics",
            budget: None,
            fix_at: None,
            shapes: AllowedShapes {
                cuts: Preemption::new(2, 500_000, false).unwrap(),
                ..AllowedShapes::ONE
            },
        };
        let hour = Interval::of(Time(0), HOUR);
        let priced = Priced::of(payer, &local(Rate::REFERENCE), (hour, 2), hour);
        let plain = Fraction::percent(100);
        let price = pricing.price(LOCAL, plain, Time(0), priced).unwrap();
        let words = pricing.parts(LOCAL, Time(0), (priced, "2 nodes"), price).unwrap();
        assert_eq!(
            words,
            "0.2 EUR for 2 nodes for 3600 seconds, 0.06 EUR less because its work may be cut, \
             0.0112 EUR less for the number of its shapes"
        );
        let discounts = pricing.discounts(LOCAL, Time(0), priced).unwrap();
        let micros = |money: Option<Money>| money.unwrap().micros;
        assert_eq!(
            (micros(discounts.preemptive), micros(discounts.shapes)),
            (60_000, 11_200)
        );
        let rigid = Priced::rigid(payer, (hour, 2), hour);
        assert_eq!(pricing.discounts(LOCAL, Time(0), rigid), None);
    }
}
