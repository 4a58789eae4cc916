//! The events of a reservation in plain words.

use crate::text::{capitalised, plain_text};
use service::{TimelineEventView, TimelineView};

/// Something that happened, as a person reads it.
pub(crate) struct TimelineEntry {
    pub(crate) at: String,
    pub(crate) title: &'static str,
    /// The particulars; empty where the title says it all.
    pub(crate) detail: String,
}

impl TimelineEntry {
    pub(crate) fn of(event: &TimelineEventView) -> Self {
        let (title, detail) = timeline_event_in_words(&event.kind, &event.detail);
        Self {
            at: event.at.clone(),
            title,
            detail: capitalised(&plain_text(detail)),
        }
    }
}

/// A kind of event as a title, and what else is to be told of it.
fn timeline_event_in_words<'a>(kind: &str, detail: &'a str) -> (&'static str, &'a str) {
    let title = match kind {
        "offered" => "You asked for it",
        "accepted" => "It was reserved",
        "forwarded" => "Another domain was asked",
        "moved" if is_about_nodes(detail) => return ("Its cluster gave it other nodes", ""),
        "moved" => "It was moved",
        "fixed" => return ("It will not be moved any more", ""),
        "begun" if detail.contains(", which does not hold them") => {
            return ("Its time began, and its cluster does not hold its nodes yet", "");
        }
        "begun" => return ("Its time began", ""),
        "unused" => "Its nodes are not used",
        "overrun" => "Its work was not over in time",
        "broken" => "It lost its place",
        "restarted" => "It has to run again",
        "staging" => "Its files are being brought",
        "staged" => "Its files were moved",
        "running" => return ("Its program runs", ""),
        "checkpointed" => "A piece of the work is saved",
        "ended" => "Its work ended",
        "assessed" if detail.contains(" Fulfilled: ") => return ("A guarantee was kept", ""),
        "assessed" => return ("A guarantee was broken", ""),
        "penalty" if detail.contains(": compensation: ") => "You were compensated",
        "penalty" => return ("Money was paid for a broken guarantee", amount_of(detail)),
        "reward" => return ("Money was paid for a kept guarantee", amount_of(detail)),
        "charged" => "You were charged",
        "terminating" => "It is being cancelled",
        "superseded" => return ("It was changed", ""),
        "closed" if detail.starts_with("Rejected") => "It was refused",
        "closed" => return ("It is over", ""),
        "negotiating" => return ("A negotiation began", ""),
        "proposed" => return ("The provider proposed a change", ""),
        "withdrawn" => return ("A negotiation was ended", ""),
        "asked" => return ("You asked for an offer", ""),
        "countered" => return ("The provider made an offer", ""),
        "refused" => return ("The provider could offer nothing", ""),
        "declined" => return ("You rejected an offer", ""),
        "taken" => return ("You took an offer", ""),
        "lapsed" => return ("An offer was held no longer", ""),
        "released" => return ("An offer was given back", ""),
        "by-operator" => "The provider stepped in",
        _ => "Something happened",
    };
    (title, detail)
}

/// Whether a move was one to other nodes of the same resource at the same time.
pub(crate) fn is_about_nodes(detail: &str) -> bool {
    detail.starts_with("on nodes ")
}

/// The amount with which the words of a payment begin.
fn amount_of(detail: &str) -> &str {
    detail.split_once(": ").map_or(detail, |(amount, _)| amount)
}

/// What a party was charged by a timeline, in one currency.
pub(crate) fn charged_on_timeline(timeline: &TimelineView, currency: &str) -> String {
    let charges = timeline.events.iter().filter(|event| event.kind == "charged");
    let amounts = charges.filter_map(|event| amount_of(&event.detail).strip_suffix(currency));
    let micros = amounts.filter_map(|amount| wsag::budget::parse_amount(amount.trim()).ok());
    format!("{} {currency}", wsag::budget::write_amount(micros.sum()))
}

/// The entries of a timeline for the events of some kinds.
pub(crate) fn entries_of_timeline(
    timeline: &TimelineView,
    is_shown: impl Fn(&str) -> bool,
) -> Vec<TimelineEntry> {
    let events = timeline.events.iter().filter(|event| is_shown(&event.kind));
    events.map(TimelineEntry::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_summed_and_payments_told_by_their_amounts() {
        let event = |kind: &str, detail: &str| TimelineEventView {
            at: String::new(),
            kind: kind.to_owned(),
            detail: detail.to_owned(),
        };
        let timeline = |events: Vec<TimelineEventView>| TimelineView {
            agreement: uuid::Uuid::nil(),
            events,
        };
        assert_eq!(charged_on_timeline(&timeline(Vec::new()), "EUR"), "0 EUR");
        let events = vec![
            event("charged", "2.5 EUR: cancellation"),
            event("penalty", "28 EUR: COMPLETION is violated"),
            event("charged", "1 EUR: change"),
        ];
        let told = TimelineEntry::of(&events[1]);
        assert_eq!(
            (told.title, told.detail.as_str()),
            ("Money was paid for a broken guarantee", "28 EUR")
        );
        assert_eq!(charged_on_timeline(&timeline(events), "EUR"), "3.5 EUR");
    }

    #[test]
    fn every_kind_of_event_has_a_title() {
        use domain::agreement::EventKind;
        for kind in EventKind::ALL {
            assert_ne!(
                timeline_event_in_words(kind.word(), "").0,
                "Something happened",
                "{}",
                kind.word()
            );
        }
    }
}
