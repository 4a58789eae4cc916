//! The writer on a real store with a clock that the test turns.

mod changing_resources;
mod clock;
mod dry_runs;
mod faults;
mod holds;
mod improvement_slices;
mod late_reservations;
mod lost_work;
mod missed_slots;
mod moves;
mod pending;
mod picture;
mod recorded_moves;
mod reservations;
mod slots;
mod staging;
mod start_notices;

use domain::agreement::{
    Agreement, AgreementState, EventKind, Filter, Guarantee, GuaranteeState, Job, JobEnd, NegotiationOffer,
    Run, RunOutcome, ServiceState, Shape, Values,
};
use domain::clock::{Clock, MICROS_PER_SECOND};
use domain::resources::{KeptNodes, Resource, Scaling, Unused};
use planner::{
    Accept, AcceptedOffer, AlternativeSlot, BeginDue, CallBackTarget, Candidate, ChangeResource,
    CheckLaterStart, Command, CommandOptions, Configure, DecidePending, Decider, Decision, DecisionStep,
    Error, ExchangeOffers, ForeseeReservation, Idempotency, Initiate, KeepNodes, ListPlanned, ListRunning,
    OfferLoss, OfferOrigin, OfferWords, OpenResource, PendingRequest, Picture, PicturedSlotOf, Place,
    Pricing, Quote, QuoteOffers, Refusal, ReportBrought, ReportEnded, ReportHandingOver, ReportReserving,
    ReportStaging, ReportStarted, ReportUnused, Request, ResourceVerb, ResourceWish, SetNodes, Settings,
    ShowCalendar, ShowStandings, State, SubmitPending, TakePicture, Terminate, Weights,
};
use scheduler::{Fraction, Interval, Reason, Seconds, Time};
use store::{Store, agreements, bindings, executions};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Planner;

struct Domain {
    planner: Planner,
    store: Store,
    clock: Clock,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    folder: TempDir,
}

/// A command that does with the plan what a test says.
struct Meddle<F>(F);

impl<F> Command for Meddle<F>
where
    F: FnOnce(&mut Decider<'_>) -> Result<(), Error> + Send + Sync + 'static,
{
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        (self.0)(decider).map(DecisionStep::Done)
    }
}

const NOW: i64 = 1_800_000_000;

impl Domain {
    async fn start() -> Self {
        Self::start_in(
            tempfile::tempdir().unwrap(),
            Clock::standing_at(NOW * MICROS_PER_SECOND),
        )
        .await
    }

    async fn start_in(folder: TempDir, clock: Clock) -> Self {
        let resource = Resource::new("local", "local", 4);
        Self::start_with(folder, clock, Settings::new(vec![resource], 86_400)).await
    }

    async fn start_with(folder: TempDir, clock: Clock, settings: Settings) -> Self {
        let url = format!("sqlite:{}", folder.path().join("test.db").display());
        let store = Store::open(&url).await.unwrap();
        let lease = store.acquire_lease().await.unwrap();
        let stop = CancellationToken::new();
        let (planner, task) = Planner::start(settings, store.clone(), lease, clock.clone(), stop.clone())
            .await
            .unwrap();
        Self {
            planner,
            store,
            clock,
            stop,
            task,
            folder,
        }
    }

    /// Stops and starts again on the same file.
    async fn restart(self) -> Self {
        self.stop.cancel();
        self.task.await.unwrap();
        self.store.close().await;
        Self::start_in(self.folder, self.clock).await
    }

    fn turn(&self, seconds: i64) {
        self.clock.set((NOW + seconds) * MICROS_PER_SECOND);
    }

