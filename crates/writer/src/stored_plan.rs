//! Reads the plan from the store.

use std::collections::HashMap;
use std::future::Future;

use domain::clock::{Clock, MICROS_PER_SECOND, Micros};
use domain::resources::Resource;
use planner::{Inconsistent, Settings, State, UnsettledMoves};
use store::open_state::{self, OpenState};
use store::{Store, agreements, keys, nodes, party_events};
use tokio_util::task::AbortOnDropHandle;

use crate::error::StartError;

/// For how long it is looked, when the plan is read, whether anything is left of work that was lost: longer than a service is
/// ever down.
const LOST_LOOKED_AT: Micros = 30 * 86_400 * MICROS_PER_SECOND;
/// Of how many at most: each costs a look into its folder.
const RECALLED_MAX: u32 = 10_000;

/// Reads something by a task of its own, which ends with the value.
fn read_stored_beside<T: Send + 'static>(
    read: impl Future<Output = Result<T, store::Error>> + Send + 'static,
) -> impl Future<Output = Result<T, store::Error>> {
    let task = AbortOnDropHandle::new(task::spawn(read));
    async move {
        task.await
            .unwrap_or_else(|why| Err(store::Error::Corrupt(format!("a read has failed: {why}"))))
    }
}

/// The plan as it is stored, or as it was read before under the same lease.
pub(super) async fn read_plan(
    settings: &Settings,
    store: &Store,
    clock: &Clock,
    read: Option<OpenState>,
) -> Result<State, StartError> {
    // At a takeover all clients wait for the plan: announced starts are read on another thread meanwhile.
    let announced = clock.micros() - settings.announce * MICROS_PER_SECOND;
    let this_store = store.clone();
    let starts =
        read_stored_beside(
            async move { party_events::starts_announced_to_parties(&this_store, announced).await },
        );
    let open = match read {
        Some(open) => open,
        None => Box::pin(open_state::open_state(store, clock.now())).await?,
    };
    let now = open.now;
    let mut live = open.agreements;
    let resources = open.resources.into_iter().map(Resource::of_row);
    let mut resources = resources
        .collect::<Result<Vec<_>, _>>()
        .map_err(store::Error::from)?;
    // Ties are broken in the order of the configuration; the others come behind, as they are stored.
    let order: HashMap<&str, usize> = settings
        .resources
        .iter()
        .map(|resource| resource.name.as_str())
        .zip(0..)
        .collect();
    resources.sort_by_key(|resource| order.get(resource.name.as_str()).copied().unwrap_or(usize::MAX));
    let unsettled = UnsettledMoves::of(open.moves, open.trail_number, &mut live);
    let mut plan = State::rebuild(settings, &resources, live, open.bindings, now)?;
    plan.recall_moves(unsettled);
    plan.reopen(open.negotiations, now)?;
    plan.recall_nodes(nodes::node_states(store).await?, now);
    let lost = agreements::lost_agreements(store, clock.micros() - LOST_LOOKED_AT, RECALLED_MAX).await?;
    plan.recall_lost(lost);
    plan.recall_spent(keys::spent_with_keys(store).await?);
    plan.recall_announced(starts.await?);
    plan.find_improvable();
    match plan.why_impossible() {
        None => Ok(plan),
        Some(what) => Err(Inconsistent(what.to_owned()).into()),
    }
}
