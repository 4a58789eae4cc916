//! When slots that have to be reserved begin: reserving takes a moment.

use scheduler::{Interval, Seconds, Time};

use crate::context::View;
use crate::placement::choice;
use crate::schedules::need::Need;

/// Seconds between a command and the begin of a slot that has to be reserved: as long as reserving takes.
pub(crate) const BEGINS_AFTER: Seconds = 3;

/// The window without the time that a cluster needs to reserve nodes, where the best slot as the plan stands would begin in
/// that time; without the time of slots that it has refused.
pub(crate) fn window_after_reserving(view: View<'_>, need: &Need<'_>) -> Interval {
    let window = need.window;
    if let Some(not_before) = view.elsewhere.not_before() {
        return Interval::new(window.start.max(not_before), window.end);
    }
    let later = Interval::new(window.start.max(view.present_second() + BEGINS_AFTER), window.end);
    let least = need.shapes.iter().map(|shape| shape.duration).min();
    if !view.elsewhere.reserves_anywhere() || later == window || later.duration() < least.unwrap_or(0) {
        return window;
    }
    let needs_time = match choice::choose_best_placement(view, need) {
        Ok((at, _, slot)) => {
            let resource = view.schedules.get(at);
            slot.start < later.start
                && resource.is_some_and(|each| view.elsewhere.reserves_on(&each.resource.name))
        }
        Err(_) => true,
    };
    if needs_time { later } else { window }
}

/// When the slot of an offer that is accepted begins on a resource, so that its nodes can be reserved before.
pub(crate) fn reservable_start(view: View<'_>, resource: &str, start: Time, latest: Time) -> Time {
    let now = view.present_second();
    let later = start.max(now + BEGINS_AFTER);
    if view.elsewhere.reserves_on(resource) && later <= latest {
        later
    } else {
        start.max(now)
    }
}
