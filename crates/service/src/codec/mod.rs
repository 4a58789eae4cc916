//! The forms in which a request comes: each is read once, with the place of each value in the client's own form beside it, so that a
//! mistake is told at that place and in that form's words.

pub(super) mod acceptance;
pub(super) mod form;
pub(super) mod json;
pub(super) mod json_check;
pub(super) mod json_request;
pub(super) mod kept_offer;
pub(super) mod members;
pub(super) mod request;
