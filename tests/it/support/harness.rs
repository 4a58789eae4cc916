//! A planner on a real store, by a clock that the test turns: commands go in, answers and stored changes come out. The provider's
//! rules are tested on it, without a server.

use std::ops::Range;
use std::time::Duration;

use domain::agreement::{Agreement, Guarantee, GuaranteeState, Job, Shape, Values};
use domain::clock::{Clock, MICROS_PER_SECOND};
use domain::resources::Scaling;
use planner::{BeginDue, Error, Place, Refusal, Request, Settings};
use scheduler::{Seconds, Time};
use store::{Store, agreements};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use writer::Planner;

use super::{assert_nothing_impossible, eventually};

/// How long a database may take to be opened.
const DEADLINE: Duration = Duration::from_mins(1);

/// When tests begin, in seconds.
pub(crate) const NOW: i64 = 1_800_000_000;

/// A service without its doors.
pub(crate) struct Domain {
    pub(crate) planner: Planner,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    url: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Domain {
    /// Starts it at [`NOW`].
    pub(crate) async fn start(url: &str, settings: Settings) -> Self {
        Self::start_by(url, settings, Clock::standing_at(NOW * MICROS_PER_SECOND)).await
    }

    async fn start_by(url: &str, settings: Settings, clock: Clock) -> Self {
        // Where the machine has much to do, a connection may not come in time.
        let store = eventually("the database", DEADLINE, async || Store::open(url).await.ok()).await;
        let lease = store.acquire_lease().await.expect("no other process decides");
        let stop = CancellationToken::new();
        let (planner, task) = Planner::start(settings, store.clone(), lease, clock.clone(), stop.clone())
            .await
            .expect("the stored data make a plan");
        Self {
            planner,
            store,
            clock,
            url: url.to_owned(),
            stop,
            task,
        }
    }

    /// Stops it; nothing impossible has happened to its plan.
    pub(crate) async fn end(&mut self) {
        assert_nothing_impossible(&self.planner).await;
        self.stop.cancel();
        (&mut self.task).await.expect("the planner does not panic");
        self.store.close().await;
    }

    /// Stops it, and starts it on what it has stored when so many seconds have passed.
    pub(crate) async fn restart(&mut self, settings: Settings, down: Seconds) {
        self.end().await;
        self.clock.set(self.clock.micros() + down * MICROS_PER_SECOND);
        *self = Self::start_by(&self.url.clone(), settings, self.clock.clone()).await;
    }

    /// Turns the clock to so many seconds after [`NOW`].
    pub(crate) fn turn(&self, seconds: Seconds) {
        self.clock.set((NOW + seconds) * MICROS_PER_SECOND);
    }

    /// Turns the clock to so many seconds after [`NOW`], and has everything done at its instant that is due by then.
    pub(crate) async fn pass(&self, until: Seconds) {
        loop {
            let due = *self.planner.subscribe().borrow();
            let next = due.map(Time::seconds).filter(|due| *due <= NOW + until);
            let at = next.unwrap_or(NOW + until) * MICROS_PER_SECOND;
            self.clock.set(at.max(self.clock.micros()));
            self.planner.send(BeginDue).await.expect("it is stored");
            if next.is_none() {
                return;
            }
        }
    }

    /// The agreement that is made.
    pub(crate) async fn place(&self, request: Request) -> Agreement {
        let accepted = self.planner.send(Place(request)).await.expect("there is room");
        accepted.agreement
    }

    /// Why none is made.
    pub(crate) async fn refuse(&self, request: Request) -> Refusal {
        match self.planner.send(Place(request)).await {
            Err(Error::Refused(refusal)) => *refusal,
            other => panic!("it is not refused: {other:?}"),
        }
    }

    /// An agreement as it is stored.
    pub(crate) async fn stored(&self, id: Uuid) -> Agreement {
        let found = agreements::agreement(&self.store, id)
            .await
            .expect("it can be read");
        found.expect("it is there")
    }

    /// Asserts that the stored data has no fault.
    pub(crate) async fn assert_verified(&self) {
        let findings = self.store.verify().await.expect("it can be read");
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

/// Asks for nodes for a duration in a window, which begins and ends so many seconds after [`NOW`], to run something.
pub(crate) fn proposal(nodes: u32, duration: Seconds, window: Range<Seconds>) -> Request {
    Request {
        expires: None,
        id: Uuid::now_v7(),
        party: "physics".into(),
        name: None,
        template: "advance-reservation".into(),
        shapes: vec![Shape { nodes, duration }],
        scaling: Scaling::Contract,
        preemption: None,
        shape_changes: None,
        filters: Vec::new(),
        barred: Vec::new(),
        fix_at_ppm: None,
        deviation_max: None,
        ready: Some(Time(NOW + window.start)),
        deadline: Some(Time(NOW + window.end)),
        job: Some(Job {
            application: "sleep".into(),
            arguments: vec!["1".into()],
            ..Job::default()
        }),
        guarantees: vec![guarantee(
            "COMPLETION",
            "completed le deadline",
            Values::default(),
        )],
        choices: Vec::new(),
        initiator_id: None,
        document: "<offer/>".into(),
        idempotency: None,
        budget: None,
        spender: None,
    }
}

pub(crate) fn guarantee(name: &str, objective: &str, values: Values) -> Guarantee {
    Guarantee {
        name: name.into(),
        objective: objective.into(),
        qualifying_condition: None,
        state: GuaranteeState::NotDetermined,
        evidence: None,
        values,
    }
}
