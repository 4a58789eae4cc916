//! The resources, as they are planned on.

use domain::resources::ResourceRow;

use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// The resources, in the order in which ties are broken.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn all_resources(store: &Store) -> Result<Vec<ResourceRow>> {
    store.read(statements::RESOURCES, &[], ResourceRow::of).await
}

record! { ResourceRow: name, kind, capacity, position, rate, details, configured, retired "retired_us",
frozen "frozen_us" }
