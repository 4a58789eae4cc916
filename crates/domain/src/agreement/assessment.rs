//! Guarantee terms and their assessment.
//!
//! An objective asks about a few facts of the agreement. A fact that has not come about yet is known to lie in the future. So an
//! objective can be found violated at the instant that makes it so, and not only when the work is over. Work that was stopped or
//! lost will never complete, and an objective that waits for its completion is violated. A state that was found once stays.

use scheduler::Time;
use serde::{Deserialize, Serialize};
use wsag::expression::{ExpressionValue, ParsedExpression, ValueRange, Variables};
use wsag::time::{DateTime, Duration};

use super::delivered::START_TOLERANCE;
use super::{Agreement, AgreementState, GuaranteeState, RunOutcome, ServiceState, Values};
use crate::clock::{MICROS_PER_SECOND, Micros};

/// A guarantee term of an agreement with its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guarantee {
    /// Name of the term.
    pub name: String,
    /// The objective, in the expression language of our terms.
    pub objective: String,
    /// The term counts only where this holds.
    pub qualifying_condition: Option<String>,
    /// State of the term.
    pub state: GuaranteeState,
    /// The facts from which the state was found.
    pub evidence: Option<String>,
    /// Its values.
    #[serde(default)]
    pub values: Values,
}

impl Guarantee {
    /// How the line of the timeline begins that says what state was found.
    pub fn assessed(&self) -> String {
        format!("{} {}:", self.name, self.state.word())
    }
}

/// Later than every deadline: when work that was stopped or lost will have completed.
const NEVER_S: i64 = i64::MAX;
/// How long the report of a start or an end may take. An event that has not been reported for longer has not happened.
const REPORT_GRACE: i64 = 10;

/// Finds the state of a guarantee from the facts that have come about by `now`, unless it has been found before. Answers whether
/// it is found now.
pub fn assess(guarantee: &mut Guarantee, agreement: &Agreement, now: Micros) -> bool {
    if guarantee.state != GuaranteeState::NotDetermined {
        return false;
    }
    let fact = |name: &str| assessed_values_of_variable(agreement, now, name);
    let holds = |text: &str| parse_objective(text).and_then(|expression| expression.evaluate_ranges(fact));
    guarantee.values.checked = Some(now);
    if let Some(condition) = &guarantee.qualifying_condition
        && holds(condition) != Some(true)
    {
        guarantee.evidence = Some(format!("its condition, {condition}, does not hold"));
        return false;
    }
    guarantee.state = match holds(&guarantee.objective) {
        Some(true) => GuaranteeState::Fulfilled,
        Some(false) => GuaranteeState::Violated,
        None => GuaranteeState::NotDetermined,
    };
    guarantee.evidence = Some(assessment_evidence(guarantee, agreement));
    let found = guarantee.state != GuaranteeState::NotDetermined;
    guarantee.values.determined = found.then_some(now);
    found
}

/// When a guarantee is to be assessed next, if nothing happens before: time alone may decide it then, or a
/// compensation is due again. None where it is not.
pub fn next_assessment(guarantee: &Guarantee, agreement: &Agreement) -> Option<Micros> {
    if agreement.state != AgreementState::Observed || agreement.service == ServiceState::Completed {
        return None;
    }
    if guarantee.state != GuaranteeState::NotDetermined {
        return guarantee.values.next_due(guarantee.state);
    }
    let checked = guarantee.values.checked.unwrap_or(agreement.created);
    let fact = |name: &str| assessed_values_of_variable(agreement, checked, name);
    let texts = [
        Some(&guarantee.objective),
        guarantee.qualifying_condition.as_ref(),
    ];
    let instants = texts
        .into_iter()
        .flatten()
        .filter_map(|text| parse_objective(text))
        .flat_map(|expression| expression.instants(fact));
    let is_awaited = agreement.service == ServiceState::Processing
        || agreement.service == ServiceState::Idle && agreement.started.is_none();
    let late = if is_awaited { REPORT_GRACE } else { 0 };
    instants
        .map(|instant| (instant.ceil() + 1 + late) * MICROS_PER_SECOND)
        .filter(|at| *at > checked)
        .min()
}

