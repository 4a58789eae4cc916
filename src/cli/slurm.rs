//! `[resource.slurm]` of the configuration: the cluster behind a resource of the kind "slurm".

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::execution::slurm::{Account, Settings, expand_nodes};

/// Seconds that each of Slurm's commands may take.
const CALL_SECONDS: u64 = 10;
/// Commands that take longer than that hold up everything else on the cluster.
const CALL_SECONDS_MAX: u64 = 300;
/// Seconds that a node is left alone after others' use: Slurm kills up to half a minute late.
const TURNAROUND_SECONDS: u32 = 30;
/// More than an hour between two uses of a node is a slip of the pen.
const TURNAROUND_SECONDS_MAX: u32 = 3_600;
/// Whoever waits longer than a day for a job may as well wait for ever.
const RECLAIM_MINUTES_MAX: u32 = 1_440;
/// Characters in the name of a user, account or partition.
const NAME_LENGTH_MAX: usize = 64;

/// The keys as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slurm {
    partition: String,
    /// The nodes, in Slurm's way to write them.
    node_list: String,
    /// The folder of Slurm's programs, where they are not among the system's.
    programs: Option<PathBuf>,
    /// Slurm's configuration file; where Slurm looks by itself without.
    configuration: Option<PathBuf>,
    /// A folder that the service shares with the nodes.
    work_dir: PathBuf,
    /// The socket of the helper that does what needs rights.
    helper: Option<PathBuf>,
    /// Whom the jobs of parties belong to that are not named.
    user: String,
    account: Option<String>,
    call_seconds: Option<u64>,
    turnaround_seconds: Option<u32>,
    reclaim_minutes: Option<u32>,
    #[serde(default, rename = "party")]
    parties: Vec<Party>,
}

/// Whom the jobs of one party belong to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Party {
    name: String,
    user: String,
    account: Option<String>,
}

impl Slurm {
    /// Checks the keys; the one that is wrong and what was expected, if one is.
    pub(super) fn check(&self) -> Result<(), String> {
        let names = [
            ("partition", Some(&self.partition)),
            ("user", Some(&self.user)),
            ("account", self.account.as_ref()),
        ];
        for (key, name) in names {
            word(key, name)?;
        }
        let nodes = self.nodes();
        let distinct: BTreeSet<_> = nodes.iter().collect();
        if nodes.is_empty() || distinct.len() < nodes.len() {
            return Err(format!(
                "node_list: expected the names of nodes, each once, as in \"n[01-16],big1\", found {:?}",
                self.node_list
            ));
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
        if let Some(seconds) = self.call_seconds
            && !(1..=CALL_SECONDS_MAX).contains(&seconds)
        {
            return Err(format!(
                "call_seconds: expected 1 to {CALL_SECONDS_MAX}, found {seconds}"
            ));
        }
        if let Some(seconds) = self.turnaround_seconds
            && seconds > TURNAROUND_SECONDS_MAX
        {
            return Err(format!(
                "turnaround_seconds: expected 0 to {TURNAROUND_SECONDS_MAX}, found {seconds}"
            ));
        }
        if let Some(minutes) = self.reclaim_minutes
            && !(1..=RECLAIM_MINUTES_MAX).contains(&minutes)
        {
            return Err(format!(
                "reclaim_minutes: expected 1 to {RECLAIM_MINUTES_MAX}, or none for never, found {minutes}"
            ));
        }
        let mut parties = BTreeSet::new();
        for (index, party) in self.parties.iter().enumerate() {
            let wrong = |why: String| format!("party[{index}].{why}");
            word("user", Some(&party.user)).map_err(wrong)?;
            word("account", party.account.as_ref()).map_err(wrong)?;
            if party.name.is_empty() || !parties.insert(&party.name) {
                return Err(wrong(format!(
                    "name: expected the name of a party that is not named before, found {:?}",
                    party.name
                )));
            }
        }
        Ok(())
    }

    /// The names of the nodes.
    pub(super) fn nodes(&self) -> Vec<String> {
        expand_nodes(&self.node_list).unwrap_or_default()
    }

    /// How many nodes there are.
    pub(super) fn capacity(&self) -> u32 {
        u32::try_from(self.nodes().len()).unwrap_or(u32::MAX)
    }

    /// What the executor of the resource is set to.
    pub(super) fn settings(&self, resource: &str) -> Settings {
        let parties = self.parties.iter().map(|party| {
            let account = Account {
                user: party.user.clone(),
                account: party.account.clone(),
            };
            (party.name.clone(), account)
        });
        let turnaround = self.turnaround_seconds.unwrap_or(TURNAROUND_SECONDS);
        Settings {
            resource: resource.to_owned(),
            partition: self.partition.clone(),
            nodes: self.nodes(),
            programs: self.programs.clone(),
            configuration: self.configuration.clone(),
            work_dir: self.work_dir.clone(),
            helper: self.helper.clone(),
            account: Account {
                user: self.user.clone(),
                account: self.account.clone(),
            },
            parties: parties.collect::<BTreeMap<_, _>>(),
            patience: Duration::from_secs(self.call_seconds.unwrap_or(CALL_SECONDS)),
            turnaround: i64::from(turnaround),
            reclaim_after: self.reclaim_minutes.map(|minutes| i64::from(minutes) * 60),
        }
    }
}

/// Checks a name that becomes part of an argument of Slurm's programs.
fn word(key: &str, name: Option<&String>) -> Result<(), String> {
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
