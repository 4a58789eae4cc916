//! Agreements that move for others, into free time, and no more.

use store::agreements;

use super::*;

#[tokio::test]
async fn flexible_agreements_move_to_let_a_rigid_one_in_and_only_its_own_party_is_told() {
    let domain = Domain::start().await;
    let mine = domain.place(proposal(4, 100, 0..1_000)).await.unwrap();
    let mut other = proposal(4, 100, 0..1_000);
    other.party = "chemistry".into();
    let other = domain.place(other).await.unwrap();
    domain.turn(0);
    let accepted = domain
        .planner
        .send(Place(proposal(4, 100, 100..200)))
        .await
        .unwrap();
    assert_eq!(accepted.agreement.placement().start, Time(NOW + 100));
    let stored = agreements::agreement(&domain.store, other.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        stored.placement().start,
        Time(NOW + 200),
        "it stood where the rigid one had to go"
    );
    assert_eq!((stored.window(), stored.version), (other.window(), 2));
    assert!(
        accepted.moved.is_empty(),
        "what moved is another party's, and the first one did not move"
    );
    let events = agreements::events_of_agreement(&domain.store, other.id)
        .await
        .unwrap();
    assert_eq!(events.last().unwrap().kind, EventKind::Moved);
    assert_eq!(
        agreements::agreement(&domain.store, mine.id)
            .await
            .unwrap()
            .unwrap(),
        mine
    );

    let mut third = proposal(4, 100, 200..300);
    third.party = "chemistry".into();
    let accepted = domain.planner.send(Place(third)).await.unwrap();
    let moved: Vec<_> = accepted
        .moved
        .iter()
        .map(|agreement| (agreement.id, agreement.placement().start))
        .collect();
    assert_eq!(moved, [(other.id, Time(NOW + 300))]);
}

#[tokio::test]
async fn a_refusal_moves_nobody() {
    let domain = Domain::start().await;
    let flexible = domain.place(proposal(4, 100, 0..250)).await.unwrap();
    let rigid = domain.place(proposal(4, 100, 100..200)).await.unwrap();
    reason(domain.place(proposal(1, 100, 50..150)).await);
    for agreement in [flexible, rigid] {
        assert_eq!(
            agreements::agreement(&domain.store, agreement.id)
                .await
                .unwrap()
                .unwrap(),
            agreement
        );
    }
}

#[tokio::test]
async fn waiting_agreements_move_up_when_one_ends_early() {
    let domain = Domain::start().await;
    let first = domain.place(with_job(proposal(4, 100, 0..100))).await.unwrap();
    let waiting = domain.place(proposal(4, 100, 0..1_000)).await.unwrap();
    domain.planner.send(BeginDue).await.unwrap();
    domain.turn(10);
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(first.id),
            end: ended(RunOutcome::Completed, 0, 9),
        })
        .await
        .unwrap();
    domain.move_up().await;
    let moved = agreements::agreement(&domain.store, waiting.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(moved.placement().start, Time(NOW + 10));
    assert_eq!(*domain.planner.subscribe().borrow(), Some(Time(NOW + 10)));
}

#[tokio::test]
async fn waiting_agreements_move_up_when_one_is_terminated() {
    let domain = Domain::start().await;
    let first = domain.place(proposal(4, 100, 50..150)).await.unwrap();
    let waiting = domain.place(proposal(4, 100, 50..1_000)).await.unwrap();
    assert_eq!(waiting.placement().start, Time(NOW + 150));
    domain.planner.send(Terminate::of(first.id, None)).await.unwrap();
    domain.move_up().await;
    let moved = agreements::agreement(&domain.store, waiting.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(moved.placement().start, Time(NOW + 50));
}

#[tokio::test]
async fn an_agreement_that_has_waited_long_enough_is_fixed_and_stays_so_over_a_restart() {
    let resource = Resource::new("local", "local", 4);
    let settings = Settings {
        fix_after: Some(Fraction::percent(50)),
        ..Settings::new(vec![resource], 86_400)
    };
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let domain = Domain::start_with(tempfile::tempdir().unwrap(), clock, settings.clone()).await;
    let waiting = domain.place(proposal(4, 100, 100..1_000)).await.unwrap();
    assert!(!waiting.fixed);
    domain.turn(50);
    let refusal = reason(domain.place(proposal(4, 100, 100..200)).await);
    assert_eq!(
        refusal.reason,
        Reason::NoCapacityInWindow,
        "half of its wait is over"
    );
    assert!(
        agreements::agreement(&domain.store, waiting.id)
            .await
            .unwrap()
            .unwrap()
            .fixed
    );
    domain.stop.cancel();
    domain.task.await.unwrap();
    domain.store.close().await;
    let domain = Domain::start_with(domain.folder, domain.clock, settings).await;
    let refusal = reason(domain.place(proposal(4, 100, 100..200)).await);
    assert_eq!(refusal.reason, Reason::NoCapacityInWindow);
}

#[tokio::test]
async fn what_is_to_be_fixed_when_it_is_accepted_is_stored_so_before_the_answer() {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 86_400);
    // After the first slices none comes between an answer and a look at the store.
    settings.improving.idle = false;
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let domain = Domain::start_with(tempfile::tempdir().unwrap(), clock, settings).await;
    domain.move_up().await;
    // One that begins at once does not wait, one wants no move at all, and one may move for half of its wait.
    for (fix_at_ppm, start, fixed) in [(500_000, 0, true), (0, 200, true), (500_000, 400, false)] {
        let asked = Request {
            fix_at_ppm: Some(fix_at_ppm),
            ..proposal(4, 100, start..start + 1_000)
        };
        let accepted = domain.place(asked).await.unwrap();
        assert_eq!(accepted.placement().start, Time(NOW + start));
        let stored = agreements::agreement(&domain.store, accepted.id)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(stored.fixed, fixed, "from {start}: {stored:?}");
    }
}
