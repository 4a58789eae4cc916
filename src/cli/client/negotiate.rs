//! `bespeak negotiate`, `bespeak accept OFFER` and `bespeak change ID`.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use wsag::time::DateTime;

use crate::cli::client::options::OptionOfMember;
use crate::cli::client::{
    DryRun, IdOrName, Query, Server, amount_with_currency, how_to_explain, list_or_empty, parse_amount,
    print_agreement, print_json, read_answer, refusal_in_words, text_or_empty,
};
use crate::cli::times::{FORMS, check_times_in_order, parse_time};
use crate::cli::{Failure, parse_duration, print_table, row};
use crate::service::AgreementView;

const EXAMPLES: &str = "\
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

const ACCEPTANCES: &str = "\
Examples:
  bespeak accept 01a1fc5d-835f-772d-b9d0-c724faec45f2
  bespeak accept 01a1fc5d835f772d --dry-run    what the agreement would be";

const CHANGES: &str = "\
Examples:
  bespeak change 01a1fc5d-835f-772d-b9d0-c724faec45f2 --for 3h
  bespeak change nightly --for 3h --before 'tomorrow 18:00' --dry-run
  bespeak change 01a1fc5d-835f-772d-b9d0-c724faec45f2 --nodes 4 --prefer price=1 --yes

A duration that does not fit into the window any more widens it: to the end of a slot of this duration that begins as planned.";

/// Open negotiations that are looked through for quotes that are held.
const NEGOTIATIONS_MAX: usize = 200;

/// The members of a request with the options that say them; a part of a member before the member.
const OPTIONS: [OptionOfMember; 14] = [
    option_of("window/start", "--after", false),
    option_of("window/end", "--before", false),
    option_of("window", "--after and --before", true),
    option_of("nodes", "--nodes", true),
    option_of("durationSeconds", "--for", false),
    option_of("moldability/constantWork", "--work", false),
    option_of("moldability", "--work", false),
    option_of("budget", "--budget", true),
    option_of("weights", "--prefer", true),
    option_of("maxDeviation", "--max-deviation", false),
    option_of("application", "--app", true),
    option_of("arguments", "the arguments", true),
    option_of("template", "--template", true),
    option_of("name", "--name", true),
];

const fn option_of(member: &'static str, option: &'static str, is_word: bool) -> OptionOfMember {
    OptionOfMember {
        member,
        option,
        is_word,
    }
}

/// The request. An option that is left out has the template's value, or does not change.
#[derive(Debug, Args)]
struct RequestOptions {
    /// Nodes, or the least and the greatest number: 8..16.
    #[arg(long, value_name = "N|MIN..MAX", value_parser = parse_nodes)]
    nodes: Option<Value>,
    /// Duration: 90s, 30m, 2h, 1d, or several of these together. Without it a new reservation of nodes alone lasts from --after to
    /// --before.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<u64>,
    /// Time that one node would take, if the duration follows from the number of nodes: 8 nodes take an eighth of it.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "duration")]
    work: Option<u64>,
    /// Earliest start.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    after: Option<DateTime>,
    /// Latest end.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    before: Option<DateTime>,
    /// Highest price: '12.50 EUR'.
    #[arg(long, value_name = "AMOUNT CURRENCY", value_parser = parse_amount)]
    budget: Option<Value>,
    /// Weights for ranking the offers, each from 0 on: start=2,size=1,duration=1,price=3.
    #[arg(long, value_name = "WHAT=WEIGHT,…", value_parser = parse_weights)]
    prefer: Option<Value>,
    /// Largest distance of an offer from the request: 1 for a duration earlier or later, or for half or twice the nodes.
    #[arg(long, value_name = "PHI", value_parser = parse_deviation)]
    max_deviation: Option<f64>,
}

impl RequestOptions {
    fn request(&self) -> Result<Map<String, Value>, Failure> {
        check_times_in_order(("--after", self.after), ("--before", self.before))?;
        let text = |at: Option<DateTime>| at.map(|at| at.to_string());
        let window = members_with_value(json!({ "start": text(self.after), "end": text(self.before) }));
        Ok(members_with_value(json!({
            "nodes": self.nodes,
            "durationSeconds": self.duration,
            "moldability": self.work.map(|work| json!({ "constantWork": work })),
            "budget": self.budget,
            "weights": self.prefer,
            "maxDeviation": self.max_deviation,
            "window": (!window.is_empty()).then_some(window),
        })))
    }
}

/// The members that have a value.
fn members_with_value(members: Value) -> Map<String, Value> {
    let Value::Object(mut members) = members else {
        return Map::new();
    };
    members.retain(|_, value| !value.is_null());
    members
}

/// Options of `negotiate`.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{FORMS}"))]
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

