//! Slots begin, some of them late, and starts are announced.
//!
//! A slot begins late because the service was down or the clock was stepped. One that is much too late has another place where there is
//! one, with or without a job (`super::lost_work`). A reservation that is a little late begins at once, and ends as much later where its
//! nodes are free for that. What was delivered in the end is told by the agreement itself. A configured time before a slot begins its
//! party is told of that, once for each start.

use std::collections::HashMap;

use domain::agreement::{Agreement, AgreementState, EventKind, ServiceState};
use domain::change::Change;
use scheduler::{Interval, Seconds, Time, counted};
use uuid::Uuid;

use crate::context::View;
use crate::decider::Decider;
use crate::journal::JournaledMap;
use crate::life::{Life, billing, held_nodes, lost_work, settle_moves, update};
use crate::placement::trial;
use crate::schedules::Schedules;
use crate::schedules::need::request_of_stretch;
use crate::table::holds;
use crate::timetable::Timetable;

/// Begins one slot: binds its nodes. Returns the agreement if there is a job to start.
pub(crate) fn begin_slot(decider: &mut Decider<'_>, mut agreement: Agreement) -> Option<Agreement> {
    let now = decider.present_second();
    // A job of an earlier time makes way for the one that starts now.
    decider.state.life.forget_lost_work(agreement.id);
    let nodes = decider
        .state
        .life
        .bind_held_nodes(&mut decider.state.schedules, &agreement, now);
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
        agreement.note_late_job(lateness_of_start(decider.view(), &agreement));
    }
    agreement.service = if agreement.job.is_some() {
        ServiceState::Processing
    } else {
        ServiceState::Idle
    };
    if agreement.job.is_none() {
        agreement.note_started(held_nodes::nodes_handed_over_since(decider.view(), &agreement));
    }
    let assessed = billing::assess_and_bill(decider, &mut agreement);
    let named = decider.state.schedules.names_of(&agreement.resource, &nodes);
    let mut detail = format!("on nodes {named} of {}", agreement.resource);
    if agreement.slots.is_split() {
        let (number, slots) = (agreement.slot_number(), agreement.slots.len());
        detail = format!("piece {number} of {slots}, {detail}");
    }
    if agreement.never_had_nodes() {
        detail += ", which has not told yet that it holds them for it";
    }
    if let Some(delay) = agreement.late_delivery_in_words() {
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
        self.unbind_held_nodes(schedules, agreement, now);
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

/// By how many seconds the slot of an agreement begins late that begins now. The nodes of a reservation that its cluster
/// holds are its party's, also while the service is down.
pub(crate) fn lateness_of_start(view: View<'_>, agreement: &Agreement) -> Seconds {
    let now = view.present_second();
    let resource = view.schedules.named(&agreement.resource);
    let kept = resource.filter(|_| agreement.job.is_none());
    let kept = kept.and_then(|kept| kept.kept_for(agreement));
    let whole = kept.filter(|kept| kept.nodes.len() >= agreement.slot_nodes() as usize);
    agreement.lateness(whole.map_or(now, |kept| kept.since.min(now)))
}

/// Has a reservation that is a little late end as much later as it begins, also beyond its deadline, where its nodes are
/// free for that and it does not expire before. Returns it as it is now.
pub(crate) fn prolong_late_start(decider: &mut Decider<'_>, agreement: Agreement) -> Agreement {
    let now = decider.present_second();
    let (slot, nodes) = agreement.slots[0].stretch();
    let (late, later) = (now - slot.start, Interval::of(now, slot.duration()));
    if later.end > agreement.latest_end(now + decider.settings.horizon) {
        return agreement;
    }
    // The offers in its place rely on its not having begun, and it begins now.
    holds::release_holds_about(&mut decider.bargaining(), agreement.id);
    let placed = trial::run_trial(&mut decider.search(), |search| {
        let (at, number) = search.placement.planned_slot(search.schedules, &agreement, 0)?;
        search
            .placement
            .take_slot_out(search.schedules, &agreement, 0, now);
        let mut placed = agreement.clone();
        placed.place_slot(0, (later, nodes));
        let request = request_of_stretch(&placed, number, (later, nodes));
        search.schedules.put(at, now, &request, now).then_some(placed)
    });
    let Some(mut placed) = placed else {
        return agreement;
    };
    placed.keep_promised_start(&agreement, now);
    let detail = format!(
        "it begins {} late, and ends as much later",
        counted(late, "second")
    );
    let mut events = vec![decider.event(EventKind::Moved, detail)];
    events.extend(billing::assess_and_bill(decider, &mut placed));
    update::update(decider, placed, events)
}

/// When starts are to be announced, and which have been.
#[derive(Debug, Clone, Default)]
pub(crate) struct Starts {
    before: Seconds,
    pub(super) times: Timetable<Uuid>,
    pub(super) announced: JournaledMap<HashMap<Uuid, Time>>,
}

impl Starts {
    /// The starts that are announced so many seconds before; none for 0.
    pub(crate) fn announced(before: Seconds) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// The next instant with something to announce.
    pub(crate) fn next(&self) -> Option<Time> {
        self.times.next()
    }

    /// Notes when the next start of an agreement is announced.
    pub(crate) fn watch(&mut self, agreement: &Agreement) {
        let waits = agreement.state == AgreementState::Observed
            && match agreement.service {
                ServiceState::NotReady => true,
                ServiceState::Idle => !agreement.has_nodes(),
                ServiceState::Processing | ServiceState::Completed => false,
            };
        let start = agreement.slot().start;
        let is_new = self.before > 0 && waits && self.announced.get(&agreement.id) != Some(&start);
        self.times.set(agreement.id, is_new.then(|| start - self.before));
    }

    /// The agreements whose next start is to be announced by `now`.
    pub(crate) fn due_by(&self, now: Time) -> Vec<Uuid> {
        self.times.due_by(now)
    }

    /// Notes that the start of an agreement at an instant has been announced.
    pub(crate) fn note_announced(&mut self, agreement: &Agreement, start: Time) {
        self.announced.insert(agreement.id, start);
        self.watch(agreement);
    }

    /// Lets go of an agreement that is over.
    pub(crate) fn forget(&mut self, id: Uuid) {
        self.times.set(id, None);
        self.announced.remove(&id);
    }
}

/// Announces the starts whose time has come. One that has come itself is not announced any more.
pub(crate) fn announce_starts(decider: &mut Decider<'_>) {
    let now = decider.present_second();
    for id in decider.state.life.to_announce_by(now) {
        let Some(agreement) = decider.state.must_get(id) else {
            continue;
        };
        let start = agreement.slot().start;
        decider.state.life.note_announced(&agreement, start);
        if start > now {
            // Its party is told nothing that a read would not say.
            settle_moves::settle_moves(decider, agreement.id);
            decider.batch.push(Change::AnnounceStart {
                agreement: Box::new(agreement),
                at: decider.now,
            });
        }
    }
}

#[cfg(test)]
mod tests;
