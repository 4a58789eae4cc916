//! The way of a job's outputs to their files. Each output is a named pipe in the job's folder, and the job has it open for reading, too. So
//! it outlives the supervisor that reads it: without one the job finds its pipe full and waits, but never broken, and the next supervisor
//! reads on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, fcntl_setfl, mkfifoat};
use rustix::io::Errno;

use crate::ExecutionError;
use crate::files::if_file_is_there;
use crate::job::folder::Folder;
use crate::job::folder::outputs::Stream;

/// How long the outputs may take to come to their ends once no process of the job is left that is known of.
const DRAIN: Duration = Duration::from_secs(10);
/// Bytes read from an output at once.
const BUFFER: usize = 64 << 10;

/// The outputs of a job that are being kept. Each tells at its end whether anything of it was dropped.
pub(super) struct CapturedOutputs(Vec<mpsc::Receiver<bool>>);

impl CapturedOutputs {
    /// Whether anything of them was dropped, once they have come to their ends. An output that some unknown process still holds open is
    /// left where it stands.
    pub(super) fn is_cut(&self) -> bool {
        let asked = Instant::now();
        let cut = |output: &&mpsc::Receiver<bool>| {
            let left = DRAIN.saturating_sub(asked.elapsed());
            output.recv_timeout(left).unwrap_or(true)
        };
        self.0.iter().filter(cut).count() > 0
    }
}

/// The outputs of a job that another supervisor has launched.
pub(super) struct TakenOver {
    pub(super) outputs: CapturedOutputs,
    /// Whether the job may have waited until now, because its pipe was full and no supervisor has read it.
    pub(super) has_waited: bool,
}

/// Has the outputs of a job kept that is going to be launched, `limit` bytes of each. Returns the ends of the pipes that the job gets.
///
/// # Errors
/// When the system refuses, a thread among other things.
pub(super) fn capture_output_pipes(
    folder: &Folder,
    limit: u64,
) -> Result<([File; 2], CapturedOutputs), ExecutionError> {
    let begin = |stream: Stream| -> Result<_, ExecutionError> {
        let file = folder.create_output(stream)?;
        let path = folder.output_pipe(stream);
        let open = || -> io::Result<_> {
            match mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR) {
                Err(Errno::EXIST) => {}
                made => made?,
            }
            // With a writer there, to open it for reading waits for nothing.
            let writer = options_of_output_pipe(OFlags::empty()).write(true).open(&path)?;
            let reader = options_of_output_pipe(OFlags::empty()).open(&path)?;
            Ok((writer, keep_from_output_pipe(reader, file, limit)?))
        };
        open().map_err(ExecutionError::system("keep the output by", path))
    };
    let [(out, kept_out), (err, kept_err)] = [begin(Stream::Out)?, begin(Stream::Err)?];
    Ok(([out, err], CapturedOutputs(vec![kept_out, kept_err])))
}

/// Has the outputs of a job kept on that an earlier supervisor has launched.
///
/// # Errors
/// When the system refuses.
pub(super) fn take_over_output_pipes(folder: &Folder, limit: u64) -> Result<TakenOver, ExecutionError> {
    let (mut outputs, mut has_waited) = (Vec::new(), false);
    for stream in Stream::ALL {
        let path = folder.output_pipe(stream);
        let open = || -> io::Result<_> {
            // The job may be gone, and nobody have it open.
            let Some(reader) = if_file_is_there(options_of_output_pipe(OFlags::NONBLOCK).open(&path))? else {
                return Ok(None);
            };
            let is_full =
                is_output_pipe_full(&options_of_output_pipe(OFlags::NONBLOCK).write(true).open(&path)?)?;
            fcntl_setfl(&reader, OFlags::empty())?;
            Ok(Some((reader, is_full)))
        };
        let failed = || ExecutionError::system("keep the output by", &path);
        if let Some((reader, is_full)) = open().map_err(failed())? {
            has_waited |= is_full;
            let file = folder.append_to_output(stream)?;
            outputs.push(keep_from_output_pipe(reader, file, limit).map_err(failed())?);
        }
    }
    let outputs = CapturedOutputs(outputs);
    Ok(TakenOver { outputs, has_waited })
}

