//! FF-HU and FF-HA: first fit in lists of idle periods, ordered by start (section III of the paper).
//!
//! The paper links its lists; here they are sorted vectors, which give the same answers from the same walk, only that an
//! update shifts entries where a linked list would walk to the place.

use super::{Demand, IdlePeriod, Search};

/// Lists of idle periods, each with its class, searched in turn. O(n) for each operation.
#[derive(Debug, Clone, Default)]
pub struct FirstFit<const AWARE: bool> {
    lists: Vec<Vec<(usize, IdlePeriod)>>,
}

/// FF-HU: one list of all idle periods, for all rates of servers.
pub type FirstFitUnaware = FirstFit<false>;

/// FF-HA: a list for each rate, searched slowest first.
pub type FirstFitAware = FirstFit<true>;

impl<const AWARE: bool> FirstFit<AWARE> {
    /// The list of a class, and the place of an idle period in it.
    fn place(&mut self, class: usize, period: IdlePeriod) -> (&mut Vec<(usize, IdlePeriod)>, usize) {
        let list = &mut self.lists[if AWARE { class } else { 0 }];
        let at = list.partition_point(|(_, p)| p.key() < period.key());
        (list, at)
    }
}

impl<const AWARE: bool> Search for FirstFit<AWARE> {
    fn open(&mut self, classes: usize) {
        self.lists.resize(if AWARE { classes } else { 1 }, Vec::new());
    }

    fn insert(&mut self, class: usize, period: IdlePeriod, updated: &mut u64) {
        let (list, at) = self.place(class, period);
        *updated += (list.len() - at) as u64 + 1;
        list.insert(at, (class, period));
    }

    fn remove(&mut self, class: usize, period: IdlePeriod, updated: &mut u64) {
        let (list, at) = self.place(class, period);
        *updated += (list.len() - at) as u64;
        list.remove(at);
    }

    fn find(&self, demands: &[Option<Demand>], searched: &mut u64) -> Option<IdlePeriod> {
        let of_lists = demands.chunks(if AWARE { 1 } else { demands.len().max(1) });
        for (list, demands_of_list) in self.lists.iter().zip(of_lists) {
            let latest = demands_of_list.iter().flatten().map(|demand| demand.latest).max();
            let Some(latest) = latest else { continue };
            for (class, period) in list {
                *searched += 1;
                if period.start > latest {
                    break;
                }
                if demands[*class].is_some_and(|demand| demand.start_in(*period).is_some()) {
                    return Some(*period);
                }
            }
        }
        None
    }
}
