//! Slices of moves into free time, between the batches of the planner's task.

use store::agreements;

use super::*;

#[tokio::test]
async fn commands_that_keep_coming_do_not_put_a_slice_off_for_ever() {
    let domain = Domain::start().await;
    let first = domain.place(proposal(4, 600, 1_000..1_600)).await.unwrap();
    let waits = domain.place(proposal(4, 600, 1_000..9_000)).await.unwrap();
    domain.move_up().await;
    domain.turn(1);
    // All of them are in the queue before the planner's task runs: this test has one thread.
    let mut tasks = tokio::task::JoinSet::new();
    let planner = domain.planner.clone();
    tasks.spawn(async move { planner.send(Terminate::of(first.id, None)).await.map(drop) });
    for nth in 0..300 {
        let other = proposal(1, 10, 10_000 + nth..11_000);
        let planner = domain.planner.clone();
        tasks.spawn(async move { planner.send(Place(other)).await.map(drop) });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap().unwrap();
    }
    let stored = agreements::agreement(&domain.store, waits.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.placement().start, Time(NOW + 1_000));
}

#[tokio::test]
async fn a_client_that_has_its_answer_may_use_what_became_free_before_a_slice() {
    let domain = Domain::start().await;
    let first = domain.place(proposal(4, 100, 50..150)).await.unwrap();
    let waits = domain.place(proposal(4, 100, 50..1_000)).await.unwrap();
    domain.planner.send(Terminate::of(first.id, None)).await.unwrap();
    let again = domain.place(proposal(4, 100, 50..150)).await.unwrap();
    assert_eq!(again.placement().start, Time(NOW + 50));
    domain.move_up().await;
    let stored = agreements::agreement(&domain.store, waits.id).await.unwrap();
    assert_eq!(
        stored,
        Some(waits),
        "it has not moved up, and has not made way again"
    );
}