    /// Changes the plan behind the back of the planner.
    async fn meddle(&self, with: impl FnOnce(&mut State) + Send + Sync + 'static) -> Result<(), Error> {
        let meddle = move |decider: &mut Decider<'_>| -> Result<(), Error> {
            with(decider.plan_to_damage());
            Ok(())
        };
        self.planner.send(Meddle(meddle)).await
    }

    /// Waits until all that can move up has done so.
    async fn move_up(&self) {
        let now = self.clock.now();
        self.wait_while(move |plan| plan.may_move_up(now)).await;
    }

    /// Waits while something is true of the plan, in which slices are made meanwhile.
    async fn wait_while(&self, is_true: impl Fn(&State) -> bool + Copy + Send + Sync + 'static) {
        loop {
            let (tell, told) = std::sync::mpsc::channel();
            let look = move |plan: &mut State| tell.send(is_true(plan)).unwrap();
            self.meddle(look).await.unwrap();
            if !told.recv().unwrap() {
                return;
            }
            // A slice is made while no command waits, and after all that can run: this test has run when it is its turn again.
            for _ in 0..2 {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn place(&self, request: Request) -> Result<Agreement, Error> {
        self.planner
            .send(Place(request))
            .await
            .map(|accepted| accepted.agreement)
    }
}

/// Asks for nodes for a duration in a window that is given relative to the start of the test.
fn proposal(nodes: u32, duration: Seconds, window: std::ops::Range<i64>) -> Request {
    Request {
        id: Uuid::now_v7(),
        party: "physics".into(),
        name: None,
        template: "advance-reservation".into(),
        shapes: vec![Shape { nodes, duration }],
        scaling: Scaling::Contract,
        preemption: None,
        shape_changes: None,
        filters: Vec::new(),
        barred: Vec::new(),
        fix_at_ppm: None,
        deviation_max: None,
        ready: Some(Time(NOW + window.start)),
        deadline: Some(Time(NOW + window.end)),
        expires: None,
        job: None,
        guarantees: vec![Guarantee {
            name: "COMPLETION".into(),
            objective: "completed le deadline".into(),
            qualifying_condition: None,
            state: GuaranteeState::NotDetermined,
            evidence: None,
            values: Values::default(),
        }],
        choices: Vec::new(),
        initiator_id: None,
        document: "<offer/>".into(),
        idempotency: None,
        budget: None,
        spender: None,
    }
}

fn with_job(mut request: Request) -> Request {
    request.job = Some(Job {
        application: "sleep".into(),
        arguments: vec!["5".into()],
        ..Job::default()
    });
    request
}

fn ended(outcome: RunOutcome, started: i64, ended: i64) -> JobEnd {
    JobEnd::new(
        outcome,
        Some((NOW + started) * MICROS_PER_SECOND),
        (NOW + ended) * MICROS_PER_SECOND,
    )
}

fn reason(result: Result<Agreement, Error>) -> Refusal {
    match result {
        Err(Error::Refused(refusal)) => *refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn an_offer_is_placed_at_the_first_fit_in_its_window() {
    let domain = Domain::start().await;
    let first = domain.place(proposal(3, 100, 0..1_000)).await.unwrap();
    let second = domain.place(proposal(2, 100, 0..1_000)).await.unwrap();
    let beside = domain.place(proposal(1, 100, 0..1_000)).await.unwrap();
    assert_eq!(first.placement(), Interval::new(Time(NOW), Time(NOW + 100)));
    assert_eq!(second.placement().start, Time(NOW + 100));
    assert_eq!(
        beside.placement().start,
        Time(NOW),
        "one node is left beside the first"
    );
    assert_eq!(first.state, AgreementState::Observed);
}

/// Both are sent before the planner has a turn: it decides them together.
#[tokio::test]
async fn what_bounds_no_command_bounds_the_next_of_its_batch() {
    let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 86_400);
    settings.quotas.agreements = Some(1);
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let domain = Domain::start_with(tempfile::tempdir().unwrap(), clock, settings).await;
    domain.place(proposal(1, 100, 0..100)).await.unwrap();
    let place = |is_unbounded: bool| {
        let options = CommandOptions {
            is_unbounded,
            ..CommandOptions::default()
        };
        domain.planner.send_with(Place(proposal(1, 100, 0..100)), options)
    };
    let (unbounded, bounded) = tokio::join!(place(true), place(false));
    unbounded.unwrap();
    let refusal = reason(bounded.map(|accepted| accepted.agreement));
    assert_eq!(refusal.reason, Reason::QuotaExceeded);
}

#[tokio::test]
async fn a_refusal_names_the_nearest_slots_before_and_after() {
    let domain = Domain::start().await;
    domain.place(proposal(4, 200, 500..700)).await.unwrap();
    let refusal = reason(domain.place(proposal(1, 100, 550..650)).await);
    assert_eq!(refusal.reason, Reason::NoCapacityInWindow);
    let nearest = [400, 700].map(|start| AlternativeSlot {
        slot: Interval::of(Time(NOW + start), 100),
        nodes: None,
    });
    assert_eq!(refusal.alternatives, nearest);
}

#[tokio::test]
async fn each_impossible_window_has_its_own_reason() {
    let domain = Domain::start().await;
    for (proposal, expected) in [
        (proposal(5, 100, 0..1_000), Reason::SizeExceedsCapacity),
        (proposal(1, 100, 0..50), Reason::WindowInThePast),
        (proposal(1, 100, 500..550), Reason::WindowContradictory),
        (proposal(1, 100, 0..86_401), Reason::HorizonExceeded),
    ] {
        assert_eq!(reason(domain.place(proposal).await).reason, expected);
    }
}

#[tokio::test]
async fn a_ready_time_before_now_is_moved_to_now() {
    let domain = Domain::start().await;
    let agreement = domain.place(proposal(1, 100, -500..500)).await.unwrap();
    assert_eq!(agreement.ready, Time(NOW));
    assert_eq!(agreement.placement().start, Time(NOW));
}

#[tokio::test]
async fn a_reservation_without_a_job_becomes_idle_and_completes_at_its_end() {
    let domain = Domain::start().await;
    let id = domain.place(proposal(2, 100, 10..200)).await.unwrap().id;
    assert_eq!(*domain.planner.subscribe().borrow(), Some(Time(NOW + 10)));
    assert!(domain.planner.send(BeginDue).await.unwrap().is_empty());
    domain.turn(10);
    assert!(
        domain.planner.send(BeginDue).await.unwrap().is_empty(),
        "there is no job to start"
    );
    let begun = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!(begun.service, ServiceState::Idle);
    assert_eq!(
        bindings::live_bindings(&domain.store, Time::MAX)
            .await
            .unwrap()
            .len(),
        2
    );
    domain.turn(110);
    domain.planner.send(BeginDue).await.unwrap();
    let over = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!(
        (over.state, over.service),
        (AgreementState::Complete, ServiceState::Completed)
    );
    assert_eq!(over.guarantees[0].state, GuaranteeState::Fulfilled);
}

#[tokio::test]
async fn kept_nodes_are_bound_and_unused_ones_go_to_others_after_a_warning() {
    let domain = Domain::start().await;
    let id = domain.place(proposal(2, 100, 0..100)).await.unwrap().id;
    let kept = vec![KeptNodes {
        run: Run::first(id),
        nodes: vec![1, 3],
        since: Time(NOW),
    }];
    domain
        .planner
        .send(KeepNodes {
            resource: "local".into(),
            kept,
        })
        .await
        .unwrap();
    let early = domain
        .planner
        .send(ReportUnused {
            agreement: id,
            unused: Unused::Reclaim,
        })
        .await;
    assert_eq!(early, Err(Error::NotFound), "its slot has not begun");
    domain.planner.send(BeginDue).await.unwrap();
    let bindings = bindings::live_bindings(&domain.store, Time::MAX).await.unwrap();
    let bound: Vec<_> = bindings.iter().map(|binding| binding.node).collect();
    assert_eq!(bound, [1, 3]);
    domain.turn(10);
    domain
        .planner
        .send(ReportUnused {
            agreement: id,
            unused: Unused::Warn,
        })
        .await
        .unwrap();
    assert!(domain.place(proposal(4, 50, 0..90)).await.is_err());
    domain
        .planner
        .send(ReportUnused {
            agreement: id,
            unused: Unused::Reclaim,
        })
        .await
        .unwrap();
    domain.place(proposal(4, 50, 0..90)).await.unwrap();
    let over = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!(over.state, AgreementState::Complete);
    assert_eq!(over.guarantees[0].state, GuaranteeState::Fulfilled);
}

#[tokio::test]
async fn an_early_end_frees_the_rest_of_the_slot_and_fulfils_the_guarantee() {
    let domain = Domain::start().await;
    let id = domain.place(with_job(proposal(4, 100, 0..200))).await.unwrap().id;
    assert_eq!(domain.planner.send(BeginDue).await.unwrap().len(), 1);
    domain.turn(6);
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end: ended(RunOutcome::Completed, 0, 5),
        })
        .await
        .unwrap();
    let next = domain.place(proposal(4, 100, 0..200)).await.unwrap();
    assert_eq!(next.placement().start, Time(NOW + 6));
    let over = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!(over.state, AgreementState::Complete);
    assert_eq!(over.guarantees[0].state, GuaranteeState::Fulfilled);
    let executions = executions::executions_of_agreement(&domain.store, id)
        .await
        .unwrap();
    assert_eq!(executions.len(), 1);
    assert_eq!(executions[0].run_time, 5 * MICROS_PER_SECOND);
    let kinds: Vec<_> = agreements::events_of_agreement(&domain.store, id)
        .await
        .unwrap()
        .iter()
        .map(|event| event.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            EventKind::Accepted,
            EventKind::Begun,
            EventKind::Ended,
            EventKind::Assessed,
            EventKind::Closed
        ]
    );
}

