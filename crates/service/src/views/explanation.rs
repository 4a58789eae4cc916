//! Why an agreement is where it is, and how far it may still be moved. All of it is stored with the decisions; nothing is asked of the
//! plan again.

use jiff::Timestamp;
use serde::Serialize;

use super::agreement::AgreementView;
use crate::timeline::{TimelineEventView, TimelineView};

/// Why an agreement is where it is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationView {
    /// The parts of the decision that made it.
    pub decision: Vec<String>,
    /// The offers that led to it.
    pub negotiated: Vec<ReasonView>,
    /// Its moves, and the loss of its place.
    pub moves: Vec<ReasonView>,
    /// What its price consists of, where it has one.
    pub price_parts: Option<Vec<String>>,
    /// How far it may still be moved.
    pub flexibility: FlexibilityExplanationView,
}

/// Something that happened, with its reason.
#[derive(Debug, Clone, Serialize)]
pub struct ReasonView {
    /// When.
    pub at: String,
    /// The reason, in words.
    pub why: String,
}

/// How far an agreement may still be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlexibilityExplanationView {
    /// Seconds by which it may begin earlier.
    pub earlier_seconds: i64,
    /// Seconds by which it may end later.
    pub later_seconds: i64,
    /// The reason, in words.
    pub why: String,
}

impl ExplanationView {
    /// The explanation of an agreement as it stands at an instant, from its timeline.
    pub fn of(view: &AgreementView, timeline: &TimelineView, now: Timestamp) -> Self {
        let events_of = |kinds: &[&str]| -> Vec<&TimelineEventView> {
            let events = timeline.events.iter();
            events
                .filter(|event| kinds.contains(&event.kind.as_str()))
                .collect()
        };
        let reasons = |kinds: &[&str]| -> Vec<ReasonView> {
            let reason = |event: &&TimelineEventView| ReasonView {
                at: event.at.clone(),
                why: event.detail.clone(),
            };
            events_of(kinds).iter().map(reason).collect()
        };
        let accepted = events_of(&["accepted"]);
        let decision = accepted.first().map(|event| event.detail.as_str());
        // The words of a decision end with its price.
        let parts = decision.zip(view.price.as_ref()).and_then(|(decision, price)| {
            let (_, parts) = decision.rsplit_once(&format!("; {price}: "))?;
            Some(parts)
        });
        let because = decision
            .into_iter()
            .flat_map(|decision| decision.split("; "))
            .filter(|part| !parts.is_some_and(|parts| part.ends_with(parts)));
        Self {
            decision: because.map(str::to_owned).collect(),
            negotiated: reasons(&["offered"]),
            moves: reasons(&["moved", "broken"]),
            price_parts: parts.map(|parts| parts.split(", ").map(str::to_owned).collect()),
            flexibility: FlexibilityExplanationView::of(view, !events_of(&["fixed"]).is_empty(), now),
        }
    }
}

impl FlexibilityExplanationView {
    fn of(view: &AgreementView, fixed: bool, now: Timestamp) -> Self {
        let none = |why: &str| Self {
            earlier_seconds: 0,
            later_seconds: 0,
            why: why.to_owned(),
        };
        if view.outcome.is_some() || view.ended.is_some() {
            return none("it is over");
        }
        if view.service_state != "NotReady" {
            return none("its slot has begun");
        }
        if fixed {
            return none("it has waited long enough: its slot moves no more");
        }
        let (Some(start), Some(end)) = (&view.planned_start, &view.planned_end) else {
            return none("it has no place");
        };
        let at = |text: &str| text.parse::<Timestamp>().map_or(0, Timestamp::as_second);
        let ready = at(&view.ready).max(now.as_second());
        Self {
            earlier_seconds: (at(start) - ready).max(0),
            later_seconds: (at(&view.deadline) - at(end)).max(0),
            why: format!(
                "it may be moved anywhere from {} to {}",
                view.ready, view.deadline
            ),
        }
    }
}
