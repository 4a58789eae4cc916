//! Messages of the service to the manager that has started it, heard on a real socket as systemd's.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

use crate::lost_lease::holder;
use crate::support::stores::TestDatabase;
use crate::support::{poll_until, run};

/// Far longer than anything takes here.
const DEADLINE: Duration = Duration::from_mins(1);
/// The manager wants to hear that the service is alive at least every 200 milliseconds.
const WATCHDOG: &str = "200000";
/// Ten times the interval at which it is told.
const SILENCE: Duration = Duration::from_secs(1);

/// A service and the socket of its manager. It is killed with this value.
struct Managed {
    process: Child,
    socket: UnixDatagram,
    folder: TempDir,
}

impl Managed {
    /// Starts a service that tells a socket in its folder, or one without a file.
    fn start(is_abstract: bool, url: Option<&str>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let (socket, name) = if is_abstract {
            let name = format!("bespeak-test-{}", uuid::Uuid::now_v7());
            let address = SocketAddr::from_abstract_name(&name).expect("a short name");
            (UnixDatagram::bind_addr(&address), format!("@{name}"))
        } else {
            (UnixDatagram::bind(&path), path.display().to_string())
        };
        let socket = socket.expect("a socket can be made");
        socket.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        configure(folder.path(), 4);
        let [output, log] =
            ["output", "log"].map(|name| File::create(folder.path().join(name)).expect("a file"));
        let process = Command::new(env!("CARGO_BIN_EXE_bespeak"))
            .current_dir(folder.path())
            .env("NOTIFY_SOCKET", name)
            .env("WATCHDOG_USEC", WATCHDOG)
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--data-dir",
                "data",
                "--config",
                "bespeak.toml",
            ])
            .args(url.map(|url| format!("--database-url={url}")))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(log)
            .spawn()
            .expect("the executable can be started");
        Self {
            process,
            socket,
            folder,
        }
    }

    /// Its next message.
    fn hear(&self) -> String {
        let mut bytes = [0; 4_096];
        let length = self.socket.recv(&mut bytes);
        let length = length.unwrap_or_else(|why| panic!("{why}; it has logged\n{}", self.read("log")));
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// All that it says until something that begins so.
    fn hear_until(&self, beginning: &str) -> Vec<String> {
        let mut heard = Vec::new();
        while !heard
            .last()
            .is_some_and(|text: &String| text.starts_with(beginning))
        {
            heard.push(self.hear());
        }
        heard
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join(file)).expect("the file is there")
    }

    /// Where it says that it listens.
    fn address(&self) -> std::net::SocketAddr {
        let output = self.read("output");
        let (_, after) = output.split_once("http://").expect("it says where it listens");
        let line = after.lines().next().expect("a line");
        line.parse().expect("an address")
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("the service can be signalled");
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configure(folder: &Path, nodes: u32) {
    let text = format!("[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = {nodes}\n");
    fs::write(folder.join("bespeak.toml"), text).expect("the configuration can be written");
}

#[test]
fn a_manager_hears_when_the_service_serves_lives_reads_its_configuration_and_stops() {
    let mut service = Managed::start(false, None);
    let before = service.hear_until("READY=1");
    // No second try: it has said that it serves.
    let mut stream = TcpStream::connect(service.address()).expect("it listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    stream
        .write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(before.len() >= 3, "{before:?}");
    assert!(
        before[..before.len() - 1]
            .iter()
            .all(|target| target.starts_with("STATUS=")),
        "{before:?}"
    );
    assert_eq!(before[before.len() - 2], "STATUS=serving");
    for _ in 0..3 {
        service.hear_until("WATCHDOG=1");
    }

    configure(service.folder.path(), 3);
    service.signal(Signal::HUP);
    let reloading = service.hear_until("RELOADING=1\nMONOTONIC_USEC=");
    let last = reloading.last().expect("it was heard");
    let micros = last
        .rsplit('=')
        .next()
        .and_then(|rsplit| rsplit.parse::<u64>().ok());
    assert!(micros.is_some_and(|micro| micro > 0), "{last}");
    service.hear_until("READY=1");
    fs::write(service.folder.path().join("bespeak.toml"), "nodes = 1\n").expect("it can be written");
    service.signal(Signal::HUP);
    service.hear_until("RELOADING=1");
    let failed = service.hear_until("READY=1");
    let told = failed
        .iter()
        .find(|target| target.starts_with("STATUS=serving; the configuration is as before: "));
    assert!(told.is_some_and(|told| told.contains("nodes")), "{failed:?}");

    service.signal(Signal::TERM);
    service.hear_until("STOPPING=1");
    let ended = || {
        service
            .process
            .try_wait()
            .is_ok_and(|try_wait| try_wait.is_some_and(|reply| reply.success()))
    };
    assert!(poll_until(DEADLINE, ended), "it does not end");
}

/// A process that stands still, and goes on with the end of this value.
struct StoodStill(Pid);

impl StoodStill {
    fn make(process: Pid) -> Self {
        kill_process(process, Signal::STOP).expect("a process of the test's server can be signalled");
        Self(process)
    }
}

impl Drop for StoodStill {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[test]
fn a_service_is_not_called_alive_while_its_planner_waits_for_a_store_that_stands_still() {
    let database = TestDatabase::postgres();
    let service = Managed::start(true, Some(database.url()));
    service.hear_until("READY=1");
    service.hear_until("WATCHDOG=1");
    let session = run(async {
        let administrator = PgConnection::connect(database.url()).await;
        holder(&mut administrator.expect("the server is there")).await
    });
    let session = session
        .and_then(Pid::from_raw)
        .expect("the service holds the lock");
    let still = StoodStill::make(session);
    // It asks about its lease within a second.
    service
        .socket
        .set_read_timeout(Some(SILENCE))
        .expect("a deadline");
    let mut bytes = [0; 4_096];
    let heard = std::iter::repeat_with(|| service.socket.recv(&mut bytes).is_ok());
    assert!(heard.take(100).any(|heard| !heard), "it is called alive");
    drop(still);
    service
        .socket
        .set_read_timeout(Some(DEADLINE))
        .expect("a deadline");
    service.hear_until("WATCHDOG=1");
}
