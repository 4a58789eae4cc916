//! `bespeak verify`.

use clap::Args;
use scheduler::counted;

use crate::cli::client::print_json;
use crate::cli::config::Config;
use crate::cli::{Failure, StoreOptions};

const EXAMPLES: &str = "\
Examples:
  bespeak verify
  bespeak verify --json --database-url postgres://bespeak@localhost/bespeak

The command checks all agreements and offers that are stored, open or over:
  I1   at every instant the nodes in use are no more than the resource has, and no node has two owners
  I4   an offer is accepted at most once, by its own party, and never after its expiry
  I5   an agreement in force counts with exactly its nodes, an ended one with none, and a hold until it ends
  I6   states have moved along allowed edges only, and the rest of a row agrees with its state
  I9   the ledger balances, and agrees with each agreement
  I10  every change of an agreement has its line in the audit trail, and the chain of hashes is whole
The service may run meanwhile.

Exit status: 0 when nothing is wrong, 1 when something is; each finding is a line.";

/// Options of `verify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    store: StoreOptions,
}

pub(in crate::cli) async fn run(options: Options, as_json: bool) -> Result<(), Failure> {
    Config::load(options.store.config.as_deref())?;
    let store = options.store.open().await?;
    let findings = store.verify().await?;
    if as_json {
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
        // As JSON they have been told.
        _ if as_json => Err(Failure::Refused(String::new())),
        count => Err(Failure::Refused(counted(count, "finding"))),
    }
}
