//! The events and the guarantees of a reservation in plain words.

use crate::negotiation::{AgreementView, EventView, GuaranteeView};
use crate::portal::text::{self, capitalised, moment};

/// Something that happened, as a person reads it.
pub(in crate::portal) struct Happening {
    pub(in crate::portal) at: String,
    pub(in crate::portal) title: &'static str,
    /// The particulars; empty where the title says it all.
    pub(in crate::portal) detail: String,
}

impl Happening {
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
        "moved" => "It was moved",
        "fixed" => return ("It will not be moved any more", ""),
        "begun" | "started" => "Its time began",
        "unused" => "Its nodes are not used",
        "overrun" => "Its work was not over in time",
        "broken" => "It lost its place",
        "restarted" => "It has to run again",
        "staging" => "Its files are being brought",
        "staged" => "Its files were moved",
        "running" => return ("Its program runs", ""),
        "checkpointed" => "A piece of the work is saved",
        "ended" => "Its work ended",
        "assessed" if detail.contains(" Fulfilled: ") => "A guarantee was kept",
        "assessed" => "A guarantee was broken",
        "penalty" => "Money was paid for a broken guarantee",
        "reward" => "Money was paid for a kept guarantee",
        "charged" => "You were charged",
        "terminating" => "It is being cancelled",
        "superseded" => "It was changed",
        "closed" if detail.starts_with("Rejected") => "It was refused",
        "closed" => return ("It is over", ""),
        "negotiating" => return ("A negotiation began", ""),
        "proposed" => "The provider proposed a change",
        "withdrawn" => "A negotiation was ended",
        "asked" => "You asked for an offer",
        "countered" => "The provider made an offer",
        "refused" => "The provider could offer nothing",
        "declined" => "You rejected an offer",
        "taken" => return ("You took an offer", ""),
        "lapsed" => "An offer was held no longer",
        "released" => "An offer was given back",
        "by-operator" => "The provider stepped in",
        _ => "Something happened",
    };
    (title, detail)
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
    pub(in crate::portal) fn of(guarantee: &GuaranteeView, view: &AgreementView) -> Self {
        let (words, class) = match guarantee.state.as_str() {
            "Fulfilled" => ("Kept", "good"),
            "Violated" => ("Broken", "bad"),
            _ => ("Open", "waiting"),
        };
        Self {
            sentence: promise_in_words(guarantee, (&view.deadline, view.duration_seconds)),
            words,
            class,
            name: guarantee.name.clone(),
            objective: guarantee.objective.clone(),
            evidence: guarantee.evidence.as_deref().map(plain),
        }
    }
}

/// A guarantee of an agreement with this deadline and duration in seconds: what is promised, and what is paid otherwise.
pub(in crate::portal) fn promise_in_words(
    guarantee: &GuaranteeView,
    (deadline, duration): (&str, i64),
) -> String {
    let mut sentence = match guarantee.objective.as_str() {
        "completed le deadline" => format!("Ends by {}", moment(deadline)),
        "started le latest_start" | "started ge ready and started le latest_start" => {
            let latest = text::second_of(deadline).map(|end| end - duration);
            let latest = latest.map_or_else(String::new, |at| moment(&text::date_time(at)));
            format!("Begins by {latest}")
        }
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
    fn every_kind_of_event_has_a_title() {
        use crate::agreement::EventKind;
        for kind in EventKind::ALL {
            assert_ne!(told(kind.word(), "").0, "Something happened", "{}", kind.word());
        }
    }
}
