//! `bespeak agreements`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use domain::agreement::AgreementState;
use wsag::time::DateTime;

use crate::cli::client::{Query, Server, parse_limit};
use crate::cli::times::{FORMS, parse_time};
use crate::cli::{Failure, print_table, row};
use crate::service::AgreementView;

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
    #[arg(long, ignore_case = true, value_parser = state_parser())]
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
    #[arg(long, default_value_t = 50, value_parser = parse_limit)]
    limit: usize,
    /// Only those with this AgreementId: the one that their offers had, or the service's own.
    #[arg(long, value_name = "ID")]
    agreement_id: Option<String>,
}

/// A state, as the service writes it.
fn state_parser() -> impl TypedValueParser<Value = String> {
    let words = AgreementState::ALL.map(AgreementState::word);
    PossibleValuesParser::new(words).map(move |typed| {
        let mut words = words.into_iter();
        let meant = words.find(|word| word.eq_ignore_ascii_case(&typed));
        meant.map_or(typed.clone(), ToOwned::to_owned)
    })
}

pub(in crate::cli) async fn run(options: Options, server: &Server) -> Result<(), Failure> {
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