#[tokio::test]
async fn a_job_stopped_at_its_slots_end_violates_its_completion() {
    let domain = Domain::start().await;
    let id = domain.place(with_job(proposal(1, 100, 0..200))).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    domain.turn(101);
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end: ended(RunOutcome::Killed, 0, 101),
        })
        .await
        .unwrap();
    let over = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!(over.guarantees[0].state, GuaranteeState::Violated);
    assert_eq!(over.state, AgreementState::Complete);
}

#[tokio::test]
async fn an_end_is_recorded_once() {
    let domain = Domain::start().await;
    let id = domain.place(with_job(proposal(1, 100, 0..200))).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    domain.turn(6);
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end: ended(RunOutcome::Completed, 0, 5),
        })
        .await
        .unwrap();
    let again = domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end: ended(RunOutcome::Failed { exit: 1 }, 0, 6),
        })
        .await;
    assert_eq!(again, Err(Error::NotFound));
    assert_eq!(
        executions::executions_of_agreement(&domain.store, id)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_waiting_agreement_terminates_at_once_and_frees_its_slot() {
    let domain = Domain::start().await;
    let id = domain.place(proposal(4, 100, 50..150)).await.unwrap().id;
    let other = domain
        .planner
        .send(Terminate::of(id, Some("chemistry".into())))
        .await;
    assert_eq!(other, Err(Error::NotFound));
    let gone = domain
        .planner
        .send(Terminate::of(id, Some("physics".into())))
        .await
        .unwrap();
    assert_eq!(gone.state, AgreementState::Terminated);
    domain.place(proposal(4, 100, 50..150)).await.unwrap();
    assert_eq!(
        domain.planner.send(Terminate::of(id, None)).await,
        Err(Error::NotFound),
        "it has left the plan"
    );
}

#[tokio::test]
async fn a_running_agreement_terminates_when_its_job_has_been_stopped() {
    let domain = Domain::start().await;
    let id = domain.place(with_job(proposal(1, 100, 0..200))).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    let terminating = domain.planner.send(Terminate::of(id, None)).await.unwrap();
    assert_eq!(terminating.state, AgreementState::ObservedAndTerminating);
    let again = domain.planner.send(Terminate::of(id, None)).await.unwrap();
    assert_eq!(again.state, AgreementState::ObservedAndTerminating);
    domain.turn(3);
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end: ended(RunOutcome::Terminated, 0, 2),
        })
        .await
        .unwrap();
    let over = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!(over.state, AgreementState::Terminated);
    assert_eq!(over.guarantees[0].state, GuaranteeState::NotDetermined);
}

