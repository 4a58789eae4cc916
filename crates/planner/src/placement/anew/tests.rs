//! By the published rule requests with sizes or cuts are decided as the laboratory's plain algorithm decides.

use std::collections::BTreeMap;

use advisor::adaptive_plan::{AdaptiveDecision, AdaptivePlan, AdaptiveRequest, Booking, Policy};
use domain::agreement::{Shape, Stretch};
use domain::resources::{Resource, Scaling};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use scheduler::moldable::{Law, Shapes, Sizes, WHOLE_PPM};
use scheduler::preemptive::{Piece, Preemption};
use scheduler::schedule::DecisionRule;
use scheduler::{Interval, Order, Time};
use uuid::Uuid;

use crate::commands::{BeginDue, Place};
use crate::tests::harness::{Domain, HORIZON, proposal, work};
use crate::{AlternativeSlot, Request, Settings};

const CAPACITY: u32 = 8;

/// A request of a random list.
#[derive(Debug, Clone)]
struct Asked {
    /// Since the one before.
    after: i64,
    nodes: u32,
    least: u32,
    duration: i64,
    ahead: i64,
    room: i64,
    cut: Option<(u32, bool)>,
}

impl Asked {
    fn shapes(&self) -> Vec<Shape> {
        let node_seconds = i64::from(self.nodes) * self.duration;
        let size = |nodes: u32| Shape {
            nodes,
            duration: (node_seconds + i64::from(nodes) - 1) / i64::from(nodes),
        };
        (self.least.min(self.nodes)..=self.nodes)
            .rev()
            .map(size)
            .collect()
    }

    fn cuts(&self) -> Option<Preemption> {
        let (pieces, independent) = self.cut?;
        let cut = Preemption::new(pieces, WHOLE_PPM / 4, independent).unwrap();
        Some(cut.whole_for(self.shapes().len()))
    }

    /// What may be cut begins after the last of the list has come: what has begun stays in the service, and in the laboratory the pieces stay
    /// that have begun.
    fn window(&self, now: i64, last: i64) -> (i64, i64) {
        let ready = self.ahead + if self.cut.is_some() { last + 1 } else { now };
        (ready, ready + self.duration + self.room)
    }

    fn request(&self, (from, until): (i64, i64)) -> Request {
        let make = if self.cut.is_some() { work } else { proposal };
        Request {
            shapes: self.shapes(),
            scaling: Scaling::ReferenceRate,
            preemption: self.cuts(),
            ..make(self.nodes, self.duration, (from, until))
        }
    }

