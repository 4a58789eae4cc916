//! Operations as they are carried out: by the service itself where it has the rights, or else by the helper.

use std::fs::File;

use domain::agreement::Run;

use crate::ExecutionError;
use crate::files::tree;
use crate::slurm::cluster::SlurmCluster;
use crate::slurm::error::{Error, error_of_answer_not_understood};
use crate::slurm::helper::operation::{HELPER, JobPlace, Operation, OperationResult, Part, YES};
use crate::slurm::jobs::ownership::owner_of_jobs;
use crate::slurm::jobs::shared_disk::SharedDisk;
use crate::slurm::jobs::shared_folder::SharedFolder;
use crate::slurm::jobs::submission::{submit_with_own_rights, test_submission};
use crate::slurm::probe::{folder_of_probe, output_of_probe, probe_shared_folder, submit_probe};

/// What refuses where another process has led since.
const RECORDS: &str = "execution.cluster_records";
/// The user that may submit jobs into the reservation of dedicated nodes: Slurm wants a user, and this one has no jobs.
const USER: &str = "root";

/// Carries out an operation of Slurm that may need rights, or has the helper do it. Returns the answer.
pub(crate) fn carry_out_operation(cluster: &SlurmCluster, operation: Operation) -> Result<String, Error> {
    cluster
        .check_lead()
        .map_err(|why| Error::Refused(RECORDS.into(), why.to_string()))?;
    let done = match &cluster.helper {
        None => carry_out_here(cluster, operation, Vec::new()),
        Some(helper) => helper.perform(&operation, &cluster.slurm),
    };
    match done {
        Ok(done) => Ok(done.said),
        Err(ExecutionError::Slurm(error)) => Err(error),
        Err(other) => Err(error_of_answer_not_understood(HELPER, &other.to_string())),
    }
}

/// Does it here. The operation has been checked, and needs the rights of this process.
pub(crate) fn carry_out_here(
    cluster: &SlurmCluster,
    operation: Operation,
    mut files: Vec<File>,
) -> Result<OperationResult, ExecutionError> {
    let (disk, nothing) = (SharedDisk::of(&cluster.settings), |()| String::new());
    let delete = |name: String| {
        let named = format!("ReservationName={name}");
        cluster.slurm.call("scontrol", ["delete", &named])
    };
    let folder_of = |id: Run| cluster.settings.work_dir.join(id.to_string());
    let said = match operation {
        Operation::Greet { .. } => String::new(),
        Operation::Reserve(reservation) => cluster
            .slurm
            .call("scontrol", reservation.arguments(&cluster.settings))?,
        Operation::Change(change) => cluster
            .slurm
            .call("scontrol", change.arguments(&cluster.settings))?,
        Operation::Release { id } => delete(cluster.name_of_run(id))?,
        Operation::Submit(submission) => {
            let work = folder_to_carry_out_in(cluster, &submission.place)?;
            if !work.exists(Part::Folder).map_err(work.failed("look into"))? {
                return Err(work.failed("look into")(std::io::ErrorKind::NotFound.into()));
            }
            submit_with_own_rights(cluster, &submission, &work).map(nothing)?
        }
        Operation::Judge(dry) => test_submission(cluster, &dry)?,
        Operation::Dedicate { exists } => carry_out_dedication(cluster, exists)?,
        Operation::Undedicate => delete(cluster.settings.dedicated_name())?,
        Operation::Cancel { jobs } => cluster.slurm.call("scancel", jobs)?,
        Operation::Limit { job, minutes } => {
            let (job_id, limit) = (format!("JobId={job}"), format!("TimeLimit={minutes}"));
            cluster.slurm.call("scontrol", ["update", &job_id, &limit])?
        }
        Operation::Create {
            place,
            until,
            save,
            inputs,
        } => {
            let inputs = inputs.into_iter().zip(files.drain(..)).collect();
            result_of_operation(folder_to_carry_out_in(cluster, &place)?.make_by_draft(until, save, inputs)?)
        }
        Operation::Put { place, record } => folder_to_carry_out_in(cluster, &place)?
            .put(record)
            .map(nothing)?,
        Operation::Exists { place, part } => {
            let work = folder_to_carry_out_in(cluster, &place)?;
            result_of_operation(work.exists(part).map_err(work.failed("look into"))?)
        }
        Operation::Open { place, item } => {
            let work = folder_to_carry_out_in(cluster, &place)?;
            let file = work.open(&item).map_err(work.failed("look into"))?;
            let said = String::new();
            return Ok(OperationResult { said, file });
        }
        Operation::List { place } => {
            let work = folder_to_carry_out_in(cluster, &place)?;
            let names = work.names().map_err(work.failed("look into"))?;
            let names: Vec<&str> = names.iter().filter_map(|name| name.to_str()).collect();
            serde_json::json!(names).to_string()
        }
        Operation::Remove { id } => disk.remove(&folder_of(id)).map(nothing)?,
        Operation::Pack { id } => disk.pack(&folder_of(id)).map(nothing)?,
        Operation::Clear => disk.clear().map(nothing)?,
        Operation::Touch => probe_shared_folder(cluster).map(nothing)?,
        Operation::Probe { token } => submit_probe(cluster, token)?,
        Operation::Seen { token } => output_of_probe(cluster, token)?,
        Operation::Forget { token } => {
            let path = folder_of_probe(cluster, token);
            let removed = tree::remove_tree(&path).map(nothing);
            removed.map_err(ExecutionError::system("remove", path))?
        }
    };
    Ok(OperationResult { said, file: None })
}

/// A job's folder as this process reaches it.
fn folder_to_carry_out_in(cluster: &SlurmCluster, place: &JobPlace) -> Result<SharedFolder, ExecutionError> {
    let owner = owner_of_jobs(cluster, &place.party)?;
    let work_dir = &cluster.settings.work_dir;
    let common = Some(work_dir.join(place.common.to_string()));
    Ok(SharedFolder::of(work_dir, place.id, common, owner))
}

/// Makes the reservation of the configured nodes, or changes the one that exists, with the rights of this process.
fn carry_out_dedication(cluster: &SlurmCluster, exists: bool) -> Result<String, Error> {
    let nodes = format!("Nodes={}", cluster.settings.dedicated.join(","));
    let named = format!("ReservationName={}", cluster.settings.dedicated_name());
    if exists {
        let update = ["update", &named, &nodes, "Flags+=OVERLAP,IGNORE_JOBS"];
        return cluster.slurm.call("scontrol", update);
    }
    let users = format!("Users={USER}");
    let create = ["create", "reservation", &named, &nodes, &users];
    let when = ["StartTime=now", "Duration=UNLIMITED"];
    let flags = ["Flags=OVERLAP,IGNORE_JOBS"];
    cluster
        .slurm
        .call("scontrol", [&create[..], &when, &flags].concat())
}

/// The result of an operation that asks whether something is so.
fn result_of_operation(is_so: bool) -> String {
    if is_so { YES } else { "no" }.to_owned()
}
