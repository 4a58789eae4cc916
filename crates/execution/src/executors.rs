//! The executors of the resources that are in service, made when these come.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use domain::resources::Resource;
use task::lock::{read, write};

use crate::shared_executor::SharedExecutor;

/// Makes the executor of a resource; the error says in words why it cannot be made.
type ExecutorFactory = dyn Fn(&Resource) -> Result<SharedExecutor, String> + Send + Sync;

/// The executors of resources, by the names of these: cheap to clone, and one for all clones.
#[derive(Clone)]
pub struct Executors {
    make: Arc<ExecutorFactory>,
    present: Arc<RwLock<BTreeMap<String, SharedExecutor>>>,
}

impl Executors {
    /// None yet; `make` makes the executor of a resource that comes.
    pub fn made_by(
        make: impl Fn(&Resource) -> Result<SharedExecutor, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            make: Arc::new(make),
            present: Arc::default(),
        }
    }

    /// The executors of the resources with these names.
    pub fn of(executors: impl IntoIterator<Item = (String, SharedExecutor)>) -> Self {
        let known: BTreeMap<String, SharedExecutor> = executors.into_iter().collect();
        Self::made_by(move |resource| {
            let found = known.get(&resource.name).cloned();
            found.ok_or_else(|| format!("there is no executor for {}", resource.name))
        })
    }

    /// The executor of a resource.
    pub fn get(&self, resource: &str) -> Option<SharedExecutor> {
        read(&self.present).get(resource).cloned()
    }

    /// The executors of clusters.
    pub fn clusters(&self) -> Vec<(String, SharedExecutor)> {
        let present = read(&self.present);
        let clusters = present.iter().filter(|(_, present)| present.is_cluster());
        clusters
            .map(|(name, cluster)| (name.clone(), cluster.clone()))
            .collect()
    }

    /// The executors that judge jobs before they are promised.
    pub fn judges(&self) -> Vec<(String, SharedExecutor)> {
        let present = read(&self.present);
        let judges = present.iter().filter(|(_, executor)| executor.judges_jobs());
        judges
            .map(|(name, judge)| (name.clone(), judge.clone()))
            .collect()
    }

    /// Makes the executor of a resource, in the place of another one where it had one: calls of that which have not returned count
    /// as calls of this one.
    pub(super) fn begin(&self, resource: &Resource) -> Result<SharedExecutor, String> {
        let mut made = (self.make)(resource)?;
        let mut present = write(&self.present);
        if let Some(before) = present.get(&resource.name) {
            made = made.in_place_of(before);
        }
        present.insert(resource.name.clone(), made.clone());
        Ok(made)
    }

    /// Forgets the executor of a resource that is gone.
    pub(super) fn end(&self, resource: &str) {
        write(&self.present).remove(resource);
    }
}
