//! Refused requests are noted in the audit trail, as many of each party in a minute as a person would read.

use domain::agreement::{Note, NoteKind};
use domain::change::Change;
use uuid::Uuid;

use crate::decider::Decider;
use crate::error::Refusal;

/// Refusals of one party in a minute that are noted. Requests without end must not fill the disk, and every note costs a
/// transaction.
const NOTED_MAX: u32 = 60;

/// Notes that a party's request was refused, and in the refusal that it is noted.
pub(crate) fn note_refused(decider: &mut Decider<'_>, party: &str, subject: Uuid, refusal: &mut Refusal) {
    let minute = decider.present_second().seconds().div_euclid(60);
    let count = decider.plan.limits.count_refusal(party, minute);
    let more = match count.cmp(&NOTED_MAX) {
        std::cmp::Ordering::Less => "",
        std::cmp::Ordering::Equal => "; further ones of search party in search minute are not noted",
        std::cmp::Ordering::Greater => return,
    };
    let detail = format!("{refusal}{more}");
    refusal.noted = Some(subject);
    decider.batch.push(Change::Note(Note {
        party: Some(party.to_owned()),
        ..Note::new(decider.now, NoteKind::Refused, (subject, None), detail)
    }));
}
