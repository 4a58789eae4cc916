//! `bespeak calibrate`: whether what is stated of run times is true.

use std::path::PathBuf;

use clap::Args;
use scheduler::prediction::Reliability;
use serde_json::{Map, Value, json};
use simulation::experiment::prediction::reliability;
use simulation::report::Table;
use simulation::swf::Trace;
use simulation::workload::Workload;

use super::client::print_json;
use super::config::Config;
use super::{Failure, StoreOptions};
use crate::clock::Clock;
use crate::negotiation::ReliabilityView;
use crate::prediction::learn;
use crate::store::Store;

const EXAMPLES: &str = "\
Examples:
  bespeak calibrate
  bespeak calibrate --trace SDSC-SP2-1998-4.2-cln.swf.gz
  bespeak calibrate --csv > reliability.csv

Each execution is predicted again from those that had ended when it was agreed (in a trace: submitted), and what would have
been stated is held against what came: how many runs lay inside the intervals and below the quantiles, and the pinball loss,
which is least for statements that are true and sharp. The service may run meanwhile.";

/// Options of `calibrate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    #[command(flatten)]
    store: StoreOptions,
    /// Take the jobs of a trace in Standard Workload Format, plain or gzip, instead of the store's executions.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print as JSON.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print as comma-separated values.
    #[arg(long)]
    csv: bool,
}

pub(super) async fn run(options: Options) -> Result<(), Failure> {
    let table = match &options.trace {
        Some(path) => {
            let trace = Trace::open(path).map_err(|error| Failure::Usage(error.to_string()))?;
            let workload = Workload::from_trace(&path.display().to_string(), &trace);
            // Whoever shows what comes out of a log says whose it is.
            for line in &workload.notice {
                eprintln!("{line}");
            }
            reliability(&workload)
        }
        None => of_store(&options).await?,
    };
    if options.json {
        print_json(&as_json(&table));
    } else if options.csv {
        say!("{}", table.csv().trim_end());
    } else {
        print(&table);
    }
    Ok(())
}

async fn of_store(options: &Options) -> Result<Table, Failure> {
    let settings = Config::load(options.store.config.as_deref())?.planner();
    let store = Store::open_existing(&options.store.database_url()).await?;
    let knowledge = learn(&store, settings.rates(), Clock::system().now()).await?;
    let kept = knowledge.reliability();
    if kept.outcomes() == 0 {
        return Err(Failure::Refused(
            "none of the executions had one of its application before it, so nothing was stated".to_owned(),
        ));
    }
    Ok(table(kept))
}

fn table(kept: &Reliability) -> Table {
    let mut table = Table::new(&["statement", "held (%)", "pinball loss (s)"]);
    let nothing = || "–".to_owned();
    let ReliabilityView {
        outcomes,
        statements,
        mean_loss,
    } = ReliabilityView::of(kept);
    for of in statements {
        let loss = of.loss.unwrap_or_else(nothing);
        table.rows.push(vec![of.statement, of.held, loss]);
    }
    let outcomes = format!("mean of {outcomes} outcomes");
    table.rows.push(vec![outcomes, nothing(), mean_loss]);
    table
}

/// Columns as wide as their widest cell; headings that are long stand above, by number.
fn print(table: &Table) {
    const HEADING_MAX: usize = 16;
    let width = |text: &str| text.chars().count();
    let headings: Vec<String> = table
        .columns
        .iter()
        .zip(1..)
        .map(|(heading, number)| {
            if width(heading) <= HEADING_MAX {
                heading.clone()
            } else {
                say!("({number}) {heading}");
                format!("({number})")
            }
        })
        .collect();
    let rows = || std::iter::once(&headings).chain(&table.rows);
    let widths: Vec<usize> = (0..headings.len())
        .map(|column| rows().map(|row| width(&row[column])).max().unwrap_or(0))
        .collect();
    for row in rows() {
        let mut line = String::new();
        for ((cell, most), column) in row.iter().zip(&widths).zip(0..) {
            let space = " ".repeat(most - width(cell));
            line += &if column == 0 {
                format!("{cell}{space}")
            } else {
                format!("  {space}{cell}")
            };
        }
        say!("{}", line.trim_end());
    }
}

fn as_json(table: &Table) -> Value {
    let rows = table.rows.iter().map(|row| {
        let cells = table.columns.iter().zip(row).map(|(column, cell)| {
            let value = cell
                .parse::<f64>()
                .map_or_else(|_| json!(cell), |number| json!(number));
            (column.clone(), if cell == "–" { Value::Null } else { value })
        });
        Value::Object(cells.collect::<Map<_, _>>())
    });
    Value::Array(rows.collect())
}
