//! Work that was never started waits for another slot, on each store: while the service was down, and after the clock was
//! stepped.

use bespeak::agreement::{
    Agreement, AgreementState, Guarantee, GuaranteeState, Job, JobEnd, Run, RunOutcome, ServiceState, Shape,
    Values,
};
use bespeak::clock::{Clock, MICROS_PER_SECOND};
use bespeak::planner::{Improving, Planner, Proposal, Resource, Scaling, Settings};
use bespeak::store::Store;
use scheduler::{Interval, Seconds, Time};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::assert_nothing_impossible;
use crate::support::stores::on_both_engines;

on_both_engines!(
    what_never_began_has_another_slot_after_a_restart;
    a_release_on_postgres:
    what_would_begin_late_has_a_whole_slot_where_there_is_one,
    what_never_started_has_another_slot_after_a_step_of_the_clock,
    what_is_late_in_the_second_of_a_loss_begins_in_what_is_left_of_its_slot,
);

const NOW: i64 = 1_800_000_000;

/// A planner on a store, by a clock that the test turns.
struct Domain {
    planner: Planner,
    store: Store,
    clock: Clock,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Domain {
    async fn start(url: &str, clock: Clock) -> Self {
        let store = Store::open(url).await.expect("a store");
        let lease = store.acquire_lease().await.expect("no other process decides");
        let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 86_400);
        // Otherwise it depends on the machine whether a slice moves work up by a second before it is looked at.
        settings.improving = Improving::default();
        let stop = CancellationToken::new();
        let started = Planner::start(settings, store.clone(), lease, clock.clone(), stop.clone());
        let (planner, task) = started.await.expect("a plan");
        Self {
            planner,
            store,
            clock,
            stop,
            task,
        }
    }

    async fn stop(self) -> Clock {
        self.stop.cancel();
        self.task.await.expect("it stops");
        self.store.close().await;
        self.clock
    }

    async fn place(&self, duration: Seconds, room: Seconds) -> Agreement {
        let ready = self.clock.now();
        let proposal = Proposal {
            expires: None,
            id: Uuid::now_v7(),
            party: "physics".into(),
            name: None,
            template: "advance-reservation".into(),
            shapes: vec![Shape { nodes: 2, duration }],
            scaling: Scaling::Contract,
            preemption: None,
            filters: Vec::new(),
            barred: Vec::new(),
            fix_at_ppm: None,
            deviation_max: None,
            ready: Some(ready),
            deadline: Some(ready + duration + room),
            job: Some(Job {
                application: "sleep".into(),
                arguments: vec!["5".into()],
                ..Job::default()
            }),
            guarantees: vec![Guarantee {
                name: "COMPLETION".into(),
                objective: "completed le deadline".into(),
                qualifying_condition: None,
                state: GuaranteeState::NotDetermined,
                evidence: None,
                values: Values::default(),
            }],
            choices: Vec::new(),
            initiator_id: None,
            document: "<offer/>".into(),
            idempotency: None,
            budget: None,
            spender: None,
        };
        let accepted = self.planner.place(proposal).await.expect("there is room");
        accepted.agreement
    }

    async fn of(&self, id: Uuid) -> Agreement {
        let agreement = self.store.agreement(id).await.expect("an answer");
        agreement.expect("it is there")
    }

    async fn begin(&self) -> Vec<Uuid> {
        let begun = self.planner.begin_due().await.expect("it decides");
        begun.iter().map(|agreement| agreement.id).collect()
    }

    /// Reports how the present job of an agreement ended; one that was lost has never started.
    async fn ended(&self, id: Uuid, outcome: RunOutcome) {
        let now = self.clock.micros();
        let end = JobEnd::new(
            outcome,
            (outcome != RunOutcome::Lost).then_some(now - MICROS_PER_SECOND),
            now,
        );
        let run = Run::from(&self.of(id).await);
        self.planner.report_ended(run, end).await.expect("it runs");
    }

    /// Asserts that an agreement waits, and that its timeline says why.
    async fn assert_waits(&self, id: Uuid, slot: Interval) {
        self.assert_placed_again(id, slot).await;
        let waits = self.of(id).await;
        assert_eq!(waits.service, ServiceState::NotReady, "{waits:?}");
    }

    /// Asserts that an agreement has another slot, and that its timeline says why.
    async fn assert_placed_again(&self, id: Uuid, slot: Interval) {
        let placed = self.of(id).await;
        assert_eq!(
            (placed.state, placed.placement()),
            (AgreementState::Observed, slot),
            "{placed:?}"
        );
        let events = self.store.events(id).await.expect("a timeline");
        let told = events
            .iter()
            .any(|event| event.detail.contains("it was never started"));
        assert!(told, "{events:?}");
    }

