//! The operations that need rights on a cluster that an ordinary user does not have, as a vocabulary of fixed words with
//! typed fields. The service carries them out itself where it has the rights, or has the helper do it ([`super`]); both
//! go through [`carry_out`].
//!
//! No field is an argument of a program or a path: names of reservations and jobs, paths below `work_dir` and the users of
//! jobs are put together here from ids and from the configuration.
//!
//! [`carry_out`]: crate::slurm::helper::carry_out

use std::fs::File;
use std::path::PathBuf;

use domain::agreement::Run;
use domain::clock::Micros;
use scheduler::worded;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::slurm::settings::{SlurmSettings, slurm_name_of_run};
use crate::{JobSpec, SaveWork};

/// The name of the helper in errors.
pub(crate) const HELPER: &str = "bespeak-helper";

/// One thing to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Operation {
    /// Nothing: answers whether both sides mean the same cluster.
    Greet {
        partition: String,
        nodes: Vec<String>,
        work_dir: PathBuf,
    },
    /// Make a reservation.
    Reserve(ReserveOperation),
    /// Change the given properties of a reservation.
    Change(ChangeOperation),
    /// Delete a reservation.
    Release { id: Run },
    /// Submit a job that has its folder.
    Submit(Box<SubmitOperation>),
    /// Have Slurm judge a job without submitting it.
    Judge(DryRun),
    /// Make the reservation of the nodes that batch jobs never get, or change the one that exists.
    Dedicate { exists: bool },
    /// Delete that.
    Undedicate,
    /// Cancel jobs: ours, and the jobs in our reservations.
    Cancel { jobs: Vec<String> },
    /// Limit a job of ours to a number of minutes.
    Limit { job: String, minutes: i64 },
    /// Make a job's folder. The inputs of these names come as open files.
    Create {
        place: JobPlace,
        /// When its slot ends, in seconds.
        until: i64,
        save: Option<SaveWork>,
        inputs: Vec<String>,
    },
    /// Replace a record that the job looks at.
    Put {
        place: JobPlace,
        record: SharedFolderRecord,
    },
    /// Look whether something of a job's folder is there.
    Exists { place: JobPlace, part: Part },
    /// Open the output of the job for reading.
    Open { place: JobPlace, item: SharedFolderItem },
    /// List the files of the working folder.
    List { place: JobPlace },
    /// Remove a job's folder.
    Remove { id: Run },
    /// Remove the parts of a job's folder that were needed only while it ran.
    Pack { id: Run },
    /// Remove the drafts of jobs' folders that crashes have left.
    Clear,
    /// Write into `work_dir` and remove that.
    Touch,
    /// Submit the job that `bespeak cluster check` looks with; answers its number.
    Probe { token: Uuid },
    /// The output of that job, once it is written.
    Seen { token: Uuid },
    /// Remove that job's folder.
    Forget { token: Uuid },
}

/// A job's folder as the helper is told of it, which knows where such folders are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobPlace {
    /// The job.
    pub(crate) id: Run,
    /// The job that shares its working folder and outputs.
    pub(crate) common: Run,
    /// The party of the job.
    pub(crate) party: String,
}

/// The record that the job looks at while it runs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SharedFolderRecord {
    /// When its slot ends, in seconds.
    Until(i64),
    /// How it is told to save its work.
    Save(Option<SaveWork>),
}

/// The possible parts of a job's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// All of it.
    Folder,
    /// The mark that it has begun.
    Claim,
    /// The working folder.
    Work,
}

/// The output of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SharedFolderItem {
    /// The record of its begin.
    Started,
    /// The record of its end.
    Ended,
    /// The standard output.
    Stdout,
    /// The standard error output.
    Stderr,
    /// A file of the working folder.
    File(String),
}

/// A job to judge without submitting it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DryRun {
    pub(crate) party: String,
    pub(crate) application: String,
    pub(crate) nodes: u32,
    /// Its limit.
    pub(crate) minutes: i64,
}

/// A reservation to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReserveOperation {
    pub(crate) id: Run,
    /// In seconds; none for now.
    pub(crate) start: Option<i64>,
    pub(crate) end: i64,
    pub(crate) nodes: Vec<String>,
    /// The users that may use it.
    pub(crate) users: String,
    /// The party with the policy that gives its further options.
    pub(crate) party: String,
    pub(crate) application: String,
    pub(crate) flags: Vec<Flag>,
}