fn parse_objective(text: &str) -> Option<ParsedExpression> {
    ParsedExpression::parse(text, &Variables::predefined()).ok()
}

/// The values that a variable of the expression language can have, as far as they are known by `now`.
fn assessed_values_of_variable(agreement: &Agreement, now: Micros, name: &str) -> Option<ValueRange> {
    let second = |time: Time| ExpressionValue::DateTime(DateTime::from_seconds(time.seconds()));
    let instant = |at| ExpressionValue::DateTime(DateTime::from_micros(at));
    let never = ExpressionValue::DateTime(DateTime::from_seconds(NEVER_S));
    // Not yet, and so later than now; of a job that was handed over, later than so long ago as a report may take.
    let future = |grace: Option<i64>| {
        let begun = agreement.placement().start.seconds() * MICROS_PER_SECOND;
        let since = match (agreement.service, grace) {
            (ServiceState::Processing | ServiceState::Idle, Some(grace)) => {
                begun.max(now - grace * MICROS_PER_SECOND)
            }
            (ServiceState::Processing, None) => begun,
            _ => now,
        };
        let open = agreement.state == AgreementState::Observed && agreement.outcome.is_none();
        open.then_some(ValueRange {
            least: instant(since.min(now)),
            most: never,
        })
    };
    let known = match name {
        "submitted" => instant(agreement.created),
        "ready" => second(agreement.ready),
        "deadline" => second(agreement.deadline),
        "latest_start" => second(agreement.promised_start() + START_TOLERANCE),
        "planned_start" => second(agreement.promised_start()),
        "started" => match (agreement.started, agreement.outcome) {
            (Some(at), _) => instant(at),
            (None, Some(RunOutcome::Lost | RunOutcome::Killed | RunOutcome::Checkpointed)) => never,
            (None, _) => return future(Some(REPORT_GRACE)),
        },
        "completed" => match agreement.outcome {
            // The earlier work of its party has left too much for this one to begin.
            Some(RunOutcome::Exceeded { .. }) if agreement.started.is_none() => return None,
            // A reservation is its time, and never completes without that.
            Some(RunOutcome::Completed) if agreement.job.is_none() && !agreement.is_delivered() => never,
            // Work that took more than it may, or named files that cannot be moved, ended by its own doing.
            Some(
                RunOutcome::Completed
                | RunOutcome::Failed { .. }
                | RunOutcome::Exceeded { .. }
                | RunOutcome::Unstaged,
            ) => instant(agreement.ended?),
            Some(RunOutcome::Killed | RunOutcome::Checkpointed | RunOutcome::Lost) => never,
            Some(RunOutcome::Terminated) => return None,
            // The executor will report how it ended, even if late.
            None => return future(None),
        },
        "duration" => ExpressionValue::Duration(Duration::from_seconds(agreement.duration)),
        "granted" => ExpressionValue::Duration(Duration::from_seconds(assessed_node_time(agreement)?)),
        "nodes" => ExpressionValue::Number(f64::from(agreement.nodes())),
        _ => return None,
    };
    Some(known.into())
}

/// For how many seconds the work of an agreement had its nodes, once it is over. Work that was stopped at the slot's end had all
/// of the agreed time in two cases: each of its slots had begun in time, or it had run as long in a longer slot.
fn assessed_node_time(agreement: &Agreement) -> Option<i64> {
    let outcome = agreement.outcome?;
    let Some(ran) = agreement.run_time() else {
        return Some(0);
    };
    let in_time = |start: Time, started: Option<Micros>| {
        let late = started.map(|at| at.saturating_sub(start.seconds() * MICROS_PER_SECOND));
        late.is_some_and(|late| late <= START_TOLERANCE * MICROS_PER_SECOND)
    };
    let mut over = agreement.slots[..agreement.slots_over()].iter();
    let all_in_time = over.all(|slot| in_time(slot.placement.start, slot.started));
    let ran = ran / MICROS_PER_SECOND;
    if outcome == RunOutcome::Killed && (all_in_time || ran >= agreement.duration) {
        return Some(agreement.duration);
    }
    Some(ran.clamp(0, agreement.duration - 1))
}

