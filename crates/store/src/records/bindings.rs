//! Which nodes belong to which agreement, from when its slot begins until it has used it.

use domain::resources::Binding;
use scheduler::Time;

use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// The bindings of agreements that are not final, and the bindings that last beyond `now` (of agreements that ended within
/// this second), by resource, node and start.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn live_bindings(store: &Store, now: Time) -> Result<Vec<Binding>> {
    let found = store
        .read(statements::LIVE_BINDINGS, &[now.into()], Binding::of)
        .await?;
    Ok(sort_stored_bindings(found))
}

/// By resource, node and start.
pub(crate) fn sort_stored_bindings(mut bindings: Vec<Binding>) -> Vec<Binding> {
    let order = |one: &Binding, other: &Binding| {
        let key = |binding: &Binding| (binding.node, binding.interval.start);
        one.resource.cmp(&other.resource).then(key(one).cmp(&key(other)))
    };
    bindings.sort_unstable_by(order);
    bindings
}

record! { Binding: resource, node, interval "start_s" "end_s", agreement }
