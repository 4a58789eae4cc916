//! What is predicted of jobs: how long their slots have to be, and how likely they end in them.

use domain::agreement::{Agreement, Job, OfferTerms};
use domain::resources::Scaling;
use prediction::Work;
use scheduler::{Interval, Seconds};

use super::Service;
use super::templates::OfferedTemplate;

/// How long a slot for such a job of a party is: see [`sized`](super::templates::Templates::sized).
pub(super) fn predict_slot(
    service: &Service,
    party: &str,
    offered: &OfferedTemplate,
    job: &Job,
    nodes: u32,
) -> Option<(Seconds, Scaling)> {
    let known = service.predictions.as_ref()?.now();
    service
        .templates
        .now()
        .sized(&known, (party, job), nodes, offered.slot_probability)
}

/// The probability that an agreement's job ends by itself before its slot does, to three digits, where that is known.
pub(super) fn predicted_confidence_of_agreement(service: &Service, agreement: &Agreement) -> Option<f64> {
    let known = service.predictions.as_ref()?.now();
    let confidence = known.confidence(agreement, service.clock.micros())?;
    Some(round_down_probability(confidence))
}

/// The probability that such a job of a party would end by itself before a slot that could be offered does, to three
/// digits, where that is known: as the agreement would state it before its slot begins.
pub(super) fn predicted_confidence_in_slot(
    service: &Service,
    slot: &OfferTerms,
    party: &str,
    job: &Job,
) -> Option<f64> {
    let work = Work {
        resource: Some(&slot.resource),
        ..Work::of_job(party, job, slot.nodes())
    };
    let known = service.predictions.as_ref()?.now();
    let placed = slot.slots.placement();
    let slot = Interval::of(placed.start, slot.duration());
    known.probability(&work, slot).map(round_down_probability)
}

/// A probability to three digits, rounded down: it is not stated higher than it is known to be.
fn round_down_probability(probability: f64) -> f64 {
    (probability * 1_000.0).floor() / 1_000.0
}
