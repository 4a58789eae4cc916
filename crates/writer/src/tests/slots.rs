//! An agreement in several slots is changed like an agreement in one.

use domain::agreement::{Job, OfferKind};
use scheduler::preemptive::{Preemption, Rounding};
use store::agreements;

use super::*;

/// Work that may be cut.
fn cut(nodes: u32, duration: Seconds, window: std::ops::Range<i64>) -> Request {
    let preemption = Preemption::new(3, 100_000, false).unwrap();
    Request {
        preemption: Some(preemption.rounded(Rounding::Cuts)),
        job: Some(Job {
            application: "count".into(),
            arguments: Vec::new(),
            ..Job::default()
        }),
        ..proposal(nodes, duration, window)
    }
}

fn slots(agreement: &Agreement) -> Vec<(i64, i64)> {
    let placements = agreement.slots.iter().map(|slot| slot.placement);
    placements
        .map(|each| (each.start.seconds() - NOW, each.end.seconds() - NOW))
        .collect()
}

/// Thirty seconds of work on four nodes, around another slot that takes them from 110 to 130.
async fn in_two(window: std::ops::Range<i64>) -> (Domain, Agreement) {
    let domain = Domain::start().await;
    domain.place(proposal(4, 20, 110..130)).await.unwrap();
    let agreement = domain.place(cut(4, 30, window)).await.unwrap();
    assert_eq!(slots(&agreement), [(100, 109), (130, 151)]);
    (domain, agreement)
}

#[tokio::test]
async fn an_agreement_in_pieces_is_replaced_by_one_that_counts_on_its_place() {
    let (domain, old) = in_two(100..400).await;
    let negotiation = domain.open(Some(old.id)).await;
    let asked = proposal(4, 60, 130..190);
    let quote = domain.quote(negotiation, &asked).await;
    let answers = domain.bargain(negotiation, &quote).await;
    assert!(answers[0].is_held(), "{answers:?}");
    // Only the rest beside its own nodes is kept, and its pieces stay where they are.
    domain.assert_verified().await;
    let tight = reason(domain.place(proposal(4, 9, 100..109)).await);
    assert_eq!(tight.reason, scheduler::Reason::NoCapacityInWindow);
    let domain = domain.restart().await;
    domain.assert_verified().await;
    let new = domain.accept(&answers[0], asked).await.unwrap();
    assert_eq!(slots(&new), [(130, 190)]);
    let over = agreements::agreement(&domain.store, old.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(over.state, AgreementState::Complete);
    assert_eq!(over.loads(), []);
    // The time of its first piece is free.
    domain.place(proposal(4, 9, 100..109)).await.unwrap();
    domain.assert_verified().await;
    domain.restart().await.assert_verified().await;
}

#[tokio::test]
async fn an_agreement_is_replaced_by_one_in_pieces_where_there_is_no_place_in_one() {
    let (domain, old) = in_two(100..200).await;
    let negotiation = domain.open(Some(old.id)).await;
    // A little more work, around the same, with no room in one in its window.
    domain.place(proposal(1, 20, 170..190)).await.unwrap();
    let asked = cut(4, 32, 100..165);
    let quote = domain.quote(negotiation, &asked).await;
    let kinds: Vec<_> = quote
        .candidates
        .iter()
        .map(|candidate| candidate.terms.kind)
        .collect();
    let answers = domain.bargain(negotiation, &quote).await;
    assert!(answers.iter().any(NegotiationOffer::is_held), "{kinds:?}");
    let held = answers.iter().find(|answer| answer.is_held()).unwrap();
    domain.assert_verified().await;
    let new = domain.accept(held, asked).await.unwrap();
    assert_eq!(new.duration, 32);
    assert_eq!(
        kinds.contains(&OfferKind::InPieces),
        new.slots.is_split(),
        "{kinds:?} {new:?}"
    );
    domain.assert_verified().await;
    domain.restart().await.assert_verified().await;
}

#[tokio::test]
async fn what_is_let_go_of_leaves_the_pieces_as_movable_as_they_were() {
    let (domain, old) = in_two(100..400).await;
    let negotiation = domain.open(Some(old.id)).await;
    let quote = domain.quote(negotiation, &proposal(4, 60, 130..190)).await;
    let answers = domain.bargain(negotiation, &quote).await;
    let tight = proposal(4, 21, 131..152);
    reason(domain.place(tight.clone()).await);
    domain.reject(&answers[0]).await.unwrap();
    domain.place(tight).await.unwrap();
    let moved = agreements::agreement(&domain.store, old.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(slots(&moved), [(100, 109), (152, 173)]);
    domain.assert_verified().await;
}

/// A held change stays while a piece gives back time that others get.
#[tokio::test]
async fn the_end_of_pieces_that_have_begun_is_changed_over_a_restart() {
    let (domain, old) = in_two(100..400).await;
    domain.turn(100);
    domain.planner.send(BeginDue).await.unwrap();
    let negotiation = domain.open(Some(old.id)).await;
    let asked = cut(4, 36, 100..400);
    let quote = domain.quote(negotiation, &asked).await;
    let answers = domain.bargain(negotiation, &quote).await;
    assert!(answers[0].is_held(), "{answers:?}");
    domain.turn(104);
    let saved = ended(RunOutcome::Checkpointed, 100, 104);
    let first = Run::first(old.id);
    domain
        .planner
        .send(ReportEnded {
            run: first,
            end: saved,
        })
        .await
        .unwrap();
    domain.place(proposal(4, 4, 105..109)).await.unwrap();
    domain.assert_verified().await;
    let domain = domain.restart().await;
    domain.assert_verified().await;
    let new = domain.accept(&answers[0], asked).await.unwrap();
    assert_eq!(slots(&new), [(100, 109), (130, 157)]);
    assert_eq!(new.loads().len(), 1, "the first piece was had by the other");
    domain.assert_verified().await;
    domain.restart().await.assert_verified().await;
}

#[tokio::test]
async fn the_slots_to_come_of_work_that_is_being_ended_are_free_at_once() {
    let (domain, old) = in_two(100..400).await;
    domain.turn(100);
    domain.planner.send(BeginDue).await.unwrap();
    let ending = domain.planner.send(Terminate::of(old.id, None)).await.unwrap();
    assert_eq!(ending.state, AgreementState::ObservedAndTerminating);
    let tight = domain.place(proposal(4, 21, 130..151)).await.unwrap();
    assert_eq!(slots(&tight), [(130, 151)]);
    domain.assert_verified().await;
    domain.restart().await.assert_verified().await;
}