/// Removes the pipes of a job that is over.
pub(super) fn remove_output_pipes(folder: &Folder) {
    for stream in Stream::ALL {
        // One that stays does no harm, and goes with what is packed.
        let _ = std::fs::remove_file(folder.output_pipe(stream));
    }
}

fn options_of_output_pipe(flags: OFlags) -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = (flags | OFlags::NOFOLLOW).bits().cast_signed();
    options.read(true).custom_flags(flags);
    options
}

/// Whether a pipe takes nothing more at the moment.
fn is_output_pipe_full(writer: &File) -> io::Result<bool> {
    let now = Timespec::try_from(Duration::ZERO).map_err(io::Error::other)?;
    Ok(poll(&mut [PollFd::new(writer, PollFlags::OUT)], Some(&now))? == 0)
}

/// Writes the data of a pipe to a file, which grows to `limit` bytes at most.
fn keep_from_output_pipe(pipe: File, file: File, limit: u64) -> io::Result<mpsc::Receiver<bool>> {
    // The output of the slots before this one is kept, too.
    let written = file.metadata().map_or(0, |meta| meta.len());
    capture_output_pipe(pipe, file, limit.saturating_sub(written))
}

/// Writes the data of a pipe to a file, up to a limit. Data beyond it are read and dropped, so that the job is neither
/// stopped nor delayed. Tells at the end whether anything was dropped. Fails where there can be no more threads.
fn capture_output_pipe(
    mut pipe: impl Read + Send + 'static,
    mut file: File,
    limit: u64,
) -> io::Result<mpsc::Receiver<bool>> {
    let (done, end) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let mut buffer = vec![0; BUFFER];
        let (mut room, mut dropped) = (limit, false);
        loop {
            let count = match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let kept = usize::try_from(room).unwrap_or(usize::MAX).min(count);
            // A full disk drops output as the limit does.
            if kept > 0 && file.write_all(&buffer[..kept]).is_err() {
                (room, dropped) = (0, true);
                continue;
            }
            room -= kept as u64;
            dropped |= kept < count;
        }
        dropped |= file.sync_all().is_err();
        // The receiver is gone when the outputs took too long to end.
        let _ = done.send(dropped);
    })?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_kept_to_its_limit_and_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        for (limit, kept, dropped) in [(0, 0, true), (9, 9, true), (10, 10, false), (u64::MAX, 10, false)] {
            let path = folder.path().join(limit.to_string());
            let end = capture_output_pipe(
                io::Cursor::new(b"0123456789"),
                File::create(&path).unwrap(),
                limit,
            )
            .unwrap();
            assert_eq!(end.recv(), Ok(dropped), "limit {limit}");
            assert_eq!(std::fs::read(&path).unwrap().len(), kept, "limit {limit}");
        }
    }

    #[test]
    fn outputs_that_lose_their_reader_are_read_on_and_known_to_have_waited_where_they_are_full() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::at(place.path());
        let read = |stream| std::fs::read(folder.output(stream)).unwrap();
        // As a job has it whose supervisor is gone.
        let path = folder.output_pipe(Stream::Out);
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let mut job = options_of_output_pipe(OFlags::NONBLOCK)
            .write(true)
            .open(&path)
            .unwrap();
        job.write_all(b"one\n").unwrap();
        let second = take_over_output_pipes(&folder, 100_000).unwrap();
        assert!(!second.has_waited);
        job.write_all(b"two\n").unwrap();
        drop(job);
        assert!(!second.outputs.is_cut());
        assert_eq!(read(Stream::Out), b"one\ntwo\n");

        let mut job = options_of_output_pipe(OFlags::NONBLOCK)
            .write(true)
            .open(&path)
            .unwrap();
        while job.write(&[0; 4096]).is_ok() {}
        let third = take_over_output_pipes(&folder, 10).unwrap();
        assert!(third.has_waited);
        drop(job);
        assert!(third.outputs.is_cut());
        assert_eq!(read(Stream::Out), b"one\ntwo\n\0\0");
    }
}
