//! One tree a class: idle periods by start, with the latest end and the longest duration of each subtree.
//!
//! An idle period [st, et) is feasible for a job that is ready at r, takes p and must start by s in one of two disjoint ways:
//! * it *covers* the ready time: st ≤ r and et ≥ r + p. Among starts ≤ r, the latest end of a subtree shows whether it holds one;
//! * it *follows* the ready time: r < st ≤ s and et − st ≥ p. Among those starts, the longest duration shows it.
//!
//! Either is one descent, so a class costs O(log n), where two dimensions cost O(log² n).

use super::balanced::{LEFT, NIL, Order, RIGHT, Tree};
use super::{Demand, IdlePeriod, Search};
use scheduler::{Seconds, Time};

/// One red-black tree by start for each rate, searched slowest first. O(H log n) for H rates; an update O(log n).
///
/// A start inside an idle period leaves a lead before it, which fewer and fewer jobs can still use as time goes by. So of the
/// feasible periods of a class it takes the first that follows the ready time, else the one with the least lead. That loses about
/// as little work as an exact best fit, which a single descent cannot find; see `docs/design/scheduler.md`.
#[derive(Debug, Clone, Default)]
pub struct SingleTree {
    trees: Vec<Tree<ByStart>>,
}

impl SingleTree {
    #[cfg(test)]
    pub(super) fn checked(&self) -> Vec<Vec<IdlePeriod>> {
        self.trees.iter().map(Tree::checked).collect()
    }
}

impl Search for SingleTree {
    fn open(&mut self, classes: usize) {
        self.trees.resize(classes, Tree::new());
    }

    fn insert(&mut self, class: usize, period: IdlePeriod, updated: &mut u64) {
        self.trees[class].insert(period, updated);
    }

    fn remove(&mut self, class: usize, period: IdlePeriod, updated: &mut u64) {
        self.trees[class].remove(&period, updated);
    }

    fn find(&self, demands: &[Option<Demand>], searched: &mut u64) -> Option<IdlePeriod> {
        let mut classes = self.trees.iter().zip(demands);
        classes.find_map(|(tree, demand)| {
            let demand = demand.as_ref()?;
            tree.first_following(demand, searched)
                .or_else(|| tree.covering(demand, searched))
        })
    }
}

/// By start, then server.
#[derive(Debug, Clone, Copy)]
struct ByStart;

/// The sums of a subtree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Maxima {
    end: Time,
    duration: Seconds,
}

impl Order for ByStart {
    type Key = (Time, u32);
    type Summary = Maxima;

    fn key(period: &IdlePeriod) -> Self::Key {
        period.key()
    }

    fn summary(period: &IdlePeriod) -> Maxima {
        Maxima {
            end: period.end,
            duration: period.duration(),
        }
    }

    fn join(a: Maxima, b: Maxima) -> Maxima {
        Maxima {
            end: a.end.max(b.end),
            duration: a.duration.max(b.duration),
        }
    }
}

impl Tree<ByStart> {
    /// The one that covers the ready time and starts last.
    fn covering(&self, demand: &Demand, visited: &mut u64) -> Option<IdlePeriod> {
        let enough = |maxima: Maxima| maxima.end >= demand.ready + demand.duration;
        self.outermost(self.root, RIGHT, demand.ready, &enough, visited)
    }

    /// The one that follows the ready time and starts first.
    fn first_following(&self, demand: &Demand, visited: &mut u64) -> Option<IdlePeriod> {
        let enough = |maxima: Maxima| maxima.duration >= demand.duration;
        self.outermost(self.root, LEFT, demand.ready, &enough, visited)
            .filter(|period| period.start <= demand.latest)
    }

    /// The last period with a start ≤ `bound` that is `enough` (`side` is `RIGHT`), or the first with a start > `bound` (`LEFT`).
    /// What holds for a subtree's maxima holds for them if it holds for one of its periods. O(log n): only along the bound can a
    /// subtree promise what its periods up to there do not keep.
    fn outermost(
        &self,
        x: u32,
        side: usize,
        bound: Time,
        enough: &impl Fn(Maxima) -> bool,
        visited: &mut u64,
    ) -> Option<IdlePeriod> {
        if x == NIL {
            return None;
        }
        *visited += 1;
        let node = self.node(x);
        if !enough(node.summary) {
            return None;
        }
        let inner = node.child[1 - side];
        if (node.period.start > bound) == (side == RIGHT) {
            return self.outermost(inner, side, bound, enough, visited);
        }
        self.outermost(node.child[side], side, bound, enough, visited)
            .or_else(|| enough(ByStart::summary(&node.period)).then_some(node.period))
            .or_else(|| self.outermost(inner, side, bound, enough, visited))
    }
}
