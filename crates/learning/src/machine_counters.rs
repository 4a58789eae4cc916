//! The present condition of this machine: the free share of its processors, and the free capacity of its lines.
//!
//! Linux has both in `/proc` and `/sys`; elsewhere, or where they are missing there, nothing is known. The share of the
//! processors counts all work, that of agreements too: any work beside a job slows it.

use std::fs;
use std::path::Path;

use domain::clock::{MICROS_PER_SECOND, Micros};
use domain::past::Condition;

/// Millionths in a whole.
const WHOLE: i128 = 1_000_000;

/// The counters of the system since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MachineCounters {
    /// Ticks of all processors, and those of them that were idle.
    ticks: Option<(u64, u64)>,
    /// Bytes received and sent by lines to other machines, and the capacity of the lines in a second.
    lines: Option<(u64, u64, u64)>,
}

/// Reads the counters off the threads that serve connections: the system answers from memory, but they are files.
pub(super) async fn read_machine_counters() -> MachineCounters {
    let read = || MachineCounters {
        ticks: fs::read_to_string("/proc/stat")
            .ok()
            .as_deref()
            .and_then(processor_ticks),
        lines: fs::read_to_string("/proc/net/dev")
            .ok()
            .and_then(|text| network_line_counters(&text, network_line_speed)),
    };
    task::spawn_blocking(read).await.unwrap_or_default()
}

/// The capacity of a line, in bytes a second; none where it is down, has no number, or is not a line to other machines.
fn network_line_speed(line: &str) -> Option<u64> {
    let file = Path::new("/sys/class/net").join(line).join("speed");
    let megabits: u64 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (megabits > 0).then(|| megabits.saturating_mul(125_000))
}

/// All ticks and the idle ones, from the first line of `/proc/stat`. The last two numbers are part of the first two.
fn processor_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .take(8)
        .map_while(|ticks| ticks.parse().ok())
        .collect();
    let idle = ticks.get(3)?.saturating_add(ticks.get(4).copied().unwrap_or(0));
    Some((
        ticks.iter().fold(0, |sum, ticks| sum.saturating_add(*ticks)),
        idle,
    ))
}

/// Bytes received and sent by all lines of known speed, and their speeds together, from `/proc/net/dev`.
fn network_line_counters(dev: &str, speed: impl Fn(&str) -> Option<u64>) -> Option<(u64, u64, u64)> {
    let mut sum: Option<(u64, u64, u64)> = None;
    for (name, counts) in dev.lines().filter_map(|line| line.split_once(':')) {
        let counts: Vec<u64> = counts
            .split_ascii_whitespace()
            .map_while(|count| count.parse().ok())
            .collect();
        let (Some(received), Some(sent), Some(speed)) = (counts.first(), counts.get(8), speed(name.trim()))
        else {
            continue;
        };
        let before = sum.unwrap_or_default();
        sum = Some((
            before.0.saturating_add(*received),
            before.1.saturating_add(*sent),
            before.2.saturating_add(speed),
        ));
    }
    sum
}

/// The condition of the machine between two looks.
pub(super) fn machine_condition_between(
    before: (Micros, MachineCounters),
    now: (Micros, MachineCounters),
) -> Condition {
    let share_of = |part: u64, whole: i128, unit: i128| {
        let share = i128::from(part).saturating_mul(unit).checked_div(whole)?;
        i64::try_from(share).ok()
    };
    // Counters begin again with the system: then they say nothing.
    let free_cpu = (before.1.ticks.zip(now.1.ticks)).and_then(|((all_before, idle_before), (all, idle))| {
        let (all, idle) = (all.checked_sub(all_before)?, idle.checked_sub(idle_before)?);
        share_of(idle.min(all), all.into(), WHOLE)
    });
    let micros = i128::from(now.0 - before.0).max(1);
    let carried = |before: u64, now: u64, speed: u64| {
        let rate = share_of(now.checked_sub(before)?, micros, MICROS_PER_SECOND.into())?;
        Some(i64::try_from(speed).ok()?.saturating_sub(rate).max(0))
    };
    let lines = before.1.lines.zip(now.1.lines);
    Condition {
        free_cpu,
        bandwidth_in: lines.and_then(|(before, now)| carried(before.0, now.0, now.2)),
        bandwidth_out: lines.and_then(|(before, now)| carried(before.1, now.1, now.2)),
        ..Condition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3 4\nintr 5\n";
    const DEV: &str = "Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier \
        compressed\n    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n";

    #[test]
    fn counters_are_read_as_the_system_writes_them() {
        assert_eq!(processor_ticks(STAT), Some((1_000, 850)));
        for nothing in ["", "cpu\n", "cpu  1 2\n", "intr 1 2 3 4 5\n", "cpu  a b c d\n"] {
            assert_eq!(processor_ticks(nothing), None, "{nothing:?}");
        }
        let speed = |line: &str| (line == "eth0").then_some(1_000_000);
        assert_eq!(
            network_line_counters(DEV, speed),
            Some((1_000, 2_000, 1_000_000)),
            "not the loopback"
        );
        assert_eq!(network_line_counters(DEV, |_| None), None);
    }

    #[test]
    fn a_condition_is_what_happened_between_two_looks() {
        let look = |ticks, lines| MachineCounters {
            ticks: Some(ticks),
            lines: Some(lines),
        };
        let before = (0, look((1_000, 850), (1_000, 2_000, 10_000)));
        let now = (
            2 * MICROS_PER_SECOND,
            look((2_000, 1_100), (5_000, 52_000, 10_000)),
        );
        assert_eq!(
            machine_condition_between(before, now),
            Condition {
                free_cpu: Some(250_000),
                bandwidth_in: Some(8_000),
                bandwidth_out: Some(0),
                ..Condition::default()
            }
        );
        assert_eq!(
            machine_condition_between(now, before),
            Condition::default(),
            "the system was started again"
        );
        assert_eq!(
            machine_condition_between(before, before).free_cpu,
            None,
            "nothing has passed"
        );
    }

    #[test]
    fn this_machine_tells_its_ticks() {
        if let Ok(stat) = fs::read_to_string("/proc/stat") {
            let (all, idle) = processor_ticks(&stat).expect("Linux writes them");
            assert!(all > 0 && idle <= all);
        }
    }
}
