//! Files that are moved for a job take a part of its slot, and neither of its wait nor of its run.

use domain::agreement::{BroughtFiles, MovedFiles, Source, StagedFile, StagingEnd};
use domain::clock::Micros;
use store::{agreements, executions, samples};

use super::*;

/// A second after the start of the test.
fn at(seconds: i64) -> Micros {
    (NOW + seconds) * MICROS_PER_SECOND
}

/// Work with a file from an address, on four nodes for a hundred seconds, and its first run. Its slot has begun.
async fn begun(domain: &Domain, window: std::ops::Range<i64>) -> (Uuid, Run) {
    let mut proposal = with_job(proposal(4, 100, window));
    proposal.guarantees[0].objective = "started le latest_start".into();
    let job = proposal.job.as_mut().unwrap();
    job.staging.push(StagedFile {
        name: "in.dat".into(),
        source: Some(Source::Address("http://a/in.dat".into())),
        ..StagedFile::default()
    });
    let id = domain.place(proposal).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    (id, Run::first(id))
}

fn brought() -> BroughtFiles {
    BroughtFiles {
        moved: MovedFiles {
            files: 1,
            bytes: 3_000_000,
            took: 3 * MICROS_PER_SECOND,
        },
        before: 4 * MICROS_PER_SECOND,
    }
}

async fn kinds(domain: &Domain, id: Uuid) -> Vec<EventKind> {
    let events = agreements::events_of_agreement(&domain.store, id).await.unwrap();
    events.iter().map(|event| event.kind).collect()
}

#[tokio::test]
async fn each_step_is_noted_once_and_the_execution_has_its_parts() {
    let domain = Domain::start().await;
    let (id, run) = begun(&domain, 0..100).await;
    domain.turn(2);
    for _ in 0..2 {
        domain
            .planner
            .send(ReportStaging { run, since: at(1) })
            .await
            .unwrap();
    }
    let agreement = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert!(agreement.is_being_brought() && agreement.started == Some(at(1)));
    let state = agreement.guarantees[0].state;
    assert_eq!(state, GuaranteeState::Fulfilled, "its slot is used from then on");
    domain.turn(6);
    for _ in 0..2 {
        domain
            .planner
            .send(ReportBrought {
                run,
                since: at(1),
                brought: brought(),
            })
            .await
            .unwrap();
    }
    let domain = domain.restart().await;
    domain
        .planner
        .send(ReportBrought {
            run,
            since: at(1),
            brought: brought(),
        })
        .await
        .unwrap();
    let agreement = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert!(!agreement.is_being_brought() && agreement.started == Some(at(1)));
    // Its process ran from the fifth second to the fifteenth, and its result was sent until the eighteenth.
    domain.turn(20);
    let end = JobEnd {
        staging: Some(Box::new(StagingEnd {
            brought: Some(brought()),
            sent: Some(MovedFiles {
                files: 1,
                bytes: 500,
                took: 2 * MICROS_PER_SECOND,
            }),
            after: 3 * MICROS_PER_SECOND,
            failure: None,
        })),
        ..JobEnd::new(RunOutcome::Completed, Some(at(1)), at(18))
    };
    domain.planner.send(ReportEnded { run, end }).await.unwrap();
    let events = kinds(&domain, id).await;
    let steps = [
        EventKind::Staging,
        EventKind::Staged,
        EventKind::Running,
        EventKind::Staged,
        EventKind::Ended,
    ];
    let seen: Vec<_> = events.into_iter().filter(|kind| steps.contains(kind)).collect();
    assert_eq!(seen, steps);
    let executions = executions::executions_of_agreement(&domain.store, id)
        .await
        .unwrap();
    let [execution] = executions.as_slice() else {
        panic!("{executions:?}");
    };
    let seconds = [
        execution.queue_time,
        execution.transfer_in,
        execution.run_time,
        execution.transfer_out,
    ];
    assert_eq!(seconds.map(|micros| micros / MICROS_PER_SECOND), [2, 3, 10, 2]);
    assert_eq!((execution.moved_in, execution.moved_out), (3_000_000, 500));
    let hours = samples::sample_hours_of_resources(&domain.store, Time(0))
        .await
        .unwrap();
    let rates: Vec<_> = hours
        .iter()
        .map(|hour| (hour.condition.transfer_in, hour.condition.transfer_out))
        .collect();
    assert_eq!(rates, [(Some(1_000_000), Some(250))]);
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn work_whose_files_the_service_has_held_up_waits_again_and_is_brought_anew() {
    let domain = Domain::start().await;
    let (id, run) = begun(&domain, 0..1_000).await;
    domain
        .planner
        .send(ReportStaging { run, since: at(1) })
        .await
        .unwrap();
    domain.turn(100);
    let late = JobEnd::new(RunOutcome::Lost, None, at(100));
    domain.planner.send(ReportEnded { run, end: late }).await.unwrap();
    let waits = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!(
        (waits.state, waits.service),
        (AgreementState::Observed, ServiceState::NotReady)
    );
    assert_eq!(waits.started, None, "nothing of it has begun");
    assert!(
        executions::executions_of_agreement(&domain.store, id)
            .await
            .unwrap()
            .is_empty()
    );
    domain.turn(110);
    domain.planner.send(BeginDue).await.unwrap();
    let again = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert!(again.is_being_brought(), "{again:?}");
    assert_eq!(Run::from(&again).attempt, 1);
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn a_file_that_its_party_cannot_give_ends_the_work_and_pays_nothing() {
    let domain = Domain::start().await;
    let (id, run) = begun(&domain, 0..1_000).await;
    domain.turn(5);
    let end = JobEnd {
        staging: Some(Box::new(StagingEnd {
            failure: Some("in.dat: it answers 404".into()),
            ..StagingEnd::default()
        })),
        ..JobEnd::new(RunOutcome::Unstaged, Some(at(1)), at(4))
    };
    domain.planner.send(ReportEnded { run, end }).await.unwrap();
    let over = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!(
        (over.state, over.outcome),
        (AgreementState::Complete, Some(RunOutcome::Unstaged))
    );
    assert_eq!(over.guarantees[0].state, GuaranteeState::Fulfilled);
    assert!(
        executions::executions_of_agreement(&domain.store, id)
            .await
            .unwrap()
            .is_empty(),
        "no process has run"
    );
    let events = agreements::events_of_agreement(&domain.store, id).await.unwrap();
    assert!(
        events
            .iter()
            .any(|event| event.detail.ends_with("in.dat: it answers 404")),
        "{events:?}"
    );
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}
