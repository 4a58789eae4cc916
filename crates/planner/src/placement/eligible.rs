//! Where an agreement may go.

use domain::agreement::Agreement;

use crate::context::View;
use crate::words::is_local;

/// Whether an agreement may go to a resource, or have another place there: the resource is in service and meets its filters.
/// Work that was lost is run again where its job of before can be stopped.
pub(crate) fn may_go_to_resource(view: View<'_>, at: usize, agreement: &Agreement) -> bool {
    let resource = view.schedules.get(at);
    resource.is_some_and(|there| there.may_have(agreement))
        && (agreement.restarts() == 0 || tells_old_job_is_gone(view, at, agreement))
}

/// Whether a resource can tell that nothing is left of a job on that of an agreement: it is the same, or both are this
/// machine.
fn tells_old_job_is_gone(view: View<'_>, at: usize, agreement: &Agreement) -> bool {
    let there = view
        .schedules
        .get(at)
        .map(|resource| resource.resource.name.as_str());
    there.is_some_and(|there| {
        there == agreement.resource || is_local(view, there) && is_local(view, &agreement.resource)
    })
}
