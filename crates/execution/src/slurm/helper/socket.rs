//! The messages on the helper's socket, a line of JSON each way, with open files beside it, and the service's end of it.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::ExecutionError;
use crate::slurm::commands::SlurmCommands;
use crate::slurm::error::Error;
use crate::slurm::helper::operation::{HELPER, Operation, OperationResult};
use crate::slurm::settings::SlurmSettings;

/// Bytes of a line at most: a submission with 64 long arguments, or the names of a hundred thousand nodes.
pub(crate) const LINE_MAX: usize = 1 << 20;
/// Files beside a line at most, as many as a job may have inputs.
pub(crate) const FILES_MAX: usize = 64;
/// Bytes that are read at once.
const CHUNK: usize = 16 << 10;

/// The request of the service.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HelperRequest {
    pub(crate) resource: String,
    pub(crate) operation: Operation,
}

/// The answer of the helper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SocketReply {
    /// It was done.
    Done(String),
    /// The helper does no such thing.
    Forbidden(String),
    /// The system refused: its number of the error, and the words.
    System(Option<i32>, String),
    /// A program of Slurm has failed.
    #[serde(untagged)]
    Slurm(Error),
}

impl From<&ExecutionError> for SocketReply {
    fn from(error: &ExecutionError) -> Self {
        match error {
            ExecutionError::System { source, .. } => Self::System(source.raw_os_error(), error.to_string()),
            ExecutionError::Damaged { .. } | ExecutionError::Peer(_) => Self::System(None, error.to_string()),
            ExecutionError::Slurm(error) => Self::Slurm(error.clone()),
        }
    }
}

impl SocketReply {
    /// The result, or the reason why it was not done.
    pub(crate) fn into_result(self) -> Result<String, ExecutionError> {
        Err(match self {
            Self::Done(said) => return Ok(said),
            Self::System(number, said) => {
                let source = number.map_or_else(|| io::Error::other(said), io::Error::from_raw_os_error);
                ExecutionError::system("have the helper reach", "a job's folder")(source)
            }
            Self::Forbidden(said) => Error::Refused(HELPER.into(), said).into(),
            Self::Slurm(error) => error.into(),
        })
    }
}

/// Sends a line, and files with it.
pub(crate) fn send_line_to_socket(
    mut to: &UnixStream,
    line: &impl Serialize,
    files: &[File],
) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    if bytes.len() > LINE_MAX || files.len() > FILES_MAX {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is too long"));
    }
    let files: Vec<BorrowedFd<'_>> = files.iter().map(File::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "these are too many files",
        ));
    }
    let sent = sendmsg(to, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL)?;
    to.write_all(&bytes[sent..])
}

/// Reads a line and the files beside it, by an instant.
pub(crate) fn receive_line_from_socket(
    mut from: &UnixStream,
    until: Instant,
) -> io::Result<(Vec<u8>, Vec<File>)> {
    let mut bytes = vec![0; CHUNK];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    limit_wait_for_socket(from, until)?;
    let read = recvmsg(
        from,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut beside,
        RecvFlags::CMSG_CLOEXEC,
    );
    bytes.truncate(read.map_err(io::Error::from).map_err(socket_timed_out)?.bytes);
    let mut files = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            files.extend(descriptors.map(File::from));
        }
    }
    while !bytes.is_empty() && !bytes.contains(&b'\n') {
        if bytes.len() >= LINE_MAX {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                format!("expected a line of at most {LINE_MAX} bytes"),
            ));
        }
        limit_wait_for_socket(from, until)?;
        let mut more = [0; CHUNK];
        match from.read(&mut more).map_err(socket_timed_out)? {
            0 => break,
            read => bytes.extend_from_slice(&more[..read]),
        }
    }
    if bytes.last() != Some(&b'\n') {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "expected a whole line"));
    }
    Ok((bytes, files))
}

/// Has reads wait until then at most.
fn limit_wait_for_socket(stream: &UnixStream, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))
}

/// The error of a read after its time is over.
fn socket_timed_out(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock {
        return ErrorKind::TimedOut.into();
    }
    error
}

