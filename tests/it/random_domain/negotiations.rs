//! Negotiations in such a domain: offers, counter offers, acceptances and renegotiations in random states. A held offer can
//! always be accepted, once and in time, and nothing else can.

use std::collections::{BTreeMap, BTreeSet};

use bespeak::agreement::{Agreement, NegotiationInstance, NegotiationOffer, OfferCreator, OfferState, Shape};
use bespeak::clock::{Clock, MICROS_PER_SECOND};
use bespeak::planner::{
    About, Acceptance, Ask, Bargain, Error, Initiation, Lost, NegotiationEnd, NodeReport, NodeState,
    OfferWords, Proposal, Proposed, Reporter, Suggestion, Termination, Weights, best_candidates,
};
use tokio::sync::broadcast::Receiver;
use uuid::Uuid;

use super::{
    CAPACITY, CHECKED_EVERY, Domain, GOLDEN, NOW, check, end_something, in_step, pass, proposal, seeds,
};
use crate::golden::{assert_golden, trail_of};
use crate::support::random::Random;
use crate::support::run;
use crate::support::stores::TestDatabase;

/// Verbs of one run.
const VERBS: usize = 120;

#[test]
fn random_negotiations_break_no_invariant_on_sqlite() {
    let mut proposals = 0;
    for seed in 1..=seeds() {
        let database = TestDatabase::sqlite();
        proposals += run(live(database.url(), seed, seed <= GOLDEN));
    }
    assert!(proposals > 0, "the provider has proposed nothing");
}

#[test]
fn random_negotiations_break_no_invariant_on_postgres() {
    for seed in 1..=seeds().div_ceil(5) {
        let database = TestDatabase::postgres();
        run(live(database.url(), seed, false));
    }
}

/// The answers that clients got.
#[derive(Default)]
struct Told {
    negotiations: Vec<NegotiationInstance>,
    offers: Vec<NegotiationOffer>,
    /// The offers that must be there to be accepted until they expire.
    standing: BTreeSet<Uuid>,
    /// The agreements made of offers.
    accepted: BTreeMap<Uuid, Uuid>,
    agreements: Vec<Agreement>,
}

/// Lives through the verbs of a seed; how often the provider has proposed something.
async fn live(url: &str, seed: u64, is_golden: bool) -> usize {
    let mut random = Random::new(seed);
    let clock = Clock::standing_at(NOW * MICROS_PER_SECOND);
    let mut domain = Domain::start(url, &clock, is_golden).await;
    let mut suggestions = domain.planner.subscribe_suggestions();
    let mut told = Told::default();
    for verb in 0..VERBS {
        match random.below(25) {
            0..=1 => initiate(&domain, &clock, &mut told, &mut random).await,
            2..=7 => bargain(&domain, &clock, &mut told, &mut random).await,
            8..=11 => accept(&domain, &clock, &mut told, &mut random, seed).await,
            12 => reject(&domain, &clock, &mut told, &mut random).await,
            13 => end_negotiation(&domain, &mut told, &mut random).await,
            14 => {
                let asked = proposal(&mut random, clock.now());
                if let Ok(accepted) = domain.planner.place(asked).await {
                    told.agreements.push(accepted.agreement);
                }
            }
            15 => terminate(&domain, &told, &mut random).await,
            16..=17 => pass(&domain.planner, &clock, &mut random).await,
            18 => end_something(&domain.planner, &clock, &mut random, false).await,
            19..=20 => fail(&domain, &mut told, &mut random).await,
            21 => {
                domain.stop().await;
                clock.set(clock.micros() + random.seconds(3) * 40 * MICROS_PER_SECOND);
                domain = Domain::start(url, &clock, is_golden).await;
                suggestions = domain.planner.subscribe_suggestions();
            }
            _ => {
                let other = Proposal {
                    party: "biology".into(),
                    ..proposal(&mut random, clock.now())
                };
                // A party in its way may be asked to go elsewhere.
                let _ = domain.planner.place(other).await;
            }
        }
        // A suggestion comes with the answers, and is there before the next one.
        domain.planner.running().await.expect("it answers");
        propose(&domain, &clock, &mut told, &mut suggestions).await;
        if verb % CHECKED_EVERY == 0 {
            check(&domain.store, &format!("seed {seed}, after verb {verb}")).await;
        }
    }
    check(&domain.store, &format!("seed {seed}, at the end")).await;
    for (offer, agreement) in &told.accepted {
        let (stored, _) = domain
            .store
            .offer(*offer)
            .await
            .expect("it can be read")
            .expect("it is there");
        assert_eq!(stored.agreement, Some(*agreement), "seed {seed}");
        assert!(
            domain
                .store
                .agreement(*agreement)
                .await
                .expect("it can be read")
                .is_some()
        );
    }
    in_step(&domain.planner, seed).await;
    if is_golden {
        assert_golden(&format!("negotiations {seed}"), &trail_of(&domain.store).await);
    }
    domain.stop().await;
    let proposed = told.negotiations.iter().filter(|of| of.proposed.is_some());
    proposed.count()
}

