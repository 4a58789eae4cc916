//! The operations that need rights on a cluster that an ordinary user does not have, as a vocabulary of fixed words with
//! typed fields. The service carries them out itself where it has the rights, or has the helper do it ([`super`]); both
//! go through [`carry_out`].
//!
//! No field is an argument of a program or a path: names of reservations and jobs, paths below `work_dir` and the users of
//! jobs are put together here from ids and from the configuration.
//!
//! [`carry_out`]: SlurmExecutor::carry_out

use std::fs::File;
use std::path::{Path, PathBuf};

use scheduler::Time;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::agreement::Run;
use crate::catalogue::JobLimits;
use crate::clock::Micros;
use crate::execution::files::tree;
use crate::execution::slurm::SlurmExecutor;
use crate::execution::slurm::commands::{Error, not_understood};
use crate::execution::slurm::helper::HELPER;
use crate::execution::slurm::jobs::disk;
use crate::execution::slurm::jobs::dry_run::DryRun;
use crate::execution::slurm::jobs::shared_folder::{Item, Part, Place, Record, SharedFolder};
use crate::execution::slurm::reservations::change::instant;
use crate::execution::{ExecutionError, JobSpec, PieceSpec, SaveWork};

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
    Reserve(Reservation),
    /// Change the given properties of a reservation.
    Change(Change),
    /// Delete a reservation.
    Release { id: Run },
    /// Submit a job that has its folder.
    Submit(Box<Submission>),
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
        place: Place,
        /// When its slot ends, in seconds.
        until: i64,
        save: Option<SaveWork>,
        inputs: Vec<String>,
    },
    /// Replace a record that the job looks at.
    Put { place: Place, record: Record },
    /// Look whether something of a job's folder is there.
    Exists { place: Place, part: Part },
    /// Open the output of the job for reading.
    Open { place: Place, item: Item },
    /// List the files of the working folder.
    List { place: Place },
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

/// A reservation to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reservation {
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
pub(crate) struct Change {
    pub(crate) id: Run,
    /// In seconds.
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) nodes: Option<Vec<String>>,
    pub(crate) users: Option<String>,
    pub(crate) flag: Option<Flag>,
}

/// A flag of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Flag {
    Overlap,
    IgnoreJobs,
}

impl Flag {
    fn word(self) -> &'static str {
        match self {
            Self::Overlap => "OVERLAP",
            Self::IgnoreJobs => "IGNORE_JOBS",
        }
    }
}

/// A job to submit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Submission {
    pub(crate) place: Place,
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

