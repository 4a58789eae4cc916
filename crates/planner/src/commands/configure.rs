//! A configuration is taken over.

use domain::resources::resources_as_configured;
use uuid::Uuid;

use super::{Command, Decision};
use crate::decider::{Decider, DecisionStep};
use crate::overruns::Overruns;
use crate::resources::change;
use crate::resources::orders::ResourceChanges;
use crate::settings::Settings;

/// A configuration is to be taken over: of its resources what has changed since it was last read. Resources that it had and has no more
/// are retired.
///
/// # Errors
/// [`Error::Unfit`](crate::Error::Unfit) where a resource cannot be so, [`Error::Unavailable`](crate::Error::Unavailable) where it could
/// not be stored.
#[derive(Debug, Clone)]
pub struct Configure {
    /// Its own, in the audit trail.
    pub id: Uuid,
    /// The operator that asked for it; none at a start of the service, or after a signal.
    pub party: Option<String>,
    /// The settings, with the resources of the configuration in its order. Of the others the price list, the quotas, the treatment of failures, and
    /// the rules of templates and applications are taken over.
    pub settings: Settings,
    /// Whether the service starts with it: nothing runs by the executors of before.
    pub is_start: bool,
}

impl Command for Configure {
    type Answer = ResourceChanges;

    fn decide(mut self, decider: &mut Decider<'_>) -> Decision<Self> {
        let all = decider.state.schedules.list();
        if !self.is_start {
            for file in &self.settings.resources {
                let before = all.iter().find(|before| before.name == file.name);
                before.map_or(Ok(()), |before| {
                    change::check_changed_resource(decider.view(), before, file)
                })?;
            }
        }
        let next = resources_as_configured(&all, std::mem::take(&mut self.settings.resources), decider.now);
        let settings = Settings {
            pricing: self.settings.pricing,
            quotas: self.settings.quotas,
            quotas_of_parties: self.settings.quotas_of_parties,
            failures: self.settings.failures,
            overruns: Overruns {
                percent: decider.settings.overruns.percent,
                ..self.settings.overruns
            },
            restarting: self.settings.restarting,
            ..decider.settings.clone()
        };
        decider.state.life.set_overruns(&settings.overruns);
        let is_repriced = settings.pricing != decider.settings.pricing;
        if is_repriced {
            decider.state.schedules.reprice(&settings);
        }
        decider.reconfigured = Some(settings);
        let changes = change::set_resources(decider, next, (self.id, self.party));
        Ok(DecisionStep::Done(changes))
    }
}
