//! The executors of resources, by their kinds, and the samples of how the resources stand.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::catalogue::{CatalogueError, JobLimits, LimitKeys};
use domain::clock::Clock;
use domain::resources::Resource;
use execution::dispatcher::SharedExecutor;
use execution::executors::Executors;
use execution::files::job_folders::JobFolders;
use execution::hosts::Hosts;
use execution::job::control_group::{HeldLimits, use_control_groups};
use execution::job::isolation::{why_not_isolated, why_processes_are_not_limited};
use execution::job::limits::AllowedLimits;
use execution::local_executor::LocalExecutor;
use execution::slurm::{SlurmExecutor, SlurmSettings};
use scheduler::domain::Attribute;
use serde::Deserialize;
use store::Store;
use task::{Keeper, note_success};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use writer::Planner;

use super::{SELDOM, SOON};
use crate::cli::Failure;
use crate::cli::config::Config;
use crate::cli::config::slurm::Slurm;
use federation::{FollowedAgreements, PeerExecutor};

/// Makes the executors of resources: those of this machine share one.
pub(super) fn make_executors(
    config: &Config,
    folders: &JobFolders,
    data_dir: &Path,
    followed: FollowedAgreements,
) -> Result<Executors, Failure> {
    let groups = use_control_groups();
    match &groups {
        Ok(HeldLimits::MemoryAndProcesses) => info!("jobs of this machine are limited by control groups"),
        Ok(HeldLimits::Processes) => {
            info!("processes of jobs of this machine are limited by control groups of version 1");
        }
        Err(why) => info!(why, "jobs of this machine are limited without control groups"),
    }
    let unfit = why_executors_cannot_serve(groups.is_ok());
    if let Some(why) = &unfit {
        warn!(why, "local resources take jobs of trusted applications only");
    }
    let local = LocalExecutor::new(data_dir).map_err(Failure::unavailable)?;
    let local = local.for_trusted_only(unfit);
    let local = SharedExecutor::new(local.among(folders.clone())).among(folders.clone());
    let (folders, data_dir, otherwise) = (folders.clone(), data_dir.to_owned(), config.execution.limits());
    let (is_root, warned) = (rustix::process::geteuid().is_root(), AtomicBool::new(false));
    Ok(Executors::made_by(move |resource| {
        match executor_of_resource(resource, otherwise)? {
            Executor::Local(allowance) => {
                if is_root && !warned.swap(true, Ordering::Relaxed) {
                    warn!("jobs of local resources run as root: let the service run as a user of its own");
                }
                Ok(local.clone().allowing(allowance))
            }
            Executor::Peer => Ok(SharedExecutor::new(PeerExecutor::new(
                &resource.name,
                followed.clone(),
            ))),
            Executor::Slurm(cluster) => {
                folders.add_cluster(&cluster);
                let executor = SlurmExecutor::new(*cluster, &data_dir);
                let executor = executor.and_then(|executor| executor.among(folders.clone()));
                let executor = executor.map_err(|why| why.to_string())?;
                Ok(SharedExecutor::new(executor).among(folders.clone()))
            }
        }
    }))
}

/// Why this machine cannot run jobs of applications that are not trusted, where it cannot. `has_groups` says whether control groups limit
/// the processes of a job.
fn why_executors_cannot_serve(has_groups: bool) -> Option<String> {
    let unisolated = why_not_isolated().map(|why| format!("jobs cannot be isolated: {why}"));
    let unlimited = || {
        let why = (!has_groups).then(why_processes_are_not_limited)??;
        Some(format!(
            "nothing holds the limit of processes of a job, neither control groups nor a resource limit: {why}"
        ))
    };
    unisolated.or_else(unlimited)
}

/// How often it is looked whether resources have got another replica.
const HOSTS_EVERY: Duration = Duration::from_secs(5);

/// Starts to sample the resources in service until `stop`: the clusters, and this machine for its own ones, as `hosts` has them.
pub(super) fn start_sampling_executors(
    (planner, hosts): (&Planner, &Hosts),
    executors: &Executors,
    store: &Store,
    clock: &Clock,
    keeper: &Keeper,
) {
    let (planner, hosts, executors) = (planner.clone(), hosts.clone(), executors.clone());
    let (store, clock, of_samplers) = (store.clone(), clock.clone(), keeper.clone());
    keeper.keep(("samplers", SOON), move |stop| {
        let ended_with = stop.child_token();
        let keeper = of_samplers.until(&ended_with);
        let sampling = sample_executors(
            (planner.clone(), hosts.clone()),
            executors.clone(),
            store.clone(),
            clock.clone(),
            keeper,
        );
        // Where it fails, its samplers end, and others begin with the next one.
        let guard = ended_with.drop_guard();
        async move {
            let _guard = guard;
            sampling.await;
        }
    });
}

