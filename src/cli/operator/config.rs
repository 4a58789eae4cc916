//! `bespeak config check` and `bespeak reload`: the configuration, checked as `serve` and a reload check it, without a service or
//! beside it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::clock::Clock;
use scheduler::counted;
use serde_json::{Value, json};

use crate::cli::Failure;
use crate::cli::client::{DryRun, Server, read_answer, text_or_empty};
use crate::cli::operator::effects::print_effects_on_resources;
use crate::cli::serve::read_config::ReadConfig;
use service::ReloadedView;

const EXAMPLES: &str = "\
Examples:
  bespeak config check bespeak.toml             whether a service would start with it, and what it has
  bespeak config check bespeak.toml --running   also what would change if the running service read its file again

Templates, programs, certificates, keys of peers and prices of energy that the file names are read. Open files that the system allows and the key of
the trail are looked at by a start alone. What a cluster needs has `bespeak cluster check`. The running service reads its own file: --running says what a `bespeak reload` would do now, and which parts need a
restart.

Exit status: 0 if nothing is wrong; 1 if the running service cannot take its file over; 2 if the file is wrong.";

/// Options of `config`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check a configuration with the files that it names.
    Check(CheckOptions),
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct CheckOptions {
    /// The configuration (TOML). [default: what a service has without one]
    #[arg(env = "BESPEAK_CONFIG", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Ask the service at --server, with an operator's key that is not for reading only, what would change if it read its file
    /// again.
    #[arg(long)]
    running: bool,
}

pub(in crate::cli) async fn check_config(options: Options, server: &Server) -> Result<(), Failure> {
    let Action::Check(CheckOptions { file, running }) = options.action;
    let found = content_of_config(file).await?;
    if !running {
        server.print_value(&found, print_content_of_config);
        return Ok(());
    }
    if !server.json {
        print_content_of_config(&found);
    }
    let would = server
        .post_json("/configuration/reload?dryRun=true", &json!({}))
        .await?;
    if server.json {
        server.print_value(&json!({ "file": found, "running": would }), |_| {});
        return Ok(());
    }
    say!("\nif the running service read its file again:");
    print_reloaded_config(&read_answer(would)?);
    Ok(())
}

/// What a configuration has, where it has no fault.
async fn content_of_config(file: Option<PathBuf>) -> Result<Value, Failure> {
    let name = file.as_ref().map(|file| file.display().to_string());
    let mut read = ReadConfig::from(file, None).await?;
    read.check_expiry(&Clock::system())?;
    let silent = read.config.read_energy_series().await?;
    let resources = read.settings.resources.iter();
    let resources = resources
        .map(|resource| json!({ "name": resource.name, "kind": resource.kind, "nodes": resource.capacity }));
    let applications = read.catalogue.applications().iter();
    let applications = applications.map(|application| {
        application.version.as_ref().map_or_else(
            || application.name.clone(),
            |version| format!("{} {version}", application.name),
        )
    });
    let peers = read.config.domain.iter().flat_map(|domain| &domain.peers);
    Ok(json!({
        "file": name,
        "resources": resources.collect::<Vec<_>>(),
        "applications": applications.collect::<Vec<_>>(),
        "templates": read.templates.ids(),
        "objective": read.settings.objective.word(),
        "forgoesLeastWorkLost": read.config.forgoes_least_work_lost(),
        "currency": read.settings.pricing.map(|pricing| pricing.currency),
        "pricesUnread": silent,
        "tls": read.tls.is_some(),
        "domain": read.config.domain.as_ref().map(|domain| &domain.name),
        "peers": peers.map(|peer| &peer.name).collect::<Vec<_>>(),
    }))
}

fn print_content_of_config(found: &Value) {
    let list = |key: &str| found[key].as_array().cloned().unwrap_or_default();
    let resources: Vec<String> = list("resources")
        .iter()
        .map(|resource| {
            let nodes = resource["nodes"].as_u64().unwrap_or_default();
            format!(
                "{} ({}, {})",
                text_or_empty(&resource["name"]),
                text_or_empty(&resource["kind"]),
                counted(nodes, "node")
            )
        })
        .collect();
    let words = |key: &str| {
        let all = list(key);
        all.iter().map(text_or_empty).collect::<Vec<_>>().join(", ")
    };
    let mut objective = text_or_empty(&found["objective"]).to_owned();
    if found["forgoesLeastWorkLost"] == true {
        objective += ", as it is set; resources differ in rate, and without the key it would be least-work-lost. `bespeak advise` compares the two";
    }
    let of_certificate = if found["tls"] == true { "read" } else { "none" };
    say!(
        "{}: nothing is wrong",
        found["file"].as_str().unwrap_or("without a file")
    );
    for (name, words) in [
        ("resources", resources.join(", ")),
        ("applications", words("applications")),
        ("templates", words("templates")),
        ("objective", objective),
        ("prices", found["currency"].as_str().unwrap_or("none").to_owned()),
        ("certificate", of_certificate.to_owned()),
        ("peers", words("peers")),
    ] {
        say!("  {name:<13} {words}");
    }
    if let Some(why) = found["pricesUnread"].as_str() {
        say!("  the prices of energy do not come from their address now: {why}");
    }
}

const RELOAD_EXAMPLES: &str = "\
Examples:
  bespeak reload --dry-run     what would follow from what has changed in the configuration file
  bespeak reload               take it over

The service reads its configuration file again, as it does on SIGHUP. Resources with their maintenance, applications, templates,
prices, quotas, certificates and the treatment of failures are taken over; the answer names what else has changed and needs a restart. A file
with a fault changes nothing.";

/// Options of `reload`.
#[derive(Debug, Args)]
#[command(after_help = RELOAD_EXAMPLES)]
pub(in crate::cli) struct ReloadOptions {
    #[command(flatten)]
    change: DryRun,
}

pub(in crate::cli) async fn reload_config(options: ReloadOptions, server: &Server) -> Result<(), Failure> {
    let path = format!("/configuration/reload{}", options.change.query());
    let answer = server.post_json(&path, &json!({})).await?;
    server.print_answer(answer, print_reloaded_config)
}

/// What a reload has done, or would do.
fn print_reloaded_config(told: &ReloadedView) {
    print_effects_on_resources(&told.changes);
    if !told.needs_restart.is_empty() {
        say!("taken over by a restart only: {}", told.needs_restart.join(", "));
    }
}
