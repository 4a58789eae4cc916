use proptest::prelude::*;

use super::*;

fn at(start: i64, end: i64) -> Interval {
    Interval::new(Time(start), Time(end))
}

const FAILURES: Failures = Failures {
    repair: 80,
    settle: 5,
    taken_back_pays: true,
};

fn report(states: &[NodeState]) -> NodeReport {
    NodeReport {
        states: states.to_vec(),
        ..NodeReport::default()
    }
}

#[test]
fn of_two_looks_the_better_holds_for_each_node() {
    use NodeState::{Down, Drained, Up};
    let before = report(&[Up, Down]);
    let mut first = report(&[Down, Down, Drained]);
    first.reasons = [(0, "gone".to_owned()), (2, "to be repaired".to_owned())].into();
    assert!(first.is_worse_than(&before) && !before.is_worse_than(&first));
    let mut second = first.clone();
    second.states[0] = Up;
    for agreed in [second.clone().or_better(&first), first.or_better(&second)] {
        assert_eq!(agreed.states, [Up, Down, Drained]);
        assert_eq!(agreed.reasons, [(2, "to be repaired".to_owned())].into());
    }
}

#[test]
fn nodes_that_are_spared_keep_what_runs_and_count_as_newly_down_again() {
    use NodeState::{Down, Drained, Up};
    let before = report(&[Down, Drained, Up]);
    let mut now = report(&[Down, Down, Down, Down]);
    assert_eq!(now.newly_down(&before), [1, 2, 3]);
    now.spare(&[1, 3, 9]);
    assert_eq!(now.states, [Down, Drained, Down, Drained]);
    assert_eq!(report(&[Down; 4]).newly_down(&now), [1, 3]);
}

#[test]
fn what_is_out_of_use_is_counted_once_a_node() {
    let mut nodes = Nodes::new(vec![(at(100, 200), 2)]);
    let mut down = report(&[NodeState::Up, NodeState::Down]);
    down.busy = vec![
        BusyTime {
            node: 1,
            interval: at(5, 20),
        },
        BusyTime {
            node: 3,
            interval: at(150, 250),
        },
    ];
    let changed = nodes.apply_report(Reporter::Executor, &down, 4, Time(0), 5);
    assert_eq!(changed, [(1, NodeState::Down)]);
    let out = nodes.out_of_use(4, Time(0), &FAILURES, (|_| None, &[]));
    assert_eq!(out, [(at(0, 90), 1), (at(100, 200), 2), (at(200, 250), 1)]);
    assert_eq!(nodes.next_look(Time(0), &FAILURES), Some(Time(10)));
}

#[test]
fn a_node_is_thought_to_be_out_of_use_for_whole_steps_from_the_report_on_it() {
    let mut nodes = Nodes::default();
    nodes.apply_report(Reporter::Operator, &report(&[NodeState::Down]), 2, Time(9), 5);
    let until = |nodes: &Nodes, now: i64| {
        let out = nodes.out_of_use(2, Time(now), &FAILURES, (|_| None, &[]));
        out.last().map(|(out, _)| out.end)
    };
    for now in [9, 12, 18] {
        assert_eq!(until(&nodes, now), Some(Time(99)));
        assert_eq!(nodes.next_look(Time(now), &FAILURES), Some(Time(19)));
    }
    assert_eq!(until(&nodes, 19), Some(Time(109)));
    // A later one has steps of its own.
    let both = [NodeState::Down, NodeState::Drained];
    nodes.apply_report(Reporter::Operator, &report(&both), 2, Time(23), 5);
    assert_eq!(until(&nodes, 23), Some(Time(113)));
    assert_eq!(nodes.next_look(Time(23), &FAILURES), Some(Time(29)));
    assert_eq!(nodes.next_look(Time(30), &FAILURES), Some(Time(33)));
}

#[test]
fn a_node_that_is_drained_or_leaves_is_kept_by_what_runs_on_it() {
    let mut nodes = Nodes::default();
    let drained = report(&[NodeState::Drained]);
    nodes.apply_report(Reporter::Operator, &drained, 2, Time(0), 5);
    let out = nodes.out_of_use(2, Time(0), &FAILURES, (|_| Some(Time(30)), &[Time(70)]));
    assert_eq!(
        out,
        [
            (at(30, 70), 1),
            (at(70, 90), 2),
            (Interval::new(Time(90), FAR), 1)
        ]
    );
}

