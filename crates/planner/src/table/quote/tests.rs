//! Quotes for requests with a duration that follows from their size, compared with all places on small plans.

use domain::agreement::{
    Filter, Money, NegotiationInstance, NegotiationOffer, NegotiationRole, OfferKind, OfferState, Shape,
};
use domain::resources::Scaling;
use proptest::prelude::*;
use scheduler::refusal::Relaxation;
use scheduler::{Fraction, Interval, Seconds, Time};
use uuid::Uuid;

use crate::life::keep_offers;
use crate::table::ranking::rank_best_candidates;
use crate::tests::price_plan::{Domain, HORIZON, eur, price_list, proposal, wished_request};
use crate::{Candidate, OfferOrigin, Pricing, Quote, QuoteOffers, Request, Weights};

const NEGOTIATION: Uuid = Uuid::from_u128(1);
/// Seconds for which offers are held; every window begins later, so that none has to be kept open for it.
const HOLD: Seconds = 10;
/// The resources of the trial, in order.
const CAPACITIES: [u32; 2] = [3, 5];
const LARGEST: u32 = 5;

/// Some work that may have these sizes, in a window.
#[derive(Debug, Clone)]
struct WantedWork {
    work: i64,
    least: u32,
    most: u32,
    window: Interval,
    phi: Fraction,
}

impl WantedWork {
    fn duration(&self, nodes: u32) -> Seconds {
        ceil(self.work, nodes)
    }

    fn shapes(&self, nodes: impl Iterator<Item = u32>) -> Vec<Shape> {
        let shape = |nodes| Shape {
            nodes,
            duration: self.duration(nodes),
        };
        nodes.map(shape).collect()
    }

    fn ask(&self) -> QuoteOffers {
        let wanted = Request {
            shapes: self.shapes((self.least..=self.most).rev()),
            scaling: Scaling::ReferenceRate,
            deviation_max: Some(self.phi),
            ..proposal(1, 1, self.window, None)
        };
        let others = (1..=LARGEST).filter(|nodes| !(self.least..=self.most).contains(nodes));
        QuoteOffers {
            about: OfferOrigin::Negotiation(NEGOTIATION),
            proposal: wanted,
            others: Some(self.shapes(others)),
            weights: Weights::default(),
        }
    }

    /// φ as the documentation defines it.
    fn deviation(&self, nodes: u32, slot: Interval) -> f64 {
        let ratio = |part: i64, whole: i64| Fraction {
            numerator: u32::try_from(part.max(0)).unwrap(),
            denominator: u32::try_from(whole).unwrap(),
        };
        let (longest, shortest) = (self.duration(self.least), self.duration(self.most));
        let duration = slot.duration();
        let all = [
            ratio(self.window.start - slot.start, duration),
            ratio(slot.end - self.window.end, duration),
            ratio(i64::from(self.least) - i64::from(nodes), i64::from(self.least)),
            ratio(i64::from(nodes) - i64::from(self.most), i64::from(self.most)),
            ratio(duration - longest, longest),
            ratio(shortest - duration, shortest),
        ];
        let value = |fraction: Fraction| f64::from(fraction.numerator) / f64::from(fraction.denominator);
        all.into_iter().map(value).fold(0.0, f64::max)
    }
}

fn ceil(work: i64, nodes: u32) -> i64 {
    let nodes = i64::from(nodes);
    (work + nodes - 1) / nodes
}

fn asked() -> impl Strategy<Value = WantedWork> {
    (1..200_i64, 1..5_u32, 0..3_u32, 20..150_i64, 0..60_i64, 0..201_u32).prop_map(
        |(work, least, width, start, slack, phi)| {
            let most = (least + width).min(LARGEST);
            let longest = ceil(work, least);
            WantedWork {
                work,
                least,
                most,
                window: Interval::of(Time(start), longest + slack),
                phi: Fraction::percent(phi),
            }
        },
    )
}

/// Something long that hardly moves, so that little room is left: nodes, duration, start and slack.
fn taken() -> impl Strategy<Value = (u32, Seconds, i64, Seconds)> {
    (1..6_u32, 20..90_i64, 0..220_i64, 0..12_i64)
}

/// A domain with agreements, and a negotiation that goes on.
fn domain(pricing: &Pricing, taken: &[(u32, Seconds, i64, Seconds)]) -> (Domain, Vec<Uuid>) {
    let mut domain = Domain::new(pricing.clone());
    domain.settings.negotiation.hold = HOLD;
    domain.settings.refusals.alternatives_phi = Fraction::percent(10_000);
    let placed = taken.iter().filter_map(|wish| {
        let placed = domain.place(0, wished_request(*wish, None));
        placed.ok().map(|accepted| accepted.agreement.id)
    });
    let placed = placed.collect();
    domain.state.table.open(negotiation(None), []);
    (domain, placed)
}

/// The negotiation, perhaps about an agreement.
fn negotiation(agreement: Option<Uuid>) -> NegotiationInstance {
    NegotiationInstance {
        id: NEGOTIATION,
        party: "physics".into(),
        agreement,
        created: 0,
        expires: Time(HORIZON),
        ended: None,
        proposed: None,
    }
}

