//! Slots begin.

use domain::agreement::{Agreement, EventKind, ServiceState};
use domain::change::Change;
use scheduler::Interval;

use crate::decider::Decider;
use crate::life::{billing, held_nodes, late_starts, lost_work, update};
use crate::placement::eligible;

/// Begins one slot: binds its nodes. Returns the agreement if there is a job to start.
pub(crate) fn begin(decider: &mut Decider<'_>, mut agreement: Agreement) -> Option<Agreement> {
    let now = decider.present_second();
    // A job of an earlier time makes way for the one that starts now.
    decider.state.life.forget_lost_work(agreement.id);
    let nodes = decider
        .state
        .life
        .bind(&mut decider.state.schedules, &agreement, now);
    if nodes.len() < agreement.slot_nodes() as usize {
        // Otherwise the plan does not take the loss of these nodes into account yet.
        if !decider
            .state
            .life
            .begin_a_second_later(&mut decider.state.schedules, &agreement, now)
        {
            lost_work::lose(decider, agreement.id);
        }
        return None;
    }
    let slot = agreement.slot();
    let interval = Interval::new(slot.start.max(now), slot.end);
    if !decider.state.schedules.is_at_peer(&agreement) {
        agreement.note_late_job(late_starts::lateness(decider.view(), &agreement));
    }
    agreement.service = if agreement.job.is_some() {
        ServiceState::Processing
    } else {
        ServiceState::Idle
    };
    if agreement.job.is_none() {
        agreement.note_started(held_nodes::handed_over_nodes(decider.view(), &agreement));
    }
    let assessed = billing::assess(decider, &mut agreement);
    let named = eligible::names_of(decider.view(), &agreement.resource, &nodes);
    let mut detail = format!("on nodes {named} of {}", agreement.resource);
    if agreement.slots.is_split() {
        let (number, slots) = (agreement.slot_number(), agreement.slots.len());
        detail = format!("piece {number} of {slots}, {detail}");
    }
    if agreement.never_had_nodes() {
        detail += ", which has not told yet that it holds them for it";
    }
    if let Some(delay) = agreement.delay_in_words() {
        detail += &format!(", {delay}");
    }
    let bind = Change::BindNodes {
        agreement: agreement.id,
        resource: agreement.resource.clone(),
        nodes,
        interval,
    };
    let mut events = vec![decider.event(EventKind::Begun, detail)];
    events.extend(assessed);
    let agreement = update::update(decider, agreement, events);
    decider.batch.push(bind);
    agreement.job.is_some().then_some(agreement)
}
