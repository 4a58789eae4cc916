//! The base of the tests: a real PostgreSQL, real servers, a client that checks every answer, offers.

pub(crate) mod breakable_proxy;
pub(crate) mod chrome;
pub(crate) mod client;
pub(crate) mod data_server;
pub(crate) mod fixture;
pub(crate) mod harness;
pub(crate) mod negotiation;
pub(crate) mod offers;
pub(crate) mod postgres;
pub(crate) mod processes;
pub(crate) mod proxy;
pub(crate) mod random;
pub(crate) mod receiver;
pub(crate) mod server;
pub(crate) mod sessions;
pub(crate) mod slurm;
pub(crate) mod small_disk;
pub(crate) mod stores;
pub(crate) mod xml;

use std::fs;
use std::future::Future;
use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use metrics::Exposition;
use writer::Planner;

/// How long to wait for the next look at something that will change: a tenth of the wait so far, within bounds. A look may cost an
/// answer of the service.
fn pause(waited: Duration) -> Duration {
    (waited / 10).clamp(Duration::from_millis(5), Duration::from_millis(400))
}

/// A machine that needs so many seconds for what takes less than one is none.
const SECONDS_MAX: i64 = 160;

/// Runs a test's future on a runtime of its own.
pub(crate) fn run<F: Future>(test: F) -> F::Output {
    // Errors that a planner inside the test logs are shown with the test's failure. Another test may have set this up before.
    let _ = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::ERROR)
        .with_test_writer()
        .try_init();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be made")
        .block_on(test)
}

/// Runs a future to its end from any thread, also from inside another runtime.
pub(crate) fn block_on<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    thread::spawn(|| run(future))
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Asserts that nothing has happened to a planner's plan that must never happen.
pub(crate) async fn assert_nothing_impossible(planner: &Planner) {
    let mut text = Exposition::default();
    planner.expose(&mut text).await;
    let text = text.finish();
    assert!(text.contains("\nbespeak_planner_impossible_total 0\n"), "{text}");
}

/// The size of a test: its own for every change, or the one that a variable of the environment sets before a release.
///
/// # Panics
/// Where the variable is set and no number.
pub(crate) fn size(variable: &str, every_change: usize) -> usize {
    std::env::var(variable).map_or(every_change, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is {text:?}, a whole number is expected"))
    })
}

/// A deadline as it counts on this machine: as often as long as `BESPEAK_TEST_PATIENCE` says, where that is shared with others and
/// stands still at times. Only a test that fails waits so long.
pub(crate) fn deadline_here(deadline: Duration) -> Duration {
    deadline * u32::try_from(size("BESPEAK_TEST_PATIENCE", 1)).expect("a small number")
}

/// Whether `done` holds before the deadline; asked again and again.
pub(crate) fn poll_until(deadline: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = deadline_here(deadline);
    let started = Instant::now();
    loop {
        if done() {
            return true;
        }
        if started.elapsed() >= deadline {
            return false;
        }
        thread::sleep(pause(started.elapsed()));
    }
}

/// The exit and the output of a command; it is killed when it has not ended by the deadline.
pub(crate) fn output_of(command: &mut Command, deadline: Duration) -> Output {
    let (mut stdout, mut stderr) = (temporary_file(), temporary_file());
    let mut process = command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().expect("a second handle"))
        .stderr(stderr.try_clone().expect("a second handle"))
        .spawn()
        .expect("the command can be run");
    let ended = || !matches!(process.try_wait(), Ok(None));
    if !poll_until(deadline, ended) {
        process.kill().expect("a child can be killed");
    }
    let status = process.wait().expect("a child can be waited for");
    Output {
        status,
        stdout: written(&mut stdout),
        stderr: written(&mut stderr),
    }
}

fn temporary_file() -> fs::File {
    tempfile::tempfile().expect("a temporary file")
}

fn written(file: &mut fs::File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).expect("a file has a start");
    file.read_to_end(&mut bytes)
        .expect("a temporary file can be read");
    bytes
}

/// The value of an attempt that has to be made within some seconds of real time, by which it knows how many. Where the machine was
/// too slow for it, there is another one, with twice the seconds.
pub(crate) async fn in_seconds<T>(first: i64, mut attempt: impl AsyncFnMut(i64) -> Option<T>) -> T {
    let mut seconds = first;
    loop {
        if let Some(made) = attempt(seconds).await {
            return made;
        }
        seconds *= 2;
        assert!(
            seconds < SECONDS_MAX,
            "it cannot be done in {} seconds",
            seconds / 2
        );
    }
}

/// The value that `look` finds before the deadline; asked again and again.
///
/// # Panics
/// With the name of the awaited event, when that does not come.
pub(crate) async fn eventually<T>(
    what: &str,
    deadline: Duration,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = deadline_here(deadline);
    let started = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            started.elapsed() < deadline,
            "waited {deadline:?} for {what}, which did not come"
        );
        tokio::time::sleep(pause(started.elapsed())).await;
    }
}
