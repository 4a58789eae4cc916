//! An agreement that is to be replaced is out of the plan while its successor is looked for, and back in it afterwards
//! unless it was replaced.

use uuid::Uuid;

use super::Error;
use super::decide::Decider;
use super::plan::request_of;
use crate::agreement::Agreement;
use crate::clock::second_of;

/// An agreement that is out of the plan for a while.
pub(super) struct Lifted {
    pub(super) agreement: Agreement,
    number: u64,
}

impl Decider<'_> {
    /// Takes a waiting agreement out of its resource's schedule; everybody else stays where he is.
    pub(super) fn lift(&mut self, id: Uuid) -> Result<Lifted, Error> {
        let agreement = self.plan.get(id).cloned().ok_or(Error::NotFound)?;
        if !agreement.is_waiting() {
            return Err(Error::Conflict("being carried out"));
        }
        let number = self.plan.number(id).ok_or(Error::NotFound)?;
        if let Some(at) = self.plan.resources.place(&agreement.resource) {
            self.plan.resources.vacate(at, second_of(self.now), number);
        }
        Ok(Lifted { agreement, number })
    }

    /// Puts it back where it lay.
    pub(super) fn put_back(&mut self, lifted: &Lifted) {
        let agreement = &lifted.agreement;
        let start = agreement.placement.start;
        let mut request = request_of(agreement, lifted.number);
        if agreement.fixed {
            request = request.fixed_to(start);
        }
        if let Some(at) = self.plan.resources.place(&agreement.resource) {
            let back = self.plan.resources.put(at, second_of(self.now), &request, start);
            debug_assert!(back, "nobody has taken its place meanwhile");
        }
    }
}
