//! The terms of a counter offer: `bsp:Quotation`, a foreign element in the context of a negotiation offer.

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::placement::Piece;
use crate::scheduling::ShapeChanges;
use crate::xml::datatypes::{
    parse_non_negative_i64, parse_not_negative, parse_positive_integer, parse_share,
};
use crate::xml::{DateTime, Fragment, WrittenValue, element, service_values};

service_values! {
    /// In which way a counter offer differs from the request.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub enum OfferKind {
        /// In none.
        Exact = "Exact",
        /// It lies before the window.
        Earlier = "Earlier",
        /// It lies after the window.
        Later = "Later",
        /// It has fewer nodes.
        Fewer = "Fewer",
        /// It has more nodes.
        More = "More",
        /// It is shorter.
        Shorter = "Shorter",
        /// Its work is done in pieces.
        InPieces = "InPieces",
    }
}

element! {
    /// `bsp:Quotation`: where and when, for how much, and for how long it is kept.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Quotation {
        /// In which way it differs from the request.
        pub kind: OfferKind = "bsp:Kind",
        /// Planned start.
        pub start: DateTime = "bsp:PlannedStart",
        /// Planned end.
        pub end: DateTime = "bsp:PlannedEnd",
        /// Number of nodes.
        pub nodes: u32 = "bsp:Nodes" by parse_positive_integer,
        /// The pieces in which its work would be done, in order of time; none where it is done in one.
        pub pieces: Vec<Piece> = "bsp:Piece",
        /// What may still change of its shape while it waits; none where it has one shape only.
        pub may_change: Option<ShapeChanges> = "bsp:MayChange",
        /// φ: how far it lies from the request, in durations or sizes of the request.
        pub deviation: f64 = "bsp:Deviation" by parse_not_negative,
        /// Probability that it completes in time, where it is known.
        pub confidence: Option<f64> = "bsp:Confidence" by parse_share,
        /// Its price, where it has one.
        pub price: Option<Budget> = "bsp:Price",
        /// How much of it is taken off because its work may be cut.
        pub preemptive_discount: Option<Budget> = "bsp:PreemptiveDiscount",
        /// How much of it is taken off for the number of shapes that the request allows.
        pub shapes_discount: Option<Budget> = "bsp:ShapesDiscount",
        /// By how much that is more than the agreement that it replaces costs; below zero where it is less.
        pub difference: Option<Budget> = "bsp:PriceDifference",
        /// The fee for the change of an agreement.
        pub fee: Option<Budget> = "bsp:Fee",
        /// Why that is as much, in words.
        pub fee_reason: Option<String> = "bsp:FeeReason",
        /// The energy of its nodes, where their power is known.
        pub energy: Option<Energy> = "bsp:Energy",
        /// The other domain that would carry it out, where one would, by its name here.
        pub carried_out_by: Option<String> = "bsp:CarriedOutBy",
        /// The markup on the price of that domain.
        pub added: Option<Budget> = "bsp:Added",
        /// Until when its nodes are kept; absent where they are not.
        pub held_until: Option<DateTime> = "bsp:HeldUntil",
    }
}

element! {
    /// `bsp:Energy`: the energy that nodes take.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Energy {
        /// Watt-hours.
        pub watt_hours: i64 = "bsp:WattHours" by parse_non_negative_i64,
        /// Its cost for the provider.
        pub cost: Budget = "bsp:Cost",
        /// Grams of carbon dioxide.
        pub carbon_grams: i64 = "bsp:CarbonGrams" by parse_non_negative_i64,
    }
}

impl Quotation {
    /// As a fragment, for [`crate::negotiations::NegotiationOfferContext::extensions`].
    pub fn to_fragment(&self) -> Fragment {
        self.fragment("bsp:Quotation", &["bsp"])
    }
}
