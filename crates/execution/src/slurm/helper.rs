//! The helper: a small process with the rights that a cluster's jobs need, beside a service that has none. It listens on a socket
//! of its machine, where only the service may speak to it, and carries out the operations of [`operation`], one request a
//! connection, where its own configuration allows them.
//!
//! Its requests are not trusted: the process that listens on the network may have been taken over. Then that process can still
//! run the applications of the catalogue for the users of parties on the nodes of the resources, but nothing else with the
//! rights of other users.

pub(super) mod carry_out;
pub(super) mod operation;
pub(super) mod socket;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use domain::catalogue::{Application, Catalogue, is_file_name};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use tracing::{info, warn};

use crate::slurm::error::Error;
use crate::slurm::executor::SlurmExecutor;
use crate::slurm::helper::carry_out::carry_out_here;
use crate::slurm::helper::operation::{Item, JobPlace, Operation, OperationResult, Submission};
use crate::slurm::helper::socket::{
    FILES_MAX, HelperRequest, Reply, receive_line_with_files, send_line_with_files,
};
use crate::slurm::jobs::ownership::owner_of_jobs;
use crate::slurm::settings::Settings;
use crate::{ExecutionError, SaveWork};

/// Requests that are worked on at the same time; more wait.
const WORKERS: usize = 16;
/// How long a request may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(5);
/// The most characters of a job's number, as Slurm writes numbers of arrays.
const JOB_LENGTH_MAX: usize = 64;
/// The last second of which Slurm can be told: of the year 9999.
const SECONDS_MAX: i64 = 253_402_300_799;
/// Minutes that a job may last at most: as many as Slurm counts.
const MINUTES_MAX: i64 = u32::MAX as i64;

/// The helper of some clusters.
#[derive(Debug)]
pub struct HelperService {
    clusters: BTreeMap<String, SlurmExecutor>,
    catalogue: Catalogue,
    /// The user that may speak to it, beside its own.
    user: u32,
}

impl HelperService {
    /// A helper of clusters that runs the applications of a catalogue for a service with that user's number. It puts its own
    /// files into a folder of its own.
    ///
    /// # Errors
    /// When that folder cannot be written.
    pub fn new(
        clusters: Vec<Settings>,
        catalogue: Catalogue,
        user: u32,
        folder: &Path,
    ) -> Result<Self, ExecutionError> {
        let mut served = BTreeMap::new();
        for mut settings in clusters {
            settings.helper = None;
            served.insert(settings.resource.clone(), SlurmExecutor::new(settings, folder)?);
        }
        Ok(Self {
            clusters: served,
            catalogue,
            user,
        })
    }

    /// Answers on a socket for ever.
    ///
    /// # Errors
    /// When nothing can be accepted there.
    pub fn serve(&self, listener: &UnixListener) -> io::Result<()> {
        thread::scope(|scope| {
            let begin = |_| thread::Builder::new().spawn_scoped(scope, || self.work(listener));
            // As many as the system has threads for, but one at least.
            let mut workers = vec![begin(0)?];
            workers.extend((1..WORKERS).map_while(|number| begin(number).ok()));
            let panicked = |_| Err(io::Error::other("a worker has panicked"));
            let mut ends = workers.into_iter().map(ScopedJoinHandle::join);
            ends.try_for_each(|end| end.unwrap_or_else(panicked))
        })
    }

    fn work(&self, listener: &UnixListener) -> io::Result<()> {
        loop {
            match listener.accept() {
                Ok((stream, _)) => self.answer(&stream),
                // The other side has given up, or files are short for a moment.
                Err(why) if [ErrorKind::ConnectionAborted, ErrorKind::Interrupted].contains(&why.kind()) => {}
                Err(why) if crate::job::shortage::is_shortage(&why) => {
                    thread::sleep(ARRIVES_WITHIN);
                }
                Err(why) => return Err(why),
            }
        }
    }

    /// Answers one request.
    fn answer(&self, stream: &UnixStream) {
        let (reply, file) = match self.done(stream) {
            Ok(done) => (Reply::Done(done.said), done.file),
            Err(reply) => {
                match &reply {
                    Reply::Forbidden(said) => warn!(said, "refused"),
                    other => info!(?other, "not done"),
                }
                (reply, None)
            }
        };
        // A client that has gone away needs no answer.
        let _ = stream.set_write_timeout(Some(ARRIVES_WITHIN));
        let _ = send_line_with_files(stream, &reply, file.as_slice());
    }

