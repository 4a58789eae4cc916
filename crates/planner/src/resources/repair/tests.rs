//! The course of agreements when nodes go away and come back.

use domain::agreement::{
    AgreementState, Guarantee, GuaranteeState, Job, NegotiationInstance, RunOutcome, ServiceState, Shape,
    Values,
};
use domain::resources::{NodeState, Resource, Scaling};
use scheduler::{Interval, Seconds, Time};

use super::*;
use crate::commands::BeginDue;
use crate::decider::Decider;
use crate::life::{executions, reports};
use crate::resources::repair;
use crate::schedules::failures::Failures;
use crate::table::replace;
use crate::tests::harness::{Domain, proposal};
use crate::{Request, State};

/// A domain with nodes that take 1,000 seconds to repair and are trusted at once.
fn domain(resources: Vec<Resource>) -> Domain {
    let mut domain = Domain::new(resources);
    domain.settings.failures = Failures {
        repair: 1_000,
        settle: 0,
        taken_back_pays: true,
    };
    domain
}

fn local(capacity: u32) -> Resource {
    Resource::new("local", "local", capacity)
}

fn states(state: NodeState, nodes: &[u32]) -> NodeReport {
    let mut states = vec![NodeState::Up; 8];
    for node in nodes {
        states[*node as usize] = state;
    }
    NodeReport {
        states,
        ..NodeReport::default()
    }
}

fn set(domain: &mut Domain, state: NodeState, nodes: &[u32]) -> Repaired {
    let report = states(state, nodes);
    let repaired =
        domain.decide(|decider| repair::repair_nodes(decider, "local", Reporter::Operator, &report));
    domain.check();
    let mut repaired = repaired.unwrap();
    let changes = std::mem::take(&mut repaired.changes);
    let broken = changes.values().filter(|change| change.to.is_none()).count();
    assert_eq!(repaired.broken + repaired.lost, broken, "each is named");
    for (id, change) in changes {
        let lies = change.to.map(|to| (to.resource, to.slot));
        let known = domain.known.get(&id);
        assert_eq!(
            lies,
            known.map(|known| (known.resource.clone(), known.placement()))
        );
    }
    repaired
}

#[test]
fn who_still_fits_stays_and_who_does_not_moves_on_his_resource_and_then_to_another() {
    let mut domain = domain(vec![local(4), Resource::new("other", "local", 2)]);
    let rigid = domain.place(proposal(2, 100, (100, 200))).unwrap().agreement;
    let flexible = domain.place(proposal(2, 100, (100, 400))).unwrap().agreement;
    let tight = domain.place(proposal(2, 100, (300, 400))).unwrap().agreement;
    let repaired = set(&mut domain, NodeState::Drained, &[0, 1]);
    assert_eq!(
        repaired,
        Repaired {
            lost: 0,
            moved: 1,
            ..Repaired::default()
        }
    );
    for agreement in [&rigid, &tight] {
        assert_eq!(domain.of(agreement.id), agreement, "it still fits");
    }
    let moved = domain.of(flexible.id);
    assert_eq!(
        (moved.resource.as_str(), moved.placement().start),
        ("local", Time(200))
    );
    let line = "100 seconds later, because nodes of local are out of use";
    assert!(
        domain.told.contains(&(flexible.id, line.to_owned())),
        "{:?}",
        domain.told
    );
    // Now none is left there.
    let repaired = set(&mut domain, NodeState::Down, &[0, 1, 2, 3]);
    assert_eq!((repaired.lost, repaired.moved), (0, 3));
    for agreement in [rigid, flexible, tight] {
        assert_eq!(domain.of(agreement.id).resource, "other");
    }
}

