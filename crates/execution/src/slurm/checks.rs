//! The checks of a cluster's set-up: each looks at one thing that a promise needs, and names the fault that it finds.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::chown;
use std::thread;
use std::time::{Duration, Instant};

use domain::agreement::Run;
use domain::clock::Clock;
use rustix::fs::{Mode, OFlags};
use scheduler::domain::Attribute;
use scheduler::{Time, counted};
use uuid::Uuid;

use crate::files::if_there;
use crate::slurm::commands::command_option;
use crate::slurm::error::Error;
use crate::slurm::executor::SlurmExecutor;
use crate::slurm::helper::operation::{DryRun, Flag, Operation, Reservation};
use crate::slurm::helper::socket::Helper;
use crate::slurm::jobs::shared_folder::open_file_of_owner;
use crate::slurm::jobs::verdict::Verdict;
use crate::slurm::query::read_controller_time;
use crate::slurm::settings::Settings;
use crate::{CheckResult, ExecutionError, SetupCheck};

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

/// The good state of something, in words, or else how it was found.
type CheckedState = Result<String, CheckResult>;

impl From<Error> for CheckResult {
    fn from(why: Error) -> Self {
        Self::Wrong(why.to_string())
    }
}

impl SlurmExecutor {
    /// Looks at everything that needs no job: programs and their versions, controller, clocks, partition, nodes, users, accounts,
    /// the right to make reservations, the shared folder as this machine sees it. Ends with the first thing that leaves nothing
    /// to be said of the rest.
    pub(crate) fn check_all(&self) -> Vec<SetupCheck> {
        let mut checks = Vec::new();
        let mut look = |what, seen: CheckedState| {
            let found = found_by_check(seen);
            let goes_on = !matches!(found, CheckResult::Wrong(_));
            checks.push(SetupCheck { what, found });
            goes_on
        };
        if look("programs", self.check_programs()) && look("controller", self.check_controller()) {
            if let Some(helper) = &self.helper
                && !look("helper", self.check_helper(helper))
            {
                return checks;
            }
            if look("partition", self.check_partition()) {
                look("nodes", self.check_nodes());
                if look("users", self.check_users()) {
                    look("rights", self.check_right_to_reserve());
                    look("submission", self.check_submission());
                }
            }
            look("folder", self.check_shared_folder());
        }
        checks
    }

    /// Checks all, and whether a job on a node finds the shared folder, and the time of its clock, where such a job is over within
    /// `wait`. A network disk may take half a minute to show a file here that was written there.
    pub fn check_with_job(&self, wait: Duration) -> Vec<SetupCheck> {
        let mut checks = self.check_all();
        if checks
            .iter()
            .all(|check| !matches!(check.found, CheckResult::Wrong(_)))
        {
            let seen = self.seen_by_a_job(wait);
            let found = found_by_check(seen);
            checks.push(SetupCheck { what: "job", found });
        }
        checks
    }

    fn check_programs(&self) -> CheckedState {
        // Without it each program waits for a minute.
        if let Some(configuration) = &self.settings.configuration
            && let Err(why) = fs::metadata(configuration)
        {
            return failed_check(format!("{}: {why}", configuration.display()));
        }
        let mut versions = Vec::new();
        for program in PROGRAMS {
            let said = self.slurm.call(program, ["--version"])?;
            let version = said.split_whitespace().last().unwrap_or_default();
            if !versions.iter().any(|one_version| one_version == version) {
                versions.push(version.to_owned());
            }
        }
        let [version] = versions.as_slice() else {
            let versions = versions.join(" and ");
            return failed_check(format!("they are of versions {versions}"));
        };
        let is_tested = TESTED.iter().any(|tested| version.starts_with(tested));
        let tested = TESTED.join(", ");
        Ok(if is_tested {
            format!("Slurm {version}")
        } else {
            format!("Slurm {version}, which is not tested; {tested} are")
        })
    }

