//! `bespeak predict`: where an offer would go, how long its slot would be, and why.

use clap::Args;
use domain::agreement::{BarredResource, Job, Shape, Source, StagedFile};
use domain::clock::Clock;
use domain::resources::{Resource, Scaling};
use execution::files::inputs::InputFiles;
use learning::learn_from_store;
use planner::{Request, Settings, TrialResult, TriedPlace};
use prediction::{Explanation, GivenDurations, Knowledge, Predictions, STATED_RUNS_MIN, Work};
use scheduler::domain::Objective;
use scheduler::{Interval, Seconds, Time, counted};
use serde_json::{Map, Value, json};
use store::resources;
use uuid::Uuid;
use writer::{StartError, try_proposal};
use wsag::time::DateTime;

use super::options::{parse_probability_option, parse_seconds_option};
use super::print_json;
use crate::cli::config::Config;
use crate::cli::times::{FORMS, parse_time};
use crate::cli::{Failure, StoreOptions, instant_in_utc};
use service::{Templates, millionths};

const EXAMPLES: &str = "\
Examples:
  bespeak predict --app solve --argument case-7 --before 2030-01-02T18:00:00Z
  bespeak predict --app solve --resource local --nodes 4 --argument case-7 --party physics \\
      --after 2030-01-02T08:00:00Z --before 2030-01-02T18:00:00Z --input-bytes 1000000000

The answer is the place that an offer would get if it were made now: the same code decides. Without --resource it lists the
candidates and says why one of them is chosen. The paper's estimate is that of past executions on the resource, corrected by
the free share of its processors and by the trust in it, with the transfers before and after. The estimate that decides is a
distribution of the same parts, each as far as it has proved true; `bespeak calibrate` shows that. A slot without --for
holds the work with a stated probability; none is stated on fewer than ten runs. The service may run meanwhile.

Exit status: 0 with a place, 1 where there is none, 2 for an unknown application or resource, or for arguments that the
application does not take.";

/// Options of `predict`.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{FORMS}"))]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    store: StoreOptions,
    /// Application, as the catalogue names it.
    #[arg(long, value_name = "NAME")]
    app: String,
    /// The only resource to look at. Without it all are compared.
    #[arg(long, value_name = "NAME")]
    resource: Option<String>,
    /// Earliest start. [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    after: Option<DateTime>,
    /// Latest completion.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    before: DateTime,
    /// Nodes.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    nodes: u32,
    /// Party: its own runs say most.
    #[arg(long, value_name = "NAME", default_value = "")]
    party: String,
    /// An argument; several times for several, in order.
    #[arg(long = "argument", value_name = "TEXT", allow_hyphen_values = true)]
    arguments: Vec<String>,
    /// The duration that the offer states: its slot is as long as that everywhere.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_seconds_option)]
    seconds: Option<Seconds>,
    /// Bytes to bring from elsewhere before the start.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    input_bytes: u64,
    /// Bytes to send elsewhere after the end.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    output_bytes: u64,
    /// Probability with which the slot must hold the work. [default: that of the first template]
    #[arg(long, value_name = "P", value_parser = parse_probability_option)]
    probability: Option<f64>,
}

/// What was asked, and the answer.
struct PredictOutput<'a> {
    options: &'a Options,
    window: Interval,
    proposal: Request,
    known: &'a Knowledge,
    ppm: u32,
    given: GivenDurations,
    tried: TrialResult,
    /// The criterion for the better of two places.
    objective: &'static str,
}

pub(in crate::cli) async fn predict_offer_slot(options: Options, as_json: bool) -> Result<(), Failure> {
    let mut config = Config::load(options.store.config.as_deref())?;
    if let Some(why) = config.read_energy_series().await? {
        eprintln!("{why}; the service may know the prices of energy, and choose otherwise");
    }
    let mut settings = config.planner();
    let clock = Clock::system();
    let after = options.after.map_or(clock.now(), |after| Time(after.ceil()));
    let window = Interval::new(after, Time(options.before.floor()));
    if window.is_empty() {
        return Err(Failure::Usage(
            "--before: an instant after --after is expected".to_owned(),
        ));
    }
    let job = predicted_job(&options, &config)?;
    let store = options.store.open().await?;
    let stored = resources::all_resources(&store)
        .await?
        .into_iter()
        .map(Resource::of_row);
    settings.resources = stored.collect::<Result<_, _>>().map_err(store::Error::from)?;
    settings.resources.retain(Resource::takes_new);
    let templates = Templates::load(&config.templates()?, &settings)
        .map_err(|why| Failure::Usage(format!("configuration: {why}")))?;
    let barred = bar_others_than_predicted(options.resource.as_deref(), &settings)?;
    let knowledge = learn_from_store(&store, config.predictions(), clock.now()).await?;
    let probability = options.probability.unwrap_or(templates.slot_probability());
    let learned = templates.sized(&knowledge, (&options.party, &job), options.nodes, probability);
    let (duration, scaling) = match (options.seconds, learned) {
        (Some(seconds), _) => (seconds, Scaling::Contract),
        (None, Some(learned)) => learned,
        (None, None) => (templates.duration(), Scaling::Contract),
    };
    let nodes = options.nodes;
    let proposal = Request {
        scaling,
        barred,
        ready: Some(window.start),
        deadline: Some(window.end),
        job: Some(job),
        ..Request::new(Uuid::now_v7(), &options.party, vec![Shape { nodes, duration }])
    };
    let predictions = Predictions::of(knowledge);
    let known = predictions.now();
    settings.predictions = Some(predictions);
    let tried = try_proposal(&settings, &store, &clock, &proposal)
        .await
        .map_err(|why| match why {
            StartError::Store(why) => why.into(),
            inconsistent @ StartError::Inconsistent(_) => {
                Failure::Refused(format!("{inconsistent}; `bespeak verify` says more"))
            }
            unconfigured @ StartError::Unconfigured(_) => Failure::Refused(unconfigured.to_string()),
        })?;
    let predicted = PredictOutput {
        given: GivenDurations {
            requested: options.seconds,
            default: templates.duration(),
        },
        objective: printed_prediction_criterion(settings.objective),
        options: &options,
        window,
        proposal,
        known: &known,
        ppm: millionths(probability),
        tried,
    };
    if as_json {
        print_json(&predicted.as_json()?);
    } else {
        predicted.print()?;
    }
    Ok(())
}

