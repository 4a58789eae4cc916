//! Work that is lost while it may still run: its agreement is over, and its job is to be stopped.

use domain::agreement::{Agreement, EventKind, ServiceState};
use scheduler::Interval;
use uuid::Uuid;

use crate::context::Search;
use crate::decider::Decider;
use crate::error::{Error, Result};
use crate::life::overrun::saved_work;
use crate::life::{executions, pieces, update};
use crate::placement::{at_peer, choice, refuse};
use crate::schedules::need::Need;
use crate::table::negotiate;
use crate::words::{piece_in_words, time_difference_in_words};

/// Ends an agreement at once because the provider takes its time back. Its work is lost, and nothing is charged. Its
/// guarantees are judged as they are; where the provider has excused itself in general, they pay nothing.
///
/// # Errors
/// [`Error::Unavailable`] where it cannot be closed.
pub(crate) fn end_taken_back(decider: &mut Decider<'_>, mut agreement: Agreement) -> Result<Agreement> {
    if agreement.state.terminating().is_none() {
        // Its party has ended it already.
        return Ok(agreement);
    }
    if !decider.settings.failures.taken_back_pays {
        for guarantee in &mut agreement.guarantees {
            guarantee.values.penalties.clear();
        }
    }
    let detail = format!("the operator of {} has taken its time back", agreement.resource);
    let lost = pieces::lose_agreement_because(decider, agreement, EventKind::Broken, detail);
    let lost = lost.ok_or(Error::Unavailable)?;
    negotiate::release_holds_about(&mut decider.bargaining(), lost.id);
    Ok(lost)
}

/// Ends the work that ran on nodes that are gone.
pub(crate) fn lose(decider: &mut Decider<'_>, id: Uuid) -> Option<Agreement> {
    let agreement = decider.state.agreements.get(id).cloned()?;
    let detail = format!("its nodes of {} are gone", agreement.resource);
    let had_job = agreement.service == ServiceState::Processing;
    let end = executions::end_of_lost_work(decider.view(), &agreement);
    let lost = pieces::lose_agreement_because(decider, agreement, EventKind::Ended, detail)?;
    if had_job {
        executions::record_execution(decider, &lost, &end);
    }
    Some(lost)
}

/// Ends an agreement with a slot that has no place any more, unless peers can be asked to carry it out. It lies on the resource of a peer until
/// their word has come, with no agreement of the peer's behind it, and is returned. So it is known after a restart, too.
pub(crate) fn end_or_ask_peers(
    decider: &mut Decider<'_>,
    agreement: Agreement,
    index: usize,
    why: &str,
) -> Option<Agreement> {
    let Some(placed) = at_peer::put_to_ask_peers(&mut decider.search(), &agreement, index) else {
        break_without_place(decider, agreement, index, why);
        return None;
    };
    let detail = format!("{why}, and there is no other place in its window here: other domains are asked");
    let event = decider.event(EventKind::Forwarded, detail);
    Some(update::update(decider, placed, vec![event]))
}

/// Ends an agreement with a slot that has no place any more, and tells its party the reason and the alternatives.
/// Leaves the agreement at its contract where that slot would have added to it.
pub(crate) fn break_without_place(decider: &mut Decider<'_>, agreement: Agreement, index: usize, why: &str) {
    if agreement.adds_to_contract(index) {
        saved_work::give_up_rest_of_saved(decider, &agreement, why);
        return;
    }
    let mut lost = format!("{why}, and there is no other place in its window");
    let piece = piece_in_words(&agreement, index);
    if !piece.is_empty() {
        lost += &format!(" for {}", piece.trim_end());
    }
    if agreement.slots_begun() == 0 {
        lost = loss_in_words(&mut decider.search(), &agreement, &lost);
    }
    pieces::lose_agreement_because(decider, agreement, EventKind::Broken, lost);
}

/// Why an agreement is `lost` and which slots outside its window there are, in words for its party.
fn loss_in_words(search: &mut Search<'_>, agreement: &Agreement, lost: &str) -> String {
    let now = search.present_second();
    let window = Interval::new(agreement.ready.max(now), agreement.deadline);
    let need = Need {
        submitted: now,
        is_new: true,
        ..Need::of_agreement(agreement, window)
    };
    let requests = choice::requests(search.view(), &need);
    let slots: Vec<String> = refuse::alternatives(search, &need, &requests)
        .iter()
        .map(|alternative| time_difference_in_words(alternative.slot.start - agreement.placement().start))
        .collect();
    if slots.is_empty() {
        lost.to_owned()
    } else {
        format!("{lost}; there is room {}", slots.join(", "))
    }
}