impl Submission {
    /// The options of a job's submission.
    pub(crate) fn of(job: &JobSpec, save: Option<SaveWork>, place: Place) -> Self {
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

    fn job(&self) -> JobSpec {
        let Run {
            agreement,
            slot,
            attempt,
        } = self.place.id;
        JobSpec {
            agreement,
            party: self.place.party.clone(),
            application: self.application.clone(),
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            inputs: Vec::new(),
            nodes: self.nodes,
            slot_end: self.slot_end,
            output_limit: 0,
            limits: JobLimits::default(),
            piece: self.pieces.map(|of| PieceSpec {
                number: slot,
                of,
                save: self.save,
            }),
            restarts: attempt,
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
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) said: String,
    pub(crate) file: Option<File>,
}

impl From<String> for Done {
    fn from(said: String) -> Self {
        Self { said, file: None }
    }
}

/// The word for yes.
pub(crate) const YES: &str = "yes";

fn answer(is_so: bool) -> Done {
    Done::from(if is_so { YES } else { "no" }.to_owned())
}

impl SlurmExecutor {
    /// Carries out an operation of Slurm that may need rights, or has the helper do it. Returns the answer.
    pub(crate) fn act(&self, operation: Operation) -> Result<String, Error> {
        let done = match &self.helper {
            None => self.carry_out(operation, Vec::new()),
            Some(helper) => helper.have_done(&operation, &self.slurm),
        };
        match done {
            Ok(done) => Ok(done.said),
            Err(ExecutionError::Slurm(error)) => Err(error),
            Err(other) => Err(not_understood(HELPER, &other.to_string())),
        }
    }

    /// Does it here. The operation has been checked, and needs the rights of this process.
    pub(crate) fn carry_out(
        &self,
        operation: Operation,
        mut files: Vec<File>,
    ) -> Result<Done, ExecutionError> {
        let done = match operation {
            Operation::Greet { .. } => String::new(),
            Operation::Reserve(reservation) => self.slurm.call("scontrol", self.creation(&reservation))?,
            Operation::Change(change) => self.slurm.call("scontrol", self.update_of(&change))?,
            Operation::Release { id } => {
                let named = format!("ReservationName={}", self.name_of(id));
                self.slurm.call("scontrol", ["delete", &named])?
            }
            Operation::Submit(submission) => {
                let work = self.place_of(&submission.place)?;
                if !work.exists(Part::Folder).map_err(look_into(&work))? {
                    return Err(look_into(&work)(std::io::ErrorKind::NotFound.into()));
                }
                self.submit(&submission.job(), submission.save, &work)?;
                String::new()
            }
            Operation::Judge(dry) => self.run_dry(&dry)?,
            Operation::Dedicate { exists } => self.dedicate(exists)?,
            Operation::Undedicate => self.undedicate()?,
            Operation::Cancel { jobs } => self.slurm.call("scancel", jobs)?,
            Operation::Limit { job, minutes } => {
                let (of, limit) = (format!("JobId={job}"), format!("TimeLimit={minutes}"));
                self.slurm.call("scontrol", ["update", &of, &limit])?
            }
            Operation::Create {
                place,
                until,
                save,
                inputs,
            } => {
                let inputs = inputs.into_iter().zip(files.drain(..)).collect();
                return Ok(answer(self.place_of(&place)?.make(until, save, inputs)?));
            }
            Operation::Put { place, record } => {
                self.place_of(&place)?.put(record)?;
                String::new()
            }
            Operation::Exists { place, part } => {
                let work = self.place_of(&place)?;
                return Ok(answer(work.exists(part).map_err(look_into(&work))?));
            }
            Operation::Open { place, item } => {
                let work = self.place_of(&place)?;
                let file = work.open(&item).map_err(look_into(&work))?;
                return Ok(Done {
                    file,
                    ..Done::default()
                });
            }
            Operation::List { place } => {
                let work = self.place_of(&place)?;
                let names = work.names().map_err(look_into(&work))?;
                let names: Vec<&str> = names.iter().filter_map(|name| name.to_str()).collect();
                serde_json::json!(names).to_string()
            }
            Operation::Remove { id } => {
                let path = self.settings.work_dir.join(id.to_string());
                tree::remove(&path).map_err(ExecutionError::system("remove", path))?;
                String::new()
            }
            Operation::Pack { id } => {
                let path = self.settings.work_dir.join(id.to_string());
                disk::pack(&path).map_err(ExecutionError::system("pack", path))?;
                String::new()
            }
            Operation::Clear => {
                disk::clear(&self.settings.work_dir)?;
                String::new()
            }
            Operation::Touch => {
                self.touch_shared_folder()?;
                String::new()
            }
            Operation::Probe { token } => self.submit_probe(token)?,
            Operation::Seen { token } => self.seen_by_probe(token)?,
            Operation::Forget { token } => {
                let path = self.probe_folder(token);
                tree::remove(&path).map_err(ExecutionError::system("remove", path))?;
                String::new()
            }
        };
        Ok(done.into())
    }

    fn creation(&self, of: &Reservation) -> Vec<String> {
        let start = of.start.map_or_else(|| "now".to_owned(), at);
        let mut arguments = vec![
            "create".to_owned(),
            "reservation".to_owned(),
            format!("ReservationName={}", self.name_of(of.id)),
            format!("StartTime={start}"),
            format!("EndTime={}", at(of.end)),
            format!("Nodes={}", of.nodes.join(",")),
            format!("Users={}", of.users),
        ];
        if !of.flags.is_empty() {
            let words: Vec<&str> = of.flags.iter().map(|flag| flag.word()).collect();
            arguments.push(format!("Flags={}", words.join(",")));
        }
        let policy = self.settings.policies.of(&of.party, &of.application);
        arguments.extend(policy.reservation_options);
        arguments
    }

    fn update_of(&self, change: &Change) -> Vec<String> {
        let named = format!("ReservationName={}", self.name_of(change.id));
        let mut arguments = vec!["update".to_owned(), named];
        arguments.extend(change.start.map(|start| format!("StartTime={}", at(start))));
        arguments.extend(change.end.map(|end| format!("EndTime={}", at(end))));
        let nodes = change.nodes.as_ref();
        arguments.extend(nodes.map(|nodes| format!("Nodes={}", nodes.join(","))));
        arguments.extend(change.users.as_ref().map(|users| format!("Users={users}")));
        arguments.extend(change.flag.map(|flag| format!("Flags+={}", flag.word())));
        arguments
    }

    /// A job's folder as this process reaches it.
    fn place_of(&self, place: &Place) -> Result<SharedFolder, ExecutionError> {
        let owner = self.owner_of(&place.party)?;
        let work_dir = &self.settings.work_dir;
        let common = Some(work_dir.join(place.common.to_string()));
        Ok(SharedFolder::of(work_dir, place.id, common, owner))
    }

    /// The folder of the job by which a cluster is checked.
    pub(crate) fn probe_folder(&self, token: Uuid) -> PathBuf {
        let name = format!(".check-{}", token.simple());
        self.settings.work_dir.join(Path::new(&name))
    }
}

fn at(seconds: i64) -> String {
    instant(Time(seconds))
}

fn look_into(work: &SharedFolder) -> impl FnOnce(std::io::Error) -> ExecutionError + use<> {
    ExecutionError::system("look into", work.path().to_owned())
}
