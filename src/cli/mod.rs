//! The command line: clients, operators and `serve`, and the configuration file. A file has a subcommand, or several of one subject.

/// Writes a line to standard output, and ends the command when there is no reader any more.
macro_rules! say {
    ($($words:tt)*) => { advisor::output_line::say_output_line("bespeak", 3, format_args!($($words)*)) };
}

mod client;
mod config;
mod failure;
mod manual;
mod money;
mod operator;
mod serve;
mod table;
mod times;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use scheduler::Time;
use store::Store;
use task::THREAD_KEPT;
use wsag::time::DateTime;

pub use failure::Failure;

const EXAMPLES: &str = "\
Examples:
  bespeak serve                                start on 127.0.0.1:8080 with a store in ./bespeak-data
  bespeak negotiate --nodes 2 --for 2h --before 'tomorrow 18:00'
  bespeak offer examples/sleep.xml             offer, and see the agreement
  bespeak watch ID                             follow an agreement to its end
  bespeak key add --party physics --role consumer

Experiments without a service (simulate, replay, bench planner, advise and calibrate on a trace) are in bespeak-lab.

Exit status:
  0  done
  1  refused, not found, or (verify) something is wrong
  2  wrong usage, configuration or document
  3  the service cannot be reached or cannot answer now
  4  not allowed: no key, or a wrong one";

/// The commands in groups, as the help lists them.
const GROUPS: [(&str, &str); 3] = [
    (
        "Clients",
        "templates negotiate negotiations accept release offer agreements show explain watch change terminate \
         output files call-backs usage ledger",
    ),
    (
        "Operators",
        "serve health config key resources nodes maintenance peers move evict reload cluster trail verify backup restore \
         completions man",
    ),
    ("Analysis", "predict calibrate executions advise"),
];

/// Negotiated, guaranteed reservations of computing capacity in advance.
#[derive(Debug, Parser)]
#[command(name = "bespeak", version, about, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    server: client::Server,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service.
    Serve(serve::Options),
    /// Ask whether the service on this machine is ready.
    Health(operator::health::Options),
    /// List the templates that offers are made from.
    #[command(after_help = "Examples:\n  bespeak templates\n  bespeak templates --json")]
    Templates,
    /// Negotiate: ask for capacity, and see the offers in a table.
    Negotiate(client::negotiations::NegotiateOptions),
    /// List your negotiations, newest first, with the offers that are held for you.
    Negotiations(client::negotiations::Options),
    /// Accept an offer that `negotiate` has printed.
    Accept(client::offers::AcceptOptions),
    /// Release what is held for you: one offer, or all offers of a negotiation, which ends.
    Release(client::offers::ReleaseOptions),
    /// Change an agreement: ask for the price of another size or window, and with `--yes` accept it.
    Change(client::change::Options),
    /// Offer: send an AgreementOffer document, and see the agreement.
    Offer(client::offers::OfferOptions),
    /// List your agreements, newest first.
    Agreements(client::agreements::Options),
    /// Show an agreement and its timeline.
    #[command(
        after_help = "Examples:\n  bespeak show 01a1fc5d835f\n  bespeak show nightly        by its name"
    )]
    Show(client::AgreementOptions),
    /// Explain the place of an agreement, or the answers to offers.
    Explain(client::explain::Options),
    /// Follow an agreement until it ends.
    Watch(client::agreements::WatchOptions),
    /// End an agreement before its time; an operator can end the agreement of any party.
    Terminate(client::terminate::Options),
    /// Move a waiting agreement of a party inside what was agreed (operators).
    Move(operator::move_to::Options),
    /// End an agreement of a party with a reason, and pay for it (operators).
    Evict(operator::evict::Options),
    /// Print, list or remove the output of an agreement's job.
    Output(client::job_output::Options),
    /// Upload, list, fetch and remove files that your jobs may read.
    Files(client::files::Options),
    /// Have the events of your agreements told to an address, or list them.
    CallBacks(client::call_backs::Options),
    /// Show how much of the resources you have and may have; operators see that of all parties.
    Usage(client::usage::Options),
    /// Advise on the order, the fixing and the alternatives that earn, use or serve most, on a trace and by your price list.
    Advise(operator::advise::Options),
    /// Predict how long an application takes on a resource, step by step, with its probability.
    Predict(client::predict::Options),
    /// Report how well run-time predictions were calibrated.
    Calibrate(operator::calibrate::Options),
    /// Show how often applications ran, how the runs ended and how long they took.
    Executions(client::executions::Options),
    /// Show the ledger: balances and postings.
    Ledger(operator::ledger::Options),
    /// Show the resources, or add and change them (operators).
    Resources(operator::resources::Options),
    /// Show the states of nodes, or set them (operators).
    Nodes(operator::nodes::Options),
    /// Show planned times without nodes, or add and remove them (operators).
    Maintenance(operator::maintenance::Options),
    /// Show the other domains that this one negotiates with (operators).
    Peers(operator::peers::Options),
    /// Have the service read its configuration file again (operators).
    Reload(operator::config::ReloadOptions),
    /// Check the configuration, also against the running service.
    Config(operator::config::Options),
    /// Check the clusters of the configuration, before or beside the service.
    Cluster(operator::cluster::Options),
    /// Print the audit trail: everything that has happened, for operators.
    Trail(operator::trail::Options),
    /// Make, list, revoke and expire API keys, in the store itself or with `--remote` over the service.
    Key(operator::key::Options),
    /// Check the stored state for consistency.
    Verify(operator::verify::Options),
    /// Back up everything that the service keeps, while it serves.
    Backup(operator::backup::Options),
    /// Restore a backup to an empty database and data folder, or rehearse that.
    Restore(operator::backup::restore::Options),
    /// Print the completions of a shell.
    Completions(manual::CompletionsOptions),
    /// Print the manual, or write a page for each command into a folder.
    Man(manual::ManOptions),
    /// Watch over one job: started by the service, not by people.
    #[command(hide = true)]
    Supervise {
        /// The job's folder.
        job: PathBuf,
    },
    /// Become a job: started by its supervisor, not by people.
    #[command(hide = true)]
    Launch {
        /// The job's folder.
        job: PathBuf,
    },
}

