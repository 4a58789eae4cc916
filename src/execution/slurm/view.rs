//! What Slurm says of itself, read from fixed formats: the fields are named in the call, in an order that is ours, and
//! times are seconds. A line that is not as asked for is an error, never a guess.

use scheduler::{Interval, Time};

use super::command::{Error, Slurm, not_understood};
use super::hostlist::expand;

/// One job that Slurm knows of, also one that ended a while ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobRow {
    /// Its number, which Slurm may use again.
    pub(super) id: String,
    pub(super) state: JobState,
    /// The reservation that it runs in.
    pub(super) reservation: Option<String>,
    /// The nodes that it has.
    pub(super) nodes: Vec<String>,
    pub(super) start: Option<Time>,
    /// When it ended, or will at the latest; `None` where that is open.
    pub(super) end: Option<Time>,
    /// Whose it is.
    pub(super) user: u32,
    /// The name that it was given.
    pub(super) name: String,
}

/// How a job stands, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobState {
    /// It has no nodes yet.
    Waiting,
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
    /// Somebody cancelled it.
    Cancelled,
    /// It went with its node, or was pushed aside.
    Lost,
}

impl JobState {
    /// The state that a word of squeue names. A word that is not known is one of a job that may run.
    fn of(word: &str) -> Self {
        match word {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "RESV_DEL_HOLD" | "SPECIAL_EXIT" => {
                Self::Waiting
            }
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
    pub(super) fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running | Self::Completing)
    }
}

/// One reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReservationRow {
    pub(super) name: String,
    pub(super) interval: Interval,
    pub(super) nodes: Vec<String>,
    /// Who may use it, as Slurm writes it.
    pub(super) users: String,
    /// Whether jobs in it may last into the next reservation of its nodes.
    pub(super) overlaps: bool,
}

/// The longest that a job may last on the nodes of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartitionRow {
    pub(super) name: String,
    /// In seconds; `None` is for ever.
    pub(super) longest_job: Option<i64>,
    pub(super) nodes: Vec<String>,
}

impl Slurm {
    /// Every job that the controller has not forgotten.
    pub(super) fn jobs(&self) -> Result<Vec<JobRow>, Error> {
        // The name last: it alone may have the separator in it.
        let format = "%i|%T|%v|%N|%S|%e|%U|%j";
        let listed = self.call("squeue", ["-a", "-h", "-t", "all", "-o", format])?;
        each_line("squeue", &listed, job_of)
    }

    /// Every reservation.
    pub(super) fn reservations(&self) -> Result<Vec<ReservationRow>, Error> {
        let shown = self.call("scontrol", ["-o", "show", "reservation"])?;
        if shown.trim().is_empty() || shown.starts_with("No reservations in the system") {
            return Ok(Vec::new());
        }
        each_line("scontrol", &shown, reservation_of)
    }

    /// The nodes of a partition and the word for the state of each.
    pub(super) fn node_states(&self, partition: &str) -> Result<Vec<(String, String)>, Error> {
        let listed = self.call("sinfo", ["-h", "-N", "-p", partition, "-o", "%N|%T"])?;
        each_line("sinfo", &listed, |line| {
            let (node, state) = line.split_once('|')?;
            Some((node.to_owned(), state.to_owned()))
        })
    }

    /// Every partition, once or several times, with all or some of its nodes.
    pub(super) fn partitions(&self) -> Result<Vec<PartitionRow>, Error> {
        let listed = self.call("sinfo", ["-a", "-h", "-o", "%R|%l|%N"])?;
        each_line("sinfo", &listed, |line| {
            let [name, limit, nodes] = fields(line)?;
            Some(PartitionRow {
                name: name.to_owned(),
                longest_job: limit_of(limit)?,
                nodes: expand(nodes)?,
            })
        })
    }
}

