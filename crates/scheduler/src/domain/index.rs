//! In which stretches of time a resource could start something of about that size and duration.
//!
//! Time is cut into equal stretches. For each stretch, duration class and size class there is a set of the resources that have a
//! start in the stretch for that number of nodes and of seconds. Classes round down, so a resource that is missing from the set
//! can certainly not start the request in that stretch, and one that is there probably can. A set of 10,000 resources is 157
//! words, so passing over the others costs next to nothing.
//!
//! A change of a plan touches only the stretches from which a start could reach it, and in each the size class moves by a step or
//! two: a level per resource is kept for that.

use super::{HasPlan, bits};
use crate::slot_tree::SlotTree;
use crate::time::{Interval, Seconds, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// Stretches of the planned time: at a horizon of three months each is a few hours, about as long as a job.
const STRETCHES: usize = 256;
/// The durations of the classes, in seconds, least first. The first is the shortest there is, so that each request has a class.
pub(super) const DURATIONS: [Seconds; 4] = [1, 3_600, 4 * 3_600, 12 * 3_600];

/// From this many new stretches on, a walk of the whole plan is cheaper than a search for each.
const SWEEP_FROM: usize = 8;

/// The class of a duration of at least 1 s: the longest that is not longer.
pub(super) fn duration_class(duration: Seconds) -> usize {
    DURATIONS.partition_point(|d| *d <= duration).saturating_sub(1)
}

/// Nodes of a size class: 1, 2, 3, 4, 6, 8, 12, 16, 24 and so on.
fn size_of_index_class(class: usize) -> u32 {
    match class {
        0 => 1,
        _ if class % 2 == 1 => 2 << (class / 2),
        _ => 3 << (class / 2 - 1),
    }
}

/// The class of a number of nodes, at least 1: the largest that is not larger.
fn index_class_of_size(nodes: u32) -> usize {
    let log = nodes.ilog2() as usize;
    let half = usize::from(log > 0 && nodes >= 3 << (log - 1));
    (2 * log + half).saturating_sub(1)
}

/// One stretch of time.
#[derive(Debug, Clone)]
struct Stretch {
    /// A set of resources for each duration and size class, in one row.
    sets: Vec<u64>,
    /// For each duration class and resource, the number of size classes that it can start.
    levels: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(super) struct Index {
    /// First second of the first stretch.
    begin: Time,
    /// No start is possible before.
    now: Time,
    /// Seconds of a stretch.
    width: Seconds,
    resources: usize,
    /// Size classes, enough for the largest resource.
    sizes: usize,
    stretches: VecDeque<Stretch>,
}

impl Index {
    pub(super) fn new<P: HasPlan>(planned: Interval, plans: &[P]) -> Self {
        let capacity = plans.iter().map(|p| p.plan().capacity()).max().unwrap_or(0);
        let stretches = i64::try_from(STRETCHES).unwrap_or(i64::MAX);
        let mut index = Self {
            begin: planned.start,
            now: planned.start,
            width: planned.duration().div_euclid(stretches) + 1,
            resources: plans.len(),
            sizes: index_class_of_size(capacity.max(1)) + 1,
            stretches: VecDeque::new(),
        };
        index.fill(plans);
        index
    }

    /// The earliest start of any decision.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// The stretch that holds `t`, or the nearest; the number of stretches for all that lies beyond the last.
    pub(super) fn stretch(&self, t: Time) -> usize {
        let stretch = (t - self.begin).div_euclid(self.width).max(0);
        usize::try_from(stretch).map_or(self.stretches.len(), |s| s.min(self.stretches.len()))
    }

    /// The seconds of a stretch; after the last one comes a stretch without end.
    pub(super) fn seconds(&self, stretch: usize) -> Interval {
        // There are few stretches.
        let before = i64::try_from(stretch).unwrap_or(i64::MAX);
        let start = self.begin + self.width.saturating_mul(before);
        if stretch < self.stretches.len() {
            Interval::of(start, self.width)
        } else {
            Interval::new(start, Time::MAX)
        }
    }

    /// The set of resources that may start `nodes` for `duration` in a stretch; `None` where there is no telling.
    pub(super) fn set(&self, stretch: usize, nodes: u32, duration: Seconds) -> Option<&[u64]> {
        let size = index_class_of_size(nodes);
        if size >= self.sizes {
            return None;
        }
        let row = self.row(duration_class(duration), size);
        Some(&self.stretches.get(stretch)?.sets[row])
    }

    /// Where the set of a duration class and a size class is in the sets of a stretch.
    fn row(&self, class: usize, size: usize) -> Range<usize> {
        let words = bits::bit_words(self.resources);
        let from = (class * self.sizes + size) * words;
        from..from + words
    }

    /// Takes note that the free nodes of a resource may be others in `changed`.
    pub(super) fn refresh(&mut self, number: usize, plan: &SlotTree, changed: Interval) {
        if changed.is_empty() || changed.end <= self.begin {
            return;
        }
        for (class, duration) in DURATIONS.into_iter().enumerate() {
            // A start before the change reaches it if it lasts into it.
            let first = self.stretch(changed.start - (duration - 1));
            let last = self.stretch(changed.end - 1);
            for stretch in first..(last + 1).min(self.stretches.len()) {
                let hint = self.level(stretch, class, number);
                self.settle(stretch, class, number, plan, hint);
            }
        }
    }

    /// Makes room for a resource with this number, and takes in its plan. O(b + s) for b bits of the index and s steps of the plan.
    pub(super) fn insert(&mut self, number: usize, plan: &SlotTree) {
        let sizes = self.sizes.max(index_class_of_size(plan.capacity().max(1)) + 1);
        self.rearrange(self.resources + 1, sizes, |row, words| {
            bits::with_bit_inserted(row, number, words).collect()
        });
        for stretch in &mut self.stretches {
            for class in (0..DURATIONS.len()).rev() {
                stretch.levels.insert(class * (self.resources - 1) + number, 0);
            }
        }
        self.sweep(0, number, plan);
    }

    /// Forgets the resource with this number. O(b) for b bits of the index.
    pub(super) fn remove(&mut self, number: usize) {
        self.rearrange(self.resources - 1, self.sizes, |row, words| {
            bits::with_bit_removed(row, number, words).collect()
        });
        for stretch in &mut self.stretches {
            for class in (0..DURATIONS.len()).rev() {
                stretch.levels.remove(class * (self.resources + 1) + number);
            }
        }
    }

    /// Takes in the plans of other resources, over the same time.
    pub(super) fn renew<P: HasPlan>(&mut self, plans: &[P]) {
        let capacity = plans.iter().map(|p| p.plan().capacity()).max().unwrap_or(0);
        self.resources = plans.len();
        self.sizes = index_class_of_size(capacity.max(1)) + 1;
        self.stretches.clear();
        self.fill(plans);
    }

    /// Writes each set as `row` has it, for as many resources and size classes.
    fn rearrange(&mut self, resources: usize, sizes: usize, row: impl Fn(&[u64], usize) -> Vec<u64>) {
        let (before, words) = (bits::bit_words(self.resources), bits::bit_words(resources));
        let more = vec![0; (sizes - self.sizes) * words];
        for Stretch { sets, .. } in &mut self.stretches {
            let mut next = Vec::with_capacity(DURATIONS.len() * sizes * words);
            for class in sets.chunks((self.sizes * before).max(1)) {
                next.extend(class.chunks(before.max(1)).flat_map(|set| row(set, words)));
                next.extend(&more);
            }
            next.resize(DURATIONS.len() * sizes * words, 0);
            *sets = next;
        }
        (self.resources, self.sizes) = (resources, sizes);
    }

    /// Begins at the stretch of `now`, and adds as many stretches at the end as go.
    pub(super) fn advance<P: HasPlan>(&mut self, now: Time, plans: &[P]) {
        self.now = self.now.max(now);
        while self.begin + self.width <= self.now && !self.stretches.is_empty() {
            self.stretches.pop_front();
            self.begin = self.begin + self.width;
        }
        if self.stretches.is_empty() {
            self.begin = self.now;
        }
        self.fill(plans);
    }

    /// Adds stretches at the end up to the full number.
    fn fill<P: HasPlan>(&mut self, plans: &[P]) {
        let old = self.stretches.len();
        let empty = Stretch {
            sets: vec![0; DURATIONS.len() * self.sizes * bits::bit_words(self.resources)],
            levels: vec![0; DURATIONS.len() * self.resources],
        };
        self.stretches.resize(STRETCHES, empty);
        for (number, plan) in plans.iter().map(HasPlan::plan).enumerate() {
            if STRETCHES - old > SWEEP_FROM {
                self.sweep(old, number, plan);
                continue;
            }
            for stretch in old..STRETCHES {
                for class in 0..DURATIONS.len() {
                    // Most often the resource is as free as in the stretch before.
                    let hint = self.level(stretch.saturating_sub(1), class, number);
                    self.settle(stretch, class, number, plan, hint);
                }
            }
        }
    }

    /// Finds the levels of a resource in the stretches from `first` on, which know nothing of it, in one walk of its plan a size class.
    fn sweep(&mut self, first: usize, number: usize, plan: &SlotTree) {
        let steps: Vec<(Time, u32)> = plan.steps().collect();
        let begin = self.seconds(first).start;
        for class in 0..self.sizes {
            let mut ends = steps.iter().map(|(t, _)| *t).skip(1).chain([Time::MAX]);
            for run in steps
                .chunk_by(|a, b| (a.1 >= size_of_index_class(class)) == (b.1 >= size_of_index_class(class)))
            {
                let end = ends.nth(run.len() - 1).unwrap_or(Time::MAX);
                let (start, free) = run[0];
                if free < size_of_index_class(class) {
                    continue;
                }
                for (long, duration) in DURATIONS.into_iter().enumerate() {
                    let last = end - duration;
                    if last < start.max(begin) {
                        break;
                    }
                    let touched = self.stretch(start).max(first)..=self.stretch(last).min(STRETCHES - 1);
                    for stretch in touched {
                        self.raise(stretch, long, class, number);
                    }
                }
            }
        }
    }

    /// Adds the next size class to those of a resource.
    fn raise(&mut self, stretch: usize, class: usize, size: usize, number: usize) {
        if self.level(stretch, class, number) == size {
            let row = self.row(class, size);
            let Stretch { sets, levels } = &mut self.stretches[stretch];
            levels[class * self.resources + number] += 1;
            bits::put_bit(&mut sets[row], number, true);
        }
    }

    /// Finds the level of a resource in a stretch; the search for it begins at `hint`.
    fn settle(&mut self, stretch: usize, class: usize, number: usize, plan: &SlotTree, hint: usize) {
        let seconds = self.seconds(stretch);
        let window = Interval::new(seconds.start, seconds.end + (DURATIONS[class] - 1));
        let starts = |level: usize| {
            plan.earliest_fit(size_of_index_class(level), DURATIONS[class], window)
                .is_some()
        };
        let old = self.level(stretch, class, number);
        let mut level = hint;
        while level < self.sizes && starts(level) {
            level += 1;
        }
        if level == hint {
            while level > 0 && !starts(level - 1) {
                level -= 1;
            }
        }
        // There are at most 57 size classes below 2²⁹ nodes.
        let kept = u8::try_from(level).unwrap_or(u8::MAX);
        self.stretches[stretch].levels[class * self.resources + number] = kept;
        for size in level.min(old)..level.max(old) {
            let row = self.row(class, size);
            bits::put_bit(&mut self.stretches[stretch].sets[row], number, level > old);
        }
    }

    fn level(&self, stretch: usize, class: usize, number: usize) -> usize {
        usize::from(self.stretches[stretch].levels[class * self.resources + number])
    }

    /// Whether it is equal to a new one.
    #[cfg(test)]
    pub(super) fn check<P: HasPlan>(&self, plans: &[P]) {
        let mut fresh = Self {
            stretches: VecDeque::new(),
            ..self.clone()
        };
        fresh.fill(plans);
        for (stretch, (kept, fresh)) in self.stretches.iter().zip(&fresh.stretches).enumerate() {
            assert_eq!(kept.levels, fresh.levels, "stale levels in stretch {stretch}");
            assert_eq!(kept.sets, fresh.sets, "stale sets in stretch {stretch}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DURATIONS, duration_class, index_class_of_size, size_of_index_class};

    #[test]
    fn classes_round_down() {
        for nodes in 1..10_000 {
            let class = index_class_of_size(nodes);
            assert!(
                size_of_index_class(class) <= nodes && nodes < size_of_index_class(class + 1),
                "{nodes} nodes in {class}"
            );
        }
        for (class, duration) in DURATIONS.into_iter().enumerate() {
            assert_eq!(duration_class(duration), class);
            assert_eq!(duration_class(duration + 1), class);
        }
    }
}
