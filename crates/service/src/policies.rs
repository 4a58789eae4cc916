//! The rules for parties that are in force: for operators.

use planner::{Quotas, ShowPolicies};

use crate::prices::percent;
use crate::{Result, Service};

/// The rules that are in force.
#[derive(Debug, Clone, PartialEq)]
pub struct PoliciesView {
    /// How far ahead is planned, in seconds.
    pub horizon_seconds: i64,
    /// After which part of its wait a reservation moves no more, in percent; none for never.
    pub fixed_after_percent: Option<f64>,
    /// How long before its start a party is told of it, in seconds; 0 for not at all.
    pub notice_seconds: i64,
    /// How long a negotiation lasts at most, in seconds.
    pub negotiation_seconds: i64,
    /// Negotiations that a party may have going on.
    pub negotiations_max: usize,
    /// Offers of one negotiation.
    pub offers_max: usize,
    /// How long an offer is held, in seconds.
    pub hold_seconds: i64,
    /// Answers with held offers that a party may have.
    pub holds_max: usize,
    /// Moves that the provider proposes at a time.
    pub proposals_max: usize,
    /// The discount for such a move, in percent.
    pub proposal_discount_percent: f64,
    /// How much a party may have and ask.
    pub quotas: QuotaPolicyView,
    /// The same for the parties with quotas of their own, by their names.
    pub quotas_of_parties: Vec<(String, QuotaPolicyView)>,
    /// The part of each price that parties pay which do not pay all of it, in percent, by their names.
    pub profiles: Vec<(String, f64)>,
}

/// How much a party may have and ask; none is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaPolicyView {
    /// The part of a resource in any 30 days while others have work, in percent.
    pub share_percent: Option<u32>,
    /// Node-hours in reservations that are not over and in held offers.
    pub node_hours: Option<u64>,
    /// How far ahead it may plan, in seconds.
    pub horizon_seconds: Option<i64>,
    /// Agreements that are not over.
    pub agreements: Option<u32>,
    /// Questions in a minute.
    pub questions_per_minute: Option<u32>,
}

impl QuotaPolicyView {
    fn of(one_quotas: &Quotas) -> Self {
        Self {
            share_percent: one_quotas.share_percent,
            node_hours: one_quotas.node_hours,
            horizon_seconds: one_quotas.horizon,
            agreements: one_quotas.agreements,
            questions_per_minute: one_quotas.probes_per_minute,
        }
    }
}

/// The rules for parties that are in force. For operators.
///
/// # Errors
/// [`Error::Unavailable`](crate::Error::Unavailable).
pub async fn show_policies(service: &Service) -> Result<PoliciesView> {
    let in_force = service.ask(ShowPolicies).await?;
    let negotiation = in_force.negotiation;
    let templates = service.templates.now();
    let profiles = templates
        .pricing()
        .into_iter()
        .flat_map(|pricing| &pricing.profiles);
    let quotas_of_parties = in_force.quotas_of_parties.iter();
    Ok(PoliciesView {
        horizon_seconds: in_force.horizon,
        fixed_after_percent: in_force.fix_after.map(percent),
        notice_seconds: in_force.announce,
        negotiation_seconds: negotiation.lasts,
        negotiations_max: negotiation.open_max,
        offers_max: negotiation.offers_max,
        hold_seconds: negotiation.hold,
        holds_max: negotiation.holds_max,
        proposals_max: in_force.proposals.moves_max,
        proposal_discount_percent: percent(in_force.proposals.discount),
        quotas: QuotaPolicyView::of(&in_force.quotas),
        quotas_of_parties: quotas_of_parties
            .map(|(party, quotas)| (party.clone(), QuotaPolicyView::of(quotas)))
            .collect(),
        profiles: profiles
            .map(|(party, part)| (party.clone(), percent(*part)))
            .collect(),
    })
}
