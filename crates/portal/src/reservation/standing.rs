//! How an agreement stands, and what can still become of it.

use service::AgreementView;

/// Where an agreement stands, in a word or two, and the class of its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// For people.
    pub(crate) words: &'static str,
    /// For the style sheet.
    pub(crate) class: &'static str,
}

impl Standing {
    /// The standing of an agreement.
    pub(crate) fn of(agreement: &AgreementView) -> Self {
        let outcome = agreement.outcome.as_deref();
        let (words, class) = match (
            agreement.state.as_str(),
            agreement.service_state.as_str(),
            outcome,
        ) {
            ("Observed", "NotReady", _) => ("Waiting", "waiting"),
            ("Observed", "Idle", _) if !agreement.pieces.is_empty() => ("Between two pieces", "running"),
            ("Observed", "Idle", _) => ("Reserved now", "running"),
            ("Observed", "Processing", _) if agreement.started.is_none() => ("Starting", "running"),
            ("Observed", "Processing", _) => ("Running", "running"),
            ("Observed", ..) => ("Ending", "running"),
            ("Pending" | "PendingAndTerminating", ..) => ("Being decided", "waiting"),
            ("ObservedAndTerminating", ..) => ("Being cancelled", "running"),
            ("Complete", _, Some("completed")) => ("Completed", "good"),
            ("Complete", _, Some("failed")) => ("Failed", "bad"),
            ("Complete", _, Some("killed")) => ("Stopped at the end of its time", "bad"),
            ("Complete", _, Some("lost")) => ("Lost", "bad"),
            ("Complete", _, Some("exceeded-memory")) => ("Stopped: too much memory", "bad"),
            ("Complete", _, Some("exceeded-processes")) => ("Stopped: too many processes", "bad"),
            ("Complete", _, Some("failed-staging")) => ("Stopped: files not moved", "bad"),
            ("Complete", _, Some("exceeded-files")) => ("Stopped: too much written", "bad"),
            ("Complete", ..) if agreement.superseded_by.is_some() => ("Changed", "over"),
            ("Complete", ..) => ("Over", "over"),
            ("Terminated", ..) => ("Cancelled", "over"),
            ("Rejected", ..) => ("Refused", "bad"),
            _ => ("Unknown", "over"),
        };
        Self { words, class }
    }
}

/// Whether an agreement will not change any more.
pub(crate) fn is_final(agreement: &AgreementView) -> bool {
    matches!(agreement.state.as_str(), "Complete" | "Terminated" | "Rejected")
}

/// Whether all of an agreement can still change: its slot has not begun.
pub(crate) fn can_change_wholly(agreement: &AgreementView) -> bool {
    agreement.state == "Observed" && agreement.service_state == "NotReady"
}
