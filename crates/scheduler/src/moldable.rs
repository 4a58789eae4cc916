//! Requests that can run on fewer nodes for longer, and the choice of how many.
//!
//! The requester knows how the application scales, so the law that gives the duration for a number of nodes comes with the
//! request (`f_mol`: R → T of adaptive requests, section 3.1). The provider picks the number: among the sizes allowed, the one
//! that completes first, and of equal ones the largest. The sizes that a law allows are worked out once, when the request comes
//! in, into a list of [`Shapes`]; planning only ever reads that list.

use crate::counts_in_words::counted;
use crate::slot_tree::{MAX_CAPACITY, SlotTree};
use crate::time::{Interval, Seconds};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// The most sizes of one request: each is a search in the plan, so they bound the cost of a single request.
pub const SIZES_MAX: usize = 10_000;

/// The longest duration, about 35,000 years: far beyond any plan, and exact as a floating-point number of seconds.
pub const DURATION_MAX: Seconds = 1 << 40;

/// The whole work, in the millionths by which parts of it are counted.
pub const WHOLE_PPM: u32 = 1_000_000;

/// How the duration depends on the number of nodes R (`f_mol`).
#[derive(Debug, Clone, PartialEq)]
pub enum Law {
    /// k − c·R seconds, in floating point.
    Linear {
        /// Seconds that no number of nodes would need, were the line to reach that far.
        k: f64,
        /// Seconds saved by each node.
        c: f64,
    },
    /// A duration in seconds for each number of nodes that is listed; no other number is possible.
    Table(BTreeMap<u32, Seconds>),
    /// A number of node-seconds shared evenly, rounded up so that the work is covered.
    ConstantWork {
        /// The area of every shape.
        node_seconds: u64,
    },
}

impl Law {
    /// The seconds on `nodes` nodes, before rounding; `None` where the law has no sensible value.
    fn seconds(&self, nodes: u32) -> Option<f64> {
        let seconds = match self {
            Self::Linear { k, c } => k - c * f64::from(nodes),
            Self::Table(durations) => exact_duration(*durations.get(&nodes)?)?,
            Self::ConstantWork { node_seconds } => {
                // There is at least one node.
                exact_duration(Seconds::try_from(node_seconds.div_ceil(nodes.into())).ok()?)?
            }
        };
        is_plannable_duration(seconds).then_some(seconds)
    }
}

/// Which numbers of nodes between the bounds the application can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    /// Every number.
    Every,
    /// 1, 2, 4, 8 and so on.
    PowersOfTwo,
    /// The numbers listed, in any order; those outside the bounds are left out.
    List(Vec<u32>),
}

/// Why a request's sizes and durations make no list of shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShapeError {
    /// No allowed number of nodes lies within the bounds, or the bounds are not within 1..=[`MAX_CAPACITY`].
    NoSize,
    /// More than [`SIZES_MAX`] sizes: they should be listed more coarsely.
    TooManySizes,
    /// The law gives no duration above zero and up to [`DURATION_MAX`] for this number of nodes.
    NoDuration {
        /// The number of nodes.
        nodes: u32,
    },
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSize => f.write_str("no allowed number of nodes lies within the bounds"),
            Self::TooManySizes => write!(f, "more than {SIZES_MAX} sizes"),
            Self::NoDuration { nodes } => write!(f, "no possible duration on {}", counted(nodes, "node")),
        }
    }
}

impl std::error::Error for ShapeError {}

/// The size chosen for some work, and where it fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeChoice {
    /// From the start up to the completion.
    pub interval: Interval,
    /// Nodes throughout.
    pub nodes: u32,
}

/// The sizes of a request with the duration of each, from most nodes to fewest. There is at least one.
///
/// ```
/// use scheduler::moldable::{Shapes, Sizes};
/// use scheduler::{Interval, SlotTree, Time};
/// let mut plan = SlotTree::new(8);
/// plan.reserve(Interval::new(Time(0), Time(1_000)), 2)?;
/// // An hour on eight nodes, or down to four nodes for the same work.
/// let shapes = Shapes::scaled(3_600, 4..=8, &Sizes::Every)?;
/// let window = Interval::new(Time(0), Time(10_000));
/// let best = shapes.earliest(&plan, window).expect("there is room");
/// assert_eq!((best.nodes, best.interval.end), (8, Time(4_600)));
/// plan.reserve(Interval::new(Time(1_000), Time(3_000)), 1)?;
/// let best = shapes.earliest(&plan, window).expect("there is room");
/// assert_eq!((best.nodes, best.interval.end), (6, Time(5_400)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Shapes {
    /// Nodes and seconds, by nodes downwards.
    list: Vec<(u32, f64)>,
}

