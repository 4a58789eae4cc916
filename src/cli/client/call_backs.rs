//! `bespeak call-backs`: where the party has its events told, and these events.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::Failure;
use crate::cli::client::{Query, Server, escape_path_part, parse_limit_option, read_answer};
use crate::cli::table::{print_table, row};
use service::{CallBackView, CallBacksView, EventsView};

const EXAMPLES: &str = "\
Examples:
  bespeak call-backs add planner https://example.org/events   prints the secret, once
  bespeak call-backs add decisions                            the secret for the addresses that single offers name
  bespeak call-backs
  bespeak call-backs list                                     the same
  bespeak call-backs remove planner
  bespeak call-backs events --after 1200                      the events after one, as they were told
  bespeak call-backs --party physics                          those of one party (operators)
  bespeak call-backs remove planner --party physics

A call is a POST with an event in JSON. Its headers webhook-id, webhook-timestamp and webhook-signature are those of Standard Webhooks:
check the signature with one of its libraries and the secret. An event may come twice, with the same id. It is tried for a day.";

/// Options of `call-backs`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The party, for operators. [default: your own]
    #[arg(long, global = true, value_name = "NAME")]
    party: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the call-backs, and how they stand.
    List,
    /// Have all events of the party told to an address, or replace the call-back of that name. Each time there is a new secret.
    Add {
        /// Its name: letters, digits, '-', '_' and '.'.
        name: String,
        /// Where to; none for the name `decisions`, whose secret signs the decisions about single offers.
        #[arg(value_name = "ADDRESS")]
        receiver: Option<String>,
    },
    /// Remove a call-back.
    Remove {
        /// Its name.
        name: String,
    },
    /// List the events of the party, oldest first. They are kept for 30 days.
    Events {
        /// The cursor of the event before the first.
        #[arg(long, value_name = "CURSOR", default_value_t = 0)]
        after: i64,
        /// How many to list; 0 lists all.
        #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = parse_limit_option)]
        limit: usize,
    },
}

pub(in crate::cli) async fn manage_call_backs(options: Options, server: &Server) -> Result<(), Failure> {
    let of_party = |path: &str| Query::new(path).with("party", options.party.as_ref());
    match options.verb.unwrap_or(Verb::List) {
        Verb::List => server.print_answer(server.get(&of_party("/call-backs").0).await?, print_call_backs),
        Verb::Add { .. } if options.party.is_some() => {
            let why = "a party registers its call-backs with a key of its own: add takes no --party";
            Err(Failure::Usage(why.to_owned()))
        }
        Verb::Add { name, receiver } => {
            let wanted = receiver.map_or(json!({}), |address| json!({ "address": address }));
            let answer = server.put_json(&call_back_path(&name), &wanted).await?;
            server.print_answer(answer, |registration: &CallBackView| {
                say!("{}", registration.secret.as_deref().unwrap_or_default());
            })
        }
        Verb::Remove { name } => server.delete(&of_party(&call_back_path(&name)).0).await,
        Verb::Events { after, limit } => {
            let (mut events, mut next) = (Vec::new(), Some(after));
            while let Some(after) = next.filter(|_| events.len() < limit) {
                let page = of_party("/events")
                    .with("after", Some(after))
                    .with("limit", Some((limit - events.len()).min(200)));
                let answer = server.get(&page.0).await?;
                // What operators see of all parties has `bespeak trail`.
                if answer["events"].is_null() {
                    let why = "this key is an operator's: name a party with --party";
                    return Err(Failure::Usage(why.to_owned()));
                }
                let page: EventsView = read_answer(answer)?;
                events.extend(page.events);
                next = page.next;
            }
            server.print_answer(json!(EventsView { events, next }), print_events_of_call_backs)
        }
    }
}

fn print_call_backs(all: &CallBacksView) {
    let rows = all.call_backs.iter().map(|back| {
        let address = back.address.as_deref().unwrap_or("as each offer says");
        row([&back.name, &back.cursor, &back.failures, &address])
    });
    print_table("NAME, CURSOR, FAILURES, ADDRESS", &[1, 2], rows);
}

fn print_events_of_call_backs(page: &EventsView) {
    let rows = page.events.iter().map(|body| {
        let subject = body.data.negotiation.or(body.data.agreement).unwrap_or_default();
        row([
            &body.cursor,
            &body.timestamp,
            &body.kind,
            &subject,
            &body.data.detail,
        ])
    });
    print_table("CURSOR, WHEN, EVENT, SUBJECT, DETAIL", &[0], rows);
}

fn call_back_path(name: &str) -> String {
    format!("/call-backs/{}", escape_path_part(name))
}
