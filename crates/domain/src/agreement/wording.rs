//! The words of an offer as they are kept.

use uuid::Uuid;

/// An offer as it is kept with the agreement that was made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wording {
    /// Its values as JSON, with the words of its document where it came as one.
    Offer(String),
    /// A flat request as JSON, and the version of the template that gives the parts that it leaves out.
    Request {
        /// The version of the template.
        template: Uuid,
        /// The request.
        request: String,
    },
}

impl From<&str> for Wording {
    fn from(offer: &str) -> Self {
        Self::Offer(offer.to_owned())
    }
}
