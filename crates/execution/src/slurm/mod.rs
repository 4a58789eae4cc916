//! A cluster that Slurm runs, shared with batch jobs that know nothing of us.
//!
//! Every slot becomes a reservation of named nodes in good time: no later than the longest job that could reach into it,
//! counted back from its start, so that no batch job ever does ([`reservations`]). A job is submitted into its reservation when
//! the slot begins ([`jobs`]); a slot without a job hands its reservation to the user of its party.
//!
//! Slurm may be down, slow or forgetful at any time. So our reservations and jobs have the names of their runs ([`Run`](domain::agreement::Run)), and are
//! compared with the plan again and again. That nothing runs twice does not rest on Slurm's memory: a job first claims its folder
//! on the disk that all nodes share ([`jobs::shared_folder`]), and a second job goes away.

mod checks;
mod cluster;
mod commands;
pub(super) mod error;
mod executor;
mod foreign_use;
mod helper;
mod hostlist;
mod job_row;
pub(super) mod jobs;
mod nodes;
mod policy;
mod probe;
mod query;
mod recurring;
mod reservations;
pub(super) mod settings;
mod snapshot;

pub use error::Error;
pub use executor::SlurmExecutor;
pub use helper::Helper as Helping;
pub use hostlist::expand_hostlist as expand_nodes;
pub use policy::{SlurmPolicies, SlurmPolicy};
pub use settings::{Account, SlurmSettings, slurm_name_of_run};

#[cfg(test)]
mod tests;
