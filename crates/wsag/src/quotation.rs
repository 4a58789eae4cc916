//! The terms of a counter offer: `bsp:Quotation`, a foreign element in the context of a negotiation offer.

use crate::placement::Piece;
use crate::scheduling::{Budget, write_budget};
use crate::xml::datatypes::write_double;
use crate::xml::fragment::Fragment;
use crate::xml::time::DateTime;
use crate::xml::writer::Xml;

/// `bsp:Quotation`: where and when, for how much, and for how long it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Quotation {
    /// In which way it differs from the request: `Exact`, `Earlier`, `Later`, `Fewer`, `More`, `Shorter` or `InPieces`.
    pub kind: &'static str,
    /// Planned start.
    pub start: DateTime,
    /// Planned end.
    pub end: DateTime,
    /// Number of nodes.
    pub nodes: u32,
    /// The pieces in which its work would be done, in order of time; none where it is done in one.
    pub pieces: Vec<Piece>,
    /// φ: how far it lies from the request, in durations or sizes of the request.
    pub deviation: f64,
    /// Probability that it completes in time, where it is known.
    pub confidence: Option<f64>,
    /// Its price, where it has one.
    pub price: Option<Budget>,
    /// By how much that is more than the agreement that it replaces costs; below zero where it is less.
    pub difference: Option<Budget>,
    /// The fee for the change of an agreement.
    pub fee: Option<Budget>,
    /// Until when its nodes are kept; absent where they are not.
    pub held_until: Option<DateTime>,
}

impl Quotation {
    /// As a fragment, for [`crate::negotiations::NegotiationOfferContext::extensions`].
    pub fn to_fragment(&self) -> Fragment {
        let mut xml = Xml::fragment("bsp:Quotation", &["bsp"]);
        xml.element("bsp:Kind", self.kind);
        xml.element("bsp:PlannedStart", self.start);
        xml.element("bsp:PlannedEnd", self.end);
        xml.element("bsp:Nodes", self.nodes);
        for piece in &self.pieces {
            piece.write(&mut xml);
        }
        xml.element("bsp:Deviation", write_double(self.deviation));
        xml.optional_element("bsp:Confidence", self.confidence.map(write_double).as_deref());
        write_budget(&mut xml, "bsp:Price", self.price.as_ref());
        write_budget(&mut xml, "bsp:PriceDifference", self.difference.as_ref());
        write_budget(&mut xml, "bsp:Fee", self.fee.as_ref());
        xml.optional_element("bsp:HeldUntil", self.held_until);
        xml.into_fragment()
    }
}
