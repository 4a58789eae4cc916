//! I6 of one agreement: its timeline leads along allowed edges to the state that it has, and the rest of its row goes
//! with that state.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use domain::agreement::{Agreement, AgreementState, EventKind, ServiceState};
use uuid::Uuid;

use super::findings::Invariant::{self, I6, I10};
use super::findings::{Finding, Findings};
use crate::engine::digest::RowDigest;
use crate::engine::{Columns, Connection, Error, Result, Value, statements};

/// One line of a timeline with the states after the change that it was written with.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimelineStep {
    pub(super) seq: i64,
    pub(super) kind: EventKind,
    pub(super) version: i64,
    pub(super) state: AgreementState,
    pub(super) service: ServiceState,
    /// The digest of the agreement's row after it.
    pub(super) digest: Option<RowDigest>,
}

/// One change: the lines of a version, by the last of them.
#[derive(Debug, Clone, Copy)]
struct TimelineChange {
    last: TimelineStep,
    /// Whether termination was asked for in it.
    asked: bool,
    /// Whether lost work waits again by it.
    again: bool,
}

impl TimelineChange {
    /// A change with only this line so far.
    fn begin(line: TimelineStep) -> Self {
        Self {
            last: line,
            asked: line.kind == EventKind::Terminating,
            again: line.kind == EventKind::Restarted,
        }
    }
}

/// A timeline as far as it has been read: only the parts that the check of its end needs, for any length.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimelineCheck {
    first: TimelineStep,
    before: Option<TimelineChange>,
    now: TimelineChange,
    accepted: u32,
    closed: u32,
    /// Whether it has a line about work that was not over at the end of its slot. The work may be longer than its contract then.
    pub(super) overran: bool,
    /// Whether its lines are numbered from 1 on without gaps.
    numbered: bool,
    /// Whether its versions go from 1 on without gaps, but for those of moves that are one line.
    whole: bool,
}

impl TimelineCheck {
    /// A timeline that begins with a line.
    pub(super) fn begin(first: TimelineStep) -> Self {
        Self {
            first,
            before: None,
            now: TimelineChange::begin(first),
            accepted: u32::from(first.kind == EventKind::Accepted),
            closed: u32::from(first.kind == EventKind::Closed),
            overran: first.kind == EventKind::Overrun,
            numbered: first.seq == 1,
            whole: first.version == 1,
        }
    }

    /// Goes on by a line.
    pub(super) fn go_on(&mut self, step: TimelineStep, found: &mut Findings) {
        let last = self.now.last;
        self.numbered &= step.seq == last.seq + 1;
        self.accepted += u32::from(step.kind == EventKind::Accepted);
        self.closed += u32::from(step.kind == EventKind::Closed);
        self.overran |= step.kind == EventKind::Overrun;
        let next = TimelineChange::begin(step);
        if step.version == last.version {
            self.now = TimelineChange {
                asked: self.now.asked || next.asked,
                again: self.now.again || next.again,
                ..next
            };
        } else {
            self.check_move(found);
            // A line of moves that were recorded has the version of the last of them.
            let joins = step.kind == EventKind::Moved && step.version > last.version;
            self.whole &= step.version == last.version + 1 || joins;
            self.before = Some(self.now);
            self.now = next;
        }
    }

    /// The last change moved along an edge. One change may ask for termination and carry it out: it then passed through the state
    /// between.
    fn check_move(&self, found: &mut Findings) {
        let Some(from) = self.before.map(|before| before.last) else {
            return;
        };
        let TimelineChange {
            last: to,
            asked,
            again,
        } = self.now;
        let (before, after) = (from.version, to.version);
        found.must(before < after, I6, || {
            format!("its timeline goes back from version {before} to {after}")
        });
        let through = from.state.terminating().filter(|_| asked);
        let allowed = from.state == to.state
            || from.state.allows(to.state)
            || through.is_some_and(|between| between.allows(to.state));
        found.must(allowed, I6, || {
            format!("it went from {} to {}", from.state, to.state)
        });
        let again = again && (from.service, to.service) == (ServiceState::Processing, ServiceState::NotReady);
        let (before, after) = (from.service, to.service);
        let allowed = before == after || before.allows(after) || again;
        found.must(allowed, I6, || {
            format!("its service went from {before} to {after}")
        });
    }
}

/// An agreement, the digest of its row, and its whole timeline.
pub(super) fn check_timeline_of_agreement(
    (agreement, digest): (&Agreement, RowDigest),
    life: Option<&TimelineCheck>,
    found: &mut Findings,
) {
    check_agreement_by_timeline(agreement, life.is_some_and(|life| life.accepted > 0), found);
    match life {
        Some(life) => {
            check_timeline_order(agreement, life, found);
            life.check_move(found);
            let last = life.now.last;
            let is_stated = last.digest.is_none_or(|stated| stated == digest);
            found.must(is_stated || last.version != agreement.version, I10, || {
                "its row is not what the last line of its timeline states: it was changed past the service"
                    .to_owned()
            });
        }
        None => found.push(I6, "it has no timeline".to_owned()),
    }
}

