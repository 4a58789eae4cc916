//! Agreements that replace others: their further nodes are held before they are promised.

use domain::agreement::NegotiationOffer;
use store::agreements;

use super::*;

/// The cluster reports that it holds the first nodes, a given number each, for the planned slots of these agreements, and for
/// nothing else.
async fn hold_all(domain: &Domain, held: &[(Uuid, u32)]) {
    let planned = domain
        .planner
        .send(ListPlanned {
            resource: "local".into(),
        })
        .await
        .unwrap();
    let kept = held.iter().map(|(id, nodes)| {
        let agreement = planned
            .agreements
            .iter()
            .find(|(agreement, _)| agreement.id == *id)
            .unwrap();
        KeptNodes {
            run: Run::first(agreement.0.execution_id()),
            nodes: (0..*nodes).collect(),
            since: agreement.0.slot().start,
        }
    });
    let kept = kept.collect();
    domain
        .planner
        .send(KeepNodes {
            resource: "local".into(),
            kept,
        })
        .await
        .unwrap();
}

/// An agreement that the cluster holds.
async fn held(domain: &Domain, asked: Request) -> Agreement {
    let task = ask(domain, asked.clone());
    waiting(domain, 1).await;
    hold(domain, asked.id, asked.shapes[0].nodes).await;
    task.await.unwrap().unwrap().agreement
}

/// An offer in place of an agreement.
async fn offered(domain: &Domain, old: Uuid, asked: &Request) -> NegotiationOffer {
    let negotiation = domain.open(Some(old)).await;
    let quote = domain.quote(negotiation, asked).await;
    let offer = domain.bargain(negotiation, &quote).await.remove(0);
    assert!(offer.is_held(), "{offer:?}");
    offer
}

/// Accepts in a task of its own.
fn accept(
    domain: &Domain,
    offer: &NegotiationOffer,
    request: Request,
) -> tokio::task::JoinHandle<Result<AcceptedOffer, Error>> {
    let planner = domain.planner.clone();
    let acceptance = Accept {
        negotiation: offer.negotiation,
        offer: offer.id,
        proposal: request,
        barred: None,
    };
    tokio::spawn(async move { planner.send(acceptance).await })
}

/// The same, which waits for the cluster.
async fn accept_and_wait(
    domain: &Domain,
    offer: &NegotiationOffer,
    asked: &Request,
) -> tokio::task::JoinHandle<Result<AcceptedOffer, Error>> {
    let mut task = accept(domain, offer, asked.clone());
    tokio::select! {
        accepted = &mut task => panic!("it does not wait: {accepted:?}"),
        waiting = waiting(domain, 1) => assert_eq!(waiting, [asked.id]),
    }
    task
}

/// The agreement in the form for its cluster, as long as it is live.
async fn planned(domain: &Domain, id: Uuid) -> Option<(Agreement, Vec<u32>)> {
    let planned = domain
        .planner
        .send(ListPlanned {
            resource: "local".into(),
        })
        .await
        .unwrap();
    planned
        .agreements
        .into_iter()
        .find(|(agreement, _)| agreement.id == id)
}

async fn replaced(domain: &Domain) -> Vec<(Uuid, Uuid)> {
    let planned = domain
        .planner
        .send(ListPlanned {
            resource: "local".into(),
        })
        .await
        .unwrap();
    planned.replaced.into_iter().collect()
}

