//! `bespeak predict`: how long an application would take on a resource, and why.

use clap::Args;
use scheduler::prediction::SLOT_PROBABILITY;
use scheduler::{Interval, Seconds, SlotTree, Time};
use serde_json::{Value, json};
use wsag::time::DateTime;

use super::print_json;
use crate::cli::config::Config;
use crate::cli::{Failure, StoreOptions, instant};
use crate::clock::Clock;
use crate::negotiation::Templates;
use crate::prediction::{Explanation, Given, Work, learn};
use crate::store::Store;

const EXAMPLES: &str = "\
Examples:
  bespeak predict --app solve --resource local --before 2030-01-02T18:00:00Z
  bespeak predict --app solve --resource local --nodes 4 --argument case-7 --party physics \\
      --after 2030-01-02T08:00:00Z --before 2030-01-02T18:00:00Z --input-bytes 1000000000

The estimate is that of past executions on the resource, corrected by the free share of its processors and by the trust in
it, with the transfers before and after. There is an estimate only if the resource has that many nodes free. The slot is the
one that the service reserves for an offer without a duration: it holds the work with a stated probability.
`bespeak calibrate` reports how well these probabilities were calibrated. The service may run meanwhile.

Exit status: 0 with an estimate, 1 where there is no gap to make one for.";

/// Options of `predict`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    store: StoreOptions,
    /// Application, as the catalogue names it.
    #[arg(long, value_name = "NAME")]
    app: String,
    /// Resource.
    #[arg(long, value_name = "NAME")]
    resource: String,
    /// Earliest start, with a zone. [default: now]
    #[arg(long, value_name = "DATETIME")]
    after: Option<DateTime>,
    /// Latest completion, with a zone.
    #[arg(long, value_name = "DATETIME")]
    before: DateTime,
    /// Nodes.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    nodes: u32,
    /// Party: its own runs say most.
    #[arg(long, value_name = "NAME")]
    party: Option<String>,
    /// An argument; several times for several, in order. Without any, runs of all arguments are taken.
    #[arg(long = "argument", value_name = "TEXT", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// The requester's own duration in seconds, which counts if nothing is known of the application.
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(1..))]
    seconds: Option<Seconds>,
    /// Bytes to bring before the start.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    input_bytes: u64,
    /// Bytes to take away after the end.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    output_bytes: u64,
    /// Probability with which the slot must hold the work.
    #[arg(long, value_name = "P", default_value_t = SLOT_PROBABILITY, value_parser = probability)]
    probability: f64,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(p) if p > 0.0 && p < 1.0 => Ok(p),
        _ => Err("a number between 0 and 1 is expected".to_owned()),
    }
}

pub(in crate::cli) async fn run(options: Options) -> Result<(), Failure> {
    let config = Config::load(options.store.config.as_deref())?;
    let settings = config.planner();
    let templates = Templates::load(&config.templates()?, &settings)
        .map_err(|why| Failure::Usage(format!("configuration: {why}")))?;
    let now = Clock::system().now();
    let after = options.after.map_or(now, |after| Time(after.ceil()));
    let window = Interval::new(after, Time(options.before.floor()));
    if window.is_empty() {
        return Err(Failure::Usage(
            "--before: an instant after --after is expected".to_owned(),
        ));
    }
    let store = options.store.open().await?;
    let plan = plan(&store, &options.resource).await?;
    let Some(start) = plan.earliest_fit(options.nodes, 1, window) else {
        return Err(Failure::Refused(format!(
            "no gap: {} does not have {} nodes free for a second from {} to {}, so nothing is estimated",
            options.resource,
            options.nodes,
            instant(window.start),
            instant(window.end)
        )));
    };
    let gap = Interval::new(start, window.end);
    let work = Work {
        application: &options.app,
        version: None,
        arguments: (!options.arguments.is_empty()).then_some(&options.arguments[..]),
        party: options.party.as_deref(),
        resource: Some(&options.resource),
        nodes: Some(options.nodes),
        input_bytes: Some(options.input_bytes),
        output_bytes: Some(options.output_bytes),
        uploaded_bytes: 0,
    };
    let given = Given {
        requested: options.seconds,
        default: templates.duration(),
    };
    let explanation = learn(&store, config.predictions(), now).await?.explain(
        &work,
        gap,
        given,
        (options.probability * 1e6) as u32,
    );
    let slot = explanation
        .decides
        .as_ref()
        .map_or(explanation.estimate.completion, |slot| slot.slot);
    let placement = plan
        .earliest_fit(options.nodes, slot, window)
        .map(|start| Interval::of(start, slot));
    if options.json {
        print_json(&as_json(&explanation, gap, placement));
    } else {
        print(&options, &explanation, gap, placement);
    }
    Ok(())
}

