//! The real executable on a store of its own, to be asked, killed and started again.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use planner::IMPOSSIBLE;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tempfile::TempDir;

use super::client::{Client, Unchecked};
use super::{output_of, poll_until, processes};

/// How long a service may take to be ready, or to stop, on a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_mins(1);

/// The executable.
const EXECUTABLE: &str = env!("CARGO_BIN_EXE_bespeak");

/// Configuration of a test's service where the test gives none: four nodes on any machine, and patience with a client that the
/// machine has stand still.
const FOUR_NODES: &str = "[limits]\nheader_seconds = 600\nbody_seconds = 600\n\
    [[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = 4\n";

/// Its configuration in the folder of a service.
const CONFIGURATION: &str = "bespeak.toml";

/// A running service. It is killed with this value; its log is shown when that happens in a failing test.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    address: SocketAddr,
    key: String,
    folder: TempDir,
    unchecked: Arc<Unchecked>,
    database_url: Option<String>,
    /// The commands of a shell before it becomes the service; none where it is started directly.
    shell: Option<&'static str>,
}

impl Server {
    /// Starts a service of four nodes on a database, and waits until it is ready.
    pub(crate) fn start(url: &str) -> Self {
        Self::configured(Some(url), FOUR_NODES)
    }

    /// Starts a service of four nodes on the embedded store in its data folder.
    pub(crate) fn local() -> Self {
        Self::configured(None, FOUR_NODES)
    }

    /// Starts a service with the text of a configuration file, and waits until it is ready.
    pub(crate) fn configured(url: Option<&str>, configuration: &str) -> Self {
        Self::become_by(None, url, |folder| configure(folder, configuration))
    }

    /// The same on the embedded store, where a shell becomes the service by this command, which ends in `exec "$@"`.
    pub(crate) fn through(shell: &'static str, configuration: &str) -> Self {
        Self::become_by(Some(shell), None, |folder| configure(folder, configuration))
    }

    /// Starts a service in a folder that `prepare` has filled already, with its configuration, and waits until it is ready.
    pub(crate) fn prepared(url: Option<&str>, prepare: impl FnOnce(&Path)) -> Self {
        Self::become_by(None, url, prepare)
    }

    fn become_by(shell: Option<&'static str>, url: Option<&str>, prepare: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("bespeak-test-")
            .tempdir()
            .expect("a temporary folder");
        prepare(folder.path());
        let mut server = Self {
            process: launch(shell, folder.path(), url),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            key: String::new(),
            folder,
            unchecked: Arc::default(),
            database_url: url.map(str::to_owned),
            shell,
        };
        server.wait_until_ready();
        server
    }

    /// A client with the operator's key.
    pub(crate) fn client(&self) -> Client {
        self.client_with(&self.key)
    }

    /// A client with another key.
    pub(crate) fn client_with(&self, key: &str) -> Client {
        Client::new(self.address, key, &self.unchecked)
    }

