//! The rest of work that is not over: where it goes, in virtual time, and that its plan stays whole.

use std::collections::BTreeMap;

use domain::agreement::{Currency, Job, Money, Slot, Slots};
use domain::resources::Resource;
use proptest::prelude::*;
use scheduler::preemptive::{Preemption, Rounding};
use uuid::Uuid;

use super::*;
use crate::resources::repair;
use crate::schedules::failures::Failures;
use crate::tests::harness::{Domain, HORIZON, proposal};
use crate::{Overruns, Request, State, Terminate};

/// Four nodes. An application has two seconds to save its work, and may have half as long again as was agreed.
fn domain() -> Domain {
    let mut domain = Domain::new(vec![Resource::new("local", "local", 4)]);
    domain.settings.failures = Failures {
        repair: 10_000,
        settle: 0,
        taken_back_pays: true,
    };
    domain.settings.overruns = Overruns {
        percent: 50,
        saving: BTreeMap::from([(("count".to_owned(), None), 2)]),
        ..Overruns::default()
    };
    domain.state.life.set_overruns(&domain.settings.overruns);
    domain
}

fn job(application: &str) -> Job {
    Job {
        application: application.into(),
        ..Job::default()
    }
}

fn counting(nodes: u32, duration: Seconds, window: (i64, i64)) -> Request {
    Request {
        job: Some(job("count")),
        ..proposal(nodes, duration, window)
    }
}

fn slots(agreement: &Agreement) -> Vec<(i64, i64)> {
    let pieces = agreement.slots.pieces().iter().map(|piece| piece.placement);
    pieces
        .map(|slot| (slot.start.seconds(), slot.end.seconds()))
        .collect()
}

impl Domain {
    fn lines(&self, id: Uuid) -> Vec<&str> {
        let own = self.told.iter().filter(|(told, _)| *told == id);
        own.map(|(_, line)| line.as_str()).collect()
    }

    fn place_one(&mut self, request: Request) -> Uuid {
        self.place(request).unwrap().agreement.id
    }
}

/// Work from 0 to 40 with the nodes taken until 60, when it is known that it is not over.
fn saved(deadline: i64) -> (Domain, Uuid) {
    let mut domain = domain();
    let id = domain.place_one(counting(4, 40, (0, deadline)));
    domain.place_one(proposal(4, 20, (40, 60)));
    domain.begin(0);
    domain.pass_until(32);
    assert_eq!(slots(domain.of(id)), []);
    domain.pass_until(33);
    (domain, id)
}

#[test]
fn the_rest_of_work_that_is_not_over_goes_on_after_those_who_have_its_nodes() {
    let (mut domain, id) = saved(200);
    let agreement = domain.of(id);
    assert_eq!(slots(agreement), [(0, 40), (60, 80)], "all that it may have");
    assert_eq!((agreement.deadline, agreement.duration), (Time(200), 40));
    assert_eq!((agreement.overrun(), agreement.used_overrun()), (20, 0));
    let line = "its work is not over, and its nodes are promised to others: it saves itself in the last 2 seconds of its \
                slot, and the rest goes on 20 seconds after that as piece 2, for 20 seconds";
    assert_eq!(domain.lines(id).last(), Some(&line));
    domain.check_rebuilt();
    domain.pass_until(39);
    domain.end(id, RunOutcome::Checkpointed);
    assert_eq!(domain.of(id).service, ServiceState::Idle);
    domain.check_rebuilt();
    domain.pass_until(60);
    assert_eq!(domain.of(id).service, ServiceState::Processing);
    domain.pass_until(70);
    domain.end(id, RunOutcome::Completed);
    assert!(!domain.known.contains_key(&id), "complete");
    domain.place_one(proposal(4, 10, (70, 80)));
}

#[test]
fn what_it_has_used_beyond_its_contract_is_what_its_pieces_have_had() {
    let (mut domain, id) = saved(200);
    domain.pass_until(39);
    let mut agreement = domain.of(id).clone();
    agreement.end_slot(39_000_000);
    assert_eq!(agreement.used_overrun(), 0);
    agreement.slots[1].ended = Some(70_000_000);
    assert_eq!(agreement.used_overrun(), 9);
    agreement.slots[1].ended = Some(90_000_000);
    assert_eq!(agreement.used_overrun(), 19);
}

