//! Work that is done in pieces: its places, compared with a search of the plan second by second, and its further course.

use domain::agreement::{Job, RunOutcome, Shape, Slot};
use domain::clock::MICROS_PER_SECOND;
use domain::resources::{NodeReport, NodeState, Reporter, Resource};
use proptest::prelude::*;
use scheduler::preemptive::{Preemption, Rounding};
use scheduler::{Interval, Seconds, Time};
use sizes::cut_to_size;
use uuid::Uuid;

use super::*;
use crate::life::reports;
use crate::resources::repair;
use crate::schedules::failures::Failures;
use crate::tests::harness::{Domain, proposal};
use crate::{Request, Terminate};

mod cluster;
mod other_resources;
mod sizes;
mod windows;

fn domain(resources: Vec<Resource>) -> Domain {
    let mut domain = Domain::new(resources);
    domain.settings.failures = Failures {
        repair: 10_000,
        settle: 0,
        taken_back_pays: true,
    };
    domain
}

fn local(name: &str, capacity: u32) -> Resource {
    Resource::new(name, "local", capacity)
}

/// Work that may be cut, at a number of thousandths, in a window.
fn cut(nodes: u32, duration: Seconds, (pieces, thousandths): (u32, u32), window: (i64, i64)) -> Request {
    let preemption = Preemption::new(pieces, thousandths * 1_000, false).unwrap();
    Request {
        preemption: Some(preemption.rounded(Rounding::Cuts)),
        job: Some(Job {
            application: "count".into(),
            arguments: Vec::new(),
            ..Job::default()
        }),
        ..proposal(nodes, duration, window)
    }
}

fn slots(agreement: &Agreement) -> Vec<(i64, i64)> {
    let times_of = |piece: &Slot| (piece.placement.start.seconds(), piece.placement.end.seconds());
    agreement.slots.pieces().iter().map(times_of).collect()
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap()
}

impl Domain {
    /// The earliest completion of work that may be cut on any resource, by a walk over each second: for each part of the
    /// work that can be done by then, in how many pieces at least.
    fn earliest_cut(&self, request: &Request) -> Option<Time> {
        let preemption = request.preemption?;
        let (parts, pieces_max) = (preemption.parts() as usize, preemption.pieces_max());
        let every_cut = pieces_max as usize >= parts;
        let groups: Vec<&[Shape]> = if preemption.independent() {
            vec![&request.shapes]
        } else {
            request.shapes.chunks(1).collect()
        };
        // Halves to even, of thousandths.
        let thousandths = |part: usize| {
            if part == parts {
                1_000
            } else {
                number(part) * (1_000 / number(parts))
            }
        };
        let second = |whole: Seconds, part: usize| {
            let (seconds, rest) = (
                whole * thousandths(part) / 1_000,
                whole * thousandths(part) % 1_000,
            );
            seconds + i64::from(rest > 500 || rest == 500 && seconds % 2 == 1)
        };
        let lasts = |whole: Seconds, from: usize, to: usize| {
            if preemption.independent() && request.shapes.len() > 1 {
                (whole * (thousandths(to) - thousandths(from)) + 999) / 1_000
            } else {
                second(whole, to) - second(whole, from)
            }
        };
        let window = (
            request.ready.unwrap().max(Time(self.now)),
            request.deadline.unwrap(),
        );
        let mut earliest = None;
        let resources = 0..self.settings.resources.len();
        for (at, sizes) in resources.flat_map(|at| groups.iter().map(move |sizes| (at, sizes))) {
            let resource = self.state.schedules.get(at)?;
            let (tree, from) = (
                resource.schedule.tree(),
                window.0.max(resource.schedule.now()).seconds(),
            );
            let able: Vec<&Shape> = sizes
                .iter()
                .filter(|size| size.nodes <= tree.capacity())
                .collect();
            let free = |nodes: u32, start: i64, length: i64| {
                (start..start + length).all(|at| tree.min_free(Interval::of(Time(at), 1)) >= nodes)
            };
            let length = usize::try_from((window.1.seconds() - from).max(0)).unwrap();
            // By second and by part, the fewest pieces.
            let mut fewest = vec![vec![u32::MAX; parts + 1]; length + 1];
            for now in 0..=length {
                fewest[now][0] = 0;
                for part in 0..=parts {
                    if now > 0 {
                        fewest[now][part] = fewest[now][part].min(fewest[now - 1][part]);
                    }
                    if fewest[now][part] >= pieces_max {
                        continue;
                    }
                    let last = if every_cut { parts.min(part + 1) } else { parts };
                    for (to, size) in (part + 1..=last).flat_map(|to| able.iter().map(move |able| (to, able)))
                    {
                        let lasts = lasts(size.duration, part, to);
                        let end = now + usize::try_from(lasts).unwrap();
                        if lasts > 0 && end <= length && free(size.nodes, from + number(now), lasts) {
                            fewest[end][to] = fewest[end][to].min(fewest[now][part] + 1);
                        }
                    }
                }
            }
            let end = fewest.iter().position(|fewest| fewest[parts] <= pieces_max);
            let end = end.map(|end| Time(from + number(end)));
            earliest = [earliest, end].into_iter().flatten().min();
        }
        earliest
    }
}

