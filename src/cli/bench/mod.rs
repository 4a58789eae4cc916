//! `bespeak bench`: measures a service and its database. `bespeak-lab bench planner` measures the planner by itself.

mod bystanders;
mod mixed;
mod past;
mod pgbench;
mod service;

use std::time::Duration;

use clap::{Args, Subcommand};

use super::Failure;

/// Options of `bench`.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Send offers to a running service, negotiate with it and accept; prints a line of JSON, and beside pgbench the bars.
    Service(service::ServiceOptions),
    /// Send requests of every kind to a running service, and show its memory; prints a line of JSON for each tenth of them, and
    /// whether memory was flat.
    Mixed(mixed::MixedOptions),
    /// Fill a new service, and show how long other clients wait while an agreement in front of a long queue is ended, or a request
    /// is refused; prints a line of JSON and the bars.
    Bystanders(bystanders::BystandersOptions),
    /// Fill an empty database with agreements that are over, and print a line of JSON.
    Past(past::PastOptions),
    /// Commit one row after the other to a database without a running service; prints a line of JSON.
    Commits(service::CommitsOptions),
}

/// What asks a service. Services close connections that nobody has used for ten seconds; it gives them up before.
fn client() -> Result<reqwest::Client, Failure> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .timeout(Duration::from_mins(1))
        .pool_idle_timeout(Duration::from_secs(5))
        .no_proxy()
        .build()
        .map_err(|why| Failure::Unavailable(why.to_string()))
}

pub(super) fn run(options: Options) -> Result<(), Failure> {
    match options.what {
        What::Service(options) => block_on(service::service(options)),
        What::Mixed(options) => block_on(mixed::mixed(options)),
        What::Bystanders(options) => block_on(bystanders::bystanders(options)),
        What::Past(options) => block_on(past::past(options)),
        What::Commits(options) => block_on(service::commits(options)),
    }
}

fn block_on(measured: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::Unavailable(format!("cannot start: {why}")))?
        .block_on(measured)
}