#[test]
fn what_is_beyond_a_contract_costs_by_the_nodes_that_it_has() {
    let (domain, id) = saved(200);
    let mut agreement = domain.of(id).clone();
    agreement.price = Some(Money::new(4_000, Currency::parse("EUR").unwrap()));
    let micros = |money: Option<Money>| money.unwrap().micros;
    let used = |agreement: &Agreement| (agreement.used_overrun(), micros(agreement.overrun_price()));
    assert_eq!(micros(agreement.price_of_more(20)), 2_000);
    // Twenty seconds with four nodes, and twenty with one, were agreed for as much.
    let slots = [(-30, -10, 4), (0, 20, 1)];
    let slots =
        slots.map(|(start, end, nodes)| Slot::planned((Interval::new(Time(start), Time(end)), nodes)));
    let rest = agreement.slots[1];
    agreement.slots = Slots::of(slots.into_iter().chain([rest]).collect()).unwrap();
    assert_eq!(micros(agreement.price_of_more(20)), 3_200);
    for (piece, ended) in agreement.slots.iter_mut().zip([-10, 20, 80]) {
        piece.ended = Some(ended * 1_000_000);
    }
    assert_eq!(used(&agreement), (20, 3_200));
    agreement.slots[2].ended = Some(65_000_000);
    assert_eq!(used(&agreement), (5, 800));
}

#[test]
fn a_piece_of_another_size_changes_what_was_agreed_and_one_that_was_added_does_not() {
    let (domain, id) = saved(200);
    let mut agreement = domain.of(id).clone();
    agreement.place_slot(0, (Interval::new(Time(0), Time(50)), 3));
    assert_eq!(
        (agreement.duration, agreement.overrun(), agreement.nodes()),
        (50, 20, 4)
    );
    agreement.place_slot(1, (Interval::new(Time(190), Time(215)), 4));
    assert_eq!((agreement.duration, agreement.overrun()), (50, 25));
    assert_eq!(agreement.deadline, Time(215), "what is added is not late");
    let without = agreement.without_rest();
    assert_eq!(
        (without.placement(), without.nodes()),
        (Interval::new(Time(0), Time(50)), 3)
    );
    assert_eq!((slots(&without), without.overrun()), (vec![], 0));
}

#[test]
fn others_make_room_for_the_rest_inside_its_window() {
    let mut domain = domain();
    let id = domain.place_one(counting(4, 40, (0, 80)));
    domain.place_one(proposal(4, 10, (40, 50)));
    let flexible = domain.place_one(proposal(4, 15, (50, 300)));
    domain.begin(0);
    domain.pass_until(33);
    assert_eq!(slots(domain.of(id)), [(0, 40), (50, 70)]);
    assert_eq!(domain.of(flexible).placement().start, Time(70));
    domain.check_rebuilt();
}

#[test]
fn the_rest_is_shorter_where_there_is_no_more_room_in_its_window_and_saved_again() {
    let mut domain = domain();
    let id = domain.place_one(counting(4, 40, (0, 75)));
    domain.place_one(proposal(4, 10, (40, 50)));
    domain.place_one(proposal(4, 13, (62, 75)));
    domain.place_one(proposal(4, 5, (75, 80)));
    domain.begin(0);
    domain.pass_until(33);
    assert_eq!(slots(domain.of(id)), [(0, 40), (50, 60)]);
    domain.pass_until(40);
    domain.end(id, RunOutcome::Checkpointed);
    domain.pass_until(59);
    // First as long as there is room, then beyond its window: it is owed no less for that.
    let agreement = domain.of(id);
    assert_eq!(slots(agreement), [(0, 40), (50, 62), (80, 88)]);
    assert_eq!(agreement.deadline, Time(88));
    assert_eq!(agreement.overrun(), 20, "and no more than is allowed");
    domain.check_rebuilt();
    domain.pass_until(62);
    domain.end(id, RunOutcome::Checkpointed);
    domain.pass_until(87);
    assert_eq!(slots(domain.of(id)).len(), 3);
    assert!(
        domain
            .lines(id)
            .last()
            .unwrap()
            .contains("all that its template allows")
    );
}

#[test]
fn where_there_is_no_other_place_it_goes_on_if_its_nodes_become_free_and_else_ends_with_its_slot() {
    for free in [true, false] {
        let mut domain = domain();
        let id = domain.place_one(counting(4, 40, (0, 100)));
        domain.begin(0);
        domain.pass_until(30);
        let horizon = 30 + HORIZON;
        let other = domain.place_one(proposal(4, horizon - 40, (40, horizon)));
        domain.pass_until(34);
        assert_eq!(slots(domain.of(id)), []);
        if free {
            domain
                .decide(|decider| decider.decide(Terminate::of(other, None)))
                .unwrap();
        }
        domain.pass_until(35);
        let last = *domain.lines(id).last().unwrap();
        if free {
            assert_eq!(domain.of(id).placement().end, Time(50), "{last}");
        } else {
            assert_eq!(
                last,
                "its work is not over, and its slot ends: its nodes are promised to others, and there is no other place for \
                 the rest of its work"
            );
        }
        domain.check_rebuilt();
    }
}

