//! The life of an agreement: pending, its job's reports, longer slots, new attempts, its end and its bill.

pub(super) mod at_peer;
pub(super) mod billing;
pub(super) mod deadlines;
pub(super) mod fees;
pub(super) mod late_starts;
pub(super) mod life;
pub(super) mod lost_work;
pub(super) mod overrun;
pub(super) mod overruns;
pub(super) mod pieces;
pub(super) mod place_at_peer;
pub(super) mod reports;
pub(super) mod retry;
pub(super) mod start_notices;
