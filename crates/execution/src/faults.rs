//! The present faults of resources, for operators to see. No decision depends on them: a failed call is tried again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::clock::Micros;
use scheduler::worded;
use task::lock::lock;

/// Characters of a message that are kept.
const MESSAGE_MAX: usize = 500;

worded! {
    /// The use that needs a resource, in words.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ResourceUse {
        /// To keep nodes for the plan.
        FollowPlan = "follow the plan",
        /// To tell how its nodes stand.
        TellNodes = "tell how its nodes stand",
        /// To start, follow and stop jobs.
        RunJobs = "run jobs",
        /// To have all that a promise depends on.
        PassChecks = "pass its checks",
    }
}

/// Something that a resource fails in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The use that needs it.
    pub doing: ResourceUse,
    /// The last message about it.
    pub message: String,
    /// Since when it has failed without a success in between.
    pub since: Micros,
}

/// The faults of resources, by their names: cheap to clone, and one for all clones.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    current: Arc<Mutex<BTreeMap<(String, ResourceUse), Fault>>>,
}

impl Faults {
    /// Takes note of a failure, or of a success where there is no message. Answers whether that is something new: another
    /// message, or the end of a fault.
    pub(crate) fn note(
        &self,
        resource: &str,
        doing: ResourceUse,
        message: Option<String>,
        now: Micros,
    ) -> bool {
        let key = (resource.to_owned(), doing);
        let mut current = lock(&self.current);
        let Some(message) = message else {
            return current.remove(&key).is_some();
        };
        let message: String = message.chars().take(MESSAGE_MAX).collect();
        let before = current.get(&key);
        let is_new = before.is_none_or(|before| before.message != message);
        let since = before.map_or(now, |before| before.since);
        let fault = Fault {
            doing,
            message,
            since,
        };
        current.insert(key, fault);
        is_new
    }

    /// Forgets a resource that is gone.
    pub(crate) fn forget(&self, resource: &str) {
        lock(&self.current).retain(|(name, _), _| name != resource);
    }

    /// The faults of a resource.
    pub fn of(&self, resource: &str) -> Vec<Fault> {
        let current = lock(&self.current);
        let one_current = current.iter().filter(|((name, _), _)| name == resource);
        one_current.map(|(_, fault)| fault.clone()).collect()
    }

    /// The resources that fail in something.
    pub fn failing_in(&self, doing: ResourceUse) -> Vec<String> {
        let current = lock(&self.current);
        let one_current = current.keys().filter(|(_, current)| *current == doing);
        one_current.map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_new_once_lasts_from_its_first_failure_and_ends_with_a_success() {
        let faults = Faults::default();
        let fails = |message: &str, now| {
            faults.note("cluster", ResourceUse::FollowPlan, Some(message.to_owned()), now)
        };
        assert!(fails("down", 1) && !fails("down", 2) && fails("slow", 3));
        let found = faults.of("cluster");
        assert_eq!(
            found
                .iter()
                .map(|fault| (fault.message.as_str(), fault.since))
                .collect::<Vec<_>>(),
            [("slow", 1)]
        );
        assert!(faults.of("other").is_empty());
        assert!(!faults.note("cluster", ResourceUse::TellNodes, None, 4));
        assert!(faults.note("cluster", ResourceUse::FollowPlan, None, 5));
        assert!(faults.of("cluster").is_empty() && fails("down", 6));
        faults.forget("cluster");
        assert!(faults.failing_in(ResourceUse::FollowPlan).is_empty());
    }
}
