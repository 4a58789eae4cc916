//! A request that one order refuses is tried in the others.
//!
//! The requests that may be in the newcomer's way and can move are lifted and placed again together with it, each at its first
//! fit, in one order after the other. The one that finds no place goes first in the next try.

use super::attempt::Attempt;
use super::lifted::FullTimes;
use super::trial::Trial;
use super::waiting::WaitingRequest;
use super::work::SEARCH;
use crate::queue::{Key, Order};
use crate::request::Request;
use crate::time::{Interval, Time};

/// How often a refused newcomer is tried at most.
pub const TRIES: usize = 60;
/// The orders that are tried, so that they share the tries.
const ORDERS: [Order; 6] = [
    Order::Mdf,
    Order::Lff,
    Order::Bjf,
    Order::Edf,
    Order::Fifo,
    Order::Shuffle { seed: 1 },
];
/// Lifting a request, placing it once, and taking both back.
const EACH: u64 = 5 * SEARCH;

impl Attempt<'_> {
    /// Places a newcomer that the schedule's order refuses, as often tried as `tries` and the work allow. `None` where no plan is
    /// found for it and all that was accepted; the plan is as it was then.
    pub(super) fn run_portfolio(&mut self, newcomer: &Request, tries: usize) -> Option<Trial> {
        let lifted = self.in_reach_of_portfolio(newcomer);
        if self.work.left() < EACH * lifted.len() as u64 {
            return None;
        }
        let mut trial = Trial::new();
        for (_, waiting) in &lifted {
            self.lay(&mut trial, waiting.slot(), waiting.request.nodes.into());
        }
        let Some((placed, starts)) = self.try_orders_of_portfolio(&lifted, newcomer, tries) else {
            trial.take_back(self.tree);
            return None;
        };
        trial.start = placed.start;
        trial.follow(placed);
        let moved = lifted.iter().zip(starts);
        let moved = moved.filter(|((_, waiting), to)| waiting.start != *to);
        trial.moved = moved.map(|((handle, _), to)| (*handle, to)).collect();
        Some(trial)
    }

    /// Places lifted requests and a newcomer in one order after the other; answers with the starts of the lifted ones. `None`
    /// where no order has a place for all of them.
    fn try_orders_of_portfolio(
        &mut self,
        lifted: &[(u32, WaitingRequest)],
        newcomer: &Request,
        tries: usize,
    ) -> Option<(Trial, Vec<Time>)> {
        // Where it does not fit alone, it does not fit with others.
        self.standing_fit(newcomer)?;
        for order in ORDERS {
            let requests = lifted.iter().map(|(_, waiting)| &waiting.request);
            let keys = requests
                .chain([newcomer])
                .map(|request| order.key(request, self.now));
            let mut queue: Vec<(Key, usize)> = keys.zip(0..).collect();
            queue.sort_unstable();
            for _ in 0..tries.div_ceil(ORDERS.len()) {
                let mut trial = Trial::new();
                let placed = self.place_in_order_of_portfolio(&mut trial, lifted, newcomer, &queue);
                match placed {
                    Ok(starts) if !self.work.is_spent() => return Some((trial, starts)),
                    Err(failed) if !self.work.is_spent() => {
                        trial.take_back(self.tree);
                        queue[..=failed].rotate_right(1);
                    }
                    _ => {
                        trial.take_back(self.tree);
                        return None;
                    }
                }
            }
        }
        None
    }

    /// The starts of lifted requests that are placed in order together with a newcomer, which has the number behind theirs.
    ///
    /// # Errors
    /// The place in the queue of the first that finds none, or at which the work was spent.
    fn place_in_order_of_portfolio(
        &mut self,
        trial: &mut Trial,
        lifted: &[(u32, WaitingRequest)],
        newcomer: &Request,
        queue: &[(Key, usize)],
    ) -> Result<Vec<Time>, usize> {
        let mut starts = vec![Time::MAX; lifted.len()];
        let mut full = FullTimes::default();
        for (place, (_, at)) in queue.iter().enumerate() {
            let (request, found) = match lifted.get(*at) {
                Some((_, waiting)) => (&waiting.request, self.start_lifted(waiting, &mut full)),
                None => (newcomer, self.standing_fit(newcomer)),
            };
            let start = found.filter(|_| !self.work.is_spent()).ok_or(place)?;
            self.take(trial, request, start);
            match starts.get_mut(*at) {
                Some(known_start) => *known_start = start,
                None => trial.start = start,
            }
        }
        Ok(starts)
    }

    /// The requests that can move and lie where the newcomer could, or where one of these could.
    fn in_reach_of_portfolio(&mut self, newcomer: &Request) -> Vec<(u32, WaitingRequest)> {
        let now = self.now;
        let list = self.list;
        let can_move = |waiting: &WaitingRequest| waiting.request.slack(now) > 0;
        let window = newcomer.window_at(now);
        let mut reach = window;
        for (_, waiting) in list.meeting(Key::FIRST, window, self.work) {
            if can_move(waiting) {
                let window = waiting.request.window_at(now);
                reach = Interval::new(reach.start.min(window.start), reach.end.max(window.end));
            }
        }
        let near = list.meeting(Key::FIRST, reach, self.work);
        near.filter(|(_, waiting)| can_move(waiting))
            .map(|(handle, waiting)| (handle, *waiting))
            .collect()
    }
}
