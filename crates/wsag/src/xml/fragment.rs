//! An element by itself, as text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One element cut out of a guarded document, with every namespace declaration that it needs to stand alone. Kept verbatim, so
/// that the words of one party come back to it unchanged.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fragment(String);

impl Fragment {
    /// The XML text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes the text of a fragment that was kept.
    pub fn of_kept(text: impl Into<String>) -> Fragment {
        Fragment(text.into())
    }

    /// As a document of its own.
    pub(crate) fn to_document(&self) -> String {
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{self}")
    }

    /// A fragment from XML that this crate has written, or cut out of a document.
    pub(crate) fn written(text: String) -> Fragment {
        Fragment(text)
    }
}

impl fmt::Debug for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