#[test]
fn no_slot_goes_on_after_its_agreement_expires() {
    for taken in [false, true] {
        let mut domain = domain();
        let expiring = Request {
            expires: Some(Time(45)),
            ..counting(4, 40, (0, 45))
        };
        let id = domain.place_one(expiring);
        domain.begin(0);
        if taken {
            domain.place_one(proposal(4, 20, (40, 60)));
        }
        domain.pass_until(44);
        let last = *domain.lines(id).last().unwrap();
        if taken {
            assert_eq!(domain.of(id).placement().end, Time(40), "{last}");
            assert_eq!(slots(domain.of(id)), [], "the rest would be too late");
        } else {
            assert_eq!(domain.of(id).placement().end, Time(45), "{last}");
            assert!(last.contains("its slot ends: it expires"), "{last}");
        }
        domain.check_rebuilt();
    }
}

#[test]
fn work_is_saved_on_a_cluster_too_and_ends_with_its_slot_where_its_application_cannot() {
    for (kind, application) in [("slurm", "count"), ("slurm", "other"), ("local", "other")] {
        let mut domain = domain();
        domain.settings.resources = vec![Resource::new("local", kind, 4)];
        domain.state = State::rebuild(
            &domain.settings,
            &domain.settings.resources,
            Vec::new(),
            Vec::new(),
            Time(0),
        )
        .unwrap();
        let id = domain.place_one(Request {
            job: Some(job(application)),
            ..counting(4, 40, (0, 200))
        });
        domain.place_one(proposal(4, 20, (40, 60)));
        domain.begin(0);
        domain.pass_until(39);
        if application == "count" {
            assert_eq!(slots(domain.of(id)), [(0, 40), (60, 80)]);
        } else {
            assert_eq!(slots(domain.of(id)), []);
            let last = "its work is not over, and its slot ends: its nodes are promised to others";
            assert_eq!(domain.lines(id).last(), Some(&last));
        }
    }
}

#[test]
fn work_that_ends_before_it_saves_itself_gives_the_place_of_the_rest_back() {
    for outcome in [RunOutcome::Completed, RunOutcome::Killed] {
        let (mut domain, id) = saved(200);
        domain.pass_until(36);
        domain.end(id, outcome);
        assert!(!domain.known.contains_key(&id));
        domain.place_one(proposal(4, 20, (60, 80)));
        domain.check_rebuilt();
    }
}

#[test]
fn the_last_piece_of_work_that_was_cut_is_made_longer_or_gets_one_more() {
    for taken in [false, true] {
        let mut domain = domain();
        domain.place_one(proposal(4, 20, (20, 40)));
        let preemption = Preemption::new(2, 500_000, false).unwrap();
        let id = domain.place_one(Request {
            preemption: Some(preemption.rounded(Rounding::Cuts)),
            ..counting(4, 40, (0, 200))
        });
        if taken {
            domain.place_one(proposal(4, 10, (60, 70)));
        }
        domain.begin(0);
        domain.pass_until(20);
        assert_eq!(
            slots(domain.of(id)),
            [(0, 20), (40, 60)],
            "the first ends as it was planned"
        );
        domain.end(id, RunOutcome::Checkpointed);
        domain.pass_until(53);
        let expected: &[(i64, i64)] = if taken {
            &[(0, 20), (40, 60), (70, 90)]
        } else {
            &[(0, 20), (40, 70)]
        };
        assert_eq!(slots(domain.of(id)), expected);
        domain.check_rebuilt();
    }
}

#[test]
fn lost_before_it_was_saved_it_is_run_again_as_it_was_agreed() {
    let mut domain = domain();
    domain.settings.restarting = ["t".to_owned()].into();
    let id = domain.place_one(counting(4, 40, (0, 200)));
    domain.place_one(proposal(4, 20, (40, 60)));
    domain.begin(0);
    domain.pass_until(35);
    assert_eq!(slots(domain.of(id)), [(0, 40), (60, 80)]);
    domain.end(id, RunOutcome::Lost);
    let again = domain.of(id);
    assert_eq!(
        (slots(again), again.placement()),
        (vec![], Interval::new(Time(60), Time(100)))
    );
    assert_eq!((again.service, again.restarts()), (ServiceState::NotReady, 1));
    domain.check_rebuilt();
    domain.pass_until(60);
    assert_eq!(domain.of(id).service, ServiceState::Processing);
}