    fn check_controller(&self) -> CheckedState {
        let before = Clock::system().now();
        let shown = self.slurm.call("scontrol", ["show", "config"])?;
        let untold = || CheckResult::Unknown("it answers, and does not tell its time".to_owned());
        let at = read_controller_time(&shown).ok_or_else(untold)?;
        compare_clocks("the controller", at, (before, Clock::system().now()))
    }

    /// Whether the helper answers, lets the service speak to it, and means the same cluster.
    fn check_helper(&self, helper: &Helper) -> CheckedState {
        let settings = &self.settings;
        let greeted = self.perform_operation(Operation::Greet {
            partition: settings.partition.clone(),
            nodes: settings.nodes.clone(),
            work_dir: settings.work_dir.clone(),
        });
        let socket = helper.socket.display();
        match greeted {
            Ok(_) => Ok(format!("it answers at {socket}, and knows the same cluster")),
            Err(Error::Refused(_, said)) => failed_check(format!("it refuses: {said}")),
            Err(Error::Missing(_, why)) => failed_check(format!("it does not answer: {why}")),
            Err(why) => Err(why.into()),
        }
    }

    fn check_partition(&self) -> CheckedState {
        let name = &self.settings.partition;
        let shown = self.slurm.call("sinfo", ["-h", "-p", name, "-o", "%a"])?;
        match shown.split_whitespace().next() {
            None => failed_check(format!("Slurm has no partition {name}")),
            Some("up") => Ok(format!("{name} is up")),
            Some(state) => failed_check(format!("{name} is {state}: it starts no jobs")),
        }
    }

    fn check_nodes(&self) -> CheckedState {
        let rows = self.slurm.nodes(&self.settings.partition)?;
        let is_there = |name: &&String| rows.iter().any(|row| row.name == **name);
        let nodes = &self.settings.nodes;
        let missing = nodes.iter().filter(|name| !is_there(name));
        let missing: Vec<&str> = missing.map(String::as_str).collect();
        let (many, all, partition) = (missing.len(), nodes.len(), &self.settings.partition);
        if many == 0 {
            self.check_promised_numbers()?;
            return Ok(format!("all {all} are in the partition"));
        }
        let shown = missing[..many.min(NAMES_MAX)].join(", ");
        failed_check(format!(
            "{many} of {all} are not in {partition}: {shown}; node_list names them"
        ))
    }

    /// Whether each node has what the configuration says of it, as far as Slurm knows. Slurm's word may be the wrong one.
    fn check_promised_numbers(&self) -> Result<(), CheckResult> {
        let Settings {
            nodes,
            attributes,
            partition,
            ..
        } = &self.settings;
        for (attribute, promised) in attributes {
            let Attribute::Number(promised) = promised else {
                continue;
            };
            let known = self.slurm.number_of_nodes(partition, attribute)?;
            let short = known
                .iter()
                .find(|(name, has)| has.is_none_or(|has| has < *promised) && nodes.contains(name));
            if let Some((name, has)) = short {
                let has = has.map_or_else(|| "an unknown number of".to_owned(), |has| has.to_string());
                let words = format!(
                    "{name} has {has} {attribute} by Slurm's word, and {promised} by the configuration's"
                );
                return Err(CheckResult::Unknown(words));
            }
        }
        Ok(())
    }

    /// The parties of which each has another user, account or policy, by their names; none is the one for all others.
    fn parties(&self) -> impl Iterator<Item = &str> {
        let Settings {
            parties, policies, ..
        } = &self.settings;
        let named = parties.keys().chain(policies.parties.keys());
        let all: BTreeSet<&str> = named.map(String::as_str).chain([""]).collect();
        all.into_iter()
    }

    fn check_users(&self) -> CheckedState {
        let mut refused = Vec::new();
        for party in self.parties() {
            match self.owner_of(party) {
                Ok(_) => {}
                Err(Error::Refused(_, said)) if refused.contains(&said) => {}
                Err(Error::Refused(_, said)) => refused.push(said),
                Err(why) => return Err(why.into()),
            }
        }
        if !refused.is_empty() {
            return failed_check(refused.join("; "));
        }
        Ok("all are known, and may have jobs".to_owned())
    }

