//! The rows on which slots are drawn: their nodes where these are known already, and otherwise the lowest ones that are free.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use domain::resources::UnusedNodes;
use planner::PicturedSlot;
use scheduler::{Interval, Time};

/// Rows that are free, as ranges that do not touch: the first row of each, and the one behind its last.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FreeChartRows(BTreeMap<u32, u32>);

/// The rows of each slot, as ranges in order, for slots that are given in order of their starts. No row has two slots at a time, and no
/// slot lies on nodes that are not used then, as long as there are enough rows for that. The same slots always have the same rows.
/// O(n·(log n + f)) for n slots, of which at most f have known nodes at a time.
pub(super) fn chart_rows_of_slots(
    capacity: u32,
    slots: &[PicturedSlot],
    unused: &[UnusedNodes],
) -> Vec<Vec<Range<u32>>> {
    let known = slots.iter().map(|slot| chart_rows_of_numbers(&slot.numbers));
    let mut lanes: Vec<Vec<Range<u32>>> = known.collect();
    let of_slots = slots.iter().zip(&lanes).flat_map(|(slot, rows)| {
        let fixed = rows.iter().map(|rows| (slot.interval, rows.clone()));
        fixed.collect::<Vec<_>>()
    });
    let of_nodes = unused
        .iter()
        .map(|unused| (unused.interval, unused.nodes.clone()));
    let mut fixed: Vec<(Interval, Range<u32>)> = of_slots.chain(of_nodes).collect();
    let mut free = FreeChartRows(BTreeMap::from([(0, capacity)]));
    let mut ends: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    for (at, slot) in slots.iter().enumerate() {
        while let Some(Reverse((end, ended))) = ends.peek().copied()
            && end <= slot.interval.start
        {
            ends.pop();
            for rows in &lanes[ended] {
                free.add(rows.clone());
            }
        }
        if !lanes[at].is_empty() {
            continue;
        }
        fixed.retain(|(interval, _)| interval.end > slot.interval.start);
        let in_the_way = fixed.iter().filter(|(interval, _)| interval.meets(slot.interval));
        let in_the_way: Vec<&Range<u32>> = in_the_way.map(|(_, rows)| rows).collect();
        let mut rows = if in_the_way.is_empty() {
            free.take_lowest(slot.nodes)
        } else {
            free.take_lowest_beside(&in_the_way, slot.nodes)
        };
        let taken: u32 = rows
            .iter()
            .map(ExactSizeIterator::len)
            .sum::<usize>()
            .try_into()
            .unwrap_or(0);
        // Where the nodes cannot be told apart so that all fit, a slot is drawn over what is in its way.
        rows.extend(free.take_lowest(slot.nodes.saturating_sub(taken)));
        rows.sort_unstable_by_key(|rows| rows.start);
        lanes[at] = rows;
        ends.push(Reverse((slot.interval.end, at)));
    }
    lanes
}

/// Numbers as the fewest ranges.
fn chart_rows_of_numbers(numbers: &[u32]) -> Vec<Range<u32>> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => ranges.push(number..number + 1),
        }
    }
    ranges
}

impl FreeChartRows {
    /// Takes the lowest ones that are not among some others; fewer where there are not so many.
    fn take_lowest_beside(&mut self, others: &[&Range<u32>], many: u32) -> Vec<Range<u32>> {
        let mut apart = self.clone();
        for rows in others {
            apart.remove(rows);
        }
        let taken = apart.take_lowest(many);
        for rows in &taken {
            self.remove(rows);
        }
        taken
    }

    /// Takes the lowest ones; fewer where there are not so many.
    fn take_lowest(&mut self, mut many: u32) -> Vec<Range<u32>> {
        let mut taken = Vec::new();
        while many > 0
            && let Some((start, end)) = self.0.pop_first()
        {
            let cut = end.min(start.saturating_add(many));
            if cut < end {
                self.0.insert(cut, end);
            }
            many -= cut - start;
            taken.push(start..cut);
        }
        taken
    }

