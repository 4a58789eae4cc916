//! I10: the chain of the audit trail holds from its first line to the last one that is known, and every event that belongs in it
//! is there. It is read once, a page at a time, in the order of the chain. Of each agreement only the timeline stays in memory,
//! for the later check of its row.

use std::collections::BTreeMap;

use domain::clock::Micros;
use uuid::Uuid;

use super::findings::{FINDINGS_MAX, FINDINGS_MAX_ROWS, Finding, Invariant};
use super::timeline::{TimelineCheck, TimelineStep, add_to_timeline, read_timeline_step};
use super::{PAGE, Verification};
use crate::batch::sums::{SummedTable, TableSums};
use crate::batch::trail::{StatedRows, Trail};
use crate::engine::{Columns, Connection, Error, Result, statements};
use crate::records::trail_lines::{TrailLine, read_trail_line};
use crate::signed_heads::{KnownLine, SignedLines};

/// A stored line, with its place in the chain as its columns say.
struct StoredTrailLine {
    line: TrailLine,
    stated: StatedRows,
    /// The change that it tells of, where it is an agreement's.
    change: Option<TrailChange>,
}

struct TrailChange {
    version: i64,
    state: String,
    service: String,
    step: Result<TimelineStep>,
}

/// Follows the chain, and answers with the timelines of the agreements and the chain's end. Finds the first place where the chain
/// breaks; nothing after it can be checked.
pub(super) async fn check_trail(
    connection: &mut Connection,
    check: &mut Verification,
    mut signed: SignedLines,
) -> Result<(BTreeMap<Uuid, TimelineCheck>, Trail)> {
    let mut lives = BTreeMap::new();
    let end = read_end_for_trail_check(connection, statements::TRAIL).await?;
    let restores = read_restores_for_trail_check(connection, &signed).await?;
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
                let known = signed.take(trail.number).into_iter();
                let others = known.filter(|known| {
                    known.head.hash != trail.hash && !is_trail_line_gone_rightly(known, &restores)
                });
                let findings = others.map(|known| trail_finding(rewritten_line_in_trail_check(&known)));
                check.findings.extend(findings);
            }
            if let Some(change) = line.change {
                add_to_timeline(&mut lives, line.line.subject, change.step, &mut check.findings)?;
            }
        }
    }
    if broken.is_none() && end.as_ref() != Some(&trail) {
        broken = Some(other_end_in_trail_check(&trail, end.as_ref()));
    }
    if broken.is_none() {
        let gone = signed
            .all()
            .filter(|known| !is_trail_line_gone_rightly(known, &restores));
        broken = gone.last().map(|known| gone_line_in_trail_check(known, &trail));
    }
    check.findings.extend(broken.map(trail_finding));
    check_sums_of_trail(connection, &trail.sums, &mut check.findings).await?;
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

/// The rows of each table with a sum add up to what the trail states.
async fn check_sums_of_trail(
    connection: &mut Connection,
    stated: &TableSums,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    for table in SummedTable::ALL {
        check_sum_of_trail(connection, table, stated, findings).await?;
    }
    Ok(())
}

/// The rows of one table with a sum add up to what the trail states.
pub(super) async fn check_sum_of_trail(
    connection: &mut Connection,
    table: SummedTable,
    stated: &TableSums,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let mut sum: u128 = 0;
    let added = connection.each_row(table.statements().1, &[], |row| {
        match table.part_of_row(row) {
            Ok(part) => sum = sum.wrapping_add(part),
            // It is another row, whatever it was.
            Err(Error::Corrupt(_)) => {}
            Err(why) => return Err(why),
        }
        Ok(())
    });
    added.await?;
    if sum != stated.of(table) {
        let what = format!(
            "the rows of {} are not those that it has the sum of: some were changed past the service",
            table.word()
        );
        findings.push(trail_finding(what));
    }
    Ok(())
}

/// Follows the chain from the last line that is remembered, and answers with its end.
pub(super) async fn check_new_trail_lines(
    connection: &mut Connection,
    findings: &mut Vec<Finding>,
) -> Result<Trail> {
    let end = read_end_for_trail_check(connection, statements::TRAIL).await?;
    let checked = read_end_for_trail_check(connection, statements::CHECKED_TRAIL).await?;
    let mut trail = checked.unwrap_or_default();
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
    if broken.is_none() && end.as_ref() != Some(&trail) {
        broken = Some(other_end_in_trail_check(&trail, end.as_ref()));
    }
    findings.extend(broken.map(trail_finding));
    Ok(trail)
}

