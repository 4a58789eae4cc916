//! Slurm's own data, read from fixed formats: the fields are named in the call, in an order that is ours, and times are
//! seconds. An unexpected answer is an error, never a guess.
//!
//! Any user may put separators and line breaks into the name of a job. Such a text is asked for last, and each record begins
//! with a mark that is chosen anew for every call, so that no name can be read as another record.

use scheduler::{Interval, Time};
use uuid::Uuid;

use crate::slurm::commands::SlurmCommands;
use crate::slurm::error::{Error, error_of_answer_not_understood};
use crate::slurm::hostlist::expand_hostlist;
use crate::slurm::job_row::{JobRow, JobState};
use crate::slurm::recurring::Recurrence;

/// Seconds that Slurm shows at least for a reservation without an end.
const NO_END: i64 = 365 * 86_400;
/// Characters of the reason for a node's state that are passed on.
const REASON_MAX: usize = 200;
/// The first words of the reason for the wait of a job that waits by its user's will: held (an administrator's hold has
/// another word), not before some instant, only after another job, or with a request that its partition cannot meet. It
/// was not submitted like that.
const PUT_OFF: [&str; 6] = [
    "JobHeldUser",
    "BeginTime",
    "Dependency",
    "BadConstraints",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
];

/// The numbers of nodes that Slurm knows: the name of the attribute, the field of `sinfo`, and how it is read.
const NUMBERS: [(&str, &str, ReadNumber); 2] = [
    ("cpus", "%c", |field| field.parse().ok()),
    ("gpus", "%G", read_queried_gpus),
];

/// Reads a number from a field; none where it is no such field.
type ReadNumber = fn(&str) -> Option<i64>;

/// One reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReservationRow {
    pub(crate) name: String,
    /// Its present or next time; until [`Time::MAX`] where it has no end.
    pub(crate) interval: Interval,
    pub(crate) nodes: Vec<String>,
    /// The users that may use it, as Slurm writes them.
    pub(crate) users: String,
    /// Whether jobs in it may last into the next reservation of its nodes.
    pub(crate) overlaps: bool,
    /// How often it comes again; none where it does not.
    pub(crate) repeats: Option<Recurrence>,
    /// Whether it moves along with time, so that it never begins.
    pub(crate) floats: bool,
    /// Whether Slurm ends it early where no job uses it.
    pub(crate) may_end_early: bool,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeRow {
    pub(crate) name: String,
    /// The word for its state.
    pub(crate) state: String,
    /// Whether the controller has tried to reach it, and it has not answered.
    pub(crate) silent: bool,
    /// Its processors that jobs have, and all that it has.
    pub(crate) cpus: (u32, u32),
    /// The reason for that state, where Slurm has one.
    pub(crate) reason: Option<String>,
}

/// The longest that a job may last on the nodes of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartitionRow {
    pub(crate) name: String,
    /// In seconds; `None` is for ever.
    pub(crate) longest_job: Option<i64>,
    pub(crate) nodes: Vec<String>,
}

/// Every job of some partitions, by their names with commas, that the controller has not forgotten.
pub(crate) fn query_jobs(slurm: &SlurmCommands, partitions: &str) -> Result<Vec<JobRow>, Error> {
    let mark = mark_of_query();
    let format = format!("{mark}%i|%T|%v|%N|%S|%e|%U|%r|%j");
    let listed = slurm.call(
        "squeue",
        ["-a", "-h", "-t", "all", "-p", partitions, "-o", &format],
    )?;
    read_each_queried_record("squeue", &listed, &mark, read_queried_job)
}

/// The exit status of a job that has ended, 128 + signal when a signal ended it.
pub(crate) fn query_exit_of_job(slurm: &SlurmCommands, id: &str) -> Result<i32, Error> {
    let listed = slurm.call(
        "squeue",
        ["-a", "-h", "-t", "all", "-j", id, "-O", "exit_code:20"],
    )?;
    read_queried_exit_status(&listed).ok_or_else(|| error_of_answer_not_understood("squeue", &listed))
}

/// Every reservation.
pub(crate) fn query_reservations(slurm: &SlurmCommands) -> Result<Vec<ReservationRow>, Error> {
    let shown = slurm.call("scontrol", ["-o", "show", "reservation"])?;
    if shown.trim().is_empty() || shown.starts_with("No reservations in the system") {
        return Ok(Vec::new());
    }
    read_each_queried_record("scontrol", &shown, "ReservationName=", read_queried_reservation)
}

