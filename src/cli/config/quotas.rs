//! How much one party may have and ask.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::Config;
use super::ranges::check_range;

/// The part of a resource that one party may have while others have work, in percent.
const SHARE_PERCENT: u32 = 50;
/// Agreements that one party may have at a time, and its questions in a minute.
const AGREEMENTS: u32 = 2_000;
const PROBES_PER_MINUTE: u32 = 600;

/// How much one party may have and ask; but for its share, its agreements and its questions nothing is bounded that is not set.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "struct Quotas")]
pub(super) struct QuotasSection {
    /// Node-hours in agreements that are not over and in offers that are held.
    node_hours: Option<u32>,
    /// Hours that it may plan ahead.
    horizon_hours: Option<u32>,
    /// Agreements that are not over; 0 for no bound.
    agreements: Option<u32>,
    /// How often in a minute it may ask for quotes; 0 for no bound.
    probes_per_minute: Option<u32>,
    /// The part of the node-hours of a resource that it may have in any 30 days while other parties have work, in percent.
    share_percent: Option<u32>,
}

impl QuotasSection {
    /// Checks the table of this name.
    pub(super) fn check(&self, table: &str) -> Result<(), String> {
        for (key, value) in [
            ("node_hours", self.node_hours),
            ("horizon_hours", self.horizon_hours),
        ] {
            if value == Some(0) {
                return Err(format!("{table}.{key}: expected 1 or more, found 0"));
            }
        }
        let share = self.share_percent.unwrap_or(SHARE_PERCENT);
        check_range(&format!("{table}.share_percent"), share, 1..=100)
    }

    pub(super) fn planner(&self) -> planner::Quotas {
        planner::Quotas {
            node_hours: self.node_hours.map(u64::from),
            horizon: self.horizon_hours.map(|hours| i64::from(hours) * 3_600),
            agreements: Some(self.agreements.unwrap_or(AGREEMENTS)).filter(|most| *most > 0),
            probes_per_minute: Some(self.probes_per_minute.unwrap_or(PROBES_PER_MINUTE))
                .filter(|most| *most > 0),
            share_percent: Some(self.share_percent.unwrap_or(SHARE_PERCENT)).filter(|share| *share < 100),
        }
    }

    /// The quotas, with those of `others` where these say nothing.
    pub(super) fn or(&self, others: &Self) -> Self {
        Self {
            node_hours: self.node_hours.or(others.node_hours),
            horizon_hours: self.horizon_hours.or(others.horizon_hours),
            agreements: self.agreements.or(others.agreements),
            probes_per_minute: self.probes_per_minute.or(others.probes_per_minute),
            share_percent: self.share_percent.or(others.share_percent),
        }
    }
}

/// The quotas of one party, or of each of a group, in place of those of all; a key that is not set counts as there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartyQuotas {
    pub(super) party: Parties,
    node_hours: Option<u32>,
    horizon_hours: Option<u32>,
    agreements: Option<u32>,
    probes_per_minute: Option<u32>,
    share_percent: Option<u32>,
}

/// One party, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected the name of a party, or a list of names")]
pub(super) enum Parties {
    One(String),
    Group(Vec<String>),
}

impl Parties {
    pub(super) fn names(&self) -> &[String] {
        match self {
            Self::One(party) => std::slice::from_ref(party),
            Self::Group(parties) => parties,
        }
    }
}

impl PartyQuotas {
    pub(super) fn quotas(&self) -> QuotasSection {
        QuotasSection {
            node_hours: self.node_hours,
            horizon_hours: self.horizon_hours,
            agreements: self.agreements,
            probes_per_minute: self.probes_per_minute,
            share_percent: self.share_percent,
        }
    }
}

impl Config {
    /// Checks the tables of single parties, each of which has one at most.
    pub(super) fn check_quotas_of_parties(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for (index, quotas) in self.quotas_of_parties.iter().enumerate() {
            if let Some(again) = quotas.party.names().iter().find(|party| !seen.insert(*party)) {
                return Err(format!(
                    "quota[{index}].party: expected each party once, found {again:?} again"
                ));
            }
            quotas.quotas().check(&format!("quota[{index}]"))?;
        }
        Ok(())
    }

    /// The quotas of single parties, by their names.
    pub(super) fn quotas_of_parties(&self) -> BTreeMap<String, planner::Quotas> {
        let each = self.quotas_of_parties.iter().flat_map(|agreement| {
            let quotas = agreement.quotas().or(&self.quotas).planner();
            let parties = agreement.party.names().iter();
            parties.map(move |party| (party.clone(), quotas))
        });
        each.collect()
    }
}
