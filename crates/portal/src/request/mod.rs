//! The request of a form: sent, checked, and shown again with all that is wrong.

pub(crate) mod attributes;
pub(crate) mod estimate;
pub(crate) mod field_names;
pub(crate) mod fields;
pub(crate) mod filled_form;
pub(crate) mod form_reader;
mod hints;
pub(crate) mod offer_form;
pub(crate) mod problems;
pub(crate) mod refusal;
pub(crate) mod submitted_form;
pub(crate) mod upload;

use domain::clock::second_of;

use api::Api;

/// The second that it is.
pub(crate) fn present_second(api: &Api) -> i64 {
    second_of(api.service.clock().micros()).seconds()
}
