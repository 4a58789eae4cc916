//! The request of a form: sent, checked, and shown again with all that is wrong.

pub(in crate::portal) mod attributes;
pub(in crate::portal) mod estimate;
pub(in crate::portal) mod field_names;
pub(in crate::portal) mod fields;
pub(in crate::portal) mod filled_form;
pub(in crate::portal) mod form_reader;
mod hints;
pub(in crate::portal) mod offer_form;
pub(in crate::portal) mod problems;
pub(in crate::portal) mod refusal;
pub(in crate::portal) mod submitted_form;
pub(in crate::portal) mod upload;

use domain::clock::second_of;

use crate::http::Api;

/// The second that it is.
pub(in crate::portal) fn present_second(api: &Api) -> i64 {
    second_of(api.service.clock().micros()).seconds()
}
