//! Slots that begin soon on a cluster: promised when it holds their nodes.

mod successors;

use ::metrics::Exposition;
use domain::resources::{BusyTime, NodeReport, Reporter};
use store::{agreements, trail_lines};

use super::*;

/// Polls until `count` commands wait for the cluster. Returns the ids of their agreements.
async fn waiting(domain: &Domain, count: usize) -> Vec<Uuid> {
    let mut changes = domain.planner.subscribe_changes();
    loop {
        changes.borrow_and_update();
        let planned = domain
            .planner
            .send(ListPlanned {
                resource: "local".into(),
            })
            .await
            .unwrap();
        if planned.waiting.len() == count {
            return planned.waiting;
        }
        changes.changed().await.unwrap();
    }
}

/// A domain with a single resource, which reserves slots `within` seconds before their begin.
async fn cluster(within: Seconds) -> Domain {
    let domain = Domain::start().await;
    report(&domain, &[], within).await;
    domain
}

/// The cluster reports that it could not reserve the planned slots of these agreements.
async fn report(domain: &Domain, refused: &[Uuid], within: Seconds) {
    let planned = domain
        .planner
        .send(ListPlanned {
            resource: "local".into(),
        })
        .await
        .unwrap();
    let slots = planned
        .agreements
        .iter()
        .filter(|(agreement, _)| refused.contains(&agreement.id));
    let refused = slots
        .map(|(request, _)| (request.id, request.slot().start))
        .collect();
    let reported = domain.planner.send(ReportReserving {
        resource: "local".into(),
        refused,
        within,
    });
    reported.await.unwrap();
}

/// The cluster reports that others have the first `nodes` nodes for `seconds` from the start of the test.
async fn busy(domain: &Domain, nodes: u32, seconds: i64) {
    let interval = Interval::new(Time(NOW), Time(NOW + seconds));
    let report = NodeReport {
        busy: (0..nodes).map(|node| BusyTime { node, interval }).collect(),
        ..NodeReport::default()
    };
    let told = domain.planner.send(SetNodes {
        resource: "local".into(),
        by: Reporter::Executor,
        report,
    });
    told.await.unwrap();
}

/// The cluster reports that it holds `nodes` nodes for the planned slot of an agreement.
async fn hold(domain: &Domain, id: Uuid, nodes: u32) {
    let planned = domain
        .planner
        .send(ListPlanned {
            resource: "local".into(),
        })
        .await
        .unwrap();
    let slot = planned
        .agreements
        .iter()
        .find(|(agreement, _)| agreement.id == id);
    let since = slot.map_or(Time(NOW), |(slot, _)| slot.slot().start);
    hold_since(domain, id, nodes, since).await;
}

async fn hold_since(domain: &Domain, id: Uuid, nodes: u32, since: Time) {
    let kept = KeptNodes {
        run: Run::first(id),
        nodes: (0..nodes).collect(),
        since,
    };
    domain
        .planner
        .send(KeepNodes {
            resource: "local".into(),
            kept: vec![kept],
        })
        .await
        .unwrap();
}

/// Asks in a task of its own.
fn ask(domain: &Domain, proposal: Request) -> tokio::task::JoinHandle<Result<AcceptedOffer, Error>> {
    let planner = domain.planner.clone();
    tokio::spawn(async move { planner.send(Place(proposal)).await })
}

