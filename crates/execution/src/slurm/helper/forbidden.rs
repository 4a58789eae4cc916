//! The operations that the helper forbids, whatever the service asks for.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use domain::catalogue::is_file_name;
use rustix::process::geteuid;

use crate::SaveWork;
use crate::slurm::cluster::SlurmCluster;
use crate::slurm::helper::operation::JobPlace;
use crate::slurm::helper::socket::{FILES_MAX, SocketReply};
use crate::slurm::jobs::ownership::owner_of_jobs;
use crate::slurm::settings::SlurmSettings;

/// The most characters of a job's number, as Slurm writes numbers of arrays.
const JOB_LENGTH_MAX: usize = 64;
/// The last second of which Slurm can be told: of the year 9999.
const SECONDS_MAX: i64 = 253_402_300_799;

/// Which of these jobs there are, where all of them are of this resource: by their names, or inside its reservations.
pub(super) fn jobs_unless_forbidden(
    cluster: &SlurmCluster,
    jobs: &[String],
    inside: bool,
) -> Result<Vec<String>, SocketReply> {
    let is_number = |job: &String| {
        job.len() <= JOB_LENGTH_MAX
            && job.starts_with(|c: char| c.is_ascii_digit())
            && job.chars().all(|c| c.is_ascii_digit() || "_+[]-,%".contains(c))
    };
    if let Some(wrong) = jobs.iter().find(|job| !is_number(job)) {
        return Err(SocketReply::Forbidden(format!("{wrong:?} is no number of a job")));
    }
    let rows = cluster.jobs_now().map_err(SocketReply::Slurm)?;
    let known = users_not_forbidden(cluster);
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
            return Err(SocketReply::Forbidden(what));
        }
        found.push(job.clone());
    }
    Ok(found)
}

/// The numbers of the users that jobs of a cluster belong to.
fn users_not_forbidden(cluster: &SlurmCluster) -> BTreeSet<u32> {
    let accounts = cluster.settings.accounts();
    let owners = accounts.filter_map(|(party, _)| owner_of_jobs(cluster, party).ok());
    owners.map(|owner| owner.user).filter(|user| *user != 0).collect()
}

pub(super) fn forbid_unless(is_so: bool, otherwise: &str) -> Result<(), SocketReply> {
    if is_so {
        return Ok(());
    }
    Err(SocketReply::Forbidden(otherwise.to_owned()))
}

pub(super) fn forbid_other_cluster(
    settings: &SlurmSettings,
    partition: &str,
    nodes: &[String],
    work_dir: &Path,
) -> Result<(), SocketReply> {
    for (what, is_same) in [
        ("partition", settings.partition == partition),
        ("node_list", settings.nodes == nodes),
        ("work_dir", settings.work_dir == work_dir),
    ] {
        forbid_unless(is_same, &format!("the helper's configuration has another {what}"))?;
    }
    Ok(())
}

/// Whether jobs' folders are safe in this one: where others could put something there, paths below it could lead anywhere.
pub(super) fn forbid_unsafe_work_dir(work_dir: &Path) -> Result<(), SocketReply> {
    let meta = fs::metadata(work_dir).map_err(|why| {
        let path = work_dir.display();
        SocketReply::System(why.raw_os_error(), format!("look at {path}: {why}"))
    })?;
    forbid_unless(
        meta.is_dir() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o022 == 0,
        &format!(
            "{} has to belong to the helper's user, and only that user may write there",
            work_dir.display()
        ),
    )
}

pub(super) fn forbid_nodes_unknown_to_helper(
    settings: &SlurmSettings,
    names: &[String],
) -> Result<(), SocketReply> {
    let distinct: BTreeSet<_> = names.iter().collect();
    forbid_unless(
        !names.is_empty() && distinct.len() == names.len(),
        "nodes have to be named, each once",
    )?;
    let known: BTreeSet<_> = settings.nodes.iter().collect();
    let unknown = names.iter().find(|name| !known.contains(name));
    unknown.map_or(Ok(()), |name| {
        Err(SocketReply::Forbidden(format!("{name:?} is not in node_list")))
    })
}

/// Whether all of these are users of parties.
pub(super) fn forbid_unknown_users(cluster: &SlurmCluster, names: &str) -> Result<(), SocketReply> {
    names.split(',').try_for_each(|name| {
        let unknown = || SocketReply::Forbidden(format!("{name:?} is the user of no party"));
        let account = cluster
            .settings
            .accounts()
            .find(|(_, account)| account.user == name);
        forbid_root_for_party(cluster, account.ok_or_else(unknown)?.0)
    })
}

/// Whether the user of a party may have jobs.
pub(super) fn forbid_root_for_party(cluster: &SlurmCluster, party: &str) -> Result<(), SocketReply> {
    let owner = owner_of_jobs(cluster, party).map_err(SocketReply::Slurm)?;
    forbid_unless(owner.user != 0, "nothing is done as root")
}

pub(super) fn forbid_instants_out_of_range<'a>(
    iterator: impl IntoIterator<Item = &'a i64>,
) -> Result<(), SocketReply> {
    let are_in_range = iterator
        .into_iter()
        .all(|second| (0..=SECONDS_MAX).contains(second));
    forbid_unless(are_in_range, "an instant is out of range")
}

pub(super) fn forbid_negative_grace(save: Option<SaveWork>) -> Result<(), SocketReply> {
    let is_time = save.is_none_or(|save| save.grace >= 0);
    forbid_unless(is_time, "the time to save work is negative")
}

/// Whether a job's folder may be reached into.
pub(super) fn forbid_folder_of_other_job(
    cluster: &SlurmCluster,
    place: &JobPlace,
) -> Result<(), SocketReply> {
    forbid_unsafe_work_dir(&cluster.settings.work_dir)?;
    forbid_root_for_party(cluster, &place.party)?;
    let JobPlace { id, common, .. } = place;
    forbid_unless(
        common == id || id.slot > 1 && common.slot == 1 && common.agreement == id.agreement,
        "that is the folder of another job",
    )
}

/// Whether these are the names of the files that came.
pub(super) fn forbid_unnamed_files(names: &[String], files: &[File]) -> Result<(), SocketReply> {
    let distinct: BTreeSet<_> = names.iter().collect();
    forbid_unless(
        names.len() == files.len() && names.len() <= FILES_MAX && distinct.len() == names.len(),
        "each input has to come with a name of its own",
    )?;
    forbid_unless(
        names.iter().all(|name| is_file_name(name)),
        "an input's name is none of a file",
    )?;
    let is_file = |file: &File| file.metadata().is_ok_and(|meta| meta.is_file());
    forbid_unless(files.iter().all(is_file), "an input is no file")
}
