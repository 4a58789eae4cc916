//! Offers of peers beside the own ones: for a request that the own domain cannot place exactly.

use std::collections::BTreeMap;

use domain::agreement::{
    AMOUNT_MAX, Agreement, AtPeer, HeldAtPeer, Job, Money, NegotiationInstance, OfferKind, OfferTerms, Shape,
    Slots,
};
use domain::request::change_flat_request_descriptions;
use domain::resources::Scaling;
use planner::{Candidate, OfferOrigin, Quote, QuoteOffers, Request};
use scheduler::{Interval, Reason, Seconds, Time};
use uuid::Uuid;
use wsag::agreements::AgreementOffer;
use wsag::quotation::Quotation;
use wsag::scheduling::ShapeChanges;
use wsag::terms::ServiceDescription;
use wsag::time::DateTime;
use wsag::travel::Travel;

use crate::agreements::charges_at_peer::add_charges_at_peer;
use crate::agreements::find::find_agreement_at_peer;
use crate::negotiations::negotiation::why_negotiation_is_over;
use crate::peer_credit::peer_has_credit;
use crate::views::worded_offer::WordedOffer;
use crate::{Result, Service};
use federation::client::money_of_sum;
use federation::{FoundAtPeer, PassedFile, PeerQuestion};

/// Bytes of the files of a job that are passed on at most.
const PASSED_ON_MAX: u64 = 64 << 20;
/// Seconds by which an offer of ours lapses before the peer's behind it: its acceptance takes a while.
const BEFORE_LAPSE: i64 = 5;
/// Seconds by which the clock of a peer may be behind ours.
const CLOCKS_DIFFER: Seconds = 60;
/// Seconds ahead of which no peer's slot is taken.
const FURTHEST: Seconds = 366 * 86_400;

/// The reasons of a refusal for which peers are asked: others may have what we have not. A party's quota or budget is the same there.
pub(crate) fn may_seek_peer_offers(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NoCapacityInWindow
            | Reason::SizeExceedsCapacity
            | Reason::ResourceNotOffered
            | Reason::HorizonExceeded
    )
}

/// The possible offers for a request: our own, and those of peers where these are asked.
pub(super) async fn quote_with_peer_offers(
    service: &Service,
    instance: &NegotiationInstance,
    ask: QuoteOffers,
    peers: Option<(Uuid, Option<&Travel>)>,
    wanted: (&AgreementOffer, &Request, Interval),
    replaced: Option<&Agreement>,
) -> Result<Quote> {
    let mut quote = quote_without_peer_offers(service, instance, ask).await?;
    let there = match replaced {
        Some(old) => find_agreement_at_peer(service, old).await?,
        None => None,
    };
    let changed = replaced.map(|old| (old, there.as_ref()));
    let may_change = changed.is_none_or(|(old, there)| old.is_waiting() || there.is_some());
    if let Some((parent, travel)) = peers.filter(|_| may_change) {
        let here = (instance, parent);
        add_offers_of_peers(service, here, travel, wanted, changed, &mut quote).await;
    }
    match changed {
        Some(changed) => add_charges_at_peer(service, changed, wanted.1.budget, quote).await,
        None => Ok(quote),
    }
}

