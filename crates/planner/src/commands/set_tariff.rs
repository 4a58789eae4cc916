//! A tariff of energy is taken over.

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::prices::energy::Kwh;

/// A tariff of energy is to be taken over, where the power of nodes is known. What is planned stays where it is.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable) when the planner has stopped.
#[derive(Debug, Clone)]
pub struct SetTariff(pub Vec<Kwh>);

impl Command for SetTariff {
    type Answer = ();

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let mut settings = decider.reconfigured.as_ref().unwrap_or(decider.settings).clone();
        let pricing = settings.pricing.as_mut();
        let Some(energy) = pricing.and_then(|pricing| pricing.energy.as_mut()) else {
            return Ok(DecisionStep::Done(()));
        };
        *energy = energy.with_tariff(self.0);
        decider.state.schedules.reprice(&settings);
        decider.reconfigured = Some(settings);
        Ok(DecisionStep::Done(()))
    }
}
