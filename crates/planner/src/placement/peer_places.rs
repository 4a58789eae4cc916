//! Places on the resources of peers. No request is placed there by a search: an agreement lies where a peer has it, or where peers are to be
//! asked for it because it has lost its place here (paper 004, section 3).

use domain::agreement::Agreement;
use scheduler::{Interval, Seconds};

use crate::context::Search;
use crate::placement::trial;
use crate::schedules::need::placed_requests;

/// Seconds that peers have at least to be asked, before the slot begins.
const ASKED_WITHIN: Seconds = 15;

/// Puts an agreement that has lost its only slot on the resource of a peer, so that peers can be asked for it. Returns the agreement in that place;
/// none where peers cannot be asked.
pub(crate) fn find_peer_place_to_ask(
    search: &mut Search<'_>,
    agreement: &Agreement,
    index: usize,
) -> Option<Agreement> {
    let is_whole = index == 0 && !agreement.slots.is_split();
    if !is_whole || !agreement.is_waiting() {
        return None;
    }
    let now = search.present_second();
    let (slot, nodes) = agreement.slots[0].stretch();
    let later = Interval::of(slot.start.max(now + ASKED_WITHIN), slot.duration());
    if later.end > agreement.deadline {
        return None;
    }
    let (_, number) = search.placement.planned_slot(search.schedules, agreement, 0)?;
    let all = search.schedules.plans().enumerate();
    let peers = all.filter(|(_, each)| each.resource.is_peer() && !each.resource.is_retired());
    let peers: Vec<(usize, String)> = peers.map(|(at, peer)| (at, peer.resource.name.clone())).collect();
    peers.into_iter().find_map(|(at, resource)| {
        let mut placed = Agreement {
            resource,
            fixed: true,
            ..agreement.clone()
        };
        placed.place_slot(0, (later, nodes));
        placed.constraints.keep_shape();
        placed.keep_promised_start(agreement, now);
        try_put_in_peer_place(search, &placed, number, at).then_some(placed)
    })
}

/// Moves an agreement with one slot to where a peer has it; whether there was room for it there.
pub(crate) fn try_move_to_peer_place(
    search: &mut Search<'_>,
    agreement: &Agreement,
    placed: &Agreement,
) -> bool {
    let now = search.present_second();
    let moved = trial::run_trial(search, |search| {
        search
            .placement
            .take_slot_out(search.schedules, agreement, 0, now);
        let (_, number) = search.placement.planned_slot(search.schedules, agreement, 0)?;
        let at = search.schedules.place_of(&placed.resource)?;
        try_put_in_peer_place(search, placed, number, at).then_some(())
    });
    moved.is_some()
}

/// Puts the slots of an agreement where its peer has them; whether there was room for all.
pub(crate) fn try_put_in_peer_place(
    search: &mut Search<'_>,
    agreement: &Agreement,
    number: u64,
    at: usize,
) -> bool {
    let now = search.present_second();
    let put = trial::run_trial(search, |search| {
        let mut slots = placed_requests(agreement, number);
        let all = slots.all(|(request, start)| search.schedules.put(at, now, &request, start));
        all.then_some(())
    });
    put.is_some()
}
