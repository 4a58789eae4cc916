//! From an offer and a candidate of the planner to a counter offer: the words of the offer with other numbers. Rejections and proposals are
//! offers of the service, too.

use domain::agreement::{NegotiationRole, OfferKind, OfferState, OfferTerms, Shape};
use planner::{Candidate, Weights, rank_best_candidates};
use scheduler::Interval;
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::constraints::CompiledConstraints;
use wsag::job_definition::RangeValue;
use wsag::negotiations::{
    NegotiationConstraints, NegotiationOffer as OfferDocument, NegotiationOfferContext, Requirement,
};
use wsag::scheduling::Scheduling;
use wsag::templates::Template;
use wsag::terms::{ServiceDescription, ServiceDescriptionTerm, Term, TermTree, Terms};
use wsag::time::DateTime;
use wsag::{Document, ValuePlaces, Violation};

use crate::Service;
use crate::codec::members::tell_violations_in_members;
use crate::error::violation_at_path;
use crate::negotiations::negotiation::new_offer_row_of_negotiation;
use crate::request::duration_bounds::{DurationBounds, states_duration};
use crate::request::offer::violation_of_unwritable_offer;
use crate::request::sizes;
use crate::templates::OfferedTemplate;
use crate::views::rejection::Rejection;
use crate::views::worded_offer::{WordedOffer, content_of_offer};

/// How often the search for the best of the remaining candidates is repeated where some cannot be expressed.
const ROUNDS_MAX: usize = 4;

/// A counter offer that keeps to the template and to the demands of the offer on its answer.
pub(crate) struct Counter {
    /// Its words.
    pub(crate) offer: AgreementOffer,
    /// The importance of the optional constraints that it does not meet, together.
    pub(crate) unmet: i64,
}

/// The weights of a requester in the ranking of counter offers.
pub(crate) fn counter_offer_weights(offer: &AgreementOffer) -> Weights {
    let preference = scheduling_to_counter(offer).and_then(|scheduling| scheduling.preference);
    let preference = preference.unwrap_or_default();
    let weight = |weight: Option<f64>| weight.unwrap_or(0.0);
    Weights {
        start: weight(preference.start),
        size: weight(preference.size),
        duration: weight(preference.duration),
        price: weight(preference.price),
    }
}

/// The sizes that an offer could have beyond the requested ones, where it has a law of scaling.
pub(crate) fn counter_sizes_beyond_offer(
    offer: &AgreementOffer,
    offered: &OfferedTemplate,
    capacity: u32,
) -> Option<Vec<Shape>> {
    let law = scheduling_to_counter(offer)?.moldability.as_ref()?;
    let asked = offer
        .terms
        .descriptions()
        .find_map(|description| match &description.content {
            ServiceDescription::JobDefinition(job) => job.resources.nodes.clone(),
            _ => None,
        });
    let asked = asked.unwrap_or_else(|| RangeValue::exactly(f64::from(offered.defaults().nodes)));
    Some(sizes::sizes_beyond_range(law, &asked, capacity))
}

/// The ways to read an offer, each without an open choice, in its requester's order; none where there are too many.
pub(crate) fn readings_to_counter(offer: &OfferDocument) -> Vec<AgreementOffer> {
    if offer.terms.is_conjunctive() {
        return vec![content_of_offer(offer)];
    }
    let alternatives = offer.terms.alternatives().into_iter().flatten();
    alternatives
        .map(|alternative| {
            let terms = alternative.terms.into_iter().cloned();
            let all = terms.map(|term| TermTree::Term(Box::new(term))).collect();
            AgreementOffer {
                terms: Terms { all: Some(all) },
                ..content_of_offer(offer)
            }
        })
        .collect()
}

fn scheduling_to_counter(offer: &AgreementOffer) -> Option<&Scheduling> {
    offer
        .terms
        .descriptions()
        .find_map(|description| match &description.content {
            ServiceDescription::Scheduling(scheduling) => Some(&**scheduling),
            _ => None,
        })
}

