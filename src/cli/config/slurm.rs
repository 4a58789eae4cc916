//! `[resource.slurm]` of the configuration: the cluster behind a resource of the kind "slurm".

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use execution::slurm::{Account, SlurmPolicies, SlurmPolicy, SlurmSettings, expand_nodes};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::ranges::check_range;

/// Seconds that each of Slurm's commands may take.
const CALL_SECONDS: u64 = 10;
/// Commands that take longer than that hold up everything else on the cluster.
const CALL_SECONDS_MAX: u64 = 300;
/// Seconds that a node is left alone after others' use: Slurm kills up to half a minute late.
const TURNAROUND_SECONDS: u32 = 30;
/// More than an hour between two uses of a node is a slip of the pen.
const TURNAROUND_SECONDS_MAX: u32 = 3_600;
/// Nodes that are reserved more than a month early are hardly anything that is shared.
const LEAD_MINUTES_MAX: u32 = 31 * 24 * 60;
/// Changes of reservations in a minute: two a second on the average.
const CHANGES_A_MINUTE: u32 = 120;
/// Fewer could not keep up with a few agreements, and more are no bound.
const CHANGES_A_MINUTE_RANGE: RangeInclusive<u32> = 10..=6_000;
/// A wait of more than a day for a job is as good as a wait without an end.
const RECLAIM_MINUTES_MAX: u32 = 1_440;
/// Characters in the name of a user, account or partition.
const NAME_LENGTH_MAX: usize = 64;

/// The keys as written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cli) struct Slurm {
    partition: String,
    /// The nodes, in Slurm's way to write them.
    node_list: String,
    /// The nodes among them that batch jobs never get, in the same way.
    dedicated: Option<String>,
    /// The folder of Slurm's programs, where they are not among the system's.
    programs: Option<PathBuf>,
    /// Slurm's configuration file; where Slurm looks by itself without.
    configuration: Option<PathBuf>,
    /// A folder that the service shares with the nodes.
    work_dir: PathBuf,
    /// The socket of the helper for actions that need rights.
    helper: Option<PathBuf>,
    /// The user of the jobs of parties that are not named.
    user: String,
    account: Option<String>,
    qos: Option<String>,
    constraint: Option<String>,
    licenses: Option<String>,
    #[serde(default)]
    sbatch_options: Vec<String>,
    #[serde(default)]
    reservation_options: Vec<String>,
    call_seconds: Option<u64>,
    turnaround_seconds: Option<u32>,
    changes_a_minute: Option<u32>,
    lead_minutes: Option<u32>,
    reclaim_minutes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reserve_at_once: Option<bool>,
    /// The zone of Slurm's controller, by its name in the database of time zones or as POSIX writes one; this machine's without.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    #[serde(default, rename = "party")]
    parties: Vec<Party>,
    #[serde(default, rename = "application")]
    applications: Vec<Application>,
}

/// The user of the jobs of one party.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Party {
    name: String,
    user: String,
    account: Option<String>,
    qos: Option<String>,
    constraint: Option<String>,
    licenses: Option<String>,
    #[serde(default)]
    sbatch_options: Vec<String>,
    #[serde(default)]
    reservation_options: Vec<String>,
}

/// The policy for the jobs of one application.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Application {
    name: String,
    qos: Option<String>,
    constraint: Option<String>,
    licenses: Option<String>,
    #[serde(default)]
    sbatch_options: Vec<String>,
    #[serde(default)]
    reservation_options: Vec<String>,
}

/// The keys of a policy, wherever they stand: a section that takes no other keys cannot have them from another struct.
macro_rules! policy_of {
    ($keys:expr) => {
        SlurmPolicy {
            qos: $keys.qos.clone(),
            constraint: $keys.constraint.clone(),
            licenses: $keys.licenses.clone(),
            sbatch_options: $keys.sbatch_options.clone(),
            reservation_options: $keys.reservation_options.clone(),
        }
    };
}

