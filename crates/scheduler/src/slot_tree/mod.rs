//! The free nodes of one resource over time.
//!
//! A plan of reservations is a step function: a number of nodes is free from here until the next change. Admission asks it two
//! things thousands of times a second: where does this request fit first, and take these nodes for that interval. [`SlotTree`]
//! answers both in logarithmic time.
//!
//! The slots (start, free nodes until the next start) lie in short sorted blocks, and a red-black tree orders the blocks. The
//! descent is short, and its last steps run along one or two cache lines, as in a sorted vector, which is fast for that reason.
//! Nodes are linked by `u32` indices into an arena, so a tree is a handful of flat vectors.
//!
//! Three augmentations keep every operation away from the slots that it does not need:
//! * a pending addition per subtree, so that a reservation costs the same for any length;
//! * the minimum of free nodes, to find where a run of free time ends;
//! * for a few durations, the most nodes that a run of that length could have (`summary`), to skip the gaps that are too
//!   short or too narrow in a dense backlog. It is indexed by duration and not by nodes, because then a pending
//!   addition shifts it exactly.
//!
//! Used node-seconds are kept as sums over the steps of the function, which no pending addition changes.

mod balance;
mod block;
mod change;
mod runs;
mod search;
mod steps;
mod summary;
#[cfg(test)]
mod tests;

use crate::counts_in_words::counted;
use crate::time::{Interval, Time};
use block::Block;
use std::fmt;
use std::mem::size_of;
use steps::Steps;
use summary::{CachedSummary, Summary};

/// The most nodes that a resource can have: sums of two capacities stay inside 32 bits.
pub const MAX_CAPACITY: u32 = 1 << 28;

/// Slots in a block. Small in the unit tests, so that small plans make deep trees.
const BLOCK: usize = if cfg!(test) { 4 } else { 128 };

/// No node. Its entry in the arena is neutral in every sum.
const NIL: u32 = 0;
const LEFT: usize = 0;
const RIGHT: usize = 1;
/// The part that belongs to the block of a node alone.
const OWN: usize = 0;
/// The part that belongs to the subtree of a node, its own pending addition included.
const SUBTREE: usize = 1;

/// Why slots could not be changed. The tree is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotError {
    /// The interval holds no second, or reaches beyond [`Time::MIN`] or [`Time::MAX`].
    Interval,
    /// Fewer nodes are free somewhere in the interval than were to be reserved.
    NotFree {
        /// The free nodes at the worst second of the interval.
        free: u32,
    },
    /// Fewer nodes are in use somewhere in the interval than were to be released.
    NotReserved {
        /// The used nodes at the worst second of the interval.
        used: u32,
    },
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interval => f.write_str("the interval holds no second of the plan"),
            Self::NotFree { free } => {
                write!(f, "only {} free throughout the interval", counted(free, "node"))
            }
            Self::NotReserved { used } => {
                write!(f, "only {} in use throughout the interval", counted(used, "node"))
            }
        }
    }
}

impl std::error::Error for SlotError {}

fn check_capacity(capacity: u32) {
    assert!(
        capacity <= MAX_CAPACITY,
        "a resource of {capacity} nodes; at most {MAX_CAPACITY} are possible"
    );
}

/// A node of the red-black tree: a block's key and links.
#[derive(Debug, Clone, Default)]
struct Node {
    /// Start of the block's first slot.
    start: i64,
    child: [u32; 2],
    /// The blocks before and after in time.
    beside: [u32; 2],
    parent: u32,
    /// To be added to everything in the subtree.
    pending: i32,
    /// To be added to every slot of the block.
    offset: i32,
    len: usize,
    red: bool,
}

/// The free nodes of one resource over all time, as a step function.
///
/// Times before the last [`SlotTree::forget`] are outside the plan: they count as unused, nothing can be placed there,
/// and the part of a reservation that lies there is ignored.
///
/// ```
/// use scheduler::{Interval, SlotTree, Time};
/// let mut plan = SlotTree::new(8);
/// plan.reserve(Interval::new(Time(100), Time(200)), 6)?;
/// let window = Interval::new(Time(50), Time(1_000));
/// assert_eq!(plan.earliest_fit(2, 100, window), Some(Time(50)));
/// assert_eq!(plan.earliest_fit(3, 100, window), Some(Time(200)));
/// assert_eq!(plan.busy_area(Interval::new(Time(150), Time(300))), 300);
/// # Ok::<(), scheduler::SlotError>(())
/// ```
#[derive(Debug, Clone)]
pub struct SlotTree {
    capacity: i32,
    /// The first second that still counts.
    begin: i64,
    root: u32,
    /// Chain of unused entries, linked by `parent`.
    vacant: u32,
    nodes: Vec<Node>,
    sums: Vec<[CachedSummary; 2]>,
    steps: Vec<[Steps; 2]>,
    blocks: Vec<Block>,
}

