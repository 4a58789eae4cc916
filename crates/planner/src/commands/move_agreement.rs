//! Moves that operators order: a waiting agreement goes elsewhere inside what was agreed, and nothing else moves for it.

use domain::agreement::{Agreement, EventKind, Note};
use domain::change::Change;
use domain::clock::time_in_words;
use scheduler::{Interval, Time};
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::error::{Error, Result};
use crate::life::update;
use crate::placement::find::rest_of_window;
use crate::placement::{eligible_resources, find, trial};
use crate::request::{Idempotency, Scope};

/// A waiting agreement is to be moved to another resource or start, inside its window and what else was agreed.
///
/// # Errors
/// [`Error::NotFound`] also when it has ended, [`Error::Conflict`] where it does not wait, [`Error::Unfit`] where it may not go there or
/// there is no room, [`Error::Changed`] when it is in another version, [`Error::Repeated`] where its idempotency key has been used,
/// [`Error::Unavailable`] where it could not be stored.
#[derive(Debug, Clone)]
pub struct MoveAgreement {
    /// Which agreement.
    pub id: Uuid,
    /// The party of the operator.
    pub by: String,
    /// The resource that it goes to; where none is named it stays on its own.
    pub resource: Option<String>,
    /// When it is to start; the earliest that is free there where it is not said.
    pub start: Option<Time>,
    /// Why, in words for its party, where that is said.
    pub reason: Option<String>,
    /// The versions that it may have, where the caller names some.
    pub versions: Option<Vec<i64>>,
    /// The key that the request came with.
    pub idempotency: Option<Idempotency<Agreement>>,
}

impl Command for MoveAgreement {
    type Answer = Agreement;

    fn scope(&self) -> Option<Scope> {
        self.idempotency.as_ref().map(Idempotency::scope)
    }

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        decider.check_idempotency_key(self.idempotency.as_ref())?;
        let agreement = decider.live_agreement(self.id)?;
        if self
            .versions
            .as_ref()
            .is_some_and(|may| !may.contains(&agreement.version))
        {
            return Err(Error::Changed);
        }
        let (at, window, start) = place_to_move_to(decider, &agreement, &self)?;
        let now = decider.present_second();
        let mut stays = false;
        let found = trial::run_trial(&mut decider.search(), |search| {
            find::take_slots_out(search, &agreement, 0, now);
            let placed = find::find_places_in_turn(search, at, &agreement, 0, window, now)?;
            let found = placed.placement().start;
            // It is left as it is, also in what may move of it.
            stays = placed == agreement && start.is_none_or(|wanted| wanted == found);
            (!stays && start.is_none_or(|wanted| wanted == found)).then_some(placed)
        });
        let placed = if stays { Some(agreement.clone()) } else { found };
        let Some(placed) = placed else {
            let from = start.map_or_else(String::new, |start| format!(" from {} on", time_in_words(start)));
            let to = self.resource.as_deref().unwrap_or(&agreement.resource);
            let why = format!("{to} has not the nodes free{from} in the window of the agreement");
            return Err(Error::Unfit(why));
        };
        let is_pinned = self.start.is_some() && !agreement.fixed;
        let mut moved = agreement;
        if !stays || is_pinned {
            let why = self
                .reason
                .map_or_else(String::new, |reason| format!(": {reason}"));
            let (party, to) = (&placed.party, &placed.resource);
            let start = time_in_words(placed.placement().start);
            let words = format!("moved {} of {party} to {to} at {start}{why}", self.id);
            let note = Note::of_operator(decider.now, &self.by, self.id, words);
            decider.batch.push(Change::Note(note));
            if !stays {
                let taken = update::update_to_found_place(decider, placed, &format!("by the operator{why}"));
                moved = taken.ok_or(Error::Unavailable)?;
            }
            moved = fix_moved_agreement(decider, moved, self.start.is_some());
        }
        decider.remember_idempotent_answer(self.idempotency, &moved);
        Ok(DecisionStep::Done(moved))
    }
}

/// Keeps an agreement at the start that an order has named: else it would move up again.
fn fix_moved_agreement(decider: &mut Decider<'_>, mut moved: Agreement, is_named: bool) -> Agreement {
    if !is_named || moved.fixed {
        return moved;
    }
    decider.state.placement.fix(&mut decider.state.schedules, &moved);
    moved.fixed = true;
    let event = decider.event(EventKind::Fixed, "its slot moves no more");
    update::update(decider, moved, vec![event])
}

/// The resource that an order names, the part of the window of its agreement that the order leaves, and the start that it is to
/// have, if one.
///
/// # Errors
/// Why it may not be moved so.
fn place_to_move_to(
    decider: &Decider<'_>,
    agreement: &Agreement,
    order: &MoveAgreement,
) -> Result<(usize, Interval, Option<Time>)> {
    let unfit = |why: String| Err(Error::Unfit(why));
    if !agreement.is_waiting() {
        return Err(Error::Conflict(
            "not waiting for its slot, so it stays where it is",
        ));
    }
    // As after a failure, what moves no more keeps its time on another resource.
    let kept = agreement.fixed.then(|| agreement.placement().start);
    if kept.is_some_and(|kept| order.start.is_some_and(|start| start != kept)) {
        return unfit("its time moves no more".to_owned());
    }
    if decider.state.table.is_counted_on(agreement.id) {
        return unfit("offers to change it are held, which count on its place".to_owned());
    }
    let to = order.resource.as_deref().unwrap_or(&agreement.resource);
    let at = decider.state.schedules.place_of(to);
    let Some(at) = at.filter(|at| eligible_resources::may_go_to_resource(decider.view(), *at, agreement))
    else {
        return unfit(format!(
            "{to} may not take it: it is not in service, is frozen, or has not what was asked for"
        ));
    };
    if to != agreement.resource && decider.state.schedules.closed().any(|closed| closed == to) {
        return unfit(format!("nothing is promised on {to} before it has been checked"));
    }
    let now = decider.present_second();
    let mut window = rest_of_window(agreement, now);
    if let Some(near) = decider.state.elsewhere.near_until(to, now) {
        // Nearer slots are promised only when the cluster holds their nodes.
        window.start = window.start.max(near + 1);
    }
    match order.start.or(kept) {
        Some(start) if start < window.start || start >= window.end => unfit(format!(
            "it may start there from {} on, and is to end by {}",
            time_in_words(window.start),
            time_in_words(window.end)
        )),
        Some(start) => Ok((at, Interval::new(start, window.end), Some(start))),
        None => Ok((at, window, None)),
    }
}

#[cfg(test)]
mod tests;
