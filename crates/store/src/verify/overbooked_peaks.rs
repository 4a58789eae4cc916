//! The sweep over time that I1 asks for: whether loads ever exceed a capacity that changes.

use std::collections::BTreeMap;
use std::fmt;

use domain::agreement::Stretch;
use domain::clock::{Micros, second_after, second_of, time_in_words};
use scheduler::{Interval, Time, counted};

use crate::engine::{Connection, Result, statements};

/// The capacity of a resource from an instant on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) since: Micros,
    pub(crate) nodes: u32,
}

/// A time in which more nodes were in use than there were, and the worst of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverbookedPeak {
    interval: Interval,
    used: i64,
    capacity: i64,
}

impl fmt::Display for OverbookedPeak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            interval: Interval { start, end },
            used,
            capacity,
        } = self;
        let (start, end) = (time_in_words(*start), time_in_words(*end));
        write!(
            f,
            "{} in use where there are {capacity}, from {start} until {end}",
            counted(used, "node")
        )
    }
}

/// Every time in which the loads exceed the capacities, which come in order of time; the first of these holds for all
/// time before, too. O(n log n).
pub(crate) fn find_overbooked_peaks(loads: &[Stretch], capacities: &[Capacity]) -> Vec<OverbookedPeak> {
    // (when, change of the nodes in use, change of the capacity)
    let mut changes: Vec<(Time, i64, i64)> = Vec::with_capacity(2 * loads.len() + capacities.len());
    for (interval, nodes) in loads.iter().filter(|(interval, _)| !interval.is_empty()) {
        changes.push((interval.start, (*nodes).into(), 0));
        changes.push((interval.end, -i64::from(*nodes), 0));
    }
    let mut capacity = capacities.first().map_or(0, |first| first.nodes.into());
    for (before, after) in capacities.iter().zip(capacities.iter().skip(1)) {
        // A change falls inside a second; that whole second counts with the greater of the two.
        let at = if after.nodes > before.nodes {
            second_of(after.since)
        } else {
            second_after(after.since)
        };
        changes.push((at, 0, i64::from(after.nodes) - i64::from(before.nodes)));
    }
    changes.sort_unstable();

    let mut used = 0;
    let mut peaks: Vec<OverbookedPeak> = vec![];
    let mut exceeded = false;
    for instant in changes.chunk_by(|one, next| one.0 == next.0) {
        let now = instant[0].0;
        if let (true, Some(peak)) = (exceeded, peaks.last_mut()) {
            peak.interval.end = now;
        }
        used += instant.iter().map(|change| change.1).sum::<i64>();
        capacity += instant.iter().map(|change| change.2).sum::<i64>();
        if used <= capacity {
            exceeded = false;
            continue;
        }
        match peaks.last_mut() {
            Some(peak) if exceeded => {
                if used - capacity > peak.used - peak.capacity {
                    (peak.used, peak.capacity) = (used, capacity);
                }
            }
            _ => peaks.push(OverbookedPeak {
                interval: Interval::new(now, now),
                used,
                capacity,
            }),
        }
        exceeded = true;
    }
    peaks
}

/// The capacities of each resource with their starts, in order of time.
pub(crate) async fn read_capacities_for_peaks(
    connection: &mut Connection,
) -> Result<BTreeMap<String, Vec<Capacity>>> {
    let rows = connection.read(statements::CAPACITIES, &[], |row| {
        Ok((
            row.text("resource")?,
            row.integer("since_us")?,
            row.count("capacity")?,
        ))
    });
    let mut capacities: BTreeMap<String, Vec<Capacity>> = BTreeMap::new();
    for (resource, since, nodes) in rows.await? {
        capacities
            .entry(resource)
            .or_default()
            .push(Capacity { since, nodes });
    }
    Ok(capacities)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn load(start: i64, end: i64, nodes: u32) -> Stretch {
        (Interval::new(Time(start), Time(end)), nodes)
    }

    fn capacity(since: Micros, nodes: u32) -> Capacity {
        Capacity { since, nodes }
    }

    #[test]
    fn touching_loads_do_not_add_up_and_overlapping_ones_do() {
        let four = [capacity(0, 4)];
        assert_eq!(
            find_overbooked_peaks(&[load(0, 10, 4), load(10, 20, 4)], &four),
            []
        );
        let peaks = find_overbooked_peaks(&[load(0, 11, 4), load(10, 20, 2), load(10, 30, 1)], &four);
        let peak = OverbookedPeak {
            interval: Interval::new(Time(10), Time(11)),
            used: 7,
            capacity: 4,
        };
        assert_eq!(peaks, [peak]);
    }

    #[test]
    fn the_past_is_judged_by_what_there_was() {
        let shrunk = [capacity(0, 4), capacity(10_500_000, 2)];
        assert_eq!(
            find_overbooked_peaks(&[load(0, 11, 4)], &shrunk),
            [],
            "the second of the change counts with four"
        );
        assert_eq!(find_overbooked_peaks(&[load(0, 12, 4)], &shrunk).len(), 1);
        assert_eq!(find_overbooked_peaks(&[load(11, 12, 2)], &shrunk), []);
        let grown = [capacity(0, 2), capacity(10_500_000, 4)];
        assert_eq!(find_overbooked_peaks(&[load(10, 12, 4)], &grown), []);
        assert_eq!(find_overbooked_peaks(&[load(9, 12, 4)], &grown).len(), 1);
        assert_eq!(
            find_overbooked_peaks(&[load(0, 1, 1)], &[]).len(),
            1,
            "a node that was never there is not bound"
        );
    }

    proptest! {
        /// The oracle counts every second.
        #[test]
        fn peaks_are_the_seconds_in_which_a_count_exceeds(
            loads in prop::collection::vec((0i64..40, 0i64..15, 1u32..4), 0..12),
            capacities in prop::collection::vec((0i64..40_000_000, 0u32..6), 1..5),
        ) {
            let loads: Vec<_> = loads.into_iter().map(|(at, length, n)| load(at, at + length, n)).collect();
            let mut capacities: Vec<_> = capacities.into_iter().map(|(at, n)| capacity(at, n)).collect();
            capacities.sort_by_key(|capacity| capacity.since);
            capacities.dedup_by_key(|capacity| second_of(capacity.since));
            let peaks = find_overbooked_peaks(&loads, &capacities);
            for second in 0..60 {
                let used: u32 = loads
                    .iter()
                    .filter(|(interval, _)| interval.meets(Interval::of(Time(second), 1)))
                    .map(|(_, nodes)| *nodes)
                    .sum();
                // The capacity at the second's first and last microsecond, whichever was more.
                let there = |micros: i64| {
                    let last = capacities.iter().rev().find(|capacity| capacity.since <= micros);
                    last.unwrap_or(&capacities[0]).nodes
                };
                let most = there(second * 1_000_000).max(there(second * 1_000_000 + 999_999));
                let found = peaks.iter().any(|peak| peak.interval.meets(Interval::of(Time(second), 1)));
                prop_assert_eq!(found, used > most, "second {}: {} of {}: {:?}", second, used, most, peaks);
            }
        }
    }
}