async fn sample_executors(
    (planner, hosts): (Planner, Hosts),
    executors: Executors,
    store: Store,
    clock: Clock,
    keeper: Keeper,
) {
    let stop = keeper.stop().clone();
    let mut resources = planner.subscribe_resources();
    // With what each sampler was told.
    let mut samplers: HashMap<String, (String, u32, CancellationToken)> = HashMap::new();
    loop {
        let present = Arc::clone(&resources.borrow_and_update());
        let is_of_others = |resource: &Resource| resource.kind == "local" && !hosts.is_own(&resource.name);
        let is_sampled =
            |resource: &&Resource| !resource.is_retired() && !resource.is_peer() && !is_of_others(resource);
        let in_service = || present.iter().filter(is_sampled);
        samplers.retain(|name, (kind, nodes, token)| {
            let is_as_told = |resource: &Resource| {
                resource.name == *name && resource.kind == *kind && resource.capacity == *nodes
            };
            let stays = in_service().any(is_as_told);
            if !stays {
                token.cancel();
            }
            stays
        });
        for resource in in_service() {
            if samplers.contains_key(&resource.name) {
                continue;
            }
            let (name, token) = (resource.name.clone(), stop.child_token());
            let told = (resource.kind.clone(), resource.capacity, token.clone());
            samplers.insert(name.clone(), told);
            let task = (format!("samples of {name}"), SELDOM);
            if resource.kind == "local" {
                let (nodes, store, clock) = (resource.capacity, store.clone(), clock.clone());
                keeper.until(&token).keep(task, move |stop| {
                    learning::sample_machine(name.clone(), nodes, store.clone(), clock.clone(), stop)
                });
            } else {
                let (executors, store, clock) = (executors.clone(), store.clone(), clock.clone());
                keeper.until(&token).keep(task, move |stop| {
                    let (resource_name, executors) = (name.clone(), executors.clone());
                    let look = move || executors.get(&resource_name)?.condition();
                    learning::sample_resource(name.clone(), store.clone(), clock.clone(), stop, look)
                });
            }
        }
        note_success();
        tokio::select! {
            () = stop.cancelled() => return,
            changed = resources.changed() => if changed.is_err() { return },
            // A resource may have got another replica.
            () = tokio::time::sleep(HOSTS_EVERY) => {}
        }
    }
}

/// What the executor of a resource needs.
enum Executor {
    /// A resource of this machine: the limits of its jobs.
    Local(AllowedLimits),
    /// A cluster.
    Slurm(Box<SlurmSettings>),
    /// Another domain.
    Peer,
}

/// What an executor needs, as it is stored with its resource.
#[derive(Deserialize, Default)]
#[serde(default)]
struct StoredExecutor {
    limits: LimitKeys,
    slurm: Option<Slurm>,
}

/// What the executor of a resource needs; the limits are `otherwise` where it sets none.
///
/// # Errors
/// In words, where that is not known any more.
fn executor_of_resource(resource: &Resource, otherwise: JobLimits) -> Result<Executor, String> {
    let stored = (!resource.executor.is_null()).then(|| serde_json::from_value(resource.executor.clone()));
    let stored: StoredExecutor = stored
        .transpose()
        .map_err(|why| why.to_string())?
        .unwrap_or_default();
    if resource.is_peer() {
        return Ok(Executor::Peer);
    }
    if resource.kind != "local" {
        let slurm = stored
            .slurm
            .ok_or("the configuration has no table [resource.slurm] for it")?;
        return Ok(Executor::Slurm(Box::new(SlurmSettings {
            attributes: resource.attributes.clone(),
            ..slurm.settings(&resource.name)
        })));
    }
    let memory = match resource.attributes.get("memory_bytes") {
        Some(Attribute::Number(bytes)) => u64::try_from(*bytes).ok(),
        _ => None,
    };
    Ok(Executor::Local(AllowedLimits {
        resource: stored
            .limits
            .try_into()
            .map_err(|why: CatalogueError| why.to_string())?,
        node_memory: memory,
        otherwise,
    }))
}
