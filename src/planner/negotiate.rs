//! Negotiations: opened, ended and forgotten when their time is over.

use scheduler::{Reason, Time};
use uuid::Uuid;

use super::decide::Decider;
use super::{Error, Refusal};
use crate::agreement::NegotiationInstance;
use crate::clock::second_of;
use crate::store::Change;

impl Decider<'_> {
    /// Opens a negotiation.
    pub(super) fn initiate(
        &mut self,
        instance: NegotiationInstance,
        document: String,
    ) -> Result<NegotiationInstance, Error> {
        if let Some(agreement) = instance.agreement {
            let replaced = self.plan.get(agreement).ok_or(Error::NotFound)?;
            if replaced.party != instance.party {
                return Err(Error::NotFound);
            }
        }
        let most = self.settings.negotiation.open_max;
        if self.plan.table.of(&instance.party).count() >= most {
            let binding = format!("a party may have {most} negotiations going on at a time");
            return Err(quota(binding));
        }
        self.plan.table.open(instance.clone(), []);
        self.batch.push(Change::CreateNegotiation {
            negotiation: instance.clone(),
            document,
        });
        Ok(instance)
    }

    /// Ends a negotiation before its time.
    pub(super) fn end_negotiation(
        &mut self,
        id: Uuid,
        party: Option<&str>,
    ) -> Result<NegotiationInstance, Error> {
        let talks = self.plan.table.get(id).ok_or(Error::NotFound)?;
        if party.is_some_and(|party| party != talks.instance.party) {
            return Err(Error::NotFound);
        }
        let mut ended = talks.instance.clone();
        ended.ended = Some(self.now);
        self.batch.push(Change::EndNegotiation {
            negotiation: id,
            at: self.now,
        });
        self.plan.table.close(id);
        Ok(ended)
    }

    /// Lets go of what has lapsed by now. Looked at before every decision, so that nothing is decided on what is over.
    pub(super) fn lapse(&mut self) {
        let now: Time = second_of(self.now);
        for id in self.plan.table.due_by(now) {
            let Some(talks) = self.plan.table.get(id) else {
                continue;
            };
            if talks.instance.expires <= now {
                self.plan.table.close(id);
            }
        }
    }
}

/// The refusal of what a party has too much of already.
pub(super) fn quota(binding: String) -> Error {
    Error::Refused(Box::new(Refusal {
        reason: Reason::QuotaExceeded,
        binding,
        alternatives: Vec::new(),
        relaxations: Vec::new(),
        lowest_budget: None,
    }))
}
