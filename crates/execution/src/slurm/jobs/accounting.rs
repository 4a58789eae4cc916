//! The user that cancelled a job: its own user ended it, an administrator took its nodes away. Only Slurm's accounting knows.

use domain::agreement::RunOutcome;
use domain::clock::Clock;

use crate::slurm::cluster::{SlurmCluster, TRY_EVERY};
use crate::slurm::commands::SlurmCommands;
use crate::slurm::error::{Error, error_of_answer_not_understood};
use crate::slurm::job_row::JobRow;
use crate::slurm::jobs::script::OVERTIME;
use crate::{ExecutionError, JobSpec};

/// Seconds after the end of a job within which accounting has it.
const WRITTEN_WITHIN: i64 = 60;

/// The data of accounting about the end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccountedEnd {
    /// By this user.
    By(u32),
    /// It has not been written down yet.
    NotYet,
    /// This cluster has no accounting.
    Unknown,
}

/// The outcome of a job that was cancelled before the end of its slot: ended by its party where its own user cancelled
/// it or where this is not known, and lost where an administrator did. None while accounting has still to write it down.
pub(crate) fn outcome_by_accounting(
    cluster: &SlurmCluster,
    row: &JobRow,
    job: &JobSpec,
) -> Result<Option<RunOutcome>, ExecutionError> {
    if !cluster.may_try(job.run(), TRY_EVERY) {
        return Ok(None);
    }
    let now = Clock::system();
    let is_late = row.end.is_some_and(|end| now.now() > end + WRITTEN_WITHIN);
    let is_long_over = is_late || now.micros() > job.slot_end + OVERTIME;
    match ask_accounting_for_end(&cluster.slurm, &row.id, &row.name) {
        Ok(AccountedEnd::By(user)) if user != row.user => Ok(Some(RunOutcome::Lost)),
        Ok(AccountedEnd::NotYet) if !is_long_over => Ok(None),
        Err(why) if !is_long_over => Err(why.into()),
        Ok(_) | Err(_) => Ok(Some(RunOutcome::Terminated)),
    }
}

fn ask_accounting_for_end(slurm: &SlurmCommands, id: &str, name: &str) -> Result<AccountedEnd, Error> {
    let options = ["-a", "-n", "-P", "-X", "-o", "State,JobName%200", "-j", id];
    match slurm.call("sacct", options) {
        Ok(listed) => {
            read_accounting(&listed, name).ok_or_else(|| error_of_answer_not_understood("sacct", &listed))
        }
        Err(Error::Refused(_, said)) if said.contains("disabled") => Ok(AccountedEnd::Unknown),
        Err(Error::Missing(..)) => Ok(AccountedEnd::Unknown),
        Err(why) => Err(why),
    }
}

/// The last job of this name: numbers may have been given again.
fn read_accounting(listed: &str, name: &str) -> Option<AccountedEnd> {
    let mut states = listed.lines().filter_map(|line| {
        let (state, owner) = line.split_once('|')?;
        (owner == name).then_some(state)
    });
    match states.next_back() {
        None => Some(AccountedEnd::NotYet),
        Some(state) => match state.strip_prefix("CANCELLED by ") {
            Some(user) => Some(AccountedEnd::By(user.trim().parse().ok()?)),
            // It is so for a while, or was cancelled by Slurm itself.
            None if state == "CANCELLED" => Some(AccountedEnd::Unknown),
            None => Some(AccountedEnd::NotYet),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounting_tells_who_has_cancelled_a_job() {
        for (listed, expected) in [
            ("CANCELLED by 0|a\n", Some(AccountedEnd::By(0))),
            ("COMPLETED|b\nCANCELLED by 1001|a\n", Some(AccountedEnd::By(1001))),
            ("RUNNING|a\n", Some(AccountedEnd::NotYet)),
            ("CANCELLED by 0|b\n", Some(AccountedEnd::NotYet)),
            ("", Some(AccountedEnd::NotYet)),
            ("CANCELLED|a\n", Some(AccountedEnd::Unknown)),
            ("CANCELLED by root|a\n", None),
        ] {
            assert_eq!(read_accounting(listed, "a"), expected, "{listed:?}");
        }
    }
}