#[tokio::test]
async fn a_job_that_ends_before_it_is_stopped_leaves_a_complete_agreement() {
    let domain = Domain::start().await;
    let id = domain.place(with_job(proposal(1, 100, 0..200))).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    domain.planner.send(Terminate::of(id, None)).await.unwrap();
    domain.turn(3);
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end: ended(RunOutcome::Completed, 0, 2),
        })
        .await
        .unwrap();
    assert_eq!(
        agreements::agreement(&domain.store, id)
            .await
            .unwrap()
            .unwrap()
            .state,
        AgreementState::Complete
    );
}

#[tokio::test]
async fn a_restart_finds_the_plan_as_it_was() {
    let domain = Domain::start().await;
    let waiting = domain.place(proposal(4, 100, 50..150)).await.unwrap();
    let running = domain.place(with_job(proposal(4, 40, 0..40))).await.unwrap();
    domain.planner.send(BeginDue).await.unwrap();
    let domain = domain.restart().await;
    assert_eq!(
        agreements::agreement(&domain.store, waiting.id)
            .await
            .unwrap()
            .unwrap(),
        waiting
    );
    let still: Vec<_> = domain
        .planner
        .send(ListRunning)
        .await
        .unwrap()
        .iter()
        .map(|each| each.id)
        .collect();
    assert_eq!(still, [running.id]);
    assert!(
        domain.planner.send(BeginDue).await.unwrap().is_empty(),
        "nothing starts twice"
    );
    let refusal = reason(domain.place(proposal(1, 10, 60..140)).await);
    assert_eq!(refusal.reason, Reason::NoCapacityInWindow);
}

