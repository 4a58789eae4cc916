//! Options that several commands have, and how they are read. Where options are the members of a request, the faults of this request
//! are told by the options.

use clap::Args;
use scheduler::Seconds;
use serde_json::{Map, Value, json};
use wsag::time::DateTime;

use crate::cli::Failure;
use crate::cli::client::text_or_empty;
use crate::cli::money::parse_money_as_json;
use crate::cli::times::{check_times_in_order, parse_duration, parse_time};

/// The option that says a member of a request.
pub(super) struct OptionOfMember {
    /// The member, or a part of one.
    pub(super) member: &'static str,
    /// The option.
    pub(super) option: &'static str,
    /// Whether the member's name is a word of sentences, too.
    pub(super) is_word: bool,
}

/// Has the faults of a request told by the options that say its members: in place of the pointer to a member, and of its name in a
/// message where that can be nothing else.
pub(super) fn name_options(told: &mut Value, options: &[OptionOfMember]) {
    let Some(violations) = told.get_mut("violations").and_then(Value::as_array_mut) else {
        return;
    };
    for violation in violations {
        let path = text_or_empty(&violation["path"])
            .trim_start_matches('/')
            .to_owned();
        let is_said = |known: &&OptionOfMember| {
            let below = path.strip_prefix(known.member);
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        let argument = path.strip_prefix("arguments/").map(str::parse::<usize>);
        if let Some(Ok(nth)) = argument {
            violation["path"] = format!("argument {}", nth + 1).into();
        } else if let Some(known) = options.iter().find(is_said) {
            violation["path"] = known.option.into();
        }
        let names = options.iter().filter(|known| !known.is_word);
        let message = text_or_empty(&violation["message"]).to_owned();
        let message = names.fold(message, |message, known| {
            message.replace(known.member, known.option)
        });
        violation["message"] = message.into();
    }
}

/// The option of every command that changes something on the service.
#[derive(Debug, Args)]
pub(in crate::cli) struct DryRun {
    /// Change nothing, and show what the answer would be.
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl DryRun {
    /// The query of the request.
    pub(in crate::cli) fn query(&self) -> &'static str {
        if self.dry_run { "?dryRun=true" } else { "" }
    }
}

/// The members of a request with the options that say them; a part of a member before the member.
pub(super) const OPTIONS_OF_REQUEST: [OptionOfMember; 14] = [
    option_of_member("window/start", "--after", false),
    option_of_member("window/end", "--before", false),
    option_of_member("window", "--after and --before", true),
    option_of_member("nodes", "--nodes", true),
    option_of_member("durationSeconds", "--for", false),
    option_of_member("moldability/constantWork", "--work", false),
    option_of_member("moldability", "--work", false),
    option_of_member("budget", "--budget", true),
    option_of_member("weights", "--prefer", true),
    option_of_member("maxDeviation", "--max-deviation", false),
    option_of_member("application", "--app", true),
    option_of_member("arguments", "the arguments", true),
    option_of_member("template", "--template", true),
    option_of_member("name", "--name", true),
];

const fn option_of_member(member: &'static str, option: &'static str, is_word: bool) -> OptionOfMember {
    OptionOfMember {
        member,
        option,
        is_word,
    }
}

/// The request. An option that is left out has the template's value, or does not change.
#[derive(Debug, Args)]
pub(super) struct RequestOptions {
    /// Nodes, or the least and the greatest number: 8..16.
    #[arg(long, value_name = "N|MIN..MAX", value_parser = parse_nodes_option)]
    pub(super) nodes: Option<Value>,
    /// Duration: 90s, 30m, 2h, 1d, or several of these together. Without it a new reservation of nodes alone lasts from --after to
    /// --before.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub(super) duration: Option<u64>,
    /// Time that one node would take, if the duration follows from the number of nodes: 8 nodes take an eighth of it.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "duration")]
    pub(super) work: Option<u64>,
    /// Earliest start.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(super) after: Option<DateTime>,
    /// Latest end.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(super) before: Option<DateTime>,
    /// Highest price: '12.50 EUR'.
    #[arg(long, value_name = "AMOUNT CURRENCY", value_parser = parse_money_as_json)]
    pub(super) budget: Option<Value>,
    /// Weights for ranking the offers, each from 0 on: start=2,size=1,duration=1,price=3.
    #[arg(long, value_name = "WHAT=WEIGHT,…", value_parser = parse_weights_option)]
    pub(super) prefer: Option<Value>,
    /// Largest distance of an offer from the request: 1 for a duration earlier or later, or for half or twice the nodes.
    #[arg(long, value_name = "PHI", value_parser = parse_deviation_option)]
    pub(super) max_deviation: Option<f64>,
}

impl RequestOptions {
    pub(super) fn request(&self) -> Result<Map<String, Value>, Failure> {
        check_times_in_order(("--after", self.after), ("--before", self.before))?;
        let text = |at: Option<DateTime>| at.map(|at| at.to_string());
        let window = options_with_value(json!({ "start": text(self.after), "end": text(self.before) }));
        Ok(options_with_value(json!({
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
pub(super) fn options_with_value(members: Value) -> Map<String, Value> {
    let Value::Object(mut members) = members else {
        return Map::new();
    };
    members.retain(|_, value| !value.is_null());
    members
}

fn parse_nodes_option(text: &str) -> Result<Value, String> {
    let count = |text: &str| {
        let read = text.parse::<u32>().ok().filter(|count| *count > 0);
        read.ok_or_else(|| "a number from 1 on, or two with .. between, is expected".to_owned())
    };
    match text.split_once("..") {
        None => count(text).map(Value::from),
        Some((min, max)) => Ok(json!({ "min": count(min)?, "max": count(max)? })),
    }
}

fn parse_weights_option(text: &str) -> Result<Value, String> {
    let known = ["start", "size", "duration", "price"];
    let mut weights = Map::new();
    for part in text.split(',') {
        let (name, weight) = part.split_once('=').unwrap_or((part, ""));
        if !known.contains(&name) {
            return Err(format!("{name:?} has no weight; {} have", known.join(", ")));
        }
        if weights
            .insert(name.to_owned(), parse_deviation_option(weight)?.into())
            .is_some()
        {
            return Err(format!("{name} has one weight"));
        }
    }
    Ok(weights.into())
}

fn parse_deviation_option(text: &str) -> Result<f64, String> {
    let read = text.parse::<f64>().ok();
    let read = read.filter(|value| value.is_finite() && *value >= 0.0);
    read.ok_or_else(|| "a number from 0 on is expected".to_owned())
}

/// Reads a duration; a number alone is one of seconds.
pub(super) fn parse_seconds_option(text: &str) -> Result<Seconds, String> {
    let is_number = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let text = if is_number {
        format!("{text}s")
    } else {
        text.to_owned()
    };
    Seconds::try_from(parse_duration(&text)?).map_err(|why| why.to_string())
}

pub(super) fn parse_probability_option(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(p) if p > 0.0 && p < 1.0 => Ok(p),
        _ => Err("a number between 0 and 1 is expected".to_owned()),
    }
}

/// How many lines to print: 0 is for all.
pub(in crate::cli) fn parse_limit_option(text: &str) -> Result<usize, std::num::ParseIntError> {
    text.parse()
        .map(|limit| if limit == 0 { usize::MAX } else { limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_weights_are_read_as_people_write_them() {
        assert_eq!(parse_nodes_option("8"), Ok(json!(8)));
        assert_eq!(parse_nodes_option("8..16"), Ok(json!({ "min": 8, "max": 16 })));
        for wrong in ["", "0", "8..", "..", "a"] {
            assert!(parse_nodes_option(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            parse_weights_option("start=2,price=0.5"),
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
            assert!(parse_weights_option(wrong).is_err(), "{wrong}");
        }
    }
}