/// The criterion for the better of two places, in words.
fn printed_prediction_criterion(objective: Objective) -> &'static str {
    match objective {
        Objective::EarliestCompletion => "the earliest expected completion",
        Objective::Cheapest => "the least cost with the expected penalties",
        Objective::LatestStart => "the latest start",
        Objective::LeastWorkLost => "the least work lost",
    }
}

/// The job of the offer. Its arguments are checked against the application, and the options give the size of its files.
fn predicted_job(options: &Options, config: &Config) -> Result<Job, Failure> {
    let catalogue = config.catalogue()?;
    let Some(application) = catalogue.find(&options.app, None) else {
        let known: Vec<&str> = catalogue
            .applications()
            .iter()
            .map(|application| application.name.as_str())
            .collect();
        return Err(Failure::Usage(format!(
            "--app: the application {} is not in the catalogue; it has {}",
            options.app,
            known.join(", ")
        )));
    };
    let files = InputFiles::new(&options.store.data_dir, config.limits.party_files_mib << 20)
        .map_err(Failure::unavailable)?;
    application
        .check(&options.arguments, |name| {
            files.find(&options.party, name).is_some()
        })
        .map_err(|wrong| Failure::Usage(format!("--argument: {wrong}")))?;
    let input = (options.input_bytes > 0).then(|| StagedFile {
        source: Some(Source::Address(String::new())),
        bytes: Some(options.input_bytes),
        ..StagedFile::default()
    });
    let output = (options.output_bytes > 0).then(|| StagedFile {
        target: Some(String::new()),
        bytes: Some(options.output_bytes),
        ..StagedFile::default()
    });
    Ok(Job {
        application: application.name.clone(),
        version: application.version.clone(),
        arguments: options.arguments.clone(),
        staging: input.into_iter().chain(output).collect(),
        ..Job::default()
    })
}

/// The resources that are not to be looked at.
fn bar_others_than_predicted(
    resource: Option<&str>,
    settings: &Settings,
) -> Result<Vec<BarredResource>, Failure> {
    let Some(only) = resource else {
        return Ok(Vec::new());
    };
    let names = || settings.resources.iter().map(|resource| resource.name.as_str());
    if !names().any(|name| name == only) {
        return Err(Failure::Usage(format!(
            "--resource: there is no {only:?} in service; there is {}",
            names().collect::<Vec<_>>().join(", ")
        )));
    }
    let barred = |name: &str| BarredResource {
        resource: name.to_owned(),
        sizes: Vec::new(),
        why: format!("--resource {only}"),
    };
    Ok(names().filter(|name| *name != only).map(barred).collect())
}