#[test]
fn a_lost_rest_is_run_again_from_what_was_saved_also_beyond_its_deadline() {
    let (mut domain, id) = saved(40);
    domain.settings.restarting = ["t".to_owned()].into();
    assert_eq!(domain.of(id).deadline, Time(80));
    assert!(
        domain
            .lines(id)
            .last()
            .unwrap()
            .ends_with("its deadline moves along")
    );
    domain.pass_until(40);
    domain.end(id, RunOutcome::Checkpointed);
    domain.pass_until(65);
    domain.end(id, RunOutcome::Lost);
    assert_eq!(slots(domain.of(id)), [(0, 40), (66, 86)]);
    assert_eq!(domain.of(id).deadline, Time(86));
    domain.check_rebuilt();
}

#[test]
fn a_rest_that_loses_its_nodes_goes_elsewhere_or_leaves_it_at_what_was_agreed() {
    // Between the two, and while the first runs on the nodes that stay.
    for between in [true, false] {
        let mut domain = domain();
        let id = domain.place_one(counting(2, 40, (0, 100)));
        domain.place_one(proposal(2, 40, (0, 40)));
        domain.place_one(proposal(2, 20, (40, 60)));
        domain.place_one(proposal(2, 20, (40, 60)));
        domain.begin(0);
        domain.pass_until(33);
        assert_eq!(slots(domain.of(id)), [(0, 40), (60, 80)]);
        let horizon = 33 + HORIZON;
        domain.place_one(proposal(2, horizon - 60, (60, horizon)));
        if between {
            domain.pass_until(40);
            domain.end(id, RunOutcome::Checkpointed);
            domain.pass_until(45);
        }
        // Half of the nodes fail: the ones that it does not have.
        domain.nodes_up(2);
        if between {
            assert!(!domain.known.contains_key(&id), "with what it has saved");
            assert_eq!(domain.executions.last().map(|one| one.ended), Some(40_000_000));
        } else {
            let agreement = domain.of(id);
            assert_eq!(
                (slots(agreement), agreement.service),
                (vec![], ServiceState::Processing)
            );
            assert_eq!(agreement.placement(), Interval::new(Time(0), Time(40)));
            domain.check_numbers();
        }
        let lines = domain.lines(id).concat();
        assert!(
            lines.contains("there is no other place for the rest of its work"),
            "{lines}"
        );
    }
}

impl Domain {
    /// Leaves the first nodes up, and drains the others for ever.
    fn nodes_up(&mut self, count: usize) {
        use domain::resources::{NodeReport, NodeState, Reporter};

        let mut states = vec![NodeState::Drained; 4];
        states[..count].fill(NodeState::Up);
        self.settings.failures.repair = HORIZON * 2;
        let report = NodeReport {
            states,
            ..NodeReport::default()
        };
        self.decide(|decider| repair::repair_nodes(decider, "local", Reporter::Operator, &report))
            .unwrap();
        self.check();
    }

    /// Each agreement is known by its own numbers, and by no others.
    fn check_numbers(&self) {
        let mut seen = 0;
        for agreement in self.known.values() {
            let numbers = self.state.placement.numbers_of(agreement.id);
            assert_eq!(numbers.len(), agreement.slots.len());
            for (index, number) in numbers.iter().enumerate() {
                let slot = self
                    .state
                    .placement
                    .slot_by_number(&self.state.agreements, *number)
                    .map(|(slot_by_number, index)| (slot_by_number.id, index));
                assert_eq!(slot, Some((agreement.id, index)));
                seen += 1;
            }
        }
        let all = (0..self.state.placement.next_number()).filter(|number| {
            self.state
                .placement
                .slot_by_number(&self.state.agreements, *number)
                .is_some()
        });
        assert_eq!(all.count(), seen);
    }
}

