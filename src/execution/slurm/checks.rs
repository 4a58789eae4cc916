//! The checks of a cluster's set-up: each looks at one thing that a promise needs, and names the fault that it finds.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::chown;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use scheduler::Time;
use uuid::Uuid;

use crate::agreement::Run;
use crate::clock::Clock;
use crate::execution::slurm::SlurmExecutor;
use crate::execution::slurm::commands::{Error, option};
use crate::execution::slurm::helper::operation::{Flag, Operation, Reservation};
use crate::execution::slurm::jobs::dry_run::{DryRun, Verdict};
use crate::execution::slurm::jobs::shared_folder::open_file;
use crate::execution::slurm::query::controller_time;
use crate::execution::{Check, ExecutionError, Found};

/// The programs of Slurm that are run.
const PROGRAMS: [&str; 5] = ["scontrol", "sbatch", "squeue", "scancel", "sinfo"];
/// The versions that the tests have been run with.
const TESTED: [&str; 3] = ["22.05", "24.11", "26.05"];
/// Seconds by which clocks may differ: slots begin and end by that of the service, reservations by the controller's, jobs by
/// their node's.
const CLOCKS_DIFFER_MAX: i64 = 2;
/// Seconds from now to the begin of the reservation that probes the right to make one: far from all plans.
const PROBE_AHEAD: i64 = 300 * 86_400;
/// Names that are listed at most.
const NAMES_MAX: usize = 10;
/// How often it is looked whether the probe has run on its node.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The most bytes that are read of its output.
const SEEN_MAX: u64 = 200;

type Seen = Result<Found, Error>;

impl SlurmExecutor {
    /// Looks at everything that needs no job: programs and their versions, controller, clocks, partition, nodes, users, accounts,
    /// the right to make reservations, the shared folder as this machine sees it. Ends with the first thing that leaves nothing
    /// to be said of the rest.
    pub(crate) fn check_all(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        let mut look = |what, seen: Seen| {
            let found = seen.unwrap_or_else(|why| Found::Wrong(why.to_string()));
            let goes_on = !matches!(found, Found::Wrong(_));
            checks.push(Check { what, found });
            goes_on
        };
        if look("programs", self.programs()) && look("controller", self.controller()) {
            if self.helper.is_some() && !look("helper", Ok(self.greet_helper())) {
                return checks;
            }
            if look("partition", self.partition()) {
                look("nodes", self.known_nodes());
                if look("users", self.users()) {
                    look("rights", self.right_to_reserve());
                    look("submission", self.submission());
                }
            }
            look("folder", Ok(self.shared_folder()));
        }
        checks
    }

    /// The same, and whether a job on a node finds the shared folder, and the time of its clock, where one is over within
    /// `wait`. A network disk may take half a minute to show a file here that was written there.
    pub fn check_with_job(&self, wait: Duration) -> Vec<Check> {
        let mut checks = self.check_all();
        if checks.iter().all(|check| !matches!(check.found, Found::Wrong(_))) {
            let seen = self.seen_by_a_job(wait);
            checks.push(Check {
                what: "job",
                found: seen.unwrap_or_else(|why| Found::Wrong(why.to_string())),
            });
        }
        checks
    }

    fn programs(&self) -> Seen {
        // Without it each program waits for a minute.
        if let Some(configuration) = &self.settings.configuration
            && let Err(why) = fs::metadata(configuration)
        {
            return Ok(Found::Wrong(format!("{}: {why}", configuration.display())));
        }
        let mut versions = Vec::new();
        for program in PROGRAMS {
            let said = self.slurm.call(program, ["--version"])?;
            let version = said.split_whitespace().last().unwrap_or_default();
            if !versions.iter().any(|of| of == version) {
                versions.push(version.to_owned());
            }
        }
        let [version] = versions.as_slice() else {
            return Ok(Found::Wrong(format!(
                "they are of versions {}",
                versions.join(" and ")
            )));
        };
        let is_tested = TESTED.iter().any(|of| version.starts_with(of));
        let tested = TESTED.join(", ");
        Ok(Found::Good(if is_tested {
            format!("Slurm {version}")
        } else {
            format!("Slurm {version}, which is not tested; {tested} are")
        }))
    }

