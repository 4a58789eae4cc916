//! Finds a place: which resource takes a request, in pieces or whole, in which size; and knows the slots by their numbers.

pub(super) mod admit;
pub(super) mod anew;
pub(super) mod choice;
pub(super) mod eligible_resources;
pub(super) mod find;
pub(super) mod grow;
pub(super) mod peer_places;
pub(super) mod pieces;
pub(super) mod places;
pub(super) mod refuse;
pub(super) mod reserved_starts;
pub(super) mod reshape;
pub(super) mod shape;
pub(super) mod trial;
