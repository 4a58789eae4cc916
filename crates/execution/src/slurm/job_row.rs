//! One job as Slurm lists it.

use scheduler::Time;

/// One job that Slurm knows of, also one that ended a while ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobRow {
    /// Its number, which Slurm may use again.
    pub(crate) id: String,
    pub(crate) state: JobState,
    /// The reservation that it runs in.
    pub(crate) reservation: Option<String>,
    /// The nodes that it has.
    pub(crate) nodes: Vec<String>,
    pub(crate) start: Option<Time>,
    /// When it ended, or will at the latest; `None` where that is open.
    pub(crate) end: Option<Time>,
    /// Its user.
    pub(crate) user: u32,
    /// Whether it has no nodes because its own user has put it off.
    pub(crate) put_off: bool,
    /// The name that it was given.
    pub(crate) name: String,
}

/// The mark that distinguishes a job that has had nodes from all other jobs. Numbers are given again when the controller
/// has forgotten, in a crash, which jobs had them: its number, its user, and when it got its nodes.
pub(crate) type JobKey = (String, u32, Time);

impl JobRow {
    /// The mark that distinguishes it from others; none before it has its nodes.
    pub(crate) fn key(&self) -> Option<JobKey> {
        let start = self.start.filter(|_| !self.nodes.is_empty())?;
        Some((self.id.clone(), self.user, start))
    }

    /// Whether the job has nodes. A completing job counts as ended.
    pub(crate) fn is_on_nodes(&self) -> bool {
        matches!(self.state, JobState::Starting | JobState::Running)
    }

    /// Whether it is in a reservation of this name and not over.
    pub(crate) fn is_inside(&self, reservation: &str) -> bool {
        !self.state.is_final() && self.reservation.as_deref() == Some(reservation)
    }

    /// Whether its own user makes it wait, or has put it into another reservation than the one of its submission. It is in
    /// none, too, once an administrator has removed that.
    pub(crate) fn is_put_off(&self, reservation: &str) -> bool {
        let elsewhere = self
            .reservation
            .as_deref()
            .is_some_and(|one_reservation| one_reservation != reservation);
        self.put_off || self.state == JobState::Waiting && elsewhere
    }

    /// Seconds that it has had its nodes, once it has ended.
    pub(crate) fn lasted(&self) -> i64 {
        let pair = self.start.zip(self.end).filter(|_| !self.nodes.is_empty());
        pair.map_or(0, |(start, end)| end - start)
    }
}

/// How a job stands, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobState {
    /// It has no nodes yet.
    Waiting,
    /// It has nodes, which are being made ready for it.
    Starting,
    /// It has nodes.
    Running,
    /// It has come to its end, and its nodes are being cleared.
    Completing,
    /// It ended by itself with status 0.
    Completed,
    /// It ended by itself with another status, or because it wanted more than it was given.
    Failed,
    /// Its time was up.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// It went with its node, or was pushed aside.
    Lost,
}

impl JobState {
    /// The state that a word of squeue names. A word that is not known is one of a job that may run.
    pub(super) fn of(word: &str) -> Self {
        match word {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "RESV_DEL_HOLD" | "SPECIAL_EXIT" => {
                Self::Waiting
            }
            "CONFIGURING" => Self::Starting,
            "COMPLETING" => Self::Completing,
            "COMPLETED" => Self::Completed,
            "FAILED" | "OUT_OF_MEMORY" => Self::Failed,
            "TIMEOUT" | "DEADLINE" => Self::TimedOut,
            "CANCELLED" => Self::Cancelled,
            "NODE_FAIL" | "BOOT_FAIL" | "PREEMPTED" | "LAUNCH_FAILED" | "RECONFIG_FAIL" | "REVOKED" => {
                Self::Lost
            }
            _ => Self::Running,
        }
    }

    /// Whether nothing of it runs any more.
    pub(crate) fn is_final(self) -> bool {
        !matches!(
            self,
            Self::Waiting | Self::Starting | Self::Running | Self::Completing
        )
    }
}
