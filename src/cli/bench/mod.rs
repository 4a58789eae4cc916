//! `bespeak bench`: measures a service and its database. `bespeak-lab bench planner` measures the planner by itself.

mod pgbench;
mod service;

use std::time::Duration;

use clap::{Args, Subcommand};

use super::Failure;
use super::client::Server;

const EXAMPLES: &str = "\
Examples:
  bespeak bench service --clients 16 --seconds 10
  bespeak bench commits --database-url postgres://bespeak@localhost/empty";

/// Options of `bench`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    #[command(subcommand)]
    what: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Send offers to a running service, negotiate with it and accept; prints a line of JSON, and beside pgbench the bars.
    Service(service::ServiceOptions),
    /// Commit one row after the other to a database without a running service; prints a line of JSON.
    Commits(service::CommitsOptions),
}

/// The HTTP client for a service. Services close connections that were idle for ten seconds; the client gives them up
/// before.
fn http_client() -> Result<reqwest::Client, Failure> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .timeout(Duration::from_mins(1))
        .pool_idle_timeout(Duration::from_secs(5))
        .no_proxy()
        .build()
        .map_err(Failure::unavailable)
}

pub(super) async fn run(options: Options, server: &Server) -> Result<(), Failure> {
    match options.what {
        Benchmark::Service(options) => service::measure_service(options, server).await,
        Benchmark::Commits(options) => service::measure_commits(options).await,
    }
}
