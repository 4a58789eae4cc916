//! The holds of offers: for as long as the offers stand, beside the agreement that they would replace, and within the
//! quotas of their party.

use domain::agreement::{BarredResource, NegotiationInstance, NegotiationOffer, NegotiationRole, OfferState};
use store::{agreements, negotiations};

use super::*;

/// Something that is said in a negotiation; its words are of no importance here.
fn said(
    negotiation: Uuid,
    parent: Option<Uuid>,
    creator: NegotiationRole,
    one_candidate: Option<&Candidate>,
) -> OfferWords {
    let id = Uuid::now_v7();
    let offer = NegotiationOffer {
        id,
        negotiation,
        name: id.to_string(),
        parent,
        creator,
        state: match one_candidate {
            Some(_) => OfferState::Acceptable,
            None => OfferState::Solicited,
        },
        created: NOW * MICROS_PER_SECOND,
        expires: one_candidate.map(|candidate| candidate.expires),
        terms: one_candidate.map(|candidate| candidate.terms.clone()),
        refusal: None,
        held: None,
        released: None,
        agreement: None,
    };
    OfferWords {
        offer,
        document: "<offer/>".into(),
    }
}

impl Domain {
    async fn with_quota(node_hours: u64) -> Self {
        let mut settings = Settings::new(vec![Resource::new("local", "local", 4)], 86_400);
        settings.quotas.node_hours = Some(node_hours);
        let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
        Self::start_with(tempfile::tempdir().unwrap(), clock, settings).await
    }

    /// Opens a negotiation, about replacing an agreement or about a new one.
    pub(super) async fn open(&self, agreement: Option<Uuid>) -> Uuid {
        let negotiation = NegotiationInstance {
            id: Uuid::now_v7(),
            party: "physics".into(),
            agreement,
            created: NOW * MICROS_PER_SECOND,
            expires: Time(NOW + 3_600),
            ended: None,
            proposed: None,
        };
        let initiation = Initiate {
            negotiation,
            document: "<context/>".into(),
            idempotency: None,
        };
        self.planner.send(initiation).await.unwrap().id
    }

    pub(super) async fn quote(&self, negotiation: Uuid, request: &Request) -> Quote {
        let ask = QuoteOffers {
            about: OfferOrigin::Negotiation(negotiation),
            proposal: request.clone(),
            others: None,
            weights: Weights::default(),
        };
        self.planner.send(ask).await.unwrap()
    }

    /// Stores an offer with the candidates of a quote as answers. Returns the answers in their new states.
    pub(super) async fn bargain(&self, negotiation: Uuid, quote: &Quote) -> Vec<NegotiationOffer> {
        let incoming = said(negotiation, None, NegotiationRole::Initiator, None);
        let parent = Some(incoming.offer.id);
        let answers = quote.candidates.iter();
        let answers =
            answers.map(|answer| said(negotiation, parent, NegotiationRole::Responder, Some(answer)));
        let bargain = ExchangeOffers {
            opening: None,
            negotiation,
            incoming: Some(incoming),
            answers: answers.collect(),
            otherwise: OfferState::Rejected,
            idempotency: None,
        };
        self.planner.send(bargain).await.unwrap()
    }