/// The commands that work on files and the store with all commands below them, and ask no service unless an option of [`WITH_SERVICE`]
/// says so.
const WITHOUT_SERVICE: [&str; 14] = [
    "serve",
    "health",
    "config",
    "key",
    "verify",
    "backup",
    "restore",
    "predict",
    "calibrate",
    "executions",
    "advise",
    "cluster",
    "completions",
    "man",
];

/// The options with which a command of [`WITHOUT_SERVICE`] asks the service.
const WITH_SERVICE: [&str; 2] = ["remote", "running"];

/// The command line, with its commands in groups, and examples for each command.
fn build_command_line() -> clap::Command {
    let command = Cli::command().mut_subcommands(|command| {
        let (name, examples) = (command.get_name().to_owned(), command_line_help_after(&command));
        command.mut_subcommands(|below| {
            if below.get_after_help().is_some() {
                return below;
            }
            let begin = format!("  bespeak {name} {}", below.get_name());
            let is_own = |line: &&str| line.starts_with(&begin);
            let own: Vec<&str> = examples.lines().filter(is_own).collect();
            below.after_help(format!("Examples:\n{}", own.join("\n")))
        })
    });
    let mut groups = String::new();
    for (heading, names) in GROUPS {
        groups += &format!("\n{heading}:\n");
        for verb in names.split(' ').filter_map(|name| command.find_subcommand(name)) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            groups += &format!("  {:<13} {about}\n", verb.get_name());
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// What the help of a command says after its options.
fn command_line_help_after(command: &clap::Command) -> String {
    command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// Refuses the address or the key of a service for a command that asks none.
fn refuse_service_options(matches: &clap::ArgMatches) -> Result<(), Failure> {
    let mut at = matches;
    let mut path = Vec::new();
    while let Some((name, below)) = at.subcommand() {
        path.push(name);
        at = below;
    }
    let asks = |option: &&str| matches!(at.try_get_one(option), Ok(Some(true)));
    if WITH_SERVICE.iter().any(asks) {
        return Ok(());
    }
    let path = path.join(" ");
    let is_of = |name: &&str| {
        let below = path.strip_prefix(*name);
        below.is_some_and(|below| below.is_empty() || below.starts_with(' '))
    };
    let is_given = |id| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    let given = [("address", "--server"), ("key", "--key")];
    let given = given.into_iter().find(|(id, _)| is_given(id));
    match given {
        Some((_, option)) if WITHOUT_SERVICE.iter().any(is_of) => Err(Failure::Usage(format!(
            "{option} does nothing here: `bespeak {path}` asks no service; it works with what is on this machine"
        ))),
        _ => Ok(()),
    }
}

/// Reads the command line; a mistake is told as JSON where that is wanted.
fn read_command_line() -> Result<Cli, ExitCode> {
    let read = build_command_line().try_get_matches().and_then(|mut matches| {
        let asked = refuse_service_options(&matches);
        Cli::from_arg_matches_mut(&mut matches).map(|cli| (cli, asked))
    });
    match read {
        Ok((cli, Ok(()))) => Ok(cli),
        Ok((cli, Err(why))) => Err(report_command_result(Err(why), cli.server.json)),
        Err(why) if why.use_stderr() && std::env::args_os().any(|word| word == "--json") => Err(
            report_command_result(Err(Failure::Usage(why.to_string().trim_end().to_owned())), true),
        ),
        Err(why) => why.exit(),
    }
}

/// Where the service keeps its durable state and its configuration: the same for every command that works on it directly.
#[derive(Debug, Clone, Args)]
pub struct StoreOptions {
    /// Folder of the durable state: the embedded store, keys, files and jobs.
    #[arg(
        long,
        env = "BESPEAK_DATA_DIR",
        default_value = "bespeak-data",
        value_name = "DIR"
    )]
    pub data_dir: PathBuf,
    /// Database: `postgres://…` or `sqlite:PATH`. [default: `sqlite:DATA_DIR/bespeak.db`]
    #[arg(
        long,
        env = "BESPEAK_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub database_url: Option<String>,
    /// Resources, applications, templates and limits (TOML); `bespeak.example.toml` documents every key.
    #[arg(long, env = "BESPEAK_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl StoreOptions {
    /// Opens the store that is there.
    async fn open(&self) -> Result<Store, Failure> {
        Ok(Store::open_existing(&self.database_url()).await?)
    }

    /// The database to open.
    pub fn database_url(&self) -> String {
        self.database_url
            .clone()
            .unwrap_or_else(|| format!("sqlite:{}", self.data_dir.join("bespeak.db").display()))
    }
}

/// The file of a data folder that a restore has not filled yet: no service starts there.
const RESTORING: &str = "restore-incomplete";

/// How long work off the async threads may take to end when everything else has ended.
const SHUTDOWN: std::time::Duration = std::time::Duration::from_secs(2);

/// Reads the command line and carries it out.
pub fn run() -> ExitCode {
    let Cli { server, command } = match read_command_line() {
        Ok(read) => read,
        Err(code) => return code,
    };
    // The supervisor of a job is a process of its own, single-threaded and small.
    let command = match command {
        Command::Supervise { job } => return execution::job::supervisor::run_supervisor(&job),
        Command::Launch { job } => return execution::job::launch::launch_job(&job),
        command => command,
    };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = match runtime.enable_all().thread_keep_alive(THREAD_KEPT).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("bespeak: cannot start: {error}");
            return ExitCode::from(3);
        }
    };
    let as_json = server.json;
    let result = runtime.block_on(async {
        let server = &server;
        match command {
            Command::Serve(options) => Box::pin(serve::run_service(options)).await,
            Command::Health(options) => operator::health::check_health(options).await,
            Command::Templates => client::templates::list_templates(server).await,
            Command::Negotiate(options) => client::negotiations::negotiate(options, server).await,
            Command::Negotiations(options) => client::negotiations::list_negotiations(options, server).await,
            Command::Accept(options) => client::offers::accept_held_offer(options, server).await,
            Command::Release(options) => client::offers::release_held_offers(options, server).await,
            Command::Change(options) => client::change::change_agreement(options, server).await,
            Command::Offer(options) => client::offers::make_offer(options, server).await,
            Command::Agreements(options) => client::agreements::list_agreements(options, server).await,
            Command::Show(options) => client::agreements::show_agreement(options, server).await,
            Command::Explain(options) => client::explain::explain_decision(options, server).await,
            Command::Watch(options) => client::agreements::watch_agreement(options, server).await,
            Command::Terminate(options) => client::terminate::terminate_agreement(options, server).await,
            Command::Output(options) => client::job_output::print_job_output(options, server).await,
            Command::Files(options) => client::files::manage_files(options, server).await,
            Command::CallBacks(options) => client::call_backs::manage_call_backs(options, server).await,
            Command::Usage(options) => client::usage::show_usage(options, server).await,
            Command::Advise(options) => operator::advise::advise_policy(&options),
            Command::Predict(options) => {
                Box::pin(client::predict::predict_offer_slot(options, as_json)).await
            }
            Command::Calibrate(options) => operator::calibrate::calibrate_predictions(options, as_json).await,
            Command::Executions(options) => client::executions::list_executions(options, as_json).await,
            Command::Ledger(options) => operator::ledger::show_ledger(options, server).await,
            Command::Resources(options) => operator::resources::manage_resources(options, server).await,
            Command::Peers(options) => operator::peers::manage_peers(options, server).await,
            Command::Reload(options) => operator::config::reload_config(options, server).await,
            Command::Nodes(options) => operator::nodes::manage_nodes(options, server).await,
            Command::Move(options) => operator::move_to::move_agreement(options, server).await,
            Command::Evict(options) => operator::evict::evict_agreement(options, server).await,
            Command::Maintenance(options) => operator::maintenance::manage_maintenance(options, server).await,
            Command::Config(options) => Box::pin(operator::config::check_config(options, server)).await,
            Command::Cluster(options) => operator::cluster::manage_clusters(options, as_json),
            Command::Trail(options) => operator::trail::print_trail(options, server).await,
            Command::Key(options) => operator::key::manage_keys(options, server).await,
            Command::Verify(options) => operator::verify::verify_store(options, as_json).await,
            Command::Backup(options) => Box::pin(operator::backup::make_backup(options, as_json)).await,
            Command::Restore(options) => {
                Box::pin(operator::backup::restore::restore_backup(options, as_json)).await
            }
            Command::Completions(options) => {
                manual::print_completions(&options);
                Ok(())
            }
            Command::Man(options) => manual::write_manual(&options),
            Command::Supervise { .. } | Command::Launch { .. } => Ok(()),
        }
    });
    // A call of an executor that hangs has a thread of its own, and is not waited for.
    runtime.shutdown_timeout(SHUTDOWN);
    report_command_result(result, as_json)
}

