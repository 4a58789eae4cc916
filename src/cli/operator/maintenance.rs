//! `bespeak maintenance`.

use clap::{Args, Subcommand};
use serde_json::json;
use uuid::Uuid;
use wsag::time::DateTime;

use super::effects::print_effects_on_resources;
use crate::cli::Failure;
use crate::cli::client::{DryRun, Server};
use crate::cli::table::{print_table, row};
use crate::cli::times::{FORMS, check_times_in_order, parse_time};
use service::{MaintenancesView, ResourceChangesView, second_as_date_time};

const EXAMPLES: &str = "\
Examples:
  bespeak maintenance                                   what is planned
  bespeak maintenance list                              the same
  bespeak maintenance add fast --from 'tomorrow 8:00' --until 'tomorrow 12:00' --dry-run     which agreements would have to move
  bespeak maintenance add fast --from 2027-01-31T08:00:00Z --until 2027-01-31T12:00:00Z --nodes 2 --reason 'new disks'
  bespeak maintenance remove 01a1fc5d-835f-7d21-9f55-0a4be1c0d2e3

No slot lies on the nodes with the highest numbers in that time. Agreements in the way get another place at once, or their parties
are told that there is none; running work goes on. What the configuration file plans is listed, too, and is changed there.";

/// Options of `maintenance`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the planned times without nodes.
    List,
    /// Plan a time in which a resource is without nodes.
    #[command(after_long_help = FORMS)]
    Add(AddOptions),
    /// Take back what `add` has planned.
    Remove {
        /// Its id, as it is listed.
        id: Uuid,
        #[command(flatten)]
        change: DryRun,
    },
}

#[derive(Debug, Args)]
struct AddOptions {
    /// Name of the resource.
    resource: String,
    /// From when on.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: DateTime,
    /// Until when.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: DateTime,
    /// How many nodes it is without, the ones with the highest numbers. [default: all]
    #[arg(long, value_name = "COUNT")]
    nodes: Option<u32>,
    /// The reason.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    change: DryRun,
}

pub(in crate::cli) async fn manage_maintenance(options: Options, server: &Server) -> Result<(), Failure> {
    match options.verb.unwrap_or(Verb::List) {
        Verb::List => {
            let answer = server.get("/maintenance").await?;
            server.print_answer(answer, print_maintenance)
        }
        Verb::Add(add) => {
            check_times_in_order(("--from", Some(add.from)), ("--until", Some(add.until)))?;
            let body = json!({
                "resource": add.resource,
                "start": add.from.to_string(),
                "end": add.until.to_string(),
                "nodes": add.nodes,
                "reason": add.reason,
            });
            let path = format!("/maintenance{}", add.change.query());
            let answer = server.post_json(&path, &body).await?;
            server.print_answer(answer, |told: &ResourceChangesView| {
                print_effects_on_resources(told);
            })
        }
        Verb::Remove { id, change } => {
            let path = format!("/maintenance/{id}{}", change.query());
            let answer = server.delete_json(&path).await?;
            server.print_answer(answer, |told: &ResourceChangesView| {
                print_effects_on_resources(told);
            })
        }
    }
}

fn print_maintenance(all: &MaintenancesView) {
    let rows = all.maintenance.iter().map(|one_maintenance| {
        let id = one_maintenance
            .id
            .map_or_else(|| "(configuration)".to_owned(), |id| id.to_string());
        row([
            &one_maintenance.resource,
            &second_as_date_time(one_maintenance.start),
            &second_as_date_time(one_maintenance.end),
            &one_maintenance.nodes,
            &id,
            &one_maintenance.reason.as_deref().unwrap_or_default(),
        ])
    });
    print_table("RESOURCE, FROM, UNTIL, NODES, ID, REASON", &[3], rows);
}
