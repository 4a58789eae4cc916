//! `bespeak verify`.

use std::path::PathBuf;

use clap::Args;
use scheduler::counted;
use store::{Finding, engine_check};

use super::trail::signed_lines_of_trail;
use crate::cli::client::print_json;
use crate::cli::config::Config;
use crate::cli::{Failure, StoreOptions};

const EXAMPLES: &str = "\
Examples:
  bespeak verify
  bespeak verify --heads /mnt/elsewhere/trail-heads --trail-key 6f1c…    with a public key that was kept elsewhere
  bespeak verify --json --database-url postgres://bespeak@localhost/bespeak

The command checks all agreements and offers that are stored, open or over:
  I1   at every instant the nodes in use are no more than the resource has, and no node has two owners
  I4   an offer is accepted at most once, by its own party, and never after its expiry
  I5   an agreement in force counts with exactly its nodes, an ended one with none, and a hold until it ends
  I6   states have moved along allowed edges only, and the rest of a row agrees with its state
  I9   the ledger balances, and agrees with each agreement
  I10  every change of an agreement has its line in the audit trail, the chain of hashes is whole, the rows of agreements,
       nodes, executions and money are as its lines state, all agreements that are named are there, and it has the lines
       whose hashes the service has signed (\"[trail]\" in bespeak.example.toml) and the last one that it has stored
It has the engine check its own files, too: PRAGMA integrity_check of SQLite; on PostgreSQL what pg_amcheck checks, where the
extension amcheck is in the database and its functions may be used. The service may run meanwhile.

Exit status: 0 when nothing is wrong, 1 when something is; each finding is a line.";

/// Options of `verify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    store: StoreOptions,
    /// The signed heads of the audit trail. [default: that of the configuration, else DATA_DIR/trail-heads, where it is there]
    #[arg(long, value_name = "FILE")]
    heads: Option<PathBuf>,
    /// The public key of the trail, in hexadecimal: a copy that was kept elsewhere. [default: the file beside the private key]
    #[arg(long, value_name = "HEX")]
    trail_key: Option<String>,
}

pub(in crate::cli) async fn verify_store(options: Options, as_json: bool) -> Result<(), Failure> {
    let config = Config::load(options.store.config.as_deref())?;
    let (data_dir, key) = (&options.store.data_dir, options.trail_key.as_deref());
    let (lines, wrong) = signed_lines_of_trail(data_dir, &config.trail, options.heads.clone(), key)?;
    let store = options.store.open().await?;
    let mut findings: Vec<_> = wrong.into_iter().map(Finding::of_heads).collect();
    findings.extend(engine_check::check_by_engine(&store).await?);
    match store.verify_with(lines).await {
        Ok(more) => findings.extend(more),
        // A damaged file cannot be read to its end.
        Err(_) if !findings.is_empty() => {}
        Err(why) => return Err(why.into()),
    }
    if findings.is_empty() && !as_json {
        say!("nothing is wrong");
        return Ok(());
    }
    let told = tell_verify_findings(&findings, as_json);
    if findings.is_empty() { Ok(()) } else { Err(told) }
}

/// Prints findings. Returns the failure that they are.
pub(super) fn tell_verify_findings(findings: &[Finding], as_json: bool) -> Failure {
    if as_json {
        print_json(&serde_json::json!({ "findings": findings }));
        // They have been told.
        return Failure::Refused(String::new());
    }
    for finding in findings {
        say!("{finding}");
    }
    Failure::Refused(counted(findings.len(), "finding"))
}
