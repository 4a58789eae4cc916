//! `bespeak resources`.

use std::collections::BTreeMap;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use domain::resources::{ARCHITECTURE, NUMBERS, NodeState, RATES};
use serde_json::{Map, Value, json};

use super::effects::print_effects_on_resources;
use crate::cli::Failure;
use crate::cli::client::{DryRun, Server, escape_path_part};
use crate::cli::table::{print_table, row};
use service::{NAMED_VERBS, OfferedResourcesView, ResourcesView};

const EXAMPLES: &str = "\
Examples:
  bespeak resources                                     all resources and how they stand
  bespeak resources list                                the same
  bespeak resources add fast --nodes 16 --rate 2        16 nodes of this machine that are twice as fast as the reference
  bespeak resources add big --nodes 4 --attribute memory_bytes=68719476736 --limit processes=200
  bespeak resources resize fast --nodes 8 --dry-run     which agreements would have to move, and where to
  bespeak resources resize fast --nodes 8
  bespeak resources retire old                          nothing new is placed on it, and what waits there goes elsewhere
  bespeak resources restore old                         it is in service again
  bespeak resources freeze fast                         nothing new is placed on it, and what is agreed stays there
  bespeak resources thaw fast                           it takes new work again

What is changed so holds after a restart, too. The configuration file changes only what is changed in the file: `bespeak reload`
has it read again. Clusters are added there.";

/// Options of `resources`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the resources and how they stand.
    List,
    /// Add nodes of this machine as a resource, or change the resource of that name.
    Add(PutOptions),
    /// Give a resource another number of nodes. Those with the highest numbers go; what runs there ends in its time.
    Resize {
        /// Name of the resource.
        name: String,
        /// How many nodes it has from now on.
        #[arg(long, value_name = "COUNT")]
        nodes: u32,
        #[command(flatten)]
        change: DryRun,
    },
    #[command(flatten)]
    Named(ResourceOrder),
}

/// One of [`NAMED_VERBS`], and its options.
#[derive(Debug)]
struct ResourceOrder {
    word: String,
    options: NamedOptions,
}

/// The options of a verb that needs no more than the name of a resource.
#[derive(Debug, Args)]
struct NamedOptions {
    /// Name of the resource.
    name: String,
    #[command(flatten)]
    change: DryRun,
}

impl Subcommand for ResourceOrder {
    fn augment_subcommands(command: Command) -> Command {
        NAMED_VERBS.iter().fold(command, |command, named| {
            // The verb's own words come after those of its options, which would take their place.
            let verb = NamedOptions::augment_args(Command::new(named.word)).about(named.help);
            command.subcommand(verb)
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        NAMED_VERBS.iter().any(|named| named.word == name)
    }
}

impl FromArgMatches for ResourceOrder {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (word, options) = matches
            .subcommand()
            .ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        Ok(Self {
            word: word.to_owned(),
            options: NamedOptions::from_arg_matches(options)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Debug, Args)]
#[expect(
    clippy::doc_markdown,
    reason = "a help text, in which the names stand as they are typed"
)]
struct PutOptions {
    /// Name of the resource: letters, digits, '-', '_' and '.'.
    name: String,
    /// How many nodes it has.
    #[arg(long, value_name = "COUNT")]
    nodes: Option<u32>,
    /// How fast its nodes work, as a multiple of the reference: 1 for a new resource where it is not said.
    #[arg(long, value_name = "FACTOR", value_parser = parse_resource_rate)]
    rate: Option<f64>,
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = parse_resource_value, help = attributes_help_of_resource_order())]
    attributes: Vec<(String, String)>,
    /// A limit of its jobs, as in processes=200: memory_mib, processes, files_mib, open_files or output_mib. The given ones take the
    /// place of all it had.
    #[arg(long = "limit", value_name = "NAME=NUMBER", value_parser = parse_resource_value)]
    limits: Vec<(String, String)>,
    #[command(flatten)]
    change: DryRun,
}

fn attributes_help_of_resource_order() -> String {
    let names: Vec<_> = NUMBERS.iter().map(|number| number.name).collect();
    format!(
        "An attribute of its nodes, as in cpus=8: {} or {ARCHITECTURE}. The given ones take the place of all it had",
        names.join(", ")
    )
}

fn parse_resource_rate(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|multiple| RATES.contains(multiple));
    found.ok_or_else(|| format!("a number from {} to {} is expected", RATES.start(), RATES.end()))
}