#[test]
fn those_that_move_for_others_are_counted_with_them() {
    let mut domain = domain(vec![local(4)]);
    let rigid = domain.place(proposal(2, 100, (100, 200))).unwrap().agreement;
    let leaves = domain.place(proposal(2, 100, (100, 300))).unwrap().agreement;
    let makes_way = domain.place(proposal(2, 100, (200, 400))).unwrap().agreement;
    let repaired = set(&mut domain, NodeState::Drained, &[0, 1]);
    let starts = [rigid, leaves, makes_way].map(|each| domain.of(each.id).placement().start);
    assert_eq!(starts, [Time(100), Time(200), Time(300)]);
    assert_eq!((repaired.moved, repaired.broken), (2, 0));
}

#[test]
fn another_takes_fewer_nodes_before_one_without_a_choice_is_broken() {
    let mut domain = domain(vec![local(8)]);
    let shape = |nodes, duration| Shape { nodes, duration };
    let sized = Request {
        shapes: vec![shape(4, 75), shape(2, 150)],
        scaling: Scaling::ReferenceRate,
        ..proposal(4, 75, (100, 250))
    };
    let sized = domain.place(sized).unwrap().agreement;
    let plain = domain.place(proposal(2, 150, (100, 400))).unwrap().agreement;
    domain.place(proposal(4, 150, (250, 400))).unwrap();
    assert_eq!((sized.nodes(), plain.placement().start), (4, Time(100)));
    let repaired = set(&mut domain, NodeState::Down, &[4, 5, 6, 7]);
    assert_eq!((repaired.moved, repaired.broken), (1, 0));
    assert_eq!(domain.of(plain.id), &plain);
    let sized = domain.of(sized.id);
    assert_eq!(
        (sized.nodes(), sized.placement()),
        (2, Interval::new(Time(100), Time(250)))
    );
    let line = "with 2 nodes for 150 seconds, to let one in whose nodes are out of use";
    assert!(
        domain
            .told
            .iter()
            .any(|(id, told)| *id == sized.id && told == line)
    );
}

#[test]
fn one_that_has_sizes_to_choose_from_is_shrunk_before_it_is_broken() {
    let mut domain = domain(vec![local(4)]);
    let shape = |nodes, duration| Shape { nodes, duration };
    let moldable = Request {
        shapes: vec![shape(4, 100), shape(2, 200), shape(1, 400)],
        scaling: Scaling::ReferenceRate,
        ..proposal(4, 100, (100, 400))
    };
    let moldable = domain.place(moldable).unwrap().agreement;
    assert_eq!(moldable.nodes(), 4);
    assert_eq!(set(&mut domain, NodeState::Down, &[3]).moved, 1);
    let shrunk = domain.of(moldable.id);
    assert_eq!(
        (shrunk.nodes(), shrunk.placement()),
        (2, Interval::new(Time(100), Time(300)))
    );
    let line = "with 2 nodes for 200 seconds, because nodes of local are out of use";
    assert!(
        domain
            .told
            .iter()
            .any(|(id, told)| *id == moldable.id && told.ends_with(line))
    );
}

#[test]
fn who_has_no_place_any_more_is_told_at_once_with_what_there_is_instead() {
    let mut domain = domain(vec![local(4)]);
    let rigid = Request {
        guarantees: vec![Guarantee {
            objective: "completed le deadline".into(),
            ..guarantee()
        }],
        ..proposal(4, 100, (100, 200))
    };
    let rigid = domain.place(rigid).unwrap().agreement;
    let far = domain.place(proposal(4, 100, (2_000, 2_100))).unwrap().agreement;
    assert_eq!(set(&mut domain, NodeState::Down, &[2]).broken, 1);
    assert!(!domain.known.contains_key(&rigid.id));
    let told: Vec<_> = domain
        .told
        .iter()
        .filter(|(id, _)| *id == rigid.id)
        .map(|(_, told)| told.clone())
        .collect();
    let line = "nodes of local are out of use, and there is no other place in its window; there is room";
    assert!(told[1].starts_with(line), "{told:?}");
    assert!(told[2].contains("Violated"), "{told:?}");
    assert_eq!(domain.of(far.id), &far, "by then they are repaired");
}

