//! `[negotiation]` of the configuration: how negotiations are bounded.

use scheduler::Fraction;

use super::ranges::table;

table! {
    "negotiation"
    /// How negotiations are bounded.
    pub(super) struct Negotiating {
        /// Hours that a negotiation lasts where its initiator does not say, and at most.
        lasts_hours: u32 = 24, 1..=8_760;
        /// Negotiations that one party may have going on at a time.
        open_max: u32 = 100, 1..=100_000;
        /// Offers of one negotiation.
        offers_max: u32 = 1_000, 1..=100_000;
        /// Seconds for which a counter offer stands and its nodes are held.
        hold_seconds: u32 = 300, 1..=86_400;
        /// The number of answers with held offers that one party may have at a time.
        holds_max: u32 = 5, 1..=1_000;
        /// Moves that would let others in and that the provider proposes at a time; 0 for none.
        proposals_max: u32 = 0, 0..=1_000;
        /// The discount for such a move, in percent.
        proposal_discount_percent: u32 = 10, 0..=100;
    }
}

impl Negotiating {
    pub(super) fn proposals(&self) -> planner::Proposals {
        planner::Proposals {
            moves_max: self.proposals_max as usize,
            discount: Fraction::percent(self.proposal_discount_percent),
        }
    }

    pub(super) fn planner(&self) -> planner::NegotiationLimits {
        planner::NegotiationLimits {
            lasts: i64::from(self.lasts_hours) * 3_600,
            open_max: self.open_max as usize,
            offers_max: self.offers_max as usize,
            hold: i64::from(self.hold_seconds),
            holds_max: self.holds_max as usize,
        }
    }
}