/// The facts that an objective names, in words.
fn assessment_evidence(guarantee: &Guarantee, agreement: &Agreement) -> String {
    let completion = match agreement.outcome {
        Some(RunOutcome::Killed | RunOutcome::Checkpointed) => {
            "stopped at the end of its slot before it completed"
        }
        Some(RunOutcome::Lost) => "lost",
        Some(RunOutcome::Terminated) => "terminated",
        Some(RunOutcome::Completed | RunOutcome::Failed { .. }) => "ended by itself",
        Some(RunOutcome::Exceeded { .. }) if agreement.started.is_none() => {
            "not started because its party's files took more than they may"
        }
        Some(RunOutcome::Exceeded { .. }) => "stopped because it took more than it may",
        Some(RunOutcome::Unstaged) => "its files could not be moved",
        None if agreement.started.is_some() => "started and not over",
        None => "not started",
    };
    let mut evidence = format!("{}; {completion}", guarantee.objective);
    if let Some(promised) = agreement.constraints.promised {
        evidence += &format!(
            "; its start was promised for {}",
            DateTime::from_seconds(promised)
        );
    }
    if let Some(shortfall) = agreement
        .undelivered_in_words()
        .filter(|_| agreement.outcome.is_some())
    {
        evidence += &format!("; {shortfall}");
    }
    evidence
}

#[cfg(test)]
mod tests {
    use scheduler::Interval;
    use uuid::Uuid;

    use super::super::{Slot, Slots};
    use super::*;

    fn agreement(outcome: Option<RunOutcome>, ended_s: Option<i64>) -> Agreement {
        let slot = Slot {
            started: Some(101 * MICROS_PER_SECOND),
            ended: outcome.and(ended_s).map(|at| at * MICROS_PER_SECOND),
            ..Slot::planned((Interval::of(Time(100), 10), 2))
        };
        Agreement {
            id: Uuid::nil(),
            party: "physics".into(),
            name: None,
            initiator_id: None,
            template: "t".into(),
            resource: "local".into(),
            duration: 10,
            ready: Time(100),
            deadline: Time(200),
            slots: Slots::of(vec![slot]).unwrap(),
            fixed: false,
            price: None,
            constraints: crate::agreement::PlacementConstraints::default(),
            job: None,
            guarantees: Vec::new(),
            choices: Vec::new(),
            state: if outcome.is_some() {
                AgreementState::Complete
            } else {
                AgreementState::Observed
            },
            service: if outcome.is_some() {
                ServiceState::Completed
            } else {
                ServiceState::Processing
            },
            started: Some(101 * MICROS_PER_SECOND),
            ended: ended_s.map(|at| at * MICROS_PER_SECOND),
            outcome,
            created: 50 * MICROS_PER_SECOND,
            version: 1,
            origin: None,
        }
    }

    fn state(objective: &str, condition: Option<&str>, agreement: &Agreement) -> GuaranteeState {
        let mut guarantee = Guarantee {
            name: "G".into(),
            objective: objective.into(),
            qualifying_condition: condition.map(Into::into),
            state: GuaranteeState::NotDetermined,
            evidence: None,
            values: Values::default(),
        };
        assess(&mut guarantee, agreement, 300 * MICROS_PER_SECOND);
        guarantee.state
    }

