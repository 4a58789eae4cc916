//! `bespeak calibrate`: how well run-time predictions were calibrated.

use advisor::table::Table;
use clap::Args;
use domain::clock::Clock;
use learning::learn_from_store;
use serde_json::json;

use crate::cli::client::print_json;
use crate::cli::config::Config;
use crate::cli::{Failure, StoreOptions};
use service::ReliabilityView;

const EXAMPLES: &str = "\
Examples:
  bespeak calibrate
  bespeak calibrate --csv > reliability.csv

The command predicts each execution again from the executions that had ended when it was agreed, and compares the
predictions with the outcomes: how many runs lay inside the intervals and below the quantiles, and the pinball loss, which is
least for predictions that are true and sharp. It does so for each combination of the parts of an estimate. A second table has
the weight of each part on each resource: 1 where the part makes predictions better, 0 where it makes them worse. The service
may run meanwhile. `bespeak-lab calibrate --trace` compares with the jobs of a log.";

/// Options of `calibrate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    store: StoreOptions,
    /// Print the statements as comma-separated values, without the weights.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

pub(in crate::cli) async fn calibrate_predictions(options: Options, as_json: bool) -> Result<(), Failure> {
    let view = calibration_of_store(&options).await?;
    let (statements, weights) = (
        calibrated_statements_table(&view),
        calibrated_weights_table(&view),
    );
    if as_json {
        print_json(&json!({
            "outcomes": view.outcomes,
            "decides": view.decides,
            "statements": statements.json(),
            "weights": weights.json(),
        }));
    } else if options.csv {
        say!("{}", statements.csv().trim_end());
    } else {
        say!("{}\n\n{}", statements.text(), weights.text());
        let decides = view.decides.as_deref();
        say!(
            "\nWhat decides: {}",
            decides.unwrap_or("nothing of this (prediction.choice)")
        );
    }
    Ok(())
}

async fn calibration_of_store(options: &Options) -> Result<ReliabilityView, Failure> {
    let config = Config::load(options.store.config.as_deref())?;
    let store = options.store.open().await?;
    let knowledge = learn_from_store(&store, config.predictions(), Clock::system().now()).await?;
    ReliabilityView::of(&knowledge).ok_or_else(|| {
        let none = "no execution came after another one of its application, so there was no prediction";
        Failure::Refused(none.to_owned())
    })
}

fn calibrated_statements_table(view: &ReliabilityView) -> Table {
    let number_of = |what: &str| {
        view.ladders
            .iter()
            .map(|ladder| format!("{what}, {ladder}"))
            .collect()
    };
    let held: Vec<String> = number_of("held (%)");
    let columns = [vec!["statement".to_owned()], held, number_of("pinball loss (s)")].concat();
    let mut rows: Vec<Vec<String>> = (view.statements.iter())
        .map(|statement| {
            [
                vec![statement.statement.clone()],
                statement.held.clone(),
                statement.losses.clone(),
            ]
            .concat()
        })
        .collect();
    let mean = vec![format!("mean of {} outcomes", view.outcomes)];
    let nothing = vec!["–".to_owned(); view.ladders.len()];
    rows.push([mean, nothing, view.mean_losses.clone()].concat());
    Table { columns, rows }
}

fn calibrated_weights_table(view: &ReliabilityView) -> Table {
    let parts = ReliabilityView::parts();
    let columns = [&["resource"][..], &parts, &["trust RT (s)", "runs lost (%)"]].concat();
    let mut table = Table::new(&columns);
    table.rows = (view.weights.iter())
        .map(|weights| {
            let last = vec![weights.trust.clone(), weights.lost.clone()];
            [vec![weights.resource.clone()], weights.weights.clone(), last].concat()
        })
        .collect();
    table
}