    /// Where the service listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The operator's key.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The folder of everything that lasts.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// All that the service has logged since it was first started.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.process.id()
    }

    /// The most memory that the service has held, in KiB; `None` where the system does not report it.
    pub(crate) fn peak_memory_kib(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    }

    /// Changes how many files the running service may have open; open ones stay open. Answers the number before.
    pub(crate) fn limit_open_files(&self, most: u64) -> u64 {
        let process = Some(Pid::from_child(&self.process));
        let changed = Rlimit {
            current: Some(most),
            maximum: rustix::process::getrlimit(Resource::Nofile).maximum,
        };
        let before = prlimit(process, Resource::Nofile, changed).expect("a limit can be changed");
        before.current.expect("files are limited")
    }

    /// Kills the service with SIGKILL.
    pub(crate) fn kill9(&mut self) {
        self.process.kill().expect("the service can be killed");
        self.process.wait().expect("a killed process ends");
    }

    /// Asks the service to stop with SIGTERM, and waits until it has.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.process), Signal::TERM).expect("the service can be signalled");
        self.wait_until_ended()
    }

    /// Writes another configuration file, which the service reads at its next start or when it is told to.
    pub(crate) fn reconfigure(&self, configuration: &str) {
        configure(self.folder.path(), configuration);
    }

    /// Sends SIGHUP, so that the service reads its configuration again.
    pub(crate) fn hang_up(&self) {
        kill_process(Pid::from_child(&self.process), Signal::HUP).expect("the service can be signalled");
    }

    /// How the service has ended, which it does before long.
    pub(crate) fn wait_until_ended(&mut self) -> ExitStatus {
        let mut status = None;
        poll_until(DEADLINE, || {
            status = self.process.try_wait().expect("the service can be waited for");
            status.is_some()
        });
        status.unwrap_or_else(|| panic!("the service did not stop within {DEADLINE:?}"))
    }

    /// Starts the service again on the data that it left behind; how long it took until it was ready.
    pub(crate) fn restart(&mut self) -> Duration {
        let started = Instant::now();
        self.process = launch(self.shell, self.folder.path(), self.database_url.as_deref());
        self.wait_until_ready();
        started.elapsed()
    }

    /// Starts the service again on the data that it left behind, and waits until it answers, ready or not.
    pub(crate) fn start_again(&mut self) -> SocketAddr {
        self.process = launch(self.shell, self.folder.path(), self.database_url.as_deref());
        let mut address = None;
        poll_until(DEADLINE, || {
            let output = fs::read_to_string(self.folder.path().join("output"));
            address = output.ok().as_deref().and_then(address_in);
            address.is_some()
        });
        self.address = address.expect("the service says where it listens");
        self.address
    }

    /// Runs another subcommand of the executable on this service, with its store and its address and key.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = command(self.folder.path(), self.database_url.as_deref());
        command
            .env("BESPEAK_SERVER", format!("http://{}", self.address))
            .args(arguments);
        output_of(&mut command, DEADLINE)
    }

    /// The same with a standard output that is not read any more.
    pub(crate) fn run_into_nothing(&self, arguments: &[&str]) -> Output {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        drop(reader);
        command(self.folder.path(), self.database_url.as_deref())
            .env("BESPEAK_SERVER", format!("http://{}", self.address))
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("the executable can be started")
    }

    /// Makes a key for a party.
    pub(crate) fn key_for(&self, party: &str, role: &str) -> String {
        let wish = serde_json::json!({ "party": party, "role": role }).to_string();
        let head = format!(
            "Authorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            self.key,
            wish.len()
        );
        let answer = exchange(self.address, "POST /keys", &head, &wish).expect("the service answers");
        let (_, made) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let made: serde_json::Value = serde_json::from_str(made).unwrap_or_default();
        let key = made["key"].as_str();
        key.unwrap_or_else(|| panic!("no key: {answer}")).to_owned()
    }

    /// Asserts that `bespeak verify` finds nothing wrong with the store.
    pub(crate) fn assert_verified(&self) {
        let found = self.run(&["verify"]);
        assert!(
            found.status.success(),
            "verify finds:\n{}{}",
            String::from_utf8_lossy(&found.stdout),
            String::from_utf8_lossy(&found.stderr)
        );
    }

    /// Reads the address of the service from the output of this start, and asks there until it is ready.
    fn wait_until_ready(&mut self) {
        let mut address = None;
        let ready = poll_until(DEADLINE, || {
            address = fs::read_to_string(self.folder.path().join("output"))
                .ok()
                .as_deref()
                .and_then(address_in);
            let ended = self
                .process
                .try_wait()
                .expect("the service can be waited for")
                .is_some();
            ended || address.is_some_and(|address| status_of(address, "/readyz") == Some(200))
        });
        let Some(address) = address.filter(|_| ready && matches!(self.process.try_wait(), Ok(None))) else {
            panic!("the service did not become ready");
        };
        self.address = address;
        let key = fs::read_to_string(self.data_dir().join("operator.key"));
        key.expect("a ready service has left the operator's key")
            .trim()
            .clone_into(&mut self.key);
    }
}

/// Writes a configuration file where [`launch`] looks for it.
pub(crate) fn configure(folder: &Path, configuration: &str) {
    fs::write(folder.join(CONFIGURATION), configuration).expect("the configuration can be written");
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|status| status.is_none()) {
            self.kill9();
        }
        if std::thread::panicking() {
            eprintln!("--- log of the service\n{}---", self.log());
        } else {
            let log = self.log();
            assert!(!log.contains(IMPOSSIBLE), "--- log of the service\n{log}---");
        }
        // Without jobs there is nothing that outlives the service.
        let jobs = fs::read_dir(self.data_dir().join("jobs"));
        if jobs.is_ok_and(|mut jobs| jobs.next().is_some()) {
            processes::end_all_in(self.folder.path());
        }
    }
}

/// The executable with the environment of one service and of nothing else.
fn command(folder: &Path, database_url: Option<&str>) -> Command {
    with_environment(Command::new(EXECUTABLE), folder, database_url)
}

fn with_environment(mut command: Command, folder: &Path, database_url: Option<&str>) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BESPEAK_") {
            command.env_remove(name);
        }
    }
    command
        .current_dir(folder)
        .env("BESPEAK_DATA_DIR", folder.join("data"))
        .env("BESPEAK_CONFIG", folder.join(CONFIGURATION));
    if let Some(url) = database_url {
        command.env("BESPEAK_DATABASE_URL", url);
    }
    command
}

/// Starts `serve` on a port that the system chooses. The output is that of the last start only; the log is that of all starts.
fn launch(shell: Option<&str>, folder: &Path, database_url: Option<&str>) -> Child {
    let mut program = Command::new(shell.map_or(EXECUTABLE, |_| "/bin/sh"));
    if let Some(shell) = shell {
        program.args(["-c", shell, "sh", EXECUTABLE]);
    }
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("log"))
        .expect("a log can be written");
    let output = File::create(folder.join("output")).expect("a file for the output");
    with_environment(program, folder, database_url)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(log)
        .spawn()
        .expect("the executable can be started")
}

/// The address that the service says it listens on.
fn address_in(output: &str) -> Option<SocketAddr> {
    let (_, after) = output.split_once("listening on http://")?;
    after[..after.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ':')))?]
        .parse()
        .ok()
}

/// The status that a path answers with, where anything answers.
fn status_of(address: SocketAddr, path: &str) -> Option<u16> {
    let answer = exchange(address, &format!("GET {path}"), "", "")?;
    answer.split(' ').nth(1)?.parse().ok()
}

/// The answer to a request of a method and a path with these fields and this body, where anything answers.
fn exchange(address: SocketAddr, request: &str, fields: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, DEADLINE).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{fields}\r\n{body}"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
