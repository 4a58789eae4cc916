//! Finds a place: which resource takes a request, in pieces or whole, in which size, and which agreements move up
//! afterwards.

pub(super) mod admit;
pub(super) mod find;
pub(super) mod move_up;
pub(super) mod places;
pub(super) mod recent_moves;
pub(super) mod split;
pub(super) mod transaction;
