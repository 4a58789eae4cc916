//! The bounds of a template on the duration, where an offer does not state one.

use std::collections::BTreeMap;

use domain::agreement::{BarredResource, Shape};
use domain::resources::Scaling;
use planner::Request;
use scheduler::counted;
use wsag::agreements::AgreementOffer;
use wsag::terms::{TermTree, Terms};
use wsag::{Violation, ns};

use super::{OfferCheck, wall_time_limit_of_offer};
use crate::Result;
use crate::error::violation_at_path;
use crate::request::duration_bounds::DurationBounds;

impl OfferCheck<'_> {
    /// Leaves out the sizes that would take longer, or less long, than the template allows, and bars the resources where they would. A
    /// stated duration was checked, and work that has begun goes on.
    pub(super) fn keep_within_bounds(&self, request: &mut Request) -> Result<()> {
        let is_stated = self.time.is_some_and(|time| time.duration.is_some());
        if is_stated || self.begun.is_some() {
            return Ok(());
        }
        let terms = self
            .way
            .terms
            .iter()
            .map(|term| TermTree::Term(Box::new((*term).clone())));
        let read = AgreementOffer {
            name: self.offer.name.clone(),
            agreement_id: self.offer.agreement_id.clone(),
            context: self.offer.context.clone(),
            terms: Terms {
                all: Some(terms.collect()),
            },
        };
        let bounds = DurationBounds::of_silent(read, self.offered);
        let mut wrong = None;
        let mut barred: BTreeMap<String, BarredResource> = BTreeMap::new();
        let mut kept = Vec::with_capacity(request.shapes.len());
        for shape in &request.shapes {
            let each = match request.scaling {
                Scaling::Contract => Vec::new(),
                _ => self.service.planner.sizes_on_each(request, *shape),
            };
            let (mut is_allowed, mut refused) = (false, Vec::new());
            for (resource, there) in &each {
                match bounds.why_not(there.duration) {
                    None => is_allowed = true,
                    Some(why) => refused.push((resource, there.duration, why)),
                }
            }
            if each.is_empty() {
                // As it was asked for: it is the same everywhere, or too large for every resource.
                let why = bounds.why_not(shape.duration);
                is_allowed = why.is_none();
                wrong = wrong.or(why.map(|why| (*shape, why)));
            } else if !is_allowed && let Some((_, duration, why)) = refused.first() {
                let there = Shape {
                    duration: *duration,
                    ..*shape
                };
                wrong = wrong.or(Some((there, why.clone())));
            }
            if !is_allowed {
                continue;
            }
            kept.push(*shape);
            for (resource, _, why) in refused {
                let barred_resource = barred.entry(resource.clone()).or_insert_with(|| BarredResource {
                    resource: resource.clone(),
                    sizes: Vec::new(),
                    why,
                });
                barred_resource.sizes.push(*shape);
            }
        }
        let wrong = wrong.filter(|_| kept.is_empty());
        request.barred.extend(barred.into_values());
        request.shapes = kept;
        match wrong {
            Some((shape, why)) => Err(self.duration_out_of_bounds(shape, &why).into()),
            None => Ok(()),
        }
    }

    /// The fault of an offer of which no size has a duration that its template allows.
    fn duration_out_of_bounds(&self, shape: Shape, why: &str) -> Violation {
        let is_moldable = self
            .scheduling
            .is_some_and(|scheduling| scheduling.moldability.is_some());
        let (namespace, local) = if is_moldable {
            (ns::BSP, "Moldability")
        } else if self.definition.and_then(wall_time_limit_of_offer).is_some() {
            (ns::JSDL_POSIX, "WallTimeLimit")
        } else {
            (ns::WSAG, "Terms")
        };
        let message = format!(
            "the template does not allow the duration that follows from this, {} for {}: {why}",
            counted(shape.duration, "second"),
            counted(shape.nodes, "node")
        );
        violation_at_path(
            self.document.path_outside_unknown_terms(namespace, local, 0),
            message,
        )
    }
}
