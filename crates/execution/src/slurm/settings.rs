//! A cluster as the provider describes it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use domain::agreement::Run;
use jiff::tz::TimeZone;
use scheduler::Seconds;
use scheduler::domain::Attribute;

use crate::slurm::policy::SlurmPolicies;

/// Calls that one use of the executor makes, for the time that it may take in all.
const CALLS_OF_ONE_USE: u32 = 6;
/// The prefix of the names of our reservations and jobs.
pub(super) const PREFIX: &str = "bespeak-";
/// The last part of the name of the reservation of the nodes that batch jobs never get. It is no slot's.
pub(super) const DEDICATED: &str = "dedicated";

/// A cluster as the provider describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmSettings {
    /// The resource's name.
    pub resource: String,
    /// The partition that its jobs go to.
    pub partition: String,
    /// Its nodes by name; the planner knows each by its place in this list.
    pub nodes: Vec<String>,
    /// What each node has by the provider's word.
    pub attributes: BTreeMap<String, Attribute>,
    /// The ones among them that batch jobs never get.
    pub dedicated: Vec<String>,
    /// The folder of Slurm's programs, where they are not among the system's.
    pub programs: Option<PathBuf>,
    /// Slurm's configuration file; where Slurm looks by itself without.
    pub configuration: Option<PathBuf>,
    /// A folder that this machine and all nodes share: each job has its own in there.
    pub work_dir: PathBuf,
    /// The socket of the helper for operations that need rights; without one the service carries them out itself.
    pub helper: Option<PathBuf>,
    /// The account of parties that are not named in `parties`.
    pub account: Account,
    /// The accounts of parties, by name.
    pub parties: BTreeMap<String, Account>,
    /// The site's further options for jobs and reservations.
    pub policies: SlurmPolicies,
    /// How long each of Slurm's commands may take.
    pub patience: Duration,
    /// Seconds that a node is left alone after others' use: Slurm kills late.
    pub turnaround: Seconds,
    /// Seconds before their begin from which on slots are reserved at the earliest; the longest job's limit without.
    pub lead: Option<Seconds>,
    /// Changes of reservations that the cluster gets in a minute at most.
    pub changes_a_minute: u32,
    /// Seconds without a job after which a reservation that was handed to a user is taken back; never without. The user's
    /// party is told when half of them are over.
    pub reclaim_after: Option<Seconds>,
    /// Whether a slot without a job is reserved as soon as it is promised, so that its user can name the reservation at once.
    pub reserve_at_once: bool,
    /// The time zone of Slurm's controller: reservations of the site come again by its clock.
    pub time_zone: TimeZone,
}

/// The owner of jobs on the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The Unix user.
    pub user: String,
    /// The account that Slurm charges; the user's default without it.
    pub account: Option<String>,
}

impl SlurmSettings {
    /// The account of a party's jobs and reservations.
    pub(crate) fn account_of(&self, party: &str) -> &Account {
        self.parties.get(party).unwrap_or(&self.account)
    }

    /// The accounts of parties by their names, and last, with no name, the one of all other parties.
    pub(super) fn accounts(&self) -> impl Iterator<Item = (&str, &Account)> {
        let named = self
            .parties
            .iter()
            .map(|(party, one_party)| (party.as_str(), one_party));
        named.chain([("", &self.account)])
    }

    /// The name of the reservation of the nodes that batch jobs never get.
    pub(crate) fn dedicated_name(&self) -> String {
        format!("{PREFIX}{}-{DEDICATED}", self.resource)
    }

    /// How long one use of the cluster may take in all.
    pub(super) fn patience_of_use(&self) -> Duration {
        self.patience * CALLS_OF_ONE_USE
    }
}

/// The name of a run's reservation on a resource, and of its job there. It has the resource in it because several may be of one
/// cluster, and an agreement may move between them.
pub fn slurm_name_of_run(resource: &str, run: Run) -> String {
    format!("{PREFIX}{resource}-{run}")
}
