//! A peer as the executor of its resource here: the peer runs the job, and the follower has looked how it stands.

use domain::agreement::Run;
use execution::{ExecutionError, Executor, JobSpec, JobStatus};

use super::followed_agreements::FollowedAgreements;

/// Tells of a peer's jobs what the follower has seen of them.
pub struct PeerExecutor {
    peer: String,
    followed: FollowedAgreements,
}

impl PeerExecutor {
    /// The executor of the resource of a peer.
    pub fn new(peer: &str, followed: FollowedAgreements) -> Self {
        Self {
            peer: peer.to_owned(),
            followed,
        }
    }
}

impl Executor for PeerExecutor {
    /// The peer starts it by its own plan.
    fn start(&self, _job: &JobSpec) -> Result<(), ExecutionError> {
        Ok(())
    }

    fn poll(&self, run: Run) -> Result<JobStatus, ExecutionError> {
        let unknown = || ExecutionError::Peer(format!("{} has not been asked about {run} yet", self.peer));
        self.followed.job(&self.peer, run.agreement).ok_or_else(unknown)
    }

    /// The peer fetches and sends them.
    fn moves_files(&self) -> bool {
        true
    }

    fn stop(&self, run: Run) -> Result<(), ExecutionError> {
        self.followed.ask_to_end(&self.peer, run.agreement);
        Ok(())
    }
}