    fn controller(&self) -> Seen {
        let before = Clock::system().now();
        let shown = self.slurm.call("scontrol", ["show", "config"])?;
        let Some(at) = controller_time(&shown) else {
            return Ok(Found::Unknown(
                "it answers, and does not tell its time".to_owned(),
            ));
        };
        Ok(of_clock("the controller", at, (before, Clock::system().now())))
    }

    /// Whether the helper answers, lets the service speak to it, and means the same cluster.
    fn greet_helper(&self) -> Found {
        let settings = &self.settings;
        let greeted = self.act(Operation::Greet {
            partition: settings.partition.clone(),
            nodes: settings.nodes.clone(),
            work_dir: settings.work_dir.clone(),
        });
        let socket = self
            .helper
            .as_ref()
            .map_or_else(String::new, |of| of.socket().display().to_string());
        match greeted {
            Ok(_) => Found::Good(format!("it answers at {socket}, and knows the same cluster")),
            Err(Error::Refused { said, .. }) => Found::Wrong(format!("it refuses: {said}")),
            Err(Error::Missing { why, .. }) => Found::Wrong(format!("it does not answer: {why}")),
            Err(why) => Found::Wrong(why.to_string()),
        }
    }

    fn partition(&self) -> Seen {
        let name = &self.settings.partition;
        let shown = self.slurm.call("sinfo", ["-h", "-p", name, "-o", "%a"])?;
        Ok(match shown.split_whitespace().next() {
            None => Found::Wrong(format!("Slurm has no partition {name}")),
            Some("up") => Found::Good(format!("{name} is up")),
            Some(state) => Found::Wrong(format!("{name} is {state}: it starts no jobs")),
        })
    }

    fn known_nodes(&self) -> Seen {
        let rows = self.slurm.nodes(&self.settings.partition)?;
        let is_there = |name: &&String| rows.iter().any(|row| row.name == **name);
        let nodes = &self.settings.nodes;
        let missing: Vec<&str> = nodes
            .iter()
            .filter(|name| !is_there(name))
            .map(String::as_str)
            .collect();
        Ok(if missing.is_empty() {
            Found::Good(format!("all {} are in the partition", nodes.len()))
        } else {
            let shown = missing[..missing.len().min(NAMES_MAX)].join(", ");
            let partition = &self.settings.partition;
            Found::Wrong(format!(
                "{} of {} are not in {partition}: {shown}; node_list names them",
                missing.len(),
                nodes.len()
            ))
        })
    }

    /// The parties of which each has another user, account or policy, by their names; none is the one for all others.
    fn parties(&self) -> impl Iterator<Item = &str> {
        let settings = &self.settings;
        let named: BTreeSet<&str> = settings
            .parties
            .keys()
            .chain(settings.policies.parties.keys())
            .map(String::as_str)
            .collect();
        std::iter::once("").chain(named)
    }

    fn users(&self) -> Seen {
        let mut wrong = Vec::new();
        for party in self.parties() {
            match self.owner_of(party) {
                Ok(_) => {}
                Err(Error::Refused { said, .. }) if wrong.contains(&said) => {}
                Err(Error::Refused { said, .. }) => wrong.push(said),
                Err(why) => return Err(why),
            }
        }
        Ok(if wrong.is_empty() {
            Found::Good("all are known, and may have jobs".to_owned())
        } else {
            Found::Wrong(wrong.join("; "))
        })
    }

    /// Makes a reservation far in the future, and deletes it. Its mark has it deleted by the service, too.
    fn right_to_reserve(&self) -> Seen {
        let id = Run::first(Uuid::now_v7());
        let start = (Clock::system().now() + PROBE_AHEAD).seconds();
        if let Err(why) = self.make_mark(id) {
            return Ok(Found::Wrong(why.to_string()));
        }
        let made = self.act(Operation::Reserve(Reservation {
            id,
            start: Some(start),
            end: start + 60,
            nodes: vec![self.settings.nodes[0].clone()],
            users: self.settings.account.user.clone(),
            party: String::new(),
            application: String::new(),
            flags: vec![Flag::Overlap, Flag::IgnoreJobs],
        }));
        let deleted = made.and_then(|_| self.delete(id));
        // Where it is still there the service deletes it by its mark.
        let is_gone =
            deleted.is_ok() || matches!(&deleted, Err(Error::Refused { said, .. }) if is_about_rights(said));
        if is_gone {
            let _ = fs::remove_file(self.mark(id));
        }
        Ok(match deleted {
            Ok(()) => Found::Good("a reservation was made and deleted".to_owned()),
            Err(Error::Refused { said, .. }) if is_about_rights(&said) => Found::Wrong(format!(
                "{said}: reservations take root, SlurmUser or an operator of Slurm"
            )),
            Err(Error::Refused { said, .. }) => Found::Wrong(format!("no reservation could be made: {said}")),
            Err(why) => return Err(why),
        })
    }

