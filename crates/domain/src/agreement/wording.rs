//! The words of an offer as they are kept.

use uuid::Uuid;

/// An offer in the form that it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wording {
    /// A document of WS-Agreement, verbatim.
    Document(String),
    /// A flat request, and the version of the template that gives the parts that it leaves out. Its document is written when it
    /// is requested.
    Request {
        /// The version of the template.
        template: Uuid,
        /// The request, as JSON.
        request: String,
    },
}

impl From<String> for Wording {
    fn from(document: String) -> Self {
        Self::Document(document)
    }
}

impl From<&str> for Wording {
    fn from(document: &str) -> Self {
        Self::Document(document.to_owned())
    }
}
