//! An agreement stands somehow at its peer.

use domain::agreement::{
    Account, Agreement, AgreementState, AtPeer, EventKind, JobEnd, Money, PostingKind, SeenAtPeer,
    ServiceState,
};
use domain::change::Change;
use domain::clock::{MICROS_PER_SECOND, Micros, time_difference_in_words};
use scheduler::{Interval, Time};
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::error::Result;
use crate::life::{billing, held_nodes, lost_work, reports, update};
use crate::placement::peer_places;

/// How an agreement stands at its peer is taken over: its slot here follows, it gets another place where the peer has lost it, and once it
/// is over there its money is posted.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) where it could not be stored.
#[derive(Debug, Clone)]
pub struct ReportAtPeer(pub SeenAtPeer);

impl Command for ReportAtPeer {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let SeenAtPeer {
            row,
            slot,
            started,
            lost,
            ended,
        } = self.0;
        if let Some(started) = started {
            note_start_reported_at_peer(decider, &row, started);
        }
        let is_over = AgreementState::from_word(&row.state).is_some_and(AgreementState::is_final);
        // What was lost there before may have another place at the same peer.
        let is_over = lost.is_some() || is_over && !row.lost;
        let ours = decider
            .state
            .agreements
            .get(row.agreement)
            .filter(|agreement| agreement.resource == row.peer);
        let was_awaited = |ours: &&Agreement| {
            let is_ending = ours.state == AgreementState::ObservedAndTerminating;
            is_ending && ours.service == ServiceState::Idle && (is_over || !ours.never_had_nodes())
        };
        if let Some(agreement) = ours.filter(was_awaited).cloned() {
            reports::finish_reservation(decider, agreement)?;
        } else if let Some(agreement) = ours.filter(|agreement| agreement.is_waiting()).cloned() {
            if let Some(why) = lost {
                place_reported_lost_at_peer(decider, &agreement, &why);
            } else {
                if let Some((start, end)) = slot {
                    follow_slot_reported_at_peer(decider, &agreement, Interval::new(Time(start), Time(end)));
                }
                if let Some(end) = ended {
                    end_work_reported_at_peer(decider, row.agreement, &end)?;
                }
            }
        } else if let Some((agreement, why)) = ours.cloned().zip(lost)
            && agreement.service == ServiceState::Idle
            && agreement.job.is_none()
        {
            lost_work::lose_agreement_because(decider, agreement, EventKind::Broken, why);
        }
        if row.settled.is_some() {
            post_reported_at_peer(decider, &row);
        }
        decider.batch.push(Change::PutAtPeer(row));
        Ok(DecisionStep::Done(()))
    }
}

/// Takes note of when a peer has handed over the nodes of an agreement without a job. Its party has them in its slot here.
fn note_start_reported_at_peer(decider: &mut Decider<'_>, row: &AtPeer, started: Micros) {
    let waits = |ours: &&Agreement| ours.has_nodes() && ours.never_had_nodes();
    let ours = decider.state.agreements.get(row.agreement).filter(waits).cloned();
    if let Some(agreement) = ours.filter(|ours| ours.resource == row.peer) {
        let start = agreement.slot().start.seconds() * MICROS_PER_SECOND;
        let since = started.clamp(start, decider.now.max(start));
        held_nodes::note_nodes_handed_over(decider, agreement, since);
    }
}

/// Ends an agreement whose work has run at its peer before its slot began here.
fn end_work_reported_at_peer(decider: &mut Decider<'_>, id: Uuid, end: &JobEnd) -> Result<()> {
    let mut agreement = decider.live_agreement(id)?;
    agreement.service = ServiceState::Processing;
    let event = decider.event(EventKind::Begun, format!("at {}", agreement.resource));
    update::update(decider, agreement, vec![event]);
    reports::record_reported_end(decider, id, end)
}

/// Has the only slot of a waiting agreement lie where its peer has it now, inside what was agreed.
fn follow_slot_reported_at_peer(decider: &mut Decider<'_>, agreement: &Agreement, slot: Interval) {
    let (before, nodes) = agreement.slots[0].stretch();
    let is_agreed = agreement.window().contains(slot) && slot.duration() == before.duration();
    if agreement.slots.is_split() || before == slot || !is_agreed {
        return;
    }
    let mut placed = agreement.clone();
    placed.place_slot(0, (slot, nodes));
    if !peer_places::try_move_to_peer_place(&mut decider.search(), agreement, &placed) {
        // There is room again once another one has left.
        return;
    }
    let moved = time_difference_in_words(slot.start - before.start);
    let event = decider.event(EventKind::Moved, format!("{moved}, by {}", agreement.resource));
    update::update(decider, placed, vec![event]);
}

/// Finds a place here for an agreement whose peer does not carry it out any more, or ends it.
fn place_reported_lost_at_peer(decider: &mut Decider<'_>, agreement: &Agreement, why: &str) {
    let now = decider.present_second();
    decider
        .state
        .placement
        .take_slot_out(&mut decider.state.schedules, agreement, 0, now);
    let movable = Agreement {
        fixed: false,
        ..agreement.clone()
    };
    lost_work::place_lost_slot(decider, &movable, 0, why);
}

/// Posts what a peer has charged for an agreement and what it has paid back.
fn post_reported_at_peer(decider: &mut Decider<'_>, row: &AtPeer) {
    let Some(Money { currency, .. }) = row.price else {
        return;
    };
    let peer = || Account::Peer(row.peer.clone());
    let both = [
        (
            PostingKind::Price,
            Account::Provider,
            peer(),
            row.charged,
            "charged by the peer",
        ),
        (
            PostingKind::Penalty,
            peer(),
            Account::Provider,
            row.paid_back,
            "paid back by the peer",
        ),
    ];
    for (kind, from, to, micros, what) in both {
        if micros > 0 {
            let amount = Money::new(micros, currency);
            billing::post(decider, row.agreement, kind, (from, to), amount, what.to_owned());
        }
    }
}
