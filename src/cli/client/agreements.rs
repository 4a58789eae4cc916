//! `bespeak agreements`, `bespeak show ID` and `bespeak watch ID`: agreements and how they stand.

use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use domain::agreement::AgreementState;
use scheduler::counted;
use serde_json::json;
use wsag::time::DateTime;

use crate::cli::Failure;
use crate::cli::client::{
    AgreementOptions, IdOrName, Query, Server, parse_limit_option, print_json, read_answer,
};
use crate::cli::table::{print_rows, print_table, row};
use crate::cli::times::{FORMS, parse_time};
use service::{AgreementStagingView, AgreementView, AtPeerView, ProposalView, TimelineView};

const EXAMPLES: &str = "\
Examples:
  bespeak agreements                                  the newest 50
  bespeak agreements --state Observed --after today --before tomorrow
  bespeak agreements --party physics --limit 0        all of one party (operators)
  bespeak agreements --name nightly --json";

/// Options of `agreements`.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{FORMS}"))]
pub(in crate::cli) struct Options {
    /// Only those in this state.
    #[arg(long, ignore_case = true, value_parser = agreement_state_parser())]
    state: Option<String>,
    /// Only those of this party.
    #[arg(long, value_name = "NAME")]
    party: Option<String>,
    /// Only those with this name.
    #[arg(long)]
    name: Option<String>,
    /// Only those with a slot that ends after this time.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    after: Option<DateTime>,
    /// Only those with a slot that begins before this time.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    before: Option<DateTime>,
    /// How many to list; 0 lists all.
    #[arg(long, default_value_t = 50, value_parser = parse_limit_option)]
    limit: usize,
    /// Only those with this AgreementId: the one that their offers had, or the service's own.
    #[arg(long, value_name = "ID")]
    agreement_id: Option<String>,
}

/// A state, as the service writes it.
fn agreement_state_parser() -> impl TypedValueParser<Value = String> {
    let words = AgreementState::ALL.map(AgreementState::word);
    PossibleValuesParser::new(words).map(move |typed| {
        let mut words = words.into_iter();
        let meant = words.find(|word| word.eq_ignore_ascii_case(&typed));
        meant.map_or(typed.clone(), ToOwned::to_owned)
    })
}

pub(in crate::cli) async fn list_agreements(options: Options, server: &Server) -> Result<(), Failure> {
    let query = Query::new("/agreements")
        .with("agreementId", options.agreement_id)
        .with("state", options.state)
        .with("party", options.party)
        .with("name", options.name)
        .with("start", options.after)
        .with("end", options.before);
    let agreements = server.pages(&query, "agreements", options.limit).await?;
    server.print_answer(agreements.into(), |agreements: &Vec<AgreementView>| {
        print_agreements(agreements);
    })
}

fn print_agreements(agreements: &[AgreementView]) {
    let rows = agreements.iter().map(|agreement| {
        row([
            &agreement.id,
            &agreement.state,
            &agreement.service_state,
            &agreement.nodes,
            &agreement.planned_start.as_deref().unwrap_or_default(),
            &agreement.planned_end.as_deref().unwrap_or_default(),
            &agreement.name.as_deref().unwrap_or_default(),
        ])
    });
    print_table("ID, STATE, SERVICE, NODES, START, END, NAME", &[3], rows);
}

/// So many nodes, of the resource that has them.
fn nodes_of_agreement(nodes: u32, resource: Option<&str>) -> String {
    resource.map_or_else(|| nodes.to_string(), |resource| format!("{nodes} of {resource}"))
}

/// An agreement, a line an attribute.
pub(in crate::cli) fn print_agreement(view: &AgreementView) {
    let mut lines = vec![
        ("agreement", view.id.to_string()),
        ("name", view.name.clone().unwrap_or_default()),
        ("party", view.party.clone()),
        ("state", format!("{} ({})", view.state, view.service_state)),
        ("nodes", nodes_of_agreement(view.nodes, view.resource.as_deref())),
        ("window", format!("{} to {}", view.ready, view.deadline)),
    ];
    if let (Some(start), Some(end)) = (&view.planned_start, &view.planned_end) {
        lines.push(("planned", format!("{start} to {end}")));
    }
    for (piece, number) in view.pieces.iter().zip(1..) {
        let (count, planned_start, planned_end) =
            (view.pieces.len(), &piece.planned_start, &piece.planned_end);
        let standing = match (&piece.started, &piece.ended) {
            (_, Some(ended)) => format!(", ended {ended}"),
            (Some(started), None) => format!(", started {started}"),
            (None, None) => String::new(),
        };
        let nodes = counted(piece.nodes, "node");
        let text = format!("{number} of {count}, {nodes}, {planned_start} to {planned_end}{standing}");
        lines.push(("piece", text));
    }
    let sure = |sure: f64| {
        let percent = 100.0 * sure;
        format!("{percent:.1} % that its job ends by itself before its slot does")
    };
    let runs = |application: &String| format!("{application} {}", view.arguments.join(" "));
    let reserved = |name: &String| {
        let from = view.reservation_from.as_ref();
        let from = from.map_or_else(String::new, |from| {
            format!(" from {from} on; Slurm does not know it before")
        });
        format!("sbatch --reservation={name} …{from}")
    };
    let exit = view.exit_status.map(|exit| format!(" (exit status {exit})"));
    let outcome = |outcome: &String| format!("{outcome}{}", exit.unwrap_or_default());
    let known = [
        ("price", view.price.as_ref().map(ToString::to_string)),
        ("confidence", view.confidence.map(sure)),
        ("runs", view.application.as_ref().map(runs)),
        ("use with", view.reservation.as_ref().map(reserved)),
        ("started", view.started.clone()),
        ("ended", view.ended.clone()),
        ("outcome", view.outcome.as_ref().map(outcome)),
        ("replaces", view.supersedes.map(|old| old.to_string())),
        ("replaced", view.superseded_by.map(|new| format!("by {new}"))),
    ];
    lines.extend(known.map(|(name, value)| (name, value.unwrap_or_default())));
    lines.extend(
        view.staging
            .iter()
            .map(|file| ("file", agreement_file_line(file))),
    );
    for at_peer in &view.at_peers {
        lines.push(("at", agreement_at_peer_line(at_peer)));
    }
    for proposal in &view.proposals {
        lines.push(("proposal", agreement_proposal_lines(proposal)));
    }
    for guarantee in &view.guarantees {
        let mut text = format!("{} {}", guarantee.name, guarantee.state);
        for one_value in guarantee.values_at_stake() {
            text += &format!(", {} {}", one_value.kind, one_value.amount);
        }
        lines.push(("guarantee", text));
    }
    for (name, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
        say!("{name:<10} {value}");
    }
}