    /// Has Slurm judge a job of one node and a minute of each party and application, where these differ in the user or in the
    /// options of the submission. If Slurm refuses all, the cluster has a fault. If Slurm refuses some, these are told with each
    /// offer.
    fn submission(&self) -> Seen {
        let (mut judged, mut refused, mut unknown) = (Vec::new(), Vec::new(), None);
        for (party, application) in self.kinds_of_jobs() {
            let dry = DryRun {
                party: party.to_owned(),
                application: application.to_owned(),
                nodes: 1,
                minutes: 1,
            };
            let kind = self.kind_of(&dry)?;
            if judged.contains(&kind) {
                continue;
            }
            match self.try_out(&dry) {
                Verdict::Takes => {}
                // No node is free, a limit is reached, or the partition wants reservations, which these jobs do not have.
                Verdict::Unknown(said) => unknown = Some(said),
                Verdict::Refuses(said) => {
                    let account = self.settings.account_of(party);
                    let (user, account) = (&account.user, account.account.as_deref());
                    let account = account.unwrap_or("the default");
                    let of = if application.is_empty() { "" } else { " for " };
                    refused.push(format!(
                        "as {user} with account {account}{of}{application}: {said}"
                    ));
                }
            }
            judged.push(kind);
        }
        let words = refused[..refused.len().min(NAMES_MAX)].join("; ");
        Ok(if refused.is_empty() {
            unknown.map_or_else(
                || Found::Good("Slurm would take the jobs of all users".to_owned()),
                Found::Unknown,
            )
        } else if refused.len() == judged.len() {
            Found::Wrong(words)
        } else {
            Found::Unknown(format!(
                "Slurm would refuse some jobs, and so are their offers: {words}"
            ))
        })
    }

    /// The parties and applications with jobs that may be submitted in different ways: none stands for any that is not
    /// named.
    fn kinds_of_jobs(&self) -> impl Iterator<Item = (&str, &str)> {
        let applications = self.settings.policies.applications.keys();
        let applications: Vec<&str> = std::iter::once("")
            .chain(applications.map(String::as_str))
            .collect();
        self.parties()
            .flat_map(move |party| applications.clone().into_iter().map(move |of| (party, of)))
    }

    fn shared_folder(&self) -> Found {
        let folder = self.settings.work_dir.display();
        match self.act(Operation::Touch) {
            Ok(_) => Found::Good(format!("{folder} is written here")),
            Err(Error::Unknown { said, .. }) => Found::Wrong(format!("{folder} cannot be written: {said}")),
            Err(why) => Found::Wrong(why.to_string()),
        }
    }

    /// Writes into the shared folder, and removes that.
    pub(crate) fn touch_shared_folder(&self) -> Result<(), ExecutionError> {
        let probe = self.probe_folder(Uuid::now_v7());
        let written = fs::write(&probe, "").and_then(|()| fs::remove_file(&probe));
        written.map_err(ExecutionError::system("write", probe))
    }

    /// Has a job read a file of the shared folder on a node, and write its content and the time of the node's clock.
    fn seen_by_a_job(&self, wait: Duration) -> Seen {
        let token = Uuid::now_v7();
        let seen = self.run_probe(token, wait);
        // Files that the job writes later do no harm.
        let _ = self.act(Operation::Forget { token });
        seen
    }