/// Adds to the possible offers for a request those that peers hold, where none of the own ones is exact.
async fn add_offers_of_peers(
    service: &Service,
    (instance, parent): (&NegotiationInstance, Uuid),
    travel: Option<&Travel>,
    (asked, proposal, window): (&AgreementOffer, &Request, Interval),
    replaced: Option<(&Agreement, Option<&AtPeer>)>,
    quote: &mut Quote,
) {
    let Some(federation) = service.federation.as_ref().filter(|_| !service.options.is_dry) else {
        return;
    };
    let is_exact = |candidate: &Candidate| candidate.terms.kind == OfferKind::Exact;
    let is_hopeless = quote
        .refusal
        .as_ref()
        .is_some_and(|refusal| !may_seek_peer_offers(refusal.reason));
    if is_hopeless || quote.candidates.iter().any(is_exact) {
        return;
    }
    let sizes = proposal.shapes.iter();
    let largest = sizes
        .map(|size| u64::from(size.nodes) * size.duration.max(0).unsigned_abs())
        .max();
    let template_and_job = (proposal.template.as_str(), proposal.job.as_ref());
    let Some(PassedOn { asked, files, only }) =
        pass_offer_on_to_peer(service, asked, &instance.party, template_and_job)
    else {
        return;
    };
    let begun = replaced.filter(|(old, _)| old.is_being_carried_out());
    let question = PeerQuestion {
        // Work that runs at a peer goes on there.
        only: begun.map_or(only, |(old, _)| Some(old.resource.clone())),
        changes: replaced.and_then(|(_, there)| there),
        offer: &asked,
        travel,
        negotiation: instance.id,
        offer_here: parent,
        party: &instance.party,
        node_seconds: largest.unwrap_or(0),
        files,
    };
    for found in federation.ask(question).await {
        let asked = AskedOfPeer {
            window,
            shapes: &proposal.shapes,
            is_scaled: proposal.scaling != Scaling::Contract,
            begun: begun.map(|(old, _)| old.slot()),
        };
        let candidate = candidate_of_peer_offer(service, found, &asked);
        let is_affordable =
            |candidate: &Candidate| peer_offer_is_within_budget(proposal.budget, candidate.terms.price);
        quote.candidates.extend(candidate.filter(is_affordable));
    }
}

/// An offer in the words for peers, with the files that they get for it: under names of their own, which the offer has in place of
/// its requester's. None where it stays here: its template or the resource that it names is one that stays, or its files are too
/// large to be passed on or are to have other names in the job's folder.
pub(crate) fn pass_offer_on_to_peer(
    service: &Service,
    asked: &AgreementOffer,
    party: &str,
    (template, job): (&str, Option<&Job>),
) -> Option<PassedOn> {
    let federation = service.federation.as_ref()?;
    if federation.settings().home_templates.contains(template) {
        return None;
    }
    let mut asked = asked.clone();
    let only = take_resource_of_peer_offer(&mut asked);
    if only.as_ref().is_some_and(|name| federation.peer(name).is_none()) {
        return None;
    }
    let catalogue = service.catalogue();
    let found = job.and_then(|job| Some((job, catalogue.find(&job.application, job.version.as_deref())?)));
    let Some((job, application)) = found else {
        let files = Vec::new();
        return Some(PassedOn { asked, files, only });
    };
    if job.uploads().next().is_some() {
        return None;
    }
    let (mut files, mut bytes) = (Vec::new(), 0);
    let mut names = BTreeMap::new();
    for name in application.files(&job.arguments) {
        let path = service.files.find(party, name)?;
        bytes += path.metadata().ok()?.len();
        let there = federation.name_of_passed_file(party, name);
        names.insert(name.to_owned(), there.clone());
        files.push(PassedFile { name: there, path });
    }
    if bytes > PASSED_ON_MAX {
        return None;
    }
    rename_files_in_peer_offer(&mut asked, &names);
    Some(PassedOn { asked, files, only })
}

/// Why a request that came from another domain is not answered here, if so.
pub(super) fn why_travel_ends(
    service: &Service,
    travel: &Travel,
    instance: &NegotiationInstance,
) -> Option<&'static str> {
    service
        .federation
        .as_ref()?
        .why_question_is_not_answered(travel, instance.id)
}

/// Ends what peers hold for an offer of a negotiation beside these answers to it.
pub(super) fn end_unused_peer_offers(
    service: &Service,
    instance: &NegotiationInstance,
    parent: Uuid,
    answers: &[WordedOffer],
) {
    let Some(federation) = &service.federation else {
        return;
    };
    let terms = answers.iter().filter_map(|answer| answer.row.terms.as_ref());
    let used = terms.filter_map(|terms| Some(terms.peer.as_ref()?.negotiation.as_str()));
    federation.end_unused_at_asked_peers(instance.id, Some(parent), &used.collect::<Vec<_>>());
}

