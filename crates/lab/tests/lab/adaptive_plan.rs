//! Whole sequences of adaptive requests: the decisions of a plain implementation, and the rules that must always hold.

use advisor::adaptive_plan::{
    AdaptiveDecision, AdaptivePlan, AdaptiveRequest, Booking, Policy, SEARCHES_MAX,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use scheduler::moldable::{Law, Shapes, Sizes};
use scheduler::preemptive::{Piece, Preemption};
use scheduler::{Interval, Reason, Time};
use std::cell::Cell;
use std::collections::BTreeMap;

#[path = "../../../scheduler/tests/scheduler/adaptive/plain.rs"]
mod plain;

use self::plain::{HORIZON, Plain};

const CAPACITY: u32 = 4;

/// The parts of a random request.
#[derive(Debug, Clone)]
struct Job {
    /// Since the submission before.
    gap: i64,
    /// From the submission on.
    ready: i64,
    /// Room in the window beyond the duration on most nodes.
    slack: i64,
    least: u32,
    most: u32,
    fastest: i64,
    preemption: Preemption,
}

impl Job {
    fn request(&self, id: u64, now: i64) -> AdaptiveRequest {
        let bounds = self.least.min(self.most)..=self.most;
        let shapes = Shapes::scaled(self.fastest, bounds, &Sizes::Every).expect("small numbers");
        let ready = now + self.ready;
        let deadline = (ready + self.fastest + self.slack).min(HORIZON);
        let window = Interval::new(Time(ready), Time(deadline));
        AdaptiveRequest::new(id, window, shapes, self.preemption).expect("few searches")
    }
}

fn jobs(preemptions: Vec<Preemption>) -> impl Strategy<Value = Vec<Job>> {
    let job = (
        0..4_i64,
        0..5_i64,
        0..22_i64,
        1..=CAPACITY,
        1..=CAPACITY,
        1..9_i64,
        prop::sample::select(preemptions),
    );
    let job = job.prop_map(|(gap, ready, slack, least, most, fastest, preemption)| Job {
        gap,
        ready,
        slack,
        least,
        most,
        fastest,
        preemption,
    });
    prop::collection::vec(job, 1..14)
}

fn cut(pieces_max: u32, interval_ppm: u32, independent: bool) -> Preemption {
    Preemption::new(pieces_max, interval_ppm, independent).expect("a possible cut")
}

/// Algorithm 1 of adaptive requests and missing deadline first by looking at every second, with every plan made from
/// nothing. Only for requests that are cut everywhere into pieces of their own size.
struct Naive {
    policy: Policy,
    accepted: BTreeMap<u64, (AdaptiveRequest, Vec<Piece>)>,
    /// How often an accepted request would have missed, so that the old plan stood.
    fallbacks: usize,
}

impl Naive {
    fn taken<'a>(pieces: impl Iterator<Item = &'a Piece>) -> Plain {
        let mut plain = Plain::new(CAPACITY);
        for piece in pieces {
            plain.take(piece.interval.start.0, piece.interval.duration(), piece.nodes);
        }
        plain
    }

    /// Adds the pieces still missing, or takes nothing.
    fn place(plain: &mut Plain, request: &AdaptiveRequest, now: i64, pieces: &mut Vec<Piece>) -> Option<()> {
        let parts = request.preemption().parts();
        for _ in u32::try_from(pieces.len()).ok()?..parts {
            let ended = pieces.last().map_or(0, |piece| piece.interval.end.0);
            let ready = now.max(request.window().start.0).max(ended);
            let mut best: Option<Piece> = None;
            for (nodes, _) in request.shapes().iter() {
                let work_ppm = 1_000_000 / parts;
                let duration = request.shapes().duration(nodes, work_ppm)?;
                let last = request.window().end.0 - duration;
                let start = (ready..=last).find(|start| plain.fits(*start, duration, nodes));
                if let Some(start) = start.filter(|s| best.is_none_or(|b| s + duration < b.interval.end.0)) {
                    let interval = Interval::of(Time(start), duration);
                    best = Some(Piece {
                        interval,
                        nodes,
                        work_ppm,
                    });
                }
            }
            let piece = best?;
            plain.take(piece.interval.start.0, piece.interval.duration(), piece.nodes);
            pieces.push(piece);
        }
        Some(())
    }

    fn anew(
        &self,
        now: i64,
        newcomer: &AdaptiveRequest,
    ) -> Option<BTreeMap<u64, (AdaptiveRequest, Vec<Piece>)>> {
        let mut next = self.accepted.clone();
        next.insert(newcomer.id(), (newcomer.clone(), Vec::new()));
        for (_, pieces) in next.values_mut() {
            pieces.retain(|piece| piece.interval.start.0 <= now);
        }
        let mut plain = Self::taken(next.values().flat_map(|(_, pieces)| pieces));
        let mut order: Vec<(i64, u64)> = next
            .values()
            .map(|(request, pieces)| {
                let parts = i64::from(request.preemption().parts());
                let left = parts - i64::try_from(pieces.len()).expect("few pieces");
                // D − CT − T·left/parts in twelfths of a second: no request has more than four parts.
                let (deadline, fastest) = (request.window().end.0, request.shapes().largest().1);
                ((deadline - now) * 12 - fastest * left * 12 / parts, request.id())
            })
            .collect();
        order.sort_unstable();
        for (_, id) in order {
            let (request, pieces) = next.get_mut(&id)?;
            Self::place(&mut plain, &request.clone(), now, pieces)?;
        }
        Some(next)
    }

    fn submit(&mut self, now: i64, request: &AdaptiveRequest) -> bool {
        if self.policy == Policy::MissingDeadlineFirst
            && let Some(next) = self.anew(now, request)
        {
            self.accepted = next;
            return true;
        }
        let mut plain = Self::taken(self.accepted.values().flat_map(|(_, pieces)| pieces));
        let mut pieces = Vec::new();
        let accepted = Self::place(&mut plain, request, now, &mut pieces).is_some();
        if accepted {
            self.fallbacks += usize::from(self.policy == Policy::MissingDeadlineFirst);
            self.accepted.insert(request.id(), (request.clone(), pieces));
        }
        accepted
    }
}

