//! Slots begin that are due.

use domain::agreement::{Agreement, ServiceState};

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::elsewhere::peer;
use crate::life::deadlines::assess_at_deadlines;
use crate::life::starts::announce_starts;
use crate::life::{awaited_words, lost_work, overrun, reports, starts};
use crate::schedules::need::request_of_agreement;

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
                reports::finish_reservation(decider, agreement)?;
            } else if decider.state.schedules.is_at_peer(&agreement) {
                starting.extend(peer::begin_at_peer(decider, agreement));
            } else if agreement.slot().end <= now
                || agreement.is_too_late_by(starts::lateness_of_start(decider.view(), &agreement))
            {
                missed.push(agreement);
            } else if agreement.job.is_none() && starts::lateness_of_start(decider.view(), &agreement) > 0 {
                late.push(agreement.id);
            } else if let Some(begun) = starts::begin_slot(decider, agreement) {
                starting.push(begun);
            }
        }
        // The agreements with the least room come first. A slot that begins now is out of their way.
        missed.sort_by_key(|agreement| (request_of_agreement(agreement, 0).slack(now), agreement.id));
        for agreement in missed {
            let agreement = decider.live_agreement(agreement.id)?;
            lost_work::place_missed_slot_as_lost(decider, &agreement);
            let placed = decider.state.agreements.get(agreement.id).cloned();
            // A second later it might be late again.
            if let Some(placed) =
                placed.filter(|agreement| agreement.is_waiting() && agreement.slot().start <= now)
            {
                starting.extend(starts::begin_slot(decider, placed));
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
                let agreement = starts::prolong_late_start(decider, agreement);
                starting.extend(starts::begin_slot(decider, agreement));
            }
        }
        assess_at_deadlines(decider);
        Ok(DecisionStep::Done(starting))
    }
}
