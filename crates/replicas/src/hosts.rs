//! The machines of local resources: each belongs to the replica there. While that is silent, nothing new is placed on it; its jobs go on,
//! and it reports them when it is back.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::resources::{NodeReport, NodeState, Reporter};
use planner::SetNodes;
use store::replicas::{put_replica_of_resource, replicas_of_resources};
use task::note_success;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use writer::Planner;

use super::Replicas;

/// How often it is looked which replicas are silent.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Notes which replica each local resource belongs to: the one that the configuration names, or else, once and for all, this one.
///
/// # Errors
/// Those of the store.
pub async fn claim_resources(
    replicas: &Replicas,
    planner: &Planner,
    stated: &BTreeMap<String, String>,
) -> Result<(), store::Error> {
    let store = &replicas.0.store;
    let known = replicas_of_resources(store).await?;
    for resource in planner
        .resources()
        .iter()
        .filter(|resource| resource.kind == "local")
    {
        let before = known.get(&resource.name).map(String::as_str);
        let host = stated.get(&resource.name).map(String::as_str).or(before);
        let host = host.unwrap_or(replicas.name());
        if before != Some(host) {
            put_replica_of_resource(store, &resource.name, host).await?;
        }
    }
    replicas.read_hosts().await
}

/// Takes the nodes of local resources out of use whose replica has been silent for longer than `grace`, and in again when it is
/// heard, until `stop`. Those of this replica are in use. Work that runs there is left alone. Resources that come meanwhile get their
/// replica.
pub async fn watch_hosts(
    replicas: Replicas,
    (planner, stated): (Planner, BTreeMap<String, String>),
    grace: Duration,
    stop: CancellationToken,
) {
    let mut told: BTreeMap<String, bool> = BTreeMap::new();
    loop {
        match claim_resources(&replicas, &planner, &stated).await {
            Ok(()) => note_success(),
            Err(why) => warn!(%why, "the replicas of local resources cannot be looked at now"),
        }
        for (resource, replica) in replicas.hosts().all() {
            // Before that is known, its nodes are as the leader before has left them.
            let Some(is_silent) = replicas.is_silent(&replica, grace) else {
                continue;
            };
            if told.get(&resource) == Some(&is_silent) {
                continue;
            }
            match note_silence_of_host(&planner, &resource, (&replica, replicas.name()), is_silent).await {
                Ok(()) => drop(told.insert(resource, is_silent)),
                Err(planner::Error::NotFound) => {}
                Err(why) => warn!(%why, resource, "its state cannot be noted now"),
            }
        }
        let again = tokio::time::sleep(LOOK_EVERY);
        if stop.run_until_cancelled(again).await.is_none() {
            return;
        }
    }
}

async fn note_silence_of_host(
    planner: &Planner,
    resource: &str,
    (replica, own): (&str, &str),
    is_silent: bool,
) -> Result<(), planner::Error> {
    let nodes = planner
        .resources()
        .iter()
        .find(|one_resource| one_resource.name == resource)
        .map_or(0, |resource| resource.capacity);
    let mut report = NodeReport::default();
    if is_silent {
        report.states = vec![NodeState::Drained; nodes as usize];
        let why = format!("its replica {replica} is silent");
        report.reasons = (0..nodes).map(|node| (node, why.clone())).collect();
        warn!(
            resource,
            replica, "its replica is silent: nothing new is placed there"
        );
    } else if replica != own {
        info!(resource, replica, "its replica is heard");
    }
    let name = resource.to_owned();
    planner
        .send(SetNodes {
            resource: name,
            by: Reporter::Executor,
            report,
        })
        .await
        .map(drop)
}

impl Replicas {
    /// Reads anew which replica each local resource belongs to.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn read_hosts(&self) -> Result<(), store::Error> {
        self.0.hosts.replace(replicas_of_resources(&self.0.store).await?);
        Ok(())
    }
}
