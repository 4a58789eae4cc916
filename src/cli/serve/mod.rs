//! `bespeak serve`: puts the parts together, in the order in which they need each other, and takes them apart again.

pub(super) mod check;
pub(super) mod descriptors;
mod executors;
mod heads;
mod manager;
mod peers;
mod prices;
mod process;
pub(super) mod reload;
mod replicas;
mod standby;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{ErrorKind, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use domain::catalogue::{Application, Catalogue};
use domain::clock::Clock;
use execution::files::inputs::InputFiles;
use execution::files::job_folders::JobFolders;
use learning::LearningPace;
use planner::Settings;
use prediction::{Knowledge, Predictions};
use scheduler::Seconds;
use store::{Lease, Store, resources};
use task::Keeper;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use writer::{Planner, StartError};

use self::manager::Manager;
use self::process::Process;
use super::config::Config;
use super::{Failure, RESTORING, StoreOptions};
use crate::access::{Access, OperatorKey};
use crate::callbacks::{CallBacks, DroppedCounts};
use crate::http::RequestLimits;
use crate::service::{self, Service};

/// How long a start waits for the first look at the clusters, to be ready with them.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// How long a task that works every few seconds may do nothing until it counts as late, one that works every few minutes, and one that
/// works every hour. Each leaves room for a store that is away for a moment.
const SOON: Duration = Duration::from_mins(2);
const SELDOM: Duration = Duration::from_mins(15);
const HOURLY: Duration = Duration::from_hours(3);
/// How long a stop waits for the connections to a SQLite file.
const WHOLE_WAIT: Duration = Duration::from_secs(5);
/// How long to wait for an address that is in use, and between two tries: as long as for the lock of the database.
const ADDRESS_WAIT: Duration = Duration::from_secs(10);
const ADDRESS_PAUSE: Duration = Duration::from_millis(20);
/// After how long the log says that it is waited for.
const ADDRESS_TOLD_AFTER: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  bespeak serve
  bespeak serve --listen 0.0.0.0:8443 --data-dir /var/lib/bespeak --config bespeak.toml    (with [tls])
  bespeak serve --database-url postgres://bespeak@localhost/bespeak --config bespeak.toml

Every option is also an environment variable, named in brackets. SIGINT and SIGTERM stop the service; jobs that run go
on, and are followed again at the next start. SIGHUP has the configuration read again, as `bespeak reload` does.";

/// The address on which the service listens. `health` asks there, too.
#[derive(Debug, Args)]
pub(super) struct ListenOption {
    /// Address to listen on; port 0 takes a free one.
    #[arg(
        long,
        env = "BESPEAK_LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "ADDRESS:PORT"
    )]
    pub(super) listen: SocketAddr,
}

/// Options of `serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    #[command(flatten)]
    at: ListenOption,
    /// Listen beyond this machine without a certificate: keys travel in clear, unless a proxy beside the service speaks TLS.
    #[arg(long, env = "BESPEAK_INSECURE")]
    insecure: bool,
    #[command(flatten)]
    store: StoreOptions,
    /// Name of this process among those on one PostgreSQL database; the data folder keeps it. [default: the name of the machine]
    #[arg(long, env = "BESPEAK_REPLICA", value_name = "NAME")]
    replica: Option<String>,
    /// Where the other processes on the database reach this one. [default: where it listens]
    #[arg(long, env = "BESPEAK_REPLICA_ADDRESS", value_name = "HOST:PORT")]
    replica_address: Option<String>,
    /// Format of the log lines on standard error; RUST_LOG chooses the lines.
    #[arg(long, env = "BESPEAK_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

/// Gives the planner the rules of templates and the abilities of applications.
fn note_rules_and_abilities(settings: &mut Settings, templates: &service::Templates, catalogue: &Catalogue) {
    settings.overruns.templates = templates.overruns();
    let grace = |application: &Application| {
        let grace = application.checkpoint.as_ref()?.grace;
        Some((
            (application.name.clone(), application.version.clone()),
            grace.into(),
        ))
    };
    settings.overruns.saving = catalogue.applications().iter().filter_map(grace).collect();
    settings.restarting = templates.restarting();
}

/// Runs the service until it is told to stop.
pub(super) async fn run(options: Options) -> Result<(), Failure> {
    start_log(options.log_format);
    let mut process = Process::begin(options).await?;
    let store = process.store.clone();
    let ended = match Box::pin(process.await_lead()).await? {
        Some(lease) => Box::pin(process.lead(lease)).await,
        None => process.end().await,
    };
    make_whole(&store).await;
    ended
}

