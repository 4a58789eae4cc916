//! Operations as they are carried out: by the service itself where it has the rights, or else by the helper.

use std::fs::File;
use std::path::{Path, PathBuf};

use domain::agreement::Run;
use uuid::Uuid;

use crate::ExecutionError;
use crate::files::tree;
use crate::slurm::error::{Error, answer_not_understood};
use crate::slurm::executor::SlurmExecutor;
use crate::slurm::helper::operation::{
    Change, HELPER, JobPlace, Operation, OperationResult, Part, Reservation, YES,
};
use crate::slurm::jobs::disk::Disk;
use crate::slurm::jobs::shared_folder::SharedFolder;

/// What refuses where another process has led since.
const RECORDS: &str = "execution.cluster_records";

impl SlurmExecutor {
    /// Carries out an operation of Slurm that may need rights, or has the helper do it. Returns the answer.
    pub(crate) fn perform_operation(&self, operation: Operation) -> Result<String, Error> {
        self.check_lead()
            .map_err(|why| Error::Refused(RECORDS.into(), why.to_string()))?;
        let done = match &self.helper {
            None => self.carry_out_here(operation, Vec::new()),
            Some(helper) => helper.perform(&operation, &self.slurm),
        };
        match done {
            Ok(done) => Ok(done.said),
            Err(ExecutionError::Slurm(error)) => Err(error),
            Err(other) => Err(answer_not_understood(HELPER, &other.to_string())),
        }
    }

    /// Does it here. The operation has been checked, and needs the rights of this process.
    pub(crate) fn carry_out_here(
        &self,
        operation: Operation,
        mut files: Vec<File>,
    ) -> Result<OperationResult, ExecutionError> {
        let (disk, nothing) = (Disk::of(&self.settings), |()| String::new());
        let delete = |name: String| {
            let named = format!("ReservationName={name}");
            self.slurm.call("scontrol", ["delete", &named])
        };
        let folder_of = |id: Run| self.settings.work_dir.join(id.to_string());
        let said = match operation {
            Operation::Greet { .. } => String::new(),
            Operation::Reserve(reservation) => self
                .slurm
                .call("scontrol", self.creation_arguments(&reservation))?,
            Operation::Change(change) => self.slurm.call("scontrol", self.update_of(&change))?,
            Operation::Release { id } => delete(self.name_of_run(id))?,
            Operation::Submit(submission) => {
                let work = self.folder_at_place(&submission.place)?;
                if !work.exists(Part::Folder).map_err(work.failed("look into"))? {
                    return Err(work.failed("look into")(std::io::ErrorKind::NotFound.into()));
                }
                self.submit(&submission, &work).map(nothing)?
            }
            Operation::Judge(dry) => self.run_dry(&dry)?,
            Operation::Dedicate { exists } => self.dedicate(exists)?,
            Operation::Undedicate => delete(self.dedicated_name())?,
            Operation::Cancel { jobs } => self.slurm.call("scancel", jobs)?,
            Operation::Limit { job, minutes } => {
                let (job_id, limit) = (format!("JobId={job}"), format!("TimeLimit={minutes}"));
                self.slurm.call("scontrol", ["update", &job_id, &limit])?
            }
            Operation::Create {
                place,
                until,
                save,
                inputs,
            } => {
                let inputs = inputs.into_iter().zip(files.drain(..)).collect();
                yes_or_no(self.folder_at_place(&place)?.make(until, save, inputs)?)
            }
            Operation::Put { place, record } => self.folder_at_place(&place)?.put(record).map(nothing)?,
            Operation::Exists { place, part } => {
                let work = self.folder_at_place(&place)?;
                yes_or_no(work.exists(part).map_err(work.failed("look into"))?)
            }
            Operation::Open { place, item } => {
                let work = self.folder_at_place(&place)?;
                let file = work.open(&item).map_err(work.failed("look into"))?;
                let said = String::new();
                return Ok(OperationResult { said, file });
            }
            Operation::List { place } => {
                let work = self.folder_at_place(&place)?;
                let names = work.names().map_err(work.failed("look into"))?;
                let names: Vec<&str> = names.iter().filter_map(|name| name.to_str()).collect();
                serde_json::json!(names).to_string()
            }
            Operation::Remove { id } => disk.remove(&folder_of(id)).map(nothing)?,
            Operation::Pack { id } => disk.pack(&folder_of(id)).map(nothing)?,
            Operation::Clear => disk.clear().map(nothing)?,
            Operation::Touch => self.touch_shared_folder().map(nothing)?,
            Operation::Probe { token } => self.submit_probe(token)?,
            Operation::Seen { token } => self.probe_output(token)?,
            Operation::Forget { token } => {
                let path = self.probe_folder(token);
                let removed = tree::remove_tree(&path).map(nothing);
                removed.map_err(ExecutionError::system("remove", path))?
            }
        };
        Ok(OperationResult { said, file: None })
    }

    fn creation_arguments(&self, reservation: &Reservation) -> Vec<String> {
        let start = reservation
            .start
            .map_or_else(|| "now".to_owned(), instant_for_slurm);
        let mut arguments = vec![
            "create".to_owned(),
            "reservation".to_owned(),
            format!("ReservationName={}", self.name_of_run(reservation.id)),
            format!("StartTime={start}"),
            format!("EndTime={}", instant_for_slurm(reservation.end)),
            format!("Nodes={}", reservation.nodes.join(",")),
            format!("Users={}", reservation.users),
        ];
        if !reservation.flags.is_empty() {
            let words: Vec<&str> = reservation.flags.iter().map(|flag| flag.word()).collect();
            arguments.push(format!("Flags={}", words.join(",")));
        }
        let policy = self
            .settings
            .policies
            .of(&reservation.party, &reservation.application);
        arguments.extend(policy.reservation_options);
        arguments
    }

    fn update_of(&self, change: &Change) -> Vec<String> {
        let named = format!("ReservationName={}", self.name_of_run(change.id));
        let mut arguments = vec!["update".to_owned(), named];
        let (start, end) = (
            change.start.map(instant_for_slurm),
            change.end.map(instant_for_slurm),
        );
        let parts = [
            start.map(|at| format!("StartTime={at}")),
            end.map(|at| format!("EndTime={at}")),
            change
                .nodes
                .as_ref()
                .map(|nodes| format!("Nodes={}", nodes.join(","))),
            change.users.as_ref().map(|users| format!("Users={users}")),
            change.flag.map(|flag| format!("Flags+={}", flag.word())),
        ];
        arguments.extend(parts.into_iter().flatten());
        arguments
    }

    /// A job's folder as this process reaches it.
    fn folder_at_place(&self, place: &JobPlace) -> Result<SharedFolder, ExecutionError> {
        let owner = self.owner_of(&place.party)?;
        let work_dir = &self.settings.work_dir;
        let common = Some(work_dir.join(place.common.to_string()));
        Ok(SharedFolder::of(work_dir, place.id, common, owner))
    }

    /// The folder of the job by which a cluster is checked.
    pub(crate) fn probe_folder(&self, token: Uuid) -> PathBuf {
        let name = format!(".check-{}", token.simple());
        self.settings.work_dir.join(Path::new(&name))
    }
}

/// An instant as Slurm reads it, in UTC.
fn instant_for_slurm(second: i64) -> String {
    let at = jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::MAX);
    at.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

fn yes_or_no(is_so: bool) -> String {
    if is_so { YES } else { "no" }.to_owned()
}
