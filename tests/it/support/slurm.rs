//! A real Slurm for a test: munged, slurmctld and four slurmd on the loopback interface, as children of the test.
//!
//! A shell waits for the end of its standard input, which the test process alone holds open. When the test ends, panics or is
//! killed itself, the shell kills everything that the cluster has started, the jobs too, and removes its folder. As root the
//! cluster runs jobs of several users, otherwise only of the user that runs the tests.

mod accounting;

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::Duration;

use self::accounting::Accounting;
use super::{output_of, poll_until};

/// The nodes of a cluster.
pub(crate) const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];

/// Ends a cluster. A slurmstepd writes over its environment, so that it is found by the log that it has open; jobs and daemons
/// are found by the configuration in their environment. A killed process may have started one more meanwhile.
const GUARD: &str = r#"
read -r _
for round in 1 2 3; do
  for found in $(grep -lzs "^SLURM_CONF=$1/" /proc/[0-9]*/environ) \
               $(find /proc/[0-9]*/fd -maxdepth 1 -lname "$1/slurmd.*.log" 2>/dev/null); do
    process=${found#/proc/}; kill -KILL "${process%%/*}" 2>/dev/null
  done
done
cd /; rm -rf "$1"
"#;

/// How often other ports are tried when another program took one in between.
const PORT_ATTEMPTS: u32 = 5;
/// How long a cluster may take to start, and a command to answer, on a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_mins(3);

/// The form of a cluster.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// How many nodes are configured,
    nodes: usize,
    /// and how many of them, the last ones, are not there.
    missing: usize,
    /// How long its jobs may last, in minutes or as Slurm writes times.
    longest_job: &'static str,
    /// The commands for sacctmgr before the controller starts, where there is accounting that associations and limits are
    /// enforced by: each a command in words.
    accounting: Option<&'static [&'static str]>,
}

impl Shape {
    const USUAL: Self = Self {
        nodes: NODES.len(),
        missing: 0,
        longest_job: "INFINITE",
        accounting: None,
    };
}

/// A running cluster of nodes with four cores each. It ends with this value; its log is shown when that happens in
/// a failing test.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: PathBuf,
    munged: Child,
    accounting: Option<Accounting>,
    controller: Option<Child>,
    nodes: BTreeMap<String, Child>,
    guard: Child,
    lifeline: Option<ChildStdin>,
}

impl Cluster {
    /// Starts a cluster with one partition, `batch`, without a limit for its jobs.
    ///
    /// # Panics
    /// With one sentence when there is no Slurm.
    pub(crate) fn start() -> Self {
        Self::shaped(Shape::USUAL)
    }

    /// Starts a cluster with a limit for its jobs, in minutes or as Slurm writes times.
    pub(crate) fn with_longest_job(longest_job: &'static str) -> Self {
        Self::shaped(Shape {
            longest_job,
            ..Shape::USUAL
        })
    }

    /// Starts a cluster of `nodes` nodes. The last `missing` of them are configured and not there. Its jobs last one minute at
    /// most, and its controller calls silent nodes down after 300 seconds, as Slurm does by default.
    pub(crate) fn with_missing(nodes: usize, missing: usize) -> Self {
        Self::shaped(Shape {
            nodes,
            missing,
            longest_job: "1",
            accounting: None,
        })
    }