    /// Has something held that is asked for.
    pub(super) async fn hold(&self, negotiation: Uuid, request: &Request) -> NegotiationOffer {
        let quote = self.quote(negotiation, request).await;
        let mut answers = self.bargain(negotiation, &quote).await;
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0)
    }

    /// The requester lets go of an offer.
    pub(super) async fn reject(&self, offer: &NegotiationOffer) -> Result<(), Error> {
        let mut incoming = said(
            offer.negotiation,
            Some(offer.id),
            NegotiationRole::Initiator,
            None,
        );
        incoming.offer.state = OfferState::Rejected;
        let bargain = ExchangeOffers {
            opening: None,
            negotiation: offer.negotiation,
            incoming: Some(incoming),
            answers: Vec::new(),
            otherwise: OfferState::Rejected,
            idempotency: None,
        };
        self.planner.send(bargain).await.map(drop)
    }

    pub(super) async fn accept(
        &self,
        offer: &NegotiationOffer,
        request: Request,
    ) -> Result<Agreement, Error> {
        self.accept_barred(offer, request, None).await
    }

    /// The same where its cluster says something about the job.
    async fn accept_barred(
        &self,
        offer: &NegotiationOffer,
        request: Request,
        barred: Option<BarredResource>,
    ) -> Result<Agreement, Error> {
        let acceptance = Accept {
            negotiation: offer.negotiation,
            offer: offer.id,
            proposal: request,
            barred,
        };
        let accepted = self.planner.send(acceptance).await;
        accepted.map(|accepted| accepted.agreement)
    }

    pub(super) async fn assert_verified(&self) {
        assert_eq!(self.store.verify().await.unwrap(), Vec::new());
    }
}

#[tokio::test]
async fn what_was_found_is_not_held_when_its_time_is_over() {
    let domain = Domain::start().await;
    let negotiation = domain.open(None).await;
    let quote = domain.quote(negotiation, &proposal(4, 100, 0..103)).await;
    assert_eq!(quote.candidates[0].expires, Time(NOW + 3), "its slack");
    domain.turn(3);
    let answers = domain.bargain(negotiation, &quote).await;
    assert_eq!(answers[0].state, OfferState::Rejected);
    domain.turn(4);
    domain.place(proposal(4, 100, 4..104)).await.unwrap();
    domain.assert_verified().await;
    domain.restart().await.assert_verified().await;
}

#[tokio::test]
async fn an_offer_whose_cluster_would_refuse_its_job_by_now_is_let_go_of_with_its_words() {
    let domain = Domain::start().await;
    let asked = proposal(4, 100, 1_000..1_100);
    let barred = BarredResource {
        resource: "local".into(),
        sizes: Vec::new(),
        why: "Invalid account".into(),
    };
    let why = "local would refuse the job: Invalid account";
    let negotiation = domain.open(None).await;
    let offer = domain.hold(negotiation, &asked).await;
    let lost = domain
        .accept_barred(&offer, asked.clone(), Some(barred.clone()))
        .await;
    assert_eq!(lost, Err(Error::Lost(OfferLoss::Barred(why.into()))));
    let (kept, _) = negotiations::negotiation_offer(&domain.store, offer.id)
        .await
        .unwrap()
        .unwrap();
    assert!(kept.is_withdrawn() && kept.refusal.unwrap().contains(why));
    let again = domain.accept(&offer, asked.clone()).await;
    assert_eq!(again, Err(Error::Lost(OfferLoss::Withdrawn)));
    // An offer that would have replaced an agreement leaves it as it is.
    let old = domain.place(asked.clone()).await.unwrap();
    let negotiation = domain.open(Some(old.id)).await;
    let longer = proposal(4, 200, 1_000..1_200);
    let offer = domain.hold(negotiation, &longer).await;
    let lost = domain.accept_barred(&offer, longer, Some(barred)).await;
    assert!(matches!(lost, Err(Error::Lost(OfferLoss::Barred(_)))), "{lost:?}");
    let kept = agreements::agreement(&domain.store, old.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (kept.state, kept.version),
        (AgreementState::Observed, old.version)
    );
    // Its nodes are free.
    domain.place(proposal(4, 100, 1_100..1_200)).await.unwrap();
    domain.assert_verified().await;
    domain.restart().await.assert_verified().await;
}

