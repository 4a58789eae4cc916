//! The events and the guarantees of a reservation in plain words.

use crate::portal::text::{self, capitalised, moment};
use crate::service::{AgreementView, EventView, GuaranteeView, TimelineView};

/// Something that happened, as a person reads it.
pub(in crate::portal) struct TimelineEntry {
    pub(in crate::portal) at: String,
    pub(in crate::portal) title: &'static str,
    /// The particulars; empty where the title says it all.
    pub(in crate::portal) detail: String,
}

impl TimelineEntry {
    pub(in crate::portal) fn of(event: &EventView) -> Self {
        let (title, detail) = told(&event.kind, &event.detail);
        Self {
            at: event.at.clone(),
            title,
            detail: capitalised(&plain(detail)),
        }
    }
}

/// A kind of event as a title, and what else is to be told of it.
fn told<'a>(kind: &str, detail: &'a str) -> (&'static str, &'a str) {
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
pub(in crate::portal) fn is_about_nodes(detail: &str) -> bool {
    detail.starts_with("on nodes ")
}

/// The amount with which the words of a payment begin.
fn amount_of(detail: &str) -> &str {
    detail.split_once(": ").map_or(detail, |(amount, _)| amount)
}

/// What a party was charged by a timeline, in one currency.
pub(in crate::portal) fn charged(timeline: &TimelineView, currency: &str) -> String {
    let charges = timeline.events.iter().filter(|event| event.kind == "charged");
    let amounts = charges.filter_map(|event| amount_of(&event.detail).strip_suffix(currency));
    let micros = amounts.filter_map(|amount| wsag::budget::parse_amount(amount.trim()).ok());
    format!("{} {currency}", wsag::budget::write_amount(micros.sum()))
}

/// A text of the service with its seconds as durations and its times as people write them.
pub(in crate::portal) fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut told: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        let bare = word.trim_end_matches([',', ';', '.', ':', ')']);
        let rest = &word[bare.len()..];
        if ["second", "seconds"].contains(&bare)
            && let Some(seconds) = told.last().and_then(|number| number.parse::<i64>().ok())
        {
            told.pop();
            told.push(text::duration(seconds) + rest);
        } else if bare.parse::<jiff::Timestamp>().is_ok() {
            told.push(moment(bare) + rest);
        } else {
            told.push(word.to_owned());
        }
    }
    told.join(" ")
}

/// A guarantee as a person reads it.
pub(in crate::portal) struct Promise {
    /// What is promised, and what is paid where it is not kept.
    pub(in crate::portal) sentence: String,
    pub(in crate::portal) words: &'static str,
    pub(in crate::portal) class: &'static str,
    /// As the agreement has it.
    pub(in crate::portal) name: String,
    pub(in crate::portal) objective: String,
    pub(in crate::portal) evidence: Option<String>,
}

impl Promise {
    /// A guarantee of an agreement, of which it is known whether a deadline was given.
    pub(in crate::portal) fn of(guarantee: &GuaranteeView, view: &AgreementView, has_deadline: bool) -> Self {
        let (words, class) = match guarantee.state.as_str() {
            "Fulfilled" => ("Kept", "good"),
            "Violated" => ("Broken", "bad"),
            _ if text::is_final(view) => ("No longer applies", "over"),
            _ => ("Not decided yet", "waiting"),
        };
        Self {
            sentence: promise_in_words(
                guarantee,
                (view.planned_start.as_deref(), &view.deadline),
                has_deadline,
            ),
            words,
            class,
            name: guarantee.name.clone(),
            objective: guarantee.objective.clone(),
            evidence: guarantee.evidence.as_deref().map(plain),
        }
    }
}

/// A guarantee of an agreement with this planned start, where it has one, and this deadline, whether or not it was given: what is
/// promised, and what is paid otherwise.
pub(in crate::portal) fn promise_in_words(
    guarantee: &GuaranteeView,
    (start, deadline): (Option<&str>, &str),
    has_deadline: bool,
) -> String {
    let mut sentence = match guarantee.objective.as_str() {
        "completed le deadline" if !has_deadline => "Ends in time; no deadline was given".to_owned(),
        "completed le deadline" => format!("Ends by {}", moment(deadline)),
        "started le latest_start" | "started ge ready and started le latest_start" => start.map_or_else(
            || "Begins when it is planned to".to_owned(),
            |start| format!("Begins by {}", moment(start)),
        ),
        _ => format!("“{}” is kept, as the terms say", guarantee.name),
    };
    for value in &guarantee.values {
        let again = value.every_seconds.map_or_else(String::new, |every| {
            format!(", again after every {}", text::duration(every))
        });
        let (amount, paid) = (&value.amount, value.paid);
        // The side that owes the guarantee pays its penalties and gets its rewards.
        let party_gets = (value.kind == "penalty") != guarantee.is_partys;
        let payment = if party_gets { "you get" } else { "you pay" };
        sentence += &match value.kind.as_str() {
            "penalty" => format!(", or {payment} {amount}{again}"),
            _ => format!("; if so, {payment} {amount}{again}"),
        };
        if paid > 0 {
            let times = if paid == 1 {
                "once".to_owned()
            } else {
                format!("{paid} times")
            };
            sentence += &format!(" (paid {times})");
        }
    }
    sentence + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_times_in_texts_become_readable() {
        for (text, words) in [
            (
                "3600 seconds later, to let another in",
                "1 h later, to let another in",
            ),
            ("after 60 seconds; then 1 second.", "after 1 min; then 1 s."),
            ("seconds of it", "seconds of it"),
            (
                "until 2026-11-21T10:00:00Z, then",
                "until Sat 21 Nov 2026, 10:00 UTC, then",
            ),
            ("", ""),
        ] {
            assert_eq!(plain(text), words);
        }
    }

    #[test]
    fn charges_are_summed_and_payments_told_by_their_amounts() {
        let event = |kind: &str, detail: &str| EventView {
            at: String::new(),
            kind: kind.to_owned(),
            detail: detail.to_owned(),
        };
        let timeline = |events: Vec<EventView>| TimelineView {
            agreement: uuid::Uuid::nil(),
            events,
        };
        assert_eq!(charged(&timeline(Vec::new()), "EUR"), "0 EUR");
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
        assert_eq!(charged(&timeline(events), "EUR"), "3.5 EUR");
    }

    #[test]
    fn every_kind_of_event_has_a_title() {
        use domain::agreement::EventKind;
        for kind in EventKind::ALL {
            assert_ne!(told(kind.word(), "").0, "Something happened", "{}", kind.word());
        }
    }
}