    /// Starts a cluster with accounting that is set up by these commands for sacctmgr, and enforces associations, limits and
    /// qualities of service. Its nodes have the feature `fast`, and there are eight licences of `solver`.
    pub(crate) fn accounted(commands: &'static [&'static str]) -> Self {
        Self::shaped(Shape {
            accounting: Some(commands),
            ..Shape::USUAL
        })
    }

    fn shaped(shape: Shape) -> Self {
        let accounting = shape.accounting.map(|_| ["slurmdbd", "mariadbd"]);
        let accounting = accounting.into_iter().flatten();
        for name in ["munged", "slurmctld", "slurmd", "scontrol", "sbatch"]
            .into_iter()
            .chain(accounting)
        {
            assert!(
                program(name).is_some(),
                "These tests need Slurm, and {name} is not installed: on Debian and Ubuntu scripts/test installs the \
                 packages slurmctld, slurmd, slurmdbd, slurm-client, munge and mariadb-server."
            );
        }
        for _ in 0..PORT_ATTEMPTS {
            match Self::on_ports(&free_ports(2 + shape.nodes), shape) {
                Ok(cluster) => return cluster,
                // Another program has taken one of them since: at the same address, or at all addresses.
                Err(log)
                    if log.contains("Address already in use")
                        || log.contains("Zero Bytes were transmitted") => {}
                Err(log) => panic!("Slurm did not start. It says:\n{log}"),
            }
        }
        panic!("Slurm found no free ports in {PORT_ATTEMPTS} attempts.");
    }

    /// Starts a cluster on a port for its controller, one for each node and one for its accounting; its log when it does not come
    /// up.
    fn on_ports(ports: &[u16], shape: Shape) -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("bespeak-slurm-")
            .tempdir()
            .expect("a temporary folder can be made")
            .keep();
        // munged refuses a socket that not all users can reach; jobs of other users have their folders in here.
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("one's folder can be opened");
        fs::create_dir(folder.join("state")).expect("a folder can be made");
        fs::write(folder.join("slurm.conf"), configuration(&folder, ports, shape)).expect("a file");
        // Later versions want control groups unless a setting says otherwise, which 22.05 does not understand.
        if version() > 22 {
            fs::write(folder.join("cgroup.conf"), "CgroupPlugin=disabled\n").expect("a file");
        }
        let key = folder.join("munge.key");
        fs::write(&key, random_bytes()).expect("a file");
        fs::set_permissions(&key, Permissions::from_mode(0o400)).expect("one's file can be closed");
        let mut guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "slurm-guard"])
            .arg(&folder)
            .env_remove("SLURM_CONF")
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell can be run");
        let lifeline = guard.stdin.take();
        let munged = munged(&folder);
        let mut cluster = Self {
            folder,
            munged,
            accounting: None,
            controller: None,
            nodes: BTreeMap::new(),
            guard,
            lifeline,
        };
        let socket = cluster.folder.join("munge.sock");
        if !poll_until(DEADLINE, || socket.exists() || ended(&mut cluster.munged)) || !socket.exists() {
            return Err(cluster.log());
        }
        if let Some(commands) = shape.accounting {
            let port = *ports.last().unwrap_or(&0);
            let accounting = Accounting::start(&cluster.folder, port, &host(), &slurm_user());
            cluster.accounting = Some(accounting.map_err(|why| format!("{why}\n{}", cluster.log()))?);
            for command in commands {
                let words: Vec<&str> = ["-i"].into_iter().chain(command.split(' ')).collect();
                cluster.run("sacctmgr", &words);
            }
        }
        cluster.start_controller();
        // A node that registers while the controller is not ready may be overheard, and then stays unknown for minutes.
        let is_ready = poll_until(DEADLINE, || {
            let is_up = cluster.try_run("scontrol", &["ping"]).status.success();
            is_up || cluster.controller.as_mut().is_none_or(ended)
        });
        if !is_ready {
            return Err(cluster.log());
        }
        let there = shape.nodes - shape.missing;
        for number in 1..=there {
            cluster.start_node(&format!("n{number}"));
        }
        if cluster.settled(there, "idle") {
            Ok(cluster)
        } else {
            Err(cluster.log())
        }
    }

    /// Waits until this many nodes are in that state; false when a daemon ends or it takes too long.
    fn settled(&mut self, nodes: usize, state: &str) -> bool {
        let settled = poll_until(DEADLINE, || {
            let states = self.try_run("sinfo", &["-h", "-N", "-o", "%T"]);
            let all = String::from_utf8_lossy(&states.stdout)
                .lines()
                .filter(|line| *line == state)
                .count();
            all == nodes || self.has_lost_a_daemon()
        });
        settled && !self.has_lost_a_daemon()
    }

    /// Whether its controller or the daemon of a node has ended, as one does when another program has taken its port.
    fn has_lost_a_daemon(&mut self) -> bool {
        self.controller.as_mut().is_none_or(ended) || self.nodes.values_mut().any(ended)
    }

    /// Its configuration file, for `SLURM_CONF`.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    /// A user that jobs can run as: not root where there is another one.
    pub(crate) fn user() -> String {
        if rustix::process::geteuid().is_root() {
            return "daemon".to_owned();
        }
        let named = output_of(Command::new("id").arg("-un"), DEADLINE);
        String::from_utf8_lossy(&named.stdout).trim().to_owned()
    }

    /// Its folder, which every user can enter.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The output of one of its commands.
    ///
    /// # Panics
    /// With its output, when it fails.
    pub(crate) fn run(&self, name: &str, arguments: &[&str]) -> String {
        let output = self.try_run(name, arguments);
        assert!(
            output.status.success(),
            "{name} {arguments:?} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// How one of its commands ends.
    pub(crate) fn try_run(&self, name: &str, arguments: &[&str]) -> Output {
        let mut command = daemon(name, &self.folder);
        output_of(command.args(arguments), DEADLINE)
    }

    /// The reservation of that name, by the keys that `scontrol show reservation` writes.
    pub(crate) fn reservation(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let shown = self.run("scontrol", &["-o", "show", "reservation"]);
        let line = shown
            .lines()
            .find(|line| line.starts_with(&format!("ReservationName={name} ")))?;
        let pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
        Some(
            pairs
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    /// The jobs in its records, also ended ones, each as its id, name and state.
    pub(crate) fn jobs(&self) -> Vec<[String; 3]> {
        let listed = self.run("squeue", &["-a", "-h", "-t", "all", "-o", "%i|%j|%T"]);
        let fields = |line: &str| {
            let mut fields = line.splitn(3, '|').map(str::to_owned);
            std::array::from_fn(|_| fields.next().unwrap_or_default())
        };
        listed.lines().map(fields).collect()
    }

    /// Kills the controller, as a crash does: data that it had not written down are forgotten.
    pub(crate) fn kill_controller(&mut self) {
        if let Some(mut controller) = self.controller.take() {
            controller.kill().expect("a child can be killed");
            controller.wait().expect("a killed process ends");
        }
    }

    /// Starts the controller, on the data that the last one left behind.
    pub(crate) fn start_controller(&mut self) {
        self.start_controller_in("UTC");
    }

    /// The same in another time zone.
    pub(crate) fn start_controller_in(&mut self, zone: &str) {
        let controller = daemon("slurmctld", &self.folder)
            .arg("-D")
            .env("TZ", zone)
            .spawn();
        self.controller = Some(controller.expect("slurmctld can be run"));
    }

    /// Starts a node that is down.
    pub(crate) fn start_node(&mut self, node: &str) {
        let slurmd = daemon("slurmd", &self.folder).args(["-D", "-N", node]).spawn();
        self.nodes
            .insert(node.to_owned(), slurmd.expect("slurmd can be run"));
    }

    /// Takes a node's power away: its daemon and everything that runs there dies. Slurm notices that some time later.
    pub(crate) fn cut_power(&mut self, node: &str) {
        let log = self.folder.join(format!("slurmd.{node}.log"));
        let name = format!("SLURMD_NODENAME={node}");
        let configuration = format!("SLURM_CONF={}", self.configuration().display());
        for _ in 0..3 {
            for entry in fs::read_dir("/proc").expect("Linux has /proc").flatten() {
                let Some(process) = entry
                    .file_name()
                    .to_str()
                    .and_then(|name| name.parse().ok())
                    .and_then(rustix::process::Pid::from_raw)
                else {
                    continue;
                };
                let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
                let has = |entry: &str| {
                    environment
                        .split(|byte| *byte == 0)
                        .any(|each| each == entry.as_bytes())
                };
                let is_job = has(&name) && has(&configuration);
                if is_job || has_open(&entry.path(), &log) {
                    let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
                }
            }
        }
        if let Some(mut slurmd) = self.nodes.remove(node) {
            slurmd.wait().expect("a killed process ends");
        }
    }

    /// The end of the daemons' logs.
    fn log(&self) -> String {
        let mut log = String::new();
        let services = ["munged.log", "mariadb.log", "slurmdbd.log", "slurmctld.log"];
        let nodes = self.nodes.keys().map(|node| format!("slurmd.{node}.log"));
        for name in services.map(str::to_owned).into_iter().chain(nodes) {
            let Ok(text) = fs::read_to_string(self.folder.join(&name)) else {
                continue;
            };
            let lines: Vec<_> = text.lines().collect();
            log += &format!("--- {name}\n");
            for line in &lines[lines.len().saturating_sub(60)..] {
                log += line;
                log.push('\n');
            }
        }
        log
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}---", self.log());
        }
        drop(self.lifeline.take());
        let _ = self.guard.wait();
        let _ = self.munged.wait();
        if let Some(controller) = &mut self.controller {
            let _ = controller.wait();
        }
        if let Some(accounting) = &mut self.accounting {
            accounting.wait();
        }
        for slurmd in self.nodes.values_mut() {
            let _ = slurmd.wait();
        }
    }
}

/// A program of Slurm, for the cluster in this folder.
fn daemon(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(program(name).unwrap_or_else(|| name.into()));
    command
        .env("SLURM_CONF", folder.join("slurm.conf"))
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The daemon by which the others authenticate each other.
fn munged(folder: &Path) -> Child {
    let log = File::create(folder.join("munged.log")).expect("a log can be written");
    let option = |name: &str, file: &str| format!("--{name}={}", folder.join(file).display());
    daemon("munged", folder)
        .arg("--foreground")
        .arg(option("socket", "munge.sock"))
        .arg(option("key-file", "munge.key"))
        .arg(option("pid-file", "munged.pid"))
        .arg(option("seed-file", "munged.seed"))
        .stderr(log)
        .spawn()
        .expect("munged can be run")
}

/// A program by its name; daemons lie where only root looks by default.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// The first number of Slurm's version, which is a year.
fn version() -> u32 {
    let mut command = Command::new(program("slurmd").unwrap_or_else(|| "slurmd".into()));
    let said = output_of(command.arg("-V"), DEADLINE).stdout;
    let said = String::from_utf8_lossy(&said);
    let number = said
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .split('.')
        .next();
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("slurmd -V says {said:?}"))
}

/// Whether a process has a file open.
fn has_open(process: &Path, file: &Path) -> bool {
    let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    open.into_iter()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == file))
}

