//! The places of the folders of jobs: the data folder of this process and, for clusters, the folder that it may have in common with
//! others.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use domain::agreement::Run;
use uuid::Uuid;

use super::{JobFolders, names_of_job_folders};
use crate::ExecutionError;
use crate::job::folder::Folder;

impl JobFolders {
    /// Where the folders of an agreement's job on a cluster are: those of one that was begun in the data folder stay there.
    pub(crate) fn place_on_cluster(&self, agreement: Uuid) -> &Path {
        let common = self.common.as_ref().map(|common| common.jobs());
        let common = common.filter(|_| !is_place_begun(&self.own.join(agreement.to_string())));
        common.unwrap_or(&self.own)
    }

    /// The folder of a run, wherever it is.
    ///
    /// # Errors
    /// Where the folder with the records of clusters is not there: its disk may be away.
    pub fn place_of_run(&self, run: Run) -> Result<Folder, ExecutionError> {
        match &self.common {
            Some(common) if !common.jobs().is_dir() => Err(no_place_found(common.jobs())),
            _ => Ok(Folder::of(self.place_with_name(&run.agreement.to_string()), run)),
        }
    }

    /// The place that has a folder of this name, or would have it.
    fn place_with_name(&self, name: &str) -> &Path {
        let common = self.common.as_ref().map(|common| common.jobs());
        let has_it = |common: &&Path| common.join(name).exists() && !is_place_begun(&self.own.join(name));
        common.filter(has_it).unwrap_or(&self.own)
    }

    /// The folder of this name.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.place_with_name(name).join(name)
    }

    /// The names of all folders.
    pub(super) fn names_in_places(&self) -> Result<Vec<String>, ExecutionError> {
        let mut names = names_of_job_folders(&self.own)?.unwrap_or_default();
        if let Some(common) = &self.common {
            let there = names_of_job_folders(common.jobs())?;
            names.extend(there.ok_or_else(|| no_place_found(common.jobs()))?);
            names.sort_unstable();
            names.dedup();
        }
        Ok(names)
    }
}

fn no_place_found(path: &Path) -> ExecutionError {
    ExecutionError::system("list", path)(io::Error::from(ErrorKind::NotFound))
}

/// Whether a job was begun in a folder, and not only files brought there.
fn is_place_begun(folder: &Path) -> bool {
    Folder::at(folder).is_begun()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::files::cluster_records::ClusterRecords;

    #[test]
    fn a_job_that_was_begun_in_the_data_folder_stays_there_and_others_have_the_common_place() {
        let (data, common) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::set_permissions(common.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let records = ClusterRecords::open(common.path()).unwrap();
        let shared = records.jobs().to_path_buf();
        let folders = JobFolders::new(data.path(), None).unwrap();
        let folders = folders.with_records(Some(records));
        let [before, new, local] = [1, 2, 3].map(Uuid::from_u128);
        for (at, id) in [
            (folders.path(), before),
            (shared.as_path(), new),
            (folders.path(), local),
        ] {
            let folder = at.join(id.to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("spec.json"), "").unwrap();
        }
        assert_eq!(folders.place_on_cluster(before), folders.path());
        assert_eq!(folders.place_on_cluster(new), shared);
        let place = |id: Uuid| folders.place_with_name(&id.to_string());
        assert_eq!(place(before), folders.path());
        assert_eq!(place(new), shared);
        assert_eq!(place(local), folders.path());
        assert_eq!(place(Uuid::nil()), folders.path(), "it has none yet");
        assert_eq!(folders.place_on_cluster(Uuid::nil()), shared);
        assert_eq!(folders.names_in_places().unwrap().len(), 3);
        assert_eq!(folders.of_this_process().names_in_places().unwrap().len(), 2);
    }
}