impl Slurm {
    /// Checks the keys. Returns the wrong key and the expected value, if there is one.
    pub(in crate::cli) fn check(&self) -> Result<(), String> {
        let names = [
            ("partition", Some(&self.partition)),
            ("user", Some(&self.user)),
            ("account", self.account.as_ref()),
        ];
        for (key, name) in names {
            check_slurm_name(key, name)?;
        }
        let nodes = self.nodes();
        let distinct: BTreeSet<_> = nodes.iter().collect();
        if nodes.is_empty() || distinct.len() < nodes.len() {
            return Err(format!(
                "node_list: expected the names of nodes, each once, as in \"n[01-16],big1\", found {:?}",
                self.node_list
            ));
        }
        if let Some(list) = &self.dedicated {
            let dedicated = expand_nodes(list).unwrap_or_default();
            if dedicated.is_empty() || dedicated.iter().any(|node| !distinct.contains(node)) {
                return Err(format!(
                    "dedicated: expected some of the nodes of node_list, as in \"n[01-02]\", found {list:?}"
                ));
            }
        }
        // In the names of outputs, Slurm puts something of its own for a percent sign.
        if !self.work_dir.is_absolute() || self.work_dir.to_string_lossy().contains('%') {
            return Err(format!(
                "work_dir: expected an absolute path without '%', found {}",
                self.work_dir.display()
            ));
        }
        let paths = [
            ("programs", &self.programs),
            ("configuration", &self.configuration),
            ("helper", &self.helper),
        ];
        for (key, path) in paths {
            if let Some(path) = path.as_ref().filter(|path| !path.is_absolute()) {
                return Err(format!(
                    "{key}: expected an absolute path, found {}",
                    path.display()
                ));
            }
        }
        check_range("call_seconds", self.call_seconds, 1..=CALL_SECONDS_MAX)?;
        check_range(
            "turnaround_seconds",
            self.turnaround_seconds,
            0..=TURNAROUND_SECONDS_MAX,
        )?;
        check_range("lead_minutes", self.lead_minutes, 1..=LEAD_MINUTES_MAX)?;
        check_range("changes_a_minute", self.changes_a_minute, CHANGES_A_MINUTE_RANGE)?;
        check_range("reclaim_minutes", self.reclaim_minutes, 1..=RECLAIM_MINUTES_MAX)?;
        if self.configured_time_zone().is_none() {
            return Err(format!(
                "time_zone: expected the time zone of Slurm's controller, as in \"Europe/Berlin\", found {:?}",
                self.time_zone.as_deref().unwrap_or_default()
            ));
        }
        self.check_policies()
    }

    /// Checks the keys of parties and applications.
    fn check_policies(&self) -> Result<(), String> {
        policy_of!(self).check()?;
        let mut parties = BTreeSet::new();
        for (index, party) in self.parties.iter().enumerate() {
            let wrong = |why: String| format!("party[{index}].{why}");
            check_slurm_name("user", Some(&party.user)).map_err(wrong)?;
            check_slurm_name("account", party.account.as_ref()).map_err(wrong)?;
            if party.name.is_empty() || !parties.insert(&party.name) {
                return Err(wrong(format!(
                    "name: expected the name of a party that is not named before, found {:?}",
                    party.name
                )));
            }
            policy_of!(party).check().map_err(wrong)?;
        }
        let mut applications = BTreeSet::new();
        for (index, application) in self.applications.iter().enumerate() {
            let wrong = |why: String| format!("application[{index}].{why}");
            if application.name.is_empty() || !applications.insert(&application.name) {
                return Err(wrong(format!(
                    "name: expected the name of an application that is not named before, found {:?}",
                    application.name
                )));
            }
            policy_of!(application).check().map_err(wrong)?;
        }
        Ok(())
    }

    /// The names of the applications that it says something of.
    pub(in crate::cli) fn applications(&self) -> impl Iterator<Item = &str> {
        self.applications
            .iter()
            .map(|application| application.name.as_str())
    }

    fn policies(&self) -> SlurmPolicies {
        let parties = self
            .parties
            .iter()
            .map(|party| (party.name.clone(), policy_of!(party)));
        let applications = self
            .applications
            .iter()
            .map(|application| (application.name.clone(), policy_of!(application)));
        SlurmPolicies {
            all: policy_of!(self),
            parties: parties.collect(),
            applications: applications.collect(),
        }
    }

    /// The names of the nodes.
    pub(in crate::cli) fn nodes(&self) -> Vec<String> {
        expand_nodes(&self.node_list).unwrap_or_default()
    }

    /// How many nodes there are.
    pub(in crate::cli) fn capacity(&self) -> u32 {
        u32::try_from(self.nodes().len()).unwrap_or(u32::MAX)
    }

    /// The time zone of the controller, where it is known.
    fn configured_time_zone(&self) -> Option<TimeZone> {
        let Some(name) = &self.time_zone else {
            return Some(TimeZone::try_system().unwrap_or(TimeZone::UTC));
        };
        TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok()
    }

