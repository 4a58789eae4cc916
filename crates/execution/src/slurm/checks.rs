//! The checks of a cluster's set-up: each looks at one thing that a promise needs, and names the fault that it finds.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use domain::agreement::Run;
use domain::clock::Clock;
use scheduler::domain::Attribute;
use scheduler::{Time, counted};
use uuid::Uuid;

use crate::slurm::cluster::SlurmCluster;
use crate::slurm::error::Error;
use crate::slurm::helper::carry_out::carry_out_operation;
use crate::slurm::helper::operation::{DryRun, Flag, Operation, ReserveOperation};
use crate::slurm::helper::socket::HelperSocket;
use crate::slurm::jobs::dry_run::{kind_of_dry_run, try_dry_run};
use crate::slurm::jobs::ownership::owner_of_jobs;
use crate::slurm::jobs::verdict::Verdict;
use crate::slurm::query::{query_nodes, query_number_of_nodes, read_queried_controller_time};
use crate::slurm::reservations::marks::{make_mark, mark_path};
use crate::slurm::reservations::reservation::delete_reservation;
use crate::slurm::settings::SlurmSettings;
use crate::{CheckResult, SetupCheck};

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

/// The good state of something, in words, or else how it was found.
type CheckedState = Result<String, CheckResult>;

impl From<Error> for CheckResult {
    fn from(why: Error) -> Self {
        Self::Wrong(why.to_string())
    }
}

/// Looks at everything that needs no job: programs and their versions, controller, clocks, partition, nodes, users, accounts,
/// the right to make reservations, the shared folder as this machine sees it. Ends with the first thing that leaves nothing
/// to be said of the rest.
pub(crate) fn check_all(cluster: &SlurmCluster) -> Vec<SetupCheck> {
    let mut checks = Vec::new();
    let mut look = |what, seen: CheckedState| {
        let found = found_by_check(seen);
        let goes_on = !matches!(found, CheckResult::Wrong(_));
        checks.push(SetupCheck { what, found });
        goes_on
    };
    if look("programs", check_programs(cluster)) && look("controller", check_controller(cluster)) {
        if let Some(helper) = &cluster.helper
            && !look("helper", check_helper(cluster, helper))
        {
            return checks;
        }
        if look("partition", check_partition(cluster)) {
            look("nodes", check_nodes(cluster));
            if look("users", check_users(cluster)) {
                look("rights", check_right_to_reserve(cluster));
                look("submission", check_submission(cluster));
            }
        }
        look("folder", check_shared_folder(cluster));
    }
    checks
}

/// Checks all, and what only a job on a node can see, where it is over within `wait`.
pub(crate) fn check_all_with_job(cluster: &SlurmCluster, wait: Duration) -> Vec<SetupCheck> {
    let mut checks = check_all(cluster);
    if checks
        .iter()
        .all(|check| !matches!(check.found, CheckResult::Wrong(_)))
    {
        let seen = check_by_job_on_node(cluster, wait);
        let found = found_by_check(seen);
        checks.push(SetupCheck { what: "job", found });
    }
    checks
}