/// Leaves a SQLite file whole, without a log beside it. Tasks that end give their connections back meanwhile.
async fn make_whole(store: &Store) {
    match tokio::time::timeout(WHOLE_WAIT, store.make_whole()).await {
        Ok(Ok(())) => {}
        Ok(Err(why)) => warn!(%why, "the database keeps its log beside its file: both belong together"),
        Err(_) => {
            warn!("the database keeps its log beside its file, as it is still in use: both belong together");
        }
    }
}

/// Starts what is done without being asked for.
fn start_looking_after(service: &Service, suggests: Planner, keeper: &Keeper) {
    let proposes = service.clone();
    // There may be nothing to propose.
    keeper.keep(("proposals", Duration::MAX), move |stop| {
        service::propose_changes(proposes.clone(), suggests.subscribe_suggestions(), stop)
    });
    let seeks = service.clone();
    keeper.keep(("places-at-peers", SOON), move |stop| {
        service::seek_places(seeks.clone(), stop)
    });
    // Operators' pages show the last sums, so there have to be some.
    service::show_past_use(service);
}

/// The address of the service where no request names one.
fn own_address(config: &Config, scheme: &str, listening: SocketAddr) -> Arc<str> {
    match &config.public_address {
        Some(address) => address.trim_end_matches('/').into(),
        None => format!("{scheme}://{listening}").into(),
    }
}

/// Begins to make the calls that are stored. Returns the address of the service in them, and the count of those that are dropped.
fn start_call_backs(
    config: &Config,
    store: &Store,
    clock: &Clock,
    (scheme, listening): (&str, SocketAddr),
    keeper: &Keeper,
) -> (Arc<str>, DroppedCounts) {
    let address = own_address(config, scheme, listening);
    let (store, clock, own) = (store.clone(), clock.clone(), Arc::clone(&address));
    let call_backs = CallBacks::new(store, clock, config.call_backs(), own);
    let dropped = call_backs.dropped();
    keeper.keep(("call-backs", SOON), move |stop| call_backs.clone().run(stop));
    (address, dropped)
}

/// The parts of a service while it serves.
struct Tasks {
    manager: Manager,
    served: JoinHandle<()>,
    decided: JoinHandle<()>,
    dispatched: JoinHandle<()>,
    /// How long running work may take to end after the stop.
    patience: Duration,
    /// The requests that run.
    places: RequestLimits,
}

impl Tasks {
    /// Opens the service, and waits until it is told to stop or one of its tasks has ended by itself; stops the others then.
    async fn until_stopped(
        mut self,
        open: impl Future<Output = Infallible>,
        stop: &CancellationToken,
        (planner_stop, told): (&CancellationToken, CancellationToken),
    ) -> Result<(), Failure> {
        let lost = tokio::select! {
            () = told.cancelled() => None,
            never = open => match never {},
            _ = &mut self.decided => Some("the planner has stopped: another process decides now"),
            // Neither should end by itself. The process ends then, so that its supervisor restarts it: without the first no
            // request is answered, without the second no job starts.
            _ = &mut self.served => Some("the HTTP server has stopped by itself"),
            _ = &mut self.dispatched => Some("the dispatcher has stopped by itself"),
        };
        info!("stopping");
        self.manager.stopping();
        stop.cancel();
        // All requests that run are answered first. What clients still read of their answers does not keep another process from the lead.
        if !self.served.is_finished() {
            tokio::select! {
                () = self.places.await_none() => {}
                _ = &mut self.served => {}
            }
        }
        // First the dispatcher, then the planner. Each is waited for once: a task that has ended before cannot be waited for again.
        // The wait has an end: without its store the planner sends no answers. A request without an answer is not promised, so
        // the planner may be cut off.
        if !self.dispatched.is_finished() {
            let _ = tokio::time::timeout(self.patience, self.dispatched).await;
        }
        planner_stop.cancel();
        if !self.decided.is_finished() && tokio::time::timeout(self.patience, self.decided).await.is_err() {
            warn!("the planner still waited for the store and is cut off");
        }
        if !self.served.is_finished() {
            let _ = self.served.await;
        }
        lost.map_or(Ok(()), |why| Err(Failure::Unavailable(why.to_owned())))
    }
}

/// The access rules and the operator's key, which is made at the first start.
async fn open_access(
    store: &Store,
    clock: &Clock,
    (config, data_dir): (&Config, &Path),
    keeper: &Keeper,
) -> Result<(Access, OperatorKey), Failure> {
    let access = Access::new(store.clone(), clock.clone());
    let access = access.with_operators_for(config.keys.operators_last());
    let hears = access.clone();
    // It hears nothing as long as no key changes.
    keeper.keep(("key-changes", Duration::MAX), move |stop| {
        hears.clone().hear_of_changes(stop)
    });
    let key = access.ensure_operator_key(data_dir).await;
    let key = key.map_err(Failure::unavailable)?;
    Ok((access, key))
}

