//! An agreement that has waited for the agreed part of its wait moves no more.

use super::*;

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
    assert!(domain.store.agreement(waiting.id).await.unwrap().unwrap().fixed);
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
        let stored = domain.store.agreement(accepted.id).await.unwrap().unwrap();
        assert_eq!(stored.fixed, fixed, "from {start}: {stored:?}");
    }
}