#[tokio::test]
async fn offers_to_replace_an_agreement_are_let_go_of_when_it_is_ended() {
    let domain = Domain::start().await;
    let old = domain.place(proposal(4, 100, 1_000..1_100)).await.unwrap();
    let negotiation = domain.open(Some(old.id)).await;
    let longer = proposal(4, 200, 1_000..1_200);
    let offer = domain.hold(negotiation, &longer).await;
    assert!(offer.is_held());
    let end = Terminate::of(old.id, None);
    domain.planner.send(end).await.unwrap();
    domain.place(proposal(4, 200, 1_000..1_200)).await.unwrap();
    domain.assert_verified().await;
    let lost = domain.accept(&offer, longer).await;
    assert!(matches!(lost, Err(Error::Lost(_))), "{lost:?}");
    domain.restart().await.assert_verified().await;
}

#[tokio::test]
async fn who_uses_what_an_agreement_and_the_offers_to_replace_it_had_is_stored_where_the_plan_has_it() {
    let domain = Domain::start().await;
    let old = domain.place(proposal(4, 100, 1_300..1_400)).await.unwrap();
    let negotiation = domain.open(Some(old.id)).await;
    let earlier = domain.hold(negotiation, &proposal(4, 100, 1_100..1_200)).await;
    assert!(earlier.is_held());
    let waits = domain.place(proposal(4, 150, 1_100..9_000)).await.unwrap();
    assert_eq!(waits.placement().start, Time(NOW + 1_400));
    // Its own nodes let the other move up, and the nodes held to replace it let the other move up further.
    let end = Terminate::of(old.id, None);
    domain.planner.send(end).await.unwrap();
    domain.move_up().await;
    let stored = agreements::agreement(&domain.store, waits.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.placement().start, Time(NOW + 1_100));
    domain.assert_in_step().await;
}

#[tokio::test]
async fn another_question_about_an_agreement_does_not_let_it_move_while_an_offer_counts_on_its_place() {
    let domain = Domain::start().await;
    let old = domain.place(proposal(4, 100, 1_000..2_000)).await.unwrap();
    assert_eq!(old.placement().start, Time(NOW + 1_000));
    let negotiation = domain.open(Some(old.id)).await;
    let longer = proposal(4, 150, 1_000..1_150);
    let offer = domain.hold(negotiation, &longer).await;
    assert!(offer.is_held());
    domain.quote(negotiation, &proposal(2, 100, 1_000..2_000)).await;
    let why = reason(domain.place(proposal(4, 100, 1_000..1_100)).await);
    assert_eq!(why.reason, scheduler::Reason::NoCapacityInWindow);
    domain.assert_verified().await;
    let domain = domain.restart().await;
    let changed = domain.accept(&offer, longer).await.unwrap();
    assert_eq!(changed.placement().start, old.placement().start);
    domain.assert_verified().await;
}

#[tokio::test]
async fn offers_to_change_one_agreement_share_their_nodes_and_one_of_them_is_taken() {
    let domain = Domain::start().await;
    let old = domain.place(proposal(2, 100, 1_000..1_100)).await.unwrap();
    let all = proposal(4, 200, 1_000..1_200);
    let mut offers = Vec::new();
    for asked in [&all, &all, &proposal(3, 150, 1_000..1_150)] {
        let offer = domain.hold(domain.open(Some(old.id)).await, asked).await;
        assert!(offer.is_held(), "{offer:?}");
        offers.push(offer);
    }
    let place = |offer: &NegotiationOffer| offer.terms.as_ref().map(domain::agreement::OfferTerms::placement);
    assert_eq!(place(&offers[0]), place(&offers[1]));
    let beside = || proposal(1, 100, 1_000..1_100);
    let later = || proposal(1, 50, 1_150..1_200);
    domain.place(beside()).await.unwrap_err();
    domain.assert_verified().await;
    let domain = domain.restart().await;
    // What is left of them still has its nodes, and not those of the one that is gone.
    domain.reject(&offers[0]).await.unwrap();
    domain.place(later()).await.unwrap_err();
    domain.assert_verified().await;
    let new = domain.accept(&offers[1], all).await.unwrap();
    assert_eq!((new.nodes(), new.duration), (4, 200));
    let lost = domain.accept(&offers[2], proposal(3, 150, 1_000..1_150)).await;
    assert!(matches!(lost, Err(Error::Lost(_))), "{lost:?}");
    domain.assert_verified().await;
    // Nothing but the new agreement has nodes.
    domain.planner.send(Terminate::of(new.id, None)).await.unwrap();
    domain.place(proposal(4, 200, 1_000..1_200)).await.unwrap();
    domain.restart().await.assert_verified().await;
}

