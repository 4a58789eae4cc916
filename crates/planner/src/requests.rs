//! The slots of an agreement as requests to the schedule of its resource.

use domain::agreement::{Agreement, Money, Stretch};
use domain::clock::second_of;
use scheduler::{Request, Time};

/// An agreement as its resource's schedule has it: one request for each of its slots that is not over and not given up, each with
/// its own number and its own window.
pub(super) fn requests_of_agreement(agreement: &Agreement, number: u64) -> Vec<Request> {
    let slots = agreement.slots.iter().enumerate().zip(number..);
    let open = slots.filter(|((index, slot), _)| slot.ended.is_none() && !agreement.is_given_up(*index));
    open.map(|((index, _), number)| request_of_slot(agreement, number, index))
        .collect()
}

/// The requests of an agreement, each with the start at which its slot lies.
pub(super) fn placed_requests(agreement: &Agreement, number: u64) -> impl Iterator<Item = (Request, Time)> {
    let starts = agreement.loads().into_iter().map(|(slot, _)| slot.start);
    requests_of_agreement(agreement, number).into_iter().zip(starts)
}

/// A slot of an agreement where it lies, with its window, as its resource's schedule sees it.
pub(super) fn request_of_slot(agreement: &Agreement, number: u64, index: usize) -> Request {
    let slot = &agreement.slots[index];
    let request = request_of_stretch(agreement, number, slot.stretch());
    let in_one = !agreement.slots.is_split();
    if agreement.fixed || index < agreement.slots_begun() && !in_one {
        return request;
    }
    let mut window = agreement.slot_window(index);
    window.start = window.start.min(slot.placement.start);
    if in_one {
        window = agreement.room();
    }
    Request {
        ready: window.start,
        deadline: window.end,
        ..request
    }
}

/// Nodes of an agreement for one slot alone, as its resource's schedule sees them.
pub(super) fn request_of_stretch(agreement: &Agreement, number: u64, (slot, nodes): Stretch) -> Request {
    Request {
        nodes,
        ready: slot.start,
        deadline: slot.end,
        duration: slot.duration(),
        ..request_of_agreement(agreement, number)
    }
}

/// An agreement as its resource's schedule sees it.
pub(super) fn request_of_agreement(agreement: &Agreement, number: u64) -> Request {
    Request {
        id: number,
        submitted: second_of(agreement.created),
        ready: agreement.ready,
        deadline: agreement.deadline,
        duration: agreement.duration,
        nodes: agreement.nodes(),
        revenue: revenue_of_price(agreement.price),
    }
}

/// The provider's revenue, for an order by revenue: by size alone where nothing is priced.
pub(super) fn revenue_of_price(price: Option<Money>) -> u64 {
    price.map_or(0, |price| u64::try_from(price.micros).unwrap_or(0))
}
