//! `bespeak explain ID`: why an agreement is where it is, and why offers were answered as they were. Everything said here is
//! stored with the decisions; nothing is asked of the plan again.

use clap::Args;
use jiff::Timestamp;
use scheduler::counted;
use serde::Serialize;
use serde_json::{Value, json};

use super::offers::{offer_cost, offer_deviation, offer_start};
use super::refusals::refusal_in_words;
use crate::cli::Failure;
use crate::cli::client::{IdOrName, Server, list_or_empty, read_answer, text_or_empty};
use crate::cli::money::money_in_words;
use service::{AgreementView, ExplanationView, GuaranteeView, TimelineView};

const EXAMPLES: &str = "\
Examples:
  bespeak explain 01a1fc5d-835f-772d-b9d0-c724faec45f2          an agreement, a negotiation or an offer, by its id;
                                                                 a refused offer by the id in its refusal
  bespeak explain 01a1fc5d-835f-772d-b9d0-c724faec45f2 --json   the same for a program

For an agreement: the reason for its place, its moves, the parts of its price, its guarantees, and how far it may still be
moved. For offers: each answer with its reason, and which other answer is nearer and not more expensive. If nothing could be
offered: the cause, and the changes that would help.";

/// Options of `explain`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    /// The agreement, the negotiation, the offer or the refusal: its id, or as many first digits as no other has; of a refusal the whole.
    /// Or the name of an agreement.
    id: IdOrName,
}

pub(in crate::cli) async fn explain_decision(options: Options, server: &Server) -> Result<(), Failure> {
    let id = server.id_of_anything(&options.id).await?;
    if let Some(agreement) = server.find(&format!("/agreements/{id}")).await? {
        let timeline = server.timeline(id).await?;
        let explained = explain_agreement(read_answer(agreement)?, &read_answer(timeline)?);
        server.print_value(&explained, print_explained_agreement);
        return Ok(());
    }
    let mut only = None;
    let mut negotiation = server.find(&format!("/negotiations/{id}")).await?;
    if negotiation.is_none()
        && let Some(offer) = server.find(&format!("/offers/{id}")).await?
    {
        let own = offer["creator"] == "NegotiationInitiator";
        let ask = if own {
            &offer["id"]
        } else {
            &offer["counterOfferTo"]
        };
        only = Some(ask.clone());
        let path = format!("/negotiations/{}", text_or_empty(&offer["negotiation"]));
        negotiation = server.find(&path).await?;
    }
    let Some(negotiation) = negotiation else {
        if let Some(refused) = server.find(&format!("/refusals/{id}")).await? {
            server.print_value(&refused, |refused| {
                say!(
                    "offer      {id}, which was refused at {}",
                    text_or_empty(&refused["at"])
                );
                say!("because    {}", text_or_empty(&refused["why"]));
            });
            return Ok(());
        }
        let what =
            "there is no agreement, negotiation, offer or refusal with this id, or it is not yours to see";
        return Err(Failure::Refused(what.to_owned()));
    };
    let explained = explain_negotiation(&negotiation, only.as_ref());
    server.print_value(&explained, print_explained_negotiation);
    Ok(())
}

/// Why an agreement is where it is.
#[derive(Serialize)]
struct ExplainedAgreement {
    agreement: AgreementView,
    #[serde(flatten)]
    explanation: ExplanationView,
    guarantees: Vec<GuaranteeView>,
}

fn explain_agreement(view: AgreementView, timeline: &TimelineView) -> ExplainedAgreement {
    ExplainedAgreement {
        explanation: ExplanationView::of(&view, timeline, Timestamp::now()),
        guarantees: view.guarantees.clone(),
        agreement: view,
    }
}

