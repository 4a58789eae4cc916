//! Faults that must never happen to the plan are made to happen here. Nothing of the batch is stored, the plan is read anew,
//! and the same requests succeed when they are sent again.

use store::{agreements, trail_lines};

use super::*;

impl Domain {
    fn given_up(&self) -> u64 {
        self.planner.measured.lock().unwrap().given_up
    }

    /// Puts a foreign request at each place that the plan keeps for an offer.
    async fn take_what_is_held(&self) {
        let take = |plan: &mut State| assert!(plan.inject_strangers_for_holds("local", Time(NOW)));
        self.meddle(take).await.unwrap();
    }

    /// Asserts that the plan and its schedule equal the stored ones.
    pub(super) async fn assert_in_step(&self) {
        self.move_up().await;
        let stored = agreements::live_agreements(&self.store).await.unwrap();
        let planned = self
            .planner
            .send(ListPlanned {
                resource: "local".into(),
            })
            .await
            .unwrap();
        let mut planned: Vec<Agreement> = planned
            .agreements
            .into_iter()
            .map(|(agreement, _)| agreement)
            .collect();
        planned.sort_by_key(|each| each.id);
        assert_eq!(planned, stored);
        let (tell, told) = std::sync::mpsc::channel();
        let look = move |plan: &mut State| tell.send(plan.scheduled_despite_faults()).unwrap();
        self.meddle(look).await.unwrap();
        let mut placed: Vec<_> = stored
            .iter()
            .map(|stored| (stored.placement(), stored.nodes()))
            .collect();
        placed.sort_unstable_by_key(|(slot, _)| slot.start);
        assert_eq!(told.recv().unwrap(), placed);
        assert_eq!(self.store.verify().await.unwrap(), Vec::new());
        assert!(self.planner.is_ready());
    }
}

#[tokio::test]
async fn what_cannot_be_put_back_gives_up_the_batch_and_all_that_is_in_it() {
    let domain = Domain::start().await;
    let old = domain.place(proposal(4, 100, 1_000..1_100)).await.unwrap();
    let ask = QuoteOffers {
        about: OfferOrigin::Negotiation(domain.open(Some(old.id)).await),
        proposal: proposal(4, 200, 1_000..1_200),
        others: None,
        weights: Weights::default(),
    };
    let take_its_place = move |plan: &mut State| assert!(plan.inject_stranger_for(&old, Time(NOW)));
    domain.meddle(take_its_place).await.unwrap();
    let other = proposal(1, 100, 5_000..5_100);
    // Both are in the queue before the planner's task runs: this test has one thread.
    let (placed, quoted) = tokio::join!(domain.place(other.clone()), domain.planner.send(ask.clone()));
    assert_eq!(placed, Err(Error::Unavailable));
    assert_eq!(quoted, Err(Error::Unavailable));
    assert_eq!(domain.given_up(), 1);
    domain.assert_in_step().await;

    domain.place(other).await.unwrap();
    assert_eq!(domain.planner.send(ask).await.unwrap().candidates.len(), 1);
    assert_eq!(domain.given_up(), 1);
    domain.assert_in_step().await;
}

