//! Guarantee terms and their assessment.
//!
//! An objective asks about a few facts of the agreement. A fact that has not come about has no value, and an objective
//! that needs it is not determined; but work that was stopped, or lost, will never complete, and an objective that
//! waits for its completion is violated.

use serde::{Deserialize, Serialize};
use wsag::expression::{Parsed, Value, Variables};
use wsag::time::{DateTime, Duration};

use super::{Agreement, GuaranteeState, Outcome};

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
    /// What the state was found from.
    pub evidence: Option<String>,
}

/// Later than every deadline: when work that was stopped or lost will have completed.
const NEVER_S: i64 = i64::MAX;

/// Finds the state of a guarantee from what has come about.
pub fn assess(guarantee: &mut Guarantee, agreement: &Agreement) {
    let fact = |name: &str| fact(agreement, name);
    let holds = |text: &str| {
        let parsed = Parsed::parse(text, &Variables::predefined());
        parsed.ok().and_then(|expression| expression.evaluate(fact))
    };
    if let Some(condition) = &guarantee.qualifying_condition
        && holds(condition) != Some(true)
    {
        guarantee.state = GuaranteeState::NotDetermined;
        guarantee.evidence = Some(format!("its condition, {condition}, does not hold"));
        return;
    }
    guarantee.state = match holds(&guarantee.objective) {
        Some(true) => GuaranteeState::Fulfilled,
        Some(false) => GuaranteeState::Violated,
        None => GuaranteeState::NotDetermined,
    };
    guarantee.evidence = Some(evidence(guarantee, agreement));
}

/// The value of a variable of the expression language.
fn fact(agreement: &Agreement, name: &str) -> Option<Value> {
    let second = |time: scheduler::Time| Value::DateTime(DateTime::from_seconds(time.seconds()));
    let instant = |at| Value::DateTime(DateTime::from_micros(at));
    match name {
        "submitted" => Some(instant(agreement.created)),
        "ready" => Some(second(agreement.ready)),
        "deadline" => Some(second(agreement.deadline)),
        "planned_start" => Some(second(agreement.placement.start)),
        "started" => agreement.started.map(instant),
        "completed" => match agreement.outcome? {
            Outcome::Completed | Outcome::Failed { .. } => agreement.ended.map(instant),
            Outcome::Killed | Outcome::Lost => Some(Value::DateTime(DateTime::from_seconds(NEVER_S))),
            Outcome::Terminated => None,
        },
        "duration" => Some(Value::Duration(Duration::from_seconds(agreement.duration))),
        "nodes" => Some(Value::Number(f64::from(agreement.nodes))),
        _ => None,
    }
}

/// The facts that an objective names, in words.
fn evidence(guarantee: &Guarantee, agreement: &Agreement) -> String {
    let completion = match agreement.outcome {
        Some(Outcome::Killed) => "stopped at the end of its slot before it completed",
        Some(Outcome::Lost) => "lost",
        Some(Outcome::Terminated) => "terminated",
        Some(Outcome::Completed | Outcome::Failed { .. }) => "ended by itself",
        None => "not over",
    };
    format!("{}; {completion}", guarantee.objective)
}

#[cfg(test)]
mod tests {
    use scheduler::{Interval, Time};
    use uuid::Uuid;

    use super::*;
    use crate::agreement::{AgreementState, ServiceState};
    use crate::clock::MICROS_PER_SECOND;

    fn agreement(outcome: Option<Outcome>, ended_s: Option<i64>) -> Agreement {
        Agreement {
            id: Uuid::nil(),
            party: "physics".into(),
            name: None,
            template: "t".into(),
            resource: "local".into(),
            nodes: 2,
            duration: 10,
            ready: Time(100),
            deadline: Time(200),
            placement: Interval::of(Time(100), 10),
            fixed: false,
            price: None,
            leeway: crate::agreement::Leeway::default(),
            job: None,
            guarantees: Vec::new(),
            state: AgreementState::Observed,
            service: ServiceState::Completed,
            started: Some(101 * MICROS_PER_SECOND),
            ended: ended_s.map(|at| at * MICROS_PER_SECOND),
            outcome,
            created: 50 * MICROS_PER_SECOND,
            version: 1,
        }
    }

    fn state(objective: &str, condition: Option<&str>, agreement: &Agreement) -> GuaranteeState {
        let mut guarantee = Guarantee {
            name: "G".into(),
            objective: objective.into(),
            qualifying_condition: condition.map(Into::into),
            state: GuaranteeState::NotDetermined,
            evidence: None,
        };
        assess(&mut guarantee, agreement);
        guarantee.state
    }

    #[test]
    fn completion_is_judged_by_the_deadline_and_by_how_the_work_ended() {
        use GuaranteeState::{Fulfilled, NotDetermined, Violated};
        for (outcome, ended, expected) in [
            (Some(Outcome::Completed), Some(110), Fulfilled),
            (Some(Outcome::Completed), Some(200), Fulfilled),
            (Some(Outcome::Completed), Some(201), Violated),
            (Some(Outcome::Failed { exit: 1 }), Some(110), Fulfilled),
            (Some(Outcome::Killed), Some(110), Violated),
            (Some(Outcome::Lost), Some(110), Violated),
            (Some(Outcome::Terminated), Some(105), NotDetermined),
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
    fn a_condition_that_does_not_hold_leaves_the_guarantee_undetermined() {
        let over = agreement(Some(Outcome::Killed), Some(110));
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
    fn the_start_is_judged_by_the_real_start() {
        let over = agreement(Some(Outcome::Completed), Some(110));
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
