//! `bespeak-lab bench`: measures a part of Bespeak by itself. `planner` replays a sequence of placements on the slot tree and
//! prints the time of each phase, so that other plans can be measured beside it on the same files.

use std::path::{Path, PathBuf};

use advisor::fault::Fault;
use advisor::table::table_rows_as_csv;
use clap::{Args, Subcommand};
use lab::request_list::{self, is_heading};
use rustix::time::{ClockId, clock_gettime};
use scheduler::measure::{Clocks, MeasuredExtent, Replay, Row, measure_replay};
use scheduler::slot_tree::MAX_CAPACITY;
use scheduler::{Seconds, SlotTree};
use serde_json::json;

/// The longest horizon: 10,000 years.
const HORIZON_MAX_SECONDS: Seconds = 10_000 * 366 * 86_400;

/// Options of `bench`.
#[derive(Debug, Subcommand)]
pub(super) enum BenchOptions {
    /// Replay placements, queries, bulk changes and churn on one resource; prints a line of JSON.
    Planner(PlannerOptions),
}

#[derive(Debug, Args)]
pub(super) struct PlannerOptions {
    /// CSV: `id,ready_u32,units,duration_s`, placed in file order.
    #[arg(long, value_name = "FILE")]
    requests: PathBuf,
    /// CSV: `id,ready_u32,units,duration_s,victim_u32`; rows 0 to 9999 are asked, rows 20000 to 29999 replace.
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Nodes of the resource.
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CAPACITY)))]
    capacity: u32,
    /// Placements end by this second.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(1..=HORIZON_MAX_SECONDS))]
    horizon: Seconds,
    /// Ready times are spread over this number of seconds from the start.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(0..=HORIZON_MAX_SECONDS))]
    ready_window: Seconds,
    /// Write where each request was placed: `id,start`, −1 for a refused one.
    #[arg(long, value_name = "FILE")]
    starts: Option<PathBuf>,
    /// CPU time after which a phase ends.
    #[arg(long, value_name = "CPU_SECONDS")]
    budget: Option<u32>,
}

pub(super) fn run_bench(options: &BenchOptions) -> Result<(), Fault> {
    let BenchOptions::Planner(options) = options;
    let requests = read_bench_rows(&options.requests, false)?;
    let queries = read_bench_rows(&options.queries, true)?;
    let extent = MeasuredExtent {
        horizon: options.horizon,
        ready_window: options.ready_window,
    };
    let clocks = Clocks {
        cpu: &|| bench_clock_nanoseconds(ClockId::ThreadCPUTime),
        wall: &|| bench_clock_nanoseconds(ClockId::Monotonic),
        budget: options.budget.map(|seconds| u64::from(seconds) * 1_000_000_000),
    };
    let mut tree = SlotTree::new(options.capacity);
    let outcome = measure_replay(&mut tree, &requests, &queries, extent, &clocks);
    if let Some(path) = &options.starts {
        write_bench_starts(path, &requests, &outcome)?;
    }
    say!("{}", bench_summary(options, requests.len(), &outcome));
    Ok(())
}

/// Reads a request or a query file. A first line that does not start with a number is a heading.
fn read_bench_rows(path: &Path, with_victim: bool) -> Result<Vec<Row>, Fault> {
    let fault = |line: usize, what: &str| Fault(format!("{}:{line}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|why| Fault::of(path, why))?;
    let mut rows = Vec::new();
    for row in request_list::numbered_rows_of_list(&text) {
        let (line, row) = row.map_err(|error| fault(error.line, &error.reason))?;
        if is_heading(line, &row) {
            continue;
        }
        if row.len() != if with_victim { 5 } else { 4 } {
            return Err(fault(line, "another number of columns than expected"));
        }
        let row = read_bench_row(&row).ok_or_else(|| fault(line, "not a number, or out of range"))?;
        if !(1..=HORIZON_MAX_SECONDS).contains(&row.duration) {
            return Err(fault(line, "the duration is out of range"));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn read_bench_row(row: &csv::StringRecord) -> Option<Row> {
    Some(Row {
        id: row[0].parse().ok()?,
        ready: row[1].parse().ok()?,
        nodes: row[2].parse().ok()?,
        duration: row[3].parse().ok()?,
        victim: row.get(4).unwrap_or("0").parse().ok()?,
    })
}

fn write_bench_starts(path: &Path, requests: &[Row], outcome: &Replay) -> Result<(), Fault> {
    let rows = requests.iter().zip(&outcome.starts).map(|(request, start)| {
        let start = start.map_or(-1, |start| start.0);
        [request.id.to_string(), start.to_string()]
    });
    let text = table_rows_as_csv(std::iter::once(["id", "start"].map(str::to_owned)).chain(rows));
    std::fs::write(path, text).map_err(|why| Fault::of(path, why))
}

/// One JSON object: the measured plan, and the time of each phase.
#[expect(clippy::cast_precision_loss, reason = "times are given to the microsecond")]
fn bench_summary(options: &PlannerOptions, requests: usize, outcome: &Replay) -> serde_json::Value {
    let seconds = |nanoseconds: u64| (nanoseconds / 1_000) as f64 / 1e6;
    let phases = outcome.phases.iter().map(|phase| {
        let measured = json!({
            "operations": phase.operations,
            "cpu_seconds": seconds(phase.cpu_ns),
            "operations_per_cpu_second": phase.rate().round(),
            "p50_us": phase.p50_ns as f64 / 1e3,
            "p99_us": phase.p99_ns as f64 / 1e3,
        });
        (phase.name.to_owned(), measured)
    });
    let phases: serde_json::Map<String, serde_json::Value> = phases.collect();
    json!({
        "capacity": options.capacity,
        "requests": requests,
        "live": outcome.live,
        "bytes_per_live_reservation": outcome.memory_bytes / outcome.live.max(1),
        "phases": phases,
    })
}

fn bench_clock_nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::{Fault, read_bench_rows};

    fn read(text: &str, with_victim: bool) -> Result<usize, Fault> {
        let folder = tempfile::tempdir().expect("a folder for a file");
        let path = folder.path().join("rows.csv");
        std::fs::write(&path, text).expect("the file can be written");
        read_bench_rows(&path, with_victim).map(|rows| rows.len())
    }

    #[test]
    fn a_heading_is_optional() {
        assert_eq!(
            read("id,ready_u32,units,duration_s\n1,2,3,4\n", false).unwrap(),
            1
        );
        assert_eq!(read("1,2,3,4\n5,6,7,8\n", false).unwrap(), 2);
        assert_eq!(read("1,2,3,4,5\n", true).unwrap(), 1);
    }

    #[test]
    fn a_faulty_row_is_named() {
        for text in [
            "1,2,3\n",
            "1,2,3,4,5\n",
            "1,x,3,4\n",
            "1,4294967296,3,4\n",
            "1,2,3,0\n",
            "1,2,3,-4\n",
        ] {
            let Err(Fault(message)) = read(text, false) else {
                panic!("{text:?} was read")
            };
            assert!(message.contains("rows.csv:1:"), "{message}");
        }
    }
}
