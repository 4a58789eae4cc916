//! The postings are told that would follow from an end.

use domain::agreement::Posting;
use domain::change::Change;

use super::{Command, Decision, Terminate};
use crate::decider::{Decider, DecisionStep};
use crate::error::Result;

/// The answer is the postings that would follow at once if an agreement were ended. Nothing of the end is kept.
///
/// # Errors
/// Those of [`Terminate`].
#[derive(Debug, Clone)]
pub struct QuoteEnding(pub Terminate);

impl Command for QuoteEnding {
    type Answer = Vec<Posting>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let posted = decider.try_out(|tried| -> Result<Vec<Posting>> {
            self.0.decide(tried)?;
            let posted = tried.batch.iter().filter_map(|change| match change {
                Change::Post(posting) => Some((**posting).clone()),
                _ => None,
            });
            Ok(posted.collect())
        })?;
        posted.map(DecisionStep::Done)
    }
}
