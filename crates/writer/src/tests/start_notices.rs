//! Starts are announced before they come.

use domain::agreement::PartyEventKind;
use store::{agreements, party_events};

use super::*;

async fn domain(folder: TempDir, at: i64) -> Domain {
    let resource = Resource::new("local", "local", 4);
    let clock = Clock::standing_at((NOW + at) * MICROS_PER_SECOND);
    let settings = Settings {
        announce: 60,
        ..Settings::new(vec![resource], 86_400)
    };
    Domain::start_with(folder, clock, settings).await
}

async fn stopped(domain: Domain) -> TempDir {
    domain.stop.cancel();
    domain.task.await.unwrap();
    domain.store.close().await;
    domain.folder
}

/// The starts that were announced, with the seconds at which they were.
async fn announced(domain: &Domain) -> Vec<(i64, i64)> {
    let events = party_events::events_of_party_after(&domain.store, "physics", 0, 100)
        .await
        .unwrap();
    let starting = events
        .into_iter()
        .filter(|event| event.kind == PartyEventKind::Starting);
    let seconds = |event: domain::agreement::PartyEvent| {
        let start = event.planned.unwrap().start.seconds() - NOW;
        (event.at / MICROS_PER_SECOND - NOW, start)
    };
    starting.map(seconds).collect()
}

#[tokio::test]
async fn each_start_is_announced_once_in_its_time_also_after_a_restart_and_a_move() {
    let first = domain(tempfile::tempdir().unwrap(), 0).await;
    let next = |domain: &Domain| domain.planner.subscribe().borrow().map(|at| at.seconds() - NOW);
    first.place(proposal(4, 100, 0..100)).await.unwrap();
    // It starts at once, which is not announced.
    first.planner.send(BeginDue).await.unwrap();
    let waiting = first.place(proposal(4, 100, 150..400)).await.unwrap();
    assert_eq!(next(&first), Some(90));
    first.turn(89);
    first.planner.send(BeginDue).await.unwrap();
    assert_eq!(announced(&first).await, []);
    first.turn(90);
    for _ in 0..2 {
        first.planner.send(BeginDue).await.unwrap();
    }
    assert_eq!(announced(&first).await, [(90, 150)]);
    assert_eq!(next(&first), Some(100));
    let second = domain(stopped(first).await, 91).await;
    second.planner.send(BeginDue).await.unwrap();
    assert_eq!(announced(&second).await, [(90, 150)]);
    // It makes room, and has another start.
    second.place(proposal(4, 100, 150..250)).await.unwrap();
    let moved = agreements::agreement(&second.store, waiting.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(moved.placement().start, Time(NOW + 250));
    second.planner.send(BeginDue).await.unwrap();
    assert_eq!(announced(&second).await, [(90, 150), (91, 150)]);
    second.turn(190);
    second.planner.send(BeginDue).await.unwrap();
    assert_eq!(announced(&second).await, [(90, 150), (91, 150), (190, 250)]);
}