    fn done(&self, stream: &UnixStream) -> Result<OperationResult, Reply> {
        let unread = |why: io::Error| Reply::Forbidden(format!("the request cannot be read: {why}"));
        let peer = socket_peercred(stream).map_err(|why| unread(why.into()))?;
        let peer = peer.uid.as_raw();
        if peer != self.user && peer != geteuid().as_raw() {
            return Err(Reply::Forbidden(format!(
                "the user {peer} may not speak to the helper, only the service's user {}",
                self.user
            )));
        }
        let (line, files) =
            receive_line_with_files(stream, Instant::now() + ARRIVES_WITHIN).map_err(unread)?;
        let request: HelperRequest = serde_json::from_slice(&line).map_err(|why| unread(why.into()))?;
        let HelperRequest { resource, operation } = request;
        let cluster = self.clusters.get(&resource).ok_or_else(|| {
            Reply::Forbidden(format!("the helper's configuration has no cluster {resource:?}"))
        })?;
        let operation = self.allowed(cluster, operation, &files)?;
        let done = carry_out_here(cluster, operation, files);
        done.map_err(|error| Reply::from(&error))
    }

    /// An operation as far as it is to be done, or why it is not.
    fn allowed(
        &self,
        cluster: &SlurmExecutor,
        operation: Operation,
        files: &[File],
    ) -> Result<Operation, Reply> {
        let settings = &cluster.settings;
        match &operation {
            Operation::Greet {
                partition,
                nodes,
                work_dir,
            } => {
                check_same_cluster(settings, partition, nodes, work_dir)?;
                check_work_dir(&settings.work_dir)?;
            }
            Operation::Reserve(change) => {
                check_node_names(settings, &change.nodes)?;
                check_users_of_parties(cluster, &change.users)?;
                check_instants(change.start.iter().chain([&change.end]))?;
                let is_long = change.start.is_none_or(|start| start < change.end);
                refuse_unless(is_long, "it ends before it begins")?;
            }
            Operation::Change(change) => {
                change
                    .nodes
                    .iter()
                    .try_for_each(|names| check_node_names(settings, names))?;
                change
                    .users
                    .iter()
                    .try_for_each(|names| check_users_of_parties(cluster, names))?;
                check_instants(change.start.iter().chain(&change.end))?;
            }
            Operation::Limit { job, minutes } => {
                refuse_unless((1..=MINUTES_MAX).contains(minutes), "minutes are from 1 on")?;
                let found = find_our_jobs(cluster, std::slice::from_ref(job), false)?;
                refuse_unless(!found.is_empty(), "Slurm has no such job")?;
            }
            Operation::Cancel { jobs } => {
                let jobs = find_our_jobs(cluster, jobs, true)?;
                if jobs.is_empty() {
                    // The words of scancel for jobs that have ended.
                    let said = "Invalid job id specified".to_owned();
                    return Err(Reply::Slurm(Error::Refused("scancel".into(), said)));
                }
                return Ok(Operation::Cancel { jobs });
            }
            Operation::Submit(submission) => {
                self.submission(settings, submission)?;
                check_job_folder(cluster, &submission.place)?;
            }
            Operation::Judge(dry) => {
                check_user_of_party(cluster, &dry.party)?;
                let is_one = dry.nodes > 0 && (1..=MINUTES_MAX).contains(&dry.minutes);
                refuse_unless(is_one, "nodes and minutes are from 1 on")?;
            }
            Operation::Dedicate { .. } => {
                let has_some = !settings.dedicated.is_empty();
                refuse_unless(has_some, "the helper's configuration dedicates no nodes")?;
            }
            Operation::Create {
                place: at,
                until,
                save,
                inputs,
            } => {
                check_job_folder(cluster, at)?;
                check_instants([until])?;
                check_save_of_work(*save)?;
                check_given_files(inputs, files)?;
            }
            Operation::Put { place: at, .. }
            | Operation::Exists { place: at, .. }
            | Operation::List { place: at } => check_job_folder(cluster, at)?,
            Operation::Open { place: at, item } => {
                check_job_folder(cluster, at)?;
                let is_wrong = matches!(item, Item::File(name) if !is_path_component(name));
                refuse_unless(!is_wrong, "it is no name of a file")?;
            }
            Operation::Probe { .. } | Operation::Seen { .. } | Operation::Forget { .. } => {
                check_work_dir(&settings.work_dir)?;
                check_user_of_party(cluster, "")?;
            }
            Operation::Remove { id } | Operation::Pack { id } => {
                check_work_dir(&settings.work_dir)?;
                let path = settings.work_dir.join(id.to_string());
                let is_other = fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_dir());
                refuse_unless(!is_other, "the job's folder is no folder")?;
            }
            Operation::Touch | Operation::Clear => check_work_dir(&settings.work_dir)?,
            Operation::Release { .. } | Operation::Undedicate => {}
        }
        Ok(operation)
    }

    fn submission(&self, settings: &Settings, submission: &Submission) -> Result<(), Reply> {
        let most = u32::try_from(settings.nodes.len()).unwrap_or(u32::MAX);
        refuse_unless(
            (1..=most).contains(&submission.nodes),
            "it wants more nodes than the resource has, or none",
        )?;
        check_instants([&domain::clock::second_of(submission.slot_end).seconds()])?;
        check_save_of_work(submission.save)?;
        let is_later = submission.place.id.slot > 1;
        refuse_unless(submission.pieces.is_some() || !is_later, "there is no such piece")?;
        let applications = self.catalogue.applications().iter();
        let mut named = applications
            .filter(|application| {
                application.name == submission.application && application.program == submission.program
            })
            .peekable();
        refuse_unless(named.peek().is_some(), "the program is not in the catalogue")?;
        refuse_unless(
            named
                .any(|application| application_takes_arguments(application, &submission.arguments, is_later)),
            "no application of the catalogue with this program takes these arguments",
        )
    }
}