fn ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

/// This many ports of the loopback interface that are free at this moment.
fn free_ports(count: usize) -> Vec<u16> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of the loopback interface");
    let listeners: Vec<_> = (0..count).map(|_| bind()).collect();
    let ports = listeners.iter().map(TcpListener::local_addr);
    ports
        .map(|address| address.expect("a bound listener has an address").port())
        .collect()
}

fn random_bytes() -> [u8; 1_024] {
    let mut bytes = [0; 1_024];
    let mut source = File::open("/dev/urandom").expect("Linux has /dev/urandom");
    std::io::Read::read_exact(&mut source, &mut bytes).expect("it never ends");
    bytes
}

/// The name of this machine, as Slurm knows it.
fn host() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux tells the host's name");
    host.trim().split('.').next().unwrap_or_default().to_owned()
}

/// The user that the daemons run as.
fn slurm_user() -> String {
    if rustix::process::geteuid().is_root() {
        "root".to_owned()
    } else {
        rustix::process::geteuid().as_raw().to_string()
    }
}

/// The text of slurm.conf. Everything is quick to notice; nothing needs privileges that an ordinary user has not.
fn configuration(folder: &Path, ports: &[u16], shape: Shape) -> String {
    let (host, user) = (host(), slurm_user());
    let dir = folder.display();
    let silent_seconds = if shape.missing > 0 { 300 } else { 6 };
    let mut text = format!(
        "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser={user}\nSlurmdUser={user}\n\
         SlurmctldPort={}\nAuthType=auth/munge\nAuthInfo=socket={dir}/munge.sock\nCredType=cred/munge\n\
         CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\nStateSaveLocation={dir}/state\n\
         SlurmdSpoolDir={dir}/spool.%n\nSlurmctldPidFile={dir}/slurmctld.pid\nSlurmdPidFile={dir}/slurmd.%n.pid\n\
         SlurmctldLogFile={dir}/slurmctld.log\nSlurmdLogFile={dir}/slurmd.%n.log\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nSchedulerType=sched/backfill\n\
         SchedulerParameters=bf_interval=1,bf_resolution=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0\n\
         SlurmdParameters=config_overrides\nReturnToService=1\nSlurmctldTimeout=30\nSlurmdTimeout={silent_seconds}\nKillWait=2\nBatchStartTimeout=30\n\
         MinJobAge=600\nJobCompType=jobcomp/filetxt\nJobCompLoc={dir}/jobcomp.log\n",
        ports[0]
    );
    let mut feature = "";
    if shape.accounting.is_some() {
        feature = " Feature=fast";
        text += &format!(
            "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n\
             AccountingStoragePass={dir}/munge.sock\n\
             AccountingStoragePort={}\nAccountingStorageEnforce=associations,limits,qos\nLicenses=solver:8\n",
            ports[shape.nodes + 1]
        );
    } else {
        text += "AccountingStorageType=accounting_storage/none\n";
    }
    for (number, port) in (1_u32..).zip(&ports[1..=shape.nodes]) {
        text += &format!(
            "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=1000{feature}\n"
        );
    }
    text += &format!(
        "PartitionName=batch Nodes=ALL Default=YES MaxTime={} DefaultTime=10 DefMemPerCPU=100 State=UP\n",
        shape.longest_job
    );
    text
}

