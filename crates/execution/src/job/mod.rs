//! A job on this machine: its folder with durable records, the process that supervises it and its limits.

pub mod control_group;
pub(super) mod excess;
pub mod folder;
mod hidden_files;
pub mod isolation;
mod isolation_record;
pub mod launch;
pub mod limits;
mod output_pipes;
pub(super) mod process;
mod process_stat;
mod refused_calls;
pub mod shortage;
pub(super) mod spec;
pub mod staging_record;
mod standard_error;
pub(super) mod start_time;
pub mod supervisor;