impl PredictOutput<'_> {
    /// The chosen place: a resource, and the slot there.
    fn chosen(&self) -> Result<(&str, Interval), Failure> {
        match &self.tried.placed {
            Ok(agreement) => Ok((&agreement.resource, agreement.placement())),
            Err(refusal) => Err(Failure::Refused(format!(
                "no gap from {} to {}: {}",
                instant_in_utc(self.window.start),
                instant_in_utc(self.window.end),
                refusal.binding
            ))),
        }
    }

    /// The prediction for the work where it starts with a slot.
    fn explained(&self, resource: &str, slot: Interval) -> Explanation {
        let party = &self.options.party;
        let work = self.proposal.job.as_ref().map(|job| Work {
            resource: Some(resource),
            ..Work::of_job(party, job, self.options.nodes)
        });
        let work = work.unwrap_or(Work::of(&self.options.app));
        let gap = Interval::new(slot.start, self.window.end);
        self.known
            .explain(&work, gap, slot.duration(), self.given, self.ppm)
    }

    fn places(&self) -> impl Iterator<Item = &TriedPlace> {
        let only = self.options.resource.as_deref();
        self.tried
            .places
            .iter()
            .filter(move |place| only.is_none_or(|only| only == place.resource))
    }

    fn print(&self) -> Result<(), Failure> {
        let (resource, slot) = self.chosen()?;
        let Options { app, nodes, .. } = self.options;
        say!(
            "{app}, {}, from {} to the deadline {}",
            counted(nodes, "node"),
            instant_in_utc(self.window.start),
            instant_in_utc(self.window.end)
        );
        if self.options.resource.is_none() {
            say!("candidates, each with its best free slot:");
            for place in self.places() {
                say!("  {}", predicted_place_line(place));
            }
        }
        let why = match self.places().count() {
            1 => "the only candidate",
            _ => self.objective,
        };
        say!("chosen: {resource}, by {why}");
        say!(
            "slot: {} to {}, {} s",
            instant_in_utc(slot.start),
            instant_in_utc(slot.end),
            slot.duration()
        );
        let Explanation { estimate, decides } = self.explained(resource, slot);
        say!("the estimate of paper 004 on {resource}:");
        for (step, number) in estimate.steps.iter().zip(1..) {
            say!("  {number}. {step}");
        }
        let Some(decides) = decides else {
            say!("nothing is known of how far it may be wrong: no execution of {app} has ended");
            return Ok(());
        };
        let how = match self.proposal.scaling {
            Scaling::Contract => "the slot is as long as was stated",
            _ => "the slot is this long",
        };
        say!("what decides ({how}):");
        for line in decides.lines() {
            say!("  {line}");
        }
        if let Some(in_slot) = decides.stated(decides.in_slot) {
            say!(
                "it ends in its slot with probability {in_slot:.3}, before the deadline with {:.3}; {} outcomes calibrate that",
                decides.confidence,
                decides.outcomes
            );
        } else {
            say!(
                "no probability is stated: there are fewer runs than {STATED_RUNS_MIN}, {}",
                decides.runs
            );
        }
        say!(
            "expected completion: {}",
            instant_in_utc(slot.start + decides.completion)
        );
        Ok(())
    }

    fn as_json(&self) -> Result<Value, Failure> {
        let (resource, slot) = self.chosen()?;
        let places = self.places().map(|place| {
            let explained = place.slot.map(|slot| self.members(&place.resource, slot));
            let mut members = explained.unwrap_or_default();
            members.insert("resource".to_owned(), json!(place.resource));
            Value::Object(members)
        });
        let mut chosen = self.members(resource, slot);
        chosen.insert("resource".to_owned(), json!(resource));
        chosen.insert("by".to_owned(), json!(self.objective));
        chosen.insert("candidates".to_owned(), places.collect());
        Ok(Value::Object(chosen))
    }

    /// The prediction for a slot on a resource.
    fn members(&self, resource: &str, slot: Interval) -> Map<String, Value> {
        let Explanation { estimate, decides } = self.explained(resource, slot);
        let interval = |interval: Interval| json!({ "start": instant_in_utc(interval.start), "end": instant_in_utc(interval.end) });
        let parts = decides.as_ref().map(|decide| {
            let part = |(part, share, value): &(scheduler::prediction::Part, f64, f64)| {
                json!({ "part": part.word(), "share": share, "value": value })
            };
            decide.parts.iter().map(part).collect::<Vec<_>>()
        });
        let members = json!({
            "gap": interval(Interval::new(slot.start, self.window.end)),
            "steps": estimate.steps.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "prologSeconds": estimate.prolog,
            "executionSeconds": estimate.execution,
            "epilogSeconds": estimate.epilog,
            "completionSeconds": estimate.completion,
            "slot": decides.as_ref().map(|explanation| json!({
                "seconds": slot.duration(),
                "probability": explanation.stated(explanation.in_slot),
                "runs": explanation.runs,
                "outcomes": explanation.outcomes,
            })),
            "parts": parts,
            "kept": decides.as_ref().map(|decide| decide.kept),
            "expectedCompletion": decides.as_ref().map(|decide| instant_in_utc(slot.start + decide.completion)),
            "confidence": decides.as_ref().and_then(|explanation| explanation.stated(explanation.confidence)),
            "earliest": interval(slot),
        });
        match members {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

/// A candidate in a line.
fn predicted_place_line(place: &TriedPlace) -> String {
    match (place.slot, place.completes) {
        (Some(slot), Some(completes)) => format!(
            "{}: {} to {}, {} s; completes {}",
            place.resource,
            instant_in_utc(slot.start),
            instant_in_utc(slot.end),
            slot.duration(),
            instant_in_utc(completes)
        ),
        _ => format!("{}: no free slot in the window", place.resource),
    }
}
