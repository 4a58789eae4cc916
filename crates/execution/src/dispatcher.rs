//! The task that makes the plan happen: begins the slots that are due, starts their jobs, follows them, stops the jobs
//! of terminated agreements, and reports their ends to the planner.
//!
//! It remembers nothing that matters. In each round it asks the planner which jobs should run and the executors how each
//! stands, and does the missing steps; a step that failed, or was cut off by a crash, is still missing in
//! the next round. So a restart is no special case. No round waits for an executor: each resource's agreements are
//! attended to in a lane of its own, and one that is still at it sits a round out.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::agreement::Agreement;
use domain::catalogue::Catalogue;
use domain::clock::{Clock, MICROS_PER_SECOND};
use planner::{BeginDue, ListRunning};
use scheduler::Time;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use uuid::Uuid;

use crate::executors::Executors;
use crate::faults::{Faults, ResourceUse};
use crate::files::inputs::InputFiles;
use crate::hosts::Hosts;
use crate::lead::Lead;
use crate::staging::Stager;

use task::{KeptTasks, note_success};
use writer::Planner;

use crate::lane::{Context, Failure};
use crate::lanes::Lanes;
pub use crate::shared_executor::SharedExecutor;

/// How often running jobs are looked at.
const TICK: Duration = Duration::from_millis(200);
/// The longest wait with nothing running: the clock may be stepped, so it is looked at again.
const IDLE: Duration = Duration::from_secs(1);
/// How long to wait after a failure before the next try, at first and at most; it doubles in between. A failed job may
/// have a slot of a few seconds only.
const RETRY: (Duration, Duration) = (TICK, Duration::from_secs(2));

/// Makes the plan happen.
pub struct Dispatcher {
    context: Arc<Context>,
    lanes: Lanes,
    attending: JoinSet<LaneResult>,
    /// The resources with a lane at work.
    busy: HashSet<String>,
    /// The present faults.
    retries: HashMap<Concern, Retry>,
    /// The agreements whose jobs have no records now, with their resources.
    unrecorded: HashMap<Uuid, (String, Failure)>,
}

/// The result of a lane: its resource, and each agreement's.
type LaneResult = (String, Vec<(Uuid, Result<(), Failure>)>);

/// The part that fails.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Concern {
    Planner,
    Resource(String),
    Agreement(Uuid),
}

/// A failure that lasts.
struct Retry {
    /// The last message about it.
    message: String,
    wait: Duration,
    next_try: Instant,
}

impl Dispatcher {
    /// A dispatcher of the planner's jobs to the executors of the resources, with the applications and the input files, and
    /// `staging` which moves others. The executors stop jobs by the system's clock; `clock` only decides when their slots begin.
    pub fn new(
        planner: Planner,
        executors: Executors,
        catalogue: watch::Receiver<Arc<Catalogue>>,
        files: InputFiles,
        staging: Stager,
        clock: Clock,
    ) -> Self {
        let resources = planner.resources();
        let clusters = resources
            .iter()
            .filter(|resource| resource.closed && !resource.is_retired());
        let (unseen, _) = watch::channel(clusters.map(|cluster| cluster.name.clone()).collect());
        let lead = Lead::Here(planner.clone());
        let context = Arc::new(Context {
            unseen,
            planner,
            lead,
            hosts: Hosts::default(),
            catalogue,
            files,
            staging,
            clock,
            faults: Faults::default(),
            tasks: KeptTasks::default(),
        });
        Self {
            lanes: Lanes::new(Arc::clone(&context), executors),
            context,
            attending: JoinSet::new(),
            busy: HashSet::new(),
            retries: HashMap::new(),
            unrecorded: HashMap::new(),
        }
    }

    /// A dispatcher for a process that has only some of the local resources: its own in `hosts`. Where another process leads, it
    /// has no others. Its lanes keep their tasks among `tasks`.
    #[must_use]
    pub fn among(mut self, hosts: Hosts, lead: Option<Lead>, tasks: KeptTasks) -> Self {
        let before = (*self.context).clone();
        let lead = lead.unwrap_or_else(|| before.lead.clone());
        self.context = Arc::new(Context {
            lead,
            hosts,
            tasks,
            ..before
        });
        self.lanes.context = Arc::clone(&self.context);
        self
    }