/// The free part of a resource, from the stored data.
async fn plan(store: &Store, resource: &str) -> Result<SlotTree, Failure> {
    let resources = store.resources().await?;
    let Some(known) = resources.iter().find(|known| known.name == resource) else {
        let names: Vec<&str> = resources.iter().map(|known| known.name.as_str()).collect();
        return Err(Failure::Usage(format!(
            "--resource: there is no {resource:?}; the store has {}",
            names.join(", ")
        )));
    };
    let mut plan = SlotTree::new(known.capacity);
    for agreement in store.live_agreements().await? {
        if agreement.resource != resource {
            continue;
        }
        let loads = agreement.loads().into_iter();
        for (busy, nodes) in loads.filter(|(busy, _)| !busy.is_empty()) {
            plan.reserve(busy, nodes).map_err(|why| {
                Failure::Refused(format!(
                    "agreement {}: {why}; `bespeak verify` says more",
                    agreement.id
                ))
            })?;
        }
    }
    Ok(plan)
}

fn print(options: &Options, explanation: &Explanation, gap: Interval, placement: Option<Interval>) {
    say!(
        "{} on {}, {} node{}, in a gap from {} to the deadline {}",
        options.app,
        options.resource,
        options.nodes,
        if options.nodes == 1 { "" } else { "s" },
        instant(gap.start),
        instant(gap.end)
    );
    for (step, number) in explanation.estimate.steps.iter().zip(1..) {
        say!("  {number}. {step}");
    }
    match &explanation.decides {
        None => say!("slot: the estimate itself, as nothing is known of how far it may be wrong"),
        Some(slot) => say!(
            "slot: {} s hold it with probability {} ({} runs most like it, {} outcomes to calibrate by)",
            slot.slot,
            slot.probability,
            slot.runs,
            slot.outcomes
        ),
    }
    if let Some(confidence) = explanation.decides.as_ref().map(|of| of.confidence) {
        say!("started at once, it completes before the deadline with probability {confidence:.3}");
    }
    match placement {
        Some(slot) => say!("earliest slot: {} to {}", instant(slot.start), instant(slot.end)),
        None => say!("no gap in the window is as long as the slot"),
    }
}

fn as_json(explanation: &Explanation, gap: Interval, placement: Option<Interval>) -> Value {
    let estimate = &explanation.estimate;
    let interval = |of: Interval| json!({ "start": instant(of.start), "end": instant(of.end) });
    json!({
        "gap": interval(gap),
        "steps": estimate.steps.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "prologSeconds": estimate.prolog,
        "executionSeconds": estimate.execution,
        "epilogSeconds": estimate.epilog,
        "completionSeconds": estimate.completion,
        "slot": explanation.decides.as_ref().map(|slot| json!({
            "seconds": slot.slot,
            "probability": slot.probability,
            "runs": slot.runs,
            "outcomes": slot.outcomes,
        })),
        "confidence": explanation.decides.as_ref().map(|of| of.confidence),
        "earliest": placement.map(interval),
    })
}
