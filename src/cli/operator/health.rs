//! `bespeak health`: whether the service of this machine is ready, as an exit status for programs that watch it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::Failure;
use crate::cli::config::Config;
use crate::cli::serve::ListenOption;

/// How long the service may take to answer: it does in milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  bespeak health                                           whether the service on 127.0.0.1:8080 is ready
  bespeak health --listen 0.0.0.0:8443 --config bespeak.toml

It takes the options and the environment of `bespeak serve`, asks the service on this machine at /readyz, by TLS where the configuration has
[tls], and prints the answer. No key is needed. Exit status: 0 if the service is ready; 1 if it is not, or does not answer.";

/// Options of `health`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    at: ListenOption,
    /// The configuration of the service.
    #[arg(long, env = "BESPEAK_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(in crate::cli) async fn check_health(options: Options) -> Result<(), Failure> {
    let config = Config::load(options.config.as_deref())?;
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let url = format!(
        "{scheme}://{}/readyz",
        address_for_health_check(options.at.listen)
    );
    // One provider for the process; a second call finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .no_proxy()
        // It is asked by its address, which its certificate need not name. Nothing secret goes there.
        .tls_danger_accept_invalid_certs(true)
        .build()
        .map_err(Failure::unavailable)?;
    let silent = |why: reqwest::Error| {
        let cause = std::error::Error::source(&why).map_or_else(|| why.to_string(), ToString::to_string);
        Failure::Refused(format!("{url} does not answer: {cause}"))
    };
    let answer = client.get(&url).send().await.map_err(silent)?;
    let status = answer.status();
    let said = answer.text().await.map_err(silent)?;
    let said = said.trim_end();
    if !status.is_success() {
        return Err(Failure::Refused(format!("{said} ({status})")));
    }
    say!("{said}");
    Ok(())
}

/// Where a service that listens at an address is reached from this machine.
fn address_for_health_check(listening: SocketAddr) -> SocketAddr {
    let mut way = listening;
    match listening {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => way.set_ip(Ipv4Addr::LOCALHOST.into()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => way.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_listens_everywhere_is_asked_on_loopback() {
        for (listening, way) in [
            ("0.0.0.0:8443", "127.0.0.1:8443"),
            ("[::]:8080", "[::1]:8080"),
            ("192.0.2.1:80", "192.0.2.1:80"),
        ] {
            let listening = listening.parse().expect("an address");
            assert_eq!(address_for_health_check(listening).to_string(), way);
        }
    }
}