#[test]
fn a_test_cluster_runs_jobs_loses_nodes_and_leaves_nothing_behind() {
    let mut cluster = Cluster::start();
    let script = cluster.folder().join("script");
    fs::write(&script, "#!/bin/sh\nsleep 86399\n").expect("a file");
    let script = script.to_str().expect("a plain name");
    cluster.run(
        "sbatch",
        &[
            "-w",
            "n1",
            "-J",
            "long",
            "-o",
            "/dev/null",
            "--no-requeue",
            script,
        ],
    );
    let running = |cluster: &Cluster| cluster.jobs().iter().any(|[_, _, state]| state == "RUNNING");
    let folder = cluster.folder().to_owned();
    let begun = || find_processes(&folder) > 8;
    assert!(
        poll_until(DEADLINE, || running(&cluster) && begun()),
        "{:?}",
        cluster.jobs()
    );
    cluster.cut_power("n1");
    cluster.run(
        "scontrol",
        &["update", "nodename=n1", "state=down", "reason=test"],
    );
    cluster.kill_controller();
    cluster.start_controller();
    cluster.run(
        "scontrol",
        &[
            "create",
            "reservation",
            "ReservationName=kept",
            "StartTime=now+3600",
            "Duration=10",
            "Nodes=n3",
            "Users=root",
        ],
    );
    assert!(
        poll_until(DEADLINE, || !running(&cluster)),
        "{:?}",
        cluster.jobs()
    );
    let kept = cluster.reservation("kept").expect("the new controller holds it");
    assert_eq!(kept["Nodes"], "n3");
    drop(cluster);
    assert!(!folder.exists());
    // A killed process has not always ended yet.
    assert!(poll_until(DEADLINE, || find_processes(&folder) == 0));
}

/// How many processes belong to the cluster in a folder.
fn find_processes(folder: &Path) -> usize {
    let setting = format!("SLURM_CONF={}/slurm.conf", folder.display());
    let processes = fs::read_dir("/proc").expect("Linux has /proc").flatten();
    processes
        .filter(|entry| {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|each| each == setting.as_bytes())
        })
        .count()
}