    async fn assert_fulfilled(&self, id: Uuid) {
        let over = self.of(id).await;
        assert_eq!(over.outcome, Some(RunOutcome::Completed), "{over:?}");
        assert_eq!(over.guarantees[0].state, GuaranteeState::Fulfilled);
        let findings = self.store.verify().await.expect("an answer");
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

async fn what_never_began_has_another_slot_after_a_restart(url: String) {
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let domain = Domain::start(&url, clock).await;
    let id = domain.place(3, 900).await.id;
    let clock = domain.stop().await;
    clock.set((NOW + 7) * MICROS_PER_SECOND);
    let domain = Domain::start(&url, clock).await;
    assert_eq!(domain.begin().await, [id], "at once, lest it be late again");
    domain
        .assert_placed_again(id, Interval::of(Time(NOW + 7), 3))
        .await;
    domain.clock.set((NOW + 9) * MICROS_PER_SECOND);
    domain.ended(id, RunOutcome::Completed).await;
    domain.assert_fulfilled(id).await;
    domain.stop().await;
}

async fn what_would_begin_late_has_a_whole_slot_where_there_is_one(url: String) {
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let domain = Domain::start(&url, clock).await;
    // The one has room in its own place only, the other none for a whole slot.
    let [roomy, cramped] = [domain.place(60, 40).await.id, domain.place(60, 20).await.id];
    let clock = domain.stop().await;
    clock.set((NOW + 30) * MICROS_PER_SECOND);
    let domain = Domain::start(&url, clock).await;
    let mut begun = domain.begin().await;
    begun.sort_unstable();
    assert_eq!(begun, [roomy, cramped]);
    for (id, start) in [(roomy, NOW + 30), (cramped, NOW)] {
        let placed = domain.of(id).await;
        assert_eq!(placed.placement(), Interval::of(Time(start), 60), "{placed:?}");
    }
    let events = domain.store.events(roomy).await.expect("a timeline");
    let told = |event: &bespeak::agreement::Event| event.detail.contains("too little of its slot was left");
    assert!(events.iter().any(told), "{events:?}");
    domain.clock.set((NOW + 85) * MICROS_PER_SECOND);
    domain.ended(roomy, RunOutcome::Completed).await;
    domain.assert_fulfilled(roomy).await;
    domain.stop().await;
}

async fn what_never_started_has_another_slot_after_a_step_of_the_clock(url: String) {
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let domain = Domain::start(&url, clock).await;
    let id = domain.place(100, 7_200).await.id;
    assert_eq!(domain.begin().await, [id]);
    domain.clock.step(3_600 * MICROS_PER_SECOND);
    domain.ended(id, RunOutcome::Lost).await;
    let slot = Interval::of(Time(NOW + 3_601), 100);
    domain.assert_waits(id, slot).await;
    // Also where it is killed before it hears of the end.
    let clock = domain.stop().await;
    let domain = Domain::start(&url, clock).await;
    domain.assert_waits(id, slot).await;
    domain.clock.set((NOW + 3_601) * MICROS_PER_SECOND);
    assert_eq!(domain.begin().await, [id]);
    assert_eq!(domain.of(id).await.restarts(), 1);
    domain.clock.set((NOW + 3_650) * MICROS_PER_SECOND);
    domain.ended(id, RunOutcome::Completed).await;
    domain.assert_fulfilled(id).await;
    domain.stop().await;
}

async fn what_is_late_in_the_second_of_a_loss_begins_in_what_is_left_of_its_slot(url: String) {
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let domain = Domain::start(&url, clock).await;
    let lost = domain.place(100, 7_200).await.id;
    assert_eq!(domain.begin().await, [lost]);
    domain.clock.set((NOW + 5) * MICROS_PER_SECOND);
    let late = domain.place(10, 0).await.id;
    domain.clock.set((NOW + 14) * MICROS_PER_SECOND);
    // From here on the plan is a second ahead, at the end of the other's slot.
    domain.ended(lost, RunOutcome::Lost).await;
    assert_eq!(domain.begin().await, [late]);
    assert_nothing_impossible(&domain.planner).await;
    domain.clock.set((NOW + 15) * MICROS_PER_SECOND);
    domain.ended(late, RunOutcome::Completed).await;
    domain.assert_fulfilled(late).await;
    domain.stop().await;
}
