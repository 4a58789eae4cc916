//! The changes of a refusal that an offer can make: the ones that its template accepts.

use wsag::agreements::AgreementOffer;
use wsag::time::DateTime;
use wsag::{Document, Places};

use crate::negotiation::Negotiation;
use crate::negotiation::request::flat_request::FlatRequest;
use crate::negotiation::views::refusal::{RefusalView, RelaxationView};

impl Negotiation {
    /// A refusal of an offer, with only the changes after which the offer would still keep to its template. The plan has found
    /// the changes and does not know a template's least size or longest duration.
    pub(in crate::negotiation) fn offerable(
        &self,
        refusal: RefusalView,
        offer: &AgreementOffer,
    ) -> RefusalView {
        let template = offer.context.template_id.as_deref();
        let Some(offered) = template.and_then(|template| self.templates.get(template)) else {
            return refusal;
        };
        let places = Places::document("");
        let keeps = |relaxation: &RelaxationView| {
            let made = relaxed_request(relaxation)
                .change(offer, Some(&offered.template))
                .make();
            let document = Document::made(&made, &places);
            document.is_ok_and(|document| offered.compiled.check(&document).is_empty())
        };
        RefusalView {
            relaxations: refusal.relaxations.into_iter().filter(keeps).collect(),
            ..refusal
        }
    }
}

/// The new values of a change.
fn relaxed_request(relaxation: &RelaxationView) -> FlatRequest {
    let at = |time: scheduler::Time| DateTime::from_seconds(time.seconds());
    FlatRequest {
        nodes: relaxation.nodes.map(|nodes| (nodes, nodes)),
        start: relaxation.ready.map(at),
        end: relaxation.deadline.map(at),
        duration: relaxation
            .duration_seconds
            .and_then(|seconds| i32::try_from(seconds).ok()),
        ..FlatRequest::default()
    }
}
