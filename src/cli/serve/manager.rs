//! Messages of the service to the manager that has started it, in the protocol of systemd's `sd_notify`: it serves, reads its
//! configuration again, stops, or is alive. Without a manager that listens, nothing is told.

use std::fmt::Display;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use store::leader::START_MAX;
use task::{Keeper, note_success};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::SOON;
use service::Service;

/// How the service is where nothing else is to be said.
const SERVING: &str = "serving";
/// How often it is looked how the service stands, or more often where the manager wants to hear so that it is alive.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The manager of the service. Clones tell the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct Manager(Option<Arc<ManagerSocket>>);

#[derive(Debug)]
struct ManagerSocket {
    socket: UnixDatagram,
    address: SocketAddr,
    /// It gives the service up when it hears nothing for twice this time.
    beat: Option<Duration>,
}

impl Manager {
    /// The one that the environment names, if any. Where it cannot be told anything, a warning says so.
    pub(super) fn of_environment() -> Self {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
            return Self::default();
        };
        // An abstract name begins with a zero byte, which no variable can hold.
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(&name),
        };
        let opened = address.and_then(|address| {
            let socket = UnixDatagram::unbound()?;
            // A manager that does not listen must not stop the service.
            socket.set_nonblocking(true)?;
            Ok(ManagerSocket {
                socket,
                address,
                beat: beat_of_manager(),
            })
        });
        match opened {
            Ok(listening) => Self(Some(Arc::new(listening))),
            Err(error) => {
                warn!(%error, "NOTIFY_SOCKET names no socket: the service manager is told nothing");
                Self::default()
            }
        }
    }

    /// Says in words how far the service is.
    pub(super) fn say(&self, words: &str) {
        // A line break would begin another assignment.
        self.tell(&format!("STATUS={}", words.replace('\n', " ")));
    }

    /// The service serves.
    pub(super) fn ready(&self) {
        self.say(SERVING);
        self.tell("READY=1");
    }

    /// The service begins to read its configuration again.
    pub(super) fn reloading(&self) {
        self.say("reading the configuration again");
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// The service has read its configuration again, in vain where there is a reason.
    pub(super) fn reloaded(&self, failed: Option<&impl Display>) {
        match failed {
            Some(why) => self.say(&format!("{SERVING}; the configuration is as before: {why}")),
            None => self.say(SERVING),
        }
        self.tell("READY=1");
    }

    /// The service is alive.
    pub(super) fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    /// The service stops.
    pub(super) fn stopping(&self) {
        self.say("stopping: requests that run are answered, jobs go on");
        self.tell("STOPPING=1");
    }

    /// Says again and again that the service is alive, for as long as a process may take to begin to lead.
    pub(super) async fn keep_alive_at_first(self) {
        let Some(beat) = self.0.as_ref().and_then(|listening| listening.beat) else {
            return;
        };
        let beats = async {
            loop {
                self.alive();
                tokio::time::sleep(beat).await;
            }
        };
        let _: Result<(), _> = tokio::time::timeout(START_MAX, beats).await;
    }

    fn tell(&self, assignments: &str) {
        let Some(to) = &self.0 else { return };
        if let Err(error) = to.socket.send_to_addr(assignments.as_bytes(), &to.address) {
            warn!(%error, "the service manager could not be told: {assignments}");
        }
    }

    /// Begins to tell how the service stands.
    pub(super) fn start_telling(&self, service: Service, keeper: &Keeper) {
        let this = self.clone();
        keeper.keep(("manager", SOON), move |stop| {
            this.clone().keep_telling(service.clone(), stop)
        });
    }

    /// Tells that the service is alive, as often as the manager wants to hear it and as long as the planner answers, and how it stands,
    /// until `stop`.
    ///
    /// A planner that says that it cannot use its store is alive: it goes on by itself, and a restart would not bring the store back.
    async fn keep_telling(self, service: Service, stop: CancellationToken) {
        let Some(listening) = &self.0 else { return };
        let beat = listening.beat.map_or(LOOK_EVERY, |beat| beat.min(LOOK_EVERY));
        let mut could_decide = true;
        let beats = async {
            loop {
                await_answer_for_manager(&service, beat / 2).await;
                self.alive();
                note_success();
                let can_decide = service.is_ready().await;
                if can_decide != could_decide {
                    self.say(match service.distrusted() {
                        Some(_) => "nothing is decided: the stored state is inconsistent",
                        None if can_decide => SERVING,
                        None => "nothing is decided: the store cannot be used now",
                    });
                    could_decide = can_decide;
                }
                tokio::time::sleep(beat).await;
            }
        };
        stop.run_until_cancelled(beats).await;
    }
}

/// Waits for an answer of the planner, with a warning where it takes so long that the manager may end the service.
async fn await_answer_for_manager(service: &Service, expected: Duration) {
    let answer = service.await_any_answer();
    tokio::pin!(answer);
    if tokio::time::timeout(expected, &mut answer).await.is_err() {
        warn!(
            "the planner has not answered for {expected:?}: until it does, the service manager does not hear that it is alive"
        );
        answer.await;
    }
}

/// Half of the time after which the manager gives this process up, where it does.
fn beat_of_manager() -> Option<Duration> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    // It may be meant for a process that has started this one.
    let is_ours = number("WATCHDOG_PID").is_none_or(|number| number == u64::from(std::process::id()));
    let micros = number("WATCHDOG_USEC").filter(|micros| is_ours && *micros > 0)?;
    Some(Duration::from_micros(micros) / 2)
}