#[test]
fn work_is_cut_where_that_completes_it_earlier_and_not_otherwise() {
    let mut domain = domain(vec![local("local", 4)]);
    domain.place(proposal(3, 20, (10, 30))).unwrap();
    domain.place(proposal(3, 20, (40, 60))).unwrap();
    let agreement = domain.place(cut(2, 30, (3, 100), (0, 200))).unwrap().agreement;
    assert_eq!(slots(&agreement), [(0, 9), (30, 39), (60, 72)]);
    assert!(!agreement.fixed);
    domain.check();
    domain.check_rebuilt();
    let small = domain.place(cut(1, 30, (3, 100), (0, 200))).unwrap().agreement;
    assert_eq!(
        (small.placement().start, small.slots.pieces().len()),
        (Time(0), 0),
        "in one"
    );
    domain.check();
}

#[test]
fn a_piece_that_ends_early_gives_back_its_time_and_an_early_end_of_the_work_all_that_is_left() {
    let mut domain = domain(vec![local("local", 4)]);
    domain.place(proposal(4, 20, (10, 30))).unwrap();
    let agreement = domain.place(cut(4, 30, (3, 100), (0, 80))).unwrap().agreement;
    assert_eq!(slots(&agreement), [(0, 9), (30, 51)]);
    domain.begin(0);
    assert_eq!(domain.of(agreement.id).service, ServiceState::Processing);
    domain.now = 6;
    domain.end(agreement.id, RunOutcome::Checkpointed);
    let between = domain.of(agreement.id).clone();
    assert_eq!((between.service, between.slots_over()), (ServiceState::Idle, 1));
    assert_eq!(between.state, AgreementState::Observed);
    domain.check_rebuilt();
    let filler = domain.place(proposal(4, 3, (6, 9))).unwrap();
    assert_eq!(filler.agreement.placement().start, Time(6), "what it had left");
    domain.begin(30);
    assert_eq!(domain.of(agreement.id).service, ServiceState::Processing);
    domain.now = 35;
    domain.end(agreement.id, RunOutcome::Completed);
    assert!(!domain.known.contains_key(&agreement.id), "complete");
    assert_eq!(
        domain
            .place(proposal(4, 16, (35, 51)))
            .unwrap()
            .agreement
            .placement()
            .start,
        Time(35)
    );
}

#[test]
fn terminated_between_two_pieces_it_frees_those_to_come() {
    let mut domain = domain(vec![local("local", 4)]);
    domain.place(proposal(4, 20, (10, 30))).unwrap();
    let agreement = domain.place(cut(4, 30, (3, 100), (0, 80))).unwrap().agreement;
    domain.begin(0);
    domain.now = 9;
    domain.end(agreement.id, RunOutcome::Checkpointed);
    domain.now = 12;
    let ended = domain.decide(|decider| decider.decide(Terminate::of(agreement.id, None)));
    let ended = ended.unwrap();
    assert_eq!(
        (ended.state, ended.outcome),
        (AgreementState::Terminated, Some(RunOutcome::Terminated))
    );
    assert_eq!(ended.loads(), [(Interval::new(Time(0), Time(9)), 4)]);
    domain.place(proposal(4, 21, (30, 51))).unwrap();
    domain.check();
}