    /// Makes a reservation far in the future, and deletes it. Its mark has it deleted by the service, too.
    fn check_right_to_reserve(&self) -> CheckedState {
        let id = Run::first(Uuid::now_v7());
        let start = (Clock::system().now() + PROBE_AHEAD).seconds();
        self.make_mark(id)
            .map_err(|why| CheckResult::Wrong(why.to_string()))?;
        let made = self.perform_operation(Operation::Reserve(Reservation {
            id,
            start: Some(start),
            end: start + 60,
            nodes: vec![self.settings.nodes[0].clone()],
            users: self.settings.account.user.clone(),
            party: String::new(),
            application: String::new(),
            flags: vec![Flag::Overlap, Flag::IgnoreJobs],
        }));
        let deleted = made.and_then(|_| self.delete_reservation(id));
        // Where it is still there the service deletes it by its mark.
        let is_gone =
            deleted.is_ok() || matches!(&deleted, Err(Error::Refused(_, said)) if is_about_rights(said));
        if is_gone {
            let _ = fs::remove_file(self.mark_path(id));
        }
        Err(CheckResult::Wrong(match deleted {
            Ok(()) => return Ok("a reservation was made and deleted".to_owned()),
            Err(Error::Refused(_, said)) if is_about_rights(&said) => {
                format!("{said}: reservations take root, SlurmUser or an operator of Slurm")
            }
            Err(Error::Refused(_, said)) => format!("no reservation could be made: {said}"),
            Err(why) => why.to_string(),
        }))
    }