/// A few nodes go away or come back. An offer that is withdrawn then does not stand any more, and everything else does.
async fn fail(domain: &Domain, told: &mut Told, random: &mut Random) {
    let state = |down| if down { NodeState::Drained } else { NodeState::Up };
    let report = NodeReport {
        states: (0..CAPACITY).map(|_| state(random.below(6) == 0)).collect(),
        ..NodeReport::default()
    };
    let set = domain
        .planner
        .set_nodes("local".into(), Reporter::Operator, report);
    set.await.expect("it is a resource of the domain");
    for id in told.standing.clone() {
        let stored = domain.store.offer(id).await.expect("it can be read");
        if stored.is_none_or(|(offer, _)| offer.is_withdrawn()) {
            told.standing.remove(&id);
        }
    }
}

/// The provider makes offers of its planner's suggestions.
async fn propose(domain: &Domain, clock: &Clock, told: &mut Told, suggestions: &mut Receiver<Suggestion>) {
    while let Ok(suggestion) = suggestions.try_recv() {
        let about = suggestion.agreement.clone();
        let negotiation = NegotiationInstance {
            id: Uuid::now_v7(),
            party: about.party.clone(),
            agreement: Some(about.id),
            created: clock.micros(),
            expires: clock.now() + 100,
            ended: None,
            proposed: Some(suggestion.reason),
        };
        let mut asked = proposal(&mut Random::new(1), clock.now());
        asked.shapes = vec![Shape {
            nodes: about.nodes(),
            duration: about.duration,
        }];
        (asked.ready, asked.deadline) = (Some(about.ready), Some(about.deadline));
        let ask = Ask {
            about: About::Proposal(Box::new(suggestion)),
            proposal: asked,
            others: None,
            weights: Weights::default(),
        };
        let candidates = match domain.planner.quote(ask).await {
            Ok(quote) => best_candidates(&quote.candidates, Weights::default()),
            Err(Error::NotFound | Error::Lost(Lost::Replaced) | Error::Conflict(_)) => Vec::new(),
            Err(why) => panic!("{why}"),
        };
        if candidates.is_empty() {
            continue;
        }
        let id = negotiation.id;
        let root = offer(clock, id, None, OfferCreator::Responder, OfferState::Advisory);
        let parent = Some(root.id);
        let answers = candidates.into_iter().map(|candidate| OfferWords {
            offer: NegotiationOffer {
                expires: Some(candidate.expires),
                terms: Some(candidate.terms),
                ..offer(clock, id, parent, OfferCreator::Responder, OfferState::Acceptable)
            },
            document: "<offer/>".into(),
        });
        let proposed = Proposed {
            offers: Bargain {
                opening: None,
                negotiation: id,
                answers: answers.collect(),
                incoming: Some(OfferWords {
                    offer: root,
                    document: "<offer/>".into(),
                }),
                otherwise: OfferState::Rejected,
                idempotency: None,
            },
            document: "<opening/>".into(),
            negotiation: negotiation.clone(),
        };
        match domain.planner.propose(proposed).await {
            Ok(offers) => {
                told.negotiations.push(negotiation);
                told.standing
                    .extend(offers.iter().filter(|of| of.is_held()).map(|of| of.id));
                told.offers.extend(offers);
            }
            Err(Error::NotFound | Error::Stale(_)) => {}
            Err(why) => panic!("{why}"),
        }
    }
}

/// An offer without values yet.
fn offer(
    clock: &Clock,
    negotiation: Uuid,
    parent: Option<Uuid>,
    creator: OfferCreator,
    state: OfferState,
) -> NegotiationOffer {
    let id = Uuid::now_v7();
    NegotiationOffer {
        id,
        negotiation,
        name: id.to_string(),
        parent,
        creator,
        state,
        created: clock.micros(),
        expires: None,
        terms: None,
        refusal: None,
        held: None,
        released: None,
        agreement: None,
    }
}

