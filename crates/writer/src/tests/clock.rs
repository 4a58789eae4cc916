//! The planner under all moves of its clock and all acts of its clients.

use store::{agreements, executions, trail_lines};

use super::*;

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_stop_it() {
    let domain = Domain::start().await;
    let id = domain.place(with_job(proposal(2, 100, 0..300))).await.unwrap().id;
    let waiting = domain.place(proposal(4, 100, 100..400)).await.unwrap().id;
    domain.turn(5);
    domain.planner.send(BeginDue).await.unwrap();
    let run = Run::first(id);
    let at = (NOW + 5) * MICROS_PER_SECOND;
    domain.planner.send(ReportStarted { run, at }).await.unwrap();
    domain.turn(-1_000);
    domain.planner.send(BeginDue).await.unwrap();
    let placed = domain.place(proposal(1, 100, 0..1_000)).await.unwrap();
    assert!(placed.window().contains(placed.placement()), "{placed:?}");
    domain
        .planner
        .send(ReportEnded {
            run,
            end: ended(RunOutcome::Completed, 5, 60),
        })
        .await
        .unwrap();
    let end = Terminate::of(waiting, None);
    domain.planner.send(end).await.unwrap();
    for (id, state) in [
        (id, AgreementState::Complete),
        (waiting, AgreementState::Terminated),
    ] {
        let over = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
        assert_eq!(over.state, state, "{over:?}");
    }
    assert!(!domain.task.is_finished());
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
    let domain = domain.restart().await;
    domain.turn(10);
    domain.place(proposal(4, 100, 2_000..3_000)).await.unwrap();
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn so_many_refusals_of_a_party_in_a_minute_are_noted_and_no_more() {
    let domain = Domain::start().await;
    let refused = async |party: &str, count: usize| {
        for _ in 0..count {
            let asked = Request {
                party: party.into(),
                ..proposal(9, 100, 0..1_000)
            };
            reason(domain.place(asked).await);
        }
    };
    refused("physics", 70).await;
    refused("biology", 1).await;
    // Behind the line of the resource.
    let noted = async || {
        trail_lines::trail_lines_after(&domain.store, 1, 1_000)
            .await
            .unwrap()
    };
    let lines = noted().await;
    assert_eq!(lines.len(), 61, "sixty of the one, and that of the other");
    assert!(format!("{:?}", lines[59]).contains("further ones of this party in this minute are not noted"));
    domain.turn(60);
    refused("physics", 1).await;
    assert_eq!(noted().await.len(), 62, "in the next minute again");
}

#[tokio::test]
async fn a_run_time_is_what_was_measured_also_where_the_clock_is_set_back_meanwhile() {
    let domain = Domain::start().await;
    let id = domain.place(with_job(proposal(2, 100, 0..300))).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    let run = Run::first(id);
    let at = NOW * MICROS_PER_SECOND;
    domain.planner.send(ReportStarted { run, at }).await.unwrap();
    // Set back by ten minutes, and it ends a minute after it began.
    domain.turn(60 - 600);
    let end = ended(RunOutcome::Completed, 0, 60);
    domain.planner.send(ReportEnded { run, end }).await.unwrap();
    let executions = executions::executions_of_agreement(&domain.store, id)
        .await
        .unwrap();
    assert_eq!(executions[0].run_time, 60 * MICROS_PER_SECOND);
    let over = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!(over.run_time(), Some(60 * MICROS_PER_SECOND));
    assert_eq!(
        over.ended,
        Some((NOW - 540) * MICROS_PER_SECOND),
        "it is over now"
    );
    assert_eq!(over.guarantees[0].state, GuaranteeState::Fulfilled);
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}
