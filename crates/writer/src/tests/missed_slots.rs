//! Slots that pass while nothing could be started in them: the service was down, or the clock was stepped.

mod late_starts;

use store::agreements;

use super::*;

/// Why an agreement has another slot, or none, in its timeline.
const NEVER_STARTED: &str = "never started";

impl Domain {
    /// The details of the events of an agreement, one on each line, each behind the word of its kind.
    async fn timeline(&self, id: Uuid) -> String {
        let events = agreements::events_of_agreement(&self.store, id).await.unwrap();
        let lines = events
            .iter()
            .map(|event| format!("{}: {}\n", event.kind.word(), event.detail));
        lines.collect()
    }

    async fn of(&self, id: Uuid) -> Agreement {
        agreements::agreement(&self.store, id).await.unwrap().unwrap()
    }

    async fn begin(&self) -> Vec<Uuid> {
        let begun = self.planner.send(BeginDue).await.unwrap();
        begun.iter().map(|agreement| agreement.id).collect()
    }

    /// Reports that the present job of an agreement was never started in its slot.
    async fn never_started(&self, id: Uuid) -> Result<(), Error> {
        let run = Run::from(&self.of(id).await);
        let end = JobEnd {
            started: None,
            ended: self.clock.micros(),
            ..ended(RunOutcome::Lost, 0, 0)
        };
        self.planner.send(ReportEnded { run, end }).await
    }
}

/// The same with a guarantee of its start.
fn with_start(mut request: Request) -> Request {
    request.guarantees.push(Guarantee {
        name: "START".into(),
        objective: "started le latest_start".into(),
        ..request.guarantees[0].clone()
    });
    request
}

fn states(agreement: &Agreement) -> Vec<GuaranteeState> {
    agreement
        .guarantees
        .iter()
        .map(|guarantee| guarantee.state)
        .collect()
}

#[tokio::test]
async fn a_slot_that_passes_while_the_service_is_down_is_had_later_in_its_window() {
    for job in [true, false] {
        let domain = Domain::start().await;
        let asked = with_start(proposal(2, 3, 10..910));
        let asked = if job { with_job(asked) } else { asked };
        let id = domain.place(asked).await.unwrap().id;
        domain.turn(17);
        let domain = domain.restart().await;
        assert_eq!(domain.begin().await, if job { vec![id] } else { vec![] });
        let placed = domain.of(id).await;
        let service = if job {
            ServiceState::Processing
        } else {
            ServiceState::Idle
        };
        assert_eq!(
            (placed.state, placed.service, placed.restarts()),
            (AgreementState::Observed, service, 0),
            "{placed:?}"
        );
        assert_eq!(placed.placement(), Interval::of(Time(NOW + 17), 3));
        let told = domain.timeline(id).await;
        assert!(told.contains(NEVER_STARTED), "{told}");
        domain.turn(20);
        if job {
            let end = ended(RunOutcome::Completed, 17, 19);
            domain
                .planner
                .send(ReportEnded {
                    run: Run::first(id),
                    end,
                })
                .await
                .unwrap();
        } else {
            domain.begin().await;
        }
        let over = domain.of(id).await;
        assert_eq!(over.outcome, Some(RunOutcome::Completed), "{over:?}");
        // It ends in time, and began later than it was promised.
        let expected = [GuaranteeState::Fulfilled, GuaranteeState::Violated];
        assert_eq!(states(&over), expected, "{over:?}");
        assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
    }
}

