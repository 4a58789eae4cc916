//! How the resources are used, and what waits for them: for operators.

use std::collections::BTreeMap;

use domain::agreement::{Agreement, AgreementState, ServiceState};
use scheduler::Interval;
use store::agreements;
use uuid::Uuid;

use crate::service::views::money_and_time::second_as_date_time;
use crate::service::{Result, Service};

/// Waiting agreements in the list; the others are counted.
const WAITING_SHOWN_MAX: usize = 20;
/// The times ahead for which it is told how much is booked, in seconds.
const AHEAD: [i64; 2] = [86_400, 7 * 86_400];

/// The use of the resources, and the queue.
#[derive(Debug, Clone)]
pub struct OperationsView {
    /// In the order in which ties are broken.
    pub resources: Vec<UtilisationView>,
    /// How many agreements wait for their slots.
    pub waiting: usize,
    /// The next of them to begin.
    pub queue: Vec<OperationsQueueEntryView>,
}

/// How a resource is used.
#[derive(Debug, Clone)]
pub struct UtilisationView {
    /// Its name.
    pub name: String,
    /// `in service`, `frozen` or `retired`.
    pub state: &'static str,
    /// How many nodes it has.
    pub nodes: u32,
    /// How many of them are booked now.
    pub booked: u32,
    /// On how many of these something runs.
    pub used: u32,
    /// How much of the node-hours of the next day is booked, in percent.
    pub day_percent: u32,
    /// The same of the next seven days.
    pub week_percent: u32,
}

/// An agreement that waits for its slot.
#[derive(Debug, Clone)]
pub struct OperationsQueueEntryView {
    /// Its id.
    pub id: Uuid,
    /// The name in its offer.
    pub name: Option<String>,
    /// The application that it runs, where it runs one.
    pub application: Option<String>,
    /// Its party.
    pub party: String,
    /// The resource that it is placed on.
    pub resource: String,
    /// On how many nodes.
    pub nodes: u32,
    /// From when.
    pub start: String,
    /// Until when.
    pub end: String,
    /// By how much it may still move, in seconds.
    pub slack_seconds: i64,
}

/// How the resources are used, and what waits for them, as it is stored. For operators.
///
/// # Errors
/// [`Error::Unavailable`](crate::service::Error::Unavailable).
pub async fn show_operations(service: &Service) -> Result<OperationsView> {
    let now = service.clock.now();
    let live = agreements::live_agreements(&service.store).await?;
    let placed: Vec<&Agreement> = live.iter().filter(|live| live.is_placed()).collect();
    let mut on: BTreeMap<&str, Vec<&Agreement>> = BTreeMap::new();
    for placed_one in &placed {
        on.entry(placed_one.resource.as_str())
            .or_default()
            .push(placed_one);
    }
    let resources = service.planner.resources();
    let resources = resources.iter().map(|resource| {
        let there = on.get(resource.name.as_str()).map_or(&[][..], Vec::as_slice);
        let begun = there.iter().filter(|each| each.service.is_ready());
        let [day_percent, week_percent] = AHEAD.map(|seconds| {
            let within = Interval::of(now, seconds);
            let booked: i64 = there
                .iter()
                .map(|each| booked_within_operations(each, within))
                .sum();
            let all = i64::from(resource.capacity) * seconds;
            u32::try_from((100 * booked + all / 2) / all.max(1)).unwrap_or(u32::MAX)
        });
        UtilisationView {
            name: resource.name.clone(),
            state: match () {
                () if resource.is_retired() => "retired",
                () if resource.is_frozen() => "frozen",
                () => "in service",
            },
            nodes: resource.capacity,
            booked: begun.clone().map(|agreement| agreement.slot_nodes()).sum(),
            used: begun
                .filter(|begun| begun.service == ServiceState::Processing)
                .map(|agreement| agreement.slot_nodes())
                .sum(),
            day_percent,
            week_percent,
        }
    });
    let mut waiting: Vec<_> = placed
        .iter()
        .filter(|agreement| {
            agreement.state == AgreementState::Observed && agreement.service == ServiceState::NotReady
        })
        .collect();
    waiting.sort_by_key(|agreement| (agreement.placement().start, agreement.id));
    Ok(OperationsView {
        resources: resources.collect(),
        waiting: waiting.len(),
        queue: waiting
            .iter()
            .take(WAITING_SHOWN_MAX)
            .map(|waiting| OperationsQueueEntryView::of(waiting))
            .collect(),
    })
}

/// The node-seconds of an agreement within a time.
fn booked_within_operations(agreement: &Agreement, within: Interval) -> i64 {
    let part = |(slot, nodes): (Interval, u32)| {
        let seconds = slot.end.min(within.end).seconds() - slot.start.max(within.start).seconds();
        seconds.max(0) * i64::from(nodes)
    };
    agreement.slots.stretches().into_iter().map(part).sum()
}

impl OperationsQueueEntryView {
    fn of(agreement: &Agreement) -> Self {
        let placed = agreement.placement();
        Self {
            id: agreement.id,
            name: agreement.name.clone(),
            application: agreement.job.as_ref().map(|job| job.application.clone()),
            party: agreement.party.clone(),
            resource: agreement.resource.clone(),
            nodes: agreement.nodes(),
            start: second_as_date_time(placed.start),
            end: second_as_date_time(placed.end),
            slack_seconds: if agreement.fixed {
                0
            } else {
                (agreement.deadline.seconds() - placed.end.seconds()).max(0)
            },
        }
    }
}