/// Which of these jobs there are, where all of them are of this resource: by their names, or inside its reservations.
fn find_our_jobs(cluster: &SlurmExecutor, jobs: &[String], inside: bool) -> Result<Vec<String>, Reply> {
    let is_number = |job: &String| {
        job.len() <= JOB_LENGTH_MAX
            && job.starts_with(|c: char| c.is_ascii_digit())
            && job.chars().all(|c| c.is_ascii_digit() || "_+[]-,%".contains(c))
    };
    if let Some(wrong) = jobs.iter().find(|job| !is_number(job)) {
        return Err(Reply::Forbidden(format!("{wrong:?} is no number of a job")));
    }
    let rows = cluster.jobs_now().map_err(Reply::Slurm)?;
    let known = known_job_users(cluster);
    let mut found = Vec::new();
    for job in jobs {
        let Some(row) = rows.iter().find(|row| row.id == *job) else {
            continue;
        };
        let is_named = cluster.run_of_name(&row.name).is_some() && known.contains(&row.user);
        let reservation = row.reservation.as_deref();
        let within = reservation.and_then(|name| cluster.run_of_name(name)).is_some();
        if !(is_named || inside && within) {
            let what = format!(
                "the job {job} is none of the resource {}",
                cluster.settings.resource
            );
            return Err(Reply::Forbidden(what));
        }
        found.push(job.clone());
    }
    Ok(found)
}

/// The numbers of the users that jobs of a cluster belong to.
fn known_job_users(cluster: &SlurmExecutor) -> BTreeSet<u32> {
    let accounts = cluster.settings.accounts();
    let owners = accounts.filter_map(|(party, _)| owner_of_jobs(cluster, party).ok());
    owners.map(|owner| owner.user).filter(|user| *user != 0).collect()
}

/// Whether an application takes these arguments, with those behind them by which it goes on with saved work.
fn application_takes_arguments(application: &Application, arguments: &[String], goes_on: bool) -> bool {
    let resume = application
        .checkpoint
        .as_ref()
        .map(|checkpoint| checkpoint.resume.as_slice());
    let given = if goes_on {
        arguments.strip_suffix(resume.unwrap_or_default())
    } else {
        Some(arguments)
    };
    given.is_some_and(|given| application.check(given, |_| true).is_ok())
}

