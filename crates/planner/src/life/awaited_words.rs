//! Whether it is waited for a word about a slot that has begun: of its cluster, or of a peer.

use domain::agreement::{Agreement, ServiceState};
use domain::resources::CLUSTER;

use crate::context::View;

/// Whether the nodes of a reservation may be its party's although it has not begun here: its slot has begun, and its
/// cluster has not told yet what it holds.
pub(crate) fn awaits_word_of_cluster(view: View<'_>, agreement: &Agreement) -> bool {
    let (now, slot) = (view.present_second(), agreement.slot());
    let resource = view.schedules.named(&agreement.resource);
    agreement.job.is_none()
        && agreement.started.is_none()
        && agreement.service != ServiceState::Completed
        && slot.start < now
        && now < slot.end
        && resource.is_some_and(|resource_plan| {
            resource_plan.resource.kind == CLUSTER && !resource_plan.has_told_kept
        })
}

/// Whether the nodes of a reservation may be its party's, or may have been, and its peer has not told that yet.
pub(crate) fn awaits_word_of_peer(view: View<'_>, agreement: &Agreement) -> bool {
    let until = view.schedules.peer_tells_until(agreement);
    until.is_some_and(|until| view.present_second() < until)
}
