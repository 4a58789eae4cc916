//! Room for the next job of lost work: the rest of the job before has to be over first, even where Slurm has lost sight
//! of it.

use crate::agreement::Run;
use crate::clock::Clock;
use crate::execution::slurm::SlurmExecutor;
use crate::execution::slurm::jobs::disk::OUT_OF_SIGHT;
use crate::execution::{ExecutionError, JobStatus};

impl SlurmExecutor {
    /// Stops the attempt before a run, and puts its records aside when nothing of it runs; answers whether that is so.
    ///
    /// A node that Slurm cannot reach may run on. There the job's own script stops it: the script finds the end of its slot in
    /// the place where it looks, and has some time to see it.
    pub(crate) fn end_attempt_before(&self, run: Run) -> Result<bool, ExecutionError> {
        let folder = self.folder(run);
        let Some(before) = folder.spec()?.filter(|spec| spec.restarts < run.attempt) else {
            return Ok(true);
        };
        let (of, work) = (before.run(), self.shared_folder_of(&before)?);
        let now = Clock::system().micros();
        let is_over = work.ended().is_some() || !work.is_claimed()? || now > before.slot_end + OUT_OF_SIGHT;
        if folder.end()?.is_some() && is_over {
            self.folders.put_aside(of)?;
            return Ok(true);
        }
        if before.slot_end > now {
            self.stop_at(of, now)?;
        }
        self.ask_to_stop(of)?;
        // It is cancelled, or has its end recorded, in the course of this.
        let status = self.status(of)?;
        debug_assert_ne!(status, JobStatus::NotStarted, "it has an intent");
        Ok(false)
    }
}
