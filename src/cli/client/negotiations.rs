//! `bespeak negotiate` and `bespeak negotiations`.

use clap::Args;
use serde_json::json;

use super::offers::{print_offer_table, print_offers};
use super::options::{OPTIONS_OF_REQUEST, RequestOptions, options_with_value};
use crate::cli::Failure;
use crate::cli::client::{
    DryRun, Query, Server, list_or_empty, parse_limit_option, print_json, text_or_empty,
};
use crate::cli::times::FORMS;

const EXAMPLES: &str = "\
Examples:
  bespeak negotiations                       those that go on, with the offers that are held for you
  bespeak negotiations --state terminated --limit 5
  bespeak negotiations --party physics       of one party (operators)";

const NEGOTIATE_EXAMPLES: &str = "\
Examples:
  bespeak negotiate --nodes 2 --for 2h --before 'tomorrow 18:00'
  bespeak negotiate --nodes 2 --for 2h --after now+1h --before 2026-12-01T18:00:00Z
  bespeak negotiate --nodes 2 --after 'tomorrow 8:00' --before 'tomorrow 18:00'     all of that time, since no duration is said
  bespeak negotiate --app sleep --nodes 1 --for 30m --budget '12.50 EUR' -- 60
  bespeak negotiate --nodes 4 --for 1h --no-hold          what it would cost; nothing is kept
  bespeak negotiate --nodes 8..16 --work 24h --max-deviation 0.5 --prefer price=2,start=1
  bespeak accept 01a1fc5d-835f-772d-b9d0-c724faec45f2

Each offer is held until its own instant. The column phi is its distance from the request, in durations or in sizes. The
column sure is the probability that the job ends by itself before its slot does, if it is known.";

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
    #[arg(long, default_value_t = 20, value_parser = parse_limit_option)]
    limit: usize,
}

pub(in crate::cli) async fn list_negotiations(options: Options, server: &Server) -> Result<(), Failure> {
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

/// Options of `negotiate`.
#[derive(Debug, Args)]
#[command(after_help = format!("{NEGOTIATE_EXAMPLES}\n\n{FORMS}"))]
pub(in crate::cli) struct NegotiateOptions {
    /// The template; the provider's first where it is not named.
    #[arg(long)]
    template: Option<String>,
    /// Name of the agreement that it is to become.
    #[arg(long)]
    name: Option<String>,
    /// Application of the provider's catalogue; without one, nodes are reserved and nothing runs.
    #[arg(long = "app")]
    application: Option<String>,
    /// Arguments of the application.
    #[arg(last = true, requires = "application")]
    arguments: Vec<String>,
    /// Ask only, and have nothing kept: the offers cannot be accepted, and count for no quota of held offers.
    #[arg(long)]
    no_hold: bool,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    wanted: RequestOptions,
}

/// Asks for offers.
pub(in crate::cli) async fn negotiate(options: NegotiateOptions, server: &Server) -> Result<(), Failure> {
    let mut request = options.wanted.request()?;
    request.extend(options_with_value(json!({
        "template": options.template,
        "name": options.name,
        "application": options.application,
        "arguments": (!options.arguments.is_empty()).then_some(options.arguments),
        "hold": options.no_hold.then_some(false),
    })));
    let path = format!("/negotiations{}", options.dry_run.query());
    let answer = server
        .post_options(&path, &request.into(), &OPTIONS_OF_REQUEST)
        .await?;
    print_offers(server, &answer, options.dry_run.dry_run)
}
