//! The evaluation: the papers' experiments, run again on the same scheduler core as the service.
//!
//! A workload (a trace of the Parallel Workloads Archive, or a generated one) is cut into windows; each experiment turns
//! the jobs of a window into requests with random draws that depend on the seed, the window and the job alone, plays them
//! on the core, and compares means over windows. So every run of a window sees the same draws, and the same seed gives the
//! same bytes. There is no second scheduler here: this crate only submits requests and adds up what became of them.
#![expect(
    clippy::cast_precision_loss,
    reason = "statistics: node-seconds and counts far below 2⁵³ become numbers to be averaged and drawn"
)]

pub mod advisor;
pub mod beside;
pub mod experiment;
pub mod figure;
pub mod flow;
pub mod lublin;
pub mod optimum;
pub mod parallel;
pub mod random;
pub mod replay;
pub mod report;
pub mod request_list;
pub mod run;
pub mod statistics;
pub mod swf;
pub mod workload;
