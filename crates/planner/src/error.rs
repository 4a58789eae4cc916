//! The reason why a command is not carried out.

use crate::refusal::Refusal;

/// Why a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The plan has no place for it.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// There is no such agreement, or it is another party's.
    #[error("there is no such agreement")]
    NotFound,
    /// The agreement's state does not allow it.
    #[error("the agreement is {0}")]
    Conflict(&'static str),
    /// The agreement is not in a version that the request was made for.
    #[error("the agreement has changed")]
    Changed,
    /// The offer cannot be accepted any more.
    #[error(transparent)]
    Lost(OfferLoss),
    /// A resource cannot be as it is to be.
    #[error("{0}")]
    Unfit(String),
    /// Another agreement of the party has the AgreementId of the offer.
    #[error("another agreement of yours has the AgreementId {0:?}")]
    IdTaken(String),
    /// The tree of offers does not allow it.
    #[error("{0}")]
    Stale(&'static str),
    /// The same request came before under its idempotency key; this is the answer of that time.
    #[error("the idempotency key has been used")]
    Repeated(String),
    /// Another request came before under its idempotency key.
    #[error("the idempotency key has been used for another request")]
    KeyReused,
    /// Nothing was stored, as far as is known; worth another try.
    #[error("the service cannot store decisions at the moment")]
    Unavailable,
}

/// Why an offer cannot be accepted any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfferLoss {
    /// Its time, or that of its negotiation, is over.
    #[error("the offer has expired")]
    Expired,
    /// An agreement has been made from it.
    #[error("the offer has been accepted already")]
    Accepted,
    /// It is not held: it has been given back, or never was.
    #[error("the offer is not held, or no longer; only what is Acceptable can be accepted")]
    NotHeld,
    /// It has been rejected.
    #[error("the offer has been rejected")]
    Rejected,
    /// The service has taken it back; the reason is stored with it.
    #[error("the offer has been withdrawn, since it could not be kept")]
    Withdrawn,
    /// The agreement that it is to replace is over or has begun.
    #[error("the agreement that it is to replace is over or has begun")]
    Replaced,
    /// Its application has left the catalogue, so its promise cannot be kept.
    #[error("the offer cannot be carried out, since its application is no longer offered")]
    NoApplication,
    /// Its cluster does not hold the nodes.
    #[error("the offer has been withdrawn, since its cluster did not reserve the nodes")]
    NotReserved,
    /// Its cluster would refuse the job by now: which one, and in its words.
    #[error("the offer has been withdrawn, since {0}")]
    Barred(String),
    /// The peer that was to carry it out does not: why.
    #[error("the offer has been withdrawn, since the domain that was to carry it out does not: {0}")]
    AtPeer(String),
}

/// What a command comes to.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A stored plan that does not hold for the configured resources, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stored plan does not hold: {0}")]
pub struct Inconsistent(pub String);

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}
