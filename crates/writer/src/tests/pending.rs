//! Agreements that are decided after they were answered for.

use ::metrics::Exposition;
use domain::change::AcceptanceEndpoint;
use store::{agreements, call_backs, undecided_agreements};

use super::*;

fn settlement(id: Uuid, ways: Result<Vec<Request>, String>) -> DecidePending {
    DecidePending {
        id,
        ways: ways.map(PendingRequest::New),
        telling: Some(CallBackTarget {
            endpoint: AcceptanceEndpoint {
                address: "http://example.org/".into(),
                parameters: None,
            },
            agreement: "/agreements/1".into(),
            accepted: |each| format!("yes: {}", each.agreement),
            rejected: |_, why| format!("no: {why}"),
        }),
    }
}

async fn told(domain: &Domain) -> Vec<String> {
    let calls = call_backs::call_backs_due(&domain.store, i64::MAX, 100, 100)
        .await
        .unwrap();
    calls.into_iter().map(|due| due.call.body).collect()
}

#[tokio::test]
async fn a_pending_agreement_takes_no_room_until_it_is_decided() {
    let domain = Domain::start().await;
    let asked = proposal(4, 100, 0..100);
    let pending = domain
        .planner
        .send(SubmitPending {
            proposal: asked.clone(),
            acceptance: None,
            offer: None,
        })
        .await
        .unwrap()
        .agreement;
    assert_eq!(pending.state, AgreementState::Pending);
    let other = domain.place(proposal(4, 100, 0..100)).await.unwrap();
    let decided = domain
        .planner
        .send(settlement(pending.id, Ok(vec![asked])))
        .await
        .unwrap();
    assert_eq!(decided.state, AgreementState::Rejected);
    assert!(told(&domain).await[0].starts_with("no: NO_CAPACITY_IN_WINDOW"));
    let again = domain.planner.send(settlement(pending.id, Ok(Vec::new()))).await;
    assert_eq!(again, Err(Error::NotFound));
    assert_eq!(told(&domain).await.len(), 1);
    domain.planner.send(Terminate::of(other.id, None)).await.unwrap();
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn it_is_decided_by_the_first_of_its_ways_that_has_a_place_also_after_a_restart() {
    let domain = Domain::start().await;
    let asked = proposal(4, 100, 0..100);
    let pending = domain
        .planner
        .send(SubmitPending {
            proposal: asked.clone(),
            acceptance: None,
            offer: None,
        })
        .await
        .unwrap()
        .agreement;
    let free = domain
        .planner
        .send(SubmitPending {
            proposal: proposal(4, 100, 0..100),
            acceptance: None,
            offer: None,
        })
        .await
        .unwrap()
        .agreement;
    domain.place(proposal(2, 100, 0..100)).await.unwrap();
    let domain = domain.restart().await;
    let undecided = undecided_agreements::undecided_agreements(&domain.store, Uuid::nil(), 10)
        .await
        .unwrap();
    assert_eq!(undecided.len(), 2);
    let decided = domain
        .planner
        .send(settlement(pending.id, Ok(vec![asked, proposal(2, 100, 0..100)])))
        .await
        .unwrap();
    assert_eq!((decided.id, decided.nodes()), (pending.id, 2));
    assert_eq!(decided.state, AgreementState::Observed);
    assert_eq!(told(&domain).await, ["yes: /agreements/1"]);
    // Begins when it is due, and nothing that has no place does.
    assert!(domain.planner.send(BeginDue).await.is_ok());
    domain.turn(100);
    domain.planner.send(BeginDue).await.unwrap();
    let over = agreements::agreement(&domain.store, pending.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(over.state, AgreementState::Complete);
    let why = Err("its window has passed".to_owned());
    let rejected = domain.planner.send(settlement(free.id, why)).await.unwrap();
    assert_eq!(rejected.state, AgreementState::Rejected);
    assert_eq!(
        undecided_agreements::undecided_agreements(&domain.store, Uuid::nil(), 10)
            .await
            .unwrap(),
        Vec::new()
    );
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn who_ends_one_is_told() {
    let domain = Domain::start().await;
    for (by_provider, by) in [(true, "the operator"), (false, "its party")] {
        let asked = proposal(1, 100, 0..100);
        let pending = domain
            .planner
            .send(SubmitPending {
                proposal: asked,
                acceptance: None,
                offer: None,
            })
            .await
            .unwrap()
            .agreement;
        let order = Terminate {
            by_provider,
            ..Terminate::of(pending.id, None)
        };
        domain.planner.send(order).await.unwrap();
        let events = agreements::events_of_agreement(&domain.store, pending.id)
            .await
            .unwrap();
        let terminating = events.iter().find(|event| event.kind == EventKind::Terminating);
        assert_eq!(terminating.unwrap().detail, format!("asked for by {by}"));
    }
}

#[tokio::test]
async fn one_that_was_terminated_meanwhile_is_not_decided() {
    let domain = Domain::start().await;
    let asked = proposal(1, 100, 0..100);
    let pending = domain
        .planner
        .send(SubmitPending {
            proposal: asked.clone(),
            acceptance: None,
            offer: None,
        })
        .await
        .unwrap()
        .agreement;
    let ended = domain
        .planner
        .send(Terminate::of(pending.id, Some("physics".into())))
        .await
        .unwrap();
    assert_eq!(ended.state, AgreementState::Terminated);
    let late = domain.planner.send(settlement(pending.id, Ok(vec![asked]))).await;
    assert_eq!(late, Err(Error::NotFound));
    assert_eq!(told(&domain).await, Vec::<String>::new());
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn a_party_with_many_calls_to_make_leaves_room_for_those_of_others() {
    let domain = Domain::start().await;
    for party in ["physics", "physics", "physics", "physics", "biology"] {
        let asked = Request {
            party: party.into(),
            ..proposal(4, 100, 0..100)
        };
        let pending = domain
            .planner
            .send(SubmitPending {
                proposal: asked,
                acceptance: None,
                offer: None,
            })
            .await
            .unwrap()
            .agreement;
        let refusal = settlement(pending.id, Err(format!("not {party}")));
        domain.planner.send(refusal).await.unwrap();
    }
    let due = call_backs::call_backs_due(&domain.store, i64::MAX, 100, 2)
        .await
        .unwrap();
    let bodies: Vec<&str> = due.iter().map(|due| due.call.body.as_str()).collect();
    assert_eq!(bodies, ["no: not physics", "no: not physics", "no: not biology"]);
}

#[tokio::test]
async fn each_agreement_is_counted_in_the_one_state_that_it_has() {
    let domain = Domain::start().await;
    let counted = async |pending: u32, observed: u32| {
        let mut text = Exposition::default();
        domain.planner.expose(&mut text).await;
        let text = text.finish();
        for (state, count) in [("Pending", pending), ("Observed", observed)] {
            let line = format!("\nbespeak_agreements{{state=\"{state}\"}} {count}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
    };
    let asked = proposal(1, 100, 0..100);
    let other = proposal(1, 100, 0..100);
    for proposal in [&asked, &other] {
        domain
            .planner
            .send(SubmitPending {
                proposal: proposal.clone(),
                acceptance: None,
                offer: None,
            })
            .await
            .unwrap();
    }
    counted(2, 0).await;
    let accepting = settlement(asked.id, Ok(vec![asked.clone()]));
    domain.planner.send(accepting).await.unwrap();
    counted(1, 1).await;
    let rejecting = settlement(other.id, Err("not now".to_owned()));
    domain.planner.send(rejecting).await.unwrap();
    counted(0, 1).await;
}