/// Options of `accept`.
#[derive(Debug, Args)]
#[command(after_help = ACCEPTANCES)]
pub(in crate::cli) struct AcceptOptions {
    /// The offer: its id as `negotiate` has printed it, or as many first digits as no other offer that is held for you has.
    offer: IdOrName,
    #[command(flatten)]
    dry_run: DryRun,
}

/// Options of `change`.
#[derive(Debug, Args)]
#[command(after_help = format!("{CHANGES}\n\n{FORMS}"))]
pub(in crate::cli) struct ChangeOptions {
    /// The agreement: its id, as many first digits as no other has, or its name.
    id: IdOrName,
    #[command(flatten)]
    wanted: RequestOptions,
    /// Take the quote at once, if it is what was asked for and costs no more than a quote for this that is held already.
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    #[command(flatten)]
    dry_run: DryRun,
}

/// Asks for offers.
pub(in crate::cli) async fn negotiate(options: NegotiateOptions, server: &Server) -> Result<(), Failure> {
    let mut request = options.wanted.request()?;
    request.extend(members_with_value(json!({
        "template": options.template,
        "name": options.name,
        "application": options.application,
        "arguments": (!options.arguments.is_empty()).then_some(options.arguments),
        "hold": options.no_hold.then_some(false),
    })));
    let path = format!("/negotiations{}", options.dry_run.query());
    let answer = server.post_options(&path, &request.into(), &OPTIONS).await?;
    print_offers(server, &answer, options.dry_run.dry_run)
}

/// Accepts an offer.
pub(in crate::cli) async fn accept(options: AcceptOptions, server: &Server) -> Result<(), Failure> {
    let offer = server.offer_of(&options.offer).await?.to_string();
    accept_offer(server, &offer, options.dry_run.query()).await
}

async fn accept_offer(server: &Server, offer: &str, query: &str) -> Result<(), Failure> {
    let path = format!("/agreements{query}");
    let answer = server.post_json(&path, &json!({ "offer": offer })).await?;
    server.print_answer(answer, print_agreement)
}

/// Asks for the price of a change and, where the user wants it, accepts the change.
pub(in crate::cli) async fn change(options: ChangeOptions, server: &Server) -> Result<(), Failure> {
    let mut request = options.wanted.request()?;
    let id = server.id_of(&options.id).await?;
    request.insert("agreement".to_owned(), id.to_string().into());
    let asked = request
        .get("window")
        .and_then(|request| request["start"].as_str());
    if let Some(duration) = options.wanted.duration
        && options.wanted.before.is_none()
        && let Some(end) = wider_end(&read_answer(server.agreement(id).await?)?, asked, duration)
    {
        let window = request.entry("window").or_insert(json!({}));
        window["end"] = end.to_string().into();
        if !server.json {
            say!(
                "The window is too short for that: it is widened to {end}. Another end is asked for by --before."
            );
        }
    }
    let shown = if options.yes {
        quotes_held_for(server, &id.to_string()).await?
    } else {
        Vec::new()
    };
    let path = format!("/negotiations{}", options.dry_run.query());
    let answer = server.post_options(&path, &request.into(), &OPTIONS).await?;
    let first = &answer["offers"][0];
    let Some(offer) = first["id"].as_str().filter(|_| options.yes) else {
        return print_offers(server, &answer, options.dry_run.dry_run);
    };
    match why_not_taken(&options.wanted, first, &shown) {
        None => accept_offer(server, offer, "").await,
        Some(why) => {
            if !server.json {
                print_offers(server, &answer, false)?;
            }
            Err(Failure::Refused(why))
        }
    }
}

/// The quotes for a change of an agreement that are held: they have been shown.
async fn quotes_held_for(server: &Server, agreement: &str) -> Result<Vec<Value>, Failure> {
    let query = Query::new("/negotiations").with("state", Some("open"));
    let open = server.pages(&query, "negotiations", NEGOTIATIONS_MAX).await?;
    let about = open.iter().filter(|open| open["agreement"] == agreement);
    Ok(about
        .flat_map(|about| list_or_empty(&about["offers"]))
        .cloned()
        .collect())
}