/// The nodes of each resource that agreements have at a second.
fn busy(domain: &Domain, placed: &[Uuid], second: Time) -> [u32; 2] {
    let mut busy = [0, 0];
    for agreement in placed.iter().filter_map(|id| domain.state.agreements.get(*id)) {
        if agreement.placement().contains(Interval::of(second, 1)) {
            busy[usize::from(agreement.resource == "large")] += agreement.nodes();
        }
    }
    busy
}

/// Whether a size has a place in a window while no agreement moves, found by trying all places.
fn fits(domain: &Domain, placed: &[Uuid], shape: Shape, window: Interval) -> bool {
    let starts = window.start.seconds()..=window.end.seconds() - shape.duration;
    starts.into_iter().any(|start| {
        let seconds = start..start + shape.duration;
        (0..2).any(|resource| {
            let free = |second| CAPACITIES[resource] - busy(domain, placed, Time(second))[resource];
            seconds.clone().all(|second| free(second) >= shape.nodes)
        })
    })
}

/// An offer of a candidate.
fn offer(candidate: &Candidate) -> NegotiationOffer {
    NegotiationOffer {
        id: Uuid::from_u128(3),
        negotiation: NEGOTIATION,
        name: "offer".into(),
        parent: Some(Uuid::from_u128(2)),
        creator: NegotiationRole::Responder,
        state: OfferState::Acceptable,
        created: 0,
        expires: Some(candidate.expires),
        terms: Some(candidate.terms.clone()),
        refusal: None,
        held: None,
        released: None,
        agreement: None,
    }
}

fn cost(one_candidate: &Candidate) -> i64 {
    one_candidate.terms.price.map_or(0, |price: Money| price.micros)
}

/// Each possible offer can be kept on an equal plan, and then no node is taken twice.
fn keep_each(pricing: &Pricing, taken: &[(u32, Seconds, i64, Seconds)], candidates: &[Candidate]) {
    for candidate in candidates {
        let (nodes, slot) = (candidate.terms.nodes(), candidate.terms.placement());
        let (mut after, placed) = domain(pricing, taken);
        let (held, _) = after.decide(0, |decider| keep_offers::hold(decider, &offer(candidate)));
        assert!(held, "{candidate:?}");
        let large = usize::from(candidate.terms.resource == "large");
        for second in slot.start.seconds()..slot.end.seconds() {
            let others = busy(&after, &placed, Time(second))[large];
            assert!(others + nodes <= CAPACITIES[large], "{candidate:?} at {second}");
        }
    }
}

/// Others move out of the way of an offer that may lie anywhere in its window. They do not move for an offer that may
/// lie only where it was found.
#[test]
fn what_is_offered_as_asked_where_others_move_can_be_kept() {
    let mut pricing = Pricing::flat(0, eur());
    pricing.resources.insert("small".into(), 800_000);
    pricing.profiles.insert("physics".into(), Fraction::percent(90));
    let taken = [
        (1, 22, 106, 0),
        (4, 38, 137, 8),
        (1, 20, 163, 0),
        (3, 22, 117, 6),
        (3, 20, 178, 5),
        (2, 76, 1, 0),
        (1, 31, 76, 0),
        (1, 28, 49, 0),
        (2, 42, 96, 7),
        (2, 20, 50, 0),
    ];
    let asked = WantedWork {
        work: 160,
        least: 2,
        most: 2,
        window: Interval::new(Time(39), Time(140)),
        phi: Fraction::percent(0),
    };
    let (mut before, _) = domain(&pricing, &taken);
    let (quote, _) = before.decide(0, |decider| decider.decide(asked.ask()));
    let candidates = quote.unwrap().candidates;
    let kinds: Vec<_> = candidates.iter().map(|candidate| candidate.terms.kind).collect();
    assert_eq!(kinds, [OfferKind::Exact]);
    keep_each(&pricing, &taken, &candidates);
}

/// The first resource is as good, and would be taken by a new request.
#[test]
fn a_change_stays_on_its_resource_where_that_is_as_good() {
    for (is_crowded, expected) in [(false, "large"), (true, "small")] {
        let mut domain = Domain::new(Pricing::flat(0, eur()));
        domain.settings.negotiation.hold = HOLD;
        let window = |end| Interval::new(Time(100), Time(end));
        let first = domain.place(0, proposal(3, 100, window(200), None)).unwrap();
        let own = domain
            .place(0, proposal(2, 50, window(150), None))
            .unwrap()
            .agreement;
        assert_eq!(own.resource, "large");
        if is_crowded {
            let next = Interval::new(Time(150), Time(200));
            domain.place(0, proposal(4, 50, next, None)).unwrap();
        }
        domain.terminate(0, first.agreement.id);
        domain.state.table.open(negotiation(Some(own.id)), []);
        let ask = QuoteOffers {
            about: OfferOrigin::Negotiation(NEGOTIATION),
            proposal: proposal(2, 100, window(200), None),
            others: None,
            weights: Weights::default(),
        };
        let (quote, _) = domain.decide(0, |decider| decider.decide(ask.clone()));
        let offered = &quote.unwrap().candidates[0].terms;
        assert_eq!(
            (offered.resource.as_str(), offered.placement()),
            (expected, window(200))
        );
    }
}

