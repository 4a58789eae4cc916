//! Moves of many agreements at once are one record first, and follow in the rows.

use store::{agreements, moves, party_events};

use super::*;

const COUNT: i64 = 80;

/// Lets many wait one after the other on all nodes, and then a newcomer in where all of them lie. Answers with those that waited, and
/// with the newcomer.
async fn move_many(domain: &Domain) -> (Vec<Agreement>, AcceptedOffer) {
    let mut waiting = Vec::new();
    for _ in 0..COUNT {
        waiting.push(domain.place(proposal(4, 100, 1_000..80_000)).await.unwrap());
    }
    let rigid = proposal(4, 100 * COUNT, 1_000..1_000 + 100 * COUNT);
    let accepted = domain.planner.send(Place(rigid)).await.unwrap();
    (waiting, accepted)
}

/// Waits until no move is unsettled.
async fn settle(domain: &Domain) {
    domain.wait_while(State::has_unsettled_moves).await;
}

async fn stored(domain: &Domain, id: Uuid) -> Agreement {
    agreements::agreement(&domain.store, id).await.unwrap().unwrap()
}

#[tokio::test]
async fn an_answer_names_the_first_that_moved_and_reads_know_where_all_are() {
    let domain = Domain::start().await;
    let (waiting, accepted) = move_many(&domain).await;
    let count = usize::try_from(COUNT).unwrap();
    assert_eq!((accepted.moved.len(), accepted.moved_count), (10, count));
    let end = accepted.agreement.placement().end;
    for before in &waiting {
        let now = stored(&domain, before.id).await;
        assert!(now.placement().start >= end, "{now:?}");
        assert_eq!(now.version, 2);
    }
    settle(&domain).await;
    assert_eq!(moves::move_records(&domain.store).await.unwrap(), []);
    for before in &waiting {
        let now = stored(&domain, before.id).await;
        assert!(now.placement().start >= end, "{now:?}");
        assert_eq!(now.version, 2);
        let events = agreements::events_of_agreement(&domain.store, before.id)
            .await
            .unwrap();
        let moved = events.iter().filter(|event| event.kind == EventKind::Moved);
        assert_eq!(moved.count(), 1, "{events:?}");
    }
    let told = party_events::events_of_party_after(&domain.store, "physics", 0, 10_000);
    let told = told.await.unwrap().into_iter();
    let moved = told.filter(|event| event.kind == domain::agreement::PartyEventKind::Moved);
    assert_eq!(moved.count(), count);
    assert_eq!(domain.store.verify().await.unwrap(), []);
}

#[tokio::test]
async fn a_start_with_unsettled_moves_goes_on_from_where_all_are() {
    let domain = Domain::start().await;
    let mut waiting = Vec::new();
    for _ in 0..COUNT {
        waiting.push(domain.place(proposal(4, 100, 1_000..80_000)).await.unwrap());
    }
    // It stops in the slice that would settle.
    let rigid = proposal(4, 100 * COUNT, 1_000..1_000 + 100 * COUNT);
    let accepted = domain.planner.send(Place(rigid)).await.unwrap();
    domain.stop.cancel();
    let end = accepted.agreement.placement().end;
    let domain = domain.restart().await;
    for before in &waiting {
        assert!(stored(&domain, before.id).await.placement().start >= end);
    }
    assert_eq!(domain.store.verify().await.unwrap(), []);
    let refusal = reason(domain.place(proposal(1, 100, 1_000..1_000 + 100 * COUNT)).await);
    assert_eq!(refusal.reason, Reason::NoCapacityInWindow);
    settle(&domain).await;
    assert_eq!(domain.store.verify().await.unwrap(), []);
    assert_eq!(moves::move_records(&domain.store).await.unwrap(), []);
}

/// A replica that reads seldom asks for the records after the last one that it has read.
#[tokio::test]
async fn a_replica_that_has_read_earlier_records_reads_those_of_the_next_start() {
    let domain = Domain::start().await;
    let url = format!("sqlite:{}", domain.folder.path().join("test.db").display());
    let replica = Store::open(&url).await.unwrap();
    let (waiting, accepted) = move_many(&domain).await;
    domain.stop.cancel();
    let end = accepted.agreement.placement().end;
    let start = async || {
        let found = agreements::agreement(&replica, waiting[0].id).await.unwrap();
        found.unwrap().placement().start
    };
    let first = stored(&domain, waiting[0].id).await.placement().start;
    assert!(first >= end);
    assert_eq!(start().await, first);
    let domain = domain.restart().await;
    settle(&domain).await;
    // All is in the rows, and the numbers of the next records are those of no records before.
    let domain = domain.restart().await;
    let rigid = proposal(4, 100 * COUNT, end.0 - NOW..end.0 - NOW + 100 * COUNT);
    let accepted = domain.planner.send(Place(rigid)).await.unwrap();
    domain.stop.cancel();
    assert_eq!(accepted.moved_count, usize::try_from(COUNT).unwrap());
    assert!(!moves::move_records(&domain.store).await.unwrap().is_empty());
    let lies = stored(&domain, waiting[0].id).await.placement().start;
    assert_ne!(lies, first);
    assert_eq!(start().await, lies);
    replica.close().await;
}

/// All of them are in the queue before the planner's task runs: this test has one thread.
#[tokio::test]
async fn what_changes_a_moved_agreement_in_the_same_batch_is_stored_after_its_move() {
    let domain = Domain::start().await;
    let mut waiting = Vec::new();
    for _ in 0..COUNT {
        waiting.push(domain.place(proposal(4, 100, 1_000..80_000)).await.unwrap());
    }
    let rigid = proposal(4, 100 * COUNT, 1_000..1_000 + 100 * COUNT);
    let ended = waiting[40].id;
    let (accepted, over) = tokio::join!(
        domain.planner.send(Place(rigid)),
        domain.planner.send(Terminate::of(ended, None)),
    );
    accepted.unwrap();
    over.unwrap();
    let over = stored(&domain, ended).await;
    assert_eq!((over.state, over.version), (AgreementState::Terminated, 3));
    let events = agreements::events_of_agreement(&domain.store, ended)
        .await
        .unwrap();
    assert!(
        events.iter().any(|event| event.kind == EventKind::Moved),
        "{events:?}"
    );
    settle(&domain).await;
    assert_eq!(domain.store.verify().await.unwrap(), []);
}
