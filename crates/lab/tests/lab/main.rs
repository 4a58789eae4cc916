//! The laboratory's tests: one binary, a module a topic.

mod adaptive_plan;
mod beside;
mod experiments;
mod golden;
mod heterogeneous_work_loss;
mod predictions;
mod reference;
mod reference_002;
mod replay;
mod support;
mod verbs;
