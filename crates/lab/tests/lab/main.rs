//! The laboratory's tests: one binary, a module a topic.

mod beside;
mod experiments;
mod golden;
mod heterogeneous_work_loss;
mod predictions;
mod reference;
mod replay;
mod support;
mod verbs;