/// An instant in UTC.
fn instant_in_utc(time: Time) -> String {
    DateTime::from_seconds(time.seconds()).to_string()
}

fn report_command_result(result: Result<(), Failure>, as_json: bool) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // One that was told as JSON has no words left.
            let words = failure.to_string();
            if as_json && !words.is_empty() {
                client::print_json(&serde_json::json!({ "detail": words }));
            } else if !words.is_empty() {
                eprintln!("bespeak: {words}");
            }
            failure.exit_code()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_has_examples() {
        let command = build_command_line();
        command.clone().debug_assert();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.split(' ')).collect();
        listed.sort_unstable();
        let visible = command
            .get_subcommands()
            .filter(|get_subcommand| !get_subcommand.is_hide_set());
        let visible: Vec<&clap::Command> = visible.collect();
        let mut names: Vec<&str> = visible.iter().map(|visible| visible.get_name()).collect();
        names.sort_unstable();
        assert_eq!(listed, names);
        for verb in visible {
            let name = verb.get_name();
            assert!(
                command_line_help_after(verb).contains("Examples:\n  bespeak "),
                "{name}"
            );
            for below in verb.get_subcommands() {
                let example = format!("Examples:\n  bespeak {name} {}", below.get_name());
                assert!(command_line_help_after(below).contains(&example), "{example}");
            }
        }
        for path in WITHOUT_SERVICE {
            let below = |command: &clap::Command, name| command.find_subcommand(name).cloned();
            let mut names = path.split(' ');
            let found = names.try_fold(command.clone(), |one_name, name| below(&one_name, name));
            assert!(found.is_some(), "{path}");
        }
    }
}
