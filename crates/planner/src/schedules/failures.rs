//! How failures of the provider are taken.

use scheduler::{Seconds, Time};

/// In how many steps the time that a repair is thought to take moves along, so that the plan does not change all the time.
const STEPS: Seconds = 8;

/// How failures are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failures {
    /// For how long a node that is not up is thought to be out of use from any moment on.
    pub repair: Seconds,
    /// For how long a node that comes back has to be up before any agreement gets it.
    pub settle: Seconds,
    /// Whether guarantees pay their penalties when the provider takes back the time of an agreement.
    pub taken_back_pays: bool,
}

impl Default for Failures {
    /// A day: staff that repairs nodes comes in every day. Five minutes: most machines that fail again fail sooner.
    fn default() -> Self {
        Self {
            repair: 86_400,
            settle: 300,
            taken_back_pays: true,
        }
    }
}

impl Failures {
    /// When a node is thought to be out of use for longer, if it is still not back by then. The steps are counted from the report on
    /// it: a plan that follows from the report stays for a whole step.
    pub(super) fn next_step(&self, since: Time, now: Time) -> Time {
        let step = (self.repair / STEPS).max(1);
        let begun = (now - since).max(0).div_euclid(step);
        since + (begun + 1) * step
    }
}
