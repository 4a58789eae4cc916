//! What a request would get on the plan that is stored.

use domain::clock::Clock;
use planner::{Request, Settings, TrialResult, try_place_for_request};
use store::Store;

use crate::error::StartError;
use crate::stored_plan::read_plan;

/// Decides about a request on the stored plan as if it were made now. Clusters are taken to let it in.
///
/// # Errors
/// Those of reading the plan.
pub async fn try_proposal(
    settings: &Settings,
    store: &Store,
    clock: &Clock,
    request: &Request,
) -> Result<TrialResult, StartError> {
    let mut plan = read_plan(settings, store, clock, None).await?;
    Ok(try_place_for_request(
        settings,
        &mut plan,
        clock.micros(),
        request,
    ))
}
