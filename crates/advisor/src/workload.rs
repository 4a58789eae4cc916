//! Jobs to replay, from a log or a model, and the windows of fifteen days that the papers replay.

use clap::ValueEnum;
use scheduler::{Interval, Seconds, Time, counted};

use crate::swf::{SwfRecord, SwfTrace};

/// Length of a window (papers 000 to 002: "15 day intervals").
pub const WINDOW_SECONDS: Seconds = 15 * 86_400;

/// How many windows the papers had.
pub const WINDOWS: u32 = 48;

/// The nodes of a workload without a header that gives them.
const NODES_DEFAULT: u32 = 128;

/// Submission times beyond this are not counted from the start of a log, but from 1970: ten years in seconds.
const LOG_SECONDS_MAX: u64 = 10 * 365 * 86_400;

/// A job of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Job {
    /// Seconds from the start of the workload to its submission.
    pub submit: Seconds,
    /// Seconds from its submission to its start, where known.
    pub wait: Option<Seconds>,
    /// Seconds that it ran, at least 1.
    pub run: Seconds,
    /// Nodes, at least 1.
    pub nodes: u32,
    /// The run time that its user stated, in seconds.
    pub estimate: Option<Seconds>,
    /// Its user, as a number.
    pub user: Option<u64>,
    /// Its executable, as a number.
    pub executable: Option<u64>,
}

impl Job {
    /// When it started, and ended. Where its wait is not known it is taken to have started at once.
    pub fn ran(&self) -> Interval {
        Interval::of(Time(self.submit + self.wait.unwrap_or(0)), self.run)
    }
}

scheduler::worded! {
    /// Which jobs of a workload are replayed, with their names on the command line and in reports.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
    pub enum WorkloadFilter {
        /// Jobs of a minute or more, as the papers print it.
        #[value(help = "A minute or more")]
        F60 = "f60",
        /// Jobs of an hour or more on two nodes or more: of simple filters, the one that comes nearest to the papers' job
        /// counts and utilisation. That they used it is a conjecture.
        #[value(help = "An hour or more on two nodes or more")]
        F1h = "f1h",
    }
}

impl WorkloadFilter {
    /// Whether the filter lets a job through.
    pub(crate) fn admits(self, job: &Job) -> bool {
        match self {
            Self::F60 => job.run >= 60,
            Self::F1h => job.run >= 3_600 && job.nodes >= 2,
        }
    }
}

/// Jobs in order of submission, and the size of the system that they are for.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Its name in reports.
    pub name: String,
    /// Nodes of the system.
    pub capacity: u32,
    /// The jobs that ran and fit the system, by submission.
    pub jobs: Vec<Job>,
    /// The people to acknowledge and the terms of use, line by line.
    pub notice: Vec<String>,
    /// What a log has beside these jobs.
    pub left_out: WorkloadOmissions,
}

/// How much of a log is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkloadOmissions {
    /// Lines that are no jobs.
    pub lines: usize,
    /// Jobs that did not run, or whose run time is not known.
    pub not_run: usize,
    /// Jobs whose size is not known.
    pub unsized_jobs: usize,
    /// Jobs that had more nodes than the system.
    pub too_large: usize,
}

