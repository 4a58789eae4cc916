//! Adaptive requests against plain oracles that look at every second of a small plan.

mod moldable;
mod plain;
mod plan;
mod preemptive;
mod pricing;
