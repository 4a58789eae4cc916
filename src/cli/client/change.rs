//! `bespeak change ID`: asks for the price of a change of an agreement, and accepts it where the user wants it.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use wsag::time::DateTime;

use super::offers::{accept_offer, offer_cost_in_words, print_offers, total_cost_of_offer};
use super::options::{OPTIONS_OF_REQUEST, RequestOptions};
use crate::cli::Failure;
use crate::cli::client::{DryRun, IdOrName, Query, Server, list_or_empty, read_answer, text_or_empty};
use crate::cli::times::FORMS;
use service::AgreementView;

const EXAMPLES: &str = "\
Examples:
  bespeak change 01a1fc5d-835f-772d-b9d0-c724faec45f2 --for 3h
  bespeak change nightly --for 3h --before 'tomorrow 18:00' --dry-run
  bespeak change 01a1fc5d-835f-772d-b9d0-c724faec45f2 --nodes 4 --prefer price=1 --yes

A duration that does not fit into the window any more widens it: to the end of a slot of this duration that begins as planned.";

/// Open negotiations that are looked through for quotes that are held.
const NEGOTIATIONS_MAX: usize = 200;

/// Options of `change`.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{FORMS}"))]
pub(in crate::cli) struct Options {
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

/// Asks for the price of a change and, where the user wants it, accepts the change.
pub(in crate::cli) async fn change_agreement(options: Options, server: &Server) -> Result<(), Failure> {
    let mut request = options.wanted.request()?;
    let id = server.id_of(&options.id).await?;
    request.insert("agreement".to_owned(), id.to_string().into());
    let asked = request
        .get("window")
        .and_then(|request| request["start"].as_str());
    if let Some(duration) = options.wanted.duration
        && options.wanted.before.is_none()
        && let Some(end) = end_widened_for_change(&read_answer(server.agreement(id).await?)?, asked, duration)
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
        quotes_held_for_change(server, &id.to_string()).await?
    } else {
        Vec::new()
    };
    let path = format!("/negotiations{}", options.dry_run.query());
    let answer = server
        .post_options(&path, &request.into(), &OPTIONS_OF_REQUEST)
        .await?;
    let first = &answer["offers"][0];
    let Some(offer) = first["id"].as_str().filter(|_| options.yes) else {
        return print_offers(server, &answer, options.dry_run.dry_run);
    };
    match why_change_is_not_taken(&options.wanted, first, &shown) {
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
async fn quotes_held_for_change(server: &Server, agreement: &str) -> Result<Vec<Value>, Failure> {
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
fn why_change_is_not_taken(wanted: &RequestOptions, quote: &Value, shown: &[Value]) -> Option<String> {
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
    let costs = total_cost_of_offer(quote)?;
    let before = shown.iter().filter(is_the_same);
    // One without a price costs nothing.
    let before = before.map(|offer| (total_cost_of_offer(offer).unwrap_or_default(), offer));
    let (least, cheapest) = before.min_by_key(|(least, _)| *least)?;
    (costs > least).then(|| {
        format!(
            "nothing is changed: it costs {} now, and {} was shown before. To take what was shown before: bespeak accept {}; to take this: \
             bespeak accept {}",
            offer_cost_in_words(quote),
            offer_cost_in_words(cheapest),
            id(cheapest),
            id(quote)
        )
    })
}

/// The end that the window needs for a slot of this many seconds. The slot begins at the planned start, or at the asked start if that is
/// later. None if the window of the agreement is long enough.
fn end_widened_for_change(
    agreement: &AgreementView,
    asked: Option<&str>,
    duration: u64,
) -> Option<Timestamp> {
    let at = |text: &str| text.parse::<Timestamp>().ok();
    let planned = at(agreement.planned_start.as_deref().unwrap_or(&agreement.ready))?;
    let start = asked.and_then(at).map_or(planned, |asked| asked.max(planned));
    let end = start.checked_add(Duration::from_secs(duration)).ok()?;
    (end > at(&agreement.deadline)?).then_some(end)
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
        assert_eq!(why_change_is_not_taken(&wanted, &quote, &[]), None);
        let same = offer("old", "exact", "10", "2.5");
        assert_eq!(why_change_is_not_taken(&wanted, &quote, &[same]), None);
        let less = offer("old", "exact", "12", "0.499999");
        let why = why_change_is_not_taken(&wanted, &quote, &[less]).unwrap();
        assert!(
            why.contains("12 EUR and a fee of 0.499999 EUR was shown before"),
            "{why}"
        );
        assert!(why.contains("accept old") && why.contains("accept new"), "{why}");
        let other = offer("old", "shorter", "1", "0");
        assert_eq!(
            why_change_is_not_taken(&wanted, &quote, &[other]),
            None,
            "it was something else"
        );
        let why = why_change_is_not_taken(&wanted, &offer("new", "shorter", "1", "0"), &[]).unwrap();
        assert!(
            why.contains("cannot be had") && why.contains("accept new"),
            "{why}"
        );
        let free = json!({ "id": "new", "kind": "exact", "nodes": 2 });
        assert_eq!(
            why_change_is_not_taken(&wanted, &free, &[]),
            None,
            "nothing is charged"
        );
    }
}