/// The best candidates among the ones that can be expressed, each with its words; and the rules that the best of the
/// others break. A candidate that cannot be expressed dominates no other. The best are looked for [`ROUNDS_MAX`] times
/// at most.
pub(crate) fn sayable_counter_offers(
    mut candidates: Vec<Candidate>,
    weights: Weights,
    say: impl Fn(&Candidate) -> Result<Counter, Vec<Violation>>,
) -> (Vec<(Counter, Candidate)>, Vec<Violation>) {
    let (mut said, mut broken) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS_MAX {
        said.clear();
        let mut left_out = Vec::new();
        let mut why = Vec::new();
        for candidate in rank_best_candidates(&candidates, weights) {
            match say(&candidate) {
                Ok(counter) => said.push((counter, candidate)),
                Err(violations) => {
                    why.extend(violations);
                    left_out.push(candidate);
                }
            }
        }
        if left_out.is_empty() {
            break;
        }
        if broken.is_empty() {
            broken = why;
        }
        candidates.retain(|candidate| !left_out.contains(candidate));
    }
    (said, broken)
}

/// The counter offer for a candidate, or the rules of the offer that it breaks. `places` gives their places in the
/// offer's original form.
pub(crate) fn make_counter_offer(
    asked: &AgreementOffer,
    places: &ValuePlaces,
    offered: &OfferedTemplate,
    demands: &CompiledConstraints,
    candidate: &OfferTerms,
) -> Result<Counter, Vec<Violation>> {
    let offer = counter_offer_in_words(asked, &offered.template, candidate);
    let expires = offer.context.expiration_time;
    if expires.is_some_and(|at| candidate.deadline.seconds() > at.floor()) {
        let message = "no slot is free before it";
        return Err(vec![violation_at_path(
            places.below("/wsag:Context/wsag:ExpirationTime"),
            message,
        )]);
    }
    let made = offer.make();
    // A document that was read can be written; but the requester's words may have grown by escaping.
    let document =
        Document::made(&made, places).map_err(|why| vec![violation_of_unwritable_offer(places, &why)])?;
    let mut broken = wsag::rules::check_rules(&document);
    broken.extend(offered.compiled.check(&document));
    let mut unmet: i64 = 0;
    for outcome in demands.check(&document) {
        if outcome.violations.is_empty() {
            continue;
        }
        match outcome.requirement {
            Requirement::Required => broken.extend(outcome.violations),
            // One that does not say how much it weighs weighs something.
            Requirement::Optional => unmet = unmet.saturating_add(outcome.importance.unwrap_or(1)),
        }
    }
    if broken.is_empty()
        && !states_duration(&offer)
        && let Some(why) = DurationBounds::of_silent(offer.clone(), offered).why_not(candidate.duration())
    {
        broken.push(violation_at_path(places.below("/wsag:Terms"), why));
    }
    if broken.is_empty() {
        return Ok(Counter { offer, unmet });
    }
    tell_violations_in_members(places, &mut broken);
    Err(broken)
}

/// The offer with a candidate's numbers in place of its own, where they differ.
fn counter_offer_in_words(
    asked: &AgreementOffer,
    template: &Template,
    candidate: &OfferTerms,
) -> AgreementOffer {
    let mut offer = asked.clone();
    offer.agreement_id = None;
    let moldable = scheduling_to_counter(asked).is_some_and(|scheduling| scheduling.moldability.is_some());
    let numbers = Numbers {
        // Pieces of different sizes keep the requested sizes.
        nodes: (!candidate.slots.differ()).then_some(candidate.nodes()),
        window: matches!(candidate.kind, OfferKind::Earlier | OfferKind::Later)
            .then(|| candidate.placement()),
        // Where it follows from the number of nodes, it is not said besides.
        duration: i32::try_from(candidate.duration())
            .ok()
            .filter(|_| !matches!(candidate.kind, OfferKind::Exact | OfferKind::InPieces) && !moldable),
    };
    let all = offer.terms.all.get_or_insert_default();
    let (mut time, mut size) = (false, false);
    for tree in all.iter_mut() {
        let found = reword_counter_terms(tree, &numbers);
        (time, size) = (time || found.0, size || found.1);
    }
    // The parts that the offer had left to the template and that differ from it now.
    for description in template.terms.descriptions() {
        let missing = match &description.content {
            ServiceDescription::AllocationTime(_) => {
                !time && (numbers.window.is_some() || numbers.duration.is_some())
            }
            ServiceDescription::JobDefinition(_) => !size,
            ServiceDescription::Scheduling(_) | ServiceDescription::Other(_) => false,
        };
        if missing {
            let mut tree = tree_of_term(description);
            reword_counter_terms(&mut tree, &numbers);
            all.push(tree);
        }
    }
    offer
}

