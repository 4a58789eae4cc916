//! The views of templates and agreements: flat values that JSON, the pages and the command line share. The XML
//! documents are written from them.

pub(super) mod accounts;
pub(super) mod agreement;
pub(super) mod availability;
pub(super) mod calendar;
pub(super) mod chart_slot;
pub(super) mod conditions;
pub(super) mod discovery;
pub(super) mod documents;
pub(super) mod explanation;
pub(super) mod gantt;
pub(super) mod maintenance;
pub(super) mod nodes;
pub(super) mod offer;
pub(super) mod operations;
pub(super) mod past_use;
pub(super) mod peers;
pub(super) mod policies;
pub(super) mod refusal;
pub(super) mod rejection;
pub(super) mod reliability;
pub(super) mod resources;
pub(super) mod scheduling;
pub(crate) mod schemas;
pub(super) mod staging;
pub(super) mod terms;
pub(super) mod trail;
pub(super) mod usage;
pub(super) mod values;