#[tokio::test]
async fn a_clock_that_jumps_ahead_loses_nothing_whose_window_has_room() {
    let domain = Domain::start().await;
    let waiting = domain
        .place(with_job(proposal(2, 100, 10..7_200)))
        .await
        .unwrap()
        .id;
    let begun = domain
        .place(with_start(with_job(proposal(2, 100, 0..7_200))))
        .await
        .unwrap()
        .id;
    assert_eq!(
        domain.begin().await,
        [begun],
        "it is bound, and its process does not start"
    );
    domain.turn(3_600);
    domain.never_started(begun).await.unwrap();
    domain.begin().await;
    let (waits, again) = (domain.of(waiting).await, domain.of(begun).await);
    for agreement in [&waits, &again] {
        assert_eq!(agreement.state, AgreementState::Observed, "{agreement:?}");
        assert!(agreement.placement().start >= Time(NOW + 3_600), "{agreement:?}");
        assert!(
            agreement.window().contains(agreement.placement()),
            "{agreement:?}"
        );
    }
    assert_eq!(
        (waits.restarts(), again.restarts()),
        (0, 1),
        "what is left of a job has a number"
    );
    let late = domain.planner.send(ReportEnded {
        run: Run::first(begun),
        end: ended(RunOutcome::Completed, 0, 5),
    });
    assert_eq!(late.await, Err(Error::NotFound), "that was the job before");
    let told = domain.timeline(begun).await;
    assert!(
        told.contains(NEVER_STARTED) && !told.contains("without a trace"),
        "{told}"
    );
    assert!(!told.contains("run again"), "nothing has run: {told}");
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
    let domain = domain.restart().await;
    domain.turn(3_601);
    let both = domain.begin().await;
    assert!(both.contains(&begun), "{both:?}");
    domain.turn(3_650);
    let run = Run::from(&domain.of(begun).await);
    let end = ended(RunOutcome::Completed, 3_602, 3_650);
    domain.planner.send(ReportEnded { run, end }).await.unwrap();
    let over = domain.of(begun).await;
    let expected = [GuaranteeState::Fulfilled, GuaranteeState::Violated];
    assert_eq!(states(&over), expected, "{over:?}");
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn what_has_no_other_place_is_lost_and_was_never_started() {
    let domain = Domain::start().await;
    let waiting = domain
        .place(with_job(proposal(2, 100, 10..150)))
        .await
        .unwrap()
        .id;
    let begun = domain.place(with_job(proposal(2, 100, 0..150))).await.unwrap().id;
    let nothing = domain.place(proposal(2, 30, 110..150)).await.unwrap().id;
    domain.begin().await;
    domain.turn(145);
    domain.never_started(begun).await.unwrap();
    domain.begin().await;
    for id in [waiting, begun, nothing] {
        let lost = domain.of(id).await;
        assert_eq!(
            (lost.state, lost.outcome),
            (AgreementState::Complete, Some(RunOutcome::Lost)),
            "{lost:?}"
        );
        assert_eq!(lost.guarantees[0].state, GuaranteeState::Violated);
        let told = domain.timeline(id).await;
        assert!(
            told.contains(NEVER_STARTED) && !told.contains("without a trace"),
            "{told}"
        );
    }
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn others_move_for_what_missed_its_slot() {
    let domain = Domain::start().await;
    let missed = domain.place(with_job(proposal(4, 100, 0..300))).await.unwrap().id;
    let flexible = domain.place(proposal(4, 100, 0..2_000)).await.unwrap();
    assert_eq!(flexible.placement().start, Time(NOW + 100));
    domain.turn(101);
    // A slot that is due now begins, and the waiting ones after it make room.
    let next = domain.place(proposal(4, 90, 205..1_000)).await.unwrap();
    assert_eq!(next.placement().start, Time(NOW + 205));
    domain.begin().await;
    let again = domain.of(missed).await;
    assert_eq!(again.state, AgreementState::Observed, "{again:?}");
    assert!(again.window().contains(again.placement()), "{again:?}");
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn slots_that_were_missed_do_not_count_as_losses() {
    let domain = Domain::start().await;
    let id = domain.place(with_job(proposal(4, 10, 0..400))).await.unwrap().id;
    let mut missed = 0;
    for _ in 0..100 {
        let waits = domain.of(id).await;
        if waits.state.is_final() {
            break;
        }
        domain
            .clock
            .set(waits.placement().start.seconds() * MICROS_PER_SECOND);
        assert_eq!(domain.begin().await, [id]);
        domain
            .clock
            .set(waits.placement().end.seconds() * MICROS_PER_SECOND);
        domain.never_started(id).await.unwrap();
        missed += 1;
    }
    assert!(
        (30..=40).contains(&missed),
        "as often as its window has room: {missed}"
    );
    let lost = domain.of(id).await;
    assert_eq!(lost.outcome, Some(RunOutcome::Lost), "{lost:?}");
    assert!(domain.timeline(id).await.contains(NEVER_STARTED));
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}

/// The service went down when the slot had begun and the job had not.
#[tokio::test]
async fn a_job_that_is_late_in_its_slot_starts_later_where_there_is_another_slot_and_has_the_rest_otherwise()
{
    for (end, has_another) in [(90, false), (200, true)] {
        let domain = Domain::start().await;
        let id = domain.place(with_job(proposal(2, 60, 10..end))).await.unwrap().id;
        domain.turn(10);
        assert_eq!(domain.begin().await, [id]);
        domain.turn(45);
        let could = domain.planner.send(CheckLaterStart(id)).await.unwrap();
        assert_eq!(could, has_another, "until {end}");
        // Nothing has changed yet.
        assert_eq!(domain.of(id).await.service, ServiceState::Processing);
        if could {
            domain.never_started(id).await.unwrap();
            assert_eq!(domain.of(id).await.placement().start, Time(NOW + 46));
        }
    }
}