#[tokio::test]
async fn what_runs_is_prolonged_when_its_nodes_are_held_for_longer_and_goes_on_as_it_was_where_they_are_not()
{
    let domain = cluster(600).await;
    let old = held(&domain, with_job(proposal(2, 100, 0..1_000))).await;
    domain.turn(3);
    domain.planner.send(BeginDue).await.unwrap();
    hold_all(&domain, &[(old.id, 2)]).await;
    // More of its slot is over than may be when a job begins.
    domain.turn(30);
    let before = planned(&domain, old.id).await;
    let longer = || with_job(proposal(2, 200, 0..1_000));
    let asked = longer();
    let offer = offered(&domain, old.id, &asked).await;
    let task = accept_and_wait(&domain, &offer, &asked).await;
    assert_eq!(replaced(&domain).await, [(asked.id, old.id)]);
    assert_eq!(
        planned(&domain, asked.id).await.unwrap().0.placement(),
        Interval::of(Time(NOW + 3), 200)
    );
    assert_eq!(planned(&domain, old.id).await, before, "it stays as it is");
    assert_eq!(
        agreements::agreement(&domain.store, asked.id).await.unwrap(),
        None
    );
    report(&domain, &[asked.id], 600).await;
    busy(&domain, 0, 0).await;
    assert_eq!(task.await.unwrap(), Err(Error::Lost(OfferLoss::NotReserved)));
    assert_eq!(planned(&domain, old.id).await, before, "it goes on");
    let stored = agreements::agreement(&domain.store, old.id).await.unwrap();
    assert_eq!(stored, before.map(|(each, _)| each));
    assert!(replaced(&domain).await.is_empty());
    verified(&domain).await;

    let asked = longer();
    let offer = offered(&domain, old.id, &asked).await;
    let task = accept_and_wait(&domain, &offer, &asked).await;
    hold_all(&domain, &[(old.id, 2), (asked.id, 1)]).await;
    assert!(!task.is_finished(), "one of its nodes is missing");
    hold_all(&domain, &[(old.id, 2), (asked.id, 2)]).await;
    let new = task.await.unwrap().unwrap().agreement;
    assert_eq!(
        (new.placement(), new.origin),
        (Interval::of(Time(NOW + 3), 200), Some(old.id))
    );
    let old = agreements::agreement(&domain.store, old.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(old.state, AgreementState::Complete);
    assert!(replaced(&domain).await.is_empty());
    verified(&domain).await;
}

#[tokio::test]
async fn what_its_predecessor_holds_is_had_at_once_and_anything_else_is_waited_for() {
    let domain = cluster(600).await;
    let old = held(&domain, proposal(2, 100, 100..200)).await;
    let within = proposal(2, 50, 120..170);
    let offer = offered(&domain, old.id, &within).await;
    let new = accept(&domain, &offer, within).await.unwrap().unwrap().agreement;
    // The cluster does not hold that one yet, so that nothing of it is there for the next.
    let shorter = proposal(2, 40, 120..160);
    let offer = offered(&domain, new.id, &shorter).await;
    let task = accept_and_wait(&domain, &offer, &shorter).await;
    hold(&domain, shorter.id, 2).await;
    let new = task.await.unwrap().unwrap().agreement;
    for (asked, nodes) in [(proposal(3, 40, 120..160), 3), (proposal(3, 40, 100..140), 3)] {
        let before = planned(&domain, new.id).await.unwrap();
        let offer = offered(&domain, new.id, &asked).await;
        let task = accept_and_wait(&domain, &offer, &asked).await;
        let moved_on = planned(&domain, new.id).await.unwrap();
        assert_eq!(moved_on.0.placement(), before.0.placement());
        hold_all(&domain, &[(new.id, moved_on.0.nodes()), (asked.id, nodes - 1)]).await;
        assert!(!task.is_finished(), "one of its nodes is missing");
        report(&domain, &[asked.id], 600).await;
        busy(&domain, 0, 0).await;
        assert_eq!(task.await.unwrap(), Err(Error::Lost(OfferLoss::NotReserved)));
        let stored = agreements::agreement(&domain.store, new.id)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(stored.state, AgreementState::Observed);
        assert_eq!(stored.placement(), before.0.placement());
    }
    verified(&domain).await;
}

#[tokio::test]
async fn what_its_predecessor_does_not_hold_and_lies_later_is_promised_at_once() {
    let domain = cluster(60).await;
    let old = held(&domain, proposal(2, 100, 50..150)).await;
    let longer = proposal(2, 200, 50..250);
    let offer = offered(&domain, old.id, &longer).await;
    let new = accept(&domain, &offer, longer).await.unwrap().unwrap().agreement;
    assert_eq!(new.placement(), Interval::of(Time(NOW + 50), 200));
    verified(&domain).await;
}

#[tokio::test]
async fn a_successor_whose_predecessor_is_ended_while_it_waits_is_refused() {
    let domain = cluster(600).await;
    let old = held(&domain, proposal(2, 100, 100..200)).await;
    let asked = proposal(4, 100, 100..200);
    let offer = offered(&domain, old.id, &asked).await;
    let task = accept_and_wait(&domain, &offer, &asked).await;
    let end = Terminate::of(old.id, None);
    domain.planner.send(end).await.unwrap();
    hold(&domain, asked.id, 4).await;
    let lost = task.await.unwrap();
    assert!(matches!(lost, Err(Error::Lost(_))), "{lost:?}");
    assert_eq!(
        agreements::agreement(&domain.store, asked.id).await.unwrap(),
        None
    );
    // Its place is free again.
    report(&domain, &[], 0).await;
    domain.place(proposal(4, 100, 100..200)).await.unwrap();
    verified(&domain).await;
}
