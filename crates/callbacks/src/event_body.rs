//! Events as parties are told of them: the same text in each call and in a list.

use domain::agreement::{AgreementState, PartyEvent};
use domain::clock::{second_of, time_in_words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "PartyEvent")]
pub struct EventBody {
    /// The id of the event: the `webhook-id` of each call.
    #[schemars(example = &"019e1c3a-5b7c-7d21-9f55-0a4be1c0d2e3")]
    pub id: String,
    /// The cursor of an event: the value of `after` for the events after it.
    #[schemars(example = 1_200)]
    pub cursor: i64,
    /// The type of the event.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["agreement.accepted", "agreement.moved", "agreement.starting", "agreement.started", "agreement.ended", "agreement.broken", "negotiation.proposed"]))]
    pub kind: String,
    /// When it happened.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// The particulars of the event.
    pub data: EventData,
}

/// The particulars of an event.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventData {
    /// The party.
    #[schemars(example = &"physics")]
    pub party: String,
    /// The agreement, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agreement: Option<Uuid>,
    /// The negotiation, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub negotiation: Option<Uuid>,
    /// The address of the negotiation, or else of the agreement.
    #[schemars(example = &"https://bespeak.example.org/agreements/019e1c3a-5b7c-7d21-9f55-0a4be1c0d2e3")]
    pub address: String,
    /// The state of the agreement after it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(extend("enum" = AgreementState::ALL.map(AgreementState::word)))]
    pub state: Option<String>,
    /// When the agreement's placement begins; of one that is starting, its next slot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(extend("format" = "date-time"))]
    pub planned_start: Option<String>,
    /// When the agreement's placement ends; of one that is starting, its next slot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(extend("format" = "date-time"))]
    pub planned_end: Option<String>,
    /// More, in words.
    #[schemars(example = &"an offer was accepted")]
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
