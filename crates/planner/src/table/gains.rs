//! What is offered for a change of an agreement is more than its party has already. A party pays no fee for what it has.

use domain::agreement::{Job, OfferKind, OfferTerms};
use scheduler::Seconds;
use scheduler::refusal::Relaxation;

use crate::error::Refusal;
use crate::table::candidates::QuoteContext;

impl QuoteContext<'_> {
    /// Whether an offer that is not what was asked for is more than the agreement that it would replace: it is not the place that this
    /// has, and not a part of a longer time that this has already.
    pub(crate) fn is_a_gain(&self, terms: &OfferTerms) -> bool {
        let Some(old) = self.replaced.filter(|_| self.own.is_none()) else {
            return true;
        };
        let job = |job: Option<&Job>| job.map(Job::first_time);
        let is_same = terms.resource == old.resource
            && terms.slots.stretches() == old.slots.stretches()
            && job(self.ask.proposal.job.as_ref()) == job(old.job.as_ref());
        let is_no_longer = terms.kind == OfferKind::Shorter && self.is_no_extension(terms.duration());
        !is_same && !is_no_longer
    }

    /// Whether a longer time was asked for than the agreement has that would be replaced, and this is none.
    fn is_no_extension(&self, duration: Seconds) -> bool {
        let mut shapes = self.ask.proposal.shapes.iter();
        self.replaced
            .is_some_and(|old| duration <= old.duration && shapes.all(|shape| shape.duration > old.duration))
    }

    /// A refusal without the changes that would give no more than the agreement that would be replaced.
    pub(crate) fn with_gains(&self, mut refusal: Refusal) -> Refusal {
        let is_no_gain = |relaxation: &Relaxation| matches!(relaxation, Relaxation::Duration(duration) if self.is_no_extension(*duration));
        refusal.relaxations.retain(|relaxation| !is_no_gain(relaxation));
        refusal
    }
}
