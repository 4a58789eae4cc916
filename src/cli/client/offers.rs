//! `bespeak offer FILE`, `bespeak accept OFFER` and `bespeak release ID`: offers, and what they cost.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;
use wsag::budget::parse_amount;

use super::refusals::{how_to_explain, refusal_in_words};
use crate::cli::Failure;
use crate::cli::client::{
    DryRun, IdOrName, Server, escape_path_part, list_or_empty, print_agreement, print_json, text_or_empty,
};
use crate::cli::money::money_in_words;
use crate::cli::table::{print_table, row};
use service::end_negotiation_input;

const OFFER_EXAMPLES: &str = "\
Examples:
  bespeak offer examples/sleep.xml
  bespeak offer examples/sleep.xml --dry-run   what the answer would be
  bespeak offer examples/sleep.xml --for-party physics   an operator books for a party
  sed \"s/<jsdl:Exact>1</<jsdl:Exact>2</\" examples/sleep.xml | bespeak offer -";

/// Options of `offer`.
#[derive(Debug, Args)]
#[command(after_help = OFFER_EXAMPLES)]
pub(in crate::cli) struct OfferOptions {
    /// The AgreementOffer document; `-` reads standard input.
    file: PathBuf,
    /// The party whose agreement it is to be: an operator books for it.
    #[arg(long, value_name = "PARTY")]
    for_party: Option<String>,
    #[command(flatten)]
    dry_run: DryRun,
}

pub(in crate::cli) async fn make_offer(options: OfferOptions, server: &Server) -> Result<(), Failure> {
    let mut document = Vec::new();
    let reading = if options.file.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut document).map(drop)
    } else {
        std::fs::read(&options.file).map(|read| document = read)
    };
    reading.map_err(|why| Failure::Usage(format!("cannot read {}: {why}", options.file.display())))?;
    let mut path = format!("/agreements{}", options.dry_run.query());
    if let Some(party) = options.for_party {
        path += if path.contains('?') { "&" } else { "?" };
        path += &format!("party={}", escape_path_part(&party));
    }
    let answer = server.post(&path, document).await?;
    if !server.json {
        for other in list_or_empty(&answer["moved"]) {
            let (id, start) = (text_or_empty(&other["id"]), text_or_empty(&other["plannedStart"]));
            say!("{:<10} {id} now starts {start}", "moved");
        }
        let named = list_or_empty(&answer["moved"]).len() as u64;
        if let Some(others) = answer["movedCount"]
            .as_u64()
            .and_then(|all| all.checked_sub(named))
            && others > 0
        {
            say!("{:<10} and {others} more", "moved");
        }
    }
    server.print_answer(answer, print_agreement)
}

const ACCEPTANCES: &str = "\
Examples:
  bespeak accept 01a1fc5d-835f-772d-b9d0-c724faec45f2
  bespeak accept 01a1fc5d835f772d --dry-run    what the agreement would be";

/// Options of `accept`.
#[derive(Debug, Args)]
#[command(after_help = ACCEPTANCES)]
pub(in crate::cli) struct AcceptOptions {
    /// The offer: its id as `negotiate` has printed it, or as many first digits as no other offer that is held for you has.
    offer: IdOrName,
    #[command(flatten)]
    dry_run: DryRun,
}

/// Accepts an offer.
pub(in crate::cli) async fn accept_held_offer(
    options: AcceptOptions,
    server: &Server,
) -> Result<(), Failure> {
    let offer = server.id_of_offer(&options.offer).await?.to_string();
    accept_offer(server, &offer, options.dry_run.query()).await
}

pub(super) async fn accept_offer(server: &Server, offer: &str, query: &str) -> Result<(), Failure> {
    let path = format!("/agreements{query}");
    let answer = server.post_json(&path, &json!({ "offer": offer })).await?;
    server.print_answer(answer, print_agreement)
}

/// Prints offers as a table, and how to accept; where there are none it fails with the reason.
pub(super) fn print_offers(server: &Server, answer: &Value, is_dry: bool) -> Result<(), Failure> {
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
        let mut costs = money_in_words(&offer["price"]).unwrap_or_else(|| "-".to_owned());
        for (discount, why) in [
            ("preemptiveDiscount", "because its work may be cut"),
            ("shapesDiscount", "for the number of its shapes"),
        ] {
            if let Some(off) = money_in_words(&offer[discount]) {
                costs += &format!(", {off} less {why}");
            }
        }
        if let Some(difference) = money_in_words(&offer["priceDifference"]) {
            costs += &format!(" ({difference} more)");
        }
        if let Some(fee) = money_in_words(&offer["fee"]) {
            costs += &format!(", fee {fee}");
            if let Some(why) = offer["feeReason"].as_str() {
                costs += &format!(" ({why})");
            }
        }
        if let Some(watt_hours) = offer["energy"]["wattHours"].as_u64() {
            let cost = money_in_words(&offer["energy"]["cost"]).unwrap_or_default();
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

/// The price and the fee of an offer, in millionths of the currency; none where nothing is charged.
pub(super) fn total_cost_of_offer(offer: &Value) -> Option<i64> {
    let micros = |value: &Value| parse_amount(value["amount"].as_str()?).ok();
    Some(micros(&offer["price"])?.saturating_add(micros(&offer["fee"]).unwrap_or(0)))
}

/// The price of an offer with its fee.
pub(super) fn offer_cost_in_words(offer: &Value) -> String {
    let price = money_in_words(&offer["price"]).unwrap_or_default();
    match money_in_words(&offer["fee"]) {
        Some(fee) => format!("{price} and a fee of {fee}"),
        None => price,
    }
}

const RELEASE_EXAMPLES: &str = "\
Examples:
  bespeak release 01a1fc5d-835f-772d-b9d0-c724faec45f2    this offer, or all offers of this negotiation
  bespeak release 01a1fc5d --dry-run";

/// Options of `release`.
#[derive(Debug, Args)]
#[command(after_help = RELEASE_EXAMPLES)]
pub(in crate::cli) struct ReleaseOptions {
    /// The offer or the negotiation: its id, or as many first digits as no other has.
    id: IdOrName,
    #[command(flatten)]
    dry_run: DryRun,
}

/// Gives back what is held: for one offer, or for all of a negotiation.
pub(in crate::cli) async fn release_held_offers(
    options: ReleaseOptions,
    server: &Server,
) -> Result<(), Failure> {
    let id = server.id_of_anything(&options.id).await?;
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

pub(super) fn offer_deviation(offer: &Value) -> Option<f64> {
    offer["deviation"].as_f64()
}

pub(super) fn offer_start(offer: &Value) -> Option<f64> {
    let start = offer["start"].as_str()?.parse::<Timestamp>().ok()?;
    Some(start.as_duration().as_secs_f64())
}

/// The price of an offer, its fee included.
pub(super) fn offer_cost(offer: &Value) -> Option<f64> {
    let amount = |name: &str| offer[name]["amount"].as_str()?.parse::<f64>().ok();
    Some(amount("price")? + amount("fee").unwrap_or(0.0))
}