    fn plain(&self, id: u64, (from, until): (i64, i64)) -> AdaptiveRequest {
        let table = self
            .shapes()
            .iter()
            .map(|shape| (shape.nodes, shape.duration))
            .collect();
        let shapes = Shapes::new(&Law::Table(table), 1..=self.nodes, &Sizes::Every).unwrap();
        let window = Interval::new(Time(from), Time(until));
        AdaptiveRequest::new(id, window, shapes, self.cuts().unwrap_or(Preemption::NONE)).unwrap()
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let size = (1..=CAPACITY + 2, 1..=CAPACITY, 8..40_i64);
    let times = (0..20_i64, 0..40_i64, 0..100_i64);
    let cut = proptest::option::weighted(0.4, (2..5_u32, any::<bool>()));
    (size, times, cut).prop_map(|((nodes, least, duration), (after, ahead, room), cut)| Asked {
        after,
        nodes,
        least,
        duration,
        ahead,
        room,
        cut,
    })
}

/// Eight nodes by the published rule, where nothing moves between requests.
fn published(policy: Policy) -> Domain {
    let mut settings = Settings::new(vec![Resource::new("local", "local", CAPACITY)], HORIZON);
    settings.improving.idle = false;
    settings.decision = DecisionRule::Published;
    if policy == Policy::Fifo {
        settings.order = Order::Fifo;
    }
    let mut domain = Domain::with(settings);
    domain.moves_up = false;
    domain
}

/// What happened in lists.
#[derive(Debug, Default)]
struct Seen {
    accepted: usize,
    refused: usize,
    /// Slots that refusals named.
    alternatives: usize,
    /// Acceptances for which others got other places or shapes.
    with_changes: usize,
}

/// Decides about a list by both, and compares every plan.
fn compare(list: &[Asked], policy: Policy, seen: &mut Seen) {
    let (mut domain, mut plan) = (published(policy), AdaptivePlan::new(CAPACITY, policy));
    let mut ids: BTreeMap<u64, Uuid> = BTreeMap::new();
    let last: i64 = list.iter().map(|asked| asked.after).sum();
    for (id, asked) in (0..).zip(list) {
        let now = domain.now + asked.after;
        while domain.now < now {
            domain.now += 1;
            domain.decide(|decider| decider.decide(BeginDue)).unwrap();
        }
        let has_shapes = |booking: &Booking| {
            let (request, first) = (&booking.request, &booking.pieces[0]);
            let waits = first.interval.start > Time(now);
            waits && (request.shapes().len() > 1 || request.preemption().pieces_max() > 1)
        };
        let window = asked.window(now, last);
        // Where nothing has other shapes, algorithm 1 of paper 000 decides.
        if asked.shapes().len() == 1 && asked.cut.is_none() && !plan.bookings().any(has_shapes) {
            continue;
        }
        let placed = domain.place(asked.request(window));
        match plan.submit(Time(now), asked.plain(id, window)) {
            AdaptiveDecision::Accepted { moved, .. } => {
                ids.insert(id, placed.unwrap().agreement.id);
                seen.accepted += 1;
                seen.with_changes += usize::from(!moved.is_empty());
            }
            AdaptiveDecision::Refused { .. } => {
                for alternative in placed.unwrap_err().alternatives {
                    take_alternative(&mut domain, asked, &alternative);
                    seen.alternatives += 1;
                }
                seen.refused += 1;
            }
        }
        for booking in plan.bookings() {
            let agreement = domain.of(ids[&booking.request.id()]);
            assert_eq!(agreement.slots.stretches(), joined(&booking.pieces), "{list:?}");
        }
        // What starts in this second begins before the next request comes.
        domain.decide(|decider| decider.decide(BeginDue)).unwrap();
        domain.check();
    }
    domain.check_rebuilt();
}

/// A slot that a refusal names can be had, in the size that it names.
fn take_alternative(domain: &mut Domain, asked: &Asked, alternative: &AlternativeSlot) {
    let Interval { start, end } = alternative.slot;
    let mut exact = Request {
        preemption: None,
        ..asked.request((start.seconds(), end.seconds()))
    };
    exact
        .shapes
        .retain(|shape| alternative.nodes.is_none_or(|nodes| nodes == shape.nodes));
    let taken = domain.decide(|decider| decider.try_out(|tried| tried.decide(Place(exact)).is_ok()));
    assert_eq!(taken, Ok(true), "{asked:?} at {alternative:?}");
}

/// The slots of pieces: those without a break on the same number of nodes are one.
fn joined(pieces: &[Piece]) -> Vec<Stretch> {
    let mut slots: Vec<Stretch> = Vec::new();
    for Piece { interval, nodes, .. } in pieces {
        match slots.last_mut() {
            Some((last, its)) if last.end == interval.start && its == nodes => last.end = interval.end,
            _ => slots.push((*interval, *nodes)),
        }
    }
    slots
}

fn compare_lists(lists: usize, policy: Policy) -> Seen {
    let mut runner = TestRunner::deterministic();
    let mut seen = Seen::default();
    for _ in 0..lists {
        let list = proptest::collection::vec(asked(), 4..16);
        compare(&list.new_tree(&mut runner).unwrap().current(), policy, &mut seen);
    }
    seen
}

#[test]
fn requests_with_sizes_or_cuts_are_decided_by_the_published_rule_as_in_the_laboratory() {
    let seen = compare_lists(120, Policy::MissingDeadlineFirst);
    assert!(
        seen.with_changes > 100 && seen.refused > 50 && seen.alternatives > 50,
        "{seen:?}"
    );
    let fifo = compare_lists(30, Policy::Fifo);
    assert!(fifo.with_changes == 0 && fifo.refused > 20, "{fifo:?}");
}

#[test]
#[ignore = "ten thousand lists take minutes"]
fn ten_thousand_lists_with_sizes_or_cuts_are_decided_as_in_the_laboratory() {
    for policy in [Policy::MissingDeadlineFirst, Policy::Fifo] {
        println!("{policy:?}: {:?}", compare_lists(10_000, policy));
    }
}
