//! `bespeak negotiations` and `bespeak release ID`.

use clap::Args;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cli::Failure;
use crate::cli::client::negotiate::print_offer_table;
use crate::cli::client::{
    DryRun, IdOrName, Query, Server, list_or_empty, parse_limit, print_json, text_or_empty,
};
use crate::service::end_negotiation_input;

const EXAMPLES: &str = "\
Examples:
  bespeak negotiations                       those that go on, with the offers that are held for you
  bespeak negotiations --state terminated --limit 5
  bespeak negotiations --party physics       of one party (operators)";

const RELEASE_EXAMPLES: &str = "\
Examples:
  bespeak release 01a1fc5d-835f-772d-b9d0-c724faec45f2    this offer, or all offers of this negotiation
  bespeak release 01a1fc5d --dry-run";

/// Options of `negotiations`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// Only those in this state.
    #[arg(long, default_value = "open", value_parser = ["open", "expired", "terminated", "all"])]
    state: String,
    /// Only those of this party.
    #[arg(long, value_name = "NAME")]
    party: Option<String>,
    /// How many to list; 0 lists all.
    #[arg(long, default_value_t = 20, value_parser = parse_limit)]
    limit: usize,
}

/// Options of `release`.
#[derive(Debug, Args)]
#[command(after_help = RELEASE_EXAMPLES)]
pub(in crate::cli) struct ReleaseOptions {
    /// The offer or the negotiation: its id, or as many first digits as no other has.
    id: IdOrName,
    #[command(flatten)]
    dry_run: DryRun,
}

pub(in crate::cli) async fn run(options: Options, server: &Server) -> Result<(), Failure> {
    let query = Query::new("/negotiations")
        .with("state", Some(&options.state).filter(|state| *state != "all"))
        .with("party", options.party.as_ref());
    let negotiations = server.pages(&query, "negotiations", options.limit).await?;
    if server.json {
        print_json(&json!(negotiations));
        return Ok(());
    }
    if negotiations.is_empty() {
        say!("there is no such negotiation");
    }
    for (negotiation, is_next) in negotiations
        .iter()
        .zip([false].into_iter().chain(std::iter::repeat(true)))
    {
        if is_next {
            say!("");
        }
        let about = negotiation["agreement"].as_str();
        let about = about.map_or_else(String::new, |agreement| format!(", to change {agreement}"));
        say!(
            "{} of {}, {} until {}{about}",
            text_or_empty(&negotiation["id"]),
            text_or_empty(&negotiation["party"]),
            text_or_empty(&negotiation["state"]),
            text_or_empty(&negotiation["expires"])
        );
        match list_or_empty(&negotiation["offers"]) {
            [] => say!("nothing is held"),
            offers => print_offer_table(offers),
        }
    }
    Ok(())
}

/// Gives back what is held: for one offer, or for all of a negotiation.
pub(in crate::cli) async fn release(options: ReleaseOptions, server: &Server) -> Result<(), Failure> {
    let id = server.anything_of(&options.id).await?;
    let query = options.dry_run.query();
    if let Some(offer) = server.find(&format!("/offers/{id}")).await? {
        return reject_offer(server, id, &offer, query).await;
    }
    let path = format!("/negotiations/{id}/terminate{query}");
    let answer = server.post(&path, end_negotiation_input().into_bytes()).await?;
    server.print_value(&answer, |negotiation| {
        say!(
            "negotiation {id} is {}: nothing is held in it",
            text_or_empty(&negotiation["state"])
        );
    });
    Ok(())
}

async fn reject_offer(server: &Server, id: Uuid, offer: &Value, query: &str) -> Result<(), Failure> {
    let path = format!(
        "/negotiations/{}/offers{query}",
        text_or_empty(&offer["negotiation"])
    );
    let request = json!({ "counterOfferTo": offer["id"], "state": "Rejected" });
    let answer = server.post_json(&path, &request).await?;
    server.print_value(&answer, |_| {
        say!("offer {id} is rejected: nothing is held for it");
    });
    Ok(())
}