/// Reads each line; one that is not as expected is an error with the line.
fn each_line<T>(
    program: &'static str,
    text: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Error> {
    text.lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .map(|line| read(line).ok_or_else(|| not_understood(program, line)))
        .collect()
}

/// The fields of a line, of which only the last may have a separator in it.
fn fields<const N: usize>(line: &str) -> Option<[&str; N]> {
    line.splitn(N, '|').collect::<Vec<_>>().try_into().ok()
}

fn job_of(line: &str) -> Option<JobRow> {
    let [id, state, reservation, nodes, start, end, user, name] = fields(line)?;
    Some(JobRow {
        id: id.to_owned(),
        state: JobState::of(state),
        reservation: Some(reservation.to_owned())
            .filter(|name| !matches!(name.as_str(), "" | "(null)" | "N/A")),
        nodes: nodes_of(nodes)?,
        start: instant(start)?,
        end: instant(end)?,
        user: user.parse().ok()?,
        name: name.to_owned(),
    })
}

fn reservation_of(line: &str) -> Option<ReservationRow> {
    let value = |key: &str| {
        let mut pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
    };
    let (start, end) = (instant(value("StartTime")?)??, instant(value("EndTime")?)??);
    Some(ReservationRow {
        name: value("ReservationName")?.to_owned(),
        interval: Interval::new(start, end.max(start)),
        nodes: nodes_of(value("Nodes")?)?,
        users: value("Users")?.to_owned(),
        overlaps: value("Flags")?.split(',').any(|flag| flag == "OVERLAP"),
    })
}

/// A list of nodes that may be missing.
fn nodes_of(text: &str) -> Option<Vec<String>> {
    if text == "(null)" {
        Some(Vec::new())
    } else {
        expand(text)
    }
}

/// An instant in seconds, or one that Slurm does not know.
#[expect(clippy::option_option, reason = "unreadable, open and known are three things")]
fn instant(text: &str) -> Option<Option<Time>> {
    match text {
        "N/A" | "NONE" | "Unknown" | "UNLIMITED" | "INVALID" | "" => Some(None),
        text => Some(Some(Time(text.parse().ok()?))),
    }
}

/// A time limit as Slurm writes it, `[days-][[hours:]minutes:]seconds`, in seconds; `None` inside for no limit.
#[expect(
    clippy::option_option,
    reason = "unreadable, unlimited and limited are three things"
)]
fn limit_of(text: &str) -> Option<Option<i64>> {
    if text == "infinite" {
        return Some(None);
    }
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let parts: Vec<i64> = clock
        .split(':')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let seconds = match parts.as_slice() {
        [hours, minutes, seconds] => hours * 3_600 + minutes * 60 + seconds,
        [minutes, seconds] => minutes * 60 + seconds,
        _ => return None,
    };
    Some(Some(days.parse::<i64>().ok()? * 86_400 + seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_read_with_whatever_is_in_their_names() {
        let job = job_of("3|RUNNING|b3|n[1,3]|1795262362|1795262482|65534|a|b c").unwrap();
        assert_eq!(
            (job.id.as_str(), job.user, job.name.as_str()),
            ("3", 65_534, "a|b c")
        );
        assert_eq!(job.nodes, ["n1", "n3"]);
        assert_eq!(
            (job.start, job.end),
            (Some(Time(1_795_262_362)), Some(Time(1_795_262_482)))
        );
        assert_eq!(job.reservation.as_deref(), Some("b3"));
        let waiting = job_of("12_[1-5]|PENDING|(null)||N/A|N/A|0|sweep").unwrap();
        assert_eq!(
            (waiting.state, waiting.end, waiting.reservation),
            (JobState::Waiting, None, None)
        );
        assert!(waiting.nodes.is_empty());
        for wrong in [
            "",
            "3|RUNNING|b3|n1|5|6|0",
            "3|RUNNING|b3|n[|5|6|0|a",
            "3|RUNNING|b3|n1|tomorrow|6|0|a",
            "3|RUNNING|b3|n1|5|6|nobody|a",
        ] {
            assert_eq!(job_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_word_that_nobody_knows_is_no_end() {
        assert!(!JobState::of("LEVITATING").is_final());
        assert!(JobState::of("NODE_FAIL").is_final());
    }

    #[test]
    fn reservations_are_read_by_their_keys() {
        let line = "ReservationName=b1 StartTime=100 EndTime=220 Duration=00:02:00 Nodes=n[3-4] NodeCnt=2 CoreCnt=8 \
                    Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=8 Users=nobody Groups=(null)";
        let row = reservation_of(line).unwrap();
        assert_eq!(row.interval, Interval::new(Time(100), Time(220)));
        assert_eq!(
            (row.nodes.join(" ").as_str(), row.users.as_str()),
            ("n3 n4", "nobody")
        );
        assert_eq!(
            reservation_of("ReservationName=b1 StartTime=soon EndTime=220 Nodes=n1 Users=a Flags="),
            None
        );
    }

    #[test]
    fn limits_are_read_in_every_length() {
        assert_eq!(limit_of("infinite"), Some(None));
        assert_eq!(limit_of("1-00:00:00"), Some(Some(86_400)));
        assert_eq!(limit_of("2:03:04"), Some(Some(7_384)));
        assert_eq!(limit_of("30:00"), Some(Some(1_800)));
        assert_eq!(limit_of("whole day"), None);
    }
}