    /// The faults of the resources at present; others read them while this runs.
    pub fn faults(&self) -> Faults {
        self.context.faults.clone()
    }

    /// The clusters that have not been looked at since the start. The start waits until there is none.
    pub fn unseen(&self) -> watch::Receiver<BTreeSet<String>> {
        self.context.unseen.subscribe()
    }

    /// Runs until `stop` is cancelled. Jobs that run then run on, and are followed again after the next start.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut due = self.context.planner.subscribe();
        // Jobs of an earlier run of the service are followed from the start.
        let mut following = true;
        let mut resources = self.context.planner.subscribe_resources();
        while !stop.is_cancelled() {
            resources.borrow_and_update();
            following = self.round(following, &stop).await;
            note_success();
            let next = *due.borrow_and_update();
            let wait = if following {
                TICK
            } else {
                self.idle_time_until(next)
            };
            let again = tokio::time::Instant::now() + wait;
            loop {
                tokio::select! {
                    () = stop.cancelled() => break,
                    Some(attended) = self.attending.join_next(), if !self.attending.is_empty() => {
                        self.note_attended(attended);
                    }
                    changed = due.changed() => {
                        // Without a planner nothing is due, and this task is cancelled soon.
                        if changed.is_err() {
                            stop.run_until_cancelled(tokio::time::sleep(wait)).await;
                        }
                        break;
                    }
                    Ok(()) = resources.changed() => break,
                    () = tokio::time::sleep_until(again) => break,
                }
            }
        }
        // Calls that are under way end by themselves; the next look finds their results again.
    }

    /// How long there is nothing to do when that is the next instant with something due. No less than a tick: a failed
    /// call is tried again, but not at once.
    fn idle_time_until(&self, next: Option<Time>) -> Duration {
        let left = |at: Time| at.seconds().saturating_mul(MICROS_PER_SECOND) - self.context.clock.micros();
        let left = next.map(|at| Duration::from_micros(u64::try_from(left(at)).unwrap_or(0)));
        left.unwrap_or(IDLE).clamp(TICK, IDLE)
    }

    /// Begins due slots and has the lanes attend to running jobs; answers whether anything may be running.
    async fn round(&mut self, following: bool, stop: &CancellationToken) -> bool {
        if !self.may_try(&Concern::Planner) {
            return following;
        }
        let mut outcome = self.running_agreements(following).await;
        if let Ok(running) = &outcome {
            let there = running.iter().map(|running| running.resource.as_str()).collect();
            if let Err(why) = self.lanes.follow(&there, stop).await {
                outcome = Err(why.into());
            }
        }
        self.note_outcome(Concern::Planner, outcome.as_ref().err());
        let Ok(running) = outcome else { return true };
        // A leader elsewhere says only when it is asked that something is to run.
        let any = !running.is_empty() || matches!(self.context.lead, Lead::Elsewhere(..));
        let ids: HashSet<Uuid> = running.iter().map(|agreement| agreement.id).collect();
        let is_over = |concern: &Concern| matches!(concern, Concern::Agreement(id) if !ids.contains(id));
        self.retries.retain(|concern, _| !is_over(concern));
        let over =
            |(id, (resource, _)): (&Uuid, &(String, Failure))| (!ids.contains(id)).then(|| resource.clone());
        let over: Vec<String> = self.unrecorded.iter().filter_map(over).collect();
        self.unrecorded.retain(|id, _| ids.contains(id));
        for resource in over {
            self.note_doing(&resource, None);
        }
        self.attend(running);
        any
    }

    /// Begins due slots, and lists the agreements that should run now.
    async fn running_agreements(&self, following: bool) -> Result<Vec<Agreement>, Failure> {
        let planner = &self.context.planner;
        if let Some(running) = self.context.lead.running_here().await? {
            return Ok(running);
        }
        let due = *planner.subscribe().borrow();
        let is_due = due.is_some_and(|at| at <= self.context.clock.now());
        let has_begun = is_due && !planner.send(BeginDue).await?.is_empty();
        if !following && !has_begun {
            return Ok(Vec::new());
        }
        let mut running = planner.send(ListRunning).await?;
        // Those of another replica are carried out there.
        running.retain(|running| self.context.hosts.elsewhere(&running.resource).is_none());
        Ok(running)
    }

    /// Has each lane that is free attend to its resource's agreements.
    fn attend(&mut self, running: Vec<Agreement>) {
        let mut by_resource: HashMap<String, Vec<Agreement>> = HashMap::new();
        for agreement in running {
            if self.may_try(&Concern::Agreement(agreement.id)) {
                by_resource
                    .entry(agreement.resource.clone())
                    .or_default()
                    .push(agreement);
            }
        }
        for (resource, agreements) in by_resource {
            let Some(lane) = self.lanes.get(&resource) else {
                // Its executor could not be made.
                error!(resource, "has no executor");
                continue;
            };
            if !self.may_try(&Concern::Resource(resource.clone())) || !self.busy.insert(resource.clone()) {
                continue;
            }
            let lane = Arc::clone(lane);
            self.attending.spawn(async move {
                let results = lane.attend_to_all(agreements).await;
                (resource, results)
            });
        }
    }

    /// Takes note of the result of a lane.
    fn note_attended(&mut self, attended: Result<LaneResult, tokio::task::JoinError>) {
        let attended = attended.inspect_err(|cut_off| error!(%cut_off, "attending to a resource failed"));
        let Ok((resource, results)) = attended else {
            // Its agreement is not known; an agreement that is attended to already is not attended to twice.
            if self.attending.is_empty() {
                self.busy.clear();
            }
            return;
        };
        self.busy.remove(&resource);
        let mut hangs = None;
        for (id, result) in results {
            if let Err(failure @ Failure::NoAnswer(_)) = result {
                // It is the resource's trouble, and said once.
                hangs.get_or_insert(failure);
                continue;
            }
            self.note_outcome(Concern::Agreement(id), result.as_ref().err());
            match result {
                Err(failure @ Failure::NoRecords(_)) => {
                    self.unrecorded.insert(id, (resource.clone(), failure));
                }
                _ => drop(self.unrecorded.remove(&id)),
            }
        }
        self.note_doing(&resource, hangs.as_ref());
        self.note_outcome(Concern::Resource(resource), hangs.as_ref());
    }

    /// Notes how a resource runs its jobs: whether its executor hangs, or lacks records of some of them.
    fn note_doing(&self, resource: &str, hangs: Option<&Failure>) {
        let mut unrecorded = self
            .unrecorded
            .values()
            .filter(|(unrecorded, _)| unrecorded == resource);
        let failure = hangs.or_else(|| unrecorded.next().map(|(_, failure)| failure));
        if let Some(lane) = self.lanes.get(resource) {
            lane.note(ResourceUse::RunJobs, failure);
        }
    }

    /// Whether it is time for a try, as far as earlier failures go.
    fn may_try(&self, with: &Concern) -> bool {
        self.retries
            .get(with)
            .is_none_or(|retry| retry.next_try <= Instant::now())
    }

    /// Keeps account of failures: reports each when it is new, and when it is over. The failures of a resource are
    /// reported by its lane.
    fn note_outcome(&mut self, with: Concern, failure: Option<&Failure>) {
        let said = matches!(with, Concern::Resource(_));
        let Some(failure) = failure else {
            if self.retries.remove(&with).is_some() && !said {
                info!(concern = ?with, "works again");
            }
            return;
        };
        let message = failure.to_string();
        let before = self.retries.get(&with);
        if !said && before.is_none_or(|before| before.message != message) {
            warn!(concern = ?with, %message, "failed; trying again");
        }
        let wait = before.map_or(RETRY.0, |before| (before.wait * 2).min(RETRY.1));
        let next_try = Instant::now() + wait;
        let retry = Retry {
            message,
            wait,
            next_try,
        };
        self.retries.insert(with, retry);
    }
}