/// Why a quote is not taken without a question, if so: it is something else than was asked for, or costs more than what was shown
/// before for the same.
fn why_not_taken(wanted: &RequestOptions, quote: &Value, shown: &[Value]) -> Option<String> {
    let id = |value: &Value| text_or_empty(&value["id"]).to_owned();
    if quote["kind"] != "exact" {
        return Some(format!(
            "nothing is changed: what was asked for cannot be had, and --yes takes nothing else. To take the first of these offers: \
             bespeak accept {}",
            id(quote)
        ));
    }
    let instant = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let is_at = |value: &Value, wanted: Option<DateTime>| {
        wanted.is_none_or(|at| instant(value) == at.to_string().parse::<Timestamp>().ok())
    };
    let is_the_same = |value: &&Value| {
        value["kind"] == "exact"
            && ["nodes", "durationSeconds"]
                .iter()
                .all(|name| value[name] == quote[name])
            && is_at(&value["ready"], wanted.after)
            && is_at(&value["deadline"], wanted.before)
    };
    let costs = total_cost(quote)?;
    let before = shown.iter().filter(is_the_same);
    // One without a price costs nothing.
    let before = before.map(|offer| (total_cost(offer).unwrap_or_default(), offer));
    let (least, cheapest) = before.min_by_key(|(least, _)| *least)?;
    (costs > least).then(|| {
        format!(
            "nothing is changed: it costs {} now, and {} was shown before. To take what was shown before: bespeak accept {}; to take this: \
             bespeak accept {}",
            cost_in_words(quote),
            cost_in_words(cheapest),
            id(cheapest),
            id(quote)
        )
    })
}

/// The price and the fee of an offer, in millionths of the currency; none where nothing is charged.
fn total_cost(offer: &Value) -> Option<i64> {
    let micros = |value: &Value| wsag::budget::parse_amount(value["amount"].as_str()?).ok();
    Some(micros(&offer["price"])?.saturating_add(micros(&offer["fee"]).unwrap_or(0)))
}

/// The price of an offer with its fee.
fn cost_in_words(offer: &Value) -> String {
    let price = amount_with_currency(&offer["price"]).unwrap_or_default();
    match amount_with_currency(&offer["fee"]) {
        Some(fee) => format!("{price} and a fee of {fee}"),
        None => price,
    }
}

/// The end that the window needs for a slot of this many seconds. The slot begins at the planned start, or at the asked start if that is
/// later. None if the window of the agreement is long enough.
fn wider_end(agreement: &AgreementView, asked: Option<&str>, duration: u64) -> Option<Timestamp> {
    let at = |text: &str| text.parse::<Timestamp>().ok();
    let planned = at(agreement.planned_start.as_deref().unwrap_or(&agreement.ready))?;
    let start = asked.and_then(at).map_or(planned, |asked| asked.max(planned));
    let end = start.checked_add(Duration::from_secs(duration)).ok()?;
    (end > at(&agreement.deadline)?).then_some(end)
}

/// Prints offers as a table, and how to accept; where there are none it fails with the reason.
fn print_offers(server: &Server, answer: &Value, is_dry: bool) -> Result<(), Failure> {
    let offers = list_or_empty(&answer["offers"]);
    if server.json {
        print_json(answer);
    } else if let Some(first) = offers.first() {
        print_offer_table(offers);
        if is_dry {
            say!("\nNothing is held. To take one, ask again without --dry-run.");
        } else if first["state"] == "Acceptable" {
            say!("\nTo take one: bespeak accept {}", text_or_empty(&first["id"]));
        } else {
            say!("\nNothing is held. To take one, ask again without --no-hold.");
        }
    }
    if offers.is_empty() {
        // As JSON it has been printed.
        let words = if server.json {
            String::new()
        } else if is_dry {
            refusal_in_words(&answer["refusal"])
        } else {
            refusal_in_words(&answer["refusal"]) + &how_to_explain(text_or_empty(&answer["id"]))
        };
        return Err(Failure::Refused(words));
    }
    Ok(())
}

/// Prints a row for each offer and for each piece of one.
pub(super) fn print_offer_table(offers: &[Value]) {
    let mut rows = Vec::new();
    for offer in offers {
        let text = |name: &str| offer[name].as_str().unwrap_or("-").to_owned();
        let mut costs = amount_with_currency(&offer["price"]).unwrap_or_else(|| "-".to_owned());
        if let Some(difference) = amount_with_currency(&offer["priceDifference"]) {
            costs += &format!(" ({difference} more)");
        }
        if let Some(fee) = amount_with_currency(&offer["fee"]) {
            costs += &format!(", fee {fee}");
            if let Some(why) = offer["feeReason"].as_str() {
                costs += &format!(" ({why})");
            }
        }
        if let Some(watt_hours) = offer["energy"]["wattHours"].as_u64() {
            let cost = amount_with_currency(&offer["energy"]["cost"]).unwrap_or_default();
            costs += &format!(
                ", {}.{:03} kWh for {cost}",
                watt_hours / 1_000,
                watt_hours % 1_000
            );
        }
        let sure = offer["confidence"].as_f64();
        let sure = sure.map_or_else(|| "-".to_owned(), |sure| format!("{:.1}%", 100.0 * sure));
        rows.push(row([
            &text("id"),
            &text("start"),
            &text("end"),
            &offer["nodes"].as_u64().unwrap_or_default(),
            &text("kind"),
            &format!("{:.2}", offer["deviation"].as_f64().unwrap_or_default()),
            &sure,
            &text("heldUntil"),
            &costs,
        ]));
        for piece in list_or_empty(&offer["pieces"]) {
            let text = |name: &str| piece[name].as_str().unwrap_or("-").to_owned();
            rows.push(row([
                &"piece",
                &text("plannedStart"),
                &text("plannedEnd"),
                &piece["nodes"].as_u64().unwrap_or_default(),
            ]));
        }
    }
    let headings = "offer, start, end, nodes, kind, phi, sure, held until, price";
    print_table(headings, &[3, 5, 6], rows);
}