fn check_programs(cluster: &SlurmCluster) -> CheckedState {
    // Without it each program waits for a minute.
    if let Some(configuration) = &cluster.settings.configuration
        && let Err(why) = fs::metadata(configuration)
    {
        return failed_check(format!("{}: {why}", configuration.display()));
    }
    let mut versions = Vec::new();
    for program in PROGRAMS {
        let said = cluster.slurm.call(program, ["--version"])?;
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

fn check_controller(cluster: &SlurmCluster) -> CheckedState {
    let before = Clock::system().now();
    let shown = cluster.slurm.call("scontrol", ["show", "config"])?;
    let untold = || CheckResult::Unknown("it answers, and does not tell its time".to_owned());
    let at = read_queried_controller_time(&shown).ok_or_else(untold)?;
    check_cluster_clocks("the controller", at, (before, Clock::system().now()))
}

/// Whether the helper answers, lets the service speak to it, and means the same cluster.
fn check_helper(cluster: &SlurmCluster, helper: &HelperSocket) -> CheckedState {
    let settings = &cluster.settings;
    let greeted = carry_out_operation(
        cluster,
        Operation::Greet {
            partition: settings.partition.clone(),
            nodes: settings.nodes.clone(),
            work_dir: settings.work_dir.clone(),
        },
    );
    let socket = helper.socket.display();
    match greeted {
        Ok(_) => Ok(format!("it answers at {socket}, and knows the same cluster")),
        Err(Error::Refused(_, said)) => failed_check(format!("it refuses: {said}")),
        Err(Error::Missing(_, why)) => failed_check(format!("it does not answer: {why}")),
        Err(why) => Err(why.into()),
    }
}

fn check_partition(cluster: &SlurmCluster) -> CheckedState {
    let name = &cluster.settings.partition;
    let shown = cluster.slurm.call("sinfo", ["-h", "-p", name, "-o", "%a"])?;
    match shown.split_whitespace().next() {
        None => failed_check(format!("Slurm has no partition {name}")),
        Some("up") => Ok(format!("{name} is up")),
        Some(state) => failed_check(format!("{name} is {state}: it starts no jobs")),
    }
}

fn check_nodes(cluster: &SlurmCluster) -> CheckedState {
    let rows = query_nodes(&cluster.slurm, &cluster.settings.partition)?;
    let is_there = |name: &&String| rows.iter().any(|row| row.name == **name);
    let nodes = &cluster.settings.nodes;
    let missing = nodes.iter().filter(|name| !is_there(name));
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    let (many, all, partition) = (missing.len(), nodes.len(), &cluster.settings.partition);
    if many == 0 {
        check_promised_numbers(cluster)?;
        return Ok(format!("all {all} are in the partition"));
    }
    let shown = missing[..many.min(NAMES_MAX)].join(", ");
    failed_check(format!(
        "{many} of {all} are not in {partition}: {shown}; node_list names them"
    ))
}

/// Whether each node has what the configuration says of it, as far as Slurm knows. Slurm's word may be the wrong one.
fn check_promised_numbers(cluster: &SlurmCluster) -> Result<(), CheckResult> {
    let SlurmSettings {
        nodes,
        attributes,
        partition,
        ..
    } = &cluster.settings;
    for (attribute, promised) in attributes {
        let Attribute::Number(promised) = promised else {
            continue;
        };
        let known = query_number_of_nodes(&cluster.slurm, partition, attribute)?;
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
fn parties_to_check(cluster: &SlurmCluster) -> impl Iterator<Item = &str> {
    let SlurmSettings {
        parties, policies, ..
    } = &cluster.settings;
    let named = parties.keys().chain(policies.parties.keys());
    let all: BTreeSet<&str> = named.map(String::as_str).chain([""]).collect();
    all.into_iter()
}

fn check_users(cluster: &SlurmCluster) -> CheckedState {
    let mut refused = Vec::new();
    for party in parties_to_check(cluster) {
        match owner_of_jobs(cluster, party) {
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
fn check_right_to_reserve(cluster: &SlurmCluster) -> CheckedState {
    let id = Run::first(Uuid::now_v7());
    let start = (Clock::system().now() + PROBE_AHEAD).seconds();
    make_mark(&cluster.marks, id).map_err(|why| CheckResult::Wrong(why.to_string()))?;
    let made = carry_out_operation(
        cluster,
        Operation::Reserve(ReserveOperation {
            id,
            start: Some(start),
            end: start + 60,
            nodes: vec![cluster.settings.nodes[0].clone()],
            users: cluster.settings.account.user.clone(),
            party: String::new(),
            application: String::new(),
            flags: vec![Flag::Overlap, Flag::IgnoreJobs],
        }),
    );
    let deleted = made.and_then(|_| delete_reservation(cluster, id));
    // Where it is still there the service deletes it by its mark.
    let is_gone = deleted.is_ok()
        || matches!(&deleted, Err(Error::Refused(_, said)) if is_check_refused_for_rights(said));
    if is_gone {
        let _ = fs::remove_file(mark_path(&cluster.marks, id));
    }
    Err(CheckResult::Wrong(match deleted {
        Ok(()) => return Ok("a reservation was made and deleted".to_owned()),
        Err(Error::Refused(_, said)) if is_check_refused_for_rights(&said) => {
            format!("{said}: reservations take root, SlurmUser or an operator of Slurm")
        }
        Err(Error::Refused(_, said)) => format!("no reservation could be made: {said}"),
        Err(why) => why.to_string(),
    }))
}

/// Has Slurm judge a job of one node and a minute of each party and application, where these differ in the user or in the
/// options of the submission. If Slurm refuses all, the cluster has a fault. If Slurm refuses some, these are told with each
/// offer.
fn check_submission(cluster: &SlurmCluster) -> CheckedState {
    let (mut judged, mut refused, mut unknown) = (Vec::new(), Vec::new(), None);
    for (party, application) in kinds_of_jobs_to_check(cluster) {
        let dry = DryRun {
            party: party.to_owned(),
            application: application.to_owned(),
            nodes: 1,
            minutes: 1,
        };
        let kind = kind_of_dry_run(cluster, &dry)?;
        if judged.contains(&kind) {
            continue;
        }
        match try_dry_run(cluster, &dry) {
            Verdict::Takes => {}
            // No node is free, a limit is reached, or the partition wants reservations, which these jobs do not have.
            Verdict::Unknown(said) => unknown = Some(said),
            Verdict::Refuses(said) => {
                let account = cluster.settings.account_of(party);
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
fn kinds_of_jobs_to_check(cluster: &SlurmCluster) -> impl Iterator<Item = (&str, &str)> {
    parties_to_check(cluster).flat_map(|party| {
        let named = cluster.settings.policies.applications.keys();
        let all = std::iter::once("").chain(named.map(String::as_str));
        all.map(move |application| (party, application))
    })
}

fn check_shared_folder(cluster: &SlurmCluster) -> CheckedState {
    let folder = cluster.settings.work_dir.display();
    match carry_out_operation(cluster, Operation::Touch) {
        Ok(_) => Ok(format!("{folder} is written here")),
        Err(Error::Unknown(_, said)) => failed_check(format!("{folder} cannot be written: {said}")),
        Err(why) => Err(why.into()),
    }
}

/// Has a job read a file of the shared folder on a node, and write its content and the time of the node's clock.
fn check_by_job_on_node(cluster: &SlurmCluster, wait: Duration) -> CheckedState {
    let token = Uuid::now_v7();
    let seen = check_by_token(cluster, token, wait);
    // Files that the job writes later do no harm.
    let _ = carry_out_operation(cluster, Operation::Forget { token });
    seen
}

fn check_by_token(cluster: &SlurmCluster, token: Uuid, wait: Duration) -> CheckedState {
    let before = Clock::system().now();
    let job = carry_out_operation(cluster, Operation::Probe { token })?;
    let began = Instant::now();
    while began.elapsed() < wait {
        let seen = carry_out_operation(cluster, Operation::Seen { token })?;
        if !seen.is_empty() {
            let mut words = seen.split_whitespace();
            let (read, time) = (words.next(), words.next().and_then(|time| time.parse().ok()));
            return match time {
                Some(time) if read == Some(&token.to_string()) => {
                    check_cluster_clocks("the node", Time(time), (before, Clock::system().now()))
                }
                _ => {
                    let unread = "its node could not read the file that was written here";
                    Err(CheckResult::Wrong(unread.to_owned()))
                }
            };
        }
        thread::sleep(LOOK_EVERY);
    }
    let state = cluster
        .slurm
        .call("squeue", ["-h", "-t", "all", "-j", &job, "-o", "%T %r"])?;
    let (state, seconds) = (state.trim().to_owned(), counted(wait.as_secs(), "second"));
    // It may have ended in between.
    let _ = carry_out_operation(cluster, Operation::Cancel { jobs: vec![job] });
    let is_over = ["COMPLETED", "FAILED"].iter().any(|word| state.starts_with(word));
    Err(if is_over {
        let folder = cluster.settings.work_dir.display();
        CheckResult::Wrong(format!(
            "it has run, and nothing of it is in {folder} here after {seconds}: is that the same folder on the nodes?"
        ))
    } else {
        CheckResult::Unknown(format!("it was not over within {seconds} ({state})"))
    })
}

/// The meaning of another clock's time that was read between two instants of this machine's clock.
fn check_cluster_clocks(owner: &str, at: Time, (before, after): (Time, Time)) -> CheckedState {
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

fn is_check_refused_for_rights(said: &str) -> bool {
    ["denied", "permission", "rivilege"]
        .iter()
        .any(|word| said.contains(word))
}