#[test]
fn a_piece_that_loses_its_nodes_goes_elsewhere_between_its_neighbours_or_ends_its_agreement() {
    let mut domain = domain(vec![local("local", 4)]);
    domain.place(proposal(3, 20, (10, 30))).unwrap();
    let later = domain.place(proposal(2, 10, (40, 50))).unwrap().agreement;
    let agreement = domain.place(cut(2, 30, (3, 100), (0, 200))).unwrap().agreement;
    assert_eq!(slots(&agreement), [(0, 9), (30, 51)]);
    domain.begin(0);
    domain.now = 9;
    domain.end(agreement.id, RunOutcome::Checkpointed);
    domain.begin(30);
    domain.now = 31;
    let moved = domain.place(cut(2, 30, (3, 100), (31, 200))).unwrap().agreement;
    assert_eq!(slots(&moved), [(31, 40), (50, 71)], "two nodes beside the others");
    domain.begin(31);
    domain.now = 40;
    domain.end(moved.id, RunOutcome::Checkpointed);
    domain.begin(40);
    // Nodes 0 and 1 are the first one's, and one node is left.
    domain.now = 45;
    domain.nodes_down(3);
    assert!(!domain.known.contains_key(&agreement.id), "it ran there");
    assert!(!domain.known.contains_key(&later.id) || !domain.known.contains_key(&moved.id));
    assert!(!domain.known.contains_key(&moved.id), "no two nodes are left");
    assert!(
        domain
            .told
            .iter()
            .any(|(id, line)| *id == moved.id && line.contains("piece 2"))
    );
}

#[test]
fn a_piece_that_loses_its_nodes_waits_until_others_are_free() {
    let mut domain = domain(vec![local("local", 4)]);
    domain.place(proposal(3, 20, (10, 30))).unwrap();
    let agreement = domain.place(cut(2, 30, (3, 100), (0, 200))).unwrap().agreement;
    let other = domain.place(proposal(2, 40, (30, 70))).unwrap().agreement;
    assert_eq!(slots(&agreement), [(0, 9), (30, 51)]);
    domain.now = 5;
    domain.begin(5);
    domain.now = 9;
    domain.end(agreement.id, RunOutcome::Checkpointed);
    // The highest nodes: the running work is on the lowest.
    let report = NodeReport {
        states: vec![NodeState::Up, NodeState::Up, NodeState::Up, NodeState::Drained],
        ..NodeReport::default()
    };
    domain
        .decide(|decider| repair::repair_nodes(decider, "local", Reporter::Operator, &report))
        .unwrap();
    domain.check();
    let after = domain.of(agreement.id);
    let rest = domain.known.contains_key(&other.id);
    assert!(
        rest || slots(after)[1] == (30, 51),
        "one of the two has made room"
    );
    assert!(slots(after)[1].0 >= 30 && after.duration == 30);
}

#[test]
fn a_piece_whose_time_has_passed_gets_another_before_the_next() {
    let mut domain = domain(vec![local("local", 4)]);
    domain.place(proposal(4, 20, (10, 30))).unwrap();
    let agreement = domain.place(cut(4, 30, (3, 100), (0, 200))).unwrap().agreement;
    domain.begin(0);
    domain.now = 9;
    domain.end(agreement.id, RunOutcome::Checkpointed);
    domain.begin(60);
    assert_eq!(slots(domain.of(agreement.id)), [(0, 9), (60, 81)]);
    domain.begin(60);
    assert_eq!(domain.of(agreement.id).service, ServiceState::Processing);
    // It could not start in time, and its window ends with it.
    let tight = domain.place(cut(4, 30, (3, 100), (82, 112))).unwrap().agreement;
    assert!(tight.slots.pieces().is_empty());
    domain.check_rebuilt();
}

/// The same where lost work is run again.
fn restarting(resources: Vec<Resource>) -> Domain {
    let mut domain = domain(resources);
    domain.settings.restarting = ["t".to_owned()].into();
    domain
}

#[test]
fn a_lost_piece_is_run_again_from_what_was_saved_and_those_after_it_follow() {
    let mut domain = restarting(vec![local("local", 4)]);
    domain.place(proposal(4, 20, (10, 30))).unwrap();
    let id = domain.place(cut(4, 30, (3, 100), (0, 200))).unwrap().agreement.id;
    assert_eq!(slots(domain.of(id)), [(0, 9), (30, 51)]);
    domain.begin(0);
    domain.now = 3;
    domain.end(id, RunOutcome::Lost);
    assert_eq!(
        slots(domain.of(id)),
        [(30, 39), (39, 60)],
        "before is no room for it"
    );
    assert_eq!(
        (domain.of(id).service, domain.of(id).restarts()),
        (ServiceState::NotReady, 1)
    );
    domain.check_rebuilt();
    domain.begin(30);
    domain.now = 39;
    domain.end(id, RunOutcome::Checkpointed);
    domain.begin(39);
    domain.now = 45;
    domain.end(id, RunOutcome::Lost);
    let again = domain.of(id);
    assert_eq!(slots(again), [(30, 39), (46, 67)], "what is saved stays");
    assert_eq!(
        (again.service, again.slots_over(), again.restarts()),
        (ServiceState::Idle, 1, 2)
    );
    let line = "it is run again from what piece 1 has saved, 7 seconds later";
    assert!(
        domain.told.iter().any(|(_, told)| told.ends_with(line)),
        "{:?}",
        domain.told
    );
    assert!(
        again.waits_to_run_again() && domain.state.life.running(&domain.state.agreements) == [again.clone()]
    );
    domain.check_rebuilt();
    domain.begin(46);
    domain.now = 67;
    domain.end(id, RunOutcome::Completed);
    assert!(!domain.known.contains_key(&id), "complete");
}