fn print_explained_agreement(explained: &ExplainedAgreement) {
    let (view, why) = (&explained.agreement, &explained.explanation);
    let name = view.name.as_deref().unwrap_or_default();
    say!(
        "agreement  {}{}{name}",
        view.id,
        if name.is_empty() { "" } else { ": " }
    );
    let [resource, start, end] = [&view.resource, &view.planned_start, &view.planned_end]
        .map(|known| known.as_deref().unwrap_or_default());
    let nodes = counted(view.nodes, "node");
    say!("lies       on {nodes} of {resource}, {start} to {end}");
    for part in &why.decision {
        say!("because    {part}");
    }
    for (what, lines) in [("negotiated", &why.negotiated), ("moved     ", &why.moves)] {
        for line in lines {
            say!("{what} {}  {}", line.at, line.why);
        }
    }
    if why.moves.is_empty() {
        say!("moved      never: it lies where it was placed");
    }
    if let Some(price) = &view.price {
        say!("price      {price}");
        for part in why.price_parts.iter().flatten() {
            say!("           {part}");
        }
    }
    for guarantee in &explained.guarantees {
        let evidence = guarantee.evidence.as_ref();
        let evidence = evidence.map_or_else(String::new, |why| format!(": {why}"));
        say!("guarantees {} {}{evidence}", guarantee.name, guarantee.state);
        for worth in guarantee.values_at_stake() {
            say!("           {} {}", worth.kind, worth.amount);
        }
    }
    let left = &why.flexibility;
    say!(
        "flexible   {} earlier, {} later: {}",
        counted(left.earlier_seconds, "second"),
        counted(left.later_seconds, "second"),
        left.why
    );
}

/// Why the offers of a negotiation, or the one named `only`, were answered as they were.
fn explain_negotiation(negotiation: &Value, only: Option<&Value>) -> Value {
    let offers = list_or_empty(&negotiation["offers"]);
    // A proposal of the provider answers the agreement, which the provider has put there itself.
    let is_proposed = negotiation["proposed"].is_string();
    let asks = offers.iter().filter(|offer| {
        offer["creator"] == "NegotiationInitiator" || is_proposed && offer["state"] == "Advisory"
    });
    let asks = asks.filter(|ask| only.is_none_or(|only| ask["id"] == *only));
    let explain = |ask: &Value| {
        let answers: Vec<&Value> = offers
            .iter()
            .filter(|offer| {
                offer["creator"] != "NegotiationInitiator" && offer["counterOfferTo"] == ask["id"]
            })
            .collect();
        let each = answers
            .iter()
            .map(|answer| json!({ "offer": answer, "why": explain_answer(answer, &answers) }));
        json!({ "offer": ask, "why": summary_of_explained_answers(&answers), "answers": each.collect::<Vec<_>>() })
    };
    json!({
        "negotiation": negotiation["id"],
        "state": negotiation["state"],
        "agreement": negotiation["agreement"],
        "proposed": negotiation["proposed"],
        "explained": asks.map(explain).collect::<Vec<_>>(),
    })
}

/// The answer to an offer, in a line.
fn summary_of_explained_answers(answers: &[&Value]) -> &'static str {
    let had = || answers.iter().filter(|answer| answer["kind"].is_string());
    if answers.is_empty() {
        "it asked for no answer"
    } else if had().any(|had| had["kind"] == "exact") {
        "it fits as it was asked"
    } else if had().next().is_some() {
        "it does not fit as it was asked: these are near it"
    } else {
        "nothing like it can be had"
    }
}

/// The reason for an answer, and its further course.
fn explain_answer(offer: &Value, answers: &[&Value]) -> Vec<String> {
    let mut why = Vec::new();
    let kind = match text_or_empty(&offer["kind"]) {
        "exact" => "it is as asked for",
        "earlier" => "it lies before the window",
        "later" => "it lies after the window",
        "fewer" => "it has fewer nodes than asked for",
        "more" => "it has more nodes than asked for",
        "shorter" => "it is shorter than asked for",
        _ => "",
    };
    if !kind.is_empty() {
        why.push(kind.to_owned());
        why.extend(compare_explained_answers(offer, answers));
    }
    let state = text_or_empty(&offer["state"]);
    if let Some(agreement) = offer["agreement"].as_str() {
        why.push(format!("it was accepted: agreement {agreement}"));
    } else if offer["refusal"].is_object() {
        let taken = if kind.is_empty() { "" } else { "it is not held: " };
        why.push(format!("{taken}{}", refusal_in_words(&offer["refusal"])));
    } else if state == "Rejected" {
        why.push("its party has let go of it".to_owned());
    } else if let Some(until) = offer["heldUntil"].as_str() {
        why.push(format!("its nodes are held until {until}"));
    } else if state == "Advisory" {
        why.push("it is advice: nothing is held for it".to_owned());
    } else {
        why.push("it is not held any more".to_owned());
    }
    why
}

