//! Work with a length that is to be predicted, and the past executions that are like it.

use domain::agreement::{Job, RunOutcome};
use domain::clock::{Micros, second_after};
use domain::past::PastExecution;
use scheduler::Seconds;

/// The length that work which was stopped at its slot's end is taken to need, as a multiple of its slot, where slots are sized:
/// only its least length is known.
const STOPPED_FACTOR: f64 = 2.0;

/// Work with a length that is to be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work<'a> {
    /// Name in the catalogue.
    pub application: &'a str,
    /// Version in the catalogue.
    pub version: Option<&'a str>,
    /// Its arguments; none where they are not known.
    pub arguments: Option<&'a [String]>,
    /// Its party; none where that is not known.
    pub party: Option<&'a str>,
    /// Where it is to run; none where that is not decided.
    pub resource: Option<&'a str>,
    /// On how many nodes; none where that is not known.
    pub nodes: Option<u32>,
    /// Bytes to bring from elsewhere before its start; none for as many as its executions had in the mean.
    pub input_bytes: Option<u64>,
    /// Bytes to send elsewhere after its end; the same.
    pub output_bytes: Option<u64>,
    /// Bytes of its files that are uploaded to the service, which resources that are other machines get copies of.
    pub uploaded_bytes: u64,
}

/// How long the nodes are to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hold {
    /// For as long as the work takes, transfers and waits inside, with a probability in millionths.
    Sized(u32),
    /// For so many seconds on every resource, as it was stated.
    Stated(Seconds),
    /// For so many seconds at the reference rate, by the requester's law of scaling.
    ByLaw(Seconds),
}

/// The properties that make runs alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    Application(String),
    Version(String, String),
    /// On resources of one kind.
    Kind(String, u32),
    Resource(String, String),
    Party(String, String),
    Arguments(String, Vec<String>),
    Exactly(String, Vec<String>, u32),
    /// The same on one resource.
    There(String, Vec<String>, u32, String),
}

impl<'a> Work<'a> {
    /// Work of which the application alone is known.
    pub const fn of(application: &'a str) -> Self {
        Self {
            application,
            version: None,
            arguments: None,
            party: None,
            resource: None,
            nodes: None,
            input_bytes: None,
            output_bytes: None,
            uploaded_bytes: 0,
        }
    }

    /// That of a job of a party on some nodes.
    pub fn of_job(party: &'a str, job: &'a Job, nodes: u32) -> Self {
        Self {
            version: job.version.as_deref(),
            arguments: Some(&job.arguments),
            party: Some(party),
            nodes: Some(nodes),
            input_bytes: job.fetched().next().map_or(Some(0), |_| job.input_bytes()),
            output_bytes: job.sent().next().map_or(Some(0), |_| job.output_bytes()),
            uploaded_bytes: job.uploaded_bytes,
            ..Self::of(&job.application)
        }
    }

    /// That of a past execution. The bytes that it wrote were not known before.
    pub(super) fn of_past(past: &'a PastExecution) -> Self {
        let execution = &past.execution;
        Self {
            application: &execution.application,
            version: execution.version.as_deref(),
            arguments: Some(&execution.arguments),
            party: Some(&past.party),
            resource: Some(&execution.resource),
            nodes: Some(execution.nodes),
            input_bytes: u64::try_from(execution.moved_in).ok(),
            output_bytes: None,
            uploaded_bytes: 0,
        }
    }

    /// Its likenesses on a resource of a kind, from any run of the application to one with the same arguments on as many nodes
    /// there.
    pub(super) fn levels(&self, kind: Option<u32>) -> Vec<Likeness> {
        let name = || self.application.to_owned();
        let mut levels = vec![Likeness::Application(name())];
        levels.extend(
            self.version
                .map(|version| Likeness::Version(name(), version.to_owned())),
        );
        levels.extend(kind.map(|kind| Likeness::Kind(name(), kind)));
        levels.extend(
            self.resource
                .map(|there| Likeness::Resource(name(), there.to_owned())),
        );
        levels.extend(self.party.map(|party| Likeness::Party(name(), party.to_owned())));
        if let Some(arguments) = self.arguments {
            levels.push(Likeness::Arguments(name(), arguments.to_vec()));
            if let Some(nodes) = self.nodes {
                levels.push(Likeness::Exactly(name(), arguments.to_vec(), nodes));
                let there =
                    |there: &str| Likeness::There(name(), arguments.to_vec(), nodes, there.to_owned());
                levels.extend(self.resource.map(there));
            }
        }
        levels
    }

    /// The group of statements that it is calibrated with.
    pub(super) fn group(&self) -> Likeness {
        let name = self.application.to_owned();
        match self.resource {
            Some(resource) => Likeness::Resource(name, resource.to_owned()),
            None => Likeness::Application(name),
        }
    }
}

/// The length of work, as far as one execution tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WorkLength {
    /// Seconds of its run.
    pub(super) run: f64,
    /// Seconds from the start of its slot to the end of the run: the wait for its process counts, too.
    pub(super) seconds: Seconds,
    /// Seconds from the start of its slot to the end of its transfers.
    pub(super) whole: f64,
    /// Whether it was stopped before it was over.
    pub(super) stopped: bool,
}

impl WorkLength {
    /// None of one that was ended from outside.
    pub(super) fn of(past: &PastExecution) -> Option<Self> {
        let execution = &past.execution;
        let stopped = match execution.outcome {
            RunOutcome::Completed | RunOutcome::Failed { .. } => false,
            RunOutcome::Killed => true,
            RunOutcome::Checkpointed
            | RunOutcome::Terminated
            | RunOutcome::Exceeded { .. }
            | RunOutcome::Unstaged
            | RunOutcome::Lost => return None,
        };
        let (queue, run) = (execution.queue_time.max(0), execution.run_time.max(0));
        let moved = execution.transfer_in.saturating_add(execution.transfer_out);
        let seconds = |micros: Micros| second_after(micros).seconds().max(1);
        Some(Self {
            run: as_seconds(run),
            seconds: seconds(queue.saturating_add(run)),
            whole: as_seconds(queue) + as_seconds(run) + as_seconds(moved),
            stopped,
        })
    }

    /// A time that a slot for such work should have had.
    pub(super) fn needed(&self, seconds: f64) -> f64 {
        if self.stopped {
            STOPPED_FACTOR * seconds
        } else {
            seconds
        }
    }

    /// The real length with which an estimate is compared. For work that was stopped it is known by how much it exceeded its
    /// estimate, and nothing where it did not.
    pub(super) fn real(&self, estimated: Seconds) -> Seconds {
        if self.stopped {
            self.seconds.max(estimated)
        } else {
            self.seconds
        }
    }
}

/// Seconds as a number.
#[expect(
    clippy::cast_precision_loss,
    reason = "run times are far below 2⁵³ microseconds"
)]
pub(super) fn as_seconds(micros: Micros) -> f64 {
    micros.max(0) as f64 / domain::clock::MICROS_PER_SECOND as f64
}
