//! The helper: a small process with the rights that a cluster's jobs need, beside a service that has none. It listens on a socket
//! of its machine, where only the service may speak to it, and carries out the operations of [`operation`], one request a
//! connection, where its own configuration allows them.
//!
//! Its requests are not trusted: the process that listens on the network may have been taken over. Then that process can still
//! run the applications of the catalogue for the users of parties on the nodes of the resources, but nothing else with the
//! rights of other users.

pub(super) mod carry_out;
mod forbidden;
pub(super) mod operation;
pub(super) mod socket;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use domain::catalogue::{Application, Catalogue};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use tracing::{info, warn};

use crate::ExecutionError;
use crate::slurm::cluster::SlurmCluster;
use crate::slurm::error::Error;
use crate::slurm::helper::carry_out::carry_out_here;
use crate::slurm::helper::forbidden::{
    forbid_folder_of_other_job, forbid_instants_out_of_range, forbid_negative_grace,
    forbid_nodes_unknown_to_helper, forbid_other_cluster, forbid_root_for_party, forbid_unknown_users,
    forbid_unless, forbid_unnamed_files, forbid_unsafe_work_dir, jobs_unless_forbidden,
};
use crate::slurm::helper::operation::{Operation, OperationResult, SharedFolderItem, SubmitOperation};
use crate::slurm::helper::socket::{
    HelperRequest, SocketReply, receive_line_from_socket, send_line_to_socket,
};
use crate::slurm::settings::SlurmSettings;

/// Requests that are worked on at the same time; more wait.
const WORKERS: usize = 16;
/// How long a request may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(5);
/// Minutes that a job may last at most: as many as Slurm counts.
const MINUTES_MAX: i64 = u32::MAX as i64;

/// The helper of some clusters.
#[derive(Debug)]
pub struct Helper {
    clusters: BTreeMap<String, SlurmCluster>,
    catalogue: Catalogue,
    /// The user that may speak to it, beside its own.
    user: u32,
}

impl Helper {
    /// A helper of clusters that runs the applications of a catalogue for a service with that user's number. It puts its own
    /// files into a folder of its own.
    ///
    /// # Errors
    /// When that folder cannot be written.
    pub fn new(
        clusters: Vec<SlurmSettings>,
        catalogue: Catalogue,
        user: u32,
        folder: &Path,
    ) -> Result<Self, ExecutionError> {
        let mut served = BTreeMap::new();
        for mut settings in clusters {
            settings.helper = None;
            served.insert(settings.resource.clone(), SlurmCluster::new(settings, folder)?);
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
            Ok(done) => (SocketReply::Done(done.said), done.file),
            Err(reply) => {
                match &reply {
                    SocketReply::Forbidden(said) => warn!(said, "refused"),
                    other => info!(?other, "not done"),
                }
                (reply, None)
            }
        };
        // A client that has gone away needs no answer.
        let _ = stream.set_write_timeout(Some(ARRIVES_WITHIN));
        let _ = send_line_to_socket(stream, &reply, file.as_slice());
    }

    fn done(&self, stream: &UnixStream) -> Result<OperationResult, SocketReply> {
        let unread = |why: io::Error| SocketReply::Forbidden(format!("the request cannot be read: {why}"));
        let peer = socket_peercred(stream).map_err(|why| unread(why.into()))?;
        let peer = peer.uid.as_raw();
        if peer != self.user && peer != geteuid().as_raw() {
            return Err(SocketReply::Forbidden(format!(
                "the user {peer} may not speak to the helper, only the service's user {}",
                self.user
            )));
        }
        let (line, files) =
            receive_line_from_socket(stream, Instant::now() + ARRIVES_WITHIN).map_err(unread)?;
        let request: HelperRequest = serde_json::from_slice(&line).map_err(|why| unread(why.into()))?;
        let HelperRequest { resource, operation } = request;
        let cluster = self.clusters.get(&resource).ok_or_else(|| {
            SocketReply::Forbidden(format!("the helper's configuration has no cluster {resource:?}"))
        })?;
        let operation = self.allowed(cluster, operation, &files)?;
        let done = carry_out_here(cluster, operation, files);
        done.map_err(|error| SocketReply::from(&error))
    }