/// Reads a name and a value.
fn parse_resource_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("a name and a value are expected, as in cpus=8")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Names and values as an object: whole numbers as such.
fn resource_values_as_object(pairs: &[(String, String)]) -> Option<Value> {
    let value = |text: &str| {
        text.parse::<i64>()
            .map_or_else(|_| json!(text), |number| json!(number))
    };
    let members: Map<String, Value> = pairs
        .iter()
        .map(|(name, pair)| (name.clone(), value(pair)))
        .collect();
    (!members.is_empty()).then_some(Value::Object(members))
}

pub(in crate::cli) async fn manage_resources(options: Options, server: &Server) -> Result<(), Failure> {
    match options.verb.unwrap_or(Verb::List) {
        Verb::List => {
            let answer = server.get("/resources").await?;
            if answer["resources"][0].get("state").is_some() {
                server.print_answer(answer, print_resources)
            } else {
                server.print_answer(answer, print_offered_resources)
            }
        }
        Verb::Add(put) => {
            let mut body = BTreeMap::new();
            body.extend(put.nodes.map(|nodes| ("nodes", json!(nodes))));
            body.extend(put.rate.map(|rate| ("rate", json!(rate))));
            body.extend(
                resource_values_as_object(&put.attributes)
                    .map(|pairs_as_object| ("attributes", pairs_as_object)),
            );
            body.extend(
                resource_values_as_object(&put.limits).map(|pairs_as_object| ("limits", pairs_as_object)),
            );
            self::put_resource(server, &put.change, &put.name, &json!(body)).await
        }
        Verb::Resize { name, nodes, change } => {
            // Else a slip in the name would be a new resource.
            let all = server.get("/resources").await?;
            let named = |value: &Value| value["name"] == name.as_str();
            if !all["resources"]
                .as_array()
                .is_some_and(|all| all.iter().any(named))
            {
                return Err(Failure::Refused(format!(
                    "there is no resource {name:?}; `bespeak resources` lists them"
                )));
            }
            put_resource(server, &change, &name, &json!({ "nodes": nodes })).await
        }
        Verb::Named(order) => post_resource(server, &order).await,
    }
}

async fn put_resource(server: &Server, change: &DryRun, name: &str, body: &Value) -> Result<(), Failure> {
    let path = format!("/resources/{}{}", escape_path_part(name), change.query());
    let answer = server.put_json(&path, body).await?;
    server.print_answer(answer, print_effects_on_resources)
}

async fn post_resource(
    server: &Server,
    ResourceOrder { word, options }: &ResourceOrder,
) -> Result<(), Failure> {
    let name = escape_path_part(&options.name);
    let path = format!("/resources/{name}/{word}{}", options.change.query());
    let answer = server.post_json(&path, &json!({})).await?;
    server.print_answer(answer, print_effects_on_resources)
}

/// What others than operators see.
fn print_offered_resources(all: &OfferedResourcesView) {
    let rows = all.resources.iter().map(|put| {
        let attributes = put.attributes.iter();
        let attributes: Vec<_> = attributes
            .map(|(name, value)| match value.as_str() {
                Some(word) => format!("{name}={word}"),
                None => format!("{name}={value}"),
            })
            .collect();
        row([&put.name, &put.nodes, &put.rate, &attributes.join(", ")])
    });
    print_table("RESOURCE, NODES, RATE, ATTRIBUTES", &[1, 2], rows);
}

fn print_resources(all: &ResourcesView) {
    let states = NodeState::ALL;
    let headings = states.map(|state| state.word().to_uppercase());
    let rows = all.resources.iter().map(|resource| {
        let troubles: Vec<String> = resource
            .troubles
            .iter()
            .map(|trouble| {
                let (doing, since, message) = (&trouble.doing, &trouble.since, &trouble.message);
                format!("does not {doing} since {since}: {message}")
            })
            .collect();
        let mut cells = row([&resource.name, &resource.kind, &resource.state, &resource.nodes]);
        cells.extend(states.map(|state| resource.count(state).to_string()));
        cells.extend(row([&resource.rate, &troubles.join("; ")]));
        cells
    });
    let numbers: Vec<usize> = (3..=4 + states.len()).collect();
    let headings = headings.join(", ");
    print_table(
        &format!("RESOURCE, KIND, STATE, NODES, {headings}, RATE, TROUBLE"),
        &numbers,
        rows,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_an_object_with_numbers_as_such() {
        let pairs = ["cpus=8", "cpu_architecture=arm"].map(|text| parse_resource_value(text).unwrap());
        let expected = json!({"cpus": 8, "cpu_architecture": "arm"});
        assert_eq!(resource_values_as_object(&pairs), Some(expected));
        assert_eq!(resource_values_as_object(&[]), None);
        assert!(parse_resource_value("cpus").is_err());
    }
}