impl SlotTree {
    /// A resource of `capacity` nodes with nothing reserved.
    ///
    /// # Panics
    /// If `capacity` exceeds [`MAX_CAPACITY`].
    pub fn new(capacity: u32) -> Self {
        check_capacity(capacity);
        let mut tree = Self {
            capacity: capacity.cast_signed(),
            begin: Time::MIN.0 + 1,
            root: NIL,
            vacant: NIL,
            nodes: Vec::new(),
            sums: Vec::new(),
            steps: Vec::new(),
            blocks: Vec::new(),
        };
        tree.allocate();
        tree.root = tree.allocate();
        let root = tree.root as usize;
        tree.nodes[root].start = Time::MIN.0;
        tree.nodes[root].len = 1;
        tree.blocks[root].starts[0] = Time::MIN.0;
        tree.blocks[root].free[0] = tree.capacity;
        tree.summarise_block(tree.root);
        tree.pull_path(tree.root);
        tree
    }

    /// The number of nodes.
    pub fn capacity(&self) -> u32 {
        self.capacity.cast_unsigned()
    }

    /// Whether no second has fewer than no free nodes, as it may have after [`SlotTree::lay`]. O(1).
    pub(crate) fn is_sound(&self) -> bool {
        self.sums[self.root as usize][SUBTREE].min() >= 0
    }

    /// The node-seconds in use inside `interval`. O(log n).
    pub fn busy_area(&self, interval: Interval) -> u64 {
        let start = interval.start.0.clamp(Time::MIN.0, Time::MAX.0);
        let end = interval.end.0.clamp(start, Time::MAX.0);
        self.busy_before(end)
            .wrapping_sub(self.busy_before(start))
            .cast_unsigned()
    }

    /// The slots in order of time: each second at which the number of free nodes changes, with the number from there on.
    /// The first is [`Time::MIN`]. O(n) for all.
    pub fn steps(&self) -> impl Iterator<Item = (Time, u32)> + '_ {
        self.steps_from(Time::MIN)
    }

    /// The same from the slot on that holds second `t`. O(log n + k) for k of them.
    pub fn steps_from(&self, t: Time) -> impl Iterator<Item = (Time, u32)> + '_ {
        let t = t.0.max(Time::MIN.0);
        let first = self.find(t);
        let mut skipped = self.slot_at(first.node, t);
        self.in_order_from(first).flat_map(move |at| {
            let (block, base) = (&self.blocks[at.node as usize], self.base(at));
            let slots = block.starts.iter().zip(&block.free);
            let slots = slots.take(self.nodes[at.node as usize].len);
            let slots = slots.skip(std::mem::take(&mut skipped));
            slots.map(move |(start, free)| (Time(*start), (free + base).cast_unsigned()))
        })
    }

    /// The bytes that the arena has allocated.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.sums.capacity() * size_of::<[CachedSummary; 2]>()
            + self.steps.capacity() * size_of::<[Steps; 2]>()
            + self.blocks.capacity() * size_of::<Block>()
    }

    /// An unlinked entry of the arena.
    fn allocate(&mut self) -> u32 {
        if self.vacant != NIL {
            let x = self.vacant;
            self.vacant = self.nodes[x as usize].parent;
            self.nodes[x as usize] = Node::default();
            self.steps[x as usize] = [Steps::default(); 2];
            return x;
        }
        // 2³² blocks are more than the address space of a plan: each holds at least one reservation's border.
        let x = u32::try_from(self.nodes.len()).expect("an arena outgrows memory before it outgrows u32");
        self.nodes.push(Node::default());
        self.sums.push([
            CachedSummary::new(&Summary::NEUTRAL),
            CachedSummary::new(&Summary::NEUTRAL),
        ]);
        self.steps.push([Steps::default(); 2]);
        self.blocks.push(Block::EMPTY);
        x
    }
}
