//! Clusters that hold promised nodes late, elsewhere or not at all.

use domain::agreement::Currency;
use domain::resources::{CLUSTER, NodeReport, NodeState, Reporter};
use store::{agreements, bindings};

use super::*;

/// A domain with a priced cluster of four nodes.
async fn cluster() -> Domain {
    let mut settings = Settings::new(vec![Resource::new("local", CLUSTER, 4)], 86_400);
    settings.pricing = Some(Pricing::flat(3_600_000_000, Currency::parse("EUR").unwrap()));
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    Domain::start_with(tempfile::tempdir().unwrap(), clock, settings).await
}

impl Domain {
    async fn keep(&self, kept: &[(Uuid, &[u32], i64)]) {
        let kept = kept.iter().map(|(agreement, nodes, since)| KeptNodes {
            run: Run::first(*agreement),
            nodes: nodes.to_vec(),
            since: Time(NOW + since),
        });
        let kept = self.planner.send(KeepNodes {
            resource: "local".into(),
            kept: kept.collect(),
        });
        kept.await.unwrap();
    }

    async fn shown(&self, id: Uuid) -> Agreement {
        agreements::agreement(&self.store, id).await.unwrap().unwrap()
    }

    async fn lines(&self, id: Uuid) -> Vec<(EventKind, String)> {
        let events = agreements::events_of_agreement(&self.store, id).await.unwrap();
        events
            .into_iter()
            .map(|event| (event.kind, event.detail))
            .collect()
    }

    async fn nodes_of(&self, id: Uuid) -> Vec<u32> {
        let bindings = bindings::live_bindings(&self.store, Time(NOW)).await.unwrap();
        let own = bindings.iter().filter(|binding| binding.agreement == id);
        own.map(|each| each.node).collect()
    }
}

/// Asks for nodes to be there at once, and for the end of the slot in time.
fn reservation(nodes: u32, duration: Seconds, window: std::ops::Range<i64>) -> Request {
    let mut proposal = proposal(nodes, duration, window);
    let mut start = proposal.guarantees[0].clone();
    (start.name, start.objective) = ("START".into(), "started le latest_start".into());
    proposal.guarantees.push(start);
    proposal
}

#[tokio::test]
async fn nodes_that_a_cluster_has_never_held_are_not_paid_for_and_violate_the_guarantees() {
    let domain = cluster().await;
    let id = domain.place(reservation(2, 100, 0..100)).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    assert_eq!(domain.shown(id).await.started, None);
    // One node of two is fewer than promised.
    domain.turn(5);
    domain.keep(&[(id, &[0], 0)]).await;
    let unused = domain
        .planner
        .send(ReportUnused {
            agreement: id,
            unused: Unused::Reclaim,
        })
        .await;
    assert_eq!(unused, Err(Error::NotFound), "it has nothing to use");
    domain.turn(100);
    domain.planner.send(BeginDue).await.unwrap();
    let over = domain.shown(id).await;
    assert_eq!(
        (over.state, over.outcome, over.started),
        (AgreementState::Complete, Some(RunOutcome::Lost), None)
    );
    let states: Vec<_> = over.guarantees.iter().map(|guarantee| guarantee.state).collect();
    assert_eq!(states, [GuaranteeState::Violated; 2]);
    let lines = domain.lines(id).await;
    assert!(
        lines.iter().all(|(kind, _)| *kind != EventKind::Charged),
        "{lines:?}"
    );
    assert_eq!(domain.store.verify().await.unwrap(), []);
}

#[tokio::test]
async fn who_ends_an_agreement_without_having_got_its_nodes_pays_nothing() {
    let domain = cluster().await;
    let id = domain.place(reservation(2, 100, 0..100)).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    domain.turn(50);
    let ended = Terminate::of(id, None);
    domain.planner.send(ended).await.unwrap();
    let lines = domain.lines(id).await;
    assert!(
        lines.iter().all(|(kind, _)| *kind != EventKind::Charged),
        "{lines:?}"
    );
    assert_eq!(domain.store.verify().await.unwrap(), []);
}

