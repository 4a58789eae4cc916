//! FF-HU and FF-HA: first fit in lists of idle periods, ordered by start (section III of the paper).
//!
//! The paper links its lists; here they are sorted vectors, which give the same answers from the same walk, only that an
//! update shifts entries where a linked list would walk to the place.

use super::{Demand, IdlePeriod, Search};

/// FF-HU: one list of all idle periods, for all rates of servers. O(n) for each operation.
#[derive(Debug, Clone, Default)]
pub struct FirstFitUnaware {
    list: Vec<(usize, IdlePeriod)>,
}

impl Search for FirstFitUnaware {
    fn open(&mut self, _classes: usize) {}

    fn insert(&mut self, class: usize, period: IdlePeriod, updated: &mut u64) {
        let at = self.list.partition_point(|(_, p)| p.key() < period.key());
        *updated += (self.list.len() - at) as u64 + 1;
        self.list.insert(at, (class, period));
    }

    fn remove(&mut self, _class: usize, period: IdlePeriod, updated: &mut u64) {
        let at = self.list.partition_point(|(_, p)| p.key() < period.key());
        *updated += (self.list.len() - at) as u64;
        self.list.remove(at);
    }

    fn find(&self, demands: &[Option<Demand>], searched: &mut u64) -> Option<IdlePeriod> {
        let latest = demands.iter().flatten().map(|demand| demand.latest).max()?;
        for (class, period) in &self.list {
            *searched += 1;
            if period.start > latest {
                return None;
            }
            if demands[*class].is_some_and(|demand| demand.start_in(*period).is_some()) {
                return Some(*period);
            }
        }
        None
    }
}

/// FF-HA: a list for each rate, searched slowest first. O(n) for each operation.
#[derive(Debug, Clone, Default)]
pub struct FirstFitAware {
    lists: Vec<Vec<IdlePeriod>>,
}

impl Search for FirstFitAware {
    fn open(&mut self, classes: usize) {
        self.lists.resize(classes, Vec::new());
    }

    fn insert(&mut self, class: usize, period: IdlePeriod, updated: &mut u64) {
        let list = &mut self.lists[class];
        let at = list.partition_point(|p| p.key() < period.key());
        *updated += (list.len() - at) as u64 + 1;
        list.insert(at, period);
    }

    fn remove(&mut self, class: usize, period: IdlePeriod, updated: &mut u64) {
        let list = &mut self.lists[class];
        let at = list.partition_point(|p| p.key() < period.key());
        *updated += (list.len() - at) as u64;
        list.remove(at);
    }

    fn find(&self, demands: &[Option<Demand>], searched: &mut u64) -> Option<IdlePeriod> {
        for (list, demand) in self.lists.iter().zip(demands) {
            let Some(demand) = demand else { continue };
            for period in list {
                *searched += 1;
                if period.start > demand.latest {
                    break;
                }
                if demand.start_in(*period).is_some() {
                    return Some(*period);
                }
            }
        }
        None
    }
}
