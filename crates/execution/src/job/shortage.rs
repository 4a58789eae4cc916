//! Shortages: descriptors, memory, processes or room on the disk that this machine does not have at the moment. A shortage is
//! no fault of the job: a step that fails because of one is tried again until it succeeds, and never counts as the end
//! of a job.

use std::io;
use std::time::Duration;

use rustix::io::Errno;

use crate::ExecutionError;
use crate::job::standard_error::say_on_standard_error;

/// The error codes of a shortage. The system returns `AGAIN` where no more processes or threads can be made.
const SHORTAGES: [Errno; 7] = [
    Errno::AGAIN,
    Errno::NOMEM,
    Errno::MFILE,
    Errno::NFILE,
    Errno::NOBUFS,
    Errno::NOSPC,
    Errno::DQUOT,
];

/// How long to wait before the next try: short beside any slot, long enough not to be a load on a machine in trouble.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// Whether an error says that the machine lacks something that it may have again later.
pub fn is_shortage(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| SHORTAGES.contains(&errno))
}

impl ExecutionError {
    /// Whether the machine lacked something that it may have again later.
    pub fn is_shortage(&self) -> bool {
        matches!(self, Self::System { source, .. } if is_shortage(source))
    }
}

/// Tries an action again and again while a resource that it needs is short. It may take long: only for processes that
/// serve one job and have nothing else to do.
///
/// # Errors
/// The errors of the action that are no shortages.
pub(crate) fn retry_during_shortage<T>(
    mut what: impl FnMut() -> Result<T, ExecutionError>,
) -> Result<T, ExecutionError> {
    let mut told = false;
    loop {
        match what() {
            Err(error) if error.is_shortage() => {
                if !std::mem::replace(&mut told, true) {
                    say_on_standard_error(&error);
                }
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(errno: Errno) -> ExecutionError {
        ExecutionError::system("write", "record")(io::Error::from(errno))
    }

    #[test]
    fn a_shortage_is_waited_out_and_any_other_error_is_not() {
        let mut results = vec![Ok(3), Err(failure(Errno::NOSPC)), Err(failure(Errno::MFILE))];
        let done = retry_during_shortage(|| results.pop().unwrap_or_else(|| Err(failure(Errno::IO))));
        assert_eq!(done.ok(), Some(3));
        let refused: Result<(), _> = retry_during_shortage(|| Err(failure(Errno::ACCESS)));
        assert!(refused.is_err_and(|error| !error.is_shortage()));
    }
}
