//! The searches for an idle period: FF-HU, FF-HA and FF-HA+ of the paper, and one tree a class.
//!
//! # First fit in lists
//!
//! FF-HU and FF-HA: first fit in lists of idle periods, ordered by start (section III of the paper).
//!
//! The paper links its lists; here they are sorted vectors, which give the same answers from the same walk, only that an
//! update shifts entries where a linked list would walk to the place.
//!
//! # One tree a class
//!
//! One tree a class: idle periods by start, with the latest end and the longest duration of each subtree.
//!
//! An idle period [st, et) is feasible for a job that is ready at r, takes p and must start by s in one of two disjoint ways:
//! * it *covers* the ready time: st ≤ r and et ≥ r + p. Among starts ≤ r, the latest end of a subtree shows whether it holds one;
//! * it *follows* the ready time: r < st ≤ s and et − st ≥ p. Among those starts, the longest duration shows it.
//!
//! Either is one descent, so a class costs O(log n), where two dimensions cost O(log² n).
//!
//! # Two dimensions
//!
//! FF-HA+: a tree of two dimensions for each rate (section V of the paper).
//!
//! The primal tree holds the idle periods in its leaves, by start. Each inner node has a dual tree of the periods below it, by
//! the dual coordinate −μ·et, with the longest period of each subtree. A search marks the primal subtrees with starts that are
//! early enough (step 1), then asks their dual trees in turn (step 2). There the periods with et ≥ r + p lie to one side, and if
//! the longest of them does not last p, none does.
//!
//! Within a class μ is the same for all, so that descending −μ·et is ascending et, and the largest nominal capacity is the
//! longest duration. The paper does not say how the trees are kept up to date. Here a primal node with sides that differ too much
//! is rebuilt, which costs O(log² n) dual visits an update, amortised.