#[tokio::test]
async fn a_move_of_what_nobody_knows_gives_up_the_batch() {
    let domain = Domain::start().await;
    let first = domain.place(proposal(4, 100, 1_000..1_100)).await.unwrap();
    let second = domain.place(proposal(4, 100, 1_000..2_000)).await.unwrap();
    let id = second.id;
    let forget = move |plan: &mut State| plan.forget_numbers_of(id);
    domain.meddle(forget).await.unwrap();
    let end = domain.planner.send(Terminate::of(first.id, None));
    end.await.expect("it is answered before anybody moves");
    domain.assert_in_step().await;
    assert_eq!(domain.given_up(), 1);
    // It is looked at again once something changes.
    domain.place(proposal(1, 100, 5_000..5_100)).await.unwrap();
    domain.move_up().await;
    let second = agreements::agreement(&domain.store, second.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(second.placement().start, Time(NOW + 1_000), "it has moved up");
    domain.assert_in_step().await;
}

#[tokio::test]
async fn an_agreement_without_a_number_gives_up_the_batch() {
    let domain = Domain::start().await;
    let id = domain.place(proposal(4, 100, 1_000..1_100)).await.unwrap().id;
    let forget = move |plan: &mut State| plan.forget_numbers_of(id);
    domain.meddle(forget).await.unwrap();
    let end = || domain.planner.send(Terminate::of(id, None));
    assert_eq!(end().await, Err(Error::Unavailable));
    domain.assert_in_step().await;
    end().await.unwrap();
    domain.assert_in_step().await;
}

#[tokio::test]
async fn what_a_schedule_reports_gives_up_the_batch() {
    let domain = Domain::start().await;
    let agreement = domain.place(proposal(1, 100, 1_000..1_100)).await.unwrap();
    let again = move |plan: &mut State| assert!(plan.inject_double_placement(&agreement, Time(NOW)));
    assert_eq!(domain.meddle(again).await, Err(Error::Unavailable));
    assert_eq!(domain.given_up(), 1);
    domain.assert_in_step().await;
    domain.place(proposal(3, 100, 1_000..1_100)).await.unwrap();
    domain.assert_in_step().await;
}

#[tokio::test]
async fn an_offer_whose_place_others_have_gives_up_the_batch_and_is_accepted_afterwards() {
    let domain = Domain::start().await;
    let wanted = proposal(4, 100, 1_000..1_100);
    let negotiation = domain.open(None).await;
    let quote = domain.quote(negotiation, &wanted).await;
    let offers = domain.bargain(negotiation, &quote).await;
    assert!(offers[0].is_held(), "{offers:?}");
    domain.take_what_is_held().await;
    let accepted = domain.accept(&offers[0], wanted.clone()).await;
    assert_eq!(accepted, Err(Error::Unavailable));
    assert_eq!(domain.given_up(), 1);
    let agreement = domain.accept(&offers[0], wanted).await.unwrap();
    assert_eq!(
        agreement.placement().start,
        Time(NOW + 1_000),
        "its place was held"
    );
    assert_eq!(domain.given_up(), 1);
    domain.assert_in_step().await;
}

#[tokio::test]
async fn an_offer_that_cannot_be_kept_beside_one_that_is_rejected_gives_up_the_batch() {
    let domain = Domain::start().await;
    let negotiation = domain.open(None).await;
    let (soon, later) = (proposal(4, 100, 1_000..1_100), proposal(4, 100, 2_000..2_100));
    let mut quote = domain.quote(negotiation, &soon).await;
    quote
        .candidates
        .extend(domain.quote(negotiation, &later).await.candidates);
    let offers = domain.bargain(negotiation, &quote).await;
    let (one, other) = (&offers[0], &offers[1]);
    assert!(one.is_held() && other.is_held(), "{offers:?}");
    domain.take_what_is_held().await;
    assert_eq!(domain.reject(one).await, Err(Error::Unavailable));
    assert_eq!(domain.given_up(), 1);
    domain.reject(one).await.unwrap();
    let agreement = domain.accept(other, later).await.unwrap();
    assert_eq!(
        Some(agreement.placement()),
        other.terms.as_ref().map(domain::agreement::OfferTerms::placement)
    );
    assert_eq!(domain.given_up(), 1);
    domain.assert_in_step().await;
}

#[tokio::test]
async fn questions_alone_are_answered_once_the_stored_data_have_a_fault() {
    let domain = Domain::start().await;
    let request = proposal(1, 100, 1_000..5_000);
    domain.hold(domain.open(None).await, &request).await;
    let lines = async || {
        let last = trail_lines::last_trail_line(&domain.store, 0).await;
        last.unwrap().number
    };
    let before = lines().await;
    domain
        .planner
        .distrust("line 1 is not what was written".to_owned());
    // What is held would lapse now, which is a line.
    domain.turn(4_000);
    assert_eq!(domain.planner.ask(ShowStandings).await.unwrap().len(), 1);
    assert_eq!(domain.place(request).await, Err(Error::Unavailable));
    assert_eq!(lines().await, before);
}
