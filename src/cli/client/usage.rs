//! `bespeak usage`.

use std::fmt::Display;

use clap::Args;

use crate::cli::Failure;
use crate::cli::client::{Query, Server, read_answer};
use crate::cli::table::{print_table, row};
use service::UsageView;

const EXAMPLES: &str = "\
Examples:
  bespeak usage                     what you have, and how much you may have; of all parties for operators
  bespeak usage --party physics     what one party has (operators)

A party may have `share` percent of the node-hours of a resource in any 30 days while other parties have agreements
(share_percent of [quotas] in the configuration), so many agreements that are not over, and may ask so often a minute. `most` is the most that it has in any 30 days, offers that are held included.";

/// Options of `usage`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// Only what this party has.
    #[arg(long, value_name = "NAME")]
    party: Option<String>,
}

pub(in crate::cli) async fn show_usage(options: Options, server: &Server) -> Result<(), Failure> {
    let Query(path) = Query::new("/usage").with("party", options.party);
    let usage: UsageView = read_answer(server.get(&path).await?)?;
    server.print_value(&usage, print_usage);
    Ok(())
}

fn print_usage(usage: &UsageView) {
    let mut rows = Vec::new();
    for party in &usage.parties {
        let agreements = of_most(party.agreements, party.agreements_max);
        let questions = of_most(party.questions, party.questions_max);
        let line = |on: [&dyn Display; 4]| {
            let of_party: [&dyn Display; 4] = [&party.party, &agreements, &questions, &party.held_answers];
            [row(of_party), row(on)].concat()
        };
        if party.resources.is_empty() {
            rows.push(line([&"-", &0, &"0 %", &"-"]));
        }
        for on in &party.resources {
            let share = on
                .share_percent
                .map_or_else(|| "-".to_owned(), |share| format!("{share} %"));
            let most = format!("{} %", on.most_percent);
            rows.push(line([&on.resource, &on.node_hours, &most, &share]));
        }
    }
    let headings = "party, agreements, questions, held, resource, node-hours, most, share";
    print_table(headings, &[1, 2, 3, 5, 6, 7], rows);
    let near = usage.parties.iter().filter(|party| party.is_near_quota);
    let near: Vec<&str> = near.map(|near| near.party.as_str()).collect();
    if !near.is_empty() {
        println!("near a quota: {}", near.join(", "));
    }
}

/// A number, and the most that it may be where it has a bound.
fn of_most(count: impl Display, most: Option<u32>) -> String {
    most.map_or_else(|| count.to_string(), |most| format!("{count} of {most}"))
}