#[test]
fn a_lost_piece_that_has_room_before_the_next_leaves_that_where_it_is() {
    let mut domain = restarting(vec![local("local", 4)]);
    domain.place(proposal(4, 20, (5, 25))).unwrap();
    let id = domain.place(cut(4, 30, (3, 100), (0, 200))).unwrap().agreement.id;
    assert_eq!(slots(domain.of(id)), [(0, 3), (25, 52)]);
    domain.begin(0);
    domain.now = 1;
    domain.end(id, RunOutcome::Lost);
    assert_eq!(slots(domain.of(id)), [(2, 5), (25, 52)]);
    domain.check_rebuilt();
}

#[test]
fn a_piece_that_nobody_could_start_in_its_time_gets_another_whatever_its_template_says_of_losses() {
    let mut domain = domain(vec![local("local", 4)]);
    domain.place(proposal(4, 20, (10, 30))).unwrap();
    let id = domain.place(cut(4, 30, (3, 100), (0, 200))).unwrap().agreement.id;
    domain.begin(8);
    domain.never_started(id);
    assert_eq!(slots(domain.of(id)), [(30, 39), (39, 60)]);
    domain.begin(30);
    domain
        .decide(|decider| reports::record_reported_start(decider, id, 30 * MICROS_PER_SECOND, None))
        .unwrap();
    domain.now = 33;
    domain.end(id, RunOutcome::Lost);
    assert!(!domain.known.contains_key(&id), "what has run is not run again");
}

#[test]
fn a_lost_piece_without_a_place_in_its_window_ends_its_agreement_and_frees_all_that_is_left() {
    let mut domain = restarting(vec![local("local", 4)]);
    domain.place(proposal(4, 20, (10, 30))).unwrap();
    let id = domain.place(cut(4, 30, (3, 100), (0, 55))).unwrap().agreement.id;
    assert_eq!(slots(domain.of(id)), [(0, 9), (30, 51)]);
    domain.begin(0);
    domain.now = 3;
    domain.end(id, RunOutcome::Lost);
    assert!(!domain.known.contains_key(&id));
    domain.place(proposal(4, 25, (30, 55))).unwrap();
    domain.check_rebuilt();
}

