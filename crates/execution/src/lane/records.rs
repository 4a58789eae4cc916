//! Jobs on a cluster that a process has no records of.

use domain::agreement::{Agreement, AgreementState};

use super::Lane;

/// Whether another process may have the records of an agreement's job that was not started here. Such a job may still run, and is left
/// alone until the records are there, or its agreement is terminated.
pub(super) fn lacks_records(lane: &Lane, agreement: &Agreement) -> bool {
    let has_begun = agreement.slot_started().is_some() && !agreement.is_being_brought();
    let goes_on = agreement.state == AgreementState::Observed;
    let has_others = lane.context.hosts.is_one_of_several();
    lane.shared.is_cluster() && has_others && has_begun && goes_on
}
