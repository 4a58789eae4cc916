//! The lowest budget that a refusal tells is accepted when it is offered, whatever the plan and the price list.

use proptest::prelude::*;
use scheduler::pricing::Discount;
use scheduler::{Order, Reason, Seconds};
use uuid::Uuid;

use super::super::decide::Remembered;
use super::super::{Accepted, Error, Plan, Pricing, Proposal, Refusal, Resource, Scaling, Settings};
use super::*;
use crate::agreement::{Currency, Shape};
use crate::clock::MICROS_PER_SECOND;

const HORIZON: Seconds = 1_000;

/// A plan to decide on, without a store.
struct Domain {
    settings: Settings,
    plan: Plan,
}

impl Domain {
    fn new(pricing: Pricing) -> Self {
        let resource = |name: &str, capacity| Resource::new(name, "local", capacity);
        let mut settings = Settings::new(vec![resource("small", 3), resource("large", 5)], HORIZON);
        settings.order = Order::Edf;
        settings.pricing = Some(pricing);
        let plan = Plan::rebuild(&settings, Vec::new(), Vec::new(), Time(0)).unwrap();
        Self { settings, plan }
    }

    fn place(&mut self, at: i64, proposal: Proposal) -> Result<Accepted, Refusal> {
        let mut batch = Vec::new();
        let mut decider = Decider {
            settings: &self.settings,
            plan: &mut self.plan,
            now: at * MICROS_PER_SECOND,
            batch: &mut batch,
            remembered: Remembered::new(),
        };
        decider.place(proposal).map_err(|error| match error {
            Error::Refused(refusal) => *refusal,
            other => panic!("{other}"),
        })
    }
}

fn eur() -> Currency {
    Currency::parse("EUR").unwrap()
}

fn proposal(nodes: u32, duration: Seconds, window: Interval, budget: Option<i64>) -> Proposal {
    Proposal {
        id: Uuid::now_v7(),
        party: "physics".into(),
        name: None,
        template: "t".into(),
        shapes: vec![Shape { nodes, duration }],
        scaling: Scaling::Contract,
        filters: Vec::new(),
        fix_at_ppm: None,
        deviation_max: None,
        ready: Some(window.start),
        deadline: Some(window.end),
        job: None,
        guarantees: Vec::new(),
        budget: budget.map(|micros| Money::new(micros, eur())),
        choices: Vec::new(),
        document: String::new(),
        idempotency: None,
    }
}

/// Price lists with every rule, dear enough for whole units to matter.
fn price_list() -> impl Strategy<Value = Pricing> {
    (
        0..4_000_u32,
        0..101_u32,
        0..301_u32,
        0..101_u32,
        1..200_u64,
        1..5_000_u32,
    )
        .prop_map(|(base, late, busy, flexible, half, small)| {
            let mut pricing = Pricing::flat(base * 1_000_000, eur());
            pricing.late = Fraction::percent(late);
            pricing.busy = Fraction::percent(busy);
            pricing.flexible = Discount {
                most: Fraction::percent(flexible),
                half,
            };
            pricing.resources.insert("small".into(), small * 800_000);
            pricing.profiles.insert("physics".into(), Fraction::percent(90));
            pricing
        })
}

/// Nodes, duration, start and slack of a window.
fn wish() -> impl Strategy<Value = (u32, Seconds, i64, Seconds)> {
    (1..6_u32, 1..60_i64, 0..150_i64, 0..80_i64)
}

fn of((nodes, duration, start, slack): (u32, Seconds, i64, Seconds), budget: Option<i64>) -> Proposal {
    let window = Interval::of(Time(start), duration + slack);
    proposal(nodes, duration, window, budget)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, rng_seed: proptest::test_runner::RngSeed::Fixed(460), ..ProptestConfig::default() })]

    #[test]
    fn the_lowest_budget_of_a_refusal_is_accepted(
        pricing in price_list(),
        standing in prop::collection::vec(wish(), 0..25),
        wish in wish(),
        share in 0..120_i64,
    ) {
        let mut domain = Domain::new(pricing);
        let mut agreed = Vec::new();
        for of_it in standing {
            agreed.extend(domain.place(0, of(of_it, None)).ok().map(|accepted| accepted.agreement));
        }
        // A part of what it would cost where everything is free.
        let mut empty = Domain::new(domain.settings.pricing.clone().unwrap());
        let Ok(alone) = empty.place(0, of(wish, None)) else { return Ok(()) };
        let budget = alone.agreement.price.unwrap().micros * share / 100;
        match domain.place(0, of(wish, Some(budget))) {
            Ok(accepted) => prop_assert!(accepted.agreement.price.unwrap().micros <= budget),
            Err(refusal) => {
                if let Some(lowest) = refusal.lowest_budget {
                    prop_assert_eq!(refusal.reason, Reason::BudgetTooLow);
                    prop_assert!(lowest.micros > budget);
                    let accepted = domain.place(0, of(wish, Some(lowest.micros)));
                    let price = accepted.map(|accepted| accepted.agreement.price.unwrap().micros);
                    prop_assert!(price.as_ref().is_ok_and(|price| *price <= lowest.micros), "{:?} of {:?}", price, lowest);
                }
                // One of them, since each is meant alone.
                let told = refusal.relaxations;
                let which = usize::try_from(share).unwrap() % told.len().max(1);
                if let Some(relaxation) = told.get(which) {
                    let (nodes, duration, start, slack) = wish;
                    let asked = Request {
                        id: 0,
                        submitted: Time(0),
                        ready: Time(start),
                        deadline: Time(start + duration + slack),
                        duration,
                        nodes,
                        revenue: 0,
                    };
                    let relaxed = relaxation.applied(&asked);
                    let again = proposal(relaxed.nodes, relaxed.duration, relaxed.window(), Some(budget));
                    prop_assert!(domain.place(0, again).is_ok(), "{:?}", relaxation);
                }
            }
        }
        // What was agreed costs what it did, whoever came since.
        for agreement in agreed {
            prop_assert_eq!(domain.plan.get(agreement.id).unwrap().price, agreement.price);
        }
    }
}