/// Changes of a reservation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeOperation {
    pub(crate) id: Run,
    /// In seconds.
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) nodes: Option<Vec<String>>,
    pub(crate) users: Option<String>,
    pub(crate) flag: Option<Flag>,
}

worded! {
    /// A flag of a reservation, with its word at Slurm.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub(crate) enum Flag {
        Overlap = "OVERLAP",
        IgnoreJobs = "IGNORE_JOBS",
    }
}

/// A job to submit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitOperation {
    pub(crate) place: JobPlace,
    /// The application of the catalogue that it runs.
    pub(crate) application: String,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) nodes: u32,
    pub(crate) slot_end: Micros,
    /// The number of slots of its agreement; none for work in one slot.
    pub(crate) pieces: Option<u32>,
    pub(crate) save: Option<SaveWork>,
}

impl ReserveOperation {
    /// The arguments of scontrol that makes it.
    pub(crate) fn arguments(&self, settings: &SlurmSettings) -> Vec<String> {
        let start = self.start.map_or_else(|| "now".to_owned(), instant_of_operation);
        let mut arguments = vec![
            "create".to_owned(),
            "reservation".to_owned(),
            format!(
                "ReservationName={}",
                slurm_name_of_run(&settings.resource, self.id)
            ),
            format!("StartTime={start}"),
            format!("EndTime={}", instant_of_operation(self.end)),
            format!("Nodes={}", self.nodes.join(",")),
            format!("Users={}", self.users),
        ];
        if !self.flags.is_empty() {
            let words: Vec<&str> = self.flags.iter().map(|flag| flag.word()).collect();
            arguments.push(format!("Flags={}", words.join(",")));
        }
        let policy = settings.policies.of(&self.party, &self.application);
        arguments.extend(policy.reservation_options);
        arguments
    }
}

impl ChangeOperation {
    /// Lets jobs in a reservation ignore the next one on its nodes.
    pub(crate) fn overlap(id: Run) -> Self {
        Self {
            id,
            start: None,
            end: None,
            nodes: None,
            users: None,
            flag: Some(Flag::Overlap),
        }
    }

    /// The arguments of scontrol that makes it.
    pub(crate) fn arguments(&self, settings: &SlurmSettings) -> Vec<String> {
        let named = format!(
            "ReservationName={}",
            slurm_name_of_run(&settings.resource, self.id)
        );
        let mut arguments = vec!["update".to_owned(), named];
        let (start, end) = (
            self.start.map(instant_of_operation),
            self.end.map(instant_of_operation),
        );
        let parts = [
            start.map(|at| format!("StartTime={at}")),
            end.map(|at| format!("EndTime={at}")),
            self.nodes
                .as_ref()
                .map(|nodes| format!("Nodes={}", nodes.join(","))),
            self.users.as_ref().map(|users| format!("Users={users}")),
            self.flag.map(|flag| format!("Flags+={}", flag.word())),
        ];
        arguments.extend(parts.into_iter().flatten());
        arguments
    }
}

impl SubmitOperation {
    /// The options of a job's submission.
    pub(crate) fn of(job: &JobSpec, save: Option<SaveWork>, place: JobPlace) -> Self {
        Self {
            place,
            application: job.application.clone(),
            program: job.program.clone(),
            arguments: job.arguments.clone(),
            nodes: job.nodes,
            slot_end: job.slot_end,
            pieces: job.piece.map(|piece| piece.of),
            save,
        }
    }
}

impl Operation {
    /// The program of Slurm that does it, or the helper itself: under that it is counted.
    pub(crate) fn program(&self) -> &'static str {
        match self {
            Self::Reserve(_)
            | Self::Change(_)
            | Self::Release { .. }
            | Self::Dedicate { .. }
            | Self::Undedicate
            | Self::Limit { .. } => "scontrol",
            Self::Submit(_) | Self::Judge(_) | Self::Probe { .. } => "sbatch",
            Self::Cancel { .. } => "scancel",
            _ => HELPER,
        }
    }
}

/// The result of an operation.
#[derive(Debug)]
pub(crate) struct OperationResult {
    pub(crate) said: String,
    pub(crate) file: Option<File>,
}

/// The word for yes.
pub(crate) const YES: &str = "yes";

/// An instant as Slurm reads it in an operation, in UTC.
fn instant_of_operation(second: i64) -> String {
    let at = jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::MAX);
    at.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}