fn guarantee() -> Guarantee {
    Guarantee {
        name: "COMPLETION".into(),
        objective: String::new(),
        qualifying_condition: None,
        state: GuaranteeState::NotDetermined,
        evidence: None,
        values: Values::default(),
    }
}

#[test]
fn what_runs_is_lost_with_its_nodes_and_keeps_them_where_they_are_only_drained() {
    let mut domain = domain(vec![local(4)]);
    let job = Job {
        application: "sleep".into(),
        arguments: Vec::new(),
        ..Job::default()
    };
    let with_job = |nodes, window| Request {
        job: Some(job.clone()),
        ..proposal(nodes, 100, window)
    };
    let first = domain.place(with_job(2, (0, 100))).unwrap().agreement;
    let second = domain.place(with_job(1, (0, 100))).unwrap().agreement;
    domain
        .decide(|decider| decider.decide(BeginDue).map(drop))
        .unwrap();
    assert_eq!(
        set(&mut domain, NodeState::Drained, &[0, 2, 3]),
        Repaired::default()
    );
    assert_eq!(domain.of(second.id).service, ServiceState::Processing);
    // Its end frees nothing for others.
    let refusal = domain.place(proposal(2, 50, (100, 900))).unwrap_err();
    assert_eq!(refusal.reason, scheduler::Reason::NoCapacityInWindow);
    domain.now = 10;
    let repaired = set(&mut domain, NodeState::Down, &[1]);
    assert_eq!((repaired.lost, repaired.broken), (1, 0));
    assert!(!domain.known.contains_key(&first.id));
    assert!(domain.known.contains_key(&second.id), "it runs elsewhere");
    let running = domain.state.life.running(&domain.state.agreements);
    let stopping = running.iter().find(|agreement| agreement.id == first.id).unwrap();
    assert_eq!(
        (stopping.state, stopping.outcome),
        (AgreementState::Complete, Some(RunOutcome::Lost))
    );
}

#[test]
fn nodes_that_come_back_are_used_again_and_what_waits_moves_up() {
    let mut domain = domain(vec![local(4)]);
    set(&mut domain, NodeState::Down, &[0, 1, 2, 3]);
    let waiting = domain.place(proposal(4, 100, (0, 3_000))).unwrap().agreement;
    assert_eq!(
        waiting.placement().start,
        Time(1_125),
        "when they are thought to be repaired"
    );
    domain.now = 500;
    domain.decide(|decider| {
        repair::repair_nodes_in_time(decider);
    });
    assert_eq!(
        domain.of(waiting.id).placement().start,
        Time(1_625),
        "they are not yet"
    );
    set(&mut domain, NodeState::Up, &[]);
    assert_eq!(domain.of(waiting.id).placement().start, Time(500));
}

#[test]
fn who_waits_makes_room_also_where_before_him_only_what_runs_stands_in_the_way() {
    let mut domain = domain(vec![local(3)]);
    domain.place(work(2, 100, (0, 100))).unwrap();
    domain
        .decide(|decider| decider.decide(BeginDue).map(drop))
        .unwrap();
    let waiting = domain.place(proposal(1, 20, (90, 400))).unwrap().agreement;
    assert_eq!(waiting.placement().start, Time(90));
    let mut report = states(NodeState::Down, &[2]);
    report.busy = vec![domain::resources::BusyTime {
        node: 0,
        interval: Interval::new(Time(50), Time(120)),
    }];
    let repaired =
        domain.decide(|decider| repair::repair_nodes(decider, "local", Reporter::Operator, &report));
    assert_eq!(repaired.unwrap().moved, 1);
    assert_eq!(
        domain.of(waiting.id).placement().start,
        Time(100),
        "when node 1 is free"
    );
    domain.check();
}

