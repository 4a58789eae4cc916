//! `bespeak negotiate`, `bespeak accept OFFER` and `bespeak change ID`.

use clap::Args;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::cli::client::{Server, print_agreement, print_json, read, refusal};
use crate::cli::{Failure, print_rows, row};

const EXAMPLES: &str = "\
Examples:
  bespeak negotiate --nodes 2 --for 2h --before 2026-12-01T18:00:00Z
  bespeak negotiate --app sleep --nodes 1 --for 30m --budget '12.50 EUR' -- 60
  bespeak negotiate --nodes 8..16 --work 24h --max-deviation 0.5 --prefer price=2,start=1
  bespeak accept 01a1fc5d-835f-772d-b9d0-c724faec45f2

Each offer is held until its own instant. The column phi is its distance from the request, in durations or in sizes. The
column sure is the probability that the job ends by itself before its slot does, if it is known.";

const CHANGES: &str = "\
Examples:
  bespeak change 01a1fc5d-835f-772d-b9d0-c724faec45f2 --for 3h
  bespeak change 01a1fc5d-835f-772d-b9d0-c724faec45f2 --nodes 4 --prefer price=1 --yes";

/// The request. An option that is left out has the template's value, or does not change.
#[derive(Debug, Args)]
struct Wanted {
    /// Nodes, or the least and the greatest number: 8..16.
    #[arg(long, value_name = "N|MIN..MAX", value_parser = nodes)]
    nodes: Option<Value>,
    /// Duration: 90s, 30m, 2h, 1d, or several of these together.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    duration: Option<u64>,
    /// Time that one node would take, if the duration follows from the number of nodes: 8 nodes take an eighth of it.
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "duration")]
    work: Option<u64>,
    /// Earliest start.
    #[arg(long, value_name = "DATETIME")]
    after: Option<String>,
    /// Latest end.
    #[arg(long, value_name = "DATETIME")]
    before: Option<String>,
    /// Highest price: '12.50 EUR'.
    #[arg(long, value_name = "AMOUNT CURRENCY", value_parser = budget)]
    budget: Option<Value>,
    /// Weights for ranking the offers, each from 0 on: start=2,size=1,duration=1,price=3.
    #[arg(long, value_name = "WHAT=WEIGHT,…", value_parser = weights)]
    prefer: Option<Value>,
    /// Largest distance of an offer from the request: 1 for a duration earlier or later, or for half or twice the nodes.
    #[arg(long, value_name = "PHI", value_parser = deviation)]
    max_deviation: Option<f64>,
}

impl Wanted {
    fn request(&self) -> Map<String, Value> {
        let mut request = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                request.insert(name.to_owned(), value);
            }
        };
        put("nodes", self.nodes.clone());
        put("durationSeconds", self.duration.map(Value::from));
        put(
            "moldability",
            self.work.map(|work| json!({ "constantWork": work })),
        );
        put("budget", self.budget.clone());
        put("weights", self.prefer.clone());
        put("maxDeviation", self.max_deviation.map(Value::from));
        let window = [("start", &self.after), ("end", &self.before)];
        let window: Map<String, Value> = window
            .into_iter()
            .filter_map(|(name, at)| Some((name.to_owned(), at.clone()?.into())))
            .collect();
        put("window", (!window.is_empty()).then(|| window.into()));
        request
    }
}

/// Options of `negotiate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
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
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    server: Server,
}

/// Options of `accept`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AcceptOptions {
    /// The offer, as `negotiate` has printed it.
    offer: Uuid,
    #[command(flatten)]
    server: Server,
}

/// Options of `change`.
#[derive(Debug, Args)]
#[command(after_help = CHANGES)]
pub(in crate::cli) struct ChangeOptions {
    /// The agreement.
    id: Uuid,
    #[command(flatten)]
    wanted: Wanted,
    /// Take the first quote at once.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    server: Server,
}

/// Asks for offers.
pub(in crate::cli) async fn negotiate(options: NegotiateOptions) -> Result<(), Failure> {
    let mut request = options.wanted.request();
    for (name, value) in [
        ("template", options.template),
        ("name", options.name),
        ("application", options.application),
    ] {
        request.extend(value.map(|value| (name.to_owned(), value.into())));
    }
    if !options.arguments.is_empty() {
        request.insert("arguments".to_owned(), options.arguments.into());
    }
    let answer = options.server.post_json("/negotiations", &request.into()).await?;
    show(&options.server, &answer, "bespeak accept")
}

/// Accepts an offer.
pub(in crate::cli) async fn accept(options: AcceptOptions) -> Result<(), Failure> {
    let body = json!({ "offer": options.offer });
    let answer = options.server.post_json("/agreements", &body).await?;
    accepted(&options.server, answer)
}

/// Asks for the price of a change and, where the user wants it, accepts the change.
pub(in crate::cli) async fn change(options: ChangeOptions) -> Result<(), Failure> {
    let mut request = options.wanted.request();
    request.insert("agreement".to_owned(), options.id.to_string().into());
    let answer = options.server.post_json("/negotiations", &request.into()).await?;
    let first = answer["offers"][0]["id"].as_str();
    match first.filter(|_| options.yes) {
        Some(offer) => {
            let body = json!({ "offer": offer });
            let answer = options.server.post_json("/agreements", &body).await?;
            accepted(&options.server, answer)
        }
        None => show(&options.server, &answer, "bespeak accept"),
    }
}

