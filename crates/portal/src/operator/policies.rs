//! The prices, fees, shares, quotas and times that are in force.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use crate::text::duration;
use crate::{Answer, Frame, render_page};
use api::Api;
use service::{PoliciesView, PriceListView, QuotaPolicyView};

#[derive(Template)]
#[template(path = "portal/operator/policies.html")]
struct Policies {
    frame: Frame,
    prices: Option<PriceListView>,
    /// The part of prices that parties pay, in percent.
    profiles: Vec<(String, f64)>,
    /// How much of what parties may have: share, node-hours, how far ahead, reservations, questions.
    quotas: Vec<(String, [String; 5])>,
    /// The other rules, in words.
    rules: Vec<(&'static str, String)>,
}

/// GET /portal/operator/policies.
pub(super) async fn show_policies_page(State(api): State<Api>, headers: HeaderMap) -> Answer {
    let visitor = super::signed_in_operator(&api, &headers).await?;
    let policies = service::show_policies(&api.service).await?;
    let of_all = if policies.quotas_of_parties.is_empty() {
        "Each party"
    } else {
        "Each other party"
    };
    let own = policies.quotas_of_parties.iter();
    let quotas = own.map(|(party, quotas)| (party.clone(), quota_bounds_in_words(quotas)));
    let of_all = (of_all.to_owned(), quota_bounds_in_words(&policies.quotas));
    let shown = Policies {
        frame: visitor.frame("Policies"),
        quotas: quotas.chain([of_all]).collect(),
        rules: policy_rules_in_words(&policies),
        profiles: policies.profiles,
        prices: service::list_prices(&api.service, &visitor.caller.party).prices,
    };
    render_page(StatusCode::OK, &shown)
}

fn quota_bounds_in_words(quotas: &QuotaPolicyView) -> [String; 5] {
    let any = || "any number".to_owned();
    [
        quotas
            .share_percent
            .map_or_else(|| "all".to_owned(), |percent| format!("{percent} %")),
        quotas.node_hours.map_or_else(any, |hours| hours.to_string()),
        quotas
            .horizon_seconds
            .map_or_else(|| "as far as the provider plans".to_owned(), duration),
        quotas.agreements.map_or_else(any, |number| number.to_string()),
        quotas
            .questions_per_minute
            .map_or_else(any, |number| number.to_string()),
    ]
}

fn policy_rules_in_words(policies: &PoliciesView) -> Vec<(&'static str, String)> {
    let is_moved = policies.fixed_after_percent.map_or_else(
        || "may be moved within its window until its time begins".to_owned(),
        |percent| format!("may be moved within its window, for the first {percent} % of its wait"),
    );
    let proposals = match policies.proposals_max {
        0 => "are not proposed".to_owned(),
        most => format!(
            "at most {most} are proposed at a time, for {} % off the price",
            policies.proposal_discount_percent
        ),
    };
    let notice = match policies.notice_seconds {
        0 => "is not told before".to_owned(),
        seconds => format!("is told {} before", duration(seconds)),
    };
    let negotiation = format!(
        "goes on for at most {}, with at most {} offers",
        duration(policies.negotiation_seconds),
        policies.offers_max
    );
    let open = format!(
        "may have {} negotiations at a time, and offers held of {} answers",
        policies.negotiations_max, policies.holds_max
    );
    vec![
        (
            "The provider",
            format!("plans {} ahead", duration(policies.horizon_seconds)),
        ),
        (
            "An offer",
            format!("is held for at most {}", duration(policies.hold_seconds)),
        ),
        ("A negotiation", negotiation),
        ("A party", open),
        ("A reservation that waits", is_moved),
        ("Moves out of the window", proposals),
        ("A party whose time begins", notice),
    ]
}