impl Shapes {
    /// One size only: `nodes` for `duration` seconds.
    ///
    /// # Errors
    /// [`ShapeError::NoSize`] for no node or too many, [`ShapeError::NoDuration`] for an impossible duration.
    pub fn rigid(nodes: u32, duration: Seconds) -> Result<Self, ShapeError> {
        let table = Law::Table(BTreeMap::from([(nodes, duration)]));
        Self::new(&table, nodes..=nodes, &Sizes::Every)
    }

    /// The sizes of `sizes` within `bounds` (R^min to R^max), with the durations of `law`. With a table, the sizes that
    /// it does not list are left out. O(s log s) for s sizes.
    ///
    /// # Errors
    /// See [`ShapeError`].
    pub fn new(law: &Law, bounds: RangeInclusive<u32>, sizes: &Sizes) -> Result<Self, ShapeError> {
        let allowed = allowed_moldable_sizes(&bounds, sizes)?;
        let mut list = Vec::with_capacity(allowed.len());
        for nodes in allowed {
            match law {
                Law::Table(durations) if !durations.contains_key(&nodes) => {}
                _ => list.push((nodes, law.seconds(nodes).ok_or(ShapeError::NoDuration { nodes })?)),
            }
        }
        if list.is_empty() {
            return Err(ShapeError::NoSize);
        }
        Ok(Self { list })
    }

    /// The shapes of the evaluation of adaptive requests (table 1): `fastest` seconds (T^min) on R^max nodes, the same area on
    /// R^min nodes, and the line k − c·R between the two. On R^max nodes the duration is `fastest` itself, not its value after
    /// rounding on the floating-point line.
    ///
    /// # Errors
    /// See [`ShapeError`].
    pub fn scaled(fastest: Seconds, bounds: RangeInclusive<u32>, sizes: &Sizes) -> Result<Self, ShapeError> {
        let (least, most) = (f64::from(*bounds.start()), f64::from(*bounds.end()));
        let seconds = exact_duration(fastest)
            .filter(|seconds| is_plannable_duration(*seconds))
            .ok_or(ShapeError::NoDuration { nodes: *bounds.end() })?;
        let c = if bounds.start() < bounds.end() {
            (seconds * most / least - seconds) / (most - least)
        } else {
            0.0
        };
        let law = Law::Linear {
            k: seconds + most * c,
            c,
        };
        let mut shapes = Self::new(&law, bounds.clone(), sizes)?;
        if shapes.list[0].0 == *bounds.end() {
            shapes.list[0].1 = seconds;
        }
        Ok(shapes)
    }