async fn initiate(domain: &Domain, clock: &Clock, told: &mut Told, random: &mut Random) {
    let replaced = random
        .choose(&told.agreements)
        .filter(|_| clock.micros() % 2 == 0);
    let instance = NegotiationInstance {
        id: Uuid::now_v7(),
        party: "physics".into(),
        agreement: replaced.map(|of| of.id),
        created: clock.micros(),
        expires: clock.now() + 1 + random.seconds(400),
        ended: None,
        proposed: None,
    };
    let initiation = Initiation {
        negotiation: instance,
        document: "<opening/>".into(),
        idempotency: None,
    };
    match domain.planner.initiate(initiation).await {
        Ok(opened) => told.negotiations.push(opened),
        Err(Error::NotFound | Error::Refused(_)) => {}
        // It may have got a piece more meanwhile.
        Err(Error::Conflict(why)) if why.contains("pieces") => {}
        Err(why) => panic!("{why}"),
    }
}

async fn bargain(domain: &Domain, clock: &Clock, told: &mut Told, random: &mut Random) {
    let Some(negotiation) = random.choose(&told.negotiations).cloned() else {
        return;
    };
    let mut asked = proposal(random, clock.now());
    let replaced = told
        .agreements
        .iter()
        .find(|of| Some(of.id) == negotiation.agreement);
    if let Some(old) = replaced.filter(|_| random.below(3) > 0) {
        // As a party would ask for running work to end at another time.
        asked.shapes[0].nodes = old.nodes();
        asked.job.clone_from(&old.job);
        (asked.ready, asked.deadline) = (None, None);
    }
    let other = asked.shapes.first().map(|shape| Shape {
        nodes: (shape.nodes / 2).max(1),
        ..*shape
    });
    let ask = Ask {
        about: About::Negotiation(negotiation.id),
        proposal: asked,
        others: other.map(|shape| vec![shape]),
        weights: Weights::default(),
    };
    let quote = match domain.planner.quote(ask).await {
        Ok(quote) => quote,
        // Work that has begun keeps its size and its job.
        Err(Error::NotFound | Error::Lost(Lost::Replaced) | Error::Conflict(_) | Error::Stale(_)) => return,
        Err(why) => panic!("{why}"),
    };
    assert_eq!(quote.candidates.is_empty(), quote.refusal.is_some());
    let mine: Vec<_> = told
        .offers
        .iter()
        .filter(|of| of.negotiation == negotiation.id)
        .collect();
    let parent = random
        .choose(&mine)
        .filter(|_| clock.micros() % 3 == 0)
        .map(|of| of.id);
    let offer = |parent, creator, state| offer(clock, negotiation.id, parent, creator, state);
    let incoming = offer(parent, OfferCreator::Initiator, OfferState::Solicited);
    let answers = best_candidates(&quote.candidates, Weights::default());
    let answers = answers.into_iter().map(|candidate| OfferWords {
        offer: NegotiationOffer {
            expires: Some(candidate.expires),
            terms: Some(candidate.terms),
            ..offer(Some(incoming.id), OfferCreator::Responder, OfferState::Acceptable)
        },
        document: "<offer/>".into(),
    });
    let bargain = Bargain {
        opening: None,
        negotiation: negotiation.id,
        answers: answers.collect(),
        incoming: Some(OfferWords {
            offer: incoming,
            document: "<offer/>".into(),
        }),
        otherwise: OfferState::Rejected,
        idempotency: None,
    };
    match domain.planner.exchange_offers(bargain).await {
        Ok(answered) => {
            for one in answered {
                assert_eq!(one.is_held(), one.state == OfferState::Acceptable, "{one:?}");
                if one.is_held() {
                    told.standing.insert(one.id);
                }
                told.offers.push(one);
            }
        }
        Err(Error::NotFound | Error::Stale(_) | Error::Refused(_)) => {}
        Err(why) => panic!("{why}"),
    }
}

