//! What comes with a command of any kind.

use std::sync::Arc;

/// How a command is to be decided.
#[derive(Debug, Clone, Default)]
pub struct CommandOptions {
    /// Whether nothing of it is kept.
    pub is_dry: bool,
    /// The party of the operator that makes an agreement for another party: the audit trail says so.
    pub booked_by: Option<Arc<str>>,
    /// Whether an operator asks, whom no number of agreements and questions bounds.
    pub is_unbounded: bool,
}

impl CommandOptions {
    /// These options for a dry run, where that is wanted.
    #[must_use]
    pub fn or_dry(&self, is_dry: bool) -> Self {
        Self {
            is_dry: self.is_dry || is_dry,
            ..self.clone()
        }
    }
}
