//! The postings are told that would follow from an end.

use domain::agreement::Posting;
use domain::change::Change;

use super::{Command, Decision, Terminate};
use crate::decider::{Decider, DecisionStep};

/// An agreement is to be ended, and the answer is the postings that follow at once: to be sent as a dry run.
///
/// # Errors
/// Those of [`Terminate`].
#[derive(Debug, Clone)]
pub struct QuoteEnding(pub Terminate);

impl Command for QuoteEnding {
    type Answer = Vec<Posting>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let before = decider.batch.len();
        self.0.decide(decider)?;
        let posted = decider.batch[before..].iter().filter_map(|change| match change {
            Change::Post(posting) => Some((**posting).clone()),
            _ => None,
        });
        Ok(DecisionStep::Done(posted.collect()))
    }
}
