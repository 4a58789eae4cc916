//! Reports the states of a cluster's nodes to the planner, and opens the cluster for promises. A node that looks down may only be
//! out of sight. So work counts as lost with its node only where two looks agree, no look has failed for a while, and the work has
//! not recorded its own end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use domain::agreement::{Agreement, JobEnd, Run, ServiceState};
use domain::resources::{NodeReport, Repaired, Reporter, Resource};
use planner::{CheckClosed, ListPlanned, OpenResource, SetNodes};
use task::note_success;
use tokio_util::sync::CancellationToken;
use tracing::info;
use uuid::Uuid;

use super::{Context, Failure, Lane};
use crate::faults::ResourceUse;
use crate::lane::staging::report_recorded_after_staging;
use crate::processors::{own_processors, processors_of_nodes};
use crate::{CheckResult, Executor};

/// How often the executor of a cluster is asked how its nodes stand.
const NODES_EVERY: Duration = Duration::from_secs(10);
/// How long to wait before an executor is asked again that says of nodes that they are worse than before.
const SECOND_LOOK: Duration = Duration::from_secs(2);
/// For how long after a look has failed a node that is down is only out of use: the cause that kept the executor from its
/// cluster may have kept the cluster from its nodes.
const AFTER_OUTAGE: Duration = Duration::from_mins(1);

/// How many times as long as other calls the checks of a cluster may take: they are a dozen.
const CHECKS_LONGER: u32 = 4;
/// How often, and after which pause, a record is asked for while another call about its agreement is under way.
const TRIES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// The state at the last look.
#[derive(Default)]
struct NodeSnapshot {
    /// As it was told to the planner.
    report: NodeReport,
    /// When the last look failed.
    failed: Option<Instant>,
}

/// The processors that a job may run on: those of its nodes, where these are of this machine and have some. A job whose nodes are not
/// known at the moment is not bound, since it cannot wait.
pub(super) async fn processors_on_nodes(lane: &Lane, agreement: &Agreement) -> Vec<usize> {
    let Context {
        planner, lead, hosts, ..
    } = &*lane.context;
    let resources = planner.resources();
    let is_here = |resource: &&Resource| {
        resource.kind == "local" && !resource.is_retired() && hosts.is_own(&resource.name)
    };
    let here = resources.iter().filter(is_here);
    if !here.clone().any(|resource| resource.name == lane.resource) {
        return Vec::new();
    }
    let nodes = lead.nodes_of(agreement.id).await.unwrap_or_default();
    processors_of_nodes(&own_processors(), here, &lane.resource, &nodes).unwrap_or_default()
}

/// Reports the states of a cluster's nodes to the planner, repeatedly, until `stop`. Nothing new is promised on the cluster
/// until its checks have found nothing wrong, its nodes have been seen, and the plan has been handed over.
pub(crate) async fn keep_informed_of_nodes(lane: Arc<Lane>, stop: CancellationToken) {
    let mut seen = NodeSnapshot::default();
    let mut is_open = false;
    let note = |message| {
        let Context { faults, clock, .. } = &*lane.context;
        faults.note(&lane.resource, ResourceUse::PassChecks, message, clock.micros())
    };
    note(Some("its checks have not been made yet".to_owned()));
    loop {
        let informed = inform_of_nodes(&lane, &mut seen).await;
        lane.note(ResourceUse::TellNodes, informed.as_ref().err());
        if informed.is_ok() {
            note_success();
        }
        // It may have been retired and restored since.
        is_open = is_open && !are_nodes_closed(&lane).await;
        if !is_open && lane.has_followed.load(Ordering::Relaxed) {
            match open_if_nodes_are_checked(&lane, informed.is_ok()).await {
                Ok(()) => {
                    note(None);
                    is_open = true;
                }
                Err(failure) => lane.note(ResourceUse::PassChecks, Some(&failure)),
            }
            lane.context
                .unseen
                .send_if_modified(|unseen| unseen.remove(&lane.resource));
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(NODES_EVERY) => {}
            () = lane.look_now.notified() => {}
        }
    }
}

/// Whether the planner waits for the checks.
async fn are_nodes_closed(lane: &Lane) -> bool {
    let closed = lane
        .context
        .planner
        .send(CheckClosed {
            resource: lane.resource.clone(),
        })
        .await;
    closed.unwrap_or(false)
}

