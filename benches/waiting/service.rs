//! The service that is measured: the executable with a configuration as a site has it, and the processor time that it takes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::Failure;
use super::client::{Client, connections};

/// How long a service may take to be ready or to stop.
const PATIENCE: Duration = Duration::from_mins(10);

/// A running service.
pub(super) struct Service {
    executable: PathBuf,
    folder: PathBuf,
    database: Option<String>,
    process: Child,
    port: u16,
    /// Looks which backends of PostgreSQL serve the service.
    beside: Option<PgConnection>,
    pub(super) http: reqwest::Client,
}

/// Milliseconds for which processors worked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    pub(super) service: f64,
    pub(super) database: f64,
}

/// The work of each process so far.
pub(super) struct Clock {
    service: f64,
    backends: HashMap<u32, f64>,
}

impl Service {
    /// Starts the executable on an empty database with a resource of this many nodes, and waits until it is ready.
    pub(super) async fn start(
        executable: &Path,
        folder: &Path,
        database: Option<&str>,
        nodes: u32,
    ) -> Result<Self, Failure> {
        fs::write(folder.join("bespeak.toml"), configuration(nodes))?;
        // Free at the moment, and kept over a restart.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let beside = match database {
            Some(url) => Some(PgConnection::connect(url).await?),
            None => None,
        };
        let mut service = Self {
            executable: executable.to_owned(),
            folder: folder.to_owned(),
            database: database.map(str::to_owned),
            process: launch(executable, folder, database, port)?,
            port,
            beside,
            http: connections()?,
        };
        service.wait_until_ready().await?;
        Ok(service)
    }

    /// Where it listens.
    pub(super) fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The key of its first operator.
    pub(super) fn operator_key(&self) -> Result<String, Failure> {
        let key = fs::read_to_string(self.folder.join("data/operator.key"))?;
        Ok(key.trim().to_owned())
    }

    /// A new key of a party: its text and its id.
    pub(super) async fn make_key(&self, party: &str) -> Result<(String, String), Failure> {
        let operator = Client::with_key(&self.http, &self.base(), &self.operator_key()?);
        let made = operator.posts("/keys", json!({ "party": party, "role": "consumer" }));
        let made = made.value().await?;
        let text = |member: &str| made[member].as_str().unwrap_or_default().to_owned();
        Ok((text("key"), text("id")))
    }

    /// Stops it and starts it again on what it has left. Returns the time from the start until it was ready.
    pub(super) async fn restart(&mut self) -> Result<Duration, Failure> {
        self.stop().await?;
        let begun = Instant::now();
        self.process = launch(
            &self.executable,
            &self.folder,
            self.database.as_deref(),
            self.port,
        )?;
        self.wait_until_ready().await?;
        Ok(begun.elapsed())
    }

    /// Stops it.
    async fn stop(&mut self) -> Result<(), Failure> {
        let process = self
            .process
            .id()
            .and_then(|id| Pid::from_raw(id.try_into().ok()?));
        if let Some(process) = process {
            kill_process(process, Signal::TERM)?;
        }
        tokio::time::timeout(PATIENCE, self.process.wait()).await??;
        Ok(())
    }

    /// Stops it, and has its executable check all that is stored.
    pub(super) async fn stop_and_verify(&mut self) -> Result<(), Failure> {
        self.stop().await?;
        let mut command = Command::new(&self.executable);
        command
            .arg("verify")
            .current_dir(&self.folder)
            .env("BESPEAK_DATA_DIR", "data");
        if let Some(url) = &self.database {
            command.env("BESPEAK_DATABASE_URL", url);
        }
        let found = command.output().await?;
        if found.status.success() {
            return Ok(());
        }
        Err(format!("verify: {}", String::from_utf8_lossy(&found.stdout)).into())
    }

    /// The work of its processes so far.
    pub(super) async fn clock(&mut self) -> Result<Clock, Failure> {
        let mut backends = HashMap::new();
        if let Some(connection) = &mut self.beside {
            let ids: Vec<i32> = sqlx::query_scalar(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            .fetch_all(connection)
            .await?;
            let ids = ids.into_iter().filter_map(|id| u32::try_from(id).ok());
            backends = ids.filter_map(|id| Some((id, work_of(id)?))).collect();
        }
        let service = self.process.id().and_then(work_of);
        let service = service.ok_or("the service has ended, or the system does not tell its work")?;
        Ok(Clock { service, backends })
    }

    /// The work of its processes since a reading of the clock.
    pub(super) async fn work_since(&mut self, before: &Clock) -> Result<Work, Failure> {
        let now = self.clock().await?;
        let backends = now.backends.iter();
        let each = backends.map(|(id, work)| work - before.backends.get(id).copied().unwrap_or(0.0));
        Ok(Work {
            service: now.service - before.service,
            database: each.sum(),
        })
    }

    async fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let (begun, address) = (Instant::now(), format!("{}/readyz", self.base()));
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.process.try_wait()? {
                return Err(format!("the service ended with {status}: see {}", self.folder.display()).into());
            }
            let answer = self.http.get(&address).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            sleep(Duration::from_millis(5)).await;
        }
        Err("the service did not become ready".into())
    }
}

/// A resource, prices and quotas as a site has them; of the quotas none refuses what is sent here.
fn configuration(nodes: u32) -> String {
    format!(
        "[[resource]]\nname = \"local\"\nkind = \"local\"\nnodes = {nodes}\n\
         [negotiation]\nopen_max = 100000\nholds_max = 1000\nhold_seconds = 3600\n\
         [quotas]\nshare_percent = 50\nnode_hours = 10000000\nhorizon_hours = 8000\nagreements = 1000000\n\
         probes_per_minute = 1000000\n\
         [[quota]]\nparty = \"party-0\"\nnode_hours = 20000000\n\
         [pricing]\ncurrency = \"EUR\"\nnode_hour = \"0.10\"\nbusy_percent = 50\nflexible_percent = 40\n\
         cancellation_percent = 10\nchange_percent = 2\n\
         [[pricing.resource]]\nname = \"local\"\nnode_hour = \"0.25\"\n\
         [[pricing.profile]]\nparty = \"party-1\"\npercent = 80\n"
    )
}

fn launch(executable: &Path, folder: &Path, database: Option<&str>, port: u16) -> Result<Child, Failure> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"))?;
    let mut command = Command::new(executable);
    command
        .args([
            "serve",
            "--listen",
            &format!("127.0.0.1:{port}"),
            "--config",
            "bespeak.toml",
        ])
        .args(["--data-dir", "data"])
        .current_dir(folder)
        .env("RUST_LOG", "warn")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true);
    if let Some(url) = database {
        command.args(["--database-url", url]);
    }
    Ok(command.spawn()?)
}

/// Milliseconds for which processors worked for a process, the threads that have ended included; `None` where it has ended.
#[expect(clippy::cast_precision_loss, reason = "a process does not work for 2⁵³ ticks")]
fn work_of(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before the parenthesis may have spaces. Behind it the state is the third field of proc(5).
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some((field(14)? + field(15)?) as f64 * 1_000.0 / clock_ticks_per_second() as f64)
}