    #[test]
    fn completion_is_judged_by_the_deadline_and_by_how_the_work_ended() {
        use GuaranteeState::{Fulfilled, NotDetermined, Violated};
        for (outcome, ended, expected) in [
            (Some(RunOutcome::Completed), Some(110), Fulfilled),
            (Some(RunOutcome::Completed), Some(200), Fulfilled),
            (Some(RunOutcome::Completed), Some(201), Violated),
            (Some(RunOutcome::Failed { exit: 1 }), Some(110), Fulfilled),
            (
                Some(RunOutcome::Exceeded {
                    limit: crate::agreement::Limit::Memory,
                }),
                Some(110),
                Fulfilled,
            ),
            (Some(RunOutcome::Killed), Some(110), Violated),
            (Some(RunOutcome::Lost), Some(110), Violated),
            (Some(RunOutcome::Terminated), Some(105), NotDetermined),
            (None, None, NotDetermined),
        ] {
            assert_eq!(
                state("completed le deadline", None, &agreement(outcome, ended)),
                expected,
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn work_that_its_partys_files_kept_from_starting_fulfils_and_violates_nothing() {
        let limit = crate::agreement::Limit::Files;
        let mut kept = agreement(Some(RunOutcome::Exceeded { limit }), Some(110));
        kept.started = None;
        for objective in ["completed le deadline", "started le latest_start"] {
            assert_eq!(
                state(objective, None, &kept),
                GuaranteeState::NotDetermined,
                "{objective}"
            );
        }
    }

    #[test]
    fn a_condition_that_does_not_hold_leaves_the_guarantee_undetermined() {
        let over = agreement(Some(RunOutcome::Killed), Some(110));
        assert_eq!(
            state("completed le deadline", Some("nodes gt 2"), &over),
            GuaranteeState::NotDetermined
        );
        assert_eq!(
            state("completed le deadline", Some("nodes ge 2"), &over),
            GuaranteeState::Violated
        );
    }

    #[test]
    fn work_that_had_all_of_its_slot_and_needed_more_was_not_failed_by_the_provider() {
        use GuaranteeState::{Fulfilled, NotDetermined, Violated};
        let qualified = Some("granted lt duration");
        let objective = "completed le deadline";
        let stopped = agreement(Some(RunOutcome::Killed), Some(110));
        assert_eq!(state(objective, qualified, &stopped), NotDetermined);
        let mut late = stopped.clone();
        late.slots[0].started = Some(106 * MICROS_PER_SECOND);
        assert_eq!(state(objective, qualified, &late), Violated);
        // Given more than was agreed, it was not failed either.
        late.slots[0].ended = Some(118 * MICROS_PER_SECOND);
        assert_eq!(state(objective, qualified, &late), NotDetermined);
        let mut never = agreement(Some(RunOutcome::Lost), Some(110));
        assert_eq!(state(objective, qualified, &never), Violated);
        never.started = None;
        assert_eq!(state(objective, qualified, &never), Violated);
        let done = agreement(Some(RunOutcome::Completed), Some(110));
        assert_eq!(state(objective, qualified, &done), Fulfilled);
        assert_eq!(state(objective, qualified, &agreement(None, None)), NotDetermined);
    }

    #[test]
    fn a_start_that_has_not_come_by_the_latest_one_violates_then_and_not_before() {
        let mut waiting = agreement(None, None);
        (waiting.started, waiting.service) = (None, ServiceState::NotReady);
        let mut guarantee = Guarantee {
            name: "START".into(),
            objective: "started ge ready and started le latest_start".into(),
            qualifying_condition: None,
            state: GuaranteeState::NotDetermined,
            evidence: None,
            values: Values::default(),
        };
        // It is planned for 100, and five seconds are tolerated.
        let mut looked = Vec::new();
        while guarantee.state == GuaranteeState::NotDetermined && looked.len() < 9 {
            let at = next_assessment(&guarantee, &waiting).unwrap();
            assess(&mut guarantee, &waiting, at);
            looked.push(at / MICROS_PER_SECOND);
        }
        assert_eq!(
            (guarantee.state, looked),
            (GuaranteeState::Violated, vec![101, 106])
        );
        assert_eq!(next_assessment(&guarantee, &waiting), None);
    }

    #[test]
    fn the_start_is_judged_by_the_real_start() {
        let over = agreement(Some(RunOutcome::Completed), Some(110));
        assert_eq!(
            state("started le planned_start", None, &over),
            GuaranteeState::Violated
        );
        assert_eq!(
            state("started ge ready and duration le PT10S", None, &over),
            GuaranteeState::Fulfilled
        );
    }
}
