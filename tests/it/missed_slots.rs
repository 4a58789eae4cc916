//! Work that was never started waits for another slot, on each store: while the service was down, and after the clock was
//! stepped. What begins late is paid for as far as it was delivered, with a job and without.

use std::ops::Range;
use std::time::Duration;

use domain::agreement::{
    Account, Agreement, AgreementState, Currency, GuaranteeState, JobEnd, Run, RunOutcome, ServiceState,
    Shape, Values,
};
use domain::clock::MICROS_PER_SECOND;
use domain::resources::Resource;
use planner::{BeginDue, ImprovementSettings, Pricing, ReportEnded, Request, Settings};
use scheduler::{Interval, Seconds, Time};
use serde_json::{Value, json};
use store::{agreements, ledger};
use uuid::Uuid;

use crate::support::harness::{self, NOW, guarantee, proposal};
use crate::support::offers::{date_time, now};
use crate::support::server::Server;
use crate::support::stores::on_both_engines;
use crate::support::{eventually, in_seconds, run};

on_both_engines!(
    what_never_began_has_another_slot_after_a_restart,
    a_reservation_that_begins_late_and_has_no_other_place_pays_for_what_it_got,
    a_reservation_that_is_a_little_late_ends_as_much_later_where_its_nodes_are_free;
    a_release_on_postgres:
    what_would_begin_late_has_a_whole_slot_where_there_is_one,
    what_never_started_has_another_slot_after_a_step_of_the_clock,
    what_is_late_in_the_second_of_a_loss_begins_in_what_is_left_of_its_slot,
    a_reservation_that_missed_most_of_its_slot_has_another_place_in_its_window,
    a_reservation_that_is_a_little_late_and_has_no_room_behind_it_pays_for_what_it_got,
    a_job_that_begins_late_and_has_no_other_place_pays_for_what_was_left,
);

fn settings() -> Settings {
    Settings {
        // Otherwise it depends on the machine whether a slice moves work up by a second before it is looked at.
        improving: ImprovementSettings::default(),
        ..Settings::new(vec![Resource::new("local", "local", 4)], 86_400)
    }
}

/// A planner of four nodes.
struct Domain(harness::Domain);

