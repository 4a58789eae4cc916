//! The knowledge from executions alone.

use domain::agreement::{Agreement, RunOutcome, Slots};
use domain::clock::MICROS_PER_SECOND;
use domain::past::PastExecution;
use prediction::{GivenDurations, Knowledge, Machine, Work};
use scheduler::prediction::Ladder;
use scheduler::{Interval, Time};

use super::execution;
use crate::store::{RESOURCE, agreement};

fn past(run: i64, agreed: i64, ended: i64, outcome: RunOutcome) -> PastExecution {
    PastExecution {
        execution: execution(&agreement("a"), run, ended, outcome),
        party: "a".into(),
        agreed: agreed * MICROS_PER_SECOND,
    }
}

const SOLVE: Work<'_> = Work {
    resource: Some(RESOURCE),
    ..Work::of("solve")
};

/// The knowledge from executions, where past run times alone decide.
fn learned(past: &[PastExecution]) -> Knowledge {
    Knowledge::of(past, &[], Default::default(), Time(0))
}

/// A machine of one node of a rate.
fn machine(millionths: u32) -> Machine {
    Machine {
        rate: scheduler::Rate::from_millionths(millionths).expect("a rate"),
        nodes: 1,
        ..Machine::default()
    }
}

/// A slot of so many seconds.
fn slot(seconds: i64) -> Interval {
    Interval::of(Time(0), seconds)
}

#[test]
fn slots_are_sized_as_if_stopped_work_needed_twice_as_long_and_what_was_ended_from_outside_tells_nothing() {
    let execution_with = |outcome| {
        let past: Vec<_> = (0..20).map(|at| past(100, at, 1_000 + at, outcome)).collect();
        learned(&past).slot(&SOLVE, 0.5)
    };
    assert_eq!(execution_with(RunOutcome::Completed), Some(100));
    assert_eq!(execution_with(RunOutcome::Failed { exit: 1 }), Some(100));
    assert_eq!(execution_with(RunOutcome::Killed), Some(200));
    assert_eq!(execution_with(RunOutcome::Terminated), None);
    assert_eq!(execution_with(RunOutcome::Lost), None);
}

#[test]
fn an_estimate_counts_stopped_work_as_what_took_longer_and_says_so() {
    let told = |past: &[PastExecution]| -> Vec<String> {
        let known = learned(past);
        let gap = Interval::new(Time(0), Time(10_000));
        let steps = known
            .explain(&SOLVE, gap, 100, GivenDurations::default(), 500_000)
            .estimate
            .steps;
        steps.iter().map(ToString::to_string).collect()
    };
    let mut runs: Vec<_> = [100, 200, 300]
        .into_iter()
        .zip(0..)
        .map(|(run, at)| past(run, at, 5_000 + at, RunOutcome::Completed))
        .collect();
    runs.push(past(150, 3, 5_003, RunOutcome::Killed));
    let steps = told(&runs);
    assert_eq!(
        steps[0],
        "mean of 4 executions on this resource (1 stopped, counted as what took longer): 212.5 s"
    );
    // All were agreed before any had ended, for slots of 1000 seconds, which were the estimates. Of the one that was stopped it is
    // not known that 1000 would have been wrong.
    assert_eq!(
        steps[2],
        "+ 0 s: the last 4 estimates on this resource were long by 600.0 s"
    );
    // The error of a run that goes far beyond its estimate is known to be this large, and not larger.
    runs.push(past(3_000, 4, 5_004, RunOutcome::Killed));
    assert_eq!(
        told(&runs)[2],
        "+ 0 s: the last 5 estimates on this resource were long by 80.0 s"
    );
}

#[test]
fn the_probability_of_a_slot_is_that_which_it_was_sized_for() {
    let past: Vec<_> = (0..60)
        .map(|at| past(100 + at * 7 % 60, at, 1_000 + at, RunOutcome::Completed))
        .collect();
    let known = learned(&past);
    for p in [0.5, 0.8, 0.95] {
        let seconds = known.slot(&SOLVE, p).expect("it is known");
        let probability = known.probability(&SOLVE, slot(seconds)).expect("it is known");
        assert!((p..p + 0.05).contains(&probability), "{probability} for {p}");
    }
}

#[test]
fn what_is_stated_is_held_against_what_came_only_where_it_was_known_before() {
    // All agreed before the first ended: nothing could have been stated.
    let at_once: Vec<_> = (0..20)
        .map(|at| past(100, 0, 1_000 + at, RunOutcome::Completed))
        .collect();
    let known = learned(&at_once);
    assert_eq!(known.reliability().outcomes(), 0);
    let one_by_one: Vec<_> = (0..20)
        .map(|at| past(100, 1_000 * at, 1_000 * at + 500, RunOutcome::Completed))
        .collect();
    let known = learned(&one_by_one);
    assert_eq!(known.reliability().outcomes(), 19);
}