/// The nodes of a partition.
pub(crate) fn query_nodes(slurm: &SlurmCommands, partition: &str) -> Result<Vec<NodeRow>, Error> {
    let mark = mark_of_query();
    let format = format!("{mark}%N|%T|%C|%E");
    let listed = slurm.call("sinfo", ["-h", "-N", "-p", partition, "-o", &format])?;
    read_each_queried_record("sinfo", &listed, &mark, read_queried_node)
}

/// What each node of a partition has of an attribute, by their names: none where Slurm's word cannot be read. Nothing is told where
/// Slurm does not know the attribute.
pub(crate) fn query_number_of_nodes(
    slurm: &SlurmCommands,
    partition: &str,
    attribute: &str,
) -> Result<Vec<(String, Option<i64>)>, Error> {
    let Some((_, field, read)) = NUMBERS.iter().find(|(name, ..)| *name == attribute) else {
        return Ok(Vec::new());
    };
    let mark = mark_of_query();
    let format = format!("{mark}%N|{field}");
    let listed = slurm.call("sinfo", ["-h", "-N", "-p", partition, "-o", &format])?;
    read_each_queried_record("sinfo", &listed, &mark, |record| {
        let [name, field] = fields_of_queried_record(record)?;
        Some((name.to_owned(), read(field.trim())))
    })
}

/// When the controller that answers began.
pub(crate) fn query_controller_start(slurm: &SlurmCommands) -> Result<Time, Error> {
    let shown = slurm.call("scontrol", ["show", "config"])?;
    read_queried_boot_time(&shown).ok_or_else(|| error_of_answer_not_understood("scontrol", &shown))
}

/// Every partition, once or several times, with all or some of its nodes.
pub(crate) fn query_partitions(slurm: &SlurmCommands) -> Result<Vec<PartitionRow>, Error> {
    let mark = mark_of_query();
    let listed = slurm.call("sinfo", ["-a", "-h", "-o", &format!("{mark}%R|%l|%N")])?;
    read_each_queried_record("sinfo", &listed, &mark, |line| {
        let [name, limit, nodes] = fields_of_queried_record(line)?;
        Some(PartitionRow {
            name: name.to_owned(),
            longest_job: read_queried_limit(limit)?,
            nodes: expand_hostlist(nodes)?,
        })
    })
}

/// The beginning of each record: the authors of its fields cannot know it.
fn mark_of_query() -> String {
    format!("{}|", Uuid::now_v7().simple())
}

/// Reads each record: the text between one mark at the beginning of a line and the next.
fn read_each_queried_record<T>(
    program: &'static str,
    text: &str,
    mark: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Error> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let records = text
        .strip_prefix(mark)
        .ok_or_else(|| error_of_answer_not_understood(program, text))?;
    let next = format!("\n{mark}");
    let records = records.split(&next).map(str::trim_end);
    let read = |record| read(record).ok_or_else(|| error_of_answer_not_understood(program, record));
    records.map(read).collect()
}

/// The fields of a line, of which only the last may have a separator in it.
fn fields_of_queried_record<const N: usize>(line: &str) -> Option<[&str; N]> {
    line.splitn(N, '|').collect::<Vec<_>>().try_into().ok()
}

fn read_queried_job(line: &str) -> Option<JobRow> {
    let [id, state, reservation, nodes, start, end, user, reason, name] = fields_of_queried_record(line)?;
    Some(JobRow {
        id: id.to_owned(),
        state: JobState::of(state),
        reservation: Some(reservation.to_owned())
            .filter(|name| !matches!(name.as_str(), "" | "(null)" | "N/A")),
        nodes: read_queried_node_names(nodes)?,
        start: read_queried_instant(start)?,
        end: read_queried_instant(end)?,
        user: user.parse().ok()?,
        put_off: PUT_OFF.iter().any(|word| reason.starts_with(word)),
        name: name.to_owned(),
    })
}