    /// Makes a folder with a file for a job to read, and submits the job; answers its number.
    pub(crate) fn submit_probe(&self, token: Uuid) -> Result<String, ExecutionError> {
        let folder = self.probe_folder(token);
        let owner = self.owner_of("")?;
        let prepared = fs::create_dir(&folder)
            .and_then(|()| fs::write(folder.join("token"), token.to_string()))
            .and_then(|()| chown(folder.join("token"), Some(owner.user), Some(owner.group)))
            .and_then(|()| chown(&folder, Some(owner.user), Some(owner.group)));
        prepared.map_err(ExecutionError::system("prepare", &folder))?;
        let mut arguments = self.job_arguments(("", ""), 1, 1)?;
        arguments.extend([
            "--parsable".into(),
            format!("--job-name={}", self.name_of(Run::first(token))).into(),
            option("--chdir", &folder),
            "--output=/dev/null".into(),
            "--error=/dev/null".into(),
            "--wrap=echo $(cat token) $(date +%s) >draft && mv draft seen".into(),
        ]);
        let submitted = self.slurm.call("sbatch", arguments)?;
        Ok(submitted.trim().split(';').next().unwrap_or_default().to_owned())
    }

    /// The output of that job; nothing before it has written it.
    pub(crate) fn seen_by_probe(&self, token: Uuid) -> Result<String, ExecutionError> {
        let (folder, owner) = (self.probe_folder(token), self.owner_of("")?);
        let work_dir = &self.settings.work_dir;
        let mut seen = String::new();
        let mut read = || -> std::io::Result<()> {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = rustix::fs::open(&folder, flags, Mode::empty())?;
            let file = open_file(&opened, "seen", owner)?;
            file.take(SEEN_MAX).read_to_string(&mut seen).map(drop)
        };
        match read() {
            Err(why) if why.kind() != ErrorKind::NotFound => Err(ExecutionError::system(
                "read the output of a job in",
                work_dir,
            )(why)),
            _ => Ok(seen),
        }
    }

    fn run_probe(&self, token: Uuid, wait: Duration) -> Seen {
        let before = Clock::system().now();
        let job = self.act(Operation::Probe { token })?;
        let began = Instant::now();
        while began.elapsed() < wait {
            let seen = self.act(Operation::Seen { token })?;
            if !seen.is_empty() {
                let mut words = seen.split_whitespace();
                let (read, time) = (words.next(), words.next().and_then(|time| time.parse().ok()));
                return Ok(match time {
                    Some(time) if read == Some(&token.to_string()) => {
                        of_clock("the node", Time(time), (before, Clock::system().now()))
                    }
                    _ => Found::Wrong("its node could not read the file that was written here".to_owned()),
                });
            }
            thread::sleep(LOOK_EVERY);
        }
        let state = self
            .slurm
            .call("squeue", ["-h", "-t", "all", "-j", &job, "-o", "%T %r"])?;
        let (state, seconds) = (state.trim().to_owned(), wait.as_secs());
        // It may have ended in between.
        let _ = self.act(Operation::Cancel { jobs: vec![job] });
        let is_over = ["COMPLETED", "FAILED"].iter().any(|word| state.starts_with(word));
        Ok(if is_over {
            let folder = self.settings.work_dir.display();
            Found::Wrong(format!(
                "it has run, and nothing of it is in {folder} here after {seconds} seconds: is that the same folder on the nodes?"
            ))
        } else {
            Found::Unknown(format!("it was not over within {seconds} seconds ({state})"))
        })
    }
}

/// The meaning of another clock's time that was read between two instants of this machine's clock.
fn of_clock(whose: &str, at: Time, (before, after): (Time, Time)) -> Found {
    let (ahead, behind) = (before - at, at - after);
    if ahead > CLOCKS_DIFFER_MAX {
        Found::Wrong(format!(
            "this machine's clock is {ahead} seconds ahead of that of {whose}"
        ))
    } else if behind > CLOCKS_DIFFER_MAX {
        Found::Wrong(format!(
            "this machine's clock is {behind} seconds behind that of {whose}"
        ))
    } else {
        Found::Good(format!("{whose} answers, and its clock agrees"))
    }
}

fn is_about_rights(said: &str) -> bool {
    ["denied", "permission", "rivilege"]
        .iter()
        .any(|word| said.contains(word))
}