fn parse_nodes(text: &str) -> Result<Value, String> {
    let count = |text: &str| {
        let read = text.parse::<u32>().ok().filter(|count| *count > 0);
        read.ok_or_else(|| "a number from 1 on, or two with .. between, is expected".to_owned())
    };
    match text.split_once("..") {
        None => count(text).map(Value::from),
        Some((min, max)) => Ok(json!({ "min": count(min)?, "max": count(max)? })),
    }
}

fn parse_weights(text: &str) -> Result<Value, String> {
    let known = ["start", "size", "duration", "price"];
    let mut weights = Map::new();
    for part in text.split(',') {
        let (name, weight) = part.split_once('=').unwrap_or((part, ""));
        if !known.contains(&name) {
            return Err(format!("{name:?} has no weight; {} have", known.join(", ")));
        }
        if weights
            .insert(name.to_owned(), parse_deviation(weight)?.into())
            .is_some()
        {
            return Err(format!("{name} has one weight"));
        }
    }
    Ok(weights.into())
}

fn parse_deviation(text: &str) -> Result<f64, String> {
    let read = text.parse::<f64>().ok();
    let read = read.filter(|value| value.is_finite() && *value >= 0.0);
    read.ok_or_else(|| "a number from 0 on is expected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_taken_at_once_where_it_is_exact_and_no_dearer_than_what_was_shown() {
        let wanted = RequestOptions {
            nodes: None,
            duration: Some(3_600),
            work: None,
            after: None,
            before: None,
            budget: None,
            prefer: None,
            max_deviation: None,
        };
        let offer = |id: &str, kind: &str, price: &str, fee: &str| {
            let money = |amount: &str| json!({ "amount": amount, "currency": "EUR" });
            json!({ "id": id, "kind": kind, "nodes": 2, "durationSeconds": 3_600, "price": money(price), "fee": money(fee),
                "ready": "2026-11-22T12:00:00Z", "deadline": "2026-11-22T14:00:00Z" })
        };
        let quote = offer("new", "exact", "12", "0.5");
        assert_eq!(why_not_taken(&wanted, &quote, &[]), None);
        let same = offer("old", "exact", "10", "2.5");
        assert_eq!(why_not_taken(&wanted, &quote, &[same]), None);
        let less = offer("old", "exact", "12", "0.499999");
        let why = why_not_taken(&wanted, &quote, &[less]).unwrap();
        assert!(
            why.contains("12 EUR and a fee of 0.499999 EUR was shown before"),
            "{why}"
        );
        assert!(why.contains("accept old") && why.contains("accept new"), "{why}");
        let other = offer("old", "shorter", "1", "0");
        assert_eq!(
            why_not_taken(&wanted, &quote, &[other]),
            None,
            "it was something else"
        );
        let why = why_not_taken(&wanted, &offer("new", "shorter", "1", "0"), &[]).unwrap();
        assert!(
            why.contains("cannot be had") && why.contains("accept new"),
            "{why}"
        );
        let free = json!({ "id": "new", "kind": "exact", "nodes": 2 });
        assert_eq!(why_not_taken(&wanted, &free, &[]), None, "nothing is charged");
    }

    #[test]
    fn sizes_budgets_and_weights_are_read_as_people_write_them() {
        assert_eq!(parse_nodes("8"), Ok(json!(8)));
        assert_eq!(parse_nodes("8..16"), Ok(json!({ "min": 8, "max": 16 })));
        for wrong in ["", "0", "8..", "..", "a"] {
            assert!(parse_nodes(wrong).is_err(), "{wrong}");
        }
        assert!(parse_amount("12.50 EUR").is_ok() && parse_amount("12").is_err());
        assert_eq!(
            parse_weights("start=2,price=0.5"),
            Ok(json!({ "start": 2.0, "price": 0.5 }))
        );
        for wrong in [
            "",
            "start",
            "start=",
            "start=-1",
            "start=1,start=2",
            "end=1",
            "size=inf",
        ] {
            assert!(parse_weights(wrong).is_err(), "{wrong}");
        }
    }
}