    /// Each number of nodes with the duration of the whole work on it, from most nodes to fewest.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, Seconds)> + '_ {
        self.list
            .iter()
            .map(|(nodes, seconds)| (*nodes, part_of_seconds(*seconds, WHOLE_PPM)))
    }

    /// How many sizes there are, at least one.
    #[expect(clippy::len_without_is_empty, reason = "there is always a shape")]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The most nodes (R^max) and the duration on them.
    pub fn largest(&self) -> (u32, Seconds) {
        let (nodes, seconds) = self.list[0];
        (nodes, part_of_seconds(seconds, WHOLE_PPM))
    }

    /// The fewest nodes (R^min) and the duration on them.
    pub fn smallest(&self) -> (u32, Seconds) {
        let (nodes, seconds) = self.list[self.list.len() - 1];
        (nodes, part_of_seconds(seconds, WHOLE_PPM))
    }

    /// The seconds that `ppm` millionths of the work last on `nodes` nodes; `None` when that is no allowed size.
    /// O(log s).
    pub fn duration(&self, nodes: u32, ppm: u32) -> Option<Seconds> {
        Some(part_of_seconds(self.find(nodes)?.1, ppm))
    }

    /// The placement of the whole work inside `window` that completes first; of equal ones that on most nodes
    /// (adaptive requests, algorithm 1). At most one search of the plan per size, and none for a size too long to win.
    pub fn earliest(&self, slots: &SlotTree, window: Interval) -> Option<SizeChoice> {
        self.first_to_complete(slots, window, |seconds| part_of_seconds(seconds, WHOLE_PPM))
    }

    /// As [`Shapes::earliest`], where each size lasts as long as `lasts` makes of its seconds; on no size where that is nothing.
    pub(crate) fn first_to_complete(
        &self,
        slots: &SlotTree,
        window: Interval,
        lasts: impl Fn(f64) -> Seconds,
    ) -> Option<SizeChoice> {
        let mut best = None;
        // A later size must complete strictly earlier, which the end of its window says.
        let mut rest = window;
        for (nodes, seconds) in &self.list {
            let duration = lasts(*seconds);
            if duration <= 0 || rest.duration() < duration {
                continue;
            }
            if let Some(start) = slots.earliest_fit(*nodes, duration, rest) {
                let interval = Interval::of(start, duration);
                best = Some(SizeChoice {
                    interval,
                    nodes: *nodes,
                });
                rest.end = interval.end - 1;
            }
        }
        best
    }

    /// The shapes of one size only; `None` when `nodes` is no allowed size. O(log s).
    pub(crate) fn only(&self, nodes: u32) -> Option<Self> {
        Some(Self {
            list: vec![self.find(nodes)?],
        })
    }

    fn find(&self, nodes: u32) -> Option<(u32, f64)> {
        let at = self.list.binary_search_by(|(listed, _)| nodes.cmp(listed));
        at.ok().map(|at| self.list[at])
    }
}

/// The allowed sizes from most nodes to fewest.
fn allowed_moldable_sizes(bounds: &RangeInclusive<u32>, sizes: &Sizes) -> Result<Vec<u32>, ShapeError> {
    if *bounds.start() == 0 || bounds.is_empty() || *bounds.end() > MAX_CAPACITY {
        return Err(ShapeError::NoSize);
    }
    let mut allowed: Vec<u32> = match sizes {
        Sizes::Every if (bounds.end() - bounds.start()) as usize >= SIZES_MAX => {
            return Err(ShapeError::TooManySizes);
        }
        Sizes::Every => bounds.clone().collect(),
        Sizes::PowersOfTwo => (0..u32::BITS).map(|power| 1 << power).collect(),
        Sizes::List(listed) if listed.len() > SIZES_MAX => return Err(ShapeError::TooManySizes),
        Sizes::List(listed) => listed.clone(),
    };
    allowed.retain(|nodes| bounds.contains(nodes));
    allowed.sort_unstable_by(|a, b| b.cmp(a));
    allowed.dedup();
    if allowed.is_empty() {
        return Err(ShapeError::NoSize);
    }
    Ok(allowed)
}

/// Whether `seconds` is a duration that can be planned; not for NaN.
#[expect(clippy::cast_precision_loss, reason = "a power of two is exact")]
fn is_plannable_duration(seconds: f64) -> bool {
    seconds > 0.0 && seconds <= DURATION_MAX as f64
}

/// `seconds` in floating point, where that is exact.
#[expect(clippy::cast_precision_loss, reason = "whole numbers up to 2⁴⁰ are exact")]
fn exact_duration(seconds: Seconds) -> Option<f64> {
    (0..=DURATION_MAX).contains(&seconds).then_some(seconds as f64)
}

/// The whole seconds of `ppm` millionths of `seconds`: to the nearest, halves to even, at least one.
pub(crate) fn part_of_seconds(seconds: f64, ppm: u32) -> Seconds {
    nearest_moldable_duration(seconds, ppm).max(1)
}

/// The whole seconds nearest to `ppm` millionths of `seconds`, halves to even.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a duration is at most 2⁴⁰ seconds"
)]
pub(crate) fn nearest_moldable_duration(seconds: f64, ppm: u32) -> Seconds {
    let share = f64::from(ppm) / f64::from(WHOLE_PPM);
    (share * seconds).round_ties_even() as Seconds
}