/// The first line among those that are known to have been stored that the trail does not have: the database has gone back.
pub(super) async fn find_gone_trail_line(
    connection: &mut Connection,
    known: &SignedLines,
) -> Result<Option<Finding>> {
    let mut gone = Vec::new();
    for line in known.all() {
        if hash_for_trail_check(connection, line.head.number).await?.as_ref() != Some(&line.head.hash) {
            gone.push(line);
        }
    }
    if gone.is_empty() {
        return Ok(None);
    }
    let restores = read_restores_for_trail_check(connection, known).await?;
    if let Some(line) = gone
        .into_iter()
        .find(|line| !is_trail_line_gone_rightly(line, &restores))
    {
        let end = read_end_for_trail_check(connection, statements::TRAIL).await?;
        let end = end.unwrap_or_default();
        let what = if end.number < line.head.number {
            gone_line_in_trail_check(line, &end)
        } else {
            rewritten_line_in_trail_check(line)
        };
        return Ok(Some(trail_finding(what)));
    }
    Ok(None)
}

async fn hash_for_trail_check(connection: &mut Connection, number: i64) -> Result<Option<String>> {
    let values = [number.into()];
    let found = connection.read(statements::LINE_HASH, &values, |row| row.text("hash"));
    Ok(found.await?.pop())
}

/// A restore that the trail tells of.
struct TrailRestore {
    number: i64,
    at: Micros,
    /// Only such a one explains why a signed line is gone.
    is_signed: bool,
}

/// The restores that the trail tells of.
async fn read_restores_for_trail_check(
    connection: &mut Connection,
    known: &SignedLines,
) -> Result<Vec<TrailRestore>> {
    let lines = connection.read(statements::RESTORES, &[], read_trail_line);
    let mut restores = Vec::new();
    for line in lines.await? {
        let before = hash_for_trail_check(connection, line.number - 1)
            .await?
            .unwrap_or_default();
        restores.push(TrailRestore {
            number: line.number,
            at: line.at,
            is_signed: known.is_restore((line.number - 1, &before), line.at, &line.detail),
        });
    }
    Ok(restores)
}

/// Whether a line was known before the database was restored to an earlier one.
fn is_trail_line_gone_rightly(line: &KnownLine, restores: &[TrailRestore]) -> bool {
    let head = &line.head;
    restores.iter().any(|restore| {
        let explains = restore.is_signed || !line.is_signed;
        explains && restore.number <= head.number && head.at <= restore.at
    })
}

fn rewritten_line_in_trail_check(line: &KnownLine) -> String {
    let (number, was) = (line.head.number, known_line_in_trail_check(line));
    format!("line {number} is not what {was}: it was written anew")
}

fn gone_line_in_trail_check(line: &KnownLine, end: &Trail) -> String {
    let (number, was) = (line.head.number, known_line_in_trail_check(line));
    format!(
        "line {number} {was} and is not there: it ends with line {}",
        end.number
    )
}

fn known_line_in_trail_check(line: &KnownLine) -> &'static str {
    if line.is_signed {
        "was signed"
    } else {
        "was stored"
    }
}

/// An end of the chain that the lease's row knows; none where that row is gone.
async fn read_end_for_trail_check(connection: &mut Connection, which: &'static str) -> Result<Option<Trail>> {
    let ends = connection.read(which, &[], Trail::of).await?;
    Ok(ends.into_iter().next())
}

fn other_end_in_trail_check(trail: &Trail, end: Option<&Trail>) -> String {
    let last = trail.number;
    match end {
        Some(Trail { number, hash, .. }) if (*number, hash) == (last, &trail.hash) => {
            format!("the row of the lease has other sums than line {last}, with which it ends")
        }
        Some(Trail { number, .. }) => format!("it ends with line {last}, and line {number} was the last"),
        None => format!(
            "it ends with line {last}, and the row of the lease, which says how it ends, is not there"
        ),
    }
}

/// Goes on by a line. Answers with its fault, if it has one.
fn follow_trail_line(
    trail: &mut Trail,
    StoredTrailLine { line, stated, change }: &StoredTrailLine,
) -> Option<String> {
    let subject = line.subject;
    let whose = if let Some(change) = change {
        let words = [&*line.kind, &line.detail, &change.state, &change.service];
        trail.append(subject, line.at, change.version, words, *stated);
        "agreement"
    } else {
        let (about, words) = ((subject, line.negotiation), [&*line.kind, &line.detail]);
        trail.append_note(about, line.at, line.party.as_deref(), words, stated.sums);
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

fn trail_finding(what: String) -> Finding {
    Finding::new(Invariant::I10, "audit trail".to_owned(), what)
}

fn stored_trail_line(row: &Columns<'_>) -> Result<StoredTrailLine> {
    let change = match row.maybe_integer("version")? {
        Some(version) => Some(TrailChange {
            version,
            state: row.text("state")?,
            service: row.text("service")?,
            step: read_timeline_step(row, version),
        }),
        None => None,
    };
    let stated = StatedRows {
        digest: row.maybe_id("digest")?.map(Uuid::into_bytes),
        // Sums that cannot be read are not those that were written: the hash says so.
        sums: row
            .maybe_text("sums")?
            .and_then(|sums| TableSums::parse(&sums).ok()),
    };
    let line = read_trail_line(row)?;
    Ok(StoredTrailLine { line, stated, change })
}
