//! Dry runs: the answer of the real request, of which only the count of the party's questions stays.

use store::trail_lines;

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
    let refused = async |is_dry: bool, party: &str| {
        let asked = Request {
            party: party.into(),
            ..proposal(1, 100, 0..1_000)
        };
        let options = CommandOptions::default().or_dry(is_dry);
        let answer = domain.planner.send_with(Place(asked), options).await;
        reason(answer.map(|accepted| accepted.agreement)).reason
    };
    for _ in 0..3 {
        assert_eq!(refused(true, "physics").await, Reason::NoCapacityInWindow);
    }
    for is_dry in [true, false] {
        assert_eq!(refused(is_dry, "physics").await, Reason::QuotaExceeded);
    }
    assert_eq!(refused(true, "biology").await, Reason::NoCapacityInWindow);
    // As many as are noted in a minute, and more: the place of the real ones is not theirs.
    for _ in 0..70 {
        refused(true, "physics").await;
    }
    let noted = async || {
        let lines = trail_lines::trail_lines_after(&domain.store, 0, 1_000)
            .await
            .unwrap();
        lines.iter().filter(|line| line.kind == "refused").count()
    };
    assert_eq!(noted().await, 1);
    refused(false, "physics").await;
    assert_eq!(noted().await, 2);
    domain.turn(60);
    assert_eq!(
        refused(true, "physics").await,
        Reason::NoCapacityInWindow,
        "another minute"
    );
}
