//! The waiting requests that lie where a new one would start.

use scheduler::{Request, Time};

use crate::resources::Schedules;

/// The most waiting requests of one resource that are tried elsewhere for a new request: each trial costs a decision.
pub(crate) const IN_THE_WAY_MAX: usize = 16;
/// The number of agreements in its window that are looked at, to find these.
const LYING_MAX: usize = 1_024;

impl Schedules {
    /// The waiting agreements on a resource in the way of a new request: first the ones that would lose their place to it in
    /// the order, then the others in its window, by start.
    pub(crate) fn waiting_in_the_way(&mut self, at: usize, now: Time, request: &Request) -> Vec<u64> {
        let found = self.change_schedule(at, |schedule| {
            let mut numbers = schedule.displaced(now, request);
            let window = request.window_at(now);
            let lying = schedule.waiting_in(window).take(LYING_MAX);
            let lying = lying.filter_map(|lying| Some((schedule.placement(lying.id)?.slot.start, lying.id)));
            let mut lying: Vec<(Time, u64)> = lying.collect();
            lying.sort_unstable();
            let others = lying.into_iter().map(|(_, number)| number);
            let mut others: Vec<u64> = others.filter(|number| !numbers.contains(number)).collect();
            numbers.append(&mut others);
            numbers.truncate(IN_THE_WAY_MAX);
            (numbers, Vec::new())
        });
        found.unwrap_or_default()
    }
}
