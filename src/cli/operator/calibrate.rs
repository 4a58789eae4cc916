//! `bespeak calibrate`: how well run-time predictions were calibrated.

use advisor::command::Form;
use advisor::table::Table;
use clap::Args;
use scheduler::prediction::Reliability;

use crate::cli::config::Config;
use crate::cli::{Failure, StoreOptions};
use crate::clock::Clock;
use crate::negotiation::ReliabilityView;
use crate::prediction::learn;

const EXAMPLES: &str = "\
Examples:
  bespeak calibrate
  bespeak calibrate --csv > reliability.csv

The command predicts each execution again from the executions that had ended when it was agreed, and compares the
predictions with the outcomes: how many runs lay inside the intervals and below the quantiles, and the pinball loss, which is
least for predictions that are true and sharp. The service may run meanwhile. `bespeak-lab calibrate --trace` does the same
with the jobs of a log.";

/// Options of `calibrate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    form: Form,
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let settings = Config::load(options.store.config.as_deref())?.planner();
    let store = options.store.open().await?;
    let knowledge = learn(&store, settings.rates(), Clock::system().now()).await?;
    let kept = knowledge.reliability();
    if kept.outcomes() == 0 {
        return Err(Failure::Refused(
            "no execution came after another one of its application, so there was no prediction".to_owned(),
        ));
    }
    say!("{}", options.form.of(&table(kept)));
    Ok(())
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
