//! An agreement goes on with the work of another one.

use domain::agreement::{
    Agreement, AgreementState, Event, EventKind, GuaranteeState, OfferTerms, PostingKind,
};
use domain::change::Change;
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::Result;
use crate::life::{billing, update};
use crate::schedules::nodes_out_of_use;

/// Continues the work of an old agreement under a new one. Its nodes, where it has any, belong to the new one from the
/// start. Returns the new agreement after this.
pub(crate) fn take_over_as_successor(
    decider: &mut Decider<'_>,
    old: &Agreement,
    new: Agreement,
) -> Agreement {
    if old.has_nodes() {
        hand_over_nodes_to_successor(decider, old, new.id, new.slot().end);
    }
    let goes_on = decider.event(EventKind::Begun, format!("goes on with what runs for {}", old.id));
    update::update(decider, new, vec![goes_on])
}

/// Gives the nodes of an agreement that has begun to another, or to itself, until `end`.
pub(crate) fn hand_over_nodes_to_successor(
    decider: &mut Decider<'_>,
    old: &Agreement,
    to: Uuid,
    end: scheduler::Time,
) {
    decider
        .state
        .life
        .hand_over_held_nodes(&mut decider.state.schedules, old, to, end);
    decider.batch.push(Change::HandOverNodes {
        from: old.id,
        to,
        now: decider.present_second(),
        end,
    });
    if end < old.slot().end {
        nodes_out_of_use::keep_freed_nodes_out_of_use(&mut decider.search(), &old.resource);
    }
}

/// Has an agreement go on with the work of another one that has begun. The guarantees of the other one are settled. Returns the lines for the
/// timeline of the other one.
pub(crate) fn succeed_to_work(
    decider: &mut Decider<'_>,
    old: &mut Agreement,
    new: &mut Agreement,
) -> Vec<Event> {
    let settled = settle_guarantees_of_successor(decider, old, new);
    (new.service, new.started) = (old.service, old.started);
    new.origin = Some(old.execution_id());
    new.job.clone_from(&old.job);
    new.constraints.estimate = old.constraints.estimate;
    settled
}

/// The assessments of the guarantees of an agreement by now are settled with it. The agreement that goes on with its
/// work knows them, and owes nothing for them again. Nor does it owe anything for a guarantee that it adds: the work
/// that has begun may have broken it already. Returns the lines for the old one's timeline.
fn settle_guarantees_of_successor(
    decider: &mut Decider<'_>,
    old: &mut Agreement,
    new: &mut Agreement,
) -> Vec<Event> {
    let events = billing::assess_and_bill(decider, old);
    new.constraints.promised = old.constraints.promised;
    for guarantee in &mut new.guarantees {
        let found = old
            .guarantees
            .iter()
            .find(|one_guarantee| one_guarantee.name == guarantee.name);
        if found.is_none_or(|found| found.state != GuaranteeState::NotDetermined) {
            guarantee.values.penalties.clear();
            guarantee.values.rewards.clear();
        }
        if let Some(found) = found.filter(|found| found.state != GuaranteeState::NotDetermined) {
            guarantee.state = found.state;
            guarantee.evidence.clone_from(&found.evidence);
            guarantee.values.determined = found.values.determined;
        }
    }
    events
}

/// Ends an agreement that another one has taken the place of, for the fee that was quoted.
pub(crate) fn supersede_offers(
    decider: &mut Decider<'_>,
    mut old: Agreement,
    mut events: Vec<Event>,
    by: Uuid,
    terms: &OfferTerms,
) -> Result<()> {
    events.push(decider.event(EventKind::Superseded, format!("by {by}")));
    if let Some(fee) = terms.fee {
        let why = terms.fee_why.as_ref();
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        events.extend(billing::charge(
            decider,
            &old,
            PostingKind::Change,
            fee,
            &format!("change{why}"),
        ));
    }
    events.extend(update::must_update_to_closed(
        decider,
        &mut old,
        AgreementState::Complete,
        decider.now,
    )?);
    decider.batch.push(Change::Supersede { old: old.id, new: by });
    update::update(decider, old, events);
    Ok(())
}

/// Makes an agreement as its offer promised. The words that accept it may be understood in another way by now.
pub(crate) fn succeed_to_promise(agreement: &mut Agreement, terms: &OfferTerms) {
    if let Some(promise) = terms.promise.as_deref().cloned() {
        agreement.template = promise.template;
        agreement.constraints = promise.constraints;
        agreement.job = promise.job;
        agreement.guarantees = promise.guarantees;
    }
}
