//! `bespeak cluster`: clusters of the configuration, looked at without the service.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use execution::slurm::{SlurmExecutor, SlurmSettings};
use execution::{CheckResult, ExecutionError, Executor, SetupCheck};
use serde_json::json;
use uuid::Uuid;

use super::helper;
use crate::cli::Failure;
use crate::cli::client::print_json;
use crate::cli::config::Config;

const EXAMPLES: &str = "\
Examples:
  bespeak cluster check --config bespeak.toml              everything that a promise on a cluster depends on
  bespeak cluster check --config bespeak.toml --wait 0     the same without a job on a node

A service makes the same checks at its start, except the job, and promises nothing on a cluster that fails one.

Exit status: 0 if nothing is wrong, 1 if something is.";

/// Options of `cluster`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check programs, controller, clocks, partition, nodes, rights, users, accounts and the shared folder of each cluster.
    Check(CheckOptions),
    /// Run the operations that need rights on the clusters, for a service without these rights.
    Helper(helper::Options),
}

/// Options of `cluster check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct CheckOptions {
    /// Name of a resource. [default: every cluster of the configuration]
    resource: Option<String>,
    /// Seconds to wait for the end of a job on a node; 0 runs no job
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=3_600))]
    wait: u64,
    /// The configuration with the clusters (TOML).
    #[arg(long, env = "BESPEAK_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(in crate::cli) fn manage_clusters(options: Options, as_json: bool) -> Result<(), Failure> {
    let options = match options.command {
        Command::Check(options) => options,
        Command::Helper(options) => return helper::run_cluster_helper(&options),
    };
    let config = Config::load(options.config.as_deref())?;
    let clusters: Vec<SlurmSettings> = config.clusters();
    let clusters = clusters.into_iter().filter(|cluster| {
        options
            .resource
            .as_ref()
            .is_none_or(|name| *name == cluster.resource)
    });
    let clusters: Vec<SlurmSettings> = clusters.collect();
    if clusters.is_empty() {
        let what = options
            .resource
            .map_or_else(|| "cluster".to_owned(), |name| format!("cluster {name:?}"));
        return Err(Failure::Usage(format!("the configuration has no {what}")));
    }
    let (mut checked, mut wrong) = (Vec::new(), 0);
    for settings in clusters {
        let name = settings.resource.clone();
        let checks = with_temporary_cluster_folder(|folder| {
            let executor = SlurmExecutor::new(settings, folder)?;
            Ok(match options.wait {
                0 => executor.check(),
                wait => executor.check_with_job(Duration::from_secs(wait)),
            })
        })?;
        wrong += checks
            .iter()
            .filter(|check| matches!(check.found, CheckResult::Wrong(_)))
            .count();
        if as_json {
            checked.push(json!({ "resource": name, "checks": checks }));
        } else {
            say!("{name}");
            checks.iter().for_each(print_cluster_check);
        }
    }
    if as_json {
        print_json(&json!(checked));
    }
    match wrong {
        0 => Ok(()),
        // As JSON they have been told.
        _ if as_json => Err(Failure::Refused(String::new())),
        1 => Err(Failure::Refused("something is wrong".to_owned())),
        count => Err(Failure::Refused(format!("{count} things are wrong"))),
    }
}

/// Calls `with` on a temporary folder, which is removed afterwards. The service's own folder may be missing, or in use.
fn with_temporary_cluster_folder<T>(
    with: impl FnOnce(&Path) -> Result<T, ExecutionError>,
) -> Result<T, Failure> {
    let folder = std::env::temp_dir().join(format!("bespeak-check-{}", Uuid::now_v7().simple()));
    let unavailable =
        |why: &dyn std::fmt::Display| Failure::Unavailable(format!("{}: {why}", folder.display()));
    std::fs::create_dir(&folder).map_err(|why| unavailable(&why))?;
    let done = with(&folder).map_err(|why| unavailable(&why));
    // A folder that cannot be removed does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    done
}

fn print_cluster_check(check: &SetupCheck) {
    let (word, words) = match &check.found {
        CheckResult::Good(words) => ("good", words),
        CheckResult::Unknown(words) => ("unknown", words),
        CheckResult::Wrong(words) => ("WRONG", words),
    };
    say!("  {:<12} {word:<8} {words}", check.what);
}
