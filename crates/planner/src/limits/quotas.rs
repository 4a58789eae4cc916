//! How much one party may have, ask and keep.

use std::collections::BTreeSet;

use domain::agreement::{Agreement, NegotiationOffer, Shape};
use domain::clock::{MICROS_PER_SECOND, time_in_words};
use scheduler::{Time, counted};
use uuid::Uuid;

use crate::context::{Search, View};
use crate::limits::share;
use crate::limits::usage::used_node_seconds;
use crate::refusal::{Refusal, quota_exceeded};
use crate::request::Request;

/// From this part of a bound on a party is near it, in percent.
const NEAR_PERCENT: u64 = 80;
/// Seconds of an hour.
const HOUR: u128 = 3_600;

/// Holds a proposal within its party's horizon: a window that it leaves open ends there.
pub(crate) fn limit_to_quota_horizon(view: View<'_>, request: &mut Request) -> Result<(), Refusal> {
    let Some(horizon) = view.settings.quotas_of(&request.party).horizon else {
        return Ok(());
    };
    let deadline = request.deadline_within(quota_horizon_of(view, &request.party));
    request.deadline = Some(deadline);
    let latest = view.present_second() + horizon;
    if deadline > latest {
        return Err(quota_exceeded(format!(
            "a party may plan {} ahead, until {}, and the window ends {} later",
            counted(horizon / 3_600, "hour"),
            time_in_words(latest),
            counted(deadline - latest, "second")
        )));
    }
    Ok(())
}

/// Leaves a proposal those of its sizes that its party's node-hours allow. `replaced` would be given up for it.
pub(crate) fn limit_to_node_hour_quota(
    view: View<'_>,
    request: &mut Request,
    replaced: Option<&Agreement>,
) -> Result<(), Refusal> {
    let Some(node_hours) = view.settings.quotas_of(&request.party).node_hours else {
        return Ok(());
    };
    let used = used_node_seconds(view, &request.party, replaced);
    let left = (u128::from(node_hours) * HOUR).saturating_sub(used);
    let asked = |shape: &Shape| u128::from(shape.nodes) * u128::from(shape.duration.unsigned_abs());
    let least = request.shapes.iter().map(asked).min().unwrap_or(0);
    if least > left {
        return Err(node_hour_quota_exceeded(node_hours, used, least));
    }
    request.shapes.retain(|shape| asked(shape) <= left);
    Ok(())
}

/// How far ahead of `now` a party may plan, and the provider does.
pub(crate) fn quota_horizon_of(view: View<'_>, party: &str) -> Time {
    let own = view.settings.quotas_of(party).horizon;
    view.present_second() + own.map_or(view.settings.horizon, |own| own.min(view.settings.horizon))
}

/// Refuses another agreement to a party that has as many as it may have; `but` is one that waits to be made.
pub(crate) fn check_agreements_quota(view: View<'_>, party: &str, but: Option<Uuid>) -> Result<(), Refusal> {
    let Some(most) = view.settings.quotas_of(party).agreements else {
        return Ok(());
    };
    if view.options.is_unbounded {
        return Ok(());
    }
    let waiting = view.elsewhere.agreements();
    let waiting = waiting.filter(|waiting| waiting.party == party && Some(waiting.id) != but);
    if view.agreements.of_party(party) as usize + waiting.count() < most as usize {
        return Ok(());
    }
    let many = counted(most, "agreement");
    Err(quota_exceeded(format!(
        "a party may have {many} that are not over: end some, or ask the provider for more"
    )))
}

/// Counts a question of a party for a quote. A quote reveals something about the agreements of others.
pub(crate) fn count_quota_question(search: &mut Search<'_>, party: &str) -> Result<(), Refusal> {
    let Some(most) = search.settings.quotas_of(party).probes_per_minute else {
        return Ok(());
    };
    if search.options.is_unbounded {
        return Ok(());
    }
    let minute = search.now.div_euclid(60 * MICROS_PER_SECOND);
    if search.limits.count_question(party, minute) > most {
        let times = counted(most, "time");
        return Err(quota_exceeded(format!("a party may ask {times} a minute")));
    }
    Ok(())
}

/// The questions of a party in the present minute.
pub(crate) fn questions_against_quota(view: View<'_>, party: &str) -> u32 {
    let minute = view.now.div_euclid(60 * MICROS_PER_SECOND);
    view.limits.questions_in(party, minute)
}

/// How many parties have at least [`NEAR_PERCENT`] of the agreements or the questions that they may have.
pub(crate) fn parties_near_quota(view: View<'_>) -> usize {
    let asking = view.limits.asking();
    let parties: BTreeSet<&str> = view
        .agreements
        .parties()
        .map(|(party, _)| party)
        .chain(asking)
        .collect();
    let is_near = |party: &&str| {
        let quotas = view.settings.quotas_of(party);
        is_near_bound(view.agreements.of_party(party), quotas.agreements)
            || is_near_bound(questions_against_quota(view, party), quotas.probes_per_minute)
    };
    parties.into_iter().filter(is_near).count()
}

/// Whether a party may have an offer kept, beside the offers that have been kept since it was found.
pub(crate) fn check_hold_quota(view: View<'_>, party: &str, offer: &NegotiationOffer) -> Result<(), Refusal> {
    let beside = offer
        .parent
        .and_then(|answer| view.table.most_held(offer.negotiation, answer));
    let most = view.settings.negotiation.holds_max;
    if beside.is_none() && view.table.held_answers(party) >= most {
        return Err(quota_exceeded(format!(
            "a party may have the offers of {most} answers held at a time"
        )));
    }
    let Some(terms) = &offer.terms else {
        return Ok(());
    };
    let replaced = view.table.renegotiated(view.agreements, offer.negotiation);
    let mut slots = terms
        .slots
        .iter()
        .map(|slot| (terms.resource.as_str(), slot.stretch()));
    if !slots.all(|slot| share::is_within_share(view, party, slot, (replaced, offer.parent))) {
        return Err(quota_exceeded(
            "with it a party would have more of the resource than its share while others have work",
        ));
    }
    let Some(node_hours) = view.settings.quotas_of(party).node_hours else {
        return Ok(());
    };
    let used = used_node_seconds(view, party, replaced);
    let beside = beside.filter(|_| replaced.is_none()).unwrap_or(0);
    let more = terms.node_seconds().saturating_sub(beside);
    if used + more > u128::from(node_hours) * HOUR {
        return Err(node_hour_quota_exceeded(node_hours, used, more));
    }
    Ok(())
}

/// Whether a number is near its bound or beyond it.
pub(crate) fn is_near_bound(count: u32, most: Option<u32>) -> bool {
    most.is_some_and(|most| u64::from(count) * 100 >= u64::from(most) * NEAR_PERCENT)
}

fn node_hour_quota_exceeded(node_hours: u64, used: u128, asked: u128) -> Refusal {
    quota_exceeded(format!(
        "a party may have {node_hours} node-hours at a time, offers that are held included; {} are in use, and {} are asked for",
        used.div_ceil(HOUR),
        asked.div_ceil(HOUR)
    ))
}