#[tokio::test]
async fn nodes_are_handed_over_once_their_cluster_holds_them_and_are_paid_for() {
    let domain = cluster().await;
    let late = domain.place(reservation(2, 100, 0..100)).await.unwrap().id;
    let ahead = domain.place(reservation(1, 100, 20..120)).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    // A report that comes late is valid from the time that it names.
    domain.turn(12);
    domain.planner.send(BeginDue).await.unwrap();
    let state = domain.shown(late).await.guarantees[1].state;
    assert_eq!(state, GuaranteeState::NotDetermined, "it may have begun in time");
    let held: [(Uuid, &[u32], i64); 2] = [(late, &[0, 1], 2), (ahead, &[3], 20)];
    domain.keep(&held).await;
    let started = domain.shown(late).await.started;
    assert_eq!(started, Some((NOW + 2) * MICROS_PER_SECOND));
    let version = domain.shown(late).await.version;
    domain.keep(&held).await;
    assert_eq!(domain.shown(late).await.version, version, "nothing has changed");
    domain.turn(21);
    domain.planner.send(BeginDue).await.unwrap();
    let begun = domain.shown(ahead).await;
    assert_eq!(begun.started, Some((NOW + 20) * MICROS_PER_SECOND));
    assert_eq!(domain.nodes_of(ahead).await, [3]);
    domain.turn(120);
    domain.planner.send(BeginDue).await.unwrap();
    for id in [late, ahead] {
        let over = domain.shown(id).await;
        assert_eq!(over.outcome, Some(RunOutcome::Completed));
        let states: Vec<_> = over.guarantees.iter().map(|guarantee| guarantee.state).collect();
        assert_eq!(states, [GuaranteeState::Fulfilled; 2]);
        let lines = domain.lines(id).await;
        assert!(
            lines.iter().any(|(kind, _)| *kind == EventKind::Charged),
            "{lines:?}"
        );
    }
    assert_eq!(domain.store.verify().await.unwrap(), []);
}

/// The service was down when the slot began, and its cluster was not.
#[tokio::test]
async fn a_reservation_that_its_cluster_held_while_the_service_was_down_is_delivered_in_full() {
    let domain = cluster().await;
    let id = domain.place(reservation(2, 100, 10..110)).await.unwrap().id;
    domain.turn(60);
    let domain = domain.restart_as_cluster().await;
    domain.planner.send(BeginDue).await.unwrap();
    let waits = domain.shown(id).await;
    assert_eq!(
        waits.service,
        ServiceState::NotReady,
        "its cluster has not told yet"
    );
    assert_eq!(waits.guarantees[1].state, GuaranteeState::NotDetermined);
    domain.keep(&[(id, &[0, 1], 10)]).await;
    domain.planner.send(BeginDue).await.unwrap();
    let begun = domain.shown(id).await;
    assert_eq!(begun.started, Some((NOW + 10) * MICROS_PER_SECOND));
    assert_eq!(begun.placement(), Interval::of(Time(NOW + 10), 100));
    domain.turn(110);
    domain.planner.send(BeginDue).await.unwrap();
    let over = domain.shown(id).await;
    let states: Vec<_> = over.guarantees.iter().map(|guarantee| guarantee.state).collect();
    assert_eq!(states, [GuaranteeState::Fulfilled; 2]);
    assert_eq!(over.delivered(), 100);
    assert_eq!(domain.store.verify().await.unwrap(), []);
}

#[tokio::test]
async fn a_reservation_that_its_cluster_did_not_hold_while_the_service_was_down_has_another_place() {
    let domain = cluster().await;
    let id = domain.place(reservation(2, 100, 10..500)).await.unwrap().id;
    domain.turn(60);
    let domain = domain.restart_as_cluster().await;
    domain.keep(&[]).await;
    domain.planner.send(BeginDue).await.unwrap();
    let again = domain.shown(id).await;
    assert!(again.placement().start >= Time(NOW + 60), "{again:?}");
    assert_eq!(again.placement().duration(), 100);
    assert_eq!(again.guarantees[1].state, GuaranteeState::Violated);
    assert_eq!(domain.store.verify().await.unwrap(), []);
}

#[tokio::test]
async fn work_on_a_cluster_begins_with_its_slot_and_runs_when_its_cluster_says_so() {
    let domain = cluster().await;
    let id = domain.place(with_job(proposal(1, 100, 0..100))).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    let kinds = async || {
        let lines = domain.lines(id).await;
        lines.into_iter().map(|(kind, _)| kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds().await, [EventKind::Accepted, EventKind::Begun]);
    let run = Run::from(&domain.shown(id).await);
    domain.turn(3);
    let at = (NOW + 2) * MICROS_PER_SECOND;
    domain.planner.send(ReportStarted { run, at }).await.unwrap();
    assert_eq!(kinds().await[2..], [EventKind::Running]);
}

#[tokio::test]
async fn work_whose_slot_is_over_is_not_lost_with_its_nodes() {
    let domain = cluster().await;
    let id = domain.place(with_job(proposal(1, 100, 0..100))).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    domain.turn(100);
    let down = NodeReport {
        states: vec![NodeState::Down; 4],
        ..NodeReport::default()
    };
    let said = domain.planner.send(SetNodes {
        resource: "local".into(),
        by: Reporter::Executor,
        report: down,
    });
    assert_eq!(said.await.unwrap().lost, 0);
    assert_eq!(domain.shown(id).await.state, AgreementState::Observed);
    let end = ended(RunOutcome::Completed, 0, 99);
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(id),
            end,
        })
        .await
        .unwrap();
    assert_eq!(domain.shown(id).await.outcome, Some(RunOutcome::Completed));
}

