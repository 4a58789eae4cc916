//! `bespeak executions`: how often applications ran, how that ended and how long it took, as far back as anything is kept.

use std::collections::BTreeMap;

use clap::Args;
use scheduler::Time;
use serde_json::{Value, json};
use store::execution_hours::{self, ExecutionHour};

use super::print_json;
use crate::cli::table::{print_table, row};
use crate::cli::{Failure, StoreOptions, instant_in_utc};

const EXAMPLES: &str = "\
Examples:
  bespeak executions
  bespeak executions --app solve --hours
  bespeak executions --json

Estimates read single executions. Old executions become sums over hours ([history] in the configuration). Both are counted
here together; SUMMED is the number of runs of which only sums are left. The service may run meanwhile.";

/// Options of `executions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    store: StoreOptions,
    /// Only executions of this application.
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// One line for each hour in which executions ended.
    #[arg(long)]
    hours: bool,
}

/// The key of a line: application, version, resource, outcome and, where they are wanted, hour.
type Key = (String, String, String, String, Option<Time>);

/// The content of a line.
#[derive(Debug, Clone, Copy, Default)]
struct ExecutionLine {
    runs: i64,
    summed: i64,
    queue_time: i64,
    run_time: i64,
    input_bytes: i64,
    output_bytes: i64,
    first: Time,
    last: Time,
}

pub(in crate::cli) async fn list_executions(options: Options, is_json: bool) -> Result<(), Failure> {
    let store = options.store.open().await?;
    let mut lines = BTreeMap::new();
    // Executions that are pruned in between are counted in neither way rather than twice.
    let summed = execution_hours::pruned_execution_hours(&store).await?;
    let kept = execution_hours::unpruned_execution_hours(&store).await?;
    for hour in &kept {
        add_hour_of_executions(&mut lines, &options, hour, 0);
    }
    for hour in &summed {
        add_hour_of_executions(&mut lines, &options, hour, hour.runs);
    }
    if is_json {
        print_json(&lines.iter().map(executions_as_json).collect());
    } else {
        print_executions(&lines);
    }
    Ok(())
}

fn add_hour_of_executions(
    lines: &mut BTreeMap<Key, ExecutionLine>,
    options: &Options,
    hour: &ExecutionHour,
    summed: i64,
) {
    if options.app.as_ref().is_some_and(|app| *app != hour.application) {
        return;
    }
    let key = (
        hour.application.clone(),
        hour.version.clone(),
        hour.resource.clone(),
        hour.outcome.clone(),
        options.hours.then_some(hour.start),
    );
    let line = lines.entry(key).or_insert(ExecutionLine {
        first: hour.start,
        last: hour.start,
        ..ExecutionLine::default()
    });
    for (sum, more) in [
        (&mut line.runs, hour.runs),
        (&mut line.summed, summed),
        (&mut line.queue_time, hour.queue_time),
        (&mut line.run_time, hour.run_time),
        (&mut line.input_bytes, hour.input_bytes),
        (&mut line.output_bytes, hour.output_bytes),
    ] {
        *sum = sum.saturating_add(more);
    }
    line.first = line.first.min(hour.start);
    line.last = line.last.max(hour.start);
}

fn print_executions(lines: &BTreeMap<Key, ExecutionLine>) {
    let rows = lines
        .iter()
        .map(|((application, version, resource, outcome, _), line)| {
            row([
                application,
                version,
                resource,
                outcome,
                &line.runs,
                &line.summed,
                &format!("{:.1}", mean_execution_seconds(line.queue_time, line.runs)),
                &format!("{:.1}", mean_execution_seconds(line.run_time, line.runs)),
                &instant_in_utc(line.first),
                &instant_in_utc(line.last),
            ])
        });
    print_table(
        "APPLICATION, VERSION, RESOURCE, OUTCOME, RUNS, SUMMED, WAITED (s), RAN (s), FIRST HOUR, LAST HOUR",
        &[4, 5, 6, 7],
        rows,
    );
}

fn executions_as_json(((application, version, resource, outcome, _), line): (&Key, &ExecutionLine)) -> Value {
    json!({
        "application": application,
        "version": (!version.is_empty()).then_some(version),
        "resource": resource,
        "outcome": outcome,
        "runs": line.runs,
        "summed": line.summed,
        "meanQueueSeconds": mean_execution_seconds(line.queue_time, line.runs),
        "meanRunSeconds": mean_execution_seconds(line.run_time, line.runs),
        "inputBytes": line.input_bytes,
        "outputBytes": line.output_bytes,
        "firstHour": instant_in_utc(line.first),
        "lastHour": instant_in_utc(line.last),
    })
}

/// The seconds of each run, for a number of runs with a total in microseconds, to a thousandth.
fn mean_execution_seconds(sum: i64, runs: i64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "to a thousandth of a second, what is beyond 2^53 microseconds makes no difference"
    )]
    let seconds = sum as f64 / runs.max(1) as f64 / 1e6;
    (seconds * 1e3).round() / 1e3
}
