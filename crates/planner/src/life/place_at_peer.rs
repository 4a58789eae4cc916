//! Agreements that have lost their place here and have no other: before they are broken, peers are asked to carry them out
//! (paper 004, section 3).
//!
//! Until their word has come, such an agreement lies on the resource of a peer, with no agreement of the peer's behind it. So it is
//! known after a restart, too.

use domain::agreement::{Agreement, EventKind};
use scheduler::{Interval, Seconds};

use crate::context::Search;
use crate::decider::Decider;
use crate::life::update;
use crate::placement::transaction;
use crate::requests::requests_of_agreement;

/// Seconds that peers have at least to be asked, before the slot begins.
const ASKED_WITHIN: Seconds = 15;

/// Lets peers be asked for an agreement that has lost its only slot and has no other place; whether they can be.
pub(crate) fn seek_at_peers(
    decider: &mut Decider<'_>,
    agreement: &Agreement,
    index: usize,
    why: &str,
) -> Option<Agreement> {
    let is_whole = index == 0 && !agreement.slots.is_split();
    if !is_whole || !agreement.is_waiting() {
        return None;
    }
    let (slot, nodes) = agreement.slots[0].stretch();
    let start = slot.start.max(decider.present_second() + ASKED_WITHIN);
    let later = Interval::of(start, slot.duration());
    if later.end > agreement.deadline {
        return None;
    }
    let (_, number) = decider
        .state
        .placement
        .planned_slot(&mut decider.state.schedules, agreement, 0)?;
    let all = decider.state.schedules.plans().enumerate();
    let peers = all.filter(|(_, each)| each.resource.is_peer() && !each.resource.is_retired());
    let peers: Vec<(usize, String)> = peers.map(|(at, peer)| (at, peer.resource.name.clone())).collect();
    let placed = peers.into_iter().find_map(|(at, resource)| {
        let mut placed = Agreement {
            resource,
            fixed: true,
            ..agreement.clone()
        };
        placed.place_slot(0, (later, nodes));
        placed.keep_promised_start(agreement, decider.present_second());
        try_put_at_peer(&mut decider.search(), &placed, number, at).then_some(placed)
    })?;
    let detail = format!("{why}, and there is no other place in its window here: other domains are asked");
    let event = decider.event(EventKind::Forwarded, detail);
    Some(update::update(decider, placed, vec![event]))
}

/// Puts the slots of an agreement where its peer has them; whether there was room for all.
pub(crate) fn try_put_at_peer(
    search: &mut Search<'_>,
    agreement: &Agreement,
    number: u64,
    at: usize,
) -> bool {
    let now = search.present_second();
    let slots = requests_of_agreement(agreement, number).into_iter();
    let starts = agreement.loads().into_iter().map(|(slot, _)| slot.start);
    let slots: Vec<_> = slots.zip(starts).collect();
    transaction::run_trial(search, |search| {
        let mut slots = slots.into_iter();
        let all = slots.all(|(request, start)| search.schedules.put(at, now, &request, start));
        all.then_some(())
    })
    .is_some()
}
