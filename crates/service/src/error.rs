//! The failures of use cases, and the fault of a document that tells one.

use domain::clock::Micros;
use execution::ExecutionError;
use execution::files::inputs::{MirrorError, UploadError};
use execution::job::shortage::is_shortage;
use scheduler::Interval;
use wsag::faults::{Description, Fault};
use wsag::{Document, Violation, ViolationKind, Violations, ns};

use crate::views::agreement_document::instant_in_document;
use crate::views::lost_offer::LostOffer;
use crate::views::refusal::{RefusalView, refusal_document};
use federation::client::PeerError;
use replicas::ReplicaError;

/// What a use case comes to.
pub(super) type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a use case failed, by the action that a caller would take.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are no document.
    #[error("{0}")]
    Malformed(wsag::guard::GuardError),
    /// The bytes are no JSON, or beyond bounds.
    #[error("{0}")]
    MalformedJson(String),
    /// The document breaks rules, each with its path.
    #[error("{0}")]
    Invalid(Violations),
    /// The document is right and asks for a feature that this version does not have.
    #[error("{0}")]
    NotOffered(Violations),
    /// The plan has no place for the offer.
    #[error("{}: {}", .0.reason.word(), .0.binding_constraint)]
    Refused(RefusalView),
    /// There is no such thing, or it is another party's.
    #[error("there is no such thing, or it is not yours to see")]
    NotFound,
    /// Another agreement of the party has the AgreementId of the offer.
    #[error("another agreement of yours has the AgreementId {0:?}: give the offer an id of its own, or none")]
    IdTaken(String),
    /// The state of the agreement or the negotiation does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// The time for it is over.
    #[error("{0}")]
    Gone(String),
    /// The agreement is in another version than the request was made for.
    #[error("the agreement has changed since the version that If-Match names")]
    Changed,
    /// The offer cannot be accepted any more.
    #[error("{}", .0.lost)]
    Lost(Box<LostOffer>),
    /// The idempotency key came before, with another body.
    #[error("this Idempotency-Key was used for another request")]
    KeyReused,
    /// A name that no file can have.
    #[error(
        "a file's name is 1 to 255 letters, digits, '_', '.' and '-', the first a letter, a digit or '_'"
    )]
    BadName,
    /// A page of a list was asked for with no row, or with more than this number.
    #[error("limit: a whole number from 1 to {0} is expected; longer lists come in pages")]
    Limit(u32),
    /// The quota of a party is used up.
    #[error("{0}")]
    QuotaExceeded(String),
    /// A party asks for quotes more often than it may.
    #[error("{0}")]
    TooOften(String),
    /// Nothing was stored; worth another try.
    #[error("the service cannot store decisions at the moment; try again")]
    Unavailable,
    /// Another domain was asked and has not answered yet; the same request under its Idempotency-Key gets the answer.
    #[error("another domain was asked and has not answered yet: ask again with the same Idempotency-Key")]
    AskingPeer,
    /// This machine is short of something, which the log tells; worth another try.
    #[error("the service is short of resources at the moment; try again")]
    Short(String),
    /// A fault of ours.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// That a request has a fault that stands at no one place.
    pub fn invalid(message: impl Into<String>) -> Self {
        violation_at_path("", message).into()
    }

    /// That a document asks for something else than is offered.
    pub(super) fn not_offered(document: &Document<'_>, what: &str) -> Self {
        Self::NotOffered(Violations(vec![Violation {
            path: document.path_outside_unknown_terms(ns::WSAG, "", 0),
            kind: ViolationKind::NotSupported,
            message: what.to_owned(),
        }]))
    }
}

/// A fault of a value at its place.
pub(super) fn violation_at_path(path: impl Into<String>, message: impl Into<String>) -> Violation {
    Violation {
        path: path.into(),
        kind: ViolationKind::Value,
        message: message.into(),
    }
}

impl From<Violation> for Error {
    fn from(only: Violation) -> Self {
        Self::Invalid(Violations(vec![only]))
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Unavailable(_) | store::Error::Unknown { .. } => Self::Unavailable,
            other => Self::Internal(other.to_string()),
        }
    }
}

