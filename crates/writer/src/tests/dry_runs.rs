//! Dry runs: the answer of the real request, of which only the count of the party's questions stays.

use super::*;

#[tokio::test]
async fn a_dry_run_counts_as_a_question_and_its_refusals_are_not_noted() {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 86_400);
    settings.quotas.probes_per_minute = Some(3);
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let domain = Domain::start_with(tempfile::tempdir().unwrap(), clock, settings).await;
    let taken = Request {
        party: "chemistry".into(),
        ..proposal(4, 1_000, 0..1_000)
    };
    domain.place(taken).await.unwrap();
    let dry = domain.planner.dry();
    let refused = async |planner: &Planner, party: &str| {
        let asked = Request {
            party: party.into(),
            ..proposal(1, 100, 0..1_000)
        };
        let answer = planner.place(asked).await.map(|accepted| accepted.agreement);
        reason(answer).reason
    };
    for _ in 0..3 {
        assert_eq!(refused(&dry, "physics").await, Reason::NoCapacityInWindow);
    }
    for planner in [&dry, &domain.planner] {
        assert_eq!(refused(planner, "physics").await, Reason::QuotaExceeded);
    }
    assert_eq!(refused(&dry, "biology").await, Reason::NoCapacityInWindow);
    // As many as are noted in a minute, and more: the place of the real ones is not theirs.
    for _ in 0..70 {
        refused(&dry, "physics").await;
    }
    let noted = async || {
        let lines = domain.store.trail(0, 1_000).await.unwrap();
        lines.iter().filter(|line| line.kind == "refused").count()
    };
    assert_eq!(noted().await, 1);
    refused(&domain.planner, "physics").await;
    assert_eq!(noted().await, 2);
    domain.turn(60);
    assert_eq!(
        refused(&dry, "physics").await,
        Reason::NoCapacityInWindow,
        "another minute"
    );
}
