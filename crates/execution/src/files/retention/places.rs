//! The places of the folders of jobs: the data folder of this process and, for clusters, the folder that it may have in common with
//! others.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::names_in;
use crate::ExecutionError;
use crate::files::records::ClusterRecords;
use crate::job::folder::Folder;

/// The places.
#[derive(Debug, Clone)]
pub(super) struct FolderPlaces {
    /// Below the data folder of this process.
    own: PathBuf,
    /// That of clusters, where it is another one.
    common: Option<Arc<ClusterRecords>>,
}

impl FolderPlaces {
    /// Only the one in a data folder.
    pub(super) fn in_data_folder(path: &Path) -> Self {
        Self {
            own: path.join("jobs"),
            common: None,
        }
    }

    /// These places with another folder for clusters, or with none for them.
    pub(super) fn with(self, common: Option<Arc<ClusterRecords>>) -> Self {
        Self { common, ..self }
    }

    pub(super) fn own(&self) -> &Path {
        &self.own
    }

    pub(super) fn common(&self) -> Option<&Arc<ClusterRecords>> {
        self.common.as_ref()
    }

    /// The place for an agreement's job on a cluster: one that was begun in the data folder stays there.
    pub(super) fn on_cluster(&self, agreement: Uuid) -> &Path {
        let common = self.common.as_ref().map(|common| common.jobs());
        let common = common.filter(|_| !is_begun(&self.own.join(agreement.to_string())));
        common.unwrap_or(&self.own)
    }

    /// The place that has a folder of this name, or would have it.
    pub(super) fn with_name(&self, name: &str) -> &Path {
        let common = self.common.as_ref().map(|common| common.jobs());
        let has_it = |common: &&Path| common.join(name).exists() && !is_begun(&self.own.join(name));
        common.filter(has_it).unwrap_or(&self.own)
    }

    /// The place that has the folders of an agreement's job.
    ///
    /// # Errors
    /// Where the common one is not there: its disk may be away.
    pub(super) fn of(&self, agreement: Uuid) -> Result<&Path, ExecutionError> {
        match &self.common {
            Some(common) if !common.jobs().is_dir() => Err(not_found(common.jobs())),
            _ => Ok(self.with_name(&agreement.to_string())),
        }
    }

    /// The folder of this name.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.with_name(name).join(name)
    }

    /// The names of all folders.
    pub(super) fn names(&self) -> Result<Vec<String>, ExecutionError> {
        let mut names = names_in(&self.own)?.unwrap_or_default();
        if let Some(common) = &self.common {
            let there = names_in(common.jobs())?;
            names.extend(there.ok_or_else(|| not_found(common.jobs()))?);
            names.sort_unstable();
            names.dedup();
        }
        Ok(names)
    }
}

fn not_found(path: &Path) -> ExecutionError {
    ExecutionError::system("list", path)(io::Error::from(ErrorKind::NotFound))
}

/// Whether a job was begun in a folder, and not only files brought there.
fn is_begun(folder: &Path) -> bool {
    Folder::at(folder).is_begun()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_job_that_was_begun_in_the_data_folder_stays_there_and_others_have_the_common_place() {
        let (data, common) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::set_permissions(common.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let records = Arc::new(ClusterRecords::open(common.path()).unwrap());
        let places = FolderPlaces::in_data_folder(data.path()).with(Some(Arc::clone(&records)));
        let [before, new, local] = [1, 2, 3].map(Uuid::from_u128);
        for (at, id) in [
            (places.own(), before),
            (records.jobs(), new),
            (places.own(), local),
        ] {
            let folder = at.join(id.to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("spec.json"), "").unwrap();
        }
        assert_eq!(places.on_cluster(before), places.own());
        assert_eq!(places.on_cluster(new), records.jobs());
        let place = |id: Uuid| places.with_name(&id.to_string());
        assert_eq!(place(before), places.own());
        assert_eq!(place(new), records.jobs());
        assert_eq!(place(local), places.own());
        assert_eq!(place(Uuid::nil()), places.own(), "it has none yet");
        assert_eq!(places.on_cluster(Uuid::nil()), records.jobs());
        assert_eq!(places.names().unwrap().len(), 3);
        assert_eq!(places.with(None).names().unwrap().len(), 2);
    }
}
