//! Slurm's verdict on a job that it was asked about without submitting it.

use std::time::{Duration, Instant};

/// How long a verdict is good for: administrators change the limits of users, and tell them so.
const GOOD_FOR: Duration = Duration::from_mins(1);
/// How long it is good for that Slurm could not say: requests do not each wait for a controller that is down.
const UNKNOWN_FOR: Duration = Duration::from_secs(10);

/// Slurm's words about jobs that it would accept at another time.
const FOR_NOW: [&str; 10] = [
    "nodes are busy",
    "node configuration is not available",
    "not available now",
    "partition not available",
    "partition is down",
    "emporarily",
    "MaxSubmitJob",
    "GrpSubmitJob",
    // It says so where a partition takes jobs with a reservation only, which a dry run does not have.
    "Access/permission denied",
    "Access denied to requested reservation",
];
/// The words in front of its reason.
const BEFORE_REASON: [&str; 2] = ["allocation failure: ", "submission failed: "];

/// Slurm's verdict on a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Takes,
    /// In its own words.
    Refuses(String),
    /// Why it could not say, or that it would not take it now.
    Unknown(String),
}

impl Verdict {
    /// Whether it still counts, where it was given then.
    pub(super) fn is_good(&self, given: Instant) -> bool {
        let good_for = match self {
            Self::Takes | Self::Refuses(_) => GOOD_FOR,
            Self::Unknown(_) => UNKNOWN_FOR,
        };
        given.elapsed() < good_for
    }
}

/// The meaning of a refusal for a job at another time.
pub(super) fn verdict_of_refusal(said: &str) -> Verdict {
    if FOR_NOW.iter().any(|words| said.contains(words)) {
        return Verdict::Unknown(said.to_owned());
    }
    let reasons = BEFORE_REASON.iter().filter_map(|before| said.rsplit_once(before));
    let reason = reasons
        .map(|(_, reason)| reason)
        .min_by_key(|reason| reason.len());
    let reason = reason.unwrap_or_else(|| said.trim_start_matches("sbatch: error: "));
    Verdict::Refuses(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_so_for_now_is_no_refusal_and_the_reason_is_told_alone() {
        let refuses = |said: &str| Verdict::Refuses(said.to_owned());
        assert_eq!(
            verdict_of_refusal("allocation failure: Invalid qos specification"),
            refuses("Invalid qos specification")
        );
        assert_eq!(
            verdict_of_refusal("sbatch: error: Batch job submission failed: Invalid account"),
            refuses("Invalid account")
        );
        assert_eq!(
            verdict_of_refusal("sbatch: error: no such project"),
            refuses("no such project")
        );
        for now in [
            "allocation failure: Requested nodes are busy",
            "allocation failure: Requested partition configuration not available now",
            "sbatch: error: AssocMaxSubmitJobLimit allocation failure: Job violates accounting/QOS policy",
        ] {
            assert_eq!(verdict_of_refusal(now), Verdict::Unknown(now.to_owned()));
        }
    }
}
