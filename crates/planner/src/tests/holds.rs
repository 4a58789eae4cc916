//! Offers that are held, on a plan with several resources.

use domain::agreement::{Filter, NegotiationInstance, NegotiationOffer, NegotiationRole, OfferState};
use domain::resources::Resource;
use scheduler::Time;
use uuid::Uuid;

use super::harness::{Domain, arm, proposal};
use crate::{Candidate, ExchangeOffers, OfferOrigin, OfferWords, QuoteOffers, Weights};

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
        created: 0,
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

#[test]
fn an_agreement_whose_place_an_offer_counts_on_is_not_sent_to_another_resource() {
    let plain = Resource::new("plain", "local", 4);
    let mut domain = Domain::new(vec![arm("arm"), plain]);
    let old = domain.place(proposal(4, 100, (1_000, 1_100))).unwrap();
    assert_eq!(old.agreement.resource, "arm");
    let negotiation = NegotiationInstance {
        id: Uuid::now_v7(),
        party: "physics".into(),
        agreement: Some(old.agreement.id),
        created: 0,
        expires: Time(900),
        ended: None,
        proposed: None,
    };
    let id = negotiation.id;
    domain.state.table.open(negotiation, []);
    let ask = QuoteOffers {
        about: OfferOrigin::Negotiation(id),
        proposal: proposal(4, 200, (1_000, 1_200)),
        others: None,
        weights: Weights::default(),
    };
    let quote = domain.decide(|decider| decider.decide(ask.clone())).unwrap();
    let incoming = said(id, None, NegotiationRole::Initiator, None);
    let answer = said(
        id,
        Some(incoming.offer.id),
        NegotiationRole::Responder,
        quote.candidates.first(),
    );
    let bargain = ExchangeOffers {
        opening: None,
        negotiation: id,
        incoming: Some(incoming),
        answers: vec![answer],
        otherwise: OfferState::Rejected,
        idempotency: None,
    };
    let held = domain.decide(|decider| decider.decide(bargain)).unwrap();
    assert!(held[0].is_held(), "{held:?}");
    let mut newcomer = proposal(4, 100, (1_000, 1_100));
    newcomer.filters = vec![Filter::Word {
        attribute: "cpu_architecture".into(),
        is: "arm".into(),
    }];
    assert!(domain.place(newcomer).is_err());
    assert_eq!(domain.of(old.agreement.id).resource, "arm");
}
