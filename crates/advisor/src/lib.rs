//! Which policy of a provider earns, uses or serves most: workloads, and the results of policies on them.
//!
//! A workload (a trace of the Parallel Workloads Archive, or a generated one) is cut into windows. The jobs of a window become
//! requests with random draws that depend on the seed, the window and the job alone, and are played on the scheduler core. So
//! every policy sees the same requests, and the same seed gives the same bytes. There is no second scheduler here: this crate
//! only submits requests and adds up the decisions. The service has it for `bespeak advise`; the laboratory builds its
//! experiments on it.
#![expect(
    clippy::cast_precision_loss,
    reason = "statistics: node-seconds and counts far below 2⁵³ become numbers to be averaged and drawn"
)]

pub mod adaptive;
pub mod adaptive_plan;
pub mod advice;
pub mod advise_options;
mod answer;
pub mod fault;
pub mod flexible;
pub mod jobs_source;
pub mod lublin;
pub mod objective_advice;
pub mod output_line;
pub mod policy;
pub mod progress;
pub mod random;
pub mod replay;
pub mod replay_prices;
pub mod shapes_advice;
pub mod statistics;
pub mod swf;
pub mod table;
pub mod workers;
pub mod workload;
