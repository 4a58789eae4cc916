//! `bespeak serve`: puts the parts together, in the order in which they need each other, and takes them apart again.

mod announcement;
mod database;
pub(super) mod descriptors;
mod executors;
mod folders;
mod front_end;
mod heads;
mod listener;
mod manager;
mod peers;
mod prices;
mod process;
pub(super) mod read_config;
mod reload;
mod replicas;
mod standby;
mod store_check;
mod tasks;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use self::database::leave_database_whole;
use self::process::Process;
use super::{Failure, StoreOptions};

/// How long a task that works every few seconds may do nothing until it counts as late, one that works every few minutes, and one that
/// works every hour. Each leaves room for a store that is away for a moment.
const SOON: Duration = Duration::from_mins(2);
const SELDOM: Duration = Duration::from_mins(15);
const HOURLY: Duration = Duration::from_hours(3);

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

/// Runs the service until it is told to stop.
pub(super) async fn run_service(options: Options) -> Result<(), Failure> {
    start_log(options.log_format);
    let mut process = Process::begin(options).await?;
    let store = process.store.clone();
    let ended = match Box::pin(process.await_lead_on_standby()).await? {
        Some(lease) => Box::pin(process.lead(lease)).await,
        None => process.end().await,
    };
    leave_database_whole(&store).await;
    ended
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
