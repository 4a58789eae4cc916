//! A job that is not over as its slot nears its end: the slot is made longer, a step at a time, where its template allows
//! it and its nodes are free or others can move inside their windows. Otherwise it is told to save its work, and the rest goes
//! on in another slot, where its application can and there is one ([`saved_work`]). Otherwise it ends with its slot, and its
//! timeline says why.

pub(crate) mod saved_work;

use domain::agreement::{Agreement, EventKind};
use scheduler::{Request, Time, counted};
use uuid::Uuid;

use crate::agreements::Agreements;
use crate::decider::Decider;
use crate::life::{Life, succession, update};
use crate::overruns::{LastLook, most_cost_of_overruns_in_words};
use crate::placement::trial;
use crate::schedules::Schedules;
use crate::table::{change_end, holds, replace};

/// Handles the work of an agreement that is not over: makes its slot longer, finds another slot for the rest, or
/// changes nothing.
pub(crate) fn handle_overrun(decider: &mut Decider<'_>, agreement: &Agreement) {
    let now = decider.present_second();
    let (id, end) = (agreement.id, agreement.slot().end);
    let before = decider.state.life.last_look(id);
    let grace = decider.state.life.grace(agreement).filter(|_| before.is_none());
    // As much time may have passed without a check.
    let grace = grace.filter(|grace| end - *grace > now);
    if agreement.slot_started().is_none() || end <= now + 1 {
        // No work runs yet, or it was stopped before this check.
        let begins = grace
            .map(|_| LastLook::Unsaved("its work had hardly begun when it was to be told to save itself"));
        decider.state.life.look_again_for_overrun(
            &decider.state.schedules,
            &decider.state.agreements,
            id,
            begins.or(Some(LastLook::Never)),
        );
        return;
    }
    let step = decider.settings.overruns.step(agreement);
    let longer = agreement.latest_end(end + step);
    let why = if step <= 0 {
        "it has been made longer by all that its template allows"
    } else if longer <= end {
        "it expires"
    } else if prolong_overrun_slot(decider, agreement, longer) {
        return;
    } else {
        "its nodes are promised to others"
    };
    if let Some(grace) = grace {
        if !saved_work::try_save_work(decider, agreement, grace) {
            // Its nodes may become free until the last moment.
            let unsaved = LastLook::Unsaved("there is no other place for the rest of its work");
            decider.state.life.look_again_for_overrun(
                &decider.state.schedules,
                &decider.state.agreements,
                id,
                Some(unsaved),
            );
        }
        return;
    }
    decider.state.life.look_again_for_overrun(
        &decider.state.schedules,
        &decider.state.agreements,
        id,
        Some(LastLook::Never),
    );
    let mut detail = format!("its work is not over, and its slot ends: {why}");
    if let Some(LastLook::Unsaved(unsaved)) = before {
        detail += &format!(", and {unsaved}");
    }
    let event = decider.event(EventKind::Overrun, detail);
    if let Some(agreement) = decider.state.agreements.get(id).cloned() {
        update::update(decider, agreement, vec![event]);
    }
}

/// Makes a slot that has begun longer, to `end` where that can be had; whether it is longer now.
fn prolong_overrun_slot(decider: &mut Decider<'_>, agreement: &Agreement, end: Time) -> bool {
    let now = decider.present_second();
    // The offers in its place relied on its end.
    holds::release_holds_about(&mut decider.bargaining(), agreement.id);
    let present =
        decider
            .state
            .placement
            .planned_slot(&mut decider.state.schedules, agreement, agreement.slots_over());
    let Some((at, number)) = present else {
        return false;
    };
    let longer = trial::run_trial(&mut decider.search(), |search| {
        search.schedules.vacate(at, now, number);
        let end = change_end::reached_end(search, at, agreement, end);
        let rest = replace::running_to_replace(search.view(), at, agreement, number);
        let longer = Request {
            deadline: end,
            duration: end - rest.ready,
            ..rest
        };
        let is_longer = end > agreement.placement().end;
        let placed = is_longer.then(|| search.schedules.submit(at, now, &longer));
        placed.flatten().map(|(_, moves)| (end, moves))
    });
    let Some((end, moves)) = longer else {
        return false;
    };
    succession::hand_over_nodes_to_successor(decider, agreement, agreement.id, end);
    let more = end - agreement.placement().end;
    let mut longer = agreement.clone();
    // Time beyond its deadline that the provider itself has added is not late.
    longer.end_last_slot(end);
    let mut detail = format!(
        "its work is not over: its slot is {} longer",
        counted(more, "second")
    );
    detail += &most_cost_of_overruns_in_words(agreement, more);
    let event = decider.event(EventKind::Overrun, detail);
    decider.state.life.look_again_for_overrun(
        &decider.state.schedules,
        &decider.state.agreements,
        agreement.id,
        None,
    );
    update::update(decider, longer, vec![event]);
    update::update_after_moves(decider, &moves, "to let go on what is not over");
    true
}

impl Life {
    /// How often the slot of an agreement is looked at again, where that is said.
    fn last_look(&self, id: Uuid) -> Option<LastLook> {
        self.ending.get(&id).copied()
    }

    /// When it is to be looked at whether the work of an agreement is over.
    pub(super) fn next_overrun_look(&self, schedules: &Schedules, agreement: &Agreement) -> Option<Time> {
        if schedules.is_at_peer(agreement) {
            // Its slot there is the peer's to make longer.
            return None;
        }
        let grace = match self.ending.get(&agreement.id) {
            Some(LastLook::Never) => return None,
            Some(LastLook::Unsaved(_)) => 0,
            None => self.overruns.grace(agreement).unwrap_or(0),
        };
        self.overruns.look_at(agreement, grace)
    }

    /// Notes how often the slot of an agreement is looked at again; as often as it takes where that is not said.
    pub(crate) fn look_again_for_overrun(
        &mut self,
        schedules: &Schedules,
        agreements: &Agreements,
        id: Uuid,
        last: Option<LastLook>,
    ) {
        let Some(agreement) = agreements.get(id) else {
            return;
        };
        match last {
            Some(last) => self.ending.insert(id, last),
            None => {
                self.ending.remove(&id);
            }
        }
        self.note_next_deadline(schedules, agreement);
    }
}
