//! The terms of a counter offer: `bsp:Quotation`, a foreign element in the context of a negotiation offer.

use crate::placement::Piece;
use crate::scheduling::Budget;
use crate::xml::{DateTime, Fragment, Written, written};

written! {
    /// `bsp:Quotation`: where and when, for how much, and for how long it is kept.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Quotation {
        /// In which way it differs from the request: `Exact`, `Earlier`, `Later`, `Fewer`, `More`, `Shorter` or `InPieces`.
        pub kind: &'static str = "bsp:Kind",
        /// Planned start.
        pub start: DateTime = "bsp:PlannedStart",
        /// Planned end.
        pub end: DateTime = "bsp:PlannedEnd",
        /// Number of nodes.
        pub nodes: u32 = "bsp:Nodes",
        /// The pieces in which its work would be done, in order of time; none where it is done in one.
        pub pieces: Vec<Piece> = "bsp:Piece",
        /// φ: how far it lies from the request, in durations or sizes of the request.
        pub deviation: f64 = "bsp:Deviation",
        /// Probability that it completes in time, where it is known.
        pub confidence: Option<f64> = "bsp:Confidence",
        /// Its price, where it has one.
        pub price: Option<Budget> = "bsp:Price",
        /// By how much that is more than the agreement that it replaces costs; below zero where it is less.
        pub difference: Option<Budget> = "bsp:PriceDifference",
        /// The fee for the change of an agreement.
        pub fee: Option<Budget> = "bsp:Fee",
        /// The energy of its nodes, where their power is known.
        pub energy: Option<Energy> = "bsp:Energy",
        /// Until when its nodes are kept; absent where they are not.
        pub held_until: Option<DateTime> = "bsp:HeldUntil",
    }
}

written! {
    /// `bsp:Energy`: the energy that nodes take.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Energy {
        /// Watt-hours.
        pub watt_hours: i64 = "bsp:WattHours",
        /// Its cost for the provider.
        pub cost: Budget = "bsp:Cost",
        /// Grams of carbon dioxide.
        pub carbon_grams: i64 = "bsp:CarbonGrams",
    }
}

impl Quotation {
    /// As a fragment, for [`crate::negotiations::NegotiationOfferContext::extensions`].
    pub fn to_fragment(&self) -> Fragment {
        self.fragment("bsp:Quotation", &["bsp"])
    }
}
