//! The archive: the timelines, the bound nodes and the documents of agreements that ended long ago, in tables that no decision
//! reads. The API shows them and `verify` checks them like all others.

use domain::clock::Micros;
use uuid::Uuid;

use crate::engine::bulk::{self, Bulk};
use crate::engine::{Error, Result, Value, statements};
use crate::store::Store;

/// Agreements that are archived in one transaction, which keeps others from writing meanwhile: each may have bound a thousand nodes.
const TOGETHER: usize = 10;

/// Rows are copied before they are deleted. An agreement with a document that is still in `agreement_documents` has not been
/// archived.
static STEPS: [&Bulk; 6] = [
    &bulk::ARCHIVE_EVENTS,
    &bulk::DELETE_EVENTS,
    &bulk::ARCHIVE_BINDINGS,
    &bulk::DELETE_BINDINGS,
    &bulk::ARCHIVE_DOCUMENTS,
    &bulk::DELETE_DOCUMENTS,
];

/// Archives at most `limit` agreements that were over `before` an instant, in the order in which they were made; answers of how
/// many. Reads only agreements that are not archived yet. Each transaction is short, so that the planner can store meanwhile. One
/// that cannot be archived is logged and left where it is.
///
/// # Errors
/// [`Error::Unavailable`].
pub async fn archive_agreements(store: &Store, before: Micros, limit: u32) -> Result<usize> {
    // A final agreement stays final, so that this can be read before the transaction.
    let values = [before.into(), limit.into()];
    let over = store.read(statements::LONG_OVER, &values, |row| row.id("agreement"));
    let mut archived = 0;
    for together in over.await?.chunks(TOGETHER) {
        match archive_agreements_together(store, together).await {
            Err(why) if is_error_of_one_agreement(&why) => {}
            done => {
                archived += done?;
                continue;
            }
        }
        for one in together {
            match archive_agreements_together(store, &[*one]).await {
                Err(why) if is_error_of_one_agreement(&why) => {
                    tracing::error!(agreement = %one, error = %why, "an agreement cannot be archived and stays");
                }
                done => archived += done?,
            }
        }
    }
    Ok(archived)
}

/// Archives agreements in one transaction; answers of how many. Another process may have been faster.
async fn archive_agreements_together(store: &Store, agreements: &[Uuid]) -> Result<usize> {
    let rows: Vec<Value<'_>> = agreements.iter().map(|id| (*id).into()).collect();
    let mut transaction = store.begin().await?;
    let mut deleted = 0;
    for step in STEPS {
        deleted = step.execute(&mut transaction, &rows).await?;
    }
    transaction.commit().await?;
    // The last step deletes a document of each.
    Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
}

/// Whether the stored rows of one agreement are the reason; other agreements can be archived then.
fn is_error_of_one_agreement(why: &Error) -> bool {
    matches!(why, Error::Conflict(_) | Error::Corrupt(_) | Error::Database(_))
}
