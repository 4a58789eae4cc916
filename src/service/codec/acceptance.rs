//! The acceptance of a counter offer, from a document or from JSON.

use std::time::Duration;

use domain::change::AcceptanceEndpoint;
use serde_json::json;
use uuid::Uuid;

use crate::service::codec::kept::KeptOffer;

/// How long a requester waits for a peer's word; it asks again under its key after that.
pub(in crate::service) const ACCEPT_WITHIN: Duration = Duration::from_secs(8);

/// The data of an acceptance.
#[derive(Clone)]
pub(in crate::service) struct AcceptanceInput {
    /// The `OfferId` of the counter offer.
    pub(in crate::service) offer: Uuid,
    /// The negotiation, where it is named.
    pub(in crate::service) negotiation: Option<Uuid>,
    /// The agreement that is to be replaced, where it is named.
    pub(in crate::service) replaced: Option<Uuid>,
    /// The offer in its requester's own words; none where it is accepted as it stands.
    pub(in crate::service) words: Option<KeptOffer>,
    /// The path of the input; none where there is no document.
    pub(in crate::service) input: &'static str,
    /// Whether the fresh offers are held, where it comes too late.
    pub(in crate::service) holds: bool,
    /// How long the word of a peer is waited for, where one carries it out.
    pub(in crate::service) within: Duration,
}

impl AcceptanceInput {
    /// All that distinguishes it from other acceptances of the same offer: also where its decision is to be told.
    pub(in crate::service) fn content(&self, told: Option<&AcceptanceEndpoint>) -> String {
        let told = told.map(|told| (&told.address, &told.parameters));
        json!((self.negotiation, self.replaced, &self.words, told)).to_string()
    }

    /// The acceptance of a counter offer as it stands.
    pub(in crate::service) fn as_it_stands(offer: Uuid) -> Self {
        Self {
            offer,
            negotiation: None,
            replaced: None,
            words: None,
            input: "",
            holds: false,
            within: ACCEPT_WITHIN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acceptance_that_is_told_elsewhere_is_another_one() {
        let accepting = AcceptanceInput::as_it_stands(Uuid::from_u128(1));
        let told_at = |address: &str| AcceptanceEndpoint {
            address: address.to_owned(),
            parameters: None,
        };
        let (one, two) = (told_at("https://a.example"), told_at("https://b.example"));
        let content = |told| accepting.content(told);
        assert_eq!(content(Some(&one)), content(Some(&one)));
        assert_ne!(content(Some(&one)), content(Some(&two)));
        assert_ne!(content(Some(&one)), content(None));
        let named = AcceptanceInput {
            negotiation: Some(Uuid::from_u128(2)),
            ..accepting.clone()
        };
        assert_ne!(named.content(None), content(None));
    }
}
