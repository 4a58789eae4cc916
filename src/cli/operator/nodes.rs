//! `bespeak nodes`.

use clap::Args;
use domain::resources::NodeState;
use scheduler::counted;
use serde_json::json;

use super::effects::print_effects_on_agreements;
use crate::cli::Failure;
use crate::cli::client::{
    DryRun, Server, escape_path_part, list_or_empty, print_json, read_answer, text_or_empty,
};
use crate::cli::table::{print_table, row};
use service::{NodeView, NodesView, RepairedView};

const EXAMPLES: &str = "\
Examples:
  bespeak nodes                                      the states of the nodes of all resources
  bespeak nodes cluster                              the states of the nodes of one resource
  bespeak nodes cluster n3 --set drained             n3 gets no new work; its running work ends in its time
  bespeak nodes gpu 0-3 --set drained --dry-run      the first four nodes
  bespeak nodes cluster 'n[4-6]' --set down --reason 'power cut'
  bespeak nodes cluster 'n[4-6]' --set down --dry-run     which agreements would have to move, and what it would cost
  bespeak nodes cluster 'n[3-6]' --set up            they are back

Agreements on nodes that go away get another place at once, or their parties are told that there is none. The state that a
cluster itself reports counts, too: a node is up only if neither the cluster nor an operator says otherwise.";

/// Options of `nodes`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("dry_run", |task| task.requires("set")))]
pub(in crate::cli) struct Options {
    /// Name of a resource. [default: all]
    resource: Option<String>,
    /// The state of the nodes from now on.
    #[arg(long, value_name = "STATE", requires = "nodes", value_parser = NodeState::ALL.map(NodeState::word))]
    set: Option<String>,
    /// The reason.
    #[arg(long, value_name = "TEXT", requires = "set")]
    reason: Option<String>,
    /// The nodes, by their names or by their numbers from 0, as in n3, 0-3 or 'n[1-4],big1'.
    #[arg(requires = "set")]
    nodes: Vec<String>,
    #[command(flatten)]
    change: DryRun,
}

pub(in crate::cli) async fn manage_nodes(options: Options, server: &Server) -> Result<(), Failure> {
    if let (Some(resource), Some(state)) = (&options.resource, &options.set) {
        let query = options.change.query();
        let path = format!(
            "{}/{}{query}",
            nodes_path(resource),
            escape_path_part(&options.nodes.join(","))
        );
        let saying = json!({ "state": state, "reason": options.reason });
        let answer = server.put_json(&path, &saying).await?;
        return server.print_answer(answer, |said: &RepairedView| {
            print_nodes(said.nodes.iter().map(|node| node_table_row(&said.resource, node)));
            let would = if query.is_empty() { "" } else { "would be " };
            print_effects_on_agreements(said.agreements.iter(), said.unlisted, &said.penalties, would);
            let would = if query.is_empty() { "" } else { "it would be so: " };
            say!(
                "{would}{} lost their work, {} moved, {} have no place any more; {} withdrawn",
                said.lost,
                said.moved,
                said.broken,
                counted(said.withdrawn, "held offer")
            );
        });
    }
    let names = if let Some(name) = options.resource {
        vec![name]
    } else {
        let all = server.get("/resources").await?;
        let names = list_or_empty(&all["resources"]).iter();
        names
            .map(|name| text_or_empty(&name["name"]).to_owned())
            .collect()
    };
    let mut listed = Vec::new();
    for name in names {
        listed.push(server.get(&nodes_path(&name)).await?);
    }
    if server.json {
        print_json(&json!(listed));
        return Ok(());
    }
    let mut rows = Vec::new();
    for body in listed {
        let view: NodesView = read_answer(body)?;
        rows.extend(view.nodes.iter().map(|node| node_table_row(&view.resource, node)));
        let hidden = (view.capacity as usize).saturating_sub(view.nodes.len());
        if hidden > 0 {
            rows.push(row([&view.resource, &hidden, &"more that are up"]));
        }
    }
    print_nodes(rows);
    Ok(())
}

fn print_nodes(rows: impl IntoIterator<Item = Vec<String>>) {
    print_table("RESOURCE, NUMBER, NODE, STATE, SINCE, REASON", &[1], rows);
}

/// A row for a node: since when it is as bad as it is, and all that is said of it.
fn node_table_row(resource: &str, node: &NodeView) -> Vec<String> {
    let mut worst = node.said.iter().filter(|said| said.state == node.state);
    let since = worst.next().map_or("", |said| said.since.as_str());
    let reasons: Vec<String> = node
        .said
        .iter()
        .map(|said| {
            let (by, state) = (&said.by, &said.state);
            match &said.reason {
                Some(reason) => format!("{by}: {state}, {reason}"),
                None => format!("{by}: {state}"),
            }
        })
        .collect();
    row([
        &resource,
        &node.number,
        &node.name,
        &node.state,
        &since,
        &reasons.join("; "),
    ])
}

fn nodes_path(resource: &str) -> String {
    format!("/resources/{}/nodes", escape_path_part(resource))
}