impl WorkloadOmissions {
    /// What it counts, in words; none where nothing is left out.
    pub(crate) fn words(self, capacity: u32) -> Option<String> {
        let larger = format!("larger than {}", counted(capacity, "node"));
        let parts = [
            (self.lines, "line", "no job"),
            (self.not_run, "job", "without a run"),
            (self.unsized_jobs, "job", "without a size"),
            (self.too_large, "job", larger.as_str()),
        ];
        let said = parts.iter().filter(|(count, ..)| *count > 0);
        let said: Vec<String> = said
            .map(|(count, thing, what)| format!("{} ({what})", counted(count, thing)))
            .collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

/// The nodes or processors of a job: those that it had, else those that it asked for.
fn size_of(record: &SwfRecord) -> Option<u64> {
    record.processors.or(record.processors_requested)
}

/// How many nodes the system of a log has; where its jobs count processors, how many processors.
fn workload_capacity(trace: &SwfTrace) -> u32 {
    let size = |name| {
        trace
            .header_number(name)
            .and_then(|size| u32::try_from(size).ok())
    };
    match (size("MaxNodes"), size("MaxProcs")) {
        (Some(nodes), Some(processors)) => {
            let counts = |size: u64| u64::from(nodes) < size && size <= u64::from(processors);
            let counts_processors = trace.records.iter().filter_map(size_of).any(counts);
            if counts_processors { processors } else { nodes }
        }
        (size, None) | (None, size) => size.unwrap_or(NODES_DEFAULT),
    }
}

/// The submission time that is the start of a log: 0, but where submissions are counted from 1970.
fn workload_origin(trace: &SwfTrace) -> u64 {
    let Some(first) = trace.records.iter().map(|record| record.submit).min() else {
        return 0;
    };
    match trace.header_number("UnixStartTime").filter(|start| *start > 0) {
        Some(start) if first >= start => start,
        None if first > LOG_SECONDS_MAX => first,
        _ => 0,
    }
}

/// The jobs of fifteen days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Its number, from 0, in the workload.
    pub index: usize,
    /// Its jobs, by submission, which is counted from the start of the window.
    pub jobs: Vec<Job>,
}

impl Workload {
    /// The jobs of a log that ran, on as many nodes as they had. Jobs that never ran, or had more nodes than the system, are
    /// left out, and counted. Where the log counts processors, a processor is a node. Submissions are counted from the start of the log.
    pub fn from_trace(name: &str, trace: &SwfTrace) -> Self {
        let capacity = workload_capacity(trace);
        let origin = workload_origin(trace);
        let mut left_out = WorkloadOmissions {
            lines: trace.malformed.len(),
            ..WorkloadOmissions::default()
        };
        let mut jobs: Vec<Job> = trace
            .records
            .iter()
            .filter_map(|record| {
                let seconds = |number: u64| Seconds::try_from(number).ok();
                let Some(run) = record.run.and_then(seconds).filter(|run| *run >= 1) else {
                    left_out.not_run += 1;
                    return None;
                };
                let Some(size) = size_of(record).filter(|size| *size >= 1) else {
                    left_out.unsized_jobs += 1;
                    return None;
                };
                let Some(nodes) = u32::try_from(size).ok().filter(|nodes| *nodes <= capacity) else {
                    left_out.too_large += 1;
                    return None;
                };
                Some(Job {
                    // A log does not last so long that this is cut off.
                    submit: seconds(record.submit - origin).unwrap_or(Seconds::MAX),
                    wait: record.wait.and_then(seconds),
                    run,
                    nodes,
                    estimate: record.time_requested.and_then(seconds),
                    user: record.user,
                    executable: record.executable,
                })
            })
            .collect();
        jobs.sort_by_key(|job| job.submit);
        Self {
            name: name.to_owned(),
            capacity,
            jobs,
            notice: trace.notice().into_iter().map(str::to_owned).collect(),
            left_out,
        }
    }

    /// The first `count` windows, from time 0, with the jobs that `filter` lets through. A window without a job has no
    /// utilisation to compare and is left out.
    pub fn windows(&self, filter: WorkloadFilter, count: usize) -> Vec<Window> {
        let mut windows: Vec<Window> = Vec::new();
        for job in self.jobs.iter().filter(|job| filter.admits(job)) {
            let index = usize::try_from(job.submit / WINDOW_SECONDS).unwrap_or(usize::MAX);
            if index >= count {
                break;
            }
            if windows.last().is_none_or(|window| window.index != index) {
                windows.push(Window {
                    index,
                    jobs: Vec::new(),
                });
            }
            if let Some(window) = windows.last_mut() {
                window.jobs.push(Job {
                    submit: job.submit % WINDOW_SECONDS,
                    ..*job
                });
            }
        }
        windows
    }
}

#[cfg(test)]
mod tests {
    use super::{WINDOW_SECONDS, Workload, WorkloadFilter, WorkloadOmissions};
    use crate::swf::SwfTrace;

    fn workload(lines: &str) -> Workload {
        let text = format!("; MaxNodes: 16\n{lines}");
        Workload::from_trace("made up", &SwfTrace::read(&mut text.as_bytes()).unwrap())
    }

    /// A line of a log.
    fn line(submit: i64, run: i64, had: i64, asked: i64) -> String {
        format!("1 {submit} 5 {run} {had} -1 -1 {asked} 9000 -1 1 2 3 4 1 -1 -1 -1\n")
    }