use super::balanced_tree::{BalancedTree, LEFT, NIL, Order, RIGHT};
use super::{IdlePeriod, JobDemand, Search};
use scheduler::{Seconds, Time};
use std::cmp::Reverse;

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

    fn find(&self, demands: &[Option<JobDemand>], searched: &mut u64) -> Option<IdlePeriod> {
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

/// One red-black tree by start for each rate, searched slowest first. O(H log n) for H rates; an update O(log n).
///
/// A start inside an idle period leaves a lead before it, which fewer and fewer jobs can still use as time goes by. So of the
/// feasible periods of a class it takes the first that follows the ready time, else the one with the least lead. That loses about
/// as little work as an exact best fit, which a single descent cannot find; see `docs/design/scheduler.md`.
#[derive(Debug, Clone, Default)]
pub struct SingleTree {
    trees: Vec<BalancedTree<ByStart>>,
}

impl SingleTree {
    #[cfg(test)]
    pub(super) fn checked(&self) -> Vec<Vec<IdlePeriod>> {
        self.trees.iter().map(BalancedTree::checked).collect()
    }
}

impl Search for SingleTree {
    fn open(&mut self, classes: usize) {
        self.trees.resize(classes, BalancedTree::new());
    }

    fn insert(&mut self, class: usize, period: IdlePeriod, updated: &mut u64) {
        self.trees[class].insert(period, updated);
    }

    fn remove(&mut self, class: usize, period: IdlePeriod, updated: &mut u64) {
        self.trees[class].remove(&period, updated);
    }

    fn find(&self, demands: &[Option<JobDemand>], searched: &mut u64) -> Option<IdlePeriod> {
        let mut classes = self.trees.iter().zip(demands);
        classes.find_map(|(tree, demand)| {
            let demand = demand.as_ref()?;
            tree.search_first_following(demand, searched)
                .or_else(|| tree.search_covering(demand, searched))
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

impl BalancedTree<ByStart> {
    /// The one that covers the ready time and starts last.
    fn search_covering(&self, demand: &JobDemand, visited: &mut u64) -> Option<IdlePeriod> {
        let enough = |maxima: Maxima| maxima.end >= demand.ready + demand.duration;
        self.search_outermost(self.root, RIGHT, demand.ready, &enough, visited)
    }

    /// The one that follows the ready time and starts first.
    fn search_first_following(&self, demand: &JobDemand, visited: &mut u64) -> Option<IdlePeriod> {
        let enough = |maxima: Maxima| maxima.duration >= demand.duration;
        self.search_outermost(self.root, LEFT, demand.ready, &enough, visited)
            .filter(|period| period.start <= demand.latest)
    }

    /// The last period with a start ≤ `bound` that is `enough` (`side` is `RIGHT`), or the first with a start > `bound` (`LEFT`).
    /// What holds for a subtree's maxima holds for them if it holds for one of its periods. O(log n): only along the bound can a
    /// subtree promise what its periods up to there do not keep.
    fn search_outermost(
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
            return self.search_outermost(inner, side, bound, enough, visited);
        }
        self.search_outermost(node.child[side], side, bound, enough, visited)
            .or_else(|| enough(ByStart::summary(&node.period)).then_some(node.period))
            .or_else(|| self.search_outermost(inner, side, bound, enough, visited))
    }
}

/// FF-HA+: slowest rate first, in each the first feasible idle period that the two steps find. O(H log² n) for H rates.
#[derive(Debug, Clone, Default)]
pub struct TwoDimensional {
    trees: Vec<Option<PrimalSearch>>,
}

impl TwoDimensional {
    #[cfg(test)]
    pub(super) fn checked(&self) -> Vec<Vec<IdlePeriod>> {
        let trees = self.trees.iter();
        trees
            .map(|tree| tree.as_ref().map_or_else(Vec::new, PrimalSearch::checked))
            .collect()
    }
}

impl Search for TwoDimensional {
    fn open(&mut self, classes: usize) {
        self.trees.resize(classes, None);
    }

    fn insert(&mut self, class: usize, period: IdlePeriod, updated: &mut u64) {
        match &mut self.trees[class] {
            Some(tree) => tree.insert(period, updated),
            none => *none = Some(PrimalSearch::Leaf(period)),
        }
    }

    fn remove(&mut self, class: usize, period: IdlePeriod, updated: &mut u64) {
        let tree = &mut self.trees[class];
        match tree {
            Some(inner @ PrimalSearch::Inner(_)) => inner.remove(&period, updated),
            last => *last = None,
        }
    }

    fn find(&self, demands: &[Option<JobDemand>], searched: &mut u64) -> Option<IdlePeriod> {
        let mut classes = self.trees.iter().zip(demands);
        classes.find_map(|(tree, demand)| {
            let demand = demand.as_ref()?;
            let marked = tree.as_ref()?.mark(demand.latest, searched);
            marked
                .into_iter()
                .find_map(|subtree| subtree.feasible(demand, searched))
        })
    }
}

/// The primal tree.
#[derive(Debug, Clone)]
enum PrimalSearch {
    Leaf(IdlePeriod),
    Inner(Box<Inner>),
}

#[derive(Debug, Clone)]
struct Inner {
    /// The least key on the right, in place of the paper's median start.
    border: (Time, u32),
    /// Leaves below.
    size: usize,
    child: [PrimalSearch; 2],
    /// All leaves below.
    dual: BalancedTree<ByEnd>,
}

/// By end, which is by −μ·et descending; then by the fields that distinguish periods.
#[derive(Debug, Clone, Copy)]
struct ByEnd;

impl Order for ByEnd {
    type Key = (Time, Time, u32);
    /// The longest idle period, which is the one of the largest nominal capacity.
    type Summary = IdlePeriod;

    fn key(period: &IdlePeriod) -> Self::Key {
        (period.end, period.start, period.server)
    }

    fn summary(period: &IdlePeriod) -> IdlePeriod {
        *period
    }

    fn join(a: IdlePeriod, b: IdlePeriod) -> IdlePeriod {
        if rank_of_idle_period(&a) >= rank_of_idle_period(&b) {
            a
        } else {
            b
        }
    }
}

/// The longest first, then the first by key, so that the answer does not depend on the shape of a tree.
fn rank_of_idle_period(period: &IdlePeriod) -> (Seconds, Reverse<(Time, u32)>) {
    (period.duration(), Reverse(period.key()))
}

/// Whether a side of `part` leaves is too heavy for a node of `size`.
fn is_tree_lopsided(part: usize, size: usize) -> bool {
    size > 3 && 4 * part > 3 * size
}

impl PrimalSearch {
    fn size(&self) -> usize {
        match self {
            Self::Leaf(_) => 1,
            Self::Inner(inner) => inner.size,
        }
    }

    /// A tree of idle periods in order of their keys; at least one.
    fn build(periods: &[IdlePeriod], updated: &mut u64) -> Self {
        if let [period] = periods {
            return Self::Leaf(*period);
        }
        let (left, right) = periods.split_at(periods.len() / 2);
        let mut dual = BalancedTree::new();
        for period in periods {
            dual.insert(*period, updated);
        }
        Self::Inner(Box::new(Inner {
            border: right[0].key(),
            size: periods.len(),
            child: [Self::build(left, updated), Self::build(right, updated)],
            dual,
        }))
    }

    fn leaves(&self, periods: &mut Vec<IdlePeriod>) {
        match self {
            Self::Leaf(period) => periods.push(*period),
            Self::Inner(inner) => inner.child.iter().for_each(|child| child.leaves(periods)),
        }
    }

    fn insert(&mut self, period: IdlePeriod, updated: &mut u64) {
        *updated += 1;
        if let Self::Inner(inner) = self {
            let side = usize::from(inner.border <= period.key());
            if !is_tree_lopsided(inner.child[side].size() + 1, inner.size + 1) {
                inner.size += 1;
                inner.dual.insert(period, updated);
                inner.child[side].insert(period, updated);
                return;
            }
        }
        let mut periods = Vec::with_capacity(self.size() + 1);
        self.leaves(&mut periods);
        let at = periods.partition_point(|p| p.key() < period.key());
        periods.insert(at, period);
        *self = Self::build(&periods, updated);
    }

    /// Removes one of at least two idle periods.
    fn remove(&mut self, period: &IdlePeriod, updated: &mut u64) {
        *updated += 1;
        let Self::Inner(inner) = self else { return };
        let side = usize::from(inner.border <= period.key());
        if matches!(inner.child[side], Self::Leaf(_)) {
            *self = std::mem::replace(&mut inner.child[1 - side], Self::Leaf(*period));
            return;
        }
        if is_tree_lopsided(inner.child[1 - side].size(), inner.size - 1) {
            let mut periods = Vec::with_capacity(inner.size);
            self.leaves(&mut periods);
            periods.retain(|p| p != period);
            *self = Self::build(&periods, updated);
            return;
        }
        inner.size -= 1;
        inner.dual.remove(period, updated);
        inner.child[side].remove(period, updated);
    }

    /// Step 1: the subtrees that hold all starts ≤ `latest`, earliest first.
    fn mark(&self, latest: Time, searched: &mut u64) -> Vec<&Self> {
        let mut marked = Vec::new();
        let mut tree = self;
        loop {
            *searched += 1;
            match tree {
                Self::Leaf(period) => {
                    if period.start <= latest {
                        marked.push(tree);
                    }
                    return marked;
                }
                Self::Inner(inner) if inner.border.0 <= latest => {
                    marked.push(&inner.child[LEFT]);
                    tree = &inner.child[RIGHT];
                }
                Self::Inner(inner) => tree = &inner.child[LEFT],
            }
        }
    }

    /// Step 2: a feasible idle period of a marked subtree.
    fn feasible(&self, demand: &JobDemand, searched: &mut u64) -> Option<IdlePeriod> {
        let inner = match self {
            Self::Leaf(period) => {
                *searched += 1;
                return demand.start_in(*period).map(|_| *period);
            }
            Self::Inner(inner) => inner,
        };
        let dual = &inner.dual;
        let mut u = dual.root;
        while u != NIL {
            *searched += 1;
            let node = dual.node(u);
            if node.period.end < demand.ready + demand.duration {
                u = node.child[RIGHT];
                continue;
            }
            let mut longest = node.period;
            if node.child[RIGHT] != NIL {
                longest = ByEnd::join(longest, dual.node(node.child[RIGHT]).summary);
            }
            if longest.duration() >= demand.duration {
                return Some(longest);
            }
            u = node.child[LEFT];
        }
        None
    }

    #[cfg(test)]
    fn checked(&self) -> Vec<IdlePeriod> {
        let mut periods = Vec::new();
        self.leaves(&mut periods);
        if let Self::Inner(inner) = self {
            let [left, right] = [LEFT, RIGHT].map(|side| inner.child[side].checked());
            assert_eq!(inner.size, periods.len());
            assert!(
                !is_tree_lopsided(left.len().max(right.len()), inner.size),
                "out of balance"
            );
            assert!(left.iter().all(|p| p.key() < inner.border));
            assert!(right.iter().all(|p| p.key() >= inner.border));
            let mut by_end = periods.clone();
            by_end.sort_by_key(ByEnd::key);
            assert_eq!(inner.dual.checked(), by_end, "the dual tree holds something else");
        }
        periods
    }
}