/// The possible steps.
#[derive(Debug, Clone)]
enum Step {
    Place(u32, Seconds, i64, Seconds, bool),
    Cut(u32, Seconds, i64, Seconds),
    Wait(i64),
    End(usize, RunOutcome),
    Terminate(usize),
    Down(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let outcomes = vec![RunOutcome::Completed, RunOutcome::Killed, RunOutcome::Lost];
    prop_oneof![
        6 => (1..5_u32, 1..40_i64, 0..40_i64, 0..80_i64, any::<bool>())
            .prop_map(|(n, d, s, w, saves)| Step::Place(n, d, s, w, saves)),
        2 => (1..5_u32, 12..40_i64, 0..30_i64, 0..90_i64).prop_map(|(n, d, s, w)| Step::Cut(n, d, s, w)),
        5 => (1..25_i64).prop_map(Step::Wait),
        1 => (any::<usize>(), prop::sample::select(outcomes)).prop_map(|(which, how)| Step::End(which, how)),
        1 => any::<usize>().prop_map(Step::Terminate),
        1 => (0..3_usize).prop_map(Step::Down),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// After any steps, no agreement has more than it is allowed, no second has more nodes in use than there are, and the
    /// plan equals the rebuilt one.
    #[test]
    fn work_that_is_never_over_has_what_is_allowed_and_no_more(
        steps in prop::collection::vec(step(), 1..30),
        again in any::<bool>(),
    ) {
        let mut domain = domain();
        if again {
            domain.settings.restarting = ["t".to_owned()].into();
        }
        domain.settings.failures.repair = 40;
        for step in steps {
            let running = |domain: &Domain| -> Vec<Uuid> {
                let runs = domain.known.values().filter(|known| known.service == ServiceState::Processing);
                runs.map(|run| run.id).collect()
            };
            match step {
                Step::Place(nodes, duration, start, slack, saves) => {
                    let start = domain.now + start;
                    let job = job(if saves { "count" } else { "other" });
                    let _ = domain.place(Request {
                        job: Some(job),
                        ..proposal(nodes, duration, (start, start + duration + slack))
                    });
                }
                Step::Cut(nodes, duration, start, slack) => {
                    let start = domain.now + start;
                    let preemption = Preemption::new(3, 250_000, false).unwrap();
                    let _ = domain.place(Request {
                        preemption: Some(preemption.rounded(Rounding::Cuts)),
                        ..counting(nodes, duration, (start, start + duration + slack))
                    });
                }
                Step::Wait(seconds) => {
                    let until = domain.now + seconds;
                    while domain.now < until {
                        domain.pass_until(domain.now + 1);
                        for id in running(&domain) {
                            let one_agreement = domain.of(id);
                            if one_agreement.slot().end <= Time(domain.now) {
                                let more = one_agreement.has_more_slots();
                                domain.end(id, if more { RunOutcome::Checkpointed } else { RunOutcome::Killed });
                            }
                        }
                    }
                }
                Step::End(which, outcome) => {
                    let running = running(&domain);
                    if let Some(id) = running.get(which % running.len().max(1)) {
                        domain.end(*id, outcome);
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
            domain.check_numbers();
            if domain.state.schedules.get(0).unwrap().nodes.is_plain() {
                domain.check_rebuilt();
            }
            for agreement in domain.known.values() {
                let pairs = agreement.slots.pieces().iter().zip(agreement.slots.pieces().iter().skip(1));
                prop_assert!(pairs.into_iter().all(|(one, next)| one.placement.end <= next.placement.start));
            }
        }
    }
}

#[test]
fn a_rest_that_is_lost_leaves_what_was_agreed_as_it_was_had() {
    let (mut domain, id) = saved(200);
    domain.pass_until(39);
    domain.end(id, RunOutcome::Checkpointed);
    domain.pass_until(60);
    domain.pass_until(70);
    assert_eq!(domain.of(id).service, ServiceState::Processing);
    let mut rest = domain.of(id).clone();
    let mut first = rest.clone();
    first.slots[0].ended = None;
    assert_eq!(
        (rest.lose(), first.lose()),
        (RunOutcome::Killed, RunOutcome::Lost)
    );
    rest.end_slot(70_000_000);
    assert_eq!(rest.used_overrun(), 0, "what was lost is not paid");
    domain.end(id, RunOutcome::Lost);
    assert!(!domain.known.contains_key(&id), "over");
    assert!(
        domain
            .lines(id)
            .iter()
            .any(|line| line.contains("gone without a trace")),
        "{:?}",
        domain.lines(id)
    );
}

#[test]
fn who_gives_up_his_rest_has_the_deadline_that_was_agreed() {
    let (domain, id) = saved(50);
    let agreement = domain.of(id);
    assert!(agreement.deadline > Time(50), "it has moved along: {agreement:?}");
    let without = agreement.without_rest();
    assert_eq!((without.deadline, without.slots.pieces().len()), (Time(50), 0));
    // As it is stored, too.
    let stored = serde_json::to_string(&agreement.slots.pieces()).unwrap();
    let pieces: Vec<Slot> = serde_json::from_str(&stored).unwrap();
    assert_eq!(pieces, agreement.slots.pieces());
}
