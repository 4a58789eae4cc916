//! Agreements and held offers while resources come, change and go.

use domain::agreement::{PlacementConstraints, Promise};
use scheduler::domain::Attribute;
use store::{agreements, negotiations, resources};

use super::*;

fn settings(resources: Vec<Resource>) -> Settings {
    Settings::new(resources, 86_400)
}

impl Domain {
    async fn on(resources: Vec<Resource>) -> Self {
        let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
        Self::start_with(tempfile::tempdir().unwrap(), clock, settings(resources)).await
    }

    async fn change(&self, name: &str, verb: ResourceVerb) {
        let order = ChangeResource {
            id: Uuid::now_v7(),
            party: "operator".into(),
            name: name.into(),
            verb,
        };
        self.planner.send(order).await.unwrap();
    }

    async fn is_withdrawn(&self, offer: &NegotiationOffer) -> bool {
        let (stored, _) = negotiations::negotiation_offer(&self.store, offer.id)
            .await
            .unwrap()
            .unwrap();
        stored.is_withdrawn()
    }

    async fn stored(&self, id: Uuid) -> Agreement {
        agreements::agreement(&self.store, id).await.unwrap().unwrap()
    }
}

/// Nodes of an architecture.
fn arm(name: &str) -> Resource {
    let mut resource = Resource::new(name, "local", 4);
    let arm = Attribute::Word("arm".into());
    resource.attributes.insert("cpu_architecture".into(), arm);
    resource
}

fn reconfiguration(settings: Settings) -> Configure {
    Configure {
        id: Uuid::now_v7(),
        party: None,
        settings,
        is_start: false,
    }
}

#[tokio::test]
async fn a_later_end_on_a_node_that_leaves_meanwhile_is_withdrawn_when_it_is_accepted() {
    let domain = Domain::start().await;
    domain.place(proposal(1, 1_000, 0..1_000)).await.unwrap();
    let old = domain.place(proposal(1, 1_000, 0..1_000)).await.unwrap();
    domain.planner.send(BeginDue).await.unwrap();
    let negotiation = domain.open(Some(old.id)).await;
    let longer = proposal(1, 2_000, 0..2_000);
    let offer = domain.hold(negotiation, &longer).await;
    assert!(offer.is_held(), "{offer:?}");
    let fewer = ResourceWish {
        capacity: Some(1),
        ..ResourceWish::default()
    };
    domain.change("local", ResourceVerb::Put(fewer)).await;
    let lost = domain.accept(&offer, longer).await;
    assert_eq!(lost, Err(Error::Lost(OfferLoss::Withdrawn)));
    assert_eq!(domain.stored(old.id).await.placement(), old.placement());
    domain.assert_verified().await;
}

#[tokio::test]
async fn an_offer_on_another_resource_gives_way_to_an_agreement_whose_resource_is_retired() {
    let domain = Domain::on(vec![
        Resource::new("first", "local", 2),
        Resource::new("other", "local", 2),
    ])
    .await;
    let rigid = proposal(2, 100, 1_000..1_100);
    let kept = domain.place(rigid.clone()).await.unwrap();
    let offer = domain.hold(domain.open(None).await, &rigid).await;
    assert!(offer.is_held() && kept.resource == "first");
    domain.change("first", ResourceVerb::Retire).await;
    let kept = domain.stored(kept.id).await;
    assert_eq!(
        (kept.state, kept.resource.as_str()),
        (AgreementState::Observed, "other")
    );
    assert!(domain.is_withdrawn(&offer).await);
    domain.assert_verified().await;
}

#[tokio::test]
async fn an_offer_of_nodes_that_are_no_longer_as_asked_for_is_withdrawn_and_others_stay() {
    let domain = Domain::on(vec![arm("arm")]).await;
    let mut asked = proposal(1, 100, 1_000..1_100);
    let any = domain.hold(domain.open(None).await, &asked).await;
    asked.filters = vec![Filter::Word {
        attribute: "cpu_architecture".into(),
        is: "arm".into(),
    }];
    let negotiation = domain.open(None).await;
    let mut quote = domain.quote(negotiation, &asked).await;
    quote.candidates[0].terms.promise = Some(Box::new(Promise {
        template: asked.template.clone(),
        constraints: PlacementConstraints {
            filters: asked.filters.clone(),
            ..PlacementConstraints::default()
        },
        job: None,
        guarantees: asked.guarantees.clone(),
    }));
    let arm = domain.bargain(negotiation, &quote).await.remove(0);
    assert!(any.is_held() && arm.is_held());
    let other = ResourceWish {
        attributes: Some(std::collections::BTreeMap::new()),
        ..ResourceWish::default()
    };
    domain.change("arm", ResourceVerb::Put(other)).await;
    assert_eq!(
        [domain.is_withdrawn(&any).await, domain.is_withdrawn(&arm).await],
        [false, true]
    );
    domain.assert_verified().await;
}

#[tokio::test]
async fn settings_that_were_not_stored_do_not_hold() {
    let domain = Domain::start().await;
    let mut none_left = settings(vec![Resource::new("local", "local", 4)]);
    none_left.quotas.node_hours = Some(0);
    let without_nodes = reconfiguration(none_left.clone());
    let fails = move |decider: &mut Decider<'_>| -> Result<(), Error> {
        without_nodes.decide(decider)?;
        decider.plan_to_damage().damage("a test");
        Ok(())
    };
    assert_eq!(domain.planner.send(Meddle(fails)).await, Err(Error::Unavailable));
    domain.place(proposal(1, 100, 0..100)).await.unwrap();
    domain.planner.send(reconfiguration(none_left)).await.unwrap();
    let why = reason(domain.place(proposal(1, 100, 0..100)).await);
    assert_eq!(why.reason, Reason::QuotaExceeded);
}

#[tokio::test]
async fn ties_are_broken_in_the_order_of_the_file_that_a_start_reads_and_added_resources_come_last() {
    let [a, b, c] = ["a", "b", "c"].map(|name| Resource::new(name, "local", 1));
    let domain = Domain::on(vec![a.clone(), b.clone(), c.clone()]).await;
    let wish = ResourceWish {
        capacity: Some(1),
        ..ResourceWish::default()
    };
    domain.change("added", ResourceVerb::Put(wish)).await;
    domain.stop.cancel();
    domain.task.await.unwrap();
    domain.store.close().await;
    let domain = Domain::start_with(domain.folder, domain.clock, settings(vec![c, a, b])).await;
    for expected in ["c", "a", "b", "added"] {
        let placed = domain.place(proposal(1, 100, 0..100)).await.unwrap();
        assert_eq!(placed.resource, expected);
    }
    let rows = resources::all_resources(&domain.store).await.unwrap();
    let positions: Vec<u32> = rows.iter().map(|row| row.position).collect();
    assert_eq!(positions, [0, 1, 2, 10_000]);
}