/// The helper as the service has it.
#[derive(Debug)]
pub(crate) struct HelperSocket {
    pub(crate) socket: PathBuf,
    resource: String,
    /// How long an answer may take.
    patience: Duration,
}

impl HelperSocket {
    /// The one that a cluster's settings name.
    pub(crate) fn of(settings: &SlurmSettings) -> Option<Arc<Self>> {
        let helper = |socket: &PathBuf| {
            Arc::new(Self {
                socket: socket.clone(),
                resource: settings.resource.clone(),
                patience: settings.patience_of_use(),
            })
        };
        settings.helper.as_ref().map(helper)
    }

    /// Has something done, and counts that as a call of the program that does it.
    pub(crate) fn perform(
        &self,
        operation: &Operation,
        slurm: &SlurmCommands,
    ) -> Result<OperationResult, ExecutionError> {
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
    pub(crate) fn ask(
        &self,
        operation: &Operation,
        files: &[File],
    ) -> Result<OperationResult, ExecutionError> {
        let missing =
            |why: io::Error| Error::Missing(HELPER.into(), format!("{}: {why}", self.socket.display()));
        let stream = UnixStream::connect(&self.socket).map_err(missing)?;
        stream.set_write_timeout(Some(self.patience)).map_err(missing)?;
        let request = HelperRequest {
            resource: self.resource.clone(),
            operation: operation.clone(),
        };
        // One that is turned away at once does not read it, but says why.
        let sent = send_line_to_socket(&stream, &request, files);
        let answered = receive_line_from_socket(&stream, Instant::now() + self.patience);
        let (line, files) = match (answered, sent) {
            (Err(why), _) if why.kind() == ErrorKind::TimedOut => {
                return Err(Error::Slow(HELPER.into(), self.patience.as_secs()).into());
            }
            (Err(_), Err(why)) | (Err(why), Ok(())) => return Err(missing(why).into()),
            (Ok(answer), _) => answer,
        };
        let reply: SocketReply = serde_json::from_slice(&line).map_err(|why| missing(why.into()))?;
        Ok(OperationResult {
            said: reply.into_result()?,
            file: files.into_iter().next(),
        })
    }

    /// Asks for an operation to which nothing is given and from which nothing comes back.
    pub(crate) fn tell(&self, operation: &Operation) -> Result<(), ExecutionError> {
        self.ask(operation, &[]).map(drop)
    }

    /// Asks for an operation that only looks at folders.
    pub(crate) fn look(&self, operation: &Operation) -> io::Result<OperationResult> {
        self.ask(operation, &[]).map_err(|error| match error {
            ExecutionError::System { source, .. } => source,
            other => io::Error::other(other.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_programs_are_sent_by_their_kinds() {
        for (error, line) in [
            (Error::Down("no".into()), r#"{"down":"no"}"#),
            (Error::Slow("sbatch".into(), 30), r#"{"slow":["sbatch",30]}"#),
            (
                Error::Refused("scancel".into(), "no".into()),
                r#"{"refused":["scancel","no"]}"#,
            ),
            (
                Error::Unknown("sinfo".into(), "?".into()),
                r#"{"unknown":["sinfo","?"]}"#,
            ),
            (
                Error::Missing("squeue".into(), "no".into()),
                r#"{"missing":["squeue","no"]}"#,
            ),
        ] {
            assert_eq!(
                serde_json::to_string(&SocketReply::Slurm(error.clone())).unwrap(),
                line
            );
            let reply: SocketReply = serde_json::from_str(line).unwrap();
            let read = reply.into_result();
            assert!(
                matches!(read, Err(ExecutionError::Slurm(received)) if received == error),
                "{line}"
            );
        }
        let system: SocketReply = serde_json::from_str(r#"{"system":[2,"no"]}"#).unwrap();
        assert!(matches!(system, SocketReply::System(Some(2), _)));
        assert!(serde_json::from_str::<SocketReply>(r#"{"other":["a","b"]}"#).is_err());
    }
}