    /// Takes some out, as far as they are there.
    fn remove(&mut self, rows: &Range<u32>) {
        while let Some((start, end)) = self
            .0
            .range(..rows.end)
            .next_back()
            .map(|(start, end)| (*start, *end))
            && end > rows.start
        {
            self.0.remove(&start);
            if end > rows.end {
                self.0.insert(rows.end, end);
            }
            if start < rows.start {
                self.0.insert(start, rows.start);
            }
        }
    }

    /// Gives back some that are not there.
    fn add(&mut self, rows: Range<u32>) {
        let (mut start, mut end) = (rows.start, rows.end);
        if let Some((before, reached)) = self.0.range(..start).next_back().map(|(at, end)| (*at, *end))
            && reached == start
        {
            self.0.remove(&before);
            start = before;
        }
        if let Some(reached) = self.0.remove(&end) {
            end = reached;
        }
        self.0.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use domain::resources::WhyUnused;
    use planner::PicturedSlotOf;
    use uuid::Uuid;

    use super::*;

    fn slot(start: i64, end: i64, nodes: u32, numbers: &[u32]) -> PicturedSlot {
        PicturedSlot {
            of: PicturedSlotOf::HeldOffers(Uuid::nil()),
            party: String::new(),
            interval: Interval::new(Time(start), Time(end)),
            nodes,
            numbers: numbers.to_vec(),
        }
    }

    #[test]
    #[expect(
        clippy::single_range_in_vec_init,
        reason = "most slots have one range of rows"
    )]
    fn a_slot_has_its_nodes_and_the_others_the_lowest_that_are_free_throughout() {
        let slots = [
            slot(0, 10, 2, &[1, 2]),
            slot(0, 5, 2, &[]),
            slot(5, 20, 1, &[]),
            slot(10, 20, 2, &[]),
        ];
        let lanes = chart_rows_of_slots(4, &slots, &[]);
        assert_eq!(lanes, [vec![1..3], vec![0..1, 3..4], vec![0..1], vec![1..3]]);
        let unused = UnusedNodes {
            nodes: 0..2,
            interval: Interval::new(Time(15), Time(30)),
            why: WhyUnused::Maintenance,
        };
        let lanes = chart_rows_of_slots(4, &slots[2..], std::slice::from_ref(&unused));
        assert_eq!(lanes, [vec![2..3], vec![0..1, 3..4]], "one has to lie over it");
    }

    #[test]
    fn at_no_time_do_two_slots_share_a_row_and_each_has_all_of_its_rows() {
        let mut seed = 7_u64;
        let mut draw = move |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..50 {
            let mut slots: Vec<PicturedSlot> = Vec::new();
            for _ in 0..60 {
                let start = i64::try_from(draw(100)).unwrap();
                let end = start + 1 + i64::try_from(draw(30)).unwrap();
                let next = slot(start, end, 1 + u32::try_from(draw(4)).unwrap(), &[]);
                slots.push(next);
                let fits = (0..140).all(|at| {
                    let busy = slots
                        .iter()
                        .filter(|slot| slot.interval.contains(Interval::of(Time(at), 1)));
                    busy.map(|busy| busy.nodes).sum::<u32>() <= 8
                });
                if !fits {
                    slots.pop();
                }
            }
            slots.sort_by_key(|slot| slot.interval.start);
            let lanes = chart_rows_of_slots(8, &slots, &[]);
            for (slot, rows) in slots.iter().zip(&lanes) {
                assert_eq!(
                    rows.iter().map(|rows| rows.end - rows.start).sum::<u32>(),
                    slot.nodes
                );
            }
            for (at, rows) in lanes.iter().enumerate() {
                let meeting = (0..at).filter(|other| slots[*other].interval.meets(slots[at].interval));
                for other in meeting.flat_map(|other| &lanes[other]) {
                    assert!(
                        rows.iter()
                            .all(|rows| rows.end <= other.start || other.end <= rows.start)
                    );
                }
            }
        }
    }
}