/// Opens the cluster for promises when its checks find no fault.
async fn open_if_nodes_are_checked(lane: &Lane, nodes_are_seen: bool) -> Result<(), Failure> {
    let patience = lane.shared.executor.patience() * CHECKS_LONGER;
    let check = |executor: &dyn Executor| Ok(executor.check());
    // No other call can concern an agreement with this number: there is none.
    let checks = lane.call_within(patience, Some(Uuid::max()), check);
    let wrong: Vec<String> = checks
        .await?
        .into_iter()
        .filter_map(|check| match check.found {
            CheckResult::Wrong(words) => Some(format!("{}: {words}", check.what)),
            CheckResult::Good(_) | CheckResult::Unknown(_) => None,
        })
        .collect();
    if !wrong.is_empty() {
        return Err(Failure::Unfit(wrong.join("; ")));
    }
    if !nodes_are_seen {
        return Err(Failure::Unfit("its nodes have not been seen yet".to_owned()));
    }
    lane.context
        .planner
        .send(OpenResource {
            resource: lane.resource.clone(),
        })
        .await?;
    info!(
        resource = lane.resource,
        "checks passed: promises are made from now on"
    );
    Ok(())
}

/// Tells the planner how the nodes stand.
async fn inform_of_nodes(lane: &Lane, seen: &mut NodeSnapshot) -> Result<(), Failure> {
    let looked = look_twice_at_nodes(lane, &seen.report).await;
    let mut report = looked.inspect_err(|_| seen.failed = Some(Instant::now()))?;
    let newly_down = report.newly_down(&seen.report);
    if !newly_down.is_empty() {
        let is_settling = seen.failed.is_some_and(|at| at.elapsed() < AFTER_OUTAGE);
        let spared = if is_settling {
            newly_down
        } else {
            ask_records_of_nodes(lane, newly_down).await?
        };
        report.spare(&spared);
    }
    let resource = lane.resource.clone();
    let planner = &lane.context.planner;
    let told = planner.send(SetNodes {
        resource,
        by: Reporter::Executor,
        report: report.clone(),
    });
    let repaired = told.await?;
    seen.report = report;
    if repaired != Repaired::default() {
        info!(
            resource = lane.resource,
            ?repaired,
            "nodes have failed or come back"
        );
    }
    Ok(())
}

/// How the nodes stand. Where some are worse than before they are looked at once more, and are as the better of the two
/// looks has them.
async fn look_twice_at_nodes(lane: &Lane, before: &NodeReport) -> Result<NodeReport, Failure> {
    // Nothing else is about the agreement that there never is.
    let look = async || {
        let asked = |executor: &dyn Executor| executor.node_states();
        lane.call(Some(Uuid::nil()), asked).await
    };
    let report = look().await?;
    if !report.is_worse_than(before) {
        return Ok(report);
    }
    tokio::time::sleep(SECOND_LOOK).await;
    Ok(look().await?.or_better(&report))
}

/// Reports the ends of jobs on nodes that have gone down, where the jobs have recorded them. Returns the nodes with job
/// records that cannot be read now.
async fn ask_records_of_nodes(lane: &Lane, down: Vec<u32>) -> Result<Vec<u32>, Failure> {
    let planned = lane
        .context
        .planner
        .send(ListPlanned {
            resource: lane.resource.clone(),
        })
        .await?;
    let mut unread = Vec::new();
    for (agreement, given) in planned.agreements {
        let runs = agreement.job.is_some() && agreement.service == ServiceState::Processing;
        if !runs || !given.iter().any(|node| down.contains(node)) {
            continue;
        }
        let told = match recorded_job_end_on_nodes(lane, &agreement).await {
            Ok(Some(end)) => report_recorded_after_staging(lane, &agreement, end).await,
            Ok(None) => Ok(true),
            Err(failure) => Err(failure),
        };
        match told {
            Ok(true) => {}
            // A disk that hangs would delay the report on the other nodes.
            Err(Failure::NoAnswer(_)) => return Ok(down),
            // It cannot be read, or its files are still being sent, for which it needs no nodes.
            Ok(false) | Err(_) => unread.extend(given),
        }
    }
    Ok(unread)
}

/// How the job of an agreement has ended by its own record. Where its executor is asked about it just now, this waits for a
/// moment.
async fn recorded_job_end_on_nodes(lane: &Lane, agreement: &Agreement) -> Result<Option<JobEnd>, Failure> {
    let own = Run::from(agreement);
    let read = move |executor: &dyn Executor| {
        // Records of a job that was lost before say nothing of this one.
        if own.attempt > 0 && !executor.end_earlier_attempts(own)? {
            return Ok(None);
        }
        executor.recorded_job_end(own)
    };
    let mut tries = 1;
    loop {
        match lane.call(Some(agreement.execution_id()), read).await {
            Err(Failure::NoAnswer(_)) if tries < TRIES => tries += 1,
            answer => return answer,
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
}