/// An offer of ours for what a peer holds, at its price and what we add, in the window that was asked for where the peer's words have
/// none. None where it cannot be said in our terms, or is not what it says: the peer is not believed.
pub(crate) fn candidate_of_peer_offer(
    service: &Service,
    found: FoundAtPeer,
    asked: &AskedOfPeer<'_>,
) -> Option<Candidate> {
    let quotation = &found.offer.quotation;
    let left = found.offer.held_for?.saturating_sub(found.received.elapsed());
    let held = i64::try_from(left.as_secs()).ok()? - BEFORE_LAPSE;
    (held > 0).then_some(())?;
    let now = service.clock.now();
    let slots = slot_of_peer_offer(quotation)?;
    let there = slots.placement();
    let (slots, may_start) = if let Some(begun) = asked.begun {
        // Ours has begun when the peer's had, or some moments before.
        let slot = Interval::new(begun.start, there.end);
        let goes_on = found.replaces.is_some() && there.start <= now && there.end > now;
        (Slots::one((slot, slots.nodes())), goes_on)
    } else {
        (slots, there.start >= now - CLOCKS_DIFFER)
    };
    let lies = slots.placement();
    let kind = quotation.kind;
    let is_possible = may_start
        && lies.end <= now + FURTHEST
        && slots.nodes() <= found.peer.settings().nodes
        && quotation.deviation.is_finite()
        && kind != OfferKind::InPieces;
    let is_true = kind != OfferKind::Exact || asked.is_met_by(lies, slots.nodes());
    (is_possible && is_true).then_some(())?;
    let there = match &quotation.price {
        Some(price) => Some(money_of_sum(price)?),
        None => None,
    };
    let open = service.federation.as_ref()?.followed();
    let open = open.cost(found.peer.name(), found.replaces.as_deref());
    let fee = match quotation.fee.as_ref().filter(|_| found.replaces.is_some()) {
        Some(fee) => Some(money_of_sum(fee)?),
        None => None,
    };
    let is_known = |fee: Money| fee.micros >= 0 && Some(fee.currency) == service.currency();
    fee.is_none_or(is_known).then_some(())?;
    let price = match (service.currency(), there) {
        (_, None) => None,
        // What we cannot charge we would have to pay.
        (currency, Some(price)) if currency != Some(price.currency) => return None,
        (_, Some(price)) if price.micros < 0 || !peer_has_credit(&found.peer, price.micros, open) => {
            return None;
        }
        (_, Some(price)) => Some(found.peer.settings().marked_up(price)),
    };
    price
        .is_none_or(|price| price.micros <= AMOUNT_MAX)
        .then_some(())?;
    let second = |at: Option<DateTime>| at.map(|at| Time(at.floor()));
    let (ready, deadline) = found.offer.window;
    let ready = second(ready).unwrap_or(asked.window.start).min(lies.start);
    let deadline = second(deadline).unwrap_or(asked.window.end).max(lies.end);
    Some(Candidate {
        expires: now + held.min(service.planner.negotiating().hold),
        doubt: 1.0 - found.kept,
        terms: OfferTerms {
            resource: found.peer.name().to_owned(),
            slots,
            ready,
            deadline: deadline.min(now + FURTHEST),
            kept_until: lies.end,
            deviation: quotation.deviation,
            kind,
            confidence: quotation.confidence,
            price,
            difference: None,
            fee,
            fee_why: None,
            discounts: None,
            energy: None,
            promise: None,
            peer: Some(Box::new(HeldAtPeer {
                negotiation: found.negotiation,
                offer: found.offer.id,
                document: found.offer.document,
                price: there,
                slot: (lies.start.seconds(), lies.end.seconds()),
                replaces: found.replaces,
            })),
        },
    })
}

