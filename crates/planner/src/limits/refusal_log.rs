//! Refused requests are noted in the audit trail, as many of each party in a minute as a person would read.

use domain::agreement::{Note, NoteKind};
use domain::change::Change;
use domain::clock::{Micros, second_of};
use uuid::Uuid;

use crate::limits::Limits;
use crate::refusal::Refusal;

/// Refusals of one party in a minute that are noted. Requests without end must not fill the disk, and every note costs a
/// transaction.
const NOTED_MAX: u32 = 60;

/// Notes that a party's request was refused, and in the refusal that it is noted. Returns what is to be stored, if it is noted.
pub(crate) fn log_refusal(
    limits: &mut Limits,
    now: Micros,
    (party, subject): (String, Uuid),
    refusal: &mut Refusal,
) -> Option<Change> {
    let minute = second_of(now).seconds().div_euclid(60);
    let count = limits.count_refusal(&party, minute);
    let more = match count.cmp(&NOTED_MAX) {
        std::cmp::Ordering::Less => "",
        std::cmp::Ordering::Equal => "; further ones of this party in this minute are not noted",
        std::cmp::Ordering::Greater => return None,
    };
    let detail = format!("{refusal}{more}");
    refusal.noted = Some(subject);
    Some(Change::Note(Note {
        party: Some(party),
        ..Note::new(now, NoteKind::Refused, (subject, None), detail)
    }))
}
