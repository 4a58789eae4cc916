//! The announcements of starts: a configured time before a slot begins its party is told of that, once for each start.

use std::collections::HashMap;

use domain::agreement::{Agreement, AgreementState, ServiceState};
use domain::change::Change;
use scheduler::{Seconds, Time};
use uuid::Uuid;

use crate::decider::Decider;
use crate::timetable::Timetable;

/// When starts are to be announced, and which have been.
#[derive(Clone, Default)]
pub(crate) struct Starts {
    before: Seconds,
    times: Timetable<Uuid>,
    announced: HashMap<Uuid, Time>,
}

impl Starts {
    /// The starts that are announced so many seconds before; none for 0.
    pub(crate) fn announced(before: Seconds) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// The next instant with something to announce.
    pub(crate) fn next(&self) -> Option<Time> {
        self.times.next()
    }

    /// Notes when the next start of an agreement is announced.
    pub(crate) fn watch(&mut self, agreement: &Agreement) {
        let waits = agreement.state == AgreementState::Observed
            && match agreement.service {
                ServiceState::NotReady => true,
                ServiceState::Idle => !agreement.has_nodes(),
                ServiceState::Processing | ServiceState::Completed => false,
            };
        let start = agreement.slot().start;
        let is_new = self.before > 0 && waits && self.announced.get(&agreement.id) != Some(&start);
        self.times.set(agreement.id, is_new.then(|| start - self.before));
    }

    /// The agreements whose next start is to be announced by `now`.
    pub(crate) fn due_by(&self, now: Time) -> Vec<Uuid> {
        self.times.due_by(now)
    }

    /// Notes that the start of an agreement at an instant has been announced.
    pub(crate) fn note_announced(&mut self, agreement: &Agreement, start: Time) {
        self.announced.insert(agreement.id, start);
        self.watch(agreement);
    }

    /// Lets go of an agreement that is over.
    pub(crate) fn forget(&mut self, id: Uuid) {
        self.times.set(id, None);
        self.announced.remove(&id);
    }
}

/// Announces the starts whose time has come. One that has come itself is not announced any more.
pub(crate) fn announce_starts(decider: &mut Decider<'_>) {
    let now = decider.present_second();
    for id in decider.state.life.to_announce_by(now) {
        let Some(agreement) = decider.state.must_get(id) else {
            continue;
        };
        let start = agreement.slot().start;
        decider.state.life.note_announced(&agreement, start);
        if start > now {
            decider.batch.push(Change::AnnounceStart {
                agreement: Box::new(agreement),
                at: decider.now,
            });
        }
    }
}
