//! Where an agreement may go.

use domain::agreement::Agreement;
use domain::resources::LOCAL;

use crate::context::View;

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

/// Whether a resource is this machine.
pub(crate) fn is_local(view: View<'_>, resource: &str) -> bool {
    let one_resource = view.schedules.named(resource);
    one_resource.is_some_and(|each| each.resource.kind == LOCAL)
}

/// The names of some nodes of a resource, for people.
pub(crate) fn names_of(view: View<'_>, resource: &str, nodes: &[u32]) -> String {
    let one_resource = view.schedules.named(resource);
    one_resource.map_or_else(String::new, |each| each.resource.names_of(nodes))
}
