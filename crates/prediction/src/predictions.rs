//! The present knowledge, which its owner renews.

use std::sync::{Arc, PoisonError, RwLock};

use super::knowledge::Knowledge;

/// The present knowledge, for its readers and for its owner: cheap to clone.
#[derive(Debug, Clone)]
pub struct Predictions(Arc<RwLock<Arc<Knowledge>>>);

impl Predictions {
    /// Knowledge that its owner renews.
    pub fn of(knowledge: Knowledge) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(knowledge))))
    }

    /// The present knowledge.
    pub fn now(&self) -> Arc<Knowledge> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has all readers take other knowledge from now on.
    pub fn renew(&self, knowledge: Knowledge) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(knowledge);
    }
}