    /// The settings of the resource's executor.
    pub(in crate::cli) fn settings(&self, resource: &str) -> SlurmSettings {
        let parties = self.parties.iter().map(|party| {
            let account = Account {
                user: party.user.clone(),
                account: party.account.clone(),
            };
            (party.name.clone(), account)
        });
        let turnaround = self.turnaround_seconds.unwrap_or(TURNAROUND_SECONDS);
        SlurmSettings {
            resource: resource.to_owned(),
            partition: self.partition.clone(),
            nodes: self.nodes(),
            attributes: BTreeMap::new(),
            programs: self.programs.clone(),
            configuration: self.configuration.clone(),
            work_dir: self.work_dir.clone(),
            helper: self.helper.clone(),
            account: Account {
                user: self.user.clone(),
                account: self.account.clone(),
            },
            parties: parties.collect::<BTreeMap<_, _>>(),
            policies: self.policies(),
            patience: Duration::from_secs(self.call_seconds.unwrap_or(CALL_SECONDS)),
            turnaround: i64::from(turnaround),
            dedicated: self
                .dedicated
                .as_deref()
                .and_then(expand_nodes)
                .unwrap_or_default(),
            lead: self.lead_minutes.map(|minutes| i64::from(minutes) * 60),
            changes_a_minute: self.changes_a_minute.unwrap_or(CHANGES_A_MINUTE),
            reclaim_after: self.reclaim_minutes.map(|minutes| i64::from(minutes) * 60),
            reserve_at_once: self.reserve_at_once.unwrap_or_default(),
            time_zone: self.configured_time_zone().unwrap_or(TimeZone::UTC),
        }
    }
}

/// Checks a name that becomes part of an argument of Slurm's programs.
fn check_slurm_name(key: &str, name: Option<&String>) -> Result<(), String> {
    let is_word = |name: &String| {
        (1..=NAME_LENGTH_MAX).contains(&name.len())
            && !name.starts_with('-')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    match name {
        Some(name) if !is_word(name) => Err(format!(
            "{key}: expected letters, digits, '-', '_' or '.', found {name:?}"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slurm(keys: &str) -> Slurm {
        let needed =
            "partition = \"batch\"\nnode_list = \"n[1-4]\"\nwork_dir = \"/shared\"\nuser = \"bespeak\"\n";
        toml::from_str(&format!("{needed}{keys}")).unwrap()
    }

    #[test]
    fn a_policy_is_read_for_the_resource_its_parties_and_its_applications() {
        let read = slurm(
            "qos = \"normal\"\nsbatch_options = [\"--nice=1\"]\n\
             [[party]]\nname = \"physics\"\nuser = \"alice\"\nqos = \"high\"\nreservation_options = [\"Features=fast\"]\n\
             [[application]]\nname = \"solver\"\nlicenses = \"solver:1\"\nsbatch_options = [\"--wckey=x\"]\n",
        );
        assert_eq!(read.check(), Ok(()));
        assert_eq!(read.applications().collect::<Vec<_>>(), ["solver"]);
        let policies = read.settings("cluster").policies;
        let both = policies.of("physics", "solver");
        assert_eq!(
            (both.qos.as_deref(), both.licenses.as_deref()),
            (Some("high"), Some("solver:1"))
        );
        assert_eq!(both.sbatch_options, ["--nice=1", "--wckey=x"]);
        assert_eq!(both.reservation_options, ["Features=fast"]);
        assert_eq!(policies.of("other", "").qos.as_deref(), Some("normal"));
    }

    #[test]
    fn a_time_zone_is_one_of_the_database_or_as_posix_writes_it() {
        let offset = |name: &str| {
            let settings = slurm(&format!("time_zone = \"{name}\"")).settings("cluster");
            settings
                .time_zone
                .to_offset(jiff::Timestamp::UNIX_EPOCH)
                .seconds()
        };
        assert_eq!(
            [
                offset("UTC"),
                offset("Asia/Tokyo"),
                offset("CET-1CEST,M3.5.0,M10.5.0/3")
            ],
            [0, 32_400, 3_600]
        );
        let wrong = slurm("time_zone = \"Berlin\"").check().unwrap_err();
        assert!(
            wrong.starts_with("time_zone: expected") && wrong.ends_with("found \"Berlin\""),
            "{wrong}"
        );
    }

    #[test]
    fn options_that_the_service_sets_are_refused_with_the_place_where_they_stand() {
        for (keys, begins) in [
            (
                "sbatch_options = [\"--partition=x\"]",
                "sbatch_options: expected no \"--partition=x\"",
            ),
            (
                "sbatch_options = [\"--qos=x\"]",
                "sbatch_options: expected no \"--qos=x\": the key qos",
            ),
            (
                "reservation_options = [\"Nodes=n1\"]",
                "reservation_options: expected no",
            ),
            ("constraint = \"a\\nb\"", "constraint: "),
            (
                "[[party]]\nname = \"a\"\nuser = \"a\"\nsbatch_options = [\"--wrap=ls\"]",
                "party[0].sbatch_options: ",
            ),
            (
                "[[application]]\nname = \"a\"\nsbatch_options = [\"--uid=0\"]",
                "application[0].sbatch_options: ",
            ),
            (
                "[[application]]\nname = \"a\"\n[[application]]\nname = \"a\"",
                "application[1].name: ",
            ),
        ] {
            let wrong = slurm(keys).check().unwrap_err();
            assert!(wrong.starts_with(begins), "{keys}: {wrong}");
        }
    }
}
