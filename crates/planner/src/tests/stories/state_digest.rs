//! All of a state that decisions depend on, to be compared.
//!
//! Of a schedule these are the placements, the requests that wait, the free nodes over time, and its present; its marks are compared
//! in the tests of the crate `scheduler`. The memory of attempts, what is foreseen, and the questions of parties are left out. Maps are
//! compared without their order.

use std::fmt::Debug;

use crate::state::State;

/// The parts of a value, in no order.
fn parts(value: &impl Debug) -> String {
    // The first of a map stands behind its bracket, and any of them may be the first.
    let text = format!("{value:?}")
        .replace(['(', ')'], "")
        .replace(['{', '}', '[', ']'], ", ");
    let mut parts: Vec<&str> = text.split(", ").collect();
    parts.sort_unstable();
    parts.join("\n")
}

/// The owners of a state, and the plan of each resource.
pub(crate) fn state_digest(state: &State) -> Vec<String> {
    let owners = [
        parts(&state.life),
        parts(&state.table),
        parts(&state.elsewhere),
        parts(&state.placement),
        parts(&state.limits.without_questions()),
        parts(&state.agreements),
        state.schedules.in_words(),
    ];
    let plans = state.schedules.plans().map(|plan| {
        let schedule = &plan.schedule;
        let (placements, waiting): (Vec<_>, Vec<_>) =
            (schedule.placements().collect(), schedule.waiting().collect());
        let steps: Vec<_> = schedule.tree().steps_from(schedule.now()).skip(1).collect();
        let now = schedule.now();
        format!(
            "{now:?} {placements:?} {waiting:?} {steps:?} {}",
            parts(&plan.nodes_of_plan())
        )
    });
    owners.into_iter().chain(plans).collect()
}
