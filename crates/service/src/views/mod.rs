//! The views that several use cases answer: flat values that JSON, the pages and the command line share. The XML
//! documents are written from them.

pub(super) mod accepted;
pub(super) mod agreement;
pub(super) mod agreement_document;
pub(super) mod answers;
pub(super) mod chart_slot;
pub(super) mod conditions;
pub(super) mod context_and_terms;
pub(super) mod explanation;
pub(super) mod guarantees;
pub(super) mod lost_offer;
pub(super) mod money_and_time;
pub(super) mod offer;
pub(super) mod past_use;
pub(super) mod place_changes;
pub(super) mod quotation;
pub(super) mod refusal;
pub(super) mod rejection;
pub(super) mod resource_changes;
pub(super) mod resources;
pub mod schemas;
pub(super) mod shape_changes;
pub(super) mod worded_offer;