/// The other columns of the row agree with its states.
fn check_agreement_by_timeline(agreement: &Agreement, accepted: bool, found: &mut Findings) {
    let Agreement { state, service, .. } = agreement;
    let (window, placed) = (agreement.window(), agreement.placement());
    // An agreement that was never accepted has no place.
    let is_placed = placed.is_empty() != accepted && window.contains(placed);
    found.must(is_placed, I6, || {
        format!("its placement {placed} is not inside its window {window}")
    });
    found.must(service_state_fits_timeline(*state, *service), I6, || {
        format!("its state is {state} and that of its service {service}")
    });
    let over = *service == ServiceState::Completed;
    let has = |what: Option<_>| if what.is_some() { "an end" } else { "no end" };
    found.must(agreement.ended.is_some() == over, I6, || {
        format!("its service is {service} and has {}", has(agreement.ended))
    });
    found.must(agreement.outcome.is_none() || over, I6, || {
        format!("its service is {service} and has an outcome already")
    });
    let has_started = agreement.started.is_some() && *service == ServiceState::NotReady;
    found.must(!has_started, I6, || {
        "its service is NotReady and has started".to_owned()
    });
}

/// Whether a service may be in this state while its agreement is in that.
fn service_state_fits_timeline(state: AgreementState, service: ServiceState) -> bool {
    match state {
        AgreementState::Pending | AgreementState::PendingAndTerminating => service == ServiceState::NotReady,
        // One that is over closes its agreement in the same transaction.
        AgreementState::Observed | AgreementState::ObservedAndTerminating => {
            service != ServiceState::Completed
        }
        AgreementState::Complete | AgreementState::Terminated => service == ServiceState::Completed,
        AgreementState::Rejected => matches!(service, ServiceState::NotReady | ServiceState::Completed),
    }
}

/// The timeline is whole, begins with the acceptance or with an offer that may have been accepted later, ends with the closing, and ends in the stored states.
fn check_timeline_order(agreement: &Agreement, life: &TimelineCheck, found: &mut Findings) {
    let (first, last) = (life.first, life.now.last);
    found.must(life.numbered, I6, || "its timeline has gaps".to_owned());
    let begins = match first.kind {
        EventKind::Accepted => life.accepted == 1,
        EventKind::Offered | EventKind::Forwarded => {
            let never = agreement.state == AgreementState::Pending || agreement.state.is_final();
            life.accepted == 1 || life.accepted == 0 && never
        }
        _ => false,
    };
    found.must(begins && first.version == 1, I6, || {
        "its timeline does not begin with its only acceptance".to_owned()
    });
    let begins = matches!(first.state, AgreementState::Pending | AgreementState::Observed)
        && first.service == ServiceState::NotReady;
    found.must(begins, I6, || {
        format!("it began as {} with its service {}", first.state, first.service)
    });
    let is_closed = last.kind == EventKind::Closed;
    let (state, service, version) = (agreement.state, agreement.service, agreement.version);
    let closes = is_closed == state.is_final() && life.closed == u32::from(is_closed);
    found.must(closes, I6, || {
        let (closings, kind) = (life.closed, last.kind);
        format!("it is {state} and its timeline has {closings} closings, the last line {kind}")
    });
    found.must((last.state, last.service) == (state, service), I6, || {
        let (last, of_last) = (last.state, last.service);
        format!("its states are {state} and {service}, and its timeline leads to {last} and {of_last}")
    });
    found.must(last.version <= version, I6, || {
        format!("its version is {version} and its timeline has {}", last.version)
    });
    // Each change has at least one line.
    found.must(life.whole && last.version == version, I10, || {
        format!("it has changed to version {version}, and not every change has its line")
    });
}

/// The timelines of the open agreements after one, up to another.
pub(super) async fn read_timelines_between(
    connection: &mut Connection,
    between: [Value<'_>; 2],
    findings: &mut Vec<Finding>,
) -> Result<BTreeMap<Uuid, TimelineCheck>> {
    let mut lives = BTreeMap::new();
    let steps = connection.read(statements::LIVE_STEPS, &between, |row| {
        Ok((
            row.id("subject")?,
            read_timeline_step(row, row.integer("version")?),
        ))
    });
    for (agreement, step) in steps.await? {
        add_to_timeline(&mut lives, agreement, step, findings)?;
    }
    Ok(lives)
}

/// Goes on with an agreement's timeline.
pub(super) fn add_to_timeline(
    lives: &mut BTreeMap<Uuid, TimelineCheck>,
    agreement: Uuid,
    step: Result<TimelineStep>,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let mut found = Findings::of(agreement, findings);
    match step {
        Ok(step) => match lives.entry(agreement) {
            Entry::Vacant(place) => {
                place.insert(TimelineCheck::begin(step));
            }
            Entry::Occupied(mut life) => life.get_mut().go_on(step, &mut found),
        },
        Err(Error::Corrupt(what)) => found.push(Invariant::Readable, what),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Reads a step of a timeline, which a change to this version made.
pub(super) fn read_timeline_step(row: &Columns<'_>, version: i64) -> Result<TimelineStep> {
    Ok(TimelineStep {
        seq: row.integer("seq")?,
        kind: row.word("kind", EventKind::from_word)?,
        version,
        state: row.word("state", AgreementState::from_word)?,
        service: row.word("service", ServiceState::from_word)?,
        digest: row.maybe_id("digest")?.map(Uuid::into_bytes),
    })
}
