//! Slots on pages: where they lead, what they are called, and how they are drawn.

use std::fmt::Write;

use uuid::Uuid;

/// The page of the agreement that has a slot, or of the negotiation whose offers are held.
pub(super) fn address_of_slot(id: Uuid, is_held: bool) -> String {
    let pages = if is_held { "negotiations" } else { "agreements" };
    format!("/portal/{pages}/{id}")
}

/// Where a slot stands, in a word.
pub(super) fn state_of_slot(is_held: bool, has_begun: bool) -> &'static str {
    match (is_held, has_begun) {
        (true, _) => "held",
        (false, true) => "running",
        (false, false) => "waiting",
    }
}

/// Adds a box to an outline.
pub(super) fn add_box(outline: &mut String, (x, y): (f64, f64), (width, height): (f64, f64)) {
    // Writing to a text does not fail.
    let _ = write!(outline, "M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
}

/// A number that is drawn.
pub(super) fn count(many: usize) -> f64 {
    f64::from(u32::try_from(many).unwrap_or(u32::MAX))
}
