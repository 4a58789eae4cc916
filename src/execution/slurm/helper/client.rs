//! The helper as the service has it.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::execution::ExecutionError;
use crate::execution::slurm::commands::Slurm;
use crate::execution::slurm::error::Error;
use crate::execution::slurm::helper::operation::{Done, HELPER, Operation};
use crate::execution::slurm::helper::socket::{Reply, Request, receive, send};
use crate::execution::slurm::settings::Settings;

/// The helper as the service has it.
#[derive(Debug)]
pub(crate) struct Helper {
    socket: PathBuf,
    resource: String,
    /// How long an answer may take.
    patience: Duration,
}

impl Helper {
    /// The one that a cluster's settings name.
    pub(crate) fn of(settings: &Settings) -> Option<Arc<Self>> {
        let helper = |socket: &PathBuf| {
            Arc::new(Self {
                socket: socket.clone(),
                resource: settings.resource.clone(),
                patience: settings.patience_of_use(),
            })
        };
        settings.helper.as_ref().map(helper)
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Has something done, and counts that as a call of the program that does it.
    pub(crate) fn have_done(&self, operation: &Operation, slurm: &Slurm) -> Result<Done, ExecutionError> {
        let done = self.ask(operation, &[]);
        let outcome = match &done {
            Err(ExecutionError::Slurm(error)) => error.word(),
            Err(_) => "failed",
            Ok(_) => "done",
        };
        slurm.count(operation.program(), outcome);
        done
    }

    /// Has something done with these files.
    pub(crate) fn ask(&self, operation: &Operation, files: &[File]) -> Result<Done, ExecutionError> {
        let missing =
            |why: io::Error| Error::Missing(HELPER.into(), format!("{}: {why}", self.socket.display()));
        let stream = UnixStream::connect(&self.socket).map_err(missing)?;
        stream.set_write_timeout(Some(self.patience)).map_err(missing)?;
        let request = Request {
            resource: self.resource.clone(),
            operation: operation.clone(),
        };
        // One that is turned away at once does not read it, but says why.
        let sent = send(&stream, &request, files);
        let answered = receive(&stream, Instant::now() + self.patience);
        let (line, files) = match (answered, sent) {
            (Err(why), _) if why.kind() == io::ErrorKind::TimedOut => {
                return Err(Error::Slow(HELPER.into(), self.patience.as_secs()).into());
            }
            (Err(_), Err(why)) | (Err(why), Ok(())) => return Err(missing(why).into()),
            (Ok(answer), _) => answer,
        };
        let reply: Reply = serde_json::from_slice(&line).map_err(|why| missing(why.into()))?;
        Ok(Done {
            said: reply.into_result()?,
            file: files.into_iter().next(),
        })
    }

    /// The same where there is nothing to give or to get.
    pub(crate) fn tell(&self, operation: &Operation) -> Result<(), ExecutionError> {
        self.ask(operation, &[]).map(drop)
    }

    /// The same for operations that only look at folders.
    pub(crate) fn look(&self, operation: &Operation) -> io::Result<Done> {
        self.ask(operation, &[]).map_err(|error| match error {
            ExecutionError::System { source, .. } => source,
            other => io::Error::other(other.to_string()),
        })
    }
}
