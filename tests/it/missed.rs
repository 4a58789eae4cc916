//! Work that was never started waits for another slot, on each store: while the service was down, and after the clock was
//! stepped.

use bespeak::agreement::{Agreement, AgreementState, GuaranteeState, JobEnd, Run, RunOutcome, ServiceState};
use bespeak::clock::MICROS_PER_SECOND;
use bespeak::planner::{Improving, Resource, Settings};
use scheduler::{Interval, Seconds, Time};
use uuid::Uuid;

use crate::support::domain::{self, NOW, proposal};
use crate::support::stores::on_both_engines;

on_both_engines!(
    what_never_began_has_another_slot_after_a_restart;
    a_release_on_postgres:
    what_would_begin_late_has_a_whole_slot_where_there_is_one,
    what_never_started_has_another_slot_after_a_step_of_the_clock,
    what_is_late_in_the_second_of_a_loss_begins_in_what_is_left_of_its_slot,
);

fn settings() -> Settings {
    Settings {
        // Otherwise it depends on the machine whether a slice moves work up by a second before it is looked at.
        improving: Improving::default(),
        ..Settings::new(vec![Resource::new("local", "local", 4)], 86_400)
    }
}

/// A planner of four nodes.
struct Domain(domain::Domain);

impl Domain {
    async fn start(url: &str) -> Self {
        Self(domain::Domain::start(url, settings()).await)
    }

    /// Two nodes for a duration, now or so much later.
    async fn place(&self, duration: Seconds, room: Seconds) -> Uuid {
        let now = self.0.clock.now().seconds() - NOW;
        self.0
            .place(proposal(2, duration, now..now + duration + room))
            .await
            .id
    }

    async fn of(&self, id: Uuid) -> Agreement {
        self.0.stored(id).await
    }

    async fn begin(&self) -> Vec<Uuid> {
        let begun = self.0.planner.begin_due().await.expect("it decides");
        begun.iter().map(|agreement| agreement.id).collect()
    }

    /// Reports how the present job of an agreement ended; one that was lost has never started.
    async fn ended(&self, id: Uuid, outcome: RunOutcome) {
        let now = self.0.clock.micros();
        let end = JobEnd::new(
            outcome,
            (outcome != RunOutcome::Lost).then_some(now - MICROS_PER_SECOND),
            now,
        );
        let run = Run::from(&self.of(id).await);
        self.0.planner.report_ended(run, end).await.expect("it runs");
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
        let events = self.0.store.events(id).await.expect("a timeline");
        let told = events
            .iter()
            .any(|event| event.detail.contains("it was never started"));
        assert!(told, "{events:?}");
    }

    async fn assert_fulfilled(&self, id: Uuid) {
        let over = self.of(id).await;
        assert_eq!(over.outcome, Some(RunOutcome::Completed), "{over:?}");
        assert_eq!(over.guarantees[0].state, GuaranteeState::Fulfilled);
        self.0.assert_verified().await;
    }
}

async fn what_never_began_has_another_slot_after_a_restart(url: String) {
    let mut domain = Domain::start(&url).await;
    let id = domain.place(3, 900).await;
    domain.0.restart(settings(), 7).await;
    assert_eq!(domain.begin().await, [id], "at once, lest it be late again");
    domain
        .assert_placed_again(id, Interval::of(Time(NOW + 7), 3))
        .await;
    domain.0.turn(9);
    domain.ended(id, RunOutcome::Completed).await;
    domain.assert_fulfilled(id).await;
    domain.0.end().await;
}

async fn what_would_begin_late_has_a_whole_slot_where_there_is_one(url: String) {
    let mut domain = Domain::start(&url).await;
    // The one has room in its own place only, the other none for a whole slot.
    let [roomy, cramped] = [domain.place(60, 40).await, domain.place(60, 20).await];
    domain.0.restart(settings(), 30).await;
    let mut begun = domain.begin().await;
    begun.sort_unstable();
    assert_eq!(begun, [roomy, cramped]);
    for (id, start) in [(roomy, NOW + 30), (cramped, NOW)] {
        let placed = domain.of(id).await;
        assert_eq!(placed.placement(), Interval::of(Time(start), 60), "{placed:?}");
    }
    let events = domain.0.store.events(roomy).await.expect("a timeline");
    let told = |event: &bespeak::agreement::Event| event.detail.contains("too little of its slot was left");
    assert!(events.iter().any(told), "{events:?}");
    domain.0.turn(85);
    domain.ended(roomy, RunOutcome::Completed).await;
    domain.assert_fulfilled(roomy).await;
    domain.0.end().await;
}

async fn what_never_started_has_another_slot_after_a_step_of_the_clock(url: String) {
    let mut domain = Domain::start(&url).await;
    let id = domain.place(100, 7_200).await;
    assert_eq!(domain.begin().await, [id]);
    domain.0.clock.step(3_600 * MICROS_PER_SECOND);
    domain.ended(id, RunOutcome::Lost).await;
    let slot = Interval::of(Time(NOW + 3_601), 100);
    domain.assert_waits(id, slot).await;
    // Also where it is killed before it hears of the end.
    domain.0.restart(settings(), 0).await;
    domain.assert_waits(id, slot).await;
    domain.0.turn(3_601);
    assert_eq!(domain.begin().await, [id]);
    assert_eq!(domain.of(id).await.restarts(), 1);
    domain.0.turn(3_650);
    domain.ended(id, RunOutcome::Completed).await;
    domain.assert_fulfilled(id).await;
    domain.0.end().await;
}

async fn what_is_late_in_the_second_of_a_loss_begins_in_what_is_left_of_its_slot(url: String) {
    let mut domain = Domain::start(&url).await;
    let lost = domain.place(100, 7_200).await;
    assert_eq!(domain.begin().await, [lost]);
    domain.0.turn(5);
    let late = domain.place(10, 0).await;
    domain.0.turn(14);
    // From here on the plan is a second ahead, at the end of the other's slot.
    domain.ended(lost, RunOutcome::Lost).await;
    assert_eq!(domain.begin().await, [late]);
    domain.0.turn(15);
    domain.ended(late, RunOutcome::Completed).await;
    domain.assert_fulfilled(late).await;
    domain.0.end().await;
}
