//! What parties have is told.

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::limits::party_usage;
use crate::limits::party_usage::PartyUsage;

/// The answer is what a party has; what all have where none is named, by their names.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone)]
pub struct ShowUsage {
    /// The name of the party.
    pub party: Option<String>,
}

impl Command for ShowUsage {
    type Answer = Vec<PartyUsage>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        Ok(DecisionStep::Done(match self.party {
            Some(party) => vec![party_usage::usage_of_party(decider.view(), party)],
            None => party_usage::usage_of_all_parties(decider.view()),
        }))
    }
}
