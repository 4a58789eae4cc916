//! The whole database as text, of one state and for either engine: what a backup has and what it is restored from.
//!
//! A line is a JSON value. `{"table": …, "columns": […]}` says whose rows follow; a row is a list with a value for each column. The text
//! is made and taken apart by the engines, so that it is as fast as they are, and a database of one engine can be restored to the other.
//!
//! Sessions are left out: people sign in again. The steps of the schema are left out, since a restore makes the schema
//! of that time anew and then brings it up to date.

mod load;
mod save;
mod schema;

pub use load::{LoadCounts, check_empty_before_load, load_database};
pub use save::{CopyCounts, open_to_save, save_database};

use std::io;

use super::engine::Error;
use super::engine::migrations;
use super::verify::Finding;

/// Told how many rows or files have been copied so far.
pub type Progress<'p> = &'p mut (dyn FnMut(u64) + Send);

/// Why a database was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The database refused, or is not available.
    #[error(transparent)]
    Store(#[from] Error),
    /// The text cannot be written or read.
    #[error(transparent)]
    Text(#[from] io::Error),
    /// The text is not one that can be restored.
    #[error("the copy of the database is damaged: {0}")]
    Damaged(String),
    /// The database to restore to has content.
    #[error("the database is not empty: it has a table {0}; a backup is restored to an empty one only")]
    NotEmpty(String),
    /// The checks of the stored state found something.
    #[error("the stored state is inconsistent: {}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Inconsistent(Vec<Finding>),
}

impl From<sqlx::Error> for CopyError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// The newest version of the schema that this program knows.
pub const SCHEMA_VERSION: usize = migrations::NEWEST;

/// The sum of the schema of a version, the same for both engines; none where this program does not know the version.
pub fn schema_sum(version: usize) -> Option<String> {
    migrations::sum_of_migration_steps(version)
}
