//! Hands the plan of a cluster to its executor whenever it changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::agreement::{Agreement, Run, Stretch};
use planner::{KeepNodes, ListPlanned, ReportHandingOver, ReportReserving, ReportUnused};
use task::note_success;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Failure, Lane, is_report_of_lane_taken};
use crate::faults::ResourceUse;
use crate::{Executor, PlannedSlot};

/// The pause between two hand-overs of a changing plan: changes come in groups.
const PREPARE_PAUSE: Duration = Duration::from_millis(1_500);
/// How often the plan is handed over when it has not changed: the executor's reservations may have been lost.
const PREPARE_EVERY: Duration = Duration::from_secs(10);

/// How long after a failure to follow the plan the next try comes at the latest.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Hands the plan of a cluster to its executor whenever it changes, until `stop`.
pub(crate) async fn keep_prepared(lane: Arc<Lane>, stop: CancellationToken) {
    let mut changes = lane.context.planner.subscribe_changes();
    let (mut retry, mut has_changed) = (PREPARE_PAUSE, false);
    loop {
        has_changed |= changes.has_changed().unwrap_or(false);
        changes.borrow_and_update();
        let failure = prepare_resource(&lane).await.err();
        retry = if failure.is_none() || has_changed {
            PREPARE_PAUSE
        } else {
            (retry * 2).min(RETRY_MAX)
        };
        let wait = if failure.is_some() { retry } else { PREPARE_EVERY };
        lane.note(ResourceUse::FollowPlan, failure.as_ref());
        if failure.is_none() {
            note_success();
        }
        // The first of a group of changes does not wait; the rest wait together.
        let pause = tokio::time::sleep(PREPARE_PAUSE);
        let changed = async {
            let woken = tokio::time::timeout(wait, changes.changed()).await;
            pause.await;
            woken.is_ok()
        };
        tokio::select! {
            () = stop.cancelled() => return,
            is_woken = changed => has_changed = is_woken,
        }
    }
}

async fn prepare_resource(lane: &Lane) -> Result<(), Failure> {
    let planned = lane
        .context
        .planner
        .send(ListPlanned {
            resource: lane.resource.clone(),
        })
        .await?;
    let (waiting, moved, replaced) = (planned.waiting, planned.moved, planned.replaced);
    let agreements = planned.agreements.iter();
    let ids: HashMap<Uuid, Uuid> = agreements
        .map(|(agreement, _)| (agreement.execution_id(), agreement.id))
        .collect();
    let slots = planned.agreements.into_iter();
    let mut slots: Vec<_> = slots
        .flat_map(|(slot, nodes)| slots_to_prepare(&slot, &nodes))
        .collect();
    for slot in &mut slots {
        slot.is_awaited = waiting.contains(&slot.run.agreement) || moved.contains(&slot.run.agreement);
        slot.replaces = replaced.get(&slot.run.agreement).copied();
    }
    slots.sort_by_key(|slot| (slot.interval.start, slot.run.agreement, slot.run.slot));
    let is_empty = slots.is_empty();
    let prepare = move |executor: &dyn Executor| {
        executor.leave_out(planned.left_out);
        executor.prepare(&slots)
    };
    let prepared = lane.call(None, prepare).await;
    lane.is_cleared
        .store(is_empty && prepared.is_ok(), Ordering::Relaxed);
    let kept = lane.shared.executor.kept_nodes();
    let (planner, resource) = (&lane.context.planner, || lane.resource.clone());
    let within = lane.shared.executor.reserves_within();
    let is_followed = prepared.is_ok() || within.is_some();
    if let Some(within) = within {
        let refused = lane.shared.executor.refused();
        let is_refused = refused
            .iter()
            .any(|(refused, _)| waiting.contains(refused) || moved.contains(refused));
        planner
            .send(ReportReserving {
                resource: resource(),
                refused,
                within,
            })
            .await?;
        let handed = lane.shared.executor.hands_over_within().unwrap_or(within);
        planner
            .send(ReportHandingOver {
                resource: resource(),
                within: handed,
            })
            .await?;
        if is_refused {
            // Another slot is looked for when it is known which nodes are others' now.
            lane.look_now.notify_one();
        }
    }
    // Refusals come first: Slurm may hold only some nodes of a slot, or nodes with jobs of others.
    if is_followed {
        // Before the first look it is not known what is held.
        planner
            .send(KeepNodes {
                resource: resource(),
                kept,
            })
            .await?;
    }
    if is_followed && !lane.has_followed.swap(true, Ordering::Relaxed) {
        lane.look_now.notify_one();
    }
    for (work, unused) in lane.shared.executor.unused() {
        let id = ids.get(&work).copied().unwrap_or(work);
        is_report_of_lane_taken(
            lane.context
                .planner
                .send(ReportUnused {
                    agreement: id,
                    unused,
                })
                .await,
        )?;
    }
    prepared
}

/// An agreement as its executor is told of it in advance, with the nodes that it has been given: its slots that are
/// not over.
fn slots_to_prepare(agreement: &Agreement, given: &[u32]) -> Vec<PlannedSlot> {
    let job = agreement.job.as_ref();
    let application = job.map_or_else(String::new, |job| job.application.clone());
    let slot = |number: u32, (interval, nodes): Stretch, begun: bool| PlannedSlot {
        run: Run {
            slot: number,
            ..Run::from(agreement)
        },
        party: agreement.party.clone(),
        nodes,
        interval,
        given: if begun { given.to_vec() } else { Vec::new() },
        begun,
        is_awaited: false,
        replaces: None,
        has_job: job.is_some(),
        application: application.clone(),
    };
    let present = agreement.slot_number();
    let begun = |number| agreement.has_nodes() && number == present;
    let numbered = (1..).zip(agreement.slots.iter());
    let open = numbered.filter(|(_, numbered)| numbered.ended.is_none());
    let open = open.map(|(number, open)| slot(number, open.stretch(), begun(number)));
    open.collect()
}
