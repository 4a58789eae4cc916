//! Nodes that batch jobs never get: one reservation without an end, which the reservations of slots are made over. A slot on
//! these nodes need not be reserved before the longest job could reach into it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tracing::info;

use crate::ExecutionError;
use crate::slurm::cluster::SlurmCluster;
use crate::slurm::error::Error;
use crate::slurm::helper::carry_out::carry_out_operation;
use crate::slurm::helper::operation::Operation;
use crate::slurm::query::ReservationRow;
use crate::slurm::settings::DEDICATED;
use crate::slurm::snapshot::Snapshot;

/// The mark that says that it was made by this service.
fn mark_of_dedicated(marks: &Path) -> PathBuf {
    marks.join(DEDICATED)
}

/// Whether a reservation is the one of the nodes that batch jobs never get.
pub(crate) fn is_dedicated(cluster: &SlurmCluster, row: &ReservationRow) -> bool {
    row.name == cluster.settings.dedicated_name() && mark_of_dedicated(&cluster.marks).exists()
}

/// Whether the reservation of the nodes that batch jobs never get is as it is configured.
pub(crate) fn is_dedicated_as_configured(cluster: &SlurmCluster, present: &Snapshot) -> bool {
    let (name, wanted) = (cluster.settings.dedicated_name(), &cluster.settings.dedicated);
    let row = present.reservations.iter().find(|row| row.name == name);
    let is_made = mark_of_dedicated(&cluster.marks).exists();
    match row {
        Some(row) => {
            is_made && row.overlaps && BTreeSet::from_iter(&row.nodes) == BTreeSet::from_iter(wanted)
        }
        None => wanted.is_empty() && !is_made,
    }
}

/// Makes, changes or deletes that reservation, so that it is as it is configured. Jobs that run on its nodes now go on.
pub(crate) fn keep_dedicated(cluster: &SlurmCluster, present: &Snapshot) -> Result<(), ExecutionError> {
    let (name, mark) = (
        cluster.settings.dedicated_name(),
        mark_of_dedicated(&cluster.marks),
    );
    let (wanted, is_made) = (&cluster.settings.dedicated, mark.exists());
    if is_dedicated_as_configured(cluster, present) || wanted.is_empty() && !is_made {
        return Ok(());
    }
    let exists = present.reservations.iter().any(|row| row.name == name);
    if wanted.is_empty() {
        if exists {
            carry_out_operation(cluster, Operation::Undedicate)?;
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
    carry_out_operation(cluster, Operation::Dedicate { exists })?;
    info!(reservation = name, nodes = wanted.join(","), "dedicated");
    Ok(())
}
