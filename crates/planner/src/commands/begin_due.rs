//! Slots begin that are due.

use domain::agreement::{Agreement, ServiceState};
use domain::change::Change;
use scheduler::Time;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::elsewhere::peer;
use crate::life::{awaited_words, begin, billing, late_starts, overrun, retry, update};
use crate::requests::request_of_agreement;

/// Every slot that is due is to begin, and every reservation without a job that is at the end of its slot is to be closed. The answer is
/// the agreements with a job to start now.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) where it could not be stored; nothing has begun then.
#[derive(Debug, Clone, Copy)]
pub struct BeginDue;

impl Command for BeginDue {
    type Answer = Vec<Agreement>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let now = decider.present_second();
        announce_starts(decider);
        decider.state.life.give_up_stopping_lost_work(now);
        let (mut starting, mut missed, mut late) = (Vec::new(), Vec::new(), Vec::new());
        for id in decider.state.life.due_by(now) {
            let Some(agreement) = decider.state.must_get(id) else {
                continue;
            };
            if agreement.service == ServiceState::Processing {
                overrun::handle_overrun(decider, &agreement);
            } else if awaited_words::awaits_word_of_cluster(decider.view(), &agreement) {
                // Its nodes may be its party's already.
            } else if agreement.has_nodes() {
                late_starts::finish_reservation(decider, agreement)?;
            } else if decider.state.schedules.is_at_peer(&agreement) {
                starting.extend(peer::begin_at_peer(decider, agreement));
            } else if agreement.slot().end <= now
                || agreement.is_too_late_by(late_starts::lateness(decider.view(), &agreement))
            {
                missed.push(agreement);
            } else if agreement.job.is_none() && late_starts::lateness(decider.view(), &agreement) > 0 {
                late.push(agreement.id);
            } else if let Some(begun) = begin::begin(decider, agreement) {
                starting.push(begun);
            }
        }
        // The agreements with the least room come first. A slot that begins now is out of their way.
        missed.sort_by_key(|agreement| (request_of_agreement(agreement, 0).slack(now), agreement.id));
        for agreement in missed {
            let agreement = decider.live_agreement(agreement.id)?;
            retry::place_missed_slot(decider, &agreement);
            let placed = decider.state.agreements.get(agreement.id).cloned();
            // A second later it might be late again.
            if let Some(placed) =
                placed.filter(|agreement| agreement.is_waiting() && agreement.slot().start <= now)
            {
                starting.extend(begin::begin(decider, placed));
            }
        }
        // What has lost its whole slot comes before what has lost a little of it.
        for id in late {
            if let Some(agreement) = decider
                .state
                .agreements
                .get(id)
                .filter(|plan| plan.is_waiting())
                .cloned()
            {
                let agreement = late_starts::prolong_late_slot(decider, agreement);
                starting.extend(begin::begin(decider, agreement));
            }
        }
        assess_due(decider);
        Ok(DecisionStep::Done(starting))
    }
}

/// Announces the starts whose time has come. One that has come itself is not announced any more.
fn announce_starts(decider: &mut Decider<'_>) {
    let now = decider.present_second();
    for id in decider.state.life.to_announce_by(now) {
        let Some(agreement) = decider.state.must_get(id) else {
            continue;
        };
        let start = agreement.slot().start;
        decider.state.life.note_announced(&agreement, start);
        if start > now {
            decider.batch.push(Change::AnnounceStart {
                agreement: Box::new(agreement),
                at: decider.now,
            });
        }
    }
}

/// Assesses the agreements for which time alone may decide something by now.
fn assess_due(decider: &mut Decider<'_>) {
    for id in decider.state.life.to_assess_by(decider.present_second()) {
        let Some(mut agreement) = decider.state.must_get(id) else {
            continue;
        };
        let events = billing::assess(decider, &mut agreement);
        if events.is_empty() {
            // A check without a result need not be stored: it is repeated after a restart.
            decider.state.replace(agreement, Time::MIN);
        } else {
            update::update(decider, agreement, events);
        }
    }
}
