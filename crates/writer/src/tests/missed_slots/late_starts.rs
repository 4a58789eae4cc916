//! A reservation that begins a little late ends as much later, as far as its nodes are free and its agreement goes.

use store::negotiations;

use super::*;

/// Whether a reservation of four nodes for a minute from 10 on, which begins six seconds late, ends six seconds later.
async fn is_prolonged(domain: &Domain, id: Uuid) -> bool {
    domain.turn(16);
    domain.begin().await;
    let begun = domain.of(id).await;
    assert_eq!(begun.service, ServiceState::Idle, "{begun:?}");
    let [asked, later] = [10, 16].map(|start| Interval::of(Time(NOW + start), 60));
    assert!([asked, later].contains(&begun.placement()), "{begun:?}");
    assert_eq!(domain.store.verify().await.unwrap(), Vec::new());
    begun.placement() == later
}

#[tokio::test]
async fn no_slot_is_prolonged_beyond_the_expiry_of_its_agreement() {
    for (expires, prolonged) in [(75, false), (76, true)] {
        let domain = Domain::start().await;
        let asked = Request {
            expires: Some(Time(NOW + expires)),
            ..proposal(4, 60, 10..70)
        };
        let id = domain.place(asked).await.unwrap().id;
        assert_eq!(is_prolonged(&domain, id).await, prolonged, "{expires}");
    }
}

#[tokio::test]
async fn no_slot_is_prolonged_into_maintenance() {
    for (start, prolonged) in [(75, false), (76, true)] {
        let mut resource = Resource::new("local", "local", 4);
        resource.maintenance = vec![(Interval::new(Time(NOW + start), Time(NOW + 500)), 4)];
        let settings = Settings::new(vec![resource], 86_400);
        let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
        let domain = Domain::start_with(tempfile::tempdir().unwrap(), clock, settings).await;
        let id = domain.place(proposal(4, 60, 10..70)).await.unwrap().id;
        assert_eq!(is_prolonged(&domain, id).await, prolonged, "{start}");
    }
}

/// Offers in place of an agreement are let go of when it begins.
#[tokio::test]
async fn what_is_held_for_a_change_of_an_agreement_does_not_keep_its_slot_from_being_prolonged() {
    let domain = Domain::start().await;
    let id = domain.place(proposal(4, 60, 10..70)).await.unwrap().id;
    let negotiation = domain.open(Some(id)).await;
    let offer = domain.hold(negotiation, &proposal(4, 120, 10..400)).await;
    assert!(offer.is_held(), "{offer:?}");
    assert!(offer.expires.is_some_and(|at| at > Time(NOW + 16)), "{offer:?}");
    assert!(is_prolonged(&domain, id).await);
    let (kept, _) = negotiations::negotiation_offer(&domain.store, offer.id)
        .await
        .unwrap()
        .unwrap();
    assert!(!kept.is_held(), "{kept:?}");
}