/// The folders of jobs, those on clusters too.
fn open_folders(config: &Config, data_dir: &Path) -> Result<JobFolders, Failure> {
    let folders =
        JobFolders::new(data_dir, Some(config.execution.party_folders())).map_err(Failure::unavailable)?;
    let folders = folders.with_records(config.execution.records().map_err(Failure::Unavailable)?);
    for cluster in config.clusters() {
        folders.add_cluster(&cluster);
    }
    Ok(folders)
}

/// The input files of jobs, as they are by now.
async fn open_input_files(config: &Config, data_dir: &Path, store: &Store) -> Result<InputFiles, Failure> {
    let files = InputFiles::new(data_dir, config.limits.party_files_mib << 20);
    let files = files.map_err(Failure::unavailable)?.kept_in(store);
    files.catch_up().await.map_err(Failure::unavailable)?;
    Ok(files)
}

/// Starts the planner, which the token stops, on a plan that is read while the open state is being checked. Nothing is decided before
/// both have succeeded.
async fn start_planner(
    settings: Settings,
    store: &Store,
    lease: Lease,
    clock: &Clock,
    checking: check::CheckTask,
) -> Result<(Planner, JoinHandle<()>, CancellationToken), Failure> {
    let refused = |why: StartError| Failure::Refused(why.to_string());
    let plan = Planner::read_plan(&settings, store, clock).await;
    // A finding says more than an error of the plan that comes from it.
    checking.await.map_err(Failure::unavailable)??;
    let stop = CancellationToken::new();
    let (store, clock) = (store.clone(), clock.clone());
    let plan = plan.map_err(refused)?;
    let started = Planner::start_with(plan, settings, store, lease, clock, stop.clone()).await;
    let (planner, decided) = started.map_err(refused)?;
    Ok((planner, decided, stop))
}

/// What is known before the planner starts, for the resources as they will be: where it takes over others, agreements may have to
/// move.
async fn learn_before_start(config: &Config, settings: &Settings, store: &Store, clock: &Clock) -> Knowledge {
    let (_, ladder) = config.predictions();
    let learned = async {
        let (rows, now) = (resources::all_resources(store).await?, clock.micros());
        let machines = planner::machines_as_configured(rows, &settings.resources, now)?;
        learning::learn_for_machines(store, (machines, ladder), clock.now()).await
    };
    learned.await.unwrap_or_else(|error: store::Error| {
        warn!(%error, "the start goes without predictions");
        Knowledge::default()
    })
}

/// Starts to learn from ended executions at a pace. The resources of the configuration are taken over by now.
fn start_learning(
    known: Predictions,
    config: &Config,
    (store, clock): (&Store, &Clock),
    pace: LearningPace,
    keeper: &Keeper,
) {
    let (store, clock, setup) = (store.clone(), clock.clone(), config.predictions());
    keeper.keep(("predictions", SELDOM), move |stop| {
        learning::keep_knowledge(known.clone(), store.clone(), setup, clock.clone(), pace, stop)
    });
}

/// Waits for the first look at each cluster, before which it promises nothing. Where one does not answer, the other resources do
/// not wait for it.
async fn await_first_look(mut unseen: watch::Receiver<BTreeSet<String>>) {
    let _ = tokio::time::timeout(FIRST_LOOK, unseen.wait_for(BTreeSet::is_empty)).await;
}

/// Starts to remove old data: the folders of jobs, and executions that are not needed.
fn start_removing_old_data(
    config: &Config,
    folders: JobFolders,
    store: &Store,
    clock: &Clock,
    keeper: &Keeper,
) {
    let policy = config.history.policy();
    let (of_history, at) = (store.clone(), clock.clone());
    keeper.keep(("history", HOURLY), move |stop| {
        learning::prune_history(policy, of_history.clone(), at.clone(), stop)
    });
    keep_folders(folders, (store, clock), config.execution.folders_kept(), keeper);
}

/// Starts to look after the folders of jobs.
fn keep_folders(folders: JobFolders, (store, clock): (&Store, &Clock), kept: Seconds, keeper: &Keeper) {
    let (store, clock) = (store.clone(), clock.clone());
    keeper.keep(("job-folders", SELDOM), move |stop| {
        folders
            .clone()
            .run_until_stopped(store.clone(), clock.clone(), kept, stop)
    });
}