/// Another domain's agreement behind one of ours.
fn agreement_at_peer_line(peer: &AtPeerView) -> String {
    let mut text = format!("{} ({})", peer.peer, peer.state);
    for (word, sum) in [("charged", &peer.charged), ("paid", &peer.paid)] {
        if let Some(sum) = sum {
            text += &format!(", {word} {sum}");
        }
    }
    for guarantee in &peer.guarantees {
        text += &format!(", {} {}", guarantee.name, guarantee.state);
    }
    text
}

/// A file that is moved for a job, and how far it has come.
fn agreement_file_line(file: &AgreementStagingView) -> String {
    let way = |word: &str, place: &Option<String>, bytes: Option<u64>| {
        let place = place.as_deref().unwrap_or_default();
        let bytes = bytes.map_or_else(String::new, |bytes| {
            format!(" ({} so far)", counted(bytes, "byte"))
        });
        let text = format!(" {word} {place}{bytes}");
        Some(text).filter(|_| !place.is_empty()).unwrap_or_default()
    };
    let from = way("from", &file.source, file.bytes_in);
    format!("{}{from}{}", file.file, way("to", &file.target, file.bytes_out))
}

/// A proposal of the provider, with the lines to accept it.
fn agreement_proposal_lines(proposal: &ProposalView) -> String {
    let mut text = match proposal.reason.as_str() {
        "broken" => "the agreement could not be kept; there is another place".to_owned(),
        _ => "another place would let others in".to_owned(),
    };
    for penalty in &proposal.penalties {
        text += &format!("; {penalty} are paid to you in any case");
    }
    text += &format!(", until {}:", proposal.expires);
    for offer in &proposal.offers {
        let price = offer.price.as_ref();
        let price = price.map_or_else(String::new, |price| format!(" for {price}"));
        text += &format!(
            "\n  {} of {}, {} to {}{price}:\n    bespeak accept {}",
            offer.nodes, offer.resource, offer.start, offer.end, offer.id
        );
    }
    text
}

/// Shows an agreement and its timeline.
pub(in crate::cli) async fn show_agreement(
    AgreementOptions { id }: AgreementOptions,
    server: &Server,
) -> Result<(), Failure> {
    let id = server.id_of(&id).await?;
    let (agreement, timeline) = (server.agreement(id).await?, server.timeline(id).await?);
    if server.json {
        print_json(&json!({ "agreement": agreement, "timeline": timeline }));
        return Ok(());
    }
    print_agreement(&read_answer(agreement)?);
    say!("");
    let timeline: TimelineView = read_answer(timeline)?;
    let events = timeline.events.iter();
    let rows = events.map(|event| row([&event.at, &event.kind, &event.detail]));
    print_rows(rows.collect(), &[]);
    Ok(())
}

/// How often the service is asked.
const INTERVAL: Duration = Duration::from_millis(500);

const WATCH_EXAMPLES: &str = "\
Examples:
  bespeak watch 01a1fc5d835f
  bespeak watch nightly --json                 print the agreement when it has ended

Exit status 0 when the agreement ends Complete, 1 when it ends otherwise.";

/// Options of `watch`.
#[derive(Debug, Args)]
#[command(after_help = WATCH_EXAMPLES)]
pub(in crate::cli) struct WatchOptions {
    /// The agreement: its id, as many first digits as no other has, or its name.
    id: IdOrName,
}

/// Follows an agreement to its end.
pub(in crate::cli) async fn watch_agreement(options: WatchOptions, server: &Server) -> Result<(), Failure> {
    let id = server.id_of(&options.id).await?;
    let mut printed = 0;
    loop {
        let answer = server.agreement(id).await?;
        let view: AgreementView = read_answer(answer.clone())?;
        if !server.json {
            let timeline = server.timeline(id).await?;
            let events = read_answer::<TimelineView>(timeline)?.events;
            for event in events.iter().skip(printed) {
                say!("{:<26} {:<12} {}", event.at, event.kind, event.detail);
            }
            printed = events.len();
        }
        if matches!(view.state.as_str(), "Complete" | "Terminated" | "Rejected") {
            if server.json {
                print_json(&answer);
            } else {
                say!("");
                print_agreement(&view);
            }
            return match view.state.as_str() {
                "Complete" => Ok(()),
                // As JSON it has been told.
                _ if server.json => Err(Failure::Refused(String::new())),
                other => Err(Failure::Refused(format!("the agreement is {other}"))),
            };
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
