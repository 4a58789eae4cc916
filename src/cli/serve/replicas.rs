//! This process among those on one PostgreSQL: its name, its data folder, its address, and the local resources of its machine.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use domain::clock::Clock;
use execution::hosts::Hosts;
use store::backup::SCHEMA_VERSION;
use store::{Engine, Store, leader};
use task::{Keeper, note_success};
use tracing::{info, warn};
use writer::Planner;

use super::{Options, SOON};
use crate::cli::Failure;
use crate::cli::config::Config;
use crate::cli::config::tls::Tls;
use crate::replicas::{self, NAME_MAX, Replicas, Trust, is_replica_name};

/// The file of the data folder with the name.
const NAME_FILE: &str = "replica";
/// The file of the data folder that its process has locked.
const LOCK_FILE: &str = "replica.lock";
/// How long to wait for a process before this one to give the data folder up, and between two tries.
const FOLDER_WAIT: Duration = Duration::from_secs(10);
const FOLDER_PAUSE: Duration = Duration::from_millis(50);
/// After how long the log says that it is waited for.
const FOLDER_TOLD_AFTER: Duration = Duration::from_secs(1);

/// How long no process of an earlier version may have been there when what it needs is removed, and how often that is looked at.
const OLDER_GONE_FOR: Duration = Duration::from_mins(1);
const OLDER_LOOK: Duration = Duration::from_secs(5);

/// Opens the store, on a server as the process of a name: as it is told, as its data folder has it, or that of the machine, with a
/// number where another one has that. No other process has the data folder from here on, until the file is closed.
///
/// # Errors
/// Where the name is none, another process has the data folder, or the store cannot be opened.
pub(super) async fn open_store(options: &Options, data_dir: &Path) -> Result<(Store, String, File), Failure> {
    let told = options.replica.clone();
    if let Some(name) = told.as_ref().filter(|name| !is_replica_name(name)) {
        return Err(Failure::Usage(format!(
            "--replica: {name:?}: up to {NAME_MAX} letters, digits and the signs - _ . are expected"
        )));
    }
    let url = options.store.database_url();
    let folder = lock_folder(data_dir).await?;
    if url.starts_with("sqlite:") {
        return Ok((Store::open(&url).await?, String::new(), folder));
    }
    let store = Store::open(&url).await?;
    let name = match told.or_else(|| kept_name(data_dir)) {
        Some(name) => name,
        None => free_name(&store).await?,
    };
    await_end_of_other(&store, &name).await?;
    store.close().await;
    let store = Store::open_as(&url, &name).await?;
    Ok((store, name, folder))
}

/// Waits for a process of this name to end.
async fn await_end_of_other(store: &Store, name: &str) -> Result<(), Failure> {
    let began = Instant::now();
    while leader::has_leader_or_candidate(store, name).await? {
        if began.elapsed() > FOLDER_WAIT {
            return Err(Failure::Refused(format!(
                "another process has this database under the name {name}: --replica gives this one another"
            )));
        }
        tokio::time::sleep(FOLDER_PAUSE).await;
    }
    Ok(())
}

/// The name of this machine, with a number where another process on the database has it.
async fn free_name(store: &Store) -> Result<String, Failure> {
    let taken = store::replicas::all_replicas(store).await?;
    let name = name_of_machine();
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let is_free = |name: &String| !taken.iter().any(|row| row.name == *name);
    Ok(names.find(is_free).unwrap_or(name))
}

fn kept_name(data_dir: &Path) -> Option<String> {
    let kept = fs::read_to_string(data_dir.join(NAME_FILE)).ok()?;
    Some(kept.trim().to_owned()).filter(|name| is_replica_name(name))
}

/// The name by which others find this machine.
fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// The name of this machine, as far as it can be the name of a replica.
fn name_of_machine() -> String {
    let name = host_name();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = name.chars().filter(is_plain).take(NAME_MAX / 2).collect();
    if name.is_empty() {
        "bespeak".to_owned()
    } else {
        name
    }
}

async fn lock_folder(data_dir: &Path) -> Result<File, Failure> {
    let path = data_dir.join(LOCK_FILE);
    let failed = |why: std::io::Error| Failure::Unavailable(format!("cannot lock {}: {why}", path.display()));
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.open(&path).map_err(failed)?;
    let began = Instant::now();
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if began.elapsed() < FOLDER_WAIT => {
                if !told && began.elapsed() > FOLDER_TOLD_AFTER {
                    info!(folder = %data_dir.display(), "another process uses the data folder; waiting for it to end");
                    told = true;
                }
                tokio::time::sleep(FOLDER_PAUSE).await;
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Refused(format!(
                    "another process uses the data folder {}: each needs one of its own (--data-dir)",
                    data_dir.display()
                )));
            }
            Err(TryLockError::Error(why)) => return Err(failed(why)),
        }
    }
}

/// Makes this process known to the others on its database, at the address where they reach it; none on SQLite, where there cannot be
/// others.
///
/// # Errors
/// Where the store cannot be used, or the name cannot be kept.
pub(super) async fn join(
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
    match kept_name(data_dir) {
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
        None if listening.ip().is_unspecified() => format!("{}:{}", host_name(), listening.port()),
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

/// Begins to apply the contract steps of the schema.
pub(super) fn start_finishing_migrations(store: &Store, keeper: &Keeper) {
    let store = store.clone();
    keeper.keep(("schema-steps", SOON), move |stop| {
        let finish = finish_migrations(store.clone());
        async move {
            stop.run_until_cancelled(finish).await;
        }
    });
}

/// Has the contract steps of the schema applied, once no process of an earlier version has been there for some time: one may be away for
/// a moment, for instance because its database fails over.
async fn finish_migrations(store: Store) {
    let mut alone_since = None;
    loop {
        match store.has_unfinished_steps().await {
            Ok(false) => return,
            Ok(true) => note_success(),
            Err(why) => warn!("cannot read which steps the schema has: {why}"),
        }
        match store.has_older_process(SCHEMA_VERSION).await {
            Ok(true) => alone_since = None,
            Ok(false) => {
                let since = *alone_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= OLDER_GONE_FOR {
                    match store.finish_migrations().await {
                        Ok(true) => info!("what only earlier versions needed is removed from the database"),
                        Ok(false) => alone_since = None,
                        // A table is in use.
                        Err(why) => info!("the last steps of the schema are tried again soon: {why}"),
                    }
                }
            }
            Err(why) => {
                alone_since = None;
                warn!("cannot see whether processes of an earlier version are there: {why}");
            }
        }
        tokio::time::sleep(OLDER_LOOK).await;
    }
}

/// Takes the local resources that belong to no replica, and begins to look which replicas are silent. Returns the replica of each.
///
/// # Errors
/// The errors of the store.
pub(super) async fn take_hosts(
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
