//! How the resources are used, and what waits for them: for operators.

use domain::agreement::Agreement;
use planner::{AHEAD, ShowOperations};
use uuid::Uuid;

use crate::views::money_and_time::second_as_date_time;
use crate::{Result, Service};

/// Waiting agreements in the list; the others are counted.
const WAITING_SHOWN_MAX: usize = 20;

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

/// How the resources are used, and what waits for them. For operators.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable).
pub async fn show_operations(service: &Service) -> Result<OperationsView> {
    let operations = service
        .ask(ShowOperations {
            waiting_max: WAITING_SHOWN_MAX,
        })
        .await?;
    let resources = service.planner.resources();
    let resources = resources.iter().map(|resource| {
        let mut all = operations.resources.iter();
        let used = all.find(|used| used.name == resource.name);
        let percent = |ahead: usize| {
            let (_, seconds) = AHEAD[ahead];
            let all = u64::from(resource.capacity) * seconds.unsigned_abs();
            let booked = used.map_or(0, |used| used.ahead[ahead]);
            u32::try_from((100 * booked + all / 2) / all.max(1)).unwrap_or(u32::MAX)
        };
        UtilisationView {
            name: resource.name.clone(),
            state: match () {
                () if resource.is_retired() => "retired",
                () if resource.is_frozen() => "frozen",
                () => "in service",
            },
            nodes: resource.capacity,
            booked: used.map_or(0, |used| used.booked),
            used: used.map_or(0, |used| used.used),
            day_percent: percent(0),
            week_percent: percent(1),
        }
    });
    let queue = operations.next.iter().map(OperationsQueueEntryView::of);
    Ok(OperationsView {
        resources: resources.collect(),
        waiting: operations.waiting,
        queue: queue.collect(),
    })
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