#[test]
fn maintenance_is_planned_around() {
    let mut resource = local(4);
    resource.maintenance = vec![(Interval::new(Time(100), Time(200)), 3)];
    let mut domain = domain(vec![resource]);
    domain.decide(|decider| {
        repair::repair_nodes_in_time(decider);
    });
    let large = domain.place(proposal(2, 50, (60, 1_000))).unwrap().agreement;
    assert_eq!(large.placement().start, Time(200));
    let small = domain.place(proposal(1, 50, (60, 1_000))).unwrap().agreement;
    assert_eq!(small.placement().start, Time(60));
    domain.check();
    let again = State::rebuild(
        &domain.settings,
        &domain.settings.resources,
        domain.known.values().cloned().collect(),
        Vec::new(),
        Time(0),
    );
    assert!(again.is_ok());
}

/// A plan in which the work of every agreement is run again when it is lost.
fn restarting(resources: Vec<Resource>) -> Domain {
    let mut domain = domain(resources);
    domain.settings.restarting = ["t".to_owned()].into();
    domain
}

fn work(nodes: u32, duration: Seconds, window: (i64, i64)) -> Request {
    Request {
        job: Some(Job {
            application: "sleep".into(),
            arguments: Vec::new(),
            ..Job::default()
        }),
        ..proposal(nodes, duration, window)
    }
}

#[test]
fn lost_work_waits_for_another_place_in_its_window_and_begins_there_again() {
    let mut domain = restarting(vec![local(4)]);
    let one = domain.place(work(2, 100, (0, 400))).unwrap().agreement;
    domain
        .decide(|decider| decider.decide(BeginDue).map(drop))
        .unwrap();
    domain
        .decide(|decider| reports::record_reported_start(decider, one.id, 1_000_000, None))
        .unwrap();
    domain.now = 10;
    let other = domain.place(work(2, 100, (10, 200))).unwrap().agreement;
    assert_eq!(other.placement().start, Time(10));
    let repaired = set(&mut domain, NodeState::Down, &[0]);
    assert_eq!(
        repaired,
        Repaired {
            lost: 0,
            moved: 1,
            ..Repaired::default()
        }
    );
    let again = domain.of(one.id).clone();
    assert_eq!(again.placement(), Interval::new(Time(110), Time(210)));
    assert!(again.is_waiting() && again.started.is_none() && again.ended.is_none());
    assert_eq!(again.job.as_ref().unwrap().restarts, 1);
    let line = "its nodes of local are gone: it is run again from its start, 110 seconds later";
    assert!(
        domain.told.contains(&(one.id, line.to_owned())),
        "{:?}",
        domain.told
    );
    assert_eq!(
        domain.state.life.running(&domain.state.agreements),
        [again],
        "its job of before is to be stopped"
    );
    let change = NegotiationInstance {
        id: Uuid::nil(),
        party: "p".into(),
        agreement: Some(one.id),
        created: 0,
        expires: Time(1_000),
        ended: None,
        proposed: None,
    };
    let lift = |decider: &mut Decider<'_>| replace::lift_replaced(&mut decider.search(), &change).map(drop);
    assert!(
        domain.decide(lift).is_err(),
        "what is left of that might run beside the job of another agreement in its place"
    );
    domain
        .decide(|decider| decider.decide(BeginDue).map(drop))
        .unwrap();
    assert_eq!(domain.of(other.id).service, ServiceState::Processing);
    domain.now = 110;
    let lost = |decider: &mut Decider<'_>| {
        reports::record_reported_end(
            decider,
            other.id,
            &domain::agreement::JobEnd::new(RunOutcome::Completed, Some(10_000_000), 110_000_000),
        )
    };
    domain.decide(lost).unwrap();
    domain
        .decide(|decider| decider.decide(BeginDue).map(drop))
        .unwrap();
    domain.check();
    let running = domain.state.life.running(&domain.state.agreements);
    assert_eq!(running.len(), 1);
    assert_eq!(running[0].service, ServiceState::Processing);
}

