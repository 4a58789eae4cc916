//! The database of a process: opens it, finishes its migrations, and leaves it whole.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use store::backup::SCHEMA_VERSION;
use store::{Store, leader};
use task::{Keeper, note_success};
use tracing::{info, warn};

use super::folders::{FOLDER_PAUSE, FOLDER_WAIT, lock_data_folder};
use super::replicas::{free_replica_name, kept_replica_name};
use super::{Options, SOON};
use crate::cli::Failure;
use replicas::{NAME_MAX, is_replica_name};

/// How long no process of an earlier version may have been there when what it needs is removed, and how often that is looked at.
const OLDER_GONE_FOR: Duration = Duration::from_mins(1);
const OLDER_LOOK: Duration = Duration::from_secs(5);

/// How long a stop waits for the connections to a SQLite file.
const WHOLE_WAIT: Duration = Duration::from_secs(5);

/// Opens the store, on a server as the process of a name: as it is told, as its data folder has it, or that of the machine, with a
/// number where another one has that. No other process has the data folder from here on, until the file is closed.
///
/// # Errors
/// Where the name is none, another process has the data folder, or the store cannot be opened.
pub(super) async fn open_database(
    options: &Options,
    data_dir: &Path,
) -> Result<(Store, String, File), Failure> {
    let told = options.replica.clone();
    if let Some(name) = told.as_ref().filter(|name| !is_replica_name(name)) {
        return Err(Failure::Usage(format!(
            "--replica: {name:?}: up to {NAME_MAX} letters, digits and the signs - _ . are expected"
        )));
    }
    let url = options.store.database_url();
    let folder = lock_data_folder(data_dir).await?;
    if url.starts_with("sqlite:") {
        return Ok((Store::open(&url).await?, String::new(), folder));
    }
    let store = Store::open(&url).await?;
    let name = match told.or_else(|| kept_replica_name(data_dir)) {
        Some(name) => name,
        None => free_replica_name(&store).await?,
    };
    await_free_database(&store, &name).await?;
    store.close().await;
    let store = Store::open_as(&url, &name).await?;
    Ok((store, name, folder))
}

/// Waits for a process of this name to end.
async fn await_free_database(store: &Store, name: &str) -> Result<(), Failure> {
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

/// Begins to apply the contract steps of the schema.
pub(super) fn start_migrating_database(store: &Store, keeper: &Keeper) {
    let store = store.clone();
    keeper.keep(("schema-steps", SOON), move |stop| {
        let finish = finish_migrations_of_database(store.clone());
        async move {
            stop.run_until_cancelled(finish).await;
        }
    });
}

/// Has the contract steps of the schema applied, once no process of an earlier version has been there for some time: one may be away for
/// a moment, for instance because its database fails over.
async fn finish_migrations_of_database(store: Store) {
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

/// Leaves a SQLite file whole, without a log beside it. Tasks that end give their connections back meanwhile.
pub(super) async fn leave_database_whole(store: &Store) {
    match tokio::time::timeout(WHOLE_WAIT, store.make_whole()).await {
        Ok(Ok(())) => {}
        Ok(Err(why)) => warn!(%why, "the database keeps its log beside its file: both belong together"),
        Err(_) => {
            warn!("the database keeps its log beside its file, as it is still in use: both belong together");
        }
    }
}
