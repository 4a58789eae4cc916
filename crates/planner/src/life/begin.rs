//! Slots begin.

use domain::agreement::{Agreement, EventKind, ServiceState};
use domain::change::Change;
use scheduler::{Interval, Time};

use crate::decider::Decider;
use crate::life::{Life, billing, held_nodes, late_starts, lost_work, update};
use crate::schedules::Schedules;
use crate::words;

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
            lost_work::lose_work_on_nodes(decider, agreement.id);
        }
        return None;
    }
    let slot = agreement.slot();
    let interval = Interval::new(slot.start.max(now), slot.end);
    if !decider.state.schedules.is_at_peer(&agreement) {
        agreement.note_late_job(late_starts::lateness_of_start(decider.view(), &agreement));
    }
    agreement.service = if agreement.job.is_some() {
        ServiceState::Processing
    } else {
        ServiceState::Idle
    };
    if agreement.job.is_none() {
        agreement.note_started(held_nodes::nodes_handed_over_since(decider.view(), &agreement));
    }
    let assessed = billing::assess_and_post(decider, &mut agreement);
    let named = words::names_of(decider.view(), &agreement.resource, &nodes);
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

impl Life {
    /// Has the slot of an agreement begin with the next second, where its nodes are free from then on: work on some of them ended
    /// within this one, and those that it counted on are gone. Returns whether that is so. The agreement has no nodes until then.
    fn begin_a_second_later(&mut self, schedules: &mut Schedules, agreement: &Agreement, now: Time) -> bool {
        self.unbind(schedules, agreement, now);
        self.bound.remove(&agreement.id);
        let resource = schedules.named(&agreement.resource);
        let free = resource.map_or(0, |resource| resource.free_nodes(agreement, now + 1).len());
        let is_later = free >= agreement.slot_nodes() as usize;
        if is_later {
            self.due.set(agreement.id, Some(now + 1));
        }
        is_later
    }
}