async fn verified(domain: &Domain) {
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn what_begins_soon_is_promised_when_its_nodes_are_held_and_nothing_is_stored_before() {
    let domain = cluster(600).await;
    let asked = proposal(4, 100, 0..1_000);
    let task = ask(&domain, asked.clone());
    assert_eq!(waiting(&domain, 1).await, [asked.id]);
    assert_eq!(
        agreements::agreement(&domain.store, asked.id).await.unwrap(),
        None
    );
    // No other agreement gets its slot.
    let far = domain.place(proposal(4, 100, 0..100)).await;
    assert_eq!(reason(far).reason, scheduler::Reason::NoCapacityInWindow);
    hold(&domain, asked.id, 3).await;
    assert!(!task.is_finished(), "one of its nodes is missing");
    hold(&domain, asked.id, 4).await;
    let accepted = task.await.unwrap().unwrap().agreement;
    assert_eq!(
        accepted.placement(),
        Interval::of(Time(NOW + 3), 100),
        "after the time that reserving takes"
    );
    assert_eq!(accepted.ready, Time(NOW), "its window is as it was asked for");
    assert!(waiting(&domain, 0).await.is_empty());
    assert!(
        agreements::agreement(&domain.store, asked.id)
            .await
            .unwrap()
            .is_some()
    );
    verified(&domain).await;
}

#[tokio::test]
async fn what_an_operator_books_is_noted_and_counted_once_also_where_it_waits_for_its_nodes() {
    let domain = cluster(600).await;
    let asked = proposal(1, 100, 0..1_000);
    let options = CommandOptions {
        booked_by: Some("admin".into()),
        ..CommandOptions::default()
    };
    let (planner, place) = (domain.planner.clone(), Place(asked.clone()));
    let task = tokio::spawn(async move { planner.send_with(place, options).await });
    assert_eq!(waiting(&domain, 1).await, [asked.id]);
    hold(&domain, asked.id, 1).await;
    task.await.unwrap().unwrap();
    let lines = trail_lines::trail_lines_after(&domain.store, 0, 1_000)
        .await
        .unwrap();
    let booked = format!("booked {} for physics", asked.id);
    let noted = lines.iter().filter(|line| line.detail == booked);
    assert_eq!(noted.count(), 1, "{lines:?}");
    let mut text = Exposition::default();
    domain.planner.expose(&mut text).await;
    let text = text.finish();
    let counted = "\nbespeak_decisions_total{request=\"offer\",outcome=\"granted\"} 1\n";
    assert!(text.contains(counted), "{text}");
}

#[tokio::test]
async fn what_begins_later_is_promised_at_once() {
    let domain = cluster(60).await;
    let placed = domain.place(proposal(4, 100, 61..200)).await.unwrap();
    assert_eq!(placed.placement().start, Time(NOW + 61));
    verified(&domain).await;
}

#[tokio::test]
async fn another_slot_is_found_where_the_cluster_refuses_one_and_its_nodes_are_others() {
    let domain = cluster(600).await;
    let asked = proposal(3, 100, 0..1_000);
    let task = ask(&domain, asked.clone());
    waiting(&domain, 1).await;
    report(&domain, &[asked.id], 600).await;
    busy(&domain, 2, 300).await;
    assert_eq!(waiting(&domain, 1).await, [asked.id]);
    // A reservation of the first slot does not count for the second.
    hold_since(&domain, asked.id, 3, Time(NOW + 3)).await;
    assert_eq!(waiting(&domain, 1).await, [asked.id]);
    hold(&domain, asked.id, 3).await;
    let accepted = task.await.unwrap().unwrap().agreement;
    assert_eq!(accepted.placement().start, Time(NOW + 300));
    verified(&domain).await;
}

#[tokio::test]
async fn a_slot_whose_nodes_go_out_of_use_while_it_waits_is_given_up() {
    let domain = cluster(600).await;
    let asked = proposal(3, 100, 0..1_000);
    let task = ask(&domain, asked.clone());
    waiting(&domain, 1).await;
    busy(&domain, 2, 300).await;
    // The cluster held other nodes than it says now: too late.
    hold(&domain, asked.id, 3).await;
    loop {
        hold(&domain, asked.id, 3).await;
        if task.is_finished() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let accepted = task.await.unwrap().unwrap().agreement;
    assert_eq!(accepted.placement().start, Time(NOW + 300));
    verified(&domain).await;
}

#[tokio::test]
async fn a_cluster_that_refuses_again_and_again_or_does_not_answer_leads_to_a_refusal() {
    let domain = cluster(600).await;
    let asked = proposal(4, 100, 0..1_000);
    let task = ask(&domain, asked.clone());
    for _ in 0..5 {
        waiting(&domain, 1).await;
        report(&domain, &[asked.id], 600).await;
        busy(&domain, 0, 0).await;
    }
    let refusal = reason(task.await.unwrap().map(|accepted| accepted.agreement));
    assert!(
        refusal
            .binding
            .contains("refused to reserve the nodes of 5 slots"),
        "{refusal:?}"
    );

    let silent = proposal(4, 100, 0..1_000);
    let task = ask(&domain, silent.clone());
    waiting(&domain, 1).await;
    domain.turn(21);
    report(&domain, &[], 600).await;
    let refusal = reason(task.await.unwrap().map(|accepted| accepted.agreement));
    assert!(refusal.binding.contains("within 20 seconds"), "{refusal:?}");
    // Their slots are free again.
    report(&domain, &[], 0).await;
    let next = domain.place(proposal(4, 100, 22..122)).await.unwrap();
    assert_eq!(next.placement().start, Time(NOW + 22));
    verified(&domain).await;
}

#[tokio::test]
async fn a_party_is_told_from_when_on_its_cluster_has_its_reservation_as_long_as_it_has_not() {
    let domain = cluster(600).await;
    let far = domain.place(proposal(2, 100, 2_000..2_100)).await.unwrap();
    let due = async || domain.planner.send(ForeseeReservation(far.id)).await.unwrap();
    let hand_over = async |within| {
        let told = domain.planner.send(ReportHandingOver {
            resource: "local".into(),
            within,
        });
        told.await.unwrap();
    };
    assert_eq!(due().await, Some(Time(NOW + 2_000)), "at its begin at the latest");
    hand_over(600).await;
    assert_eq!(due().await, Some(Time(NOW + 1_400)));
    hand_over(Seconds::MAX).await;
    assert_eq!(due().await, Some(Time(NOW)));
    hold(&domain, far.id, 2).await;
    assert_eq!(due().await, None);
    verified(&domain).await;
}

#[tokio::test]
async fn two_requests_with_one_key_that_wait_at_the_same_time_make_one_agreement() {
    let domain = cluster(600).await;
    let keyed = || Request {
        idempotency: Some(Idempotency {
            party: "physics".into(),
            key: "once".into(),
            request_hash: "same".into(),
            answer: |_| "kept".into(),
        }),
        ..proposal(2, 100, 0..1_000)
    };
    let (one, other) = (keyed(), keyed());
    let (first, second) = (ask(&domain, one.clone()), ask(&domain, other.clone()));
    waiting(&domain, 2).await;
    for id in [one.id, other.id] {
        hold(&domain, id, 2).await;
    }
    let made = [first.await.unwrap(), second.await.unwrap()];
    let repeated = made
        .iter()
        .filter(|made| matches!(made, Err(Error::Repeated(_))))
        .count();
    assert_eq!(repeated, 1, "{made:?}");
    verified(&domain).await;
}

#[tokio::test]
async fn a_held_offer_and_a_pending_agreement_wait_for_their_nodes_too() {
    let domain = cluster(600).await;
    let asked = proposal(2, 100, 0..1_000);
    let negotiation = domain.open(None).await;
    let quote = domain.quote(negotiation, &asked).await;
    let offer = domain.bargain(negotiation, &quote).await.remove(0);
    let acceptance = Accept {
        negotiation,
        offer: offer.id,
        proposal: asked.clone(),
        barred: None,
    };
    let accept = |acceptance: Accept| {
        let planner = domain.planner.clone();
        tokio::spawn(async move { planner.send(acceptance).await })
    };
    let task = accept(acceptance.clone());
    waiting(&domain, 1).await;
    hold(&domain, asked.id, 2).await;
    let accepted = task.await.unwrap().unwrap().agreement;
    assert!(accepted.placement().start >= Time(NOW + 3), "{accepted:?}");

    let pending = proposal(2, 100, 0..1_000);
    domain
        .planner
        .send(SubmitPending {
            proposal: pending.clone(),
            acceptance: None,
            offer: None,
        })
        .await
        .unwrap();
    let planner = domain.planner.clone();
    let settlement = DecidePending {
        id: pending.id,
        ways: Ok(PendingRequest::New(vec![pending.clone()])),
        telling: None,
    };
    let task = tokio::spawn(async move { planner.send(settlement).await });
    waiting(&domain, 1).await;
    hold(&domain, pending.id, 2).await;
    assert_eq!(task.await.unwrap().unwrap().state, AgreementState::Observed);

    let quote = domain.quote(negotiation, &proposal(2, 50, 0..1_000)).await;
    let offer = domain.bargain(negotiation, &quote).await.remove(0);
    let refused = Accept {
        offer: offer.id,
        proposal: proposal(2, 50, 0..1_000),
        ..acceptance
    };
    let (id, task) = (refused.proposal.id, accept(refused));
    waiting(&domain, 1).await;
    report(&domain, &[id], 600).await;
    busy(&domain, 0, 0).await;
    assert_eq!(task.await.unwrap(), Err(Error::Lost(OfferLoss::NotReserved)));
    verified(&domain).await;
}

#[tokio::test]
async fn what_waits_counts_for_its_partys_quota() {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 86_400);
    settings.quotas.node_hours = Some(1);
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let domain = Domain::start_with(tempfile::tempdir().unwrap(), clock, settings).await;
    report(&domain, &[], 600).await;
    let first = proposal(2, 1_200, 0..10_000);
    let task = ask(&domain, first.clone());
    waiting(&domain, 1).await;
    let refusal = reason(domain.place(proposal(2, 1_200, 0..10_000)).await);
    assert!(refusal.binding.contains("node-hours"), "{refusal:?}");
    hold(&domain, first.id, 2).await;
    task.await.unwrap().unwrap();
    verified(&domain).await;
}

#[tokio::test]
async fn a_slot_that_can_only_begin_at_once_does() {
    let domain = cluster(0).await;
    domain.place(proposal(4, 100, 110..210)).await.unwrap();
    report(&domain, &[], 600).await;
    let asked = proposal(4, 109, 0..215);
    let task = ask(&domain, asked.clone());
    waiting(&domain, 1).await;
    hold(&domain, asked.id, 4).await;
    let accepted = task.await.unwrap().unwrap().agreement;
    assert_eq!(accepted.placement().start, Time(NOW));
    verified(&domain).await;
}

#[tokio::test]
async fn a_slot_that_is_over_when_its_nodes_are_held_is_not_promised_but_a_later_one_is() {
    let domain = cluster(600).await;
    let asked = proposal(4, 5, 0..1_000);
    let task = ask(&domain, asked.clone());
    waiting(&domain, 1).await;
    domain.turn(9);
    hold(&domain, asked.id, 4).await;
    assert_eq!(waiting(&domain, 1).await, [asked.id]);
    hold(&domain, asked.id, 4).await;
    let accepted = task.await.unwrap().unwrap().agreement;
    assert!(accepted.placement().start >= Time(NOW + 12), "{accepted:?}");
    verified(&domain).await;
}

/// A cluster with an agreement that may move, and a request that it has moved for and that waits.
async fn moved_for_another() -> (
    Domain,
    Uuid,
    Uuid,
    tokio::task::JoinHandle<Result<AcceptedOffer, Error>>,
) {
    let domain = cluster(0).await;
    let moves = domain.place(proposal(4, 100, 0..1_000)).await.unwrap();
    assert_eq!(moves.placement().start, Time(NOW + 3));
    report(&domain, &[], 600).await;
    let asked = proposal(4, 100, 0..103);
    let task = ask(&domain, asked.clone());
    waiting(&domain, 1).await;
    let moved = agreements::agreement(&domain.store, moves.id)
        .await
        .unwrap()
        .unwrap();
    assert!(moved.placement().start >= Time(NOW + 103), "{moved:?}");
    (domain, moves.id, asked.id, task)
}

#[tokio::test]
async fn what_has_moved_for_a_slot_that_the_cluster_refuses_moves_back() {
    let (domain, moved, asked, task) = moved_for_another().await;
    // The nodes of the slot are held; the nodes of the agreement that has moved are not.
    hold(&domain, asked, 4).await;
    assert!(!task.is_finished());
    report(&domain, &[moved], 600).await;
    busy(&domain, 0, 0).await;
    let refusal = reason(task.await.unwrap().map(|accepted| accepted.agreement));
    assert_eq!(refusal.reason, scheduler::Reason::NoCapacityInWindow);
    let back = agreements::agreement(&domain.store, moved)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(back.placement().start, Time(NOW + 3));
    verified(&domain).await;
}

#[tokio::test]
async fn a_slot_that_others_have_moved_for_is_promised_when_all_are_held() {
    let (domain, moved, asked, task) = moved_for_another().await;
    let planned = domain
        .planner
        .send(ListPlanned {
            resource: "local".into(),
        })
        .await
        .unwrap();
    let kept = planned.agreements.iter().map(|(request, _)| KeptNodes {
        run: Run::first(request.id),
        nodes: (0..4).collect(),
        since: request.slot().start,
    });
    let kept: Vec<_> = kept.collect();
    assert_eq!(kept.len(), 2);
    hold(&domain, asked, 4).await;
    assert!(!task.is_finished());
    domain
        .planner
        .send(KeepNodes {
            resource: "local".into(),
            kept,
        })
        .await
        .unwrap();
    let accepted = task.await.unwrap().unwrap().agreement;
    let moved = agreements::agreement(&domain.store, moved)
        .await
        .unwrap()
        .unwrap();
    assert!(moved.placement().start >= accepted.placement().end);
    verified(&domain).await;
}