fn tree_of_term(description: &ServiceDescriptionTerm) -> TermTree {
    TermTree::Term(Box::new(Term::ServiceDescription(description.clone())))
}

/// The differences of a counter offer from the offer.
struct Numbers {
    nodes: Option<u32>,
    window: Option<Interval>,
    duration: Option<i32>,
}

/// Whether a tree of terms says when, and on how many nodes; with these numbers from now on.
fn reword_counter_terms(tree: &mut TermTree, numbers: &Numbers) -> (bool, bool) {
    match tree {
        TermTree::All(trees) | TermTree::ExactlyOne(trees) | TermTree::OneOrMore(trees) => {
            let found = trees.iter_mut().map(|tree| reword_counter_terms(tree, numbers));
            found.fold((false, false), |all, one| (all.0 || one.0, all.1 || one.1))
        }
        TermTree::Term(term) => {
            let Term::ServiceDescription(description) = &mut **term else {
                return (false, false);
            };
            match &mut description.content {
                ServiceDescription::AllocationTime(time) => {
                    if let Some(window) = numbers.window {
                        time.start = Some(DateTime::from_seconds(window.start.seconds()));
                        time.end = Some(DateTime::from_seconds(window.end.seconds()));
                    }
                    time.duration = numbers.duration.or(time.duration);
                    (true, false)
                }
                ServiceDescription::JobDefinition(job) => {
                    let Some(nodes) = numbers.nodes else {
                        return (false, true);
                    };
                    let says = |range: &RangeValue| range.whole_numbers() == Ok((nodes, Some(nodes)));
                    if !job.resources.nodes.as_ref().is_some_and(says) {
                        job.resources.nodes = Some(RangeValue::exactly(f64::from(nodes)));
                    }
                    (false, true)
                }
                ServiceDescription::Scheduling(_) | ServiceDescription::Other(_) => (false, false),
            }
        }
    }
}

/// An offer of the service that says this, in answer to the offer or the template of this name; to be stored.
pub(crate) fn counter_offer_of_provider(
    service: &Service,
    negotiation: Uuid,
    (parent, name): (Option<Uuid>, &str),
    state: OfferState,
    said: AgreementOffer,
) -> WordedOffer {
    let row = new_offer_row_of_negotiation(service, negotiation, parent, NegotiationRole::Responder, state);
    WordedOffer {
        words: OfferDocument {
            offer_id: Some(row.name.clone()),
            agreement_id: None,
            name: said.name,
            context: said.context,
            terms: said.terms,
            offer_context: NegotiationOfferContext {
                counter_offer_to: name.to_owned(),
                expiration_time: None,
                creator: NegotiationRole::Responder,
                state,
                state_extensions: Vec::new(),
                extensions: Vec::new(),
            },
            constraints: NegotiationConstraints::default(),
        },
        row,
    }
}

/// A counter offer.
pub(crate) fn counter_offer(
    service: &Service,
    negotiation: Uuid,
    asked: (Uuid, &OfferDocument),
    counter: Counter,
    candidate: Candidate,
    state: OfferState,
) -> WordedOffer {
    let to = (Some(asked.0), asked.1.offer_id.as_deref().unwrap_or_default());
    let mut answer = counter_offer_of_provider(service, negotiation, to, state, counter.offer);
    answer.row.expires = Some(candidate.expires);
    answer.row.terms = Some(candidate.terms);
    answer
}

/// The rejection of an offer, which repeats the offer's terms.
pub(crate) fn rejecting_counter_offer(
    service: &Service,
    negotiation: Uuid,
    parent: Option<Uuid>,
    asked: &OfferDocument,
    rejection: &Rejection,
) -> WordedOffer {
    let to = (parent, asked.offer_id.as_deref().unwrap_or_default());
    let mut answer = counter_offer_of_provider(
        service,
        negotiation,
        to,
        OfferState::Rejected,
        content_of_offer(asked),
    );
    answer.words.offer_context.state_extensions = vec![rejection.fragment()];
    answer.row.refusal = Some(rejection.json());
    answer
}

/// The sizes beyond those of an offer that its template allows.
pub(crate) fn other_counter_sizes(service: &Service, asked: &AgreementOffer) -> Option<Vec<Shape>> {
    let offered = service.templates.get(asked.context.template_id.as_deref()?)?;
    counter_sizes_beyond_offer(asked, &offered, service.templates.capacity())
}
