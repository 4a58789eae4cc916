//! Nodes that batch jobs never get: one reservation without an end, which the reservations of slots are made over. A slot on
//! these nodes need not be reserved before the longest job could reach into it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use tracing::info;

use crate::ExecutionError;
use crate::slurm::error::Error;
use crate::slurm::executor::SlurmExecutor;
use crate::slurm::helper::operation::Operation;
use crate::slurm::query::ReservationRow;
use crate::slurm::settings::PREFIX;
use crate::slurm::snapshot::Snapshot;

/// The last part of its name. It is no slot's.
const DEDICATED: &str = "dedicated";
/// The user that may submit jobs into it: Slurm wants a user, and this one has no jobs.
const USER: &str = "root";

impl SlurmExecutor {
    /// The name of the reservation of the nodes that batch jobs never get.
    pub(crate) fn dedicated_name(&self) -> String {
        format!("{PREFIX}{}-{DEDICATED}", self.settings.resource)
    }

    /// Says that it was made by this service.
    fn dedicated_mark(&self) -> PathBuf {
        self.marks.join(DEDICATED)
    }

    /// Whether a reservation is the one of the nodes that batch jobs never get.
    pub(crate) fn is_dedicated(&self, row: &ReservationRow) -> bool {
        row.name == self.dedicated_name() && self.dedicated_mark().exists()
    }

    /// Whether the reservation of the nodes that batch jobs never get is as it is configured.
    pub(crate) fn is_dedicated_as_configured(&self, present: &Snapshot) -> bool {
        let (name, wanted) = (self.dedicated_name(), &self.settings.dedicated);
        let row = present.reservations.iter().find(|row| row.name == name);
        let is_made = self.dedicated_mark().exists();
        match row {
            Some(row) => {
                is_made && row.overlaps && BTreeSet::from_iter(&row.nodes) == BTreeSet::from_iter(wanted)
            }
            None => wanted.is_empty() && !is_made,
        }
    }

    /// Makes, changes or deletes that reservation, so that it is as it is configured. Jobs that run on its nodes now go on.
    pub(crate) fn keep_dedicated(&self, present: &Snapshot) -> Result<(), ExecutionError> {
        let (name, mark) = (self.dedicated_name(), self.dedicated_mark());
        let (wanted, is_made) = (&self.settings.dedicated, mark.exists());
        if self.is_dedicated_as_configured(present) || wanted.is_empty() && !is_made {
            return Ok(());
        }
        let exists = present.reservations.iter().any(|row| row.name == name);
        if wanted.is_empty() {
            if exists {
                self.perform_operation(Operation::Undedicate)?;
            }
            info!(reservation = name, "deleted: no nodes are dedicated any more");
            return fs::remove_file(&mark).map_err(ExecutionError::system("remove", &mark));
        }
        if exists && !is_made {
            let said = format!("a reservation {name} exists that this service has not made");
            return Err(Error::Refused("scontrol".into(), said).into());
        }
        if !exists {
            fs::write(&mark, "").map_err(ExecutionError::system("write", &mark))?;
        }
        self.perform_operation(Operation::Dedicate { exists })?;
        info!(reservation = name, nodes = wanted.join(","), "dedicated");
        Ok(())
    }

    /// Makes the reservation of the configured nodes, or changes the one that exists, with the rights of this process.
    pub(crate) fn dedicate(&self, exists: bool) -> Result<String, Error> {
        let nodes = format!("Nodes={}", self.settings.dedicated.join(","));
        let named = format!("ReservationName={}", self.dedicated_name());
        if exists {
            let update = ["update", &named, &nodes, "Flags+=OVERLAP,IGNORE_JOBS"];
            return self.slurm.call("scontrol", update);
        }
        let users = format!("Users={USER}");
        let create = ["create", "reservation", &named, &nodes, &users];
        let when = ["StartTime=now", "Duration=UNLIMITED"];
        let flags = ["Flags=OVERLAP,IGNORE_JOBS"];
        self.slurm.call("scontrol", [&create[..], &when, &flags].concat())
    }
}
