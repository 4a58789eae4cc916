//! How many requests move for a newcomer, against the fewest that can.

use scheduler::schedule::DecisionRule;
use scheduler::{Decision, Order, Request, Schedule, Time};

const CAPACITY: u32 = 6;
/// Waiting requests at most.
const WAITING_MAX: usize = 8;
/// Lists that are tried.
const LISTS: u64 = 3_000;

/// Numbers from a seed (the finisher of splitmix64 on a counter).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) % end
    }

    fn request(&mut self, id: u64) -> Request {
        let mut up_to = |end: u64| i64::try_from(self.below(end)).expect("small");
        let (ready, duration, slack) = (1 + up_to(12), 1 + up_to(6), up_to(14));
        let nodes = 1 + u32::try_from(self.below(CAPACITY.into())).expect("small");
        Request {
            id,
            submitted: Time(0),
            ready: Time(ready),
            deadline: Time(ready + duration + slack),
            duration,
            nodes,
            revenue: 0,
        }
    }
}

/// Nodes in use at each second.
type Used = [u32; 40];

fn second(t: i64) -> usize {
    usize::try_from(t).expect("no time is negative")
}

fn fits(used: &Used, request: &Request, start: i64) -> bool {
    (start..start + request.duration).all(|t| used[second(t)] + request.nodes <= CAPACITY)
}

fn add(used: &mut Used, request: &Request, start: i64, takes: bool) {
    for t in start..start + request.duration {
        let seconds = &mut used[second(t)];
        *seconds = if takes {
            *seconds + request.nodes
        } else {
            *seconds - request.nodes
        };
    }
}

/// Whether all of these have places beside what is in use.
fn have_places(used: &mut Used, requests: &[Request]) -> bool {
    let Some((first, rest)) = requests.split_first() else {
        return true;
    };
    let last = (first.deadline - first.duration).seconds();
    (first.ready.seconds()..=last).any(|start| {
        if !fits(used, first, start) {
            return false;
        }
        add(used, first, start, true);
        let found = have_places(used, rest);
        add(used, first, start, false);
        found
    })
}

/// The fewest requests that have to move so that a newcomer has a place, if fewer than `below` do.
fn fewest_moves(plan: &[(Request, i64)], newcomer: &Request, below: usize) -> Option<usize> {
    (0..below).find(|count| {
        let sets = (0_u32..1 << plan.len()).filter(|set| set.count_ones() as usize == *count);
        sets.into_iter().any(|set| {
            let mut used = [0; 40];
            let mut lifted = vec![*newcomer];
            for (at, (request, start)) in plan.iter().enumerate() {
                if set >> at & 1 == 1 {
                    lifted.push(*request);
                } else {
                    add(&mut used, request, *start, true);
                }
            }
            have_places(&mut used, &lifted)
        })
    })
}

/// Decides about a newcomer by the standing rule and by algorithm 1. Answers how many moved, and how many had to.
fn moves_for(schedule: &mut Schedule, newcomer: &Request) -> Option<(usize, usize)> {
    let before: Vec<(Request, i64)> = schedule
        .waiting()
        .map(|request| {
            (
                *request,
                schedule
                    .placement(request.id)
                    .expect("it waits")
                    .slot
                    .start
                    .seconds(),
            )
        })
        .collect();
    let mut published = schedule.clone().deciding(DecisionRule::Published);
    let by_published = published.submit(Time(0), newcomer);
    let stands = schedule
        .tree()
        .earliest_fit(newcomer.nodes, newcomer.duration, newcomer.window());
    let Decision::Accepted { placement, moved } = schedule.submit(Time(0), newcomer) else {
        assert!(matches!(by_published, Decision::Refused { .. }), "{newcomer:?}");
        return None;
    };
    assert!(newcomer.window().contains(placement.slot));
    for (request, _) in &before {
        let kept = schedule
            .placement(request.id)
            .expect("no accepted request is lost");
        assert!(request.window().contains(kept.slot), "{request:?} at {kept:?}");
    }
    assert_eq!(stands.is_some(), moved.is_empty(), "{newcomer:?}");
    assert_eq!(schedule.fault(), None);
    let fewest = fewest_moves(&before, newcomer, moved.len()).unwrap_or(moved.len());
    Some((moved.len(), fewest))
}

/// On lists of up to eight, in all at most a twentieth more requests move than have to.
#[test]
fn few_more_requests_move_than_have_to() {
    let mut random = Random(43);
    let (mut moved, mut fewest, mut decided) = (0, 0, 0);
    for _ in 0..LISTS {
        let mut schedule = Schedule::new(CAPACITY, Order::Mdf).deciding(DecisionRule::Standing);
        for id in 0..16 {
            if schedule.waiting_count() == WAITING_MAX {
                break;
            }
            let newcomer = random.request(id);
            if let Some((some, least)) = moves_for(&mut schedule, &newcomer) {
                moved += some;
                fewest += least;
                decided += usize::from(some > 0);
            }
        }
    }
    println!("{decided} newcomers moved others: {moved} moves, at least {fewest} were needed");
    assert!(decided > 1_000, "only {decided} moved others");
    assert!(
        moved * 20 <= fewest * 21,
        "{moved} moves where {fewest} are enough"
    );
}

/// A newcomer that needs all nodes moves only the requests in its way, though they are many and the budget is small.
#[test]
fn a_wide_newcomer_moves_what_is_in_its_way() {
    const WAITING: i64 = 3_000;
    let mut schedule = Schedule::new(CAPACITY, Order::Mdf)
        .deciding(DecisionRule::Standing)
        .budgeted(Some(10_000));
    let narrow = Request {
        id: 0,
        submitted: Time(0),
        ready: Time(1),
        deadline: Time(20 * WAITING),
        duration: 10,
        nodes: 1,
        revenue: 0,
    };
    for id in 1..=WAITING.unsigned_abs() {
        schedule.submit(Time(0), &Request { id, ..narrow });
    }
    let wide = Request {
        duration: 200,
        nodes: CAPACITY,
        deadline: Time(201),
        ..narrow
    };
    let Decision::Accepted { moved, .. } = schedule.submit(Time(0), &wide) else {
        panic!("those in the way have other places")
    };
    assert_eq!(moved.len(), 20 * CAPACITY as usize);
}