fn refuse_unless(is_so: bool, otherwise: &str) -> Result<(), Reply> {
    if is_so {
        return Ok(());
    }
    Err(Reply::Forbidden(otherwise.to_owned()))
}

fn check_same_cluster(
    settings: &Settings,
    partition: &str,
    nodes: &[String],
    work_dir: &Path,
) -> Result<(), Reply> {
    for (what, is_same) in [
        ("partition", settings.partition == partition),
        ("node_list", settings.nodes == nodes),
        ("work_dir", settings.work_dir == work_dir),
    ] {
        refuse_unless(is_same, &format!("the helper's configuration has another {what}"))?;
    }
    Ok(())
}

/// Whether jobs' folders are safe in this one: where others could put something there, paths below it could lead anywhere.
fn check_work_dir(work_dir: &Path) -> Result<(), Reply> {
    let meta = fs::metadata(work_dir).map_err(|why| {
        let path = work_dir.display();
        Reply::System(why.raw_os_error(), format!("look at {path}: {why}"))
    })?;
    refuse_unless(
        meta.is_dir() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o022 == 0,
        &format!(
            "{} has to belong to the helper's user, and only that user may write there",
            work_dir.display()
        ),
    )
}

fn check_node_names(settings: &Settings, names: &[String]) -> Result<(), Reply> {
    let distinct: BTreeSet<_> = names.iter().collect();
    refuse_unless(
        !names.is_empty() && distinct.len() == names.len(),
        "nodes have to be named, each once",
    )?;
    let known: BTreeSet<_> = settings.nodes.iter().collect();
    let unknown = names.iter().find(|name| !known.contains(name));
    unknown.map_or(Ok(()), |name| {
        Err(Reply::Forbidden(format!("{name:?} is not in node_list")))
    })
}

/// Whether all of these are users of parties.
fn check_users_of_parties(cluster: &SlurmExecutor, names: &str) -> Result<(), Reply> {
    names.split(',').try_for_each(|name| {
        let unknown = || Reply::Forbidden(format!("{name:?} is the user of no party"));
        let account = cluster
            .settings
            .accounts()
            .find(|(_, account)| account.user == name);
        check_user_of_party(cluster, account.ok_or_else(unknown)?.0)
    })
}

/// Whether the user of a party may have jobs.
fn check_user_of_party(cluster: &SlurmExecutor, party: &str) -> Result<(), Reply> {
    let owner = owner_of_jobs(cluster, party).map_err(Reply::Slurm)?;
    refuse_unless(owner.user != 0, "nothing is done as root")
}

fn check_instants<'a>(iterator: impl IntoIterator<Item = &'a i64>) -> Result<(), Reply> {
    let are_in_range = iterator
        .into_iter()
        .all(|second| (0..=SECONDS_MAX).contains(second));
    refuse_unless(are_in_range, "an instant is out of range")
}

fn check_save_of_work(save: Option<SaveWork>) -> Result<(), Reply> {
    let is_time = save.is_none_or(|save| save.grace >= 0);
    refuse_unless(is_time, "the time to save work is negative")
}

/// Whether a job's folder may be reached into.
fn check_job_folder(cluster: &SlurmExecutor, place: &JobPlace) -> Result<(), Reply> {
    check_work_dir(&cluster.settings.work_dir)?;
    check_user_of_party(cluster, &place.party)?;
    let JobPlace { id, common, .. } = place;
    refuse_unless(
        common == id || id.slot > 1 && common.slot == 1 && common.agreement == id.agreement,
        "that is the folder of another job",
    )
}

/// Whether these are the names of the files that came.
fn check_given_files(names: &[String], files: &[File]) -> Result<(), Reply> {
    let distinct: BTreeSet<_> = names.iter().collect();
    refuse_unless(
        names.len() == files.len() && names.len() <= FILES_MAX && distinct.len() == names.len(),
        "each input has to come with a name of its own",
    )?;
    refuse_unless(
        names.iter().all(|name| is_file_name(name)),
        "an input's name is none of a file",
    )?;
    let is_file = |file: &File| file.metadata().is_ok_and(|meta| meta.is_file());
    refuse_unless(files.iter().all(is_file), "an input is no file")
}

/// Whether this names something in a folder.
fn is_path_component(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}
