//! The job to run: the part of a job that is decided before it starts.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use domain::agreement::Run;
use domain::catalogue::{CheckpointSignal, Isolation, JobLimits};
use domain::clock::{MICROS_PER_SECOND, Micros, second_of};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The least time between the start of a job and the signal to save its work, in microseconds: a job with less time is not
/// worth the danger that it saves nothing. The script of a cluster's jobs has it in milliseconds.
pub(crate) const WORTH_STARTING: Micros = MICROS_PER_SECOND;

/// The variable in a job's environment that marks its processes, whichever groups and sessions they made for themselves.
pub(crate) const MARK: &str = "BESPEAK_AGREEMENT";

/// The data of a job for an executor: everything that it needs, so that it can be followed when the configuration has
/// changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The agreement that it serves. There is never more than one job of an agreement, or of a slot, at a time.
    pub agreement: Uuid,
    /// The party that it belongs to.
    pub party: String,
    /// The application of the catalogue that it runs.
    pub application: String,
    /// The program, by its absolute path.
    pub program: PathBuf,
    /// Its arguments, checked against the catalogue.
    pub arguments: Vec<String>,
    /// The files that it reads, by absolute path; it finds them in its working folder by their names.
    pub inputs: Vec<PathBuf>,
    /// The other files that are put into its working folder, under names of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staged: Vec<StagedInput>,
    /// Nodes that it may use.
    pub nodes: u32,
    /// The numbers of the processors that it may run on; none where its nodes are not bound to some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<usize>,
    /// When it is stopped, in microseconds of the wall clock.
    pub slot_end: Micros,
    /// Bytes kept of each of its two outputs; the rest is dropped.
    pub output_limit: u64,
    /// Its other limits; `None` is no limit.
    #[serde(default)]
    pub limits: JobLimits,
    /// What it sees of this machine besides its own files; none where it runs as the service does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Which slot of the agreement it serves; none for work in one slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece: Option<PieceSpec>,
    /// How often work of the agreement was lost before: each time has a job of its own.
    #[serde(default)]
    pub restarts: u32,
}

/// A file that a job is given under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedInput {
    /// Its name in the working folder.
    pub name: String,
    /// The uploaded file, by absolute path; none where it has been brought into the job's folder, and is moved from there.
    pub from: Option<PathBuf>,
    /// Bytes that it has.
    pub bytes: u64,
    /// Whether it is sent after the job, or kept as it has made it.
    pub returns: bool,
}

/// The data for a job about the slot that it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceSpec {
    /// Its number, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
    /// How it is told to save its work before its slot ends, as was known when it was started: the last slot was not. It may
    /// change while it runs ([`save_before_end`](crate::Executor::save_before_end)).
    pub save: Option<SaveWork>,
}

/// How a job is told to save its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveWork {
    /// By this signal,
    pub signal: CheckpointSignal,
    /// this number of microseconds before its slot ends.
    pub grace: Micros,
}

impl JobSpec {
    /// Its run.
    pub fn run(&self) -> Run {
        Run {
            agreement: self.agreement,
            slot: self.piece.map_or(1, |piece| piece.number),
            attempt: self.restarts,
        }
    }

    /// Bytes of the files that it reads, as far as they are there.
    pub(crate) fn input_bytes(&self) -> u64 {
        let inputs = self.inputs.iter().filter_map(|input| input.metadata().ok());
        let staged = self.staged.iter().map(|file| file.bytes);
        inputs.map(|meta| meta.len()).chain(staged).sum()
    }

    /// The files that lie elsewhere, with their names in its working folder.
    pub(crate) fn uploads(&self) -> impl Iterator<Item = (&OsStr, &PathBuf)> {
        let inputs = self
            .inputs
            .iter()
            .map(|input| (input.file_name().unwrap_or_default(), input));
        let staged = self.staged.iter();
        inputs.chain(staged.filter_map(|file| Some((OsStr::new(&file.name), file.from.as_ref()?))))
    }

    /// The names in its working folder of the files that it is given to read.
    pub(crate) fn given(&self) -> impl Iterator<Item = &OsStr> {
        let inputs = self
            .inputs
            .iter()
            .map(|input| input.file_name().unwrap_or_default());
        inputs.chain(self.staged.iter().map(|file| OsStr::new(&file.name)))
    }

    /// The names of given files of which nothing is to come back.
    pub(crate) fn given_for_good(&self) -> Vec<OsString> {
        let returns = |name: &OsStr| {
            self.staged
                .iter()
                .any(|file| file.returns && OsStr::new(&file.name) == name)
        };
        self.given()
            .filter(|name| !returns(name))
            .map(OsStr::to_owned)
            .collect()
    }
}

/// The part of the environment of a run's program that is the same wherever it runs, with the number of slots of work in several.
pub(crate) fn environment_of_job_spec(
    run: Run,
    nodes: u32,
    slot_end: Micros,
    pieces: Option<u32>,
) -> Vec<(&'static str, String)> {
    let mut environment = vec![
        ("LANG", "C.UTF-8".to_owned()),
        (MARK, run.agreement.to_string()),
        ("BESPEAK_NODES", nodes.to_string()),
        ("BESPEAK_SLOT_END", second_of(slot_end).seconds().to_string()),
    ];
    if let Some(pieces) = pieces {
        environment.push(("BESPEAK_PIECE", run.slot.to_string()));
        environment.push(("BESPEAK_PIECES", pieces.to_string()));
    }
    environment
}