    /// An operation as far as it is to be done, or why it is not.
    fn allowed(
        &self,
        cluster: &SlurmCluster,
        operation: Operation,
        files: &[File],
    ) -> Result<Operation, SocketReply> {
        let settings = &cluster.settings;
        match &operation {
            Operation::Greet {
                partition,
                nodes,
                work_dir,
            } => {
                forbid_other_cluster(settings, partition, nodes, work_dir)?;
                forbid_unsafe_work_dir(&settings.work_dir)?;
            }
            Operation::Reserve(change) => {
                forbid_nodes_unknown_to_helper(settings, &change.nodes)?;
                forbid_unknown_users(cluster, &change.users)?;
                forbid_instants_out_of_range(change.start.iter().chain([&change.end]))?;
                let is_long = change.start.is_none_or(|start| start < change.end);
                forbid_unless(is_long, "it ends before it begins")?;
            }
            Operation::Change(change) => {
                change
                    .nodes
                    .iter()
                    .try_for_each(|names| forbid_nodes_unknown_to_helper(settings, names))?;
                change
                    .users
                    .iter()
                    .try_for_each(|names| forbid_unknown_users(cluster, names))?;
                forbid_instants_out_of_range(change.start.iter().chain(&change.end))?;
            }
            Operation::Limit { job, minutes } => {
                forbid_unless((1..=MINUTES_MAX).contains(minutes), "minutes are from 1 on")?;
                let found = jobs_unless_forbidden(cluster, std::slice::from_ref(job), false)?;
                forbid_unless(!found.is_empty(), "Slurm has no such job")?;
            }
            Operation::Cancel { jobs } => {
                let jobs = jobs_unless_forbidden(cluster, jobs, true)?;
                if jobs.is_empty() {
                    // The words of scancel for jobs that have ended.
                    let said = "Invalid job id specified".to_owned();
                    return Err(SocketReply::Slurm(Error::Refused("scancel".into(), said)));
                }
                return Ok(Operation::Cancel { jobs });
            }
            Operation::Submit(submission) => {
                self.submission(settings, submission)?;
                forbid_folder_of_other_job(cluster, &submission.place)?;
            }
            Operation::Judge(dry) => {
                forbid_root_for_party(cluster, &dry.party)?;
                let is_one = dry.nodes > 0 && (1..=MINUTES_MAX).contains(&dry.minutes);
                forbid_unless(is_one, "nodes and minutes are from 1 on")?;
            }
            Operation::Dedicate { .. } => {
                let has_some = !settings.dedicated.is_empty();
                forbid_unless(has_some, "the helper's configuration dedicates no nodes")?;
            }
            Operation::Create {
                place: at,
                until,
                save,
                inputs,
            } => {
                forbid_folder_of_other_job(cluster, at)?;
                forbid_instants_out_of_range([until])?;
                forbid_negative_grace(*save)?;
                forbid_unnamed_files(inputs, files)?;
            }
            Operation::Put { place: at, .. }
            | Operation::Exists { place: at, .. }
            | Operation::List { place: at } => forbid_folder_of_other_job(cluster, at)?,
            Operation::Open { place: at, item } => {
                forbid_folder_of_other_job(cluster, at)?;
                let is_wrong = matches!(item, SharedFolderItem::File(name) if !is_name_of_item(name));
                forbid_unless(!is_wrong, "it is no name of a file")?;
            }
            Operation::Probe { .. } | Operation::Seen { .. } | Operation::Forget { .. } => {
                forbid_unsafe_work_dir(&settings.work_dir)?;
                forbid_root_for_party(cluster, "")?;
            }
            Operation::Remove { id } | Operation::Pack { id } => {
                forbid_unsafe_work_dir(&settings.work_dir)?;
                let path = settings.work_dir.join(id.to_string());
                let is_other = fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_dir());
                forbid_unless(!is_other, "the job's folder is no folder")?;
            }
            Operation::Touch | Operation::Clear => forbid_unsafe_work_dir(&settings.work_dir)?,
            Operation::Release { .. } | Operation::Undedicate => {}
        }
        Ok(operation)
    }

    fn submission(&self, settings: &SlurmSettings, submission: &SubmitOperation) -> Result<(), SocketReply> {
        let most = u32::try_from(settings.nodes.len()).unwrap_or(u32::MAX);
        forbid_unless(
            (1..=most).contains(&submission.nodes),
            "it wants more nodes than the resource has, or none",
        )?;
        forbid_instants_out_of_range([&domain::clock::second_of(submission.slot_end).seconds()])?;
        forbid_negative_grace(submission.save)?;
        let is_later = submission.place.id.slot > 1;
        forbid_unless(submission.pieces.is_some() || !is_later, "there is no such piece")?;
        let applications = self.catalogue.applications().iter();
        let mut named = applications
            .filter(|application| {
                application.name == submission.application && application.program == submission.program
            })
            .peekable();
        forbid_unless(named.peek().is_some(), "the program is not in the catalogue")?;
        forbid_unless(
            named.any(|application| does_helper_take_arguments(application, &submission.arguments, is_later)),
            "no application of the catalogue with this program takes these arguments",
        )
    }
}

/// Whether an application takes these arguments, with those behind them by which it goes on with saved work.
fn does_helper_take_arguments(application: &Application, arguments: &[String], goes_on: bool) -> bool {
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

/// Whether this names something in a folder.
fn is_name_of_item(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}
