//! Checks the stored data, from the database alone. An operator checks these invariants with `bespeak verify`, the service checks
//! them before it starts, and so does every test of the whole after it ran.
//!
//! | | |
//! |---|---|
//! | I1 | at every instant the nodes in use are no more than the resource has, and no node has two owners |
//! | I4 | an offer is accepted at most once, by its own party, and never after its expiry |
//! | I5 | an agreement that is in force counts with exactly its nodes, and one that has ended with none; nodes held for
//!        an offer count until it is accepted, given back or lapses |
//! | I6 | states have moved along allowed edges only, and the other columns of a row agree with its state |
//! | I9 | the ledger balances, and agrees for each agreement with its terms and its outcome |
//! | I10 | every change of an agreement has its line in the audit trail, the trail's chain of hashes holds, rows are as its lines state,
//!        and all agreements that are named are there |
//!
//! A service that starts checks the open agreements and offers, and beside that the trail since the line up to which it was found whole;
//! the rest is checked while it serves.
//!
//! What a check reads it reads once, in one transaction that sees one state of the database, page by page. Two things stay in memory: the
//! loads for the sweep of I1, and how far each timeline has come: a few numbers per agreement.

mod agreement_page;
mod bindings;
pub mod engine_check;
mod findings;
mod money;
mod moves;
mod offers;
mod open;
mod overbooked_peaks;
mod pieces;
mod timeline;
mod trail_check;

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::agreement::{Agreement, AgreementState, Stretch};
use uuid::Uuid;

use crate::batch::sums::SummedTable;
use crate::batch::trail::Trail;
use crate::engine::{Connection, Result, statements};
use crate::records::recorded_moves::LatestMoves;
use crate::signed_heads::SignedLines;
use crate::store::Store;
use agreement_page::{ALL, AgreementPage};
use findings::{FINDINGS_MAX, FINDINGS_MAX_ROWS, Findings, ROWS_AT_FAULT, findings_of_missing_agreements};
pub use findings::{Finding, Invariant};
use overbooked_peaks::{Capacity, find_overbooked_peaks, read_capacities_for_peaks};
use timeline::TimelineCheck;

/// Agreements read at a time: a service that starts keeps the memory of one page for its allocator.
const PAGE: u32 = 1_000;

impl Store {
    /// Checks the invariants I1, I4, I5, I6, I9 and I10 over everything that is stored, live or over, and lists the faults: none
    /// when all is well, and at most a thousand. O(n log n).
    ///
    /// # Errors
    /// The errors of reading; a row that cannot be read is a finding.
    pub async fn verify(&self) -> Result<Vec<Finding>> {
        self.verify_with(SignedLines::default()).await
    }

    /// Checks the invariants as [`Store::verify`] does, and that the signed lines of the audit trail are there as they were signed.
    ///
    /// # Errors
    /// The errors of reading.
    pub async fn verify_with(&self, signed: SignedLines) -> Result<Vec<Finding>> {
        Ok(self.verify_all(signed).await?.0)
    }

    /// The first of the lines that are known to have been stored that the audit trail does not have: the database has gone back, to a
    /// snapshot or a backup that no `bespeak restore` has written into the trail. Takes time in proportion to these lines.
    ///
    /// # Errors
    /// The errors of reading.
    pub async fn verify_known_lines(&self, known: &SignedLines) -> Result<Option<Finding>> {
        let mut snapshot = self.snapshot().await?;
        let found = trail_check::find_gone_trail_line(&mut snapshot, known).await?;
        snapshot.rollback().await?;
        Ok(found)
    }

    /// Makes the checks of [`Self::verify`]; where nothing is found it is remembered that the audit trail is whole so far.
    ///
    /// # Errors
    /// The errors of reading and of writing.
    pub async fn verify_and_remember(&self) -> Result<Vec<Finding>> {
        let (findings, trail) = self.verify_all(SignedLines::default()).await?;
        self.remember_verified_trail(&findings, &trail).await?;
        Ok(findings)
    }

    /// Checks the lines of the audit trail since the last that is remembered, and that the recorded moves, by which decisions go, are those
    /// that it has the sum of. Remembers the last line where nothing is found.
    ///
    /// # Errors
    /// The errors of reading and of writing.
    pub async fn verify_new_lines(&self) -> Result<Vec<Finding>> {
        let mut snapshot = self.snapshot().await?;
        let mut findings = Vec::new();
        let trail = trail_check::check_new_trail_lines(&mut snapshot, &mut findings).await?;
        trail_check::check_sum_of_trail(&mut snapshot, SummedTable::Moves, &trail.sums, &mut findings)
            .await?;
        snapshot.rollback().await?;
        self.remember_verified_trail(&findings, &trail).await?;
        Ok(findings)
    }

    async fn verify_all(&self, signed: SignedLines) -> Result<(Vec<Finding>, Trail)> {
        let mut snapshot = self.snapshot().await?;
        let checked = verify_everything(&mut snapshot, signed).await?;
        snapshot.rollback().await?;
        Ok(checked)
    }

