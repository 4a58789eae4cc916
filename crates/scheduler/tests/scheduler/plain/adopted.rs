//! The plain algorithm goes on from the plan of the fast one.

use super::plain::{PlacedRequest, Plain};
use scheduler::{Order, Request, Schedule};

impl Plain {
    /// The plan of a schedule that never fixes, to go on from there: running requests are in the plan, and never end.
    pub(crate) fn of(schedule: &Schedule, order: Order) -> Self {
        let start = |id| schedule.placement(id).expect("it waits").slot.start;
        let placed = |request: &Request| PlacedRequest {
            request: *request,
            start: start(request.id),
        };
        let mut plain = Self::new(schedule.tree().capacity(), order, None);
        plain.tree = schedule.tree().clone();
        plain.now = schedule.now();
        plain.waiting = schedule.waiting().map(placed).collect();
        plain
    }
}