    #[test]
    fn jobs_that_ran_are_kept_by_submission() {
        let lines = [
            line(900, 30, 2, 4),
            line(100, 3_600, -1, 8),
            line(200, -1, -1, 8),
            line(300, 0, 1, 1),
            line(400, 50, 17, 17),
        ];
        let workload = workload(&lines.concat());
        assert_eq!(workload.capacity, 16);
        let jobs: Vec<_> = workload
            .jobs
            .iter()
            .map(|job| (job.submit, job.run, job.nodes))
            .collect();
        assert_eq!(
            jobs,
            [(100, 3_600, 8), (900, 30, 2)],
            "its allocation, else its request"
        );
        assert_eq!(workload.jobs[0].estimate, Some(9_000));
        let left_out = WorkloadOmissions {
            not_run: 2,
            too_large: 1,
            ..WorkloadOmissions::default()
        };
        assert_eq!(workload.left_out, left_out);
        let words = "2 jobs (without a run), 1 job (larger than 16 nodes)";
        assert_eq!(left_out.words(16).as_deref(), Some(words));
        assert_eq!(WorkloadOmissions::default().words(16), None);
    }

    fn with_header(header: &str, lines: &[String]) -> Workload {
        let text = format!("{header}{}", lines.concat());
        Workload::from_trace("made up", &SwfTrace::read(&mut text.as_bytes()).unwrap())
    }

    #[test]
    fn the_size_of_the_system_is_in_the_unit_of_the_jobs() {
        let sizes = "; MaxNodes: 144 (all alike)\n; MaxProcs: 1152 (8 a node)\n";
        let processors = with_header(sizes, &[line(0, 60, 800, 800), line(1, 60, 8, 8)]);
        assert_eq!((processors.capacity, processors.jobs.len()), (1_152, 2));
        let nodes = with_header(sizes, &[line(0, 60, 100, 100), line(1, 60, 1_153, 1_153)]);
        assert_eq!((nodes.capacity, nodes.left_out.too_large), (144, 1));
        assert_eq!(with_header("; MaxProcs: 64\n", &[line(0, 60, 1, 1)]).capacity, 64);
    }

    #[test]
    fn submissions_since_1970_are_counted_from_the_start_of_the_log() {
        let since = 894_348_130;
        let lines = [line(since + 7, 60, 1, 1), line(since + 90, 60, 1, 1)];
        let submits = |header: &str| -> Vec<i64> {
            let jobs = with_header(header, &lines).jobs;
            jobs.iter().map(|job| job.submit).collect()
        };
        assert_eq!(submits("; UnixStartTime: 894348130\n"), [7, 90]);
        assert_eq!(submits(""), [0, 83], "from the first one");
        let usual = with_header("; UnixStartTime: 894348130\n", &[line(5, 60, 1, 1)]);
        assert_eq!(usual.jobs[0].submit, 5);
    }

    #[test]
    fn filters_look_at_the_run_and_the_size() {
        let lines = [
            line(0, 59, 4, 4),
            line(1, 60, 1, 1),
            line(2, 3_600, 1, 1),
            line(3, 3_600, 2, 2),
        ];
        let workload = workload(&lines.concat());
        let through = |filter| -> Vec<i64> {
            let window = workload.windows(filter, 1).remove(0);
            window.jobs.iter().map(|job| job.submit).collect()
        };
        assert_eq!(through(WorkloadFilter::F60), [1, 2, 3]);
        assert_eq!(through(WorkloadFilter::F1h), [3]);
    }

    #[test]
    fn windows_start_at_time_zero_and_empty_ones_are_left_out() {
        let at = |window: i64, second: i64| line(window * WINDOW_SECONDS + second, 100, 1, 1);
        let workload = workload(&[at(0, 7), at(2, 0), at(2, WINDOW_SECONDS - 1), at(3, 5)].concat());
        let windows = workload.windows(WorkloadFilter::F60, 3);
        let found: Vec<_> = windows
            .iter()
            .map(|window| {
                (
                    window.index,
                    window.jobs.iter().map(|job| job.submit).collect::<Vec<_>>(),
                )
            })
            .collect();
        assert_eq!(found, [(0, vec![7]), (2, vec![0, WINDOW_SECONDS - 1])]);
    }
}
