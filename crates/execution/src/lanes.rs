//! The lanes of the dispatcher, as resources come, change and go.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::clock::{MICROS_PER_SECOND, Micros};
use domain::resources::Resource;
use planner::ListPlanned;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::executors::Executors;
use crate::lane::nodes::keep_informed_of_nodes;
use crate::lane::prepare::keep_prepared;
use crate::lane::{Context, Lane};
use crate::processors::{own_processors, why_processors_are_shared};

/// For how long it is looked at a start whether reservations are left on a retired cluster: a cluster that is gone for good is
/// left alone then.
const RESERVED_AFTER: Micros = 30 * 86_400 * MICROS_PER_SECOND;

/// How long the tasks of a cluster's lane may be without a success until they count as late.
const LATE: Duration = Duration::from_mins(15);

/// The lanes, by the names of their resources.
pub(super) struct Lanes {
    /// Another one only before any of them has begun.
    pub(super) context: Arc<Context>,
    executors: Executors,
    present: HashMap<String, ResourceLane>,
    /// The resources as they were last seen, and how often their replicas had changed by then.
    seen: Option<(Arc<[Resource]>, u64)>,
    /// Why nodes of this machine have no processors of their own, as was said last.
    shared: Option<String>,
}

/// A lane, and the resource that it was made for.
struct ResourceLane {
    lane: Arc<Lane>,
    resource: Resource,
    stop: CancellationToken,
}

impl Lanes {
    /// None yet.
    pub(super) fn new(context: Arc<Context>, executors: Executors) -> Self {
        Self {
            context,
            executors,
            present: HashMap::new(),
            seen: None,
            shared: None,
        }
    }

    /// The lane of a resource.
    pub(super) fn get(&self, resource: &str) -> Option<&Arc<Lane>> {
        self.present.get(resource).map(|lane| &lane.lane)
    }

    /// Begins a lane for each resource in service that has none, and another for one that has another executor. Lanes of retired
    /// resources end when nothing is planned there, nothing is to be stopped and, on a cluster, no node is reserved any more. Those
    /// in `running` have jobs.
    ///
    /// # Errors
    /// Where the planner does not answer; it is tried again with the next call.
    pub(super) async fn follow(
        &mut self,
        running: &BTreeSet<&str>,
        stop: &CancellationToken,
    ) -> Result<(), planner::Error> {
        let resources = self.context.planner.resources();
        let changes = self.context.hosts.changes();
        let is_seen =
            |(seen, then): &(Arc<[Resource]>, u64)| Arc::ptr_eq(seen, &resources) && *then == changes;
        let is_same = self.seen.as_ref().is_some_and(is_seen);
        let ends = |lane: &ResourceLane| lane.resource.is_retired();
        if is_same && !self.present.values().any(ends) {
            return Ok(());
        }
        let hosts = self.context.hosts.clone();
        let is_here = |resource: &&Resource| hosts.elsewhere(&resource.name).is_none();
        for resource in resources.iter().filter(is_here) {
            let has_lane = self.present.contains_key(&resource.name);
            if !resource.is_retired() || has_lane && self.has_work(resource, running).await? {
                self.keep(resource, stop);
            } else if has_lane {
                self.end(&resource.name);
            } else if !is_same && (self.may_be_reserved(resource) || self.has_work(resource, running).await?)
            {
                self.keep(resource, stop);
            }
        }
        self.say_whether_bound(&resources);
        self.seen = Some((resources, changes));
        Ok(())
    }

    /// Warns once where jobs of this machine can take each other's processors.
    fn say_whether_bound(&mut self, resources: &[Resource]) {
        let hosts = &self.context.hosts;
        let is_here = |resource: &&Resource| {
            resource.kind == "local" && !resource.is_retired() && hosts.is_own(&resource.name)
        };
        let why = why_processors_are_shared(&own_processors(), resources.iter().filter(is_here));
        if let Some(why) = why.as_ref().filter(|why| self.shared.as_ref() != Some(*why)) {
            warn!(why, "jobs of this machine can take each other's processors");
        }
        self.shared = why;
    }

    /// Whether a cluster was retired not long before this start, which may have come before its reservations were removed.
    fn may_be_reserved(&self, resource: &Resource) -> bool {
        let since = self.context.clock.micros() - RESERVED_AFTER;
        self.seen.is_none() && resource.is_cluster() && resource.retired.is_some_and(|at| at > since)
    }

    /// Whether there is something for the lane of a retired resource to do.
    async fn has_work(&self, resource: &Resource, running: &BTreeSet<&str>) -> Result<bool, planner::Error> {
        let name = &resource.name;
        if running.contains(name.as_str()) {
            return Ok(true);
        }
        let planned = self
            .context
            .planner
            .send(ListPlanned {
                resource: name.clone(),
            })
            .await?;
        let lane = self.present.get(name).map(|lane| &lane.lane);
        let is_cleared =
            |lane: &&Arc<Lane>| !lane.shared.is_cluster() || lane.is_cleared.load(Ordering::Relaxed);
        Ok(!planned.agreements.is_empty() || !lane.as_ref().is_none_or(is_cleared))
    }

    /// Has a resource have a lane with its executor.
    pub(super) fn keep(&mut self, resource: &Resource, stop: &CancellationToken) {
        let name = &resource.name;
        if let Some(lane) = self.present.get_mut(name)
            && can_lanes_share_executor(&lane.resource, resource)
        {
            if lane.resource.is_retired() && !resource.is_retired() {
                lane.lane.look_now.notify_one();
            }
            lane.resource = resource.clone();
            return;
        }
        let shared = match self.executors.begin(resource) {
            Ok(shared) => shared,
            // The lane of before goes on, if there is one.
            Err(why) => return error!(resource = name, why, "its executor cannot be made"),
        };
        let lane = Arc::new(Lane::new(name.clone(), shared, Arc::clone(&self.context)));
        let stop = stop.child_token();
        if lane.shared.is_cluster() {
            let keeper = self.context.tasks.until(&stop);
            let (prepares, informs) = (Arc::clone(&lane), Arc::clone(&lane));
            keeper.keep((format!("reservations on {name}"), LATE), move |stop| {
                keep_prepared(Arc::clone(&prepares), stop)
            });
            keeper.keep((format!("nodes of {name}"), LATE), move |stop| {
                keep_informed_of_nodes(Arc::clone(&informs), stop)
            });
        }
        let present = ResourceLane {
            lane,
            resource: resource.clone(),
            stop,
        };
        if let Some(before) = self.present.insert(name.clone(), present) {
            before.stop.cancel();
            info!(resource = name, "has another executor from now on");
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(removed_lane) = self.present.remove(name) {
            removed_lane.stop.cancel();
            self.executors.end(name);
            self.context.faults.forget(name);
            info!(resource = name, "is retired, and nothing is left to do there");
        }
    }
}

/// Whether two resources of one name have the same executor.
fn can_lanes_share_executor(one: &Resource, other: &Resource) -> bool {
    let lane_of = |resource: &Resource| {
        (
            resource.kind.clone(),
            resource.executor.clone(),
            resource.node_names.clone(),
        )
    };
    let memory = |resource: &Resource| resource.attributes.get("memory_bytes").cloned();
    lane_of(one) == lane_of(other) && memory(one) == memory(other)
}