#[test]
fn decisions_and_pieces_are_those_of_the_plain_algorithm() {
    let cuts = vec![Preemption::NONE, cut(2, 500_000, true), cut(9, 250_000, true)];
    for policy in [Policy::Fifo, Policy::MissingDeadlineFirst] {
        let fallbacks = Cell::new(0);
        let outcome = TestRunner::new(ProptestConfig::with_cases(3_000)).run(&jobs(cuts.clone()), |jobs| {
            let mut plan = AdaptivePlan::new(CAPACITY, policy);
            let mut naive = Naive {
                policy,
                accepted: BTreeMap::new(),
                fallbacks: 0,
            };
            let mut now = 0;
            for (id, job) in (0..).zip(&jobs) {
                now += job.gap;
                let request = job.request(id, now);
                let accepted = naive.submit(now, &request);
                let decision = plan.submit(Time(now), request);
                prop_assert_eq!(matches!(decision, AdaptiveDecision::Accepted { .. }), accepted);
                for booking in plan.bookings() {
                    let (_, pieces) = &naive.accepted[&booking.request.id()];
                    prop_assert_eq!(&booking.pieces, pieces, "request {}", booking.request.id());
                }
            }
            fallbacks.set(fallbacks.get() + naive.fallbacks);
            Ok(())
        });
        outcome.unwrap();
        assert_eq!(
            fallbacks.get() > 0,
            policy == Policy::MissingDeadlineFirst,
            "{fallbacks:?}"
        );
    }
}

/// A booking keeps its window, its sizes, its cuts and the order of its pieces.
fn keeps_its_promise(booking: &Booking) {
    let (request, pieces) = (&booking.request, &booking.pieces);
    let mut ended = request.window().start;
    for piece in pieces {
        assert!(piece.interval.start >= ended, "{booking:?}");
        ended = piece.interval.end;
        let lasts = request.shapes().duration(piece.nodes, piece.work_ppm);
        assert_eq!(lasts, Some(piece.interval.duration()), "{booking:?}");
        assert!(request.preemption().independent() || piece.nodes == pieces[0].nodes);
    }
    assert!(ended <= request.window().end, "{booking:?}");
    assert!(pieces.len() <= request.preemption().pieces_max() as usize);
    let work: u32 = pieces.iter().map(|piece| piece.work_ppm).sum();
    assert_eq!(work, 1_000_000, "{booking:?}");
}

fn pieces_by_id(plan: &AdaptivePlan) -> BTreeMap<u64, Vec<Piece>> {
    plan.bookings()
        .map(|b| (b.request.id(), b.pieces.clone()))
        .collect()
}

