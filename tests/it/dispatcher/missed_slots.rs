//! Slots that pass while nothing could be started in them: work that never ran runs later in its window, once.

use domain::agreement::EventKind;
use planner::{BeginDue, Place};
use store::agreements;

use super::*;

/// How long ago the slots were, in seconds.
const AGO: Seconds = 1_000;
const SLOT: Seconds = 300;

/// A job with a slot at `then`, and a window that ends `room` seconds after that slot; the slot is over by now.
fn work(then: scheduler::Time, room: Seconds) -> Request {
    Request {
        ready: Some(then),
        deadline: Some(then + SLOT + room),
        ..Service::proposal(1, "echo run >> runs", -AGO, SLOT)
    }
}

async fn told(service: &Service, id: Uuid) -> String {
    let events = agreements::events_of_agreement(&service.store, id).await.unwrap();
    let lines = events
        .iter()
        .map(|event| format!("{}: {}\n", event.kind.word(), event.detail));
    lines.collect()
}

#[test]
fn work_whose_slot_passed_while_the_service_was_down_runs_once_where_its_window_has_room() {
    block_on(async {
        let folder = folder();
        let then = Clock::standing_at(Clock::system().micros() - AGO * MICROS_PER_SECOND);
        let ready = then.now();
        let service = Service::start_planner_by(&folder, &["local"], then).await;
        let place = async |room| {
            service
                .planner
                .send(Place(work(ready, room)))
                .await
                .unwrap()
                .agreement
        };
        let begun = place(3_600).await;
        assert_eq!(service.planner.send(BeginDue).await.unwrap().len(), 1);
        let waiting = place(3_600).await;
        let late = place(0).await;
        service.stop().await;

        let service = Service::start(&folder).await;
        for (agreement, restarts) in [(&begun, 1), (&waiting, 0)] {
            let over = service.over(agreement.id).await;
            assert_eq!(
                (over.outcome, over.restarts()),
                (Some(RunOutcome::Completed), restarts),
                "{over:?}"
            );
            assert!(over.window().contains(over.placement()), "{over:?}");
            assert_eq!(
                fs::read_to_string(service.file(agreement, "runs")).unwrap(),
                "run\n",
                "it runs once"
            );
            let told = told(&service, agreement.id).await;
            assert!(told.contains("it was never started"), "{told}");
            let events = agreements::events_of_agreement(&service.store, agreement.id)
                .await
                .unwrap();
            let runs = events.iter().filter(|event| event.kind == EventKind::Ended);
            assert_eq!(runs.count(), 1, "{told}");
        }
        let lost = service.over(late.id).await;
        assert_eq!(lost.outcome, Some(RunOutcome::Lost));
        assert!(!service.file(&late, "runs").exists());
        let told = told(&service, late.id).await;
        assert!(
            told.contains("it was never started") && !told.contains("without a trace"),
            "{told}"
        );
        let findings = service.store.verify().await.unwrap();
        assert!(findings.is_empty(), "{findings:#?}");
        service.stop().await;
    });
}
