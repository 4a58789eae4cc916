//! Files of jobs: the inputs that parties upload, and the folders that jobs leave.

pub mod inputs;
pub mod outputs;
pub mod retention;
pub(super) mod tree;
