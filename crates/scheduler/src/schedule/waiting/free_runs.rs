//! The runs of free time that an opening has made: where a request can fit that did not fit before.
//!
//! A run is a longest interval throughout which so many nodes are free. Around a second at which c nodes are free there are as many runs
//! as levels: the first has c nodes. The next one has as many as are free just before or just behind it, whichever are more, and so on
//! outward. Where f of the nodes at that second became free, a run of c - f nodes or fewer was there before, and no request gains by it.

use super::WaitingRequest;
use super::freed_time::{Opening, StartPosition};
use super::size_classes::{ByClass, CLASSES, Shape, SizeSummary};
use crate::schedule::work::{LOOK, SEARCH, Work};
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds, Time};

/// Parts of an opening, each with as many free nodes all over it, that are looked at together.
const PARTS_MAX: usize = if cfg!(test) { 2 } else { 16 };

/// An interval throughout which nodes are free.
#[derive(Debug, Clone, Copy)]
struct FreeRun {
    interval: Interval,
    /// A request of more nodes finds no room in all of it.
    nodes: u32,
}

/// The runs around an opening.
#[derive(Debug)]
pub(super) struct FreeRuns {
    /// The part of an opening that they are around,
    part: Interval,
    /// what of it is still to come,
    ahead: Interval,
    /// and the nodes that became free in it.
    freed: u32,
    /// Time from this instant on is used.
    from: Time,
    runs: Vec<FreeRun>,
    /// The length of the longest run for requests of each class of nodes,
    longest: ByClass<Seconds>,
    /// and the end of the last one.
    ends: ByClass<Time>,
}

impl FreeRuns {
    /// The runs that the opening has made, and the end of the part of it that they are of. O(k log n) for k runs.
    pub(super) fn around(tree: &SlotTree, opening: Opening, from: Time, work: &mut Work) -> (Self, Time) {
        let begin = opening.interval.start.max(from);
        let steps = tree.steps_from(begin).skip(1);
        let steps = steps.map(|(t, _)| t).take_while(|t| *t < opening.interval.end);
        let borders: Vec<Time> = [begin].into_iter().chain(steps).take(PARTS_MAX + 1).collect();
        let (parts, end) = match borders.split_at_checked(PARTS_MAX) {
            Some((parts, [end, ..])) => (parts, *end),
            _ => (&borders[..], opening.interval.end),
        };
        // The lowest level first: what lies around its runs is not searched for again.
        let mut parts: Vec<(u32, Time)> = parts.iter().map(|t| (tree.free_at(*t), *t)).collect();
        parts.sort_unstable();
        let mut found = Self {
            part: Interval::new(opening.interval.start, end),
            ahead: Interval::new(begin, end),
            freed: opening.nodes,
            from,
            runs: Vec::new(),
            longest: [0; CLASSES.len()],
            ends: [Time::MIN; CLASSES.len()],
        };
        for (free, t) in parts {
            work.spend(LOOK);
            found.add_runs(tree, (free, free.saturating_sub(opening.nodes)), t, work);
        }
        found.sum_up();
        (found, end)
    }

    /// Whether they are the runs around an opening, unless the plan has changed.
    pub(super) fn are_of(&self, opening: Opening) -> bool {
        (self.part, self.freed) == (opening.interval, opening.nodes)
    }

    /// Adds the runs around a second, of as many nodes as are free there and fewer, as far as they are more than were free before.
    fn add_runs(&mut self, tree: &SlotTree, (free, before): (u32, u32), t: Time, work: &mut Work) {
        let mut nodes = free;
        while nodes > before {
            work.spend(SEARCH);
            let interval = tree.free_run_around(shared_level(nodes), t, self.from);
            if let Some(known) = self.runs.iter_mut().find(|run| run.interval == interval) {
                known.nodes = known.nodes.max(nodes);
                return;
            }
            self.runs.push(FreeRun { interval, nodes });
            let in_front = (interval.start > self.from).then(|| tree.free_at(interval.start - 1));
            let behind = (interval.end < Time::MAX).then(|| tree.free_at(interval.end));
            nodes = in_front.max(behind).unwrap_or(0);
        }
    }

    fn sum_up(&mut self) {
        for (class, least) in CLASSES.into_iter().enumerate() {
            for run in self.runs.iter().filter(|run| run.nodes >= least) {
                self.longest[class] = self.longest[class].max(run.interval.duration());
                self.ends[class] = self.ends[class].max(run.interval.end);
            }
        }
    }

    /// Before this place all start too early to gain.
    pub(super) fn first_position(&self) -> StartPosition {
        (self.ahead.start, u32::MAX)
    }

    /// Whether one of some requests may gain, of which the first starts at `first`.
    pub(super) fn may_use(&self, requests: &SizeSummary, first: Time) -> bool {
        let classes = self.longest.iter().zip(&self.ends).zip(&requests.shortest);
        let fits = |longest: Seconds, end: Time, shortest: Seconds| {
            shortest <= longest || (first <= end && shortest < Seconds::MAX)
        };
        requests.ready < self.ahead.end
            && classes.fold(false, |any, ((longest, end), shortest)| {
                any | fits(*longest, *end, *shortest)
            })
    }

    /// Whether a request of a shape that starts at `start` may gain at least so many seconds: it fits in a run, or starts in it or at its end
    /// and can move up by a part of itself.
    pub(super) fn may_gain(&self, shape: Shape, start: Time, least: Seconds) -> bool {
        let Shape {
            ready,
            duration,
            nodes,
        } = shape;
        // It meets the opening.
        let first = ready.max(self.ahead.start - (duration - 1));
        let gains = |run: &FreeRun| {
            let to = first.max(run.interval.start);
            let fits = to + duration <= run.interval.end || start <= run.interval.end;
            run.nodes >= nodes && fits && start - to >= least
        };
        ready < self.ahead.end && self.runs.iter().any(gains)
    }

    /// Whether a waiting request may gain at least so many seconds.
    pub(super) fn lets_gain(&self, waiting: &WaitingRequest, least: Seconds) -> bool {
        self.may_gain(Shape::of(&waiting.request), waiting.start, least)
    }
}

/// The level of a run that is searched for requests of so many nodes: from 32 nodes on, levels within a sixteenth share one run.
fn shared_level(nodes: u32) -> u32 {
    let least_bits = nodes.max(1).ilog2().saturating_sub(4);
    nodes >> least_bits << least_bits
}
