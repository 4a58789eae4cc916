//! `bespeak verify`.

use clap::Args;

use super::client::print_json;
use super::config::Config;
use super::{Failure, StoreOptions};
use crate::store::Store;

const EXAMPLES: &str = "\
Examples:
  bespeak verify
  bespeak verify --json --database-url postgres://bespeak@localhost/bespeak

What is checked, over everything that was ever agreed:
  I1  at every instant the nodes in use are no more than the resource has, and no node has two owners
  I5  an agreement in force counts with exactly its nodes, and one that has ended with none
  I6  states have moved along allowed edges only, and what else a row says goes with its state
Holds on capacity do not exist yet, so nothing is checked of them. The service may run meanwhile.

Exit status: 0 when nothing is wrong, 1 when something is; each finding is a line.";

/// Options of `verify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    #[command(flatten)]
    store: StoreOptions,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(options: Options) -> Result<(), Failure> {
    Config::load(options.store.config.as_deref())?;
    let store = Store::open_existing(&options.store.database_url()).await?;
    let findings = store.verify().await?;
    if options.json {
        print_json(&serde_json::json!({ "findings": findings }));
    } else if findings.is_empty() {
        say!("nothing is wrong");
    } else {
        for finding in &findings {
            say!("{finding}");
        }
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err(Failure::Refused("1 finding".to_owned())),
        count => Err(Failure::Refused(format!("{count} findings"))),
    }
}
