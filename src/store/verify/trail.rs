//! I10: the chain of the audit trail holds from its first line to the last one that is known, and every event that belongs in it
//! is there. It is read once, a page at a time, in the order of the chain. Of each agreement only the timeline stays in memory,
//! for the later check of its row.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use uuid::Uuid;

use super::life::{Life, Step};
use super::{FINDINGS_MAX, FINDINGS_MAX_ROWS, Finding, Findings, Invariant, PAGE, Verification};
use crate::agreement::{AgreementState, EventKind, ServiceState};
use crate::store::batch::trail::Trail;
use crate::store::engine::{Columns, Connection, Error, Result, Value, statements};
use crate::store::records::notes::{self, TrailLine};
use crate::store::signed_heads::SignedLines;

/// A stored line, with its place in the chain as its columns say.
struct Stored {
    line: TrailLine,
    /// The change that it tells of, where it is an agreement's.
    change: Option<Change>,
}

struct Change {
    version: i64,
    state: String,
    service: String,
    step: Result<Step>,
}

/// Follows the chain, and answers with the timelines of the agreements and the chain's end. Finds the first place where the chain
/// breaks; nothing after it can be checked.
pub(super) async fn check_trail(
    connection: &mut Connection,
    check: &mut Verification,
    mut signed: SignedLines,
) -> Result<(BTreeMap<Uuid, Life>, Trail)> {
    let mut lives = BTreeMap::new();
    let end = read_trail_end(connection, statements::TRAIL).await?;
    let mut broken = None;
    let (mut trail, mut read) = (Trail::default(), 0);
    loop {
        let values = [read.into(), PAGE.into()];
        let page = connection
            .read(statements::TRAIL_LINES, &values, stored_trail_line)
            .await?;
        let Some(last) = page.last() else { break };
        read = last.line.number;
        if check.findings.len() > FINDINGS_MAX {
            break;
        }
        for line in page {
            if broken.is_none() {
                broken = follow_trail_line(&mut trail, &line);
                let not_as_signed = signed.0.remove(&trail.number).filter(|hash| *hash != trail.hash);
                let finding = |_| {
                    format!(
                        "line {} is not what was signed: it was written anew",
                        trail.number
                    )
                };
                check
                    .findings
                    .extend(not_as_signed.map(finding).map(trail_finding));
            }
            if let Some(change) = line.change {
                add_to_timeline(&mut lives, line.line.subject, change.step, &mut check.findings)?;
            }
        }
    }
    if broken.is_none() && trail != end {
        broken = Some(early_end_in_words(&trail, &end));
    }
    if broken.is_none()
        && let Some((number, _)) = signed.0.last_key_value()
    {
        broken = Some(format!(
            "line {number} was signed and is not there: it ends with line {}",
            trail.number
        ));
    }
    check.findings.extend(broken.map(trail_finding));
    let limit = [FINDINGS_MAX_ROWS.into()];
    for (what, sql) in [
        ("offer", statements::UNTOLD_OFFERS),
        ("negotiation", statements::UNTOLD_NEGOTIATIONS),
        ("key", statements::UNTOLD_KEYS),
    ] {
        let untold = connection.read(sql, &limit, |row| row.id("id")).await?;
        let untold = untold
            .into_iter()
            .map(|id| trail_finding(format!("what has become of {what} {id} is not in it")));
        check.findings.extend(untold);
    }
    Ok((lives, trail))
}

/// Follows the chain from the last line that is remembered, and answers with its end.
pub(super) async fn check_new_trail_lines(
    connection: &mut Connection,
    findings: &mut Vec<Finding>,
) -> Result<Trail> {
    let end = read_trail_end(connection, statements::TRAIL).await?;
    let mut trail = read_trail_end(connection, statements::CHECKED_TRAIL).await?;
    let mut broken = None;
    while broken.is_none() {
        let values = [trail.number.into(), PAGE.into()];
        let page = connection
            .read(statements::TRAIL_LINES, &values, stored_trail_line)
            .await?;
        if page.is_empty() {
            break;
        }
        broken = page.iter().find_map(|line| follow_trail_line(&mut trail, line));
    }
    if broken.is_none() && trail != end {
        broken = Some(early_end_in_words(&trail, &end));
    }
    findings.extend(broken.map(trail_finding));
    Ok(trail)
}

/// The timelines of the open agreements after one, up to another.
pub(super) async fn read_lives_between(
    connection: &mut Connection,
    between: [Value<'_>; 2],
    findings: &mut Vec<Finding>,
) -> Result<BTreeMap<Uuid, Life>> {
    let mut lives = BTreeMap::new();
    let steps = connection.read(statements::LIVE_STEPS, &between, |row| {
        Ok((row.id("subject")?, read_step(row, row.integer("version")?)))
    });
    for (agreement, step) in steps.await? {
        add_to_timeline(&mut lives, agreement, step, findings)?;
    }
    Ok(lives)
}

/// An end of the chain that the lease's row knows.
async fn read_trail_end(connection: &mut Connection, which: &'static str) -> Result<Trail> {
    let ends = connection.read(which, &[], Trail::of).await?;
    Ok(ends.into_iter().next().unwrap_or_default())
}

fn early_end_in_words(trail: &Trail, end: &Trail) -> String {
    let (last, known) = (trail.number, end.number);
    format!("it ends with line {last}, and line {known} was the last")
}

/// Goes on by a line. Answers with its fault, if it has one.
fn follow_trail_line(trail: &mut Trail, Stored { line, change }: &Stored) -> Option<String> {
    let subject = line.subject;
    let whose = if let Some(change) = change {
        let words = [&*line.kind, &line.detail, &change.state, &change.service];
        trail.append(subject, line.at, change.version, words);
        "agreement"
    } else {
        let (about, words) = ((subject, line.negotiation), [&*line.kind, &line.detail]);
        trail.append_note(about, line.at, line.party.as_deref(), words);
        "what has the id"
    };
    let number = trail.number;
    if line.number != number {
        return Some(format!("line {number} is missing"));
    }
    (line.hash != trail.hash).then(|| {
        format!(
            "line {number} ({} of {whose} {subject}) is not what was written",
            line.kind
        )
    })
}

/// Goes on with an agreement's timeline.
fn add_to_timeline(
    lives: &mut BTreeMap<Uuid, Life>,
    agreement: Uuid,
    step: Result<Step>,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let mut found = Findings::of(agreement, findings);
    match step {
        Ok(step) => match lives.entry(agreement) {
            Entry::Vacant(place) => {
                place.insert(Life::begin(step));
            }
            Entry::Occupied(mut life) => life.get_mut().go_on(step, &mut found),
        },
        Err(Error::Corrupt(what)) => found.push(Invariant::Readable, what),
        Err(error) => return Err(error),
    }
    Ok(())
}

fn trail_finding(what: String) -> Finding {
    Finding::new(Invariant::I10, "audit trail".to_owned(), what)
}

fn stored_trail_line(row: &Columns<'_>) -> Result<Stored> {
    let change = match row.maybe_integer("version")? {
        Some(version) => Some(Change {
            version,
            state: row.text("state")?,
            service: row.text("service")?,
            step: read_step(row, version),
        }),
        None => None,
    };
    let line = notes::read_note_row(row)?;
    Ok(Stored { line, change })
}

fn read_step(row: &Columns<'_>, version: i64) -> Result<Step> {
    Ok(Step {
        seq: row.integer("seq")?,
        kind: row.word("kind", EventKind::from_word)?,
        version,
        state: row.word("state", AgreementState::from_word)?,
        service: row.word("service", ServiceState::from_word)?,
    })
}
