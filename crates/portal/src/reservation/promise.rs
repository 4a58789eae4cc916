//! The guarantees of a reservation as promises in plain words.

use crate::reservation::standing::is_final;
use crate::text::{self, moment, plain_text};
use service::{AgreementView, FlexibilityExplanationView, GuaranteeView, ShapeChangesView};

/// A guarantee as a person reads it.
pub(crate) struct Promise {
    /// What is promised, and what is paid where it is not kept.
    pub(crate) sentence: String,
    pub(crate) words: &'static str,
    pub(crate) class: &'static str,
    /// As the agreement has it.
    pub(crate) name: String,
    pub(crate) objective: String,
    pub(crate) evidence: Option<String>,
}

impl Promise {
    /// A guarantee of an agreement, of which it is known whether a deadline was given.
    pub(crate) fn of(guarantee: &GuaranteeView, view: &AgreementView, has_deadline: bool) -> Self {
        let (words, class) = match guarantee.state.as_str() {
            "Fulfilled" => ("Kept", "good"),
            "Violated" => ("Broken", "bad"),
            _ if is_final(view) => ("No longer applies", "over"),
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
            evidence: guarantee.evidence.as_deref().map(plain_text),
        }
    }
}

/// A guarantee of an agreement with this planned start, where it has one, and this deadline, whether or not it was given: what is
/// promised, and what is paid otherwise.
pub(crate) fn promise_in_words(
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

/// What the provider may still change of the shape of a reservation that waits; none where that is nothing.
pub(crate) fn shape_changes_in_words(changes: &ShapeChangesView) -> Option<String> {
    let parts = match (changes.sizes, changes.cuts) {
        (true, true) => "another of its sizes, or other pieces",
        (true, false) => "another of its sizes",
        (false, true) => "other pieces",
        (false, false) => return None,
    };
    let until = changes.until.as_deref();
    let until = until.map_or_else(
        || "until it starts".to_owned(),
        |until| format!("until {}", moment(until)),
    );
    Some(format!(
        "To let others in it may get {parts}, {until}: for the same work and price, in the same times."
    ))
}

/// How far the provider may still move a reservation, and why no farther.
pub(crate) fn flexibility_in_words(left: &FlexibilityExplanationView, has_deadline: bool) -> String {
    if left.later_seconds > 0 && !has_deadline {
        return "The provider may still move it, also to later: no deadline was given.".to_owned();
    }
    let parts = [(left.earlier_seconds, "earlier"), (left.later_seconds, "later")];
    let parts = parts.iter().filter(|(seconds, _)| *seconds > 0);
    let parts: Vec<_> = parts
        .map(|(seconds, direction)| format!("up to {} {direction}", text::duration(*seconds)))
        .collect();
    let why = plain_text(&left.why);
    if parts.is_empty() {
        format!("It stays where it is: {why}.")
    } else {
        format!("The provider may still move it {}: {why}.", parts.join(" or "))
    }
}