#[tokio::test]
async fn work_that_never_started_leaves_its_nodes_at_the_end_of_its_slot_to_who_begins_then() {
    let domain = cluster().await;
    let one = domain
        .place(with_job(proposal(4, 100, 0..1_000)))
        .await
        .unwrap()
        .id;
    let next = domain.place(proposal(4, 100, 100..200)).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    domain.turn(100);
    let never = JobEnd {
        started: None,
        ..ended(RunOutcome::Lost, 0, 100)
    };
    domain
        .planner
        .send(ReportEnded {
            run: Run::first(one),
            end: never,
        })
        .await
        .unwrap();
    domain.planner.send(BeginDue).await.unwrap();
    assert_eq!(domain.shown(next).await.service, ServiceState::Idle);
    assert_eq!(domain.shown(one).await.placement().start, Time(NOW + 200));
    assert_eq!(domain.store.verify().await.unwrap(), []);
}

#[tokio::test]
async fn what_has_begun_has_the_nodes_that_its_cluster_holds_for_it_and_is_lost_with_those() {
    let domain = cluster().await;
    let one = domain.place(with_job(proposal(1, 100, 0..100))).await.unwrap().id;
    let other = domain.place(with_job(proposal(1, 100, 0..100))).await.unwrap().id;
    let third = domain.place(with_job(proposal(1, 100, 0..100))).await.unwrap().id;
    domain.planner.send(BeginDue).await.unwrap();
    assert_eq!(
        (domain.nodes_of(one).await, domain.nodes_of(other).await),
        (vec![0], vec![1])
    );
    // Each has the other's node, in the same second and later. A report that puts an agreement on another's node is not
    // believed.
    domain
        .keep(&[(one, &[1], 0), (other, &[0], 0), (third, &[0], 0)])
        .await;
    domain.turn(3);
    domain.keep(&[(one, &[3], 0), (other, &[0], 0)]).await;
    let domain = domain.restart_as_cluster().await;
    assert_eq!(domain.nodes_of(one).await, [3]);
    assert_eq!(domain.nodes_of(other).await, [0]);
    assert_eq!(domain.nodes_of(third).await, [2]);
    assert_eq!(domain.store.verify().await.unwrap(), []);
    let lines = domain.lines(one).await;
    let told = lines.iter().filter(|(kind, _)| *kind == EventKind::Moved).count();
    assert_eq!(told, 2, "{lines:?}");
    // A node that an operator calls down loses its running work, and nothing goes there.
    let down = |node: usize| {
        let mut states = vec![NodeState::Up; 4];
        states[node] = NodeState::Down;
        NodeReport {
            states,
            ..NodeReport::default()
        }
    };
    let said = domain.planner.send(SetNodes {
        resource: "local".into(),
        by: Reporter::Operator,
        report: down(3),
    });
    assert_eq!(said.await.unwrap().lost, 1);
    assert_eq!(domain.shown(one).await.outcome, Some(RunOutcome::Lost));
    domain.keep(&[(other, &[3], 0)]).await;
    assert_eq!(domain.nodes_of(other).await, [0]);
    // The node that it left is free for another agreement.
    let next = domain.place(with_job(proposal(1, 50, 0..90))).await.unwrap();
    assert_eq!(next.placement().start, Time(NOW + 3));
    domain.planner.send(BeginDue).await.unwrap();
    assert_eq!(domain.nodes_of(next.id).await, [1]);
    assert_eq!(domain.store.verify().await.unwrap(), []);
}

impl Domain {
    async fn restart_as_cluster(self) -> Self {
        self.stop.cancel();
        self.task.await.unwrap();
        self.store.close().await;
        let settings = Settings::new(vec![Resource::new("local", CLUSTER, 4)], 86_400);
        let again = Self::start_with(self.folder, self.clock, settings).await;
        // It is looked at anew.
        again
            .planner
            .send(OpenResource {
                resource: "local".to_owned(),
            })
            .await
            .unwrap();
        again
    }
}
