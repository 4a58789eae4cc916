//! Jobs to replay, from a log or a model, and the windows of fifteen days that the papers replay.

use scheduler::{Interval, Seconds, Time};

use crate::swf::Trace;

/// Length of a window (papers 000 to 002: "15 day intervals").
pub const WINDOW_SECONDS: Seconds = 15 * 86_400;

/// How many windows the papers had.
pub const WINDOWS: u32 = 48;

/// The nodes of a workload without a header that gives them.
const NODES_DEFAULT: u32 = 128;

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

/// Which jobs of a workload are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Jobs of a minute or more, as the papers print it.
    F60,
    /// Jobs of an hour or more on two nodes or more: of simple filters, the one that comes nearest to the papers' job
    /// counts and utilisation. That they used it is a conjecture.
    F1h,
}

impl Filter {
    /// Whether the filter lets a job through.
    pub fn admits(self, job: &Job) -> bool {
        match self {
            Self::F60 => job.run >= 60,
            Self::F1h => job.run >= 3_600 && job.nodes >= 2,
        }
    }

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::F60 => "f60",
            Self::F1h => "f1h",
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
    /// left out.
    pub fn from_trace(name: &str, trace: &Trace) -> Self {
        let size = |field| trace.header_field(field)?.parse().ok();
        let capacity = size("MaxNodes")
            .or_else(|| size("MaxProcs"))
            .unwrap_or(NODES_DEFAULT);
        let mut jobs: Vec<Job> = trace
            .records
            .iter()
            .filter_map(|record| {
                let nodes = u32::try_from(record.processors.or(record.processors_requested)?).ok()?;
                let job = Job {
                    submit: Seconds::try_from(record.submit).ok()?,
                    wait: record.wait.and_then(|seconds| Seconds::try_from(seconds).ok()),
                    run: Seconds::try_from(record.run?).ok()?,
                    nodes,
                    estimate: record
                        .time_requested
                        .and_then(|seconds| Seconds::try_from(seconds).ok()),
                    user: record.user,
                    executable: record.executable,
                };
                (job.run >= 1 && (1..=capacity).contains(&nodes)).then_some(job)
            })
            .collect();
        jobs.sort_by_key(|job| job.submit);
        Self {
            name: name.to_owned(),
            capacity,
            jobs,
            notice: trace.notice().into_iter().map(str::to_owned).collect(),
        }
    }

    /// The first `count` windows, from time 0, with the jobs that `filter` lets through. A window without a job has no
    /// utilisation to compare and is left out.
    pub fn windows(&self, filter: Filter, count: usize) -> Vec<Window> {
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
    use super::{Filter, WINDOW_SECONDS, Workload};
    use crate::swf::Trace;

    fn workload(lines: &str) -> Workload {
        let text = format!("; MaxNodes: 16\n{lines}");
        Workload::from_trace("made up", &Trace::read(&mut text.as_bytes()).unwrap())
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
        assert_eq!(through(Filter::F60), [1, 2, 3]);
        assert_eq!(through(Filter::F1h), [3]);
    }

    #[test]
    fn windows_start_at_time_zero_and_empty_ones_are_left_out() {
        let at = |window: i64, second: i64| line(window * WINDOW_SECONDS + second, 100, 1, 1);
        let workload = workload(&[at(0, 7), at(2, 0), at(2, WINDOW_SECONDS - 1), at(3, 5)].concat());
        let windows = workload.windows(Filter::F60, 3);
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