/// The possible steps.
#[derive(Debug, Clone)]
enum Step {
    Rigid(u32, Seconds, i64, Seconds),
    Cut(u32, Seconds, (u32, u32), i64, Seconds),
    /// With sizes to choose from, each piece its own or all one.
    Sized((u32, u32), Seconds, (u32, u32), bool, i64),
    Wait(i64),
    End(usize, bool),
    Terminate(usize),
    Lose(usize),
    Down(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..5_u32, 1..25_i64, 0..60_i64, 0..40_i64).prop_map(|(n, d, s, w)| Step::Rigid(n, d, s, w)),
        5 => (1..5_u32, 8..25_i64, (2..5_u32, prop::sample::select(vec![200, 250, 500])), 0..30_i64, 0..90_i64)
            .prop_map(|(n, d, cut, s, w)| Step::Cut(n, d, cut, s, w)),
        4 => (
            (1..4_u32, 0..3_u32),
            4..16_i64,
            (2..5_u32, prop::sample::select(vec![200, 250, 500])),
            any::<bool>(),
            0..80_i64,
        )
            .prop_map(|((least, more), d, cut, each, w)| Step::Sized((least, (least + more).min(4)), d, cut, each, w)),
        4 => (1..12_i64).prop_map(Step::Wait),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(which, all)| Step::End(which, all)),
        1 => any::<usize>().prop_map(Step::Terminate),
        2 => any::<usize>().prop_map(Step::Lose),
        1 => (0..3_usize).prop_map(Step::Down),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// After any steps, no second has more nodes in use than there are. Pieces keep their order, their window and the
    /// agreed duration, and their places equal the ones found second by second.
    #[test]
    fn pieces_are_where_they_complete_first_and_stay_whole(
        steps in prop::collection::vec(step(), 1..30),
        again in any::<bool>(),
    ) {
        let mut domain = domain(vec![local("local", 4), local("other", 2)]);
        if again {
            domain.settings.restarting = ["t".to_owned()].into();
        }
        domain.settings.failures.repair = 40;
        for step in steps {
            match step {
                Step::Rigid(nodes, duration, start, slack) => {
                    let start = domain.now + start;
                    let _ = domain.place(proposal(nodes, duration, (start, start + duration + slack)));
                }
                Step::Cut(..) | Step::Sized(..) => {
                    let (asked, how) = match step {
                        Step::Cut(nodes, duration, how, start, slack) => {
                            let start = domain.now + start;
                            (cut(nodes, duration, how, (start, start + duration + slack)), how)
                        }
                        Step::Sized(sizes, duration, how, each, slack) => {
                            let window = (domain.now, domain.now + duration + slack);
                            (cut_to_size(sizes, duration, how, each, window), how)
                        }
                        _ => continue,
                    };
                    domain.decide(|_| ());
                    let (in_one, in_pieces) = (domain.earliest(&asked), domain.earliest_cut(&asked));
                    let earlier = in_pieces.filter(|end| in_one.is_none_or(|one| *end < one));
                    let placed = domain.place(asked);
                    match (earlier, placed) {
                        (Some(end), Ok(accepted)) => {
                            prop_assert_eq!(accepted.agreement.placement().end, end);
                            prop_assert!(accepted.agreement.slots.pieces().len() > 1);
                            prop_assert!(accepted.agreement.slots.pieces().len() <= how.0 as usize);
                            let alike = accepted.agreement.slots.pieces().iter().all(|piece| piece.nodes == accepted.agreement.nodes());
                            prop_assert!(alike || accepted.agreement.constraints.pieces_differ);
                            prop_assert!(accepted.moved.is_empty());
                        }
                        (Some(end), Err(refusal)) => prop_assert!(false, "{end}: {refusal}"),
                        (None, Ok(accepted)) => {
                            let cut = !accepted.agreement.slots.pieces().is_empty();
                            prop_assert!(!cut || in_one.is_none(), "others have moved only where they had to");
                        }
                        (None, Err(_)) => {}
                    }
                }
                Step::Wait(seconds) => {
                    let until = domain.now + seconds;
                    while domain.now < until {
                        domain.begin(domain.now + 1);
                        let over: Vec<_> = domain.known.values()
                            .filter(|agreement| agreement.service == ServiceState::Processing && agreement.slot().end <= Time(domain.now))
                            .map(|agreement| (agreement.id, agreement.has_more_slots()))
                            .collect();
                        for (id, more) in over {
                            domain.end(id, if more { RunOutcome::Checkpointed } else { RunOutcome::Completed });
                        }
                    }
                }
                Step::End(which, all) => {
                    let running: Vec<_> = domain.known.values()
                        .filter(|known| known.service == ServiceState::Processing).map(|known| known.id).collect();
                    if let Some(id) = running.get(which % running.len().max(1)) {
                        domain.end(*id, if all { RunOutcome::Completed } else { RunOutcome::Checkpointed });
                    }
                }
                Step::Lose(which) => {
                    let running: Vec<_> = domain.known.values()
                        .filter(|known| known.service == ServiceState::Processing).map(|known| known.id).collect();
                    if let Some(id) = running.get(which % running.len().max(1)) {
                        domain.end(*id, RunOutcome::Lost);
                    }
                }
                Step::Terminate(which) => {
                    let known: Vec<_> = domain.known.keys().copied().collect();
                    if let Some(id) = known.get(which % known.len().max(1)) {
                        domain.decide(|decider| decider.decide(Terminate::of(*id, None))).unwrap();
                    }
                }
                Step::Down(count) => domain.nodes_down(count),
            }
            domain.check();
            if domain.state.schedules.get(0).unwrap().nodes.is_plain() {
                domain.check_rebuilt();
            }
            for agreement in domain.known.values().filter(|known| !known.slots.pieces().is_empty()) {
                prop_assert!(agreement.slots.pieces().iter().all(|piece| agreement.window().contains(piece.placement)));
                let pairs = agreement.slots.pieces().iter().zip(agreement.slots.pieces().iter().skip(1));
                prop_assert!(pairs.into_iter().all(|(one, next)| one.occupied().end <= next.placement.start));
            }
        }
    }
}