async fn accept(domain: &Domain, clock: &Clock, told: &mut Told, random: &mut Random, seed: u64) {
    let Some(offer) = random.choose(&told.offers).cloned() else {
        return;
    };
    let negotiation = told.negotiations.iter().find(|of| of.id == offer.negotiation);
    let negotiation = negotiation.expect("it was opened").clone();
    let cut = offer
        .terms
        .as_ref()
        .is_some_and(|terms| !terms.slots.pieces().is_empty());
    let mut words = proposal(random, clock.now());
    // An offer in pieces runs something.
    while cut && words.job.is_none() {
        words = proposal(random, clock.now());
    }
    let acceptance = Acceptance {
        negotiation: offer.negotiation,
        offer: offer.id,
        proposal: Proposal {
            party: negotiation.party.clone(),
            ..words
        },
        barred: None,
    };
    let now = clock.now();
    let in_time = offer.expires.is_some_and(|at| now < at) && now < negotiation.expires;
    let stood = told.standing.contains(&offer.id);
    match domain.planner.accept(acceptance).await {
        Ok(accepted) => {
            assert!(stood && in_time, "seed {seed}: it did not stand any more");
            let (agreement, terms) = (accepted.agreement, offer.terms.expect("it could be had"));
            assert_eq!(
                (agreement.nodes(), agreement.duration, agreement.window()),
                (terms.nodes(), terms.duration(), terms.window()),
                "seed {seed}: it is the offered one"
            );
            assert_eq!(agreement.slots.pieces(), terms.slots.pieces(), "seed {seed}");
            let began = agreement
                .origin
                .map_or(terms.placement().start.max(now), |_| terms.placement().start);
            assert_eq!(agreement.placement().start, began, "seed {seed}");
            told.accepted.insert(offer.id, agreement.id);
            // Its siblings are released, and so are offers to replace the same agreement.
            let same = |other: &NegotiationOffer| {
                other.parent == offer.parent
                    || negotiation.agreement.is_some()
                        && told
                            .negotiations
                            .iter()
                            .any(|of| of.id == other.negotiation && of.agreement == negotiation.agreement)
            };
            for other in told.offers.iter().filter(|other| same(other)) {
                told.standing.remove(&other.id);
            }
            told.agreements.push(agreement);
        }
        Err(Error::Lost(why)) => {
            let replaces = negotiation.agreement.is_some();
            // The agreement that it was to replace may have begun, or be over.
            assert!(
                !stood || !in_time || replaces,
                "seed {seed}: it stood, and {why:?}"
            );
            assert_eq!(
                told.accepted.contains_key(&offer.id) && now < negotiation.expires,
                why == Lost::Accepted,
                "seed {seed}: {why:?}"
            );
        }
        Err(why) => panic!("seed {seed}: {why}"),
    }
}

async fn reject(domain: &Domain, clock: &Clock, told: &mut Told, random: &mut Random) {
    let Some(offer) = random.choose(&told.offers).cloned() else {
        return;
    };
    let no = self::offer(
        clock,
        offer.negotiation,
        Some(offer.id),
        OfferCreator::Initiator,
        OfferState::Rejected,
    );
    let bargain = Bargain {
        opening: None,
        negotiation: offer.negotiation,
        incoming: Some(OfferWords {
            offer: no,
            document: "<no/>".into(),
        }),
        answers: Vec::new(),
        otherwise: OfferState::Rejected,
        idempotency: None,
    };
    match domain.planner.exchange_offers(bargain).await {
        Ok(answered) => {
            assert!(answered.is_empty());
            // And the offers that came after it.
            let mut gone = BTreeSet::from([offer.id]);
            loop {
                let stored = domain
                    .store
                    .offers(offer.negotiation)
                    .await
                    .expect("they can be read");
                let below = stored
                    .iter()
                    .filter(|(of, _)| of.parent.is_some_and(|of| gone.contains(&of)));
                let more: BTreeSet<Uuid> = below.map(|(of, _)| of.id).chain(gone.iter().copied()).collect();
                if more.len() == gone.len() {
                    break;
                }
                gone = more;
            }
            told.standing.retain(|of| !gone.contains(of));
        }
        Err(Error::NotFound | Error::Stale(_) | Error::Refused(_)) => {}
        Err(why) => panic!("{why}"),
    }
}

async fn end_negotiation(domain: &Domain, told: &mut Told, random: &mut Random) {
    let Some(negotiation) = random.choose(&told.negotiations).map(|of| of.id) else {
        return;
    };
    let end = |party: &str| NegotiationEnd {
        id: negotiation,
        party: Some(party.to_owned()),
        idempotency: None,
    };
    let foreign = domain.planner.end_negotiation(end("chemistry")).await;
    assert!(matches!(foreign, Err(Error::NotFound)), "{foreign:?}");
    match domain.planner.end_negotiation(end("physics")).await {
        Ok(_) => {
            let of = |offer: &&NegotiationOffer| offer.negotiation == negotiation;
            for offer in told.offers.iter().filter(of) {
                told.standing.remove(&offer.id);
            }
            told.offers.retain(|offer| offer.negotiation != negotiation);
        }
        Err(Error::NotFound) => {}
        Err(why) => panic!("{why}"),
    }
}

async fn terminate(domain: &Domain, told: &Told, random: &mut Random) {
    if let Some(one) = random.choose(&told.agreements) {
        let order = Termination {
            by_provider: random.below(4) == 0,
            ..Termination::of(one.id, Some("physics".into()))
        };
        match domain.planner.terminate(order).await {
            Ok(_) | Err(Error::NotFound | Error::Conflict(_)) => {}
            Err(why) => panic!("{why}"),
        }
    }
}
