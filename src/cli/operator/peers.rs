//! `bespeak peers`.

use clap::{Args, Subcommand};
use scheduler::counted;
use serde_json::json;

use crate::cli::Failure;
use crate::cli::client::{Server, print_json, read_answer};
use crate::cli::table::{print_table, row};
use service::{PeerView, PeersView, ReconciledView};

const EXAMPLES: &str = "\
Examples:
  bespeak peers                     the peers of the configuration: how they do, and what they say of themselves
  bespeak peers south               one of them, with its resources and its own peers
  bespeak peers --json              all that is known of them
  bespeak peers reconcile           what this domain and each peer have of the agreements between them, compared
  bespeak peers reconcile south     the same with one of them

Peers are asked for what this domain cannot place itself (docs/reference/federation.md). `asked` counts since the service has started:
`answered` in time, `refused` without an offer, `late`, or `failed` without an answer that can be read. The peers of a peer are
shown, and never asked. `reconcile` ends with a failure where it finds a difference.";

/// Options of `peers`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct Options {
    /// Only this one, with all that it says of itself.
    name: Option<String>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Compare the agreements with a peer with what the peer has of them: states and money.
    Reconcile {
        /// Only with this one.
        name: Option<String>,
    },
}

pub(in crate::cli) async fn manage_peers(options: Options, server: &Server) -> Result<(), Failure> {
    let view: PeersView = read_answer(server.get("/peers").await?)?;
    if let Some(Verb::Reconcile { name }) = options.verb {
        return reconcile_with_peers(&view, name.as_deref(), server).await;
    }
    let Some(name) = options.name else {
        server.print_value(&view, print_peers);
        return Ok(());
    };
    let peer = view.peers.into_iter().find(|peer| peer.name == name);
    let peer = peer.ok_or_else(|| Failure::Refused(format!("there is no peer {name:?}")))?;
    server.print_value(&peer, print_peer);
    Ok(())
}

/// Compares the agreements with a peer, or with each.
async fn reconcile_with_peers(view: &PeersView, name: Option<&str>, server: &Server) -> Result<(), Failure> {
    let chosen = view
        .peers
        .iter()
        .filter(|peer| name.is_none_or(|name| peer.name == name));
    let names: Vec<&str> = chosen.map(|peer| peer.name.as_str()).collect();
    if let Some(name) = name.filter(|_| names.is_empty()) {
        return Err(Failure::Refused(format!("there is no peer {name:?}")));
    }
    let mut all: Vec<ReconciledView> = Vec::new();
    for name in names {
        all.push(read_answer(
            server.get(&format!("/peers/{name}/differences")).await?,
        )?);
    }
    if server.json {
        print_json(&json!(all));
    }
    for reconciled in all.iter().filter(|_| !server.json) {
        let (compared, found) = (
            counted(reconciled.compared, "agreement"),
            counted(reconciled.differences.len(), "difference"),
        );
        say!(
            "{}: {compared} compared, {} not over yet, {found}",
            reconciled.peer,
            reconciled.open
        );
        for difference in &reconciled.differences {
            let id = difference.agreement.map(|id| id.to_string());
            let id = id.or_else(|| difference.there.clone()).unwrap_or_default();
            say!("  {id}: {}", difference.what);
        }
    }
    match all.iter().map(|reconciled| reconciled.differences.len()).sum() {
        0 => Ok(()),
        found => Err(Failure::Refused(format!(
            "{} found",
            counted(found, "difference")
        ))),
    }
}

fn print_peers(view: &PeersView) {
    let headings = "peer, state, asked, answered, refused, late, failed, agreements, kept, broken, nodes, templates, address";
    let rows = view.peers.iter().map(|peer| {
        let health = &peer.health;
        let templates = peer
            .says
            .as_ref()
            .map_or_else(|| "-".to_owned(), |says| says.templates.join(" "));
        row([
            &peer.name,
            &state_of_peer(peer),
            &health.asked,
            &health.answered,
            &health.refused,
            &health.late,
            &health.failed,
            &peer.carries.agreements,
            &peer.carries.kept,
            &peer.carries.broken,
            &peer.nodes,
            &templates,
            &peer.address,
        ])
    });
    print_table(headings, &[2, 3, 4, 5, 6, 7, 8, 9, 10], rows);
}

/// How a peer stands, in a word.
fn state_of_peer(peer: &PeerView) -> &'static str {
    match (peer.health.reachable, peer.health.not_asked_seconds) {
        (true, _) => "answers",
        (false, None) => "silent",
        (false, Some(_)) => "left-alone",
    }
}

fn print_peer(peer: &PeerView) {
    let health = &peer.health;
    let mut lines = vec![
        ("address", peer.address.clone()),
        ("state", state_of_peer(peer).to_owned()),
        (
            "asked",
            format!(
                "{}: {} answered ({} without an offer), {} late, {} failed",
                health.asked, health.answered, health.refused, health.late, health.failed
            ),
        ),
    ];
    let maybe = [
        ("silent since", health.silent_since.clone()),
        ("last error", health.last_error.clone()),
        ("looked at", peer.looked_at.clone()),
        ("not found out", peer.silent.clone()),
    ];
    lines.extend(maybe.into_iter().filter_map(|(name, said)| Some((name, said?))));
    if let Some(says) = &peer.says {
        let resources = says
            .resources
            .iter()
            .map(|resource| format!("{} ({} nodes)", resource.name, resource.nodes));
        lines.push((
            "calls itself",
            says.domain.clone().unwrap_or_else(|| "-".to_owned()),
        ));
        lines.push(("templates", says.templates.join(", ")));
        lines.push(("resources", resources.collect::<Vec<_>>().join(", ")));
        lines.push(("applications", says.applications.join(", ")));
        let forwards = if says.policy.forwards { "yes" } else { "no" };
        lines.push(("forwards", forwards.to_owned()));
    }
    let beyond = peer
        .beyond
        .iter()
        .map(|peer| format!("{} ({})", peer.name, peer.address));
    lines.push(("its peers", beyond.collect::<Vec<_>>().join(", ")));
    say!("{}", peer.name);
    for (name, said) in lines.into_iter().filter(|(_, said)| !said.is_empty()) {
        say!("  {name:<13} {said}");
    }
}