/// The criteria by which offers may be better than others, with an offer's value in each: the less, the better.
type Criterion = (&'static str, fn(&Value) -> Option<f64>);

/// The criteria in which an answer is better than the others, and an other that is nearer and no dearer.
fn compare_explained_answers(offer: &Value, answers: &[&Value]) -> Vec<String> {
    let others: Vec<&&Value> = answers
        .iter()
        .filter(|answer| answer["kind"].is_string())
        .collect();
    if others.len() < 2 {
        return Vec::new();
    }
    let criteria: [Criterion; 5] = [
        ("nearest", offer_deviation),
        ("cheapest", offer_cost),
        ("earliest", offer_start),
        ("shortest", |offer| offer["durationSeconds"].as_f64()),
        ("surest", |offer| offer["confidence"].as_f64().map(|sure| -sure)),
    ];
    let mut why = Vec::new();
    let best: Vec<&str> = criteria
        .into_iter()
        .filter(|(_, value)| {
            let Some(own) = value(offer) else {
                return false;
            };
            let all: Vec<f64> = others.iter().filter_map(|other| value(other)).collect();
            all.iter().all(|other| own <= *other) && all.iter().any(|other| own < *other)
        })
        .map(|(name, _)| name)
        .collect();
    if !best.is_empty() {
        why.push(format!("of these the {}", best.join(" and the ")));
    }
    let priced = offer_cost(offer);
    let beats = |value: &&&&Value| {
        // A shorter one is cheaper because it is less.
        let is_as_much = value["kind"] != "shorter" || offer["kind"] == "shorter";
        is_as_much
            && offer_deviation(value) < offer_deviation(offer)
            && (priced.is_none() || offer_cost(value) <= priced)
            && value["id"] != offer["id"]
    };
    if let Some(other) = others.iter().find(beats) {
        let no_dearer = if priced.is_some() { " and no dearer" } else { "" };
        why.push(format!("{} is nearer{no_dearer}", text_or_empty(&other["id"])));
    }
    why
}

fn print_explained_negotiation(explained: &Value) {
    let (id, state) = (
        text_or_empty(&explained["negotiation"]),
        text_or_empty(&explained["state"]),
    );
    let about = explained["agreement"].as_str();
    let about = about.map_or_else(String::new, |agreement| format!(", to change {agreement}"));
    say!("negotiation {id} is {state}{about}");
    for ask in list_or_empty(&explained["explained"]) {
        let offer = &ask["offer"];
        say!("");
        say!(
            "offer {} ({})",
            text_or_empty(&offer["id"]),
            text_or_empty(&offer["state"])
        );
        say!("  {}", text_or_empty(&ask["why"]));
        for answer in list_or_empty(&ask["answers"]) {
            let offer = &answer["offer"];
            say!(
                "  answer {} ({})",
                text_or_empty(&offer["id"]),
                text_or_empty(&offer["state"])
            );
            if offer["kind"].is_string() {
                let price =
                    money_in_words(&offer["price"]).map_or_else(String::new, |price| format!(", {price}"));
                let phi = offer["deviation"].as_f64().unwrap_or_default();
                let (start, end) = (text_or_empty(&offer["start"]), text_or_empty(&offer["end"]));
                say!(
                    "    {}, {start} to {end}, phi {phi:.2}{price}",
                    counted(&offer["nodes"], "node")
                );
            }
            for why in list_or_empty(&answer["why"]) {
                say!("    {}", text_or_empty(why).replace('\n', "\n    "));
            }
        }
    }
}
