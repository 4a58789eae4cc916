//! This process among those on one PostgreSQL: its name, its data folder, its address, and the local resources of its machine.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use domain::clock::Clock;
use execution::hosts::Hosts;
use store::{Engine, Store};
use task::Keeper;
use tracing::{info, warn};
use writer::Planner;

use super::{Options, SOON};
use crate::cli::Failure;
use crate::cli::config::Config;
use crate::cli::config::tls::Tls;
use replicas::{NAME_MAX, Replicas, Trust, is_replica_name};

/// The file of the data folder with the name.
const NAME_FILE: &str = "replica";

/// The name of this machine, with a number where another process on the database has it.
pub(super) async fn free_replica_name(store: &Store) -> Result<String, Failure> {
    let taken = store::replicas::all_replicas(store).await?;
    let name = replica_name_of_machine();
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let is_free = |name: &String| !taken.iter().any(|row| row.name == *name);
    Ok(names.find(is_free).unwrap_or(name))
}

pub(super) fn kept_replica_name(data_dir: &Path) -> Option<String> {
    let kept = fs::read_to_string(data_dir.join(NAME_FILE)).ok()?;
    Some(kept.trim().to_owned()).filter(|name| is_replica_name(name))
}

/// The name by which others find this machine.
fn host_name_of_replica() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// The name of this machine, as far as it can be the name of a replica.
fn replica_name_of_machine() -> String {
    let name = host_name_of_replica();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = name.chars().filter(is_plain).take(NAME_MAX / 2).collect();
    if name.is_empty() {
        "bespeak".to_owned()
    } else {
        name
    }
}

/// Makes this process known to the others on its database, at the address where they reach it; none on SQLite, where there cannot be
/// others.
///
/// # Errors
/// Where the store cannot be used, or the name cannot be kept.
pub(super) async fn join_replicas(
    options: &Options,
    config: &Config,
    (name, scheme, listening): (&str, &str, SocketAddr),
    store: &Store,
    clock: &Clock,
) -> Result<Option<Replicas>, Failure> {
    if store.kind() == Engine::Sqlite {
        return Ok(None);
    }
    let data_dir = &options.store.data_dir;
    match kept_replica_name(data_dir) {
        Some(before) if before != name => {
            store::replicas::rename_replica(store, &before, name).await?;
            info!(
                before,
                name, "this replica has another name: its local resources stay its own"
            );
        }
        _ => {}
    }
    let file = data_dir.join(NAME_FILE);
    fs::write(&file, format!("{name}\n"))
        .map_err(|why| Failure::Unavailable(format!("cannot write {}: {why}", file.display())))?;
    let address = match &options.replica_address {
        Some(address) => address.clone(),
        None if listening.ip().is_unspecified() => format!("{}:{}", host_name_of_replica(), listening.port()),
        None => listening.to_string(),
    };
    let trust = Trust {
        certificates: config.tls.as_ref().map_or(Ok(Vec::new()), Tls::certificates)?,
        host: config.public_host(),
    };
    let address = format!("{scheme}://{address}");
    let replicas = Replicas::new(name, address, store.clone(), trust, clock);
    let replicas = replicas.map_err(Failure::unavailable)?;
    replicas.join().await?;
    if config.execution.cluster_records.is_none()
        && !config.clusters().is_empty()
        && store::replicas::all_replicas(store).await?.len() > 1
    {
        warn!(
            "several processes serve a cluster: each needs execution.cluster_records, to go on with the jobs of the others"
        );
    }
    replicas.read_hosts().await?;
    Ok(Some(replicas))
}

/// Takes the local resources that belong to no replica, and begins to look which replicas are silent. Returns the replica of each.
///
/// # Errors
/// The errors of the store.
pub(super) async fn take_hosts_of_replicas(
    replicas: Option<&Replicas>,
    config: &Config,
    planner: &Planner,
    keeper: &Keeper,
) -> Result<Hosts, Failure> {
    let Some(replicas) = replicas else {
        return Ok(Hosts::default());
    };
    replicas.note_leader(None).await?;
    replicas.begin_to_listen();
    let stated: BTreeMap<String, String> = config.hosts_of_resources().collect();
    replicas::claim_resources(replicas, planner, &stated).await?;
    let (watched, planner) = (replicas.clone(), planner.clone());
    let grace = Duration::from_secs(config.limits.silent_replica_seconds);
    keeper.keep(("replica-hosts", SOON), move |stop| {
        replicas::watch_hosts(watched.clone(), (planner.clone(), stated.clone()), grace, stop)
    });
    Ok(replicas.hosts().clone())
}
