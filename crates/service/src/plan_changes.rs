//! The changes of the plan without a party's request, as operators see them.

use domain::agreement::{EventKind, NoteKind};
use store::trail_lines::{self, TrailLine};
use uuid::Uuid;

use crate::views::money_and_time::instant_as_date_time;
use crate::{Result, Service};

/// The last lines of the audit trail that are looked at for changes of the plan.
const LINES: u32 = 1_000;

/// Changes that are told.
const CHANGES_MAX: usize = 20;

/// Moves of one agreement that are told: those of many at once have a line each as they are settled, and would hide all else.
const MOVES_MAX: usize = 10;

/// The events that change a place in the plan and that no party asks for.
const CHANGES: [EventKind; 4] = [
    EventKind::Moved,
    EventKind::Restarted,
    EventKind::Broken,
    EventKind::Overrun,
];

/// The last changes of the plan without a party's request, the newest first, as far as the last lines of the audit trail have
/// them. For operators.
///
/// # Errors
/// [`Error::Unavailable`](super::Error::Unavailable).
pub async fn list_plan_changes(service: &Service) -> Result<Vec<PlanChangeView>> {
    let end = trail_lines::last_trail_line(&service.store, service.clock.micros())
        .await?
        .number;
    let lines =
        trail_lines::trail_lines_after(&service.store, (end - i64::from(LINES)).max(0), LINES).await?;
    Ok(plan_changes_of_lines(lines))
}

/// The last changes of the plan in lines of the audit trail, the newest first.
fn plan_changes_of_lines(lines: Vec<TrailLine>) -> Vec<PlanChangeView> {
    let mut moves = 0;
    let is_told = |line: &TrailLine| {
        if line.kind == EventKind::Moved.word() {
            moves += 1;
            return moves <= MOVES_MAX;
        }
        line.kind == NoteKind::MovesRecorded.word() || CHANGES.iter().any(|change| change.word() == line.kind)
    };
    let changes = lines.into_iter().rev().filter(is_told);
    changes.take(CHANGES_MAX).map(PlanChangeView::of).collect()
}

/// A change of the plan without a party's request, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanChangeView {
    /// When it was made.
    pub at: String,
    /// The agreement; of moves of many, the one that caused them. None where none did.
    pub agreement: Option<Uuid>,
    /// Its party, where the trail names it.
    pub party: Option<String>,
    /// The kind of the line, in a word.
    pub kind: String,
    /// The change and its reason, in words.
    pub why: String,
}

impl PlanChangeView {
    pub(super) fn of(line: TrailLine) -> Self {
        Self {
            at: instant_as_date_time(line.at),
            agreement: Some(line.subject).filter(|subject| !subject.is_nil()),
            party: line.party,
            kind: line.kind,
            why: line.detail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: i64, kind: &str, subject: Uuid) -> TrailLine {
        TrailLine {
            number,
            hash: String::new(),
            at: number,
            kind: kind.to_owned(),
            detail: String::new(),
            subject,
            negotiation: None,
            party: None,
        }
    }

    #[test]
    fn settled_moves_hide_no_other_change() {
        let cause = Uuid::now_v7();
        let rare = [
            ("broken", cause),
            ("moves-recorded", cause),
            ("moves-recorded", Uuid::nil()),
        ];
        let mut lines: Vec<_> = (0..)
            .zip(rare)
            .map(|(number, (kind, of))| line(number, kind, of))
            .collect();
        lines.extend((3..800).map(|number| line(number, "moved", Uuid::now_v7())));
        lines.push(line(800, "signed-in", Uuid::now_v7()));
        let changes = plan_changes_of_lines(lines);
        let told: Vec<_> = changes
            .iter()
            .map(|change| (change.kind.as_str(), change.agreement))
            .collect();
        assert_eq!(told.len(), MOVES_MAX + 3);
        assert!(
            told[..MOVES_MAX].iter().all(|(kind, _)| *kind == "moved"),
            "{told:?}"
        );
        let expected = [
            ("moves-recorded", None),
            ("moves-recorded", Some(cause)),
            ("broken", Some(cause)),
        ];
        assert_eq!(told[MOVES_MAX..], expected);
    }
}
