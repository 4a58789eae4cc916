//! A plan with a price list to decide on, without a store: for property tests.

use domain::agreement::{Currency, Money, Posting, Shape};
use domain::change::Change;
use domain::clock::MICROS_PER_SECOND;
use domain::resources::{Resource, Scaling};
use proptest::prelude::*;
use scheduler::pricing::Discount;
use scheduler::{Fraction, Interval, Order, Seconds, Time};
use uuid::Uuid;

use super::super::RememberedAnswers;
use super::super::decider::Decider;
use super::super::{AcceptedOffer, Error, Pricing, Refusal, Request, Settings, State, Terminate};
use crate::commands::Place;

pub(crate) const HORIZON: Seconds = 1_000;

/// A plan to decide on, without a store.
pub(crate) struct Domain {
    pub(crate) settings: Settings,
    pub(crate) state: State,
}

impl Domain {
    pub(crate) fn new(pricing: Pricing) -> Self {
        let resource = |name: &str, capacity| Resource::new(name, "local", capacity);
        let mut settings = Settings::new(vec![resource("small", 3), resource("large", 5)], HORIZON);
        settings.order = Order::Edf;
        settings.pricing = Some(pricing);
        let plan = State::rebuild(&settings, &settings.resources, Vec::new(), Vec::new(), Time(0)).unwrap();
        Self {
            settings,
            state: plan,
        }
    }

    pub(crate) fn place(&mut self, at: i64, request: Request) -> Result<AcceptedOffer, Refusal> {
        let (placed, _) = self.decide(at, |decider| decider.decide(Place(request)));
        placed.map_err(|error| match error {
            Error::Refused(refusal) => *refusal,
            other => panic!("{other}"),
        })
    }

    /// Ends an agreement. Returns its postings.
    pub(crate) fn terminate(&mut self, at: i64, id: Uuid) -> Vec<Posting> {
        let (ended, posted) = self.decide(at, |decider| decider.decide(Terminate::of(id, None)));
        ended.unwrap();
        posted
    }

    /// Decides a command at a second. Returns its postings.
    pub(crate) fn decide<T>(
        &mut self,
        at: i64,
        what: impl FnOnce(&mut Decider<'_>) -> T,
    ) -> (T, Vec<Posting>) {
        let mut batch = Vec::new();
        let mut decider = Decider::new(
            &self.settings,
            &mut self.state,
            at * MICROS_PER_SECOND,
            Uuid::now_v7,
            &mut batch,
            RememberedAnswers::new(),
        );
        let answer = what(&mut decider);
        assert_eq!(self.state.why_impossible(), None);
        let posted = batch.into_iter().filter_map(|change| match change {
            Change::Post(posting) => Some(*posting),
            _ => None,
        });
        (answer, posted.collect())
    }
}

pub(crate) fn eur() -> Currency {
    Currency::parse("EUR").unwrap()
}

pub(crate) fn proposal(nodes: u32, duration: Seconds, window: Interval, budget: Option<i64>) -> Request {
    Request {
        id: Uuid::now_v7(),
        party: "physics".into(),
        name: None,
        template: "t".into(),
        shapes: vec![Shape { nodes, duration }],
        scaling: Scaling::Contract,
        preemption: None,
        shape_changes: None,
        filters: Vec::new(),
        barred: Vec::new(),
        fix_at_ppm: None,
        deviation_max: None,
        choices: Vec::new(),
        initiator_id: None,
        ready: Some(window.start),
        deadline: Some(window.end),
        expires: None,
        job: None,
        guarantees: Vec::new(),
        budget: budget.map(|micros| Money::new(micros, eur())),
        spender: None,
        document: "".into(),
        idempotency: None,
    }
}

/// Price lists with every rule, dear enough for whole units to matter.
pub(crate) fn price_list() -> impl Strategy<Value = Pricing> {
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
pub(crate) fn wish() -> impl Strategy<Value = (u32, Seconds, i64, Seconds)> {
    (1..6_u32, 1..60_i64, 0..150_i64, 0..80_i64)
}

pub(crate) fn wished_request(
    (nodes, duration, start, slack): (u32, Seconds, i64, Seconds),
    budget: Option<i64>,
) -> Request {
    let window = Interval::of(Time(start), duration + slack);
    proposal(nodes, duration, window, budget)
}