#[test]
fn lost_work_without_a_place_in_its_window_is_lost_as_if_nothing_had_been_tried() {
    let mut domain = restarting(vec![local(2)]);
    let one = domain.place(work(2, 100, (0, 400))).unwrap().agreement;
    let later = domain.place(proposal(2, 300, (100, 400))).unwrap().agreement;
    domain
        .decide(|decider| decider.decide(BeginDue).map(drop))
        .unwrap();
    domain.now = 10;
    let end = domain.decide(|decider| {
        let agreement = decider.live_agreement(one.id).unwrap();
        executions::end_of_lost_work(decider.view(), &agreement)
    });
    domain
        .decide(|decider| reports::record_reported_end(decider, one.id, &end))
        .unwrap();
    domain.check();
    assert!(!domain.known.contains_key(&one.id));
    assert_eq!(domain.of(later.id), &later);
}

#[test]
fn work_that_is_lost_again_and_again_is_lost_for_good() {
    let mut domain = restarting(vec![local(1)]);
    let one = domain.place(work(1, 10, (0, 1_000))).unwrap().agreement;
    let mut times = 0;
    while domain.known.contains_key(&one.id) {
        times += 1;
        domain
            .decide(|decider| decider.decide(BeginDue).map(drop))
            .unwrap();
        let end = domain.decide(|decider| {
            reports::record_reported_start(decider, one.id, decider.now, None).unwrap();
            let agreement = decider.live_agreement(one.id).unwrap();
            executions::end_of_lost_work(decider.view(), &agreement)
        });
        domain
            .decide(|decider| reports::record_reported_end(decider, one.id, &end))
            .unwrap();
        domain.now += 2;
    }
    assert_eq!(times, 11, "the first time and ten more");
}

#[test]
fn a_start_that_was_fixed_stays_promised_when_its_nodes_fail_and_one_that_could_move_does_not() {
    let start = |state| Guarantee {
        name: "START".into(),
        objective: "started le latest_start".into(),
        qualifying_condition: None,
        state,
        evidence: None,
        values: Values::default(),
    };
    for (fix_at_ppm, promised, found) in [
        (Some(0), Some(100), GuaranteeState::Violated),
        (None, None, GuaranteeState::NotDetermined),
    ] {
        let mut domain = domain(vec![local(4), Resource::new("other", "local", 4)]);
        let asked = Request {
            fix_at_ppm,
            guarantees: vec![start(GuaranteeState::NotDetermined)],
            ..proposal(4, 50, (100, 400))
        };
        let id = domain.place(asked).unwrap().agreement.id;
        assert_eq!(domain.of(id).resource, "local");
        domain.place(proposal(4, 50, (100, 150))).unwrap();
        domain.begin(1);
        assert_eq!(domain.of(id).fixed, fix_at_ppm.is_some());
        set(&mut domain, NodeState::Down, &[0, 1, 2, 3]);
        let moved = domain.of(id);
        assert_eq!(moved.placement().start, Time(150));
        assert_eq!(moved.constraints.promised, promised);
        domain.pass_until(120);
        assert_eq!(domain.of(id).guarantees[0].state, found);
    }
}

#[test]
fn a_start_stays_promised_where_nodes_fail_before_the_process_comes_up() {
    let mut domain = restarting(vec![local(8)]);
    let one = domain.place(work(4, 50, (100, 400))).unwrap().agreement;
    domain.begin(100);
    domain.now = 102;
    let nodes = domain.state.life.nodes_of(one.id).unwrap().clone();
    set(&mut domain, NodeState::Down, &nodes);
    let again = domain.of(one.id);
    assert_eq!((again.service, again.restarts()), (ServiceState::NotReady, 1));
    assert!(again.placement().start > Time(102), "{again:?}");
    assert_eq!(again.constraints.promised, Some(100));
}