/// A node; signs behind the word for its state say more of it, an asterisk that it does not answer.
fn read_queried_node(record: &str) -> Option<NodeRow> {
    let [name, state, cpus, reason] = fields_of_queried_record(record)?;
    let word = state.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let counts: Vec<u32> = cpus
        .split('/')
        .map(|count| count.parse().ok())
        .collect::<Option<_>>()?;
    let [allocated, _idle, _other, all] = counts.try_into().ok()?;
    let reason = reason.lines().next().unwrap_or_default().trim();
    let reason = Some(reason).filter(|reason| !matches!(*reason, "" | "none" | "(null)"));
    Some(NodeRow {
        name: name.to_owned(),
        state: word.to_owned(),
        silent: state[word.len()..].contains('*'),
        cpus: (allocated, all),
        reason: reason.map(|reason| reason.chars().take(REASON_MAX).collect()),
    })
}

/// How many GPUs the generic resources of a node have, as in `gpu:tesla:4(S:0-1),fpga:1` or `(null)`; of each kind together.
fn read_queried_gpus(field: &str) -> Option<i64> {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for c in field.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let gpus = plain.split(',').filter_map(|part| part.strip_prefix("gpu"));
    let gpus = gpus.filter(|rest| rest.is_empty() || rest.starts_with(':'));
    let counts = gpus.map(|rest| match rest.rsplit_once(':') {
        Some((_, count)) => count.parse::<i64>().ok(),
        None => Some(1),
    });
    counts.sum()
}

/// When a controller began, from its configuration.
fn read_queried_boot_time(shown: &str) -> Option<Time> {
    let mut pairs = shown.lines().filter_map(|line| line.split_once('='));
    let (_, value) = pairs.find(|(key, _)| key.trim() == "BOOT_TIME")?;
    read_queried_instant(value.trim())?
}

/// The time of the controller at which it told its configuration.
pub(crate) fn read_queried_controller_time(shown: &str) -> Option<Time> {
    let (_, rest) = shown.lines().next()?.split_once("as of ")?;
    read_queried_instant(rest.trim())?
}

/// An exit status from the status that `wait` returns for a process: a signal in the low seven bits, or a status above
/// eight.
fn read_queried_exit_status(listed: &str) -> Option<i32> {
    let told: u32 = listed.trim().parse().ok()?;
    let (signal, status) = (told & 0x7f, (told >> 8) & 0xff);
    i32::try_from(if signal == 0 { status } else { 128 + signal }).ok()
}

/// A reservation from the text after `ReservationName=`. Only operators make them, and choose their names.
fn read_queried_reservation(record: &str) -> Option<ReservationRow> {
    let (name, rest) = record.split_once(" StartTime=")?;
    let rest = format!("StartTime={rest}");
    let value = |key: &str| {
        let mut pairs = rest.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
    };
    let start = read_queried_instant(value("StartTime")?)??;
    let end = read_queried_instant(value("EndTime")?)?;
    let end = end.filter(|end| *end - start < NO_END).unwrap_or(Time::MAX);
    let flags: Vec<&str> = value("Flags")?.split(',').collect();
    Some(ReservationRow {
        name: name.to_owned(),
        interval: Interval::new(start, end.max(start)),
        nodes: read_queried_node_names(value("Nodes")?)?,
        users: value("Users")?.to_owned(),
        overlaps: flags.contains(&"OVERLAP"),
        repeats: Recurrence::of_flags(&flags),
        floats: flags.contains(&"TIME_FLOAT"),
        may_end_early: flags.iter().any(|flag| flag.starts_with("PURGE_COMP")),
    })
}

/// A list of nodes that may be missing.
fn read_queried_node_names(text: &str) -> Option<Vec<String>> {
    expand_hostlist(if text == "(null)" { "" } else { text })
}

/// An instant in seconds, or one that Slurm does not know.
#[expect(clippy::option_option, reason = "unreadable, open and known are three things")]
fn read_queried_instant(text: &str) -> Option<Option<Time>> {
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
fn read_queried_limit(text: &str) -> Option<Option<i64>> {
    if text == "infinite" {
        return Some(None);
    }
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    if !matches!(clock.split(':').count(), 2 | 3) {
        return None;
    }
    let mut parts = clock.split(':');
    let seconds = parts.try_fold(0, |sum, part| Some(sum * 60 + part.parse::<i64>().ok()?))?;
    Some(Some(days.parse::<i64>().ok()? * 86_400 + seconds))
}

#[cfg(test)]
mod tests;