/// A listener, and where it listens: port 0 is whichever is free. Waits for a moment where the address is in use. A process that the last
/// service was just starting when it was killed has its socket until it becomes its program.
async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let cannot = |why: std::io::Error| Failure::Unavailable(format!("cannot listen on {address}: {why}"));
    let (began, mut told) = (Instant::now(), false);
    loop {
        match TcpListener::bind(address).await {
            Err(why) if why.kind() == ErrorKind::AddrInUse && began.elapsed() < ADDRESS_WAIT => {
                if !told && began.elapsed() > ADDRESS_TOLD_AFTER {
                    info!(%address, "another process listens on this address; waiting for it to end");
                    told = true;
                }
                tokio::time::sleep(ADDRESS_PAUSE).await;
            }
            bound => {
                let listener = bound.map_err(cannot)?;
                let address = listener.local_addr().map_err(cannot)?;
                return Ok((listener, address));
            }
        }
    }
}

/// The scheme of the addresses for clients.
fn address_scheme(is_secure: bool, options: &Options) -> Result<&'static str, Failure> {
    if is_secure {
        return Ok("https");
    }
    if !options.at.listen.ip().is_loopback() {
        if !options.insecure {
            return Err(Failure::Usage(format!(
                "on {} keys and documents would travel in clear: name a certificate in [tls], or, where a proxy beside the service \
                 speaks TLS, give --insecure",
                options.at.listen
            )));
        }
        warn!("keys and documents travel in clear, as --insecure allows");
    }
    Ok("http")
}

pub(super) fn start_log(format: LogFormat) {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Printed where nothing can be written, it would panic: a full disk under the log must not stop the service.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

/// The data folder, by its absolute path, with its content: other users cannot read it.
fn make_folders(data_dir: &Path) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::DirBuilderExt;
    for folder in [data_dir.to_owned(), data_dir.join("files"), data_dir.join("jobs")] {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|why| {
                Failure::Usage(format!("--data-dir: cannot create {}: {why}", folder.display()))
            })?;
    }
    if data_dir.join(RESTORING).exists() {
        return Err(Failure::Refused(format!(
            "{} is not whole: a restore into it runs, or was interrupted (it has a file {RESTORING})",
            data_dir.display()
        )));
    }
    std::path::absolute(data_dir).map_err(|why| Failure::Usage(why.to_string()))
}

/// Cancelled by SIGINT or SIGTERM, from now on.
fn hear_stop() -> CancellationToken {
    let told = CancellationToken::new();
    let hears = told.clone();
    task::spawn(async move {
        wait_for_stop().await;
        hears.cancel();
    });
    told
}

/// Waits for SIGINT or SIGTERM.
async fn wait_for_stop() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        warn!("cannot listen for signals; only a kill stops this process");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Prints the address of the service and commands to try, ready to paste.
fn announce_service(scheme: &str, address: SocketAddr, key: &OperatorKey, options: &StoreOptions) {
    let file = options.data_dir.join("operator.key");
    let file = file.display();
    let pasted = quote_for_shell(&file.to_string());
    let mut text = format!("bespeak is listening on {scheme}://{address}\n");
    if key.is_new {
        // What is no terminal may be a log, which others read.
        let shown = std::io::stdout().is_terminal().then(|| key.secret.expose());
        text += &match shown {
            Some(secret) => {
                format!("\nA first operator key, shown this once and kept in {file}:\n  {secret}\n")
            }
            None => format!("\nA first operator key is in {file}.\n"),
        };
    }
    text += &format!(
        "\nTry:\n\
         \x20 KEY=$(cat {pasted})\n\
         \x20 curl -H \"Authorization: Bearer $KEY\" {scheme}://{address}/templates\n\
         \x20 curl -H \"Authorization: Bearer $KEY\" --data-binary @examples/sleep.xml {scheme}://{address}/agreements\n\
         \x20 curl -H \"Authorization: Bearer $KEY\" -H \"Accept: application/json\" {scheme}://{address}/agreements\n\
         \nOr open {scheme}://{address}/portal and sign in with the key.\n"
    );
    // A missing reader of standard output is no reason to stop.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let _ = std::io::stdout().flush();
    info!(%address, "ready");
}

/// A word as a shell takes it, in quotes where it has to be.
fn quote_for_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_is_let_go_soon_is_waited_for() {
        let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = held.local_addr().unwrap();
        let mut listens = Box::pin(listen(address));
        let waits = std::future::poll_fn(|cx| std::task::Poll::Ready(listens.as_mut().poll(cx).is_pending()));
        assert!(waits.await, "it is in use now");
        drop(held);
        assert_eq!(listens.await.unwrap().1, address);
    }

    #[test]
    fn what_is_to_be_pasted_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(
            quote_for_shell("bespeak-data/operator.key"),
            "bespeak-data/operator.key"
        );
        assert_eq!(quote_for_shell("a b/operator.key"), "'a b/operator.key'");
        assert_eq!(quote_for_shell("it's; rm"), r"'it'\''s; rm'");
    }
}
