//! The laboratory: the papers' experiments, run again on the same scheduler core as the service.
//!
//! The `advisor` crate has the workloads and plays requests on the core; each experiment compares means over its windows. Every
//! run of a window sees the same draws, and the same seed gives the same bytes.
#![expect(
    clippy::cast_precision_loss,
    reason = "statistics: node-seconds and counts far below 2⁵³ become numbers to be averaged and drawn"
)]

pub mod beside;
pub mod experiment;
pub mod figure;
mod flow;
pub mod heterogeneous;
mod optimum;
pub mod report;
pub mod request_list;
pub mod run;

/// Seconds without their fraction.
#[expect(
    clippy::cast_possible_truncation,
    reason = "seconds of a few years, far below 2⁵³"
)]
fn whole_seconds(seconds: f64) -> scheduler::Seconds {
    seconds as scheduler::Seconds
}