fn accepted(server: &Server, answer: Value) -> Result<(), Failure> {
    if server.json {
        print_json(&answer);
        return Ok(());
    }
    print_agreement(&read(answer)?);
    Ok(())
}

/// Prints offers as a table, and how to accept; where there are none it fails with the reason.
fn show(server: &Server, answer: &Value, how: &str) -> Result<(), Failure> {
    if server.json {
        print_json(answer);
    }
    let offers = answer["offers"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(first) = offers.first() else {
        return Err(Failure::Refused(refusal(&answer["refusal"])));
    };
    if server.json {
        return Ok(());
    }
    print_rows(table(offers), &[3, 5, 6]);
    say!(
        "\nTo take one: {how} {}",
        first["id"].as_str().unwrap_or_default()
    );
    Ok(())
}

/// A row for the headings, for each offer and for each piece of one.
fn table(offers: &[Value]) -> Vec<Vec<String>> {
    let mut rows = vec![row([
        &"offer",
        &"start",
        &"end",
        &"nodes",
        &"kind",
        &"phi",
        &"sure",
        &"held until",
        &"price",
    ])];
    for offer in offers {
        let text = |name: &str| offer[name].as_str().unwrap_or("-").to_owned();
        let price = |name: &str| {
            let money = &offer[name];
            money["amount"]
                .as_str()
                .map(|amount| format!("{amount} {}", money["currency"].as_str().unwrap_or_default()))
        };
        let mut costs = price("price").unwrap_or_else(|| "-".to_owned());
        if let Some(difference) = price("priceDifference") {
            costs += &format!(" ({difference} more)");
        }
        if let Some(fee) = price("fee") {
            costs += &format!(", fee {fee}");
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
        for piece in offer["pieces"].as_array().into_iter().flatten() {
            let text = |name: &str| piece[name].as_str().unwrap_or("-").to_owned();
            rows.push(row([
                &"piece",
                &text("plannedStart"),
                &text("plannedEnd"),
                &piece["nodes"].as_u64().unwrap_or_default(),
            ]));
        }
    }
    rows
}

fn nodes(text: &str) -> Result<Value, String> {
    let count = |text: &str| {
        let read = text.parse::<u32>().ok().filter(|count| *count > 0);
        read.ok_or_else(|| "a number from 1 on, or two with .. between, is expected".to_owned())
    };
    match text.split_once("..") {
        None => count(text).map(Value::from),
        Some((min, max)) => Ok(json!({ "min": count(min)?, "max": count(max)? })),
    }
}

fn duration(text: &str) -> Result<u64, String> {
    let expected = || "a duration such as 90s, 30m, 2h or 1h30m is expected".to_owned();
    let mut seconds = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(expected)?;
        let amount: u64 = rest[..end].parse().map_err(|_| expected())?;
        let unit = match rest[end..].chars().next() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3_600,
            Some('d') => 86_400,
            _ => return Err(expected()),
        };
        seconds = amount
            .checked_mul(unit)
            .and_then(|part| seconds.checked_add(part))
            .ok_or_else(expected)?;
        rest = &rest[end + 1..];
    }
    if seconds == 0 {
        return Err(expected());
    }
    Ok(seconds)
}

fn weights(text: &str) -> Result<Value, String> {
    let known = ["start", "size", "duration", "price"];
    let mut weights = Map::new();
    for part in text.split(',') {
        let (name, weight) = part.split_once('=').unwrap_or((part, ""));
        if !known.contains(&name) {
            return Err(format!("{name:?} has no weight; {} have", known.join(", ")));
        }
        if weights
            .insert(name.to_owned(), deviation(weight)?.into())
            .is_some()
        {
            return Err(format!("{name} has one weight"));
        }
    }
    Ok(weights.into())
}

fn deviation(text: &str) -> Result<f64, String> {
    let read = text.parse::<f64>().ok();
    let read = read.filter(|value| value.is_finite() && *value >= 0.0);
    read.ok_or_else(|| "a number from 0 on is expected".to_owned())
}

fn budget(text: &str) -> Result<Value, String> {
    match text.split_once(' ') {
        Some((amount, currency)) => Ok(json!({ "amount": amount, "currency": currency.trim() })),
        None => Err("an amount and a currency are expected, such as '12.50 EUR'".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_read_as_people_write_them() {
        assert_eq!(duration("90s"), Ok(90));
        assert_eq!(duration("1d2h30m"), Ok(95_400));
        for wrong in [
            "",
            "0s",
            "2",
            "h",
            "2 h",
            "-1h",
            "99999999999999999999d",
            "999999999999999999d",
            "1ü",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(nodes("8"), Ok(json!(8)));
        assert_eq!(nodes("8..16"), Ok(json!({ "min": 8, "max": 16 })));
        for wrong in ["", "0", "8..", "..", "a"] {
            assert!(nodes(wrong).is_err(), "{wrong}");
        }
        assert!(budget("12.50 EUR").is_ok() && budget("12").is_err());
        assert_eq!(
            weights("start=2,price=0.5"),
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
            assert!(weights(wrong).is_err(), "{wrong}");
        }
    }
}
