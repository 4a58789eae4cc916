//! The changes of a refusal that an offer can make: the ones that its template accepts.

use domain::request::Request;
use wsag::agreements::AgreementOffer;
use wsag::terms::Alternative;
use wsag::time::DateTime;
use wsag::{Document, ValuePlaces};

use crate::Service;
use crate::views::refusal::{RefusalView, RelaxationView};

/// A refusal of an offer, with only the changes after which the offer would still keep to its template. The plan has found
/// the changes and does not know a template's least size or longest duration.
pub(crate) fn offerable_relaxations(
    service: &Service,
    refusal: RefusalView,
    offer: &AgreementOffer,
) -> RefusalView {
    let template = offer.context.template_id.as_deref();
    let Some(offered) = template.and_then(|template| service.templates.get(template)) else {
        return refusal;
    };
    let places = ValuePlaces::document("");
    let keeps = |relaxation: &RelaxationView| {
        let changed = request_of_relaxation(relaxation).change(offer, Some(&offered.template));
        let made = changed.make();
        let ways = changed.terms.alternatives().unwrap_or_default();
        let is_met = |document: &Document<'_>, way: &Alternative<'_>| {
            let left_out = way.left_out(&changed.terms, document, ways.len());
            offered.compiled.check_way(document, way, &left_out).is_empty()
        };
        Document::made(&made, &places).is_ok_and(|document| ways.iter().any(|way| is_met(&document, way)))
    };
    RefusalView {
        relaxations: refusal.relaxations.into_iter().filter(keeps).collect(),
        ..refusal
    }
}

/// The new values of a change.
fn request_of_relaxation(relaxation: &RelaxationView) -> Request {
    let at = |time: scheduler::Time| DateTime::from_seconds(time.seconds());
    Request {
        nodes: relaxation.nodes.map(|nodes| (nodes, nodes)),
        start: relaxation.ready.map(at),
        end: relaxation.deadline.map(at),
        duration: relaxation
            .duration_seconds
            .and_then(|seconds| i32::try_from(seconds).ok()),
        ..Request::default()
    }
}