#[tokio::test]
async fn a_slot_that_passed_while_the_service_was_down_is_lost() {
    let domain = Domain::start().await;
    let id = domain.place(with_job(proposal(1, 100, 0..200))).await.unwrap().id;
    domain.turn(150);
    assert!(domain.planner.send(BeginDue).await.unwrap().is_empty());
    let over = agreements::agreement(&domain.store, id).await.unwrap().unwrap();
    assert_eq!(over.outcome, Some(RunOutcome::Lost));
    assert_eq!(over.guarantees[0].state, GuaranteeState::Violated);
}

#[tokio::test]
async fn a_repeated_idempotency_key_places_nothing_new() {
    let domain = Domain::start().await;
    let keyed = |key: &str| {
        let mut proposal = proposal(1, 100, 0..1_000);
        proposal.idempotency = Some(Idempotency {
            party: "physics".into(),
            key: key.into(),
            request_hash: "h".into(),
            answer: |accepted: &AcceptedOffer| accepted.agreement.id.to_string(),
        });
        proposal
    };
    let first = domain.place(keyed("a")).await.unwrap();
    let (second, third) = tokio::join!(domain.place(keyed("a")), domain.place(keyed("b")));
    match second {
        Err(Error::Repeated(answer)) => assert_eq!(answer, first.id.to_string()),
        other => panic!("expected what the key did before, got {other:?}"),
    }
    assert!(third.is_ok());
    let twins = tokio::join!(domain.place(keyed("c")), domain.place(keyed("c")));
    assert_eq!(
        [twins.0.is_ok(), twins.1.is_ok()]
            .iter()
            .filter(|ok| **ok)
            .count(),
        1
    );
}