impl From<planner::Error> for Error {
    fn from(error: planner::Error) -> Self {
        match error {
            planner::Error::NotFound => Self::NotFound,
            planner::Error::Refused(refusal) => {
                let any = Interval::new(scheduler::Time::MIN, scheduler::Time::MAX);
                Self::Refused(RefusalView::of(&refusal, any))
            }
            planner::Error::Conflict(state) => Self::Conflict(format!("the agreement is {state}")),
            planner::Error::Unfit(why) => Self::Conflict(why),
            planner::Error::IdTaken(id) => Self::IdTaken(id),
            planner::Error::Changed => Self::Changed,
            planner::Error::Lost(lost) => Self::Conflict(lost.to_string()),
            planner::Error::Stale(why) => Self::Conflict(why.to_owned()),
            planner::Error::Unavailable => Self::Unavailable,
            planner::Error::KeyReused => Self::KeyReused,
            planner::Error::Repeated(_) => Self::Internal(error.to_string()),
        }
    }
}

/// The ContinuingFault of a failure: its code, its descriptions, and the refusal or the violations behind it.
pub fn fault_of_error(at: Micros, code: &str, descriptions: &[String], error: Option<&Error>) -> String {
    let mut fault = Fault::new(instant_in_document(at), code, "");
    fault.descriptions = descriptions
        .iter()
        .map(|text| Description {
            text: text.clone(),
            language: Some("en".to_owned()),
        })
        .collect();
    match error {
        Some(Error::Refused(refusal)) => fault.refusal = Some(refusal_document(refusal)),
        Some(Error::Lost(lost)) => fault.extensions = lost.fragment().into_iter().collect(),
        Some(Error::Invalid(violations) | Error::NotOffered(violations)) => {
            fault.violations = violations.0.iter().map(Into::into).collect();
        }
        _ => {}
    }
    fault.to_xml()
}

/// A peer does not give a file.
pub(super) fn error_of_peer(why: &PeerError) -> Error {
    match why {
        PeerError::Refused { .. } => Error::NotFound,
        PeerError::NotAsked(_) | PeerError::Unknown(..) => Error::AskingPeer,
    }
}

impl From<std::io::Error> for Error {
    fn from(why: std::io::Error) -> Self {
        error_of_system(&why, is_shortage(&why))
    }
}

impl From<ExecutionError> for Error {
    fn from(why: ExecutionError) -> Self {
        error_of_system(&why, why.is_shortage())
    }
}

/// A failure of the system, which may only lack something that it may have again.
fn error_of_system(why: &impl std::fmt::Display, is_shortage: bool) -> Error {
    if is_shortage {
        Error::Short(why.to_string())
    } else {
        Error::Internal(why.to_string())
    }
}

impl From<UploadError> for Error {
    fn from(why: UploadError) -> Self {
        match why {
            UploadError::QuotaExceeded { .. } => Self::QuotaExceeded(why.to_string()),
            UploadError::System(why) => why.into(),
        }
    }
}

impl From<MirrorError> for Error {
    fn from(why: MirrorError) -> Self {
        match why {
            MirrorError::Store(why) => match &*why {
                store::Error::Unavailable(_) => Self::Unavailable,
                why => Self::Internal(why.to_string()),
            },
            MirrorError::System(why) => error_of_system(&why, is_shortage(&why)),
        }
    }
}

/// A replica does not give a file.
pub(super) fn error_of_replica(why: &ReplicaError) -> Error {
    match why {
        ReplicaError::Refused(_, 404, _) => Error::NotFound,
        ReplicaError::Refused(_, 410, _) => Error::Gone(
            "the files of the job are no longer kept: their time was over, or they were removed".to_owned(),
        ),
        ReplicaError::Refused(_, 409, _) => {
            Error::Conflict("the job is still being stopped; try again in a moment".to_owned())
        }
        ReplicaError::Refused(..) | ReplicaError::Silent(..) => {
            tracing::warn!(%why, "the files of a job cannot be had now");
            Error::Unavailable
        }
    }
}
