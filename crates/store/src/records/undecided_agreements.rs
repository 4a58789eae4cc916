//! Agreements that wait for their decision.

use domain::agreement::{Spender, Wording};
use domain::change::AcceptanceEndpoint;
use uuid::Uuid;

use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// An agreement that is not decided yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndecidedAgreement {
    /// Which.
    pub agreement: Uuid,
    /// Its party.
    pub party: String,
    /// The offer, as it came.
    pub document: Wording,
    /// The endpoint for its decision.
    pub acceptance: Option<AcceptanceEndpoint>,
    /// The counter offer that it accepts, if any.
    pub offer: Option<Uuid>,
    /// The key that asked for it, where it has a cap.
    pub spender: Option<Spender>,
}

/// At most `limit` agreements that wait for their decision, oldest first, newer than `after`.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn undecided_agreements(store: &Store, after: Uuid, limit: u32) -> Result<Vec<UndecidedAgreement>> {
    let values = [after.into(), limit.into()];
    store
        .read(statements::UNDECIDED, &values, UndecidedAgreement::of)
        .await
}

record! { UndecidedAgreement: agreement, party, document "document" "template", acceptance "acceptance" "reference_parameters", offer,
spender "api_key" "cap_micros" "cap_currency" }