    async fn remember_verified_trail(&self, findings: &[Finding], trail: &Trail) -> Result<()> {
        if findings.is_empty() {
            let values = [trail.number.into(), (&trail.hash).into()];
            self.write(statements::TRAIL_CHECKED, &values).await?;
        }
        Ok(())
    }
}

/// Checks everything in the state that a transaction sees. Answers with the end of the audit trail, too.
pub(super) async fn verify_everything(
    connection: &mut Connection,
    signed: SignedLines,
) -> Result<(Vec<Finding>, Trail)> {
    let mut check = Verification {
        capacities: read_capacities_for_peaks(connection).await?,
        ..Verification::default()
    };
    let (mut lives, trail) = trail_check::check_trail(connection, &mut check, signed).await?;
    let records = moves::read_moves_to_check(connection, &mut check.findings).await?;
    check.moved = LatestMoves::of(&records).into();
    let mut after = Uuid::nil();
    while let Some(page) = AgreementPage::read(connection, (after, Uuid::max()), ALL).await? {
        after = page.last;
        let _ = check.check_page(page, &mut lives);
        if check.findings.len() > FINDINGS_MAX {
            break;
        }
    }
    offers::check_offers(connection, &mut check, statements::OFFERS_HELD_OR_ACCEPTED).await?;
    let limit = [FINDINGS_MAX_ROWS.into()];
    for (rows, finding_of) in ROWS_AT_FAULT {
        check
            .findings
            .extend(connection.read(rows, &limit, finding_of).await?);
    }
    let missing = connection
        .read(statements::MISSING_AGREEMENTS, &limit, |row| {
            Ok((row.id("agreement")?, row.text("place")?))
        })
        .await?;
    check.findings.extend(findings_of_missing_agreements(&missing));
    let without = connection
        .read(statements::WITHOUT_DOCUMENT, &limit, |row| row.id("id"))
        .await?;
    for agreement in without {
        Findings::of(agreement, &mut check.findings)
            .push(Invariant::I6, "its document is not there".to_owned());
    }
    check
        .findings
        .extend(engine_check::find_broken_references(connection).await?);
    Ok((check.finish(), trail))
}

/// The faults, and the data for the sweep at the end.
#[derive(Default)]
struct Verification {
    capacities: BTreeMap<String, Vec<Capacity>>,
    loads: BTreeMap<String, Vec<Stretch>>,
    /// The moves that rows of agreements may not have yet.
    moved: Arc<LatestMoves>,
    findings: Vec<Finding>,
}

impl Verification {
    /// Answers with the agreements, as their rows have them.
    fn check_page(
        &mut self,
        page: AgreementPage,
        lives: &mut BTreeMap<Uuid, TimelineCheck>,
    ) -> impl Iterator<Item = Agreement> + use<> {
        let AgreementPage {
            agreements,
            mut bindings,
            mut entries,
            unreadable,
            ..
        } = page;
        self.findings.extend(unreadable);
        for (agreement, digest) in &agreements {
            let life = lives.remove(&agreement.id);
            let bindings = bindings.remove(&agreement.id).unwrap_or_default();
            let mut found = Findings::of(agreement.id, &mut self.findings);
            timeline::check_timeline_of_agreement((agreement, *digest), life.as_ref(), &mut found);
            let entries = entries.remove(&agreement.id).unwrap_or_default();
            pieces::check_pieces(agreement, life.as_ref(), &mut found);
            money::check_money(agreement, &entries, &mut found);
            bindings::check_bindings(
                agreement,
                &bindings,
                self.capacities.get(&agreement.resource),
                &mut found,
            );
            let moved = moves::check_moved_agreement(agreement, &self.moved, &mut found);
            if agreement.state != AgreementState::Rejected {
                self.add_loads(&agreement.resource, moved.as_ref().unwrap_or(agreement).loads());
            }
        }
        agreements.into_iter().map(|(agreement, _)| agreement)
    }

    fn add_loads(&mut self, resource: &str, loads: Vec<Stretch>) {
        match self.loads.get_mut(resource) {
            Some(known) => known.extend(loads),
            None => {
                self.loads.insert(resource.to_owned(), loads);
            }
        }
    }

    fn finish(mut self) -> Vec<Finding> {
        for (resource, loads) in &self.loads {
            let capacities = self.capacities.get(resource).map_or(&[][..], Vec::as_slice);
            let peaks = find_overbooked_peaks(loads, capacities).into_iter();
            let resource = format!("resource {resource}");
            self.findings
                .extend(peaks.map(|peak| Finding::new(Invariant::I1, resource.clone(), peak.to_string())));
        }
        self.findings
            .sort_by(|a, b| (a.invariant, &a.subject).cmp(&(b.invariant, &b.subject)));
        self.findings.truncate(FINDINGS_MAX);
        self.findings
    }
}