impl Domain {
    async fn start(url: &str) -> Self {
        Self(harness::Domain::start(url, settings()).await)
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
        let begun = self.0.planner.send(BeginDue).await.expect("it decides");
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
        self.0
            .planner
            .send(ReportEnded { run, end })
            .await
            .expect("it runs");
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
        let events = agreements::events_of_agreement(&self.0.store, id)
            .await
            .expect("a timeline");
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
    let events = agreements::events_of_agreement(&domain.0.store, roomy)
        .await
        .expect("a timeline");
    let told = |event: &domain::agreement::Event| event.detail.contains("too little of its slot was left");
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

/// A price list of a euro a node-hour.
fn priced() -> Settings {
    let currency = Currency::parse("EUR").expect("three capital letters");
    Settings {
        pricing: Some(Pricing::flat(1_000_000, currency)),
        ..settings()
    }
}

/// Two of four nodes for a minute and nothing to run, in a window, with a guarantee of their start and one of their end.
fn reservation(window: Range<Seconds>) -> Request {
    Request {
        job: None,
        guarantees: vec![
            guarantee(
                "START",
                "started ge ready and started le latest_start",
                Values::default(),
            ),
            guarantee("COMPLETION", "completed le deadline", Values::default()),
        ],
        ..proposal(2, 60, window)
    }
}

impl Domain {
    /// A priced one in which an agreement is made before the service is down until so many seconds after [`NOW`].
    async fn down_until(url: &str, up: Seconds, asked: Vec<Request>) -> (Self, Vec<Uuid>) {
        let mut domain = Self(harness::Domain::start(url, priced()).await);
        let mut ids = Vec::new();
        for proposal in asked {
            ids.push(domain.0.place(proposal).await.id);
        }
        domain.0.restart(priced(), up).await;
        domain.begin().await;
        (domain, ids)
    }

    /// The states of the guarantees of an agreement, of which all is over by an instant, and what its party has paid in
    /// millionths of a euro.
    async fn over(&self, id: Uuid, at: Seconds) -> (Agreement, Vec<GuaranteeState>, i64) {
        self.0.pass(at).await;
        let over = self.of(id).await;
        assert_eq!(over.state, AgreementState::Complete, "{over:?}");
        let (all, _) = ledger::ledger_of_account(&self.0.store, None, None, 1)
            .await
            .expect("it can be read");
        let party = Account::Party("physics".to_owned());
        let paid = all
            .iter()
            .find(|each| each.account == party)
            .map_or(0, |each| -each.amount.micros);
        let states = over.guarantees.iter().map(|guarantee| guarantee.state).collect();
        self.0.assert_verified().await;
        (over, states, paid)
    }

    async fn told(&self, id: Uuid) -> String {
        let events = agreements::events_of_agreement(&self.0.store, id)
            .await
            .expect("a timeline");
        let lines = events
            .iter()
            .map(|event| format!("{}: {}\n", event.kind.word(), event.detail));
        lines.collect()
    }
}

/// Two nodes for a minute, in millionths of a euro.
const PRICE: i64 = 33_333;

async fn a_reservation_that_begins_late_and_has_no_other_place_pays_for_what_it_got(url: String) {
    let (mut domain, ids) = Domain::down_until(&url, 63, vec![reservation(10..70)]).await;
    let begun = domain.of(ids[0]).await;
    assert_eq!(begun.service, ServiceState::Idle, "{begun:?}");
    assert_eq!(begun.placement(), Interval::of(Time(NOW + 10), 60));
    let (over, states, paid) = domain.over(ids[0], 70).await;
    assert_eq!(over.outcome, Some(RunOutcome::Completed));
    assert_eq!(states, [GuaranteeState::Violated; 2], "{over:?}");
    assert_eq!(paid, 3_889, "7 of 60 seconds: {over:?}");
    let told = domain.told(ids[0]).await;
    for line in [
        ", 53 seconds late: 7 seconds of its 60 seconds are left",
        "ended: 7 seconds of its 60 seconds were delivered",
        "charged: 0.003889 EUR: price, in part: 7 seconds of its 60 seconds were delivered",
    ] {
        assert!(told.contains(line), "{line:?} is not in {told}");
    }
    domain.0.end().await;
}

async fn a_reservation_that_missed_most_of_its_slot_has_another_place_in_its_window(url: String) {
    let day = 86_000;
    let hours = Request {
        shapes: vec![Shape {
            nodes: 4,
            duration: 14_400,
        }],
        ..reservation(0..day)
    };
    let mut domain = Domain(harness::Domain::start(&url, priced()).await);
    let id = domain.0.place(hours).await.id;
    domain.0.restart(priced(), 0).await;
    // Thirty milliseconds before the end of its slot.
    domain.0.clock.set((NOW + 14_400) * MICROS_PER_SECOND - 30_000);
    domain.begin().await;
    let again = domain.of(id).await;
    assert_eq!(again.service, ServiceState::Idle, "{again:?}");
    assert_eq!(again.placement(), Interval::of(Time(NOW + 14_399), 14_400));
    assert_eq!(again.guarantees[0].state, GuaranteeState::Violated, "{again:?}");
    let (over, states, paid) = domain.over(id, 28_799).await;
    assert_eq!(over.outcome, Some(RunOutcome::Completed));
    assert_eq!(states, [GuaranteeState::Violated, GuaranteeState::Fulfilled]);
    assert_eq!(paid, 16_000_000, "all of it was delivered");
    let told = domain.told(id).await;
    assert!(told.contains("moved: too little of its slot was left"), "{told}");
    domain.0.end().await;
}

async fn a_reservation_that_is_a_little_late_ends_as_much_later_where_its_nodes_are_free(url: String) {
    let (mut domain, ids) = Domain::down_until(&url, 16, vec![reservation(10..70)]).await;
    let begun = domain.of(ids[0]).await;
    assert_eq!(begun.placement(), Interval::of(Time(NOW + 16), 60), "{begun:?}");
    let (over, states, paid) = domain.over(ids[0], 76).await;
    assert_eq!(states, [GuaranteeState::Violated, GuaranteeState::Fulfilled]);
    let evidence = over.guarantees[0].evidence.clone().unwrap_or_default();
    let promised = "its start was promised for 2027-01-15T08:00:10Z";
    assert!(evidence.ends_with(promised), "{evidence}");
    assert_eq!(paid, PRICE);
    let told = domain.told(ids[0]).await;
    let line = "moved: it begins 6 seconds late, and ends as much later";
    assert!(told.contains(line), "{told}");
    domain.0.end().await;
}

async fn a_reservation_that_is_a_little_late_and_has_no_room_behind_it_pays_for_what_it_got(url: String) {
    let behind = proposal(4, 100, 70..170);
    let (mut domain, ids) = Domain::down_until(&url, 16, vec![reservation(10..70), behind]).await;
    let begun = domain.of(ids[0]).await;
    assert_eq!(begun.placement(), Interval::of(Time(NOW + 10), 60), "{begun:?}");
    let (over, states, paid) = domain.over(ids[0], 70).await;
    assert_eq!(states, [GuaranteeState::Violated; 2], "{over:?}");
    assert_eq!(paid, 30_000, "54 of 60 seconds: {over:?}");
    domain.0.end().await;
}

async fn a_job_that_begins_late_and_has_no_other_place_pays_for_what_was_left(url: String) {
    let (mut domain, ids) = Domain::down_until(&url, 40, vec![proposal(2, 60, 10..70)]).await;
    domain.0.turn(70);
    domain.ended(ids[0], RunOutcome::Killed).await;
    let (over, states, paid) = domain.over(ids[0], 70).await;
    assert_eq!(states, [GuaranteeState::Violated], "{over:?}");
    assert_eq!(paid, 16_667, "30 of 60 seconds: {over:?}");
    domain.0.end().await;
}

/// The service is really down when the slot begins.
#[test]
fn a_reservation_whose_service_was_down_at_its_begin_pays_for_the_rest_of_its_slot() {
    const PRICED: &str = "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n\
                          [pricing]\ncurrency = \"EUR\"\nnode_hour = \"3.60\"\n";
    run(async {
        in_seconds(20, async |seconds| {
            let mut server = Server::configured(None, PRICED);
            let key = server.key_for("physics", "consumer");
            let client = server.client_with(&key);
            let start = now() + 2;
            let window = json!({ "start": date_time(start), "end": date_time(start + seconds) });
            let asked = json!({ "nodes": 1, "durationSeconds": seconds, "window": window });
            let made = client.post_json("/agreements", &asked).await;
            if made.status.as_u16() != 201 {
                return None;
            }
            let path = format!("/agreements/{}", made.created());
            server.kill9();
            // More than a tenth of its slot is over then, and it has no other place.
            let late = start + seconds / 10 + 1;
            eventually("its slot has begun", Duration::from_mins(1), async || {
                (now() >= late).then_some(())
            })
            .await;
            server.restart();
            let client = server.client_with(&key);
            let begun = eventually("it has begun, or is over", Duration::from_mins(1), async || {
                let shown = client.get_json(&path).await;
                (shown["started"].is_string() || shown["state"] == "Complete").then_some(shown)
            })
            .await;
            let second = |at: &Value| {
                let at: Option<jiff::Timestamp> = at.as_str().and_then(|at| at.parse().ok());
                at.map(jiff::Timestamp::as_second)
            };
            let left = start + seconds - second(&begun["started"])?;
            let ended = client.post_json(&format!("{path}/terminate"), &json!({})).await;
            if !ended.status.is_success() {
                return None;
            }
            // A node's second costs a thousandth.
            let posted = &client.get_json("/accounts").await["entries"][0];
            let owed = format!("-0.{left:03}");
            let owed = json!({ "amount": owed.trim_end_matches('0'), "currency": "EUR" });
            assert_eq!(
                (&posted["kind"], &posted["amount"]),
                (&json!("price"), &owed),
                "{begun}"
            );
            server.assert_verified();
            Some(())
        })
        .await;
    });
}