    /// Has Slurm judge a job of one node and a minute of each party and application, where these differ in the user or in the
    /// options of the submission. If Slurm refuses all, the cluster has a fault. If Slurm refuses some, these are told with each
    /// offer.
    fn check_submission(&self) -> CheckedState {
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
                    let for_whom = if application.is_empty() { "" } else { " for " };
                    refused.push(format!(
                        "as {user} with account {account}{for_whom}{application}: {said}"
                    ));
                }
            }
            judged.push(kind);
        }
        let words = refused[..refused.len().min(NAMES_MAX)].join("; ");
        Err(match unknown {
            _ if !refused.is_empty() && refused.len() == judged.len() => CheckResult::Wrong(words),
            _ if !refused.is_empty() => CheckResult::Unknown(format!(
                "Slurm would refuse some jobs, and so are their offers: {words}"
            )),
            Some(said) => CheckResult::Unknown(said),
            None => return Ok("Slurm would take the jobs of all users".to_owned()),
        })
    }

    /// The parties and applications with jobs that may be submitted in different ways: none stands for any that is not
    /// named.
    fn kinds_of_jobs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parties().flat_map(|party| {
            let named = self.settings.policies.applications.keys();
            let all = std::iter::once("").chain(named.map(String::as_str));
            all.map(move |application| (party, application))
        })
    }

    fn check_shared_folder(&self) -> CheckedState {
        let folder = self.settings.work_dir.display();
        match self.perform_operation(Operation::Touch) {
            Ok(_) => Ok(format!("{folder} is written here")),
            Err(Error::Unknown(_, said)) => failed_check(format!("{folder} cannot be written: {said}")),
            Err(why) => Err(why.into()),
        }
    }

    /// Writes into the shared folder, and removes that.
    pub(crate) fn touch_shared_folder(&self) -> Result<(), ExecutionError> {
        let probe = self.probe_folder(Uuid::now_v7());
        let written = fs::write(&probe, "").and_then(|()| fs::remove_file(&probe));
        written.map_err(ExecutionError::system("write", probe))
    }

    /// Has a job read a file of the shared folder on a node, and write its content and the time of the node's clock.
    fn seen_by_a_job(&self, wait: Duration) -> CheckedState {
        let token = Uuid::now_v7();
        let seen = self.run_probe(token, wait);
        // Files that the job writes later do no harm.
        let _ = self.perform_operation(Operation::Forget { token });
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
            format!("--job-name={}", self.name_of_run(Run::first(token))).into(),
            command_option("--chdir", &folder),
            "--output=/dev/null".into(),
            "--error=/dev/null".into(),
            "--wrap=echo $(cat token) $(date +%s) >draft && mv draft seen".into(),
        ]);
        let submitted = self.slurm.call("sbatch", arguments)?;
        Ok(submitted.trim().split(';').next().unwrap_or_default().to_owned())
    }

    /// The output of that job; nothing before it has written it.
    pub(crate) fn probe_output(&self, token: Uuid) -> Result<String, ExecutionError> {
        let (folder, owner) = (self.probe_folder(token), self.owner_of("")?);
        let work_dir = &self.settings.work_dir;
        let read = || -> std::io::Result<String> {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = rustix::fs::open(&folder, flags, Mode::empty())?;
            let file = open_file_of_owner(&opened, "seen", owner)?;
            std::io::read_to_string(file.take(SEEN_MAX))
        };
        let seen =
            if_there(read()).map_err(ExecutionError::system("read the output of a job in", work_dir))?;
        Ok(seen.unwrap_or_default())
    }

    fn run_probe(&self, token: Uuid, wait: Duration) -> CheckedState {
        let before = Clock::system().now();
        let job = self.perform_operation(Operation::Probe { token })?;
        let began = Instant::now();
        while began.elapsed() < wait {
            let seen = self.perform_operation(Operation::Seen { token })?;
            if !seen.is_empty() {
                let mut words = seen.split_whitespace();
                let (read, time) = (words.next(), words.next().and_then(|time| time.parse().ok()));
                return match time {
                    Some(time) if read == Some(&token.to_string()) => {
                        compare_clocks("the node", Time(time), (before, Clock::system().now()))
                    }
                    _ => {
                        let unread = "its node could not read the file that was written here";
                        Err(CheckResult::Wrong(unread.to_owned()))
                    }
                };
            }
            thread::sleep(LOOK_EVERY);
        }
        let state = self
            .slurm
            .call("squeue", ["-h", "-t", "all", "-j", &job, "-o", "%T %r"])?;
        let (state, seconds) = (state.trim().to_owned(), counted(wait.as_secs(), "second"));
        // It may have ended in between.
        let _ = self.perform_operation(Operation::Cancel { jobs: vec![job] });
        let is_over = ["COMPLETED", "FAILED"].iter().any(|word| state.starts_with(word));
        Err(if is_over {
            let folder = self.settings.work_dir.display();
            CheckResult::Wrong(format!(
                "it has run, and nothing of it is in {folder} here after {seconds}: is that the same folder on the nodes?"
            ))
        } else {
            CheckResult::Unknown(format!("it was not over within {seconds} ({state})"))
        })
    }
}

/// The meaning of another clock's time that was read between two instants of this machine's clock.
fn compare_clocks(owner: &str, at: Time, (before, after): (Time, Time)) -> CheckedState {
    for (by, way) in [(before - at, "ahead of"), (at - after, "behind")] {
        if by > CLOCKS_DIFFER_MAX {
            return failed_check(format!(
                "this machine's clock is {} {way} that of {owner}",
                counted(by, "second")
            ));
        }
    }
    Ok(format!("{owner} answers, and its clock agrees"))
}

fn failed_check(words: impl Into<String>) -> CheckedState {
    Err(CheckResult::Wrong(words.into()))
}

fn found_by_check(seen: CheckedState) -> CheckResult {
    seen.map_or_else(|found| found, CheckResult::Good)
}

fn is_about_rights(said: &str) -> bool {
    ["denied", "permission", "rivilege"]
        .iter()
        .any(|word| said.contains(word))
}