#[test]
fn a_node_that_flaps_is_trusted_later_each_time_and_an_operator_at_once() {
    let mut nodes = Nodes::default();
    let (up, down) = (report(&[NodeState::Up]), report(&[NodeState::Down]));
    let mut trusted = |failures: i64, from: i64| {
        nodes.apply_report(Reporter::Executor, &down, 1, Time(from), 5);
        let back = (from + 1..from + 100).find(|at| {
            !nodes
                .apply_report(Reporter::Executor, &up, 1, Time(*at), 5)
                .is_empty()
        });
        assert_eq!(back, Some(from + 1 + 5 * failures));
    };
    trusted(1, 0);
    trusted(2, 100);
    trusted(3, 200);
    trusted(1, 200 + REMEMBERED + 1);
    nodes.apply_report(Reporter::Operator, &down, 1, Time(9_000), 5);
    assert_eq!(nodes.state(0), NodeState::Down);
    let changed = nodes.apply_report(Reporter::Operator, &up, 1, Time(9_001), 5);
    assert_eq!(
        (changed, nodes.state(0)),
        (vec![(0, NodeState::Up)], NodeState::Up)
    );
}

#[test]
fn what_operators_say_and_what_is_planned_is_left_out_and_what_is_reported_is_not() {
    let mut nodes = Nodes::new(vec![(at(50, 60), 1)]);
    nodes.apply_report(Reporter::Executor, &report(&[NodeState::Down]), 3, Time(0), 5);
    nodes.apply_report(
        Reporter::Operator,
        &report(&[NodeState::Up, NodeState::Drained]),
        3,
        Time(0),
        5,
    );
    let left_out: Vec<_> = nodes
        .left_out(3, 4)
        .into_iter()
        .map(|time| (time.node, time.interval))
        .collect();
    assert_eq!(
        left_out,
        [
            (1, Interval::new(Time::MIN, Time::MAX)),
            (3, Interval::new(Time::MIN, Time::MAX)),
            (2, at(50, 60))
        ]
    );
}

/// How many nodes are out of use at an instant, each looked at by itself.
fn counted_one_by_one(nodes: &Nodes, capacity: u32, now: Time, at: Time) -> u32 {
    let planned = |node: u32| {
        let holds = |(each, without): &(Interval, u32)| {
            each.start <= at && at < each.end && node >= capacity.saturating_sub(*without)
        };
        nodes.maintenance.iter().any(holds)
    };
    let busy = |node: u32| {
        let holds =
            |time: &BusyTime| time.node == node && time.interval.start <= at && at < time.interval.end;
        nodes.busy.iter().any(holds)
    };
    let reports = nodes.last_reports();
    let out = |node: u32| {
        let until = reports
            .get(&node)
            .map(|since| FAILURES.next_step(*since, now) + FAILURES.repair);
        until.is_some_and(|until| at < until)
    };
    let count = (0..capacity).filter(|node| planned(*node) || busy(*node) || out(*node));
    u32::try_from(count.count()).unwrap()
}

fn time() -> impl Strategy<Value = Interval> {
    (0..120_i64, 1..60_i64).prop_map(|(start, duration)| at(start, start + duration))
}

proptest! {
    #[test]
    fn nodes_out_of_use_are_as_many_as_when_each_is_looked_at(
        maintenance in prop::collection::vec((time(), 0..9_u32), 0..6),
        busy in prop::collection::vec((0..6_u32, time()), 0..5),
        down in prop::collection::btree_set(0..6_usize, 0..3),
        now in 0..40_i64,
    ) {
        let capacity = 6;
        let mut nodes = Nodes::new(maintenance);
        let mut states = vec![NodeState::Up; 6];
        for node in down {
            states[node] = NodeState::Down;
        }
        let busy = busy.into_iter().map(|(node, interval)| BusyTime { node, interval });
        let heard = NodeReport { states, busy: busy.collect(), ..NodeReport::default() };
        nodes.apply_report(Reporter::Executor, &heard, capacity, Time(now), 5);
        let found = nodes.out_of_use(capacity, Time(now), &FAILURES, (|_| None, &[]));
        for instant in now..200 {
            let end = |(step, _): &&(Interval, u32)| step.start <= Time(instant) && Time(instant) < step.end;
            let told = found.iter().find(end).map_or(0, |(_, nodes)| *nodes);
            prop_assert_eq!(told, counted_one_by_one(&nodes, capacity, Time(now), Time(instant)), "at {}", instant);
        }
    }
}
