//! Versions of templates, which the documents of agreements are filled into.

use uuid::Uuid;

use crate::engine::{Result, statements};
use crate::store::Store;

/// Keeps versions of templates, each with its id, so that an offer can be kept as the values that it fills in. The same
/// version again changes nothing.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn keep_template_versions(store: &Store, versions: &[(Uuid, &str)]) -> Result<()> {
    for (id, document) in versions {
        store
            .write(statements::KEEP_TEMPLATE, &[(*id).into(), (*document).into()])
            .await?;
    }
    Ok(())
}

/// A version of a template, as it is kept.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn template_version(store: &Store, id: Uuid) -> Result<Option<String>> {
    let values = [id.into()];
    store
        .read_one(statements::TEMPLATE_VERSION, &values, |row| row.text("document"))
        .await
}