/// An extension that cannot be had is not answered by what its party has already.
#[test]
fn a_longer_time_is_offered_only_where_something_is_gained() {
    for (free_until, expected) in [(150, None), (175, Some(75))] {
        let mut domain = Domain::new(Pricing::flat(0, eur()));
        domain.settings.negotiation.hold = HOLD;
        let window = |start, end| Interval::new(Time(start), Time(end));
        let large = |request: Request| Request {
            filters: vec![Filter::of_resource("large")],
            ..request
        };
        let own = large(proposal(5, 50, window(100, 150), None));
        let own = domain.place(0, own).unwrap().agreement;
        let next = large(proposal(1, 200 - free_until, window(free_until, 200), None));
        domain.place(0, next).unwrap();
        domain.state.table.open(negotiation(Some(own.id)), []);
        let ask = QuoteOffers {
            about: OfferOrigin::Negotiation(NEGOTIATION),
            proposal: large(proposal(5, 100, window(100, 200), None)),
            others: None,
            weights: Weights::default(),
        };
        let (quote, _) = domain.decide(0, |decider| decider.decide(ask.clone()));
        let quote = quote.unwrap();
        let shorter = quote
            .candidates
            .iter()
            .find(|candidate| candidate.terms.kind == OfferKind::Shorter);
        assert_eq!(
            shorter.map(|shorter| shorter.terms.duration()),
            expected,
            "{quote:?}"
        );
        let relaxations = quote.refusal.into_iter().flat_map(|refusal| refusal.relaxations);
        let no_gain =
            |relaxation: &Relaxation| matches!(relaxation, Relaxation::Duration(duration) if *duration <= 50);
        assert!(!relaxations.into_iter().any(|relaxation| no_gain(&relaxation)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_offered_fits_nothing_dominates_it_and_what_fits_as_asked_is_offered_as_asked(
        pricing in price_list(),
        taken in prop::collection::vec(taken(), 4..30),
        asked in asked(),
    ) {
        let (mut before, placed) = domain(&pricing, &taken);
        let ask = asked.ask();
        let (quote, _) = before.decide(0, |decider| decider.decide(ask.clone()));
        let Quote {
            candidates, refusal, ..
        } = quote.expect("the negotiation goes on");
        prop_assert_eq!(candidates.is_empty(), refusal.is_some());
        let exact = ask.proposal.shapes.iter().any(|shape| fits(&before, &placed, *shape, asked.window));
        let kinds: Vec<_> = candidates.iter().map(|candidate| candidate.terms.kind).collect();
        if exact {
            prop_assert_eq!(&kinds[..], [OfferKind::Exact]);
        }
        let phi = f64::from(asked.phi.numerator) / f64::from(asked.phi.denominator);
        for candidate in &candidates {
            let (nodes, slot) = (candidate.terms.nodes(), candidate.terms.placement());
            prop_assert_eq!(slot.duration(), asked.duration(nodes));
            let expected = match candidate.terms.kind {
                OfferKind::Exact => nodes >= asked.least && nodes <= asked.most && asked.window.contains(slot),
                OfferKind::Fewer => nodes < asked.least && asked.window.contains(slot),
                OfferKind::More => nodes > asked.most && asked.window.contains(slot),
                OfferKind::Earlier => slot.start < asked.window.start,
                OfferKind::Later => slot.end > asked.window.end,
                OfferKind::Shorter | OfferKind::InPieces => false,
            };
            prop_assert!(expected, "{candidate:?}");
            let deviation = asked.deviation(nodes, slot);
            prop_assert!((candidate.terms.deviation - deviation).abs() < 1e-9, "{candidate:?} {deviation}");
            prop_assert!(deviation <= phi + 1e-9, "{candidate:?}");
        }
        keep_each(&pricing, &taken, &candidates);
        // Every other size that has a place is found, since there are few.
        for shape in ask.others.iter().flatten().filter(|_| kinds.first() != Some(&OfferKind::Exact)) {
            if shape.duration > asked.window.duration() {
                continue;
            }
            let first = Interval::of(asked.window.start, shape.duration);
            if asked.deviation(shape.nodes, first) <= phi && fits(&before, &placed, *shape, asked.window) {
                prop_assert!(candidates.iter().any(|candidate| candidate.terms.nodes() == shape.nodes), "{shape:?}");
            }
        }
        let best = rank_best_candidates(&candidates, ask.weights);
        prop_assert!(best.len() <= 6 && best.is_empty() == candidates.is_empty());
        let priced = best.iter().any(|best| best.terms.price.is_some());
        for (one, other) in best.iter().flat_map(|one| best.iter().map(move |other| (one, other))) {
            let better = one.terms.deviation < other.terms.deviation && cost(one) <= cost(other)
                || one.terms.deviation <= other.terms.deviation && cost(one) < cost(other);
            prop_assert!(!priced || !better, "{one:?} dominates {other:?}");
        }
    }
}