#[test]
fn what_a_fast_resource_did_is_work_for_a_slow_one() {
    let past: Vec<_> = (0..20)
        .map(|at| past(100, at, 1_000 + at, RunOutcome::Completed))
        .collect();
    let known = Knowledge::of(
        &past,
        &[],
        (
            [(RESOURCE.to_owned(), machine(2_000_000))].into(),
            Some(Ladder::All),
        ),
        Time(0),
    );
    let seconds = known.slot(&SOLVE, 0.5).expect("it is known");
    // Between neighbouring observations lies the rounding of a logarithm.
    assert!((200..=201).contains(&seconds), "{seconds} at the reference rate");
}

#[test]
fn confidence_falls_while_a_job_runs_on_and_ends_with_it() {
    let past: Vec<_> = (0..100)
        .map(|at| {
            past(
                10 + at * 17 % 50,
                1_000 * at,
                1_000 * at + 500,
                RunOutcome::Completed,
            )
        })
        .collect();
    let known = learned(&past);
    let mut running = agreement("b");
    running.job = running.job.map(|job| domain::agreement::Job {
        application: "solve".into(),
        ..job
    });
    running.slots[0].placement = Interval::new(Time(0), Time(40));
    running.duration = 40;
    let at = |running: &Agreement, second: i64| known.confidence(running, second * MICROS_PER_SECOND);
    let waiting = at(&running, 0).expect("it is known");
    assert!((0.1..0.9).contains(&waiting), "{waiting}");
    running.note_started(Some(0));
    let begun = at(&running, 1).expect("it is known");
    let late = at(&running, 35).expect("it is known");
    assert!(
        late < begun && (begun - waiting).abs() < 0.1,
        "{late} {begun} {waiting}"
    );
    assert!(at(&running, 40).expect("it is known") < 1e-9);
    let mut cut = running.clone();
    let piece = |start, end| domain::agreement::Slot::planned((Interval::new(Time(start), Time(end)), 1));
    cut.slots = Slots::of(vec![piece(0, 20), piece(60, 80)]).expect("two");
    (cut.slots[0].started, cut.slots[0].ended) = (Some(0), Some(20 * MICROS_PER_SECOND));
    assert_eq!(
        at(&cut, 50),
        at(&running, 20),
        "between two pieces it does not run on"
    );
    cut.slots[1].started = Some(60 * MICROS_PER_SECOND);
    assert_eq!(at(&cut, 65), at(&running, 25));
    running.ended = Some(1);
    assert_eq!(at(&running, 36), None);
    running.job = None;
    assert_eq!(at(&running, 0), None);
}

#[test]
fn the_published_estimate_decides_as_printed_beside_the_weighted_one() {
    // The mean of 100, 200 and 300; each was estimated at 150, so that RT is −50.
    let ran = |(run, at): (i64, i64)| {
        let mut past = past(run, 1_000 * at, 1_000 * at + 500, RunOutcome::Completed);
        past.execution.estimate = 150;
        past
    };
    let runs: Vec<_> = [(100, 1), (200, 2), (300, 3)].map(ran).into();
    let by = |ladder| {
        let machines = [(RESOURCE.to_owned(), machine(1_000_000))].into();
        Knowledge::of(&runs, &[], (machines, Some(ladder)), Time(4_000))
    };
    let published = by(Ladder::Published);
    for p in [0.5, 0.95] {
        assert_eq!(published.slot(&SOLVE, p), Some(250), "it states no probability");
    }
    let gap = Interval::new(Time(5_000), Time(10_000));
    let foreseen = published.foreseen(&SOLVE, prediction::Hold::Sized(950_000), 0);
    assert_eq!(
        foreseen.and_then(|foreseen| foreseen.longest_hold(RESOURCE)),
        Some(250)
    );
    let told = published.explain(&SOLVE, gap, 250, GivenDurations::default(), 950_000);
    let steps: Vec<String> = told.estimate.steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        steps,
        [
            "mean of 3 executions on this resource: 200.0 s",
            "× (2 − 1): no samples of the processors, all taken to be free",
            "+ 50.0 s, by which the last 3 estimates on this resource were short: 250.0 s",
            "completion 250 s after the start",
        ]
    );
    let decides = told.decides.expect("the application has run");
    assert_eq!(
        decides.lines()[..3],
        [
            "the run: 200.0 s, from executions on this resource among others (3 runs most like it)",
            "× 1 for the load: no samples of the processors",
            "+ 50.0 s by which estimates there were short (share 1.00)",
        ]
    );
    // Both are held against the same outcomes, whichever decides: those of the second and the third run.
    for known in [&published, &by(Ladder::All)] {
        let outcomes = |ladder| {
            let kept = known.reliabilities().find(|(other, _)| *other == ladder);
            kept.map(|(_, reliability)| reliability.outcomes())
        };
        assert_eq!(outcomes(Ladder::Published), Some(2));
        assert_eq!(outcomes(Ladder::All), Some(2));
    }
}