/// Checks a change of the plan at `now` against the plan before: no request is lost, started pieces stay, exactly the `moved`
/// ones changed, and the slots are those of the pieces.
fn check_change(plan: &AdaptivePlan, before: &BTreeMap<u64, Vec<Piece>>, now: i64, moved: &[u64]) {
    plan.bookings().for_each(keeps_its_promise);
    let after = pieces_by_id(plan);
    for (id, old) in before {
        let complete = old.last().is_some_and(|piece| piece.interval.end.0 <= now);
        if complete {
            assert!(!after.contains_key(id));
            continue;
        }
        let new = &after[id];
        let started = old.iter().filter(|piece| piece.interval.start.0 <= now).count();
        assert_eq!(old[..started], new[..started], "started pieces stay");
        assert_eq!(moved.contains(id), old != new, "request {id}");
    }
    for second in now..HORIZON {
        let used: u32 = after
            .values()
            .flatten()
            .filter(|piece| (piece.interval.start.0..piece.interval.end.0).contains(&second))
            .map(|piece| piece.nodes)
            .sum();
        assert_eq!(
            plan.slots().min_free(Interval::of(Time(second), 1)) + used,
            CAPACITY,
            "second {second}"
        );
    }
}

fn drive(jobs: &[Job], policy: Policy) -> Vec<BTreeMap<u64, Vec<Piece>>> {
    let mut plan = AdaptivePlan::new(CAPACITY, policy);
    let mut history = Vec::new();
    let mut now = 0;
    for (id, job) in (0..).zip(jobs) {
        now += job.gap;
        let before = pieces_by_id(&plan);
        match plan.submit(Time(now), job.request(id, now)) {
            AdaptiveDecision::Accepted { pieces, moved } => {
                assert_eq!(plan.pieces(id), pieces);
                check_change(&plan, &before, now, &moved);
            }
            AdaptiveDecision::Refused { .. } => {
                assert!(plan.pieces(id).is_empty());
                check_change(&plan, &before, now, &[]);
            }
        }
        history.push(pieces_by_id(&plan));
    }
    history
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn every_accepted_request_keeps_its_promise_whatever_comes(jobs in jobs(vec![
        Preemption::NONE,
        cut(2, 250_000, true),
        cut(3, 200_000, false),
        cut(4, 250_000, false),
        cut(4, 250_000, true),
        cut(2, 300_000, true),
    ])) {
        for policy in [Policy::Fifo, Policy::MissingDeadlineFirst] {
            let history = drive(&jobs, policy);
            prop_assert_eq!(history, drive(&jobs, policy), "the same inputs give the same plan");
        }
    }
}

fn rigid(id: u64, window: (i64, i64), nodes: u32, duration: i64) -> AdaptiveRequest {
    let shapes = Shapes::rigid(nodes, duration).expect("a possible shape");
    let window = Interval::new(Time(window.0), Time(window.1));
    AdaptiveRequest::new(id, window, shapes, Preemption::NONE).expect("one search")
}

#[test]
fn a_refusal_says_what_no_empty_resource_could_change() {
    let mut plan = AdaptivePlan::new(CAPACITY, Policy::MissingDeadlineFirst);
    let mut reason = |request: AdaptiveRequest| match plan.submit(Time(100), request) {
        AdaptiveDecision::Refused { reason, .. } => Some(reason),
        AdaptiveDecision::Accepted { .. } => None,
    };
    assert_eq!(
        reason(rigid(0, (100, 900), 5, 10)),
        Some(Reason::SizeExceedsCapacity)
    );
    assert_eq!(
        reason(rigid(1, (100, 109), 4, 10)),
        Some(Reason::WindowContradictory)
    );
    assert_eq!(reason(rigid(2, (50, 109), 4, 10)), Some(Reason::WindowInThePast));
    assert_eq!(reason(rigid(3, (100, 110), 4, 10)), None);
    assert_eq!(
        reason(rigid(4, (90, 110), 1, 10)),
        Some(Reason::NoCapacityInWindow)
    );
}

#[test]
fn what_would_take_too_many_searches_is_not_a_request() {
    let law = Law::Linear { k: 1e6, c: 1.0 };
    let request = |most, preemption| {
        let shapes = Shapes::new(&law, 1..=most, &Sizes::Every).unwrap();
        AdaptiveRequest::new(0, Interval::new(Time(0), Time(1 << 30)), shapes, preemption).is_some()
    };
    assert!(request(10_000, cut(10, 100_000, true)));
    assert!(!request(10_000, cut(11, 90_910, true)));
    assert!(cut(50, 10_000, true).searches_max(1) > SEARCHES_MAX);
    assert!(request(10_000, Preemption::NONE));
}
