//! Events as parties are told of them: the same text in each call and in a list.

use domain::agreement::PartyEvent;
use domain::clock::{second_of, time_in_words};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventBody {
    /// Its id: the `webhook-id` of each call.
    pub id: String,
    /// Its place among the events of its party: the value of `after` for the ones after it.
    pub cursor: i64,
    /// Its kind: `agreement.accepted` and the like.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it happened.
    pub timestamp: String,
    /// The particulars.
    pub data: EventData,
}

/// The particulars of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventData {
    /// The party.
    pub party: String,
    /// The agreement, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agreement: Option<Uuid>,
    /// The negotiation, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub negotiation: Option<Uuid>,
    /// The address of the negotiation, or else of the agreement.
    pub address: String,
    /// The state of the agreement after it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub state: Option<String>,
    /// When the agreement's placement begins; of one that is starting, its next slot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub planned_start: Option<String>,
    /// When that ends.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub planned_end: Option<String>,
    /// The event, in words.
    pub detail: String,
}

impl EventBody {
    /// An event of a service with an address.
    pub fn of(event: PartyEvent, service: &str) -> Self {
        let (noun, path, subject) = match (event.negotiation, event.agreement) {
            (None, agreement) => ("agreement", "agreements", agreement),
            (negotiation, _) => ("negotiation", "negotiations", negotiation),
        };
        Self {
            id: event.id,
            cursor: event.number,
            kind: format!("{noun}.{}", event.kind.word()),
            timestamp: time_in_words(second_of(event.at)),
            data: EventData {
                party: event.party,
                agreement: event.agreement,
                negotiation: event.negotiation,
                address: format!("{service}/{path}/{}", subject.unwrap_or_default()),
                state: event.state.map(|state| state.word().to_owned()),
                planned_start: event.planned.map(|planned| time_in_words(planned.start)),
                planned_end: event.planned.map(|planned| time_in_words(planned.end)),
                detail: event.detail,
            },
        }
    }

    /// Its text.
    pub fn text(&self) -> String {
        // Texts and numbers alone.
        serde_json::to_string(self).unwrap_or_default()
    }
}