#[tokio::test]
async fn offers_to_change_one_agreement_count_once_for_the_quota_of_their_party() {
    let domain = Domain::with_quota(1).await;
    let old = domain.place(proposal(2, 900, 1_000..1_900)).await.unwrap();
    let hour = proposal(4, 900, 1_000..1_900);
    for _ in 0..2 {
        let offer = domain.hold(domain.open(Some(old.id)).await, &hour).await;
        assert!(offer.is_held(), "{offer:?}");
    }
}

#[tokio::test]
async fn what_could_not_be_held_leaves_the_agreement_that_it_would_replace_as_movable_as_it_was() {
    let domain = Domain::start().await;
    let old = domain.place(proposal(4, 100, 1_000..2_000)).await.unwrap();
    let negotiation = domain.open(Some(old.id)).await;
    let longer = domain.quote(negotiation, &proposal(4, 150, 1_000..1_150)).await;
    domain.place(proposal(1, 10, 1_100..1_110)).await.unwrap();
    let answers = domain.bargain(negotiation, &longer).await;
    assert_eq!(answers[0].state, OfferState::Rejected);
    domain.place(proposal(4, 100, 1_000..1_100)).await.unwrap();
    domain.assert_verified().await;
}

#[tokio::test]
async fn who_has_asked_twice_at_once_gets_no_more_held_than_he_may_have() {
    let domain = Domain::with_quota(1).await;
    let (one, other) = (domain.open(None).await, domain.open(None).await);
    let hour = proposal(4, 900, 1_000..20_000);
    let quotes = [domain.quote(one, &hour).await, domain.quote(other, &hour).await];
    assert!(domain.bargain(one, &quotes[0]).await[0].is_held());
    let second = domain.bargain(other, &quotes[1]).await;
    assert_eq!(second[0].state, OfferState::Rejected);
    let why = second[0].refusal.as_deref().unwrap();
    assert!(why.contains("QUOTA_EXCEEDED"), "{why}");
}

#[tokio::test]
async fn a_pending_agreement_that_is_rejected_gives_back_nothing_that_it_did_not_have() {
    let domain = Domain::with_quota(1).await;
    domain.place(proposal(4, 900, 1_000..1_900)).await.unwrap();
    let pending = proposal(4, 900, 5_000..5_900);
    let pending = domain
        .planner
        .send(SubmitPending {
            proposal: pending,
            acceptance: None,
            offer: None,
        })
        .await
        .unwrap();
    let settlement = DecidePending {
        id: pending.agreement.id,
        ways: Err("not wanted".into()),
        telling: None,
    };
    domain.planner.send(settlement).await.unwrap();
    let why = reason(domain.place(proposal(4, 900, 5_000..5_900)).await);
    assert_eq!(why.reason, scheduler::Reason::QuotaExceeded);
}

#[tokio::test]
async fn offers_to_change_one_agreement_count_once_beside_another_agreement() {
    let domain = Domain::with_quota(2).await;
    let old = domain.place(proposal(2, 900, 1_000..1_900)).await.unwrap();
    for _ in 0..3 {
        let hour = proposal(4, 900, 1_000..1_900);
        let offer = domain.hold(domain.open(Some(old.id)).await, &hour).await;
        assert!(offer.is_held(), "{offer:?}");
    }
    // With half an hour and an hour that is all.
    domain.place(proposal(2, 900, 5_000..5_900)).await.unwrap();
    let why = reason(domain.place(proposal(1, 1, 6_000..6_100)).await);
    assert_eq!(why.reason, scheduler::Reason::QuotaExceeded);
}