/// A request as peers get it.
pub(crate) struct PassedOn {
    /// In the words for peers.
    pub(crate) asked: AgreementOffer,
    /// The files that its job reads.
    pub(crate) files: Vec<PassedFile>,
    /// The peer that it names in place of a resource.
    pub(crate) only: Option<String>,
}

/// What a peer was asked for.
pub(crate) struct AskedOfPeer<'a> {
    /// The window.
    pub(crate) window: Interval,
    /// The sizes.
    pub(crate) shapes: &'a [Shape],
    /// Whether the durations follow from the speed of the nodes.
    pub(crate) is_scaled: bool,
    /// The slot of the agreement that is to change, where that has begun.
    pub(crate) begun: Option<Interval>,
}

impl AskedOfPeer<'_> {
    /// Whether a slot is one of what was asked for.
    fn is_met_by(&self, slot: Interval, nodes: u32) -> bool {
        let differs = self.begun.map_or(0, |_| CLOCKS_DIFFER);
        let is_long = |shape: &Shape| (shape.duration - slot.duration()).abs() <= differs;
        let is_size = |shape: &Shape| shape.nodes == nodes && (self.is_scaled || is_long(shape));
        // A slot that has begun lies before the window that is asked for now.
        let since = self
            .begun
            .map_or(self.window.start, |begun| begun.start.min(self.window.start));
        Interval::new(since, self.window.end).contains(slot) && self.shapes.iter().any(is_size)
    }
}

/// The only slot of a quotation; none where it has none or several, which cannot be followed.
fn slot_of_peer_offer(quotation: &Quotation) -> Option<Slots> {
    let second = |at: &DateTime| Time(at.floor());
    let slot = Interval::new(second(&quotation.start), second(&quotation.end));
    let is_one = !slot.is_empty() && quotation.nodes > 0 && quotation.pieces.is_empty();
    is_one.then(|| Slots::one((slot, quotation.nodes)))
}

/// Gives the arguments of jobs that are names of files other names.
fn rename_files_in_peer_offer(asked: &mut AgreementOffer, names: &BTreeMap<String, String>) {
    if let Some(terms) = &mut asked.terms.all {
        change_flat_request_descriptions(terms, &mut |description| {
            if let ServiceDescription::JobDefinition(job) = description
                && let Some(posix) = job
                    .application
                    .as_mut()
                    .and_then(|application| application.posix.as_mut())
            {
                for argument in &mut posix.arguments {
                    if let Some(there) = names.get(argument) {
                        argument.clone_from(there);
                    }
                }
            }
        });
    }
}

/// Takes the name of the resource that it is to lie on out of an offer, because a peer's resources have names of their own; and has the
/// peer keep the shape that it offers, by which it is planned here.
fn take_resource_of_peer_offer(asked: &mut AgreementOffer) -> Option<String> {
    let mut found = None;
    if let Some(terms) = &mut asked.terms.all {
        change_flat_request_descriptions(terms, &mut |description| {
            if let ServiceDescription::Scheduling(scheduling) = description {
                found = scheduling.resource.take().or(found.take());
                if scheduling.moldability.is_some() || scheduling.preemption.is_some() {
                    scheduling.may_change = Some(ShapeChanges::NONE);
                }
            }
        });
    }
    found
}

fn peer_offer_is_within_budget(budget: Option<Money>, price: Option<Money>) -> bool {
    match (budget, price) {
        (Some(budget), Some(price)) => price.micros <= budget.micros,
        _ => true,
    }
}

/// What the own domain could offer.
pub(super) async fn quote_without_peer_offers(
    service: &Service,
    instance: &NegotiationInstance,
    ask: QuoteOffers,
) -> Result<Quote> {
    let is_open = !matches!(ask.about, OfferOrigin::Opening(_));
    match service.send(ask).await {
        Err(planner::Error::NotFound) if is_open => Err(why_negotiation_is_over(service, instance).await),
        quote => Ok(quote?),
    }
}
