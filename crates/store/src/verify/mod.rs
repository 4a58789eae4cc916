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
//! A service that starts checks the open agreements and offers, and the trail since the line up to which it was found whole; the
//! rest is checked while it serves.
//!
//! Everything is read once, in one transaction that sees one state of the database, page by page. Two things stay in memory: the
//! loads for the sweep of I1, and how far each timeline has come: a few numbers per agreement.

pub mod engine_check;
mod money;
mod offers;
mod pieces;
mod sweep;
mod timeline;
mod trail;

use std::collections::BTreeMap;
use std::fmt;

use domain::agreement::{Agreement, AgreementState, Entry, ServiceState, Stretch};
use domain::clock;
use domain::resources::Binding;
use scheduler::{Interval, Time, counted};
use serde::Serialize;
use uuid::Uuid;

use crate::batch::trail::Trail;
use crate::database::Store;
use crate::engine::digest::RowDigest;
use crate::engine::{Columns, Connection, Error, Record, Result, bulk, statements};
use crate::records::agreements;
use crate::records::bindings;
use crate::signed_heads::SignedLines;
pub(super) use sweep::{Capacity, find_overbooked_peaks};
use timeline::TimelineCheck;

/// Agreements read at a time: a service that starts keeps the memory of one page for its allocator.
const PAGE: u32 = 1_000;
/// The most findings that are gathered: further ones would not help.
const FINDINGS_MAX: usize = FINDINGS_MAX_ROWS as usize;
const FINDINGS_MAX_ROWS: u32 = 1_000;

/// The invariants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Invariant {
    /// Every row can be read.
    Readable,
    /// Nodes in use are no more than there are, and each has one owner.
    I1,
    /// An offer is accepted once at most, in time, and by its own party.
    I4,
    /// The promised nodes count exactly.
    I5,
    /// States move along allowed edges.
    I6,
    /// The ledger balances, and agrees with the agreements.
    I9,
    /// The audit trail is whole.
    I10,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The invariant that it violates.
    pub invariant: Invariant,
    /// The agreement or resource that it is about.
    pub subject: String,
    /// The fault, in words.
    pub what: String,
}

impl Finding {
    /// A fault of the file of signed heads of the audit trail.
    pub fn of_heads(what: String) -> Self {
        Self::new(Invariant::I10, "signed heads".to_owned(), what)
    }

    fn new(invariant: Invariant, subject: String, what: String) -> Self {
        Self {
            invariant,
            subject,
            what,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.invariant, self.subject, self.what)
    }
}

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
        Ok(self.check_all(signed).await?.0)
    }

    /// The first of the lines that are known to have been stored that the audit trail does not have: the database has gone back, to a
    /// snapshot or a backup that no `bespeak restore` has written into the trail. Takes time in proportion to these lines.
    ///
    /// # Errors
    /// The errors of reading.
    pub async fn verify_known_lines(&self, known: &SignedLines) -> Result<Option<Finding>> {
        let mut snapshot = self.snapshot().await?;
        let found = trail::find_gone_line(&mut snapshot, known).await?;
        snapshot.rollback().await?;
        Ok(found)
    }

    /// Makes the checks of [`Self::verify`]; where nothing is found it is remembered that the audit trail is whole so far.
    ///
    /// # Errors
    /// The errors of reading and of writing.
    pub async fn verify_and_remember(&self) -> Result<Vec<Finding>> {
        let (findings, trail) = self.check_all(SignedLines::default()).await?;
        self.remember(&findings, &trail).await?;
        Ok(findings)
    }

    /// Checks the same for open agreements and held offers, and the audit trail from the remembered line on. Remembers the last
    /// line if there are no findings. Takes time in proportion to these, for any length of the history.
    ///
    /// # Errors
    /// The errors of reading and of writing; a row that cannot be read is a finding.
    pub async fn verify_open(&self, now: Time) -> Result<Vec<Finding>> {
        let mut snapshot = self.snapshot().await?;
        let connection: &mut Connection = &mut snapshot;
        let mut check = Verification {
            capacities: read_capacities(connection).await?,
            ..Verification::default()
        };
        let trail = trail::check_new_trail_lines(connection, &mut check.findings).await?;
        let mut after = Uuid::nil();
        while let Some(page) = Page::read(connection, after, OPEN).await? {
            let values = [after.into(), page.last.into()];
            let mut lives = trail::read_lives_between(connection, values, &mut check.findings).await?;
            after = page.last;
            check.page(page, &mut lives);
        }
        offers::check_offers(connection, &mut check, statements::OFFERS_HELD_NOW).await?;
        let values = [now.into()];
        let bindings = connection
            .read(statements::LIVE_BINDINGS, &values, Binding::of)
            .await?;
        for pair in bindings::sort_bindings(bindings).windows(2) {
            let [one, other] = pair else { continue };
            let same = (&one.resource, one.node) == (&other.resource, other.node);
            if same && other.interval.start < one.interval.end {
                let from = other.interval.start;
                let two = (one.agreement, other.agreement);
                check
                    .findings
                    .push(finding_of_two_owners(&one.resource, one.node.into(), from, two));
            }
        }
        snapshot.rollback().await?;
        let findings = check.finish();
        self.remember(&findings, &trail).await?;
        Ok(findings)
    }

    /// Checks the lines of the audit trail since the last that is remembered, and remembers the last of them where nothing is
    /// found.
    ///
    /// # Errors
    /// The errors of reading and of writing.
    pub async fn verify_new_lines(&self) -> Result<Vec<Finding>> {
        let mut snapshot = self.snapshot().await?;
        let mut findings = Vec::new();
        let trail = trail::check_new_trail_lines(&mut snapshot, &mut findings).await?;
        snapshot.rollback().await?;
        self.remember(&findings, &trail).await?;
        Ok(findings)
    }

    async fn check_all(&self, signed: SignedLines) -> Result<(Vec<Finding>, Trail)> {
        let mut snapshot = self.snapshot().await?;
        let checked = check_everything(&mut snapshot, signed).await?;
        snapshot.rollback().await?;
        Ok(checked)
    }

    async fn remember(&self, findings: &[Finding], trail: &Trail) -> Result<()> {
        if findings.is_empty() {
            let values = [trail.number.into(), (&trail.hash).into()];
            self.write(statements::TRAIL_CHECKED, &values).await?;
        }
        Ok(())
    }
}

/// Makes the finding of a row that is a fault.
type FindingOfRow = fn(&Columns<'_>) -> Result<Finding>;

/// The statements each of whose rows is a fault, with what it is.
const ROWS_AT_FAULT: [(&str, FindingOfRow); 4] = [
    (statements::DOUBLE_BINDINGS, finding_of_double_binding),
    (statements::UNBALANCED, finding_of_unbalanced_ledger),
    (statements::SHARED_AT_PEERS, finding_of_shared_at_peer),
    (statements::WRONG_DAYS, finding_of_wrong_day),
];

/// Checks everything in the state that a transaction sees. Answers with the end of the audit trail, too.
pub(super) async fn check_everything(
    connection: &mut Connection,
    signed: SignedLines,
) -> Result<(Vec<Finding>, Trail)> {
    let mut check = Verification {
        capacities: read_capacities(connection).await?,
        ..Verification::default()
    };
    let (mut lives, trail) = trail::check_trail(connection, &mut check, signed).await?;
    let mut after = Uuid::nil();
    while let Some(page) = Page::read(connection, after, ALL).await? {
        after = page.last;
        check.page(page, &mut lives);
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
    findings: Vec<Finding>,
}

impl Verification {
    fn page(&mut self, page: Page, lives: &mut BTreeMap<Uuid, TimelineCheck>) {
        let Page {
            agreements,
            mut bindings,
            mut entries,
            unreadable,
            ..
        } = page;
        self.findings.extend(unreadable);
        for (agreement, digest) in agreements {
            let life = lives.remove(&agreement.id);
            let bindings = bindings.remove(&agreement.id).unwrap_or_default();
            let mut found = Findings::of(agreement.id, &mut self.findings);
            timeline::check_life((&agreement, digest), life.as_ref(), &mut found);
            let entries = entries.remove(&agreement.id).unwrap_or_default();
            pieces::check_pieces(&agreement, life.as_ref(), &mut found);
            money::check_money(&agreement, &entries, &mut found);
            check_bindings(
                &agreement,
                &bindings,
                self.capacities.get(&agreement.resource),
                &mut found,
            );
            if agreement.state != AgreementState::Rejected {
                let loads = agreement.loads();
                self.loads.entry(agreement.resource).or_default().extend(loads);
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

/// The findings about one agreement.
struct Findings<'a> {
    agreement: Uuid,
    all: &'a mut Vec<Finding>,
}

impl<'a> Findings<'a> {
    fn of(agreement: Uuid, all: &'a mut Vec<Finding>) -> Self {
        Self { agreement, all }
    }

    fn push(&mut self, invariant: Invariant, what: String) {
        let subject = format!("agreement {}", self.agreement);
        self.all.push(Finding::new(invariant, subject, what));
    }

    /// Pushes the fault `what` unless the condition holds.
    fn must(&mut self, holds: bool, invariant: Invariant, what: impl FnOnce() -> String) {
        if !holds {
            self.push(invariant, what());
        }
    }
}

/// I5 of one agreement: its bindings are those of its state and placement.
fn check_bindings(
    agreement: &Agreement,
    bindings: &[Binding],
    capacities: Option<&Vec<Capacity>>,
    found: &mut Findings,
) {
    let most = capacities
        .into_iter()
        .flatten()
        .map(|capacity| capacity.nodes)
        .max()
        .unwrap_or(0);
    let start = agreement.placement().start;
    let loads = agreement.loads();
    let occupied = Interval::new(start, loads.last().map_or(start, |(time, _)| time.end));
    for binding in bindings {
        let Binding {
            resource,
            node,
            interval,
            ..
        } = binding;
        let place = format_args!("its node {node} of {resource} for {interval}");
        found.must(*resource == agreement.resource, Invariant::I5, || {
            let own = &agreement.resource;
            format!("{place} is not of the resource {own} that it is placed on")
        });
        found.must(*node < most, Invariant::I1, || {
            format!("{place} has never been there")
        });
        found.must(occupied.contains(*interval), Invariant::I5, || {
            format!("{place} is outside of {occupied}, all that it occupies")
        });
    }
    if agreement.slots.is_split() {
        pieces::check_piece_bindings(agreement, bindings, found);
        return;
    }
    let mut nodes: Vec<_> = bindings.iter().map(|binding| binding.node).collect();
    nodes.dedup();
    let count = nodes.len();
    if agreement.service.is_ready() {
        found.must(count == agreement.nodes() as usize, Invariant::I5, || {
            let nodes = counted(agreement.nodes(), "node");
            format!("it has begun with {nodes} and has {count}")
        });
        let kept = bindings
            .iter()
            .all(|binding| binding.interval.end == occupied.end);
        found.must(kept, Invariant::I5, || {
            format!("some of its nodes are not its own until {}", occupied.end)
        });
    } else if agreement.service == ServiceState::NotReady {
        found.must(count == 0, Invariant::I5, || {
            format!("it has {} and has not begun", counted(count, "node"))
        });
    } else {
        found.must(count <= agreement.nodes() as usize, Invariant::I5, || {
            format!(
                "it had {} instead of {}",
                counted(count, "node"),
                agreement.nodes()
            )
        });
    }
}

/// The statements that read all agreements page by page, with their entries of the ledger and their bindings.
const ALL: [&str; 3] = [
    statements::AGREEMENTS_OLDEST,
    statements::ENTRIES_BETWEEN,
    statements::BINDINGS_BETWEEN,
];
/// The statements that read the agreements that are not final, with their entries of the ledger and their bindings.
const OPEN: [&str; 3] = [
    statements::LIVE_OLDEST,
    statements::LIVE_ENTRIES_BETWEEN,
    statements::LIVE_BINDINGS_BETWEEN,
];

/// Some agreements, oldest first, with their bindings and entries of the ledger.
struct Page {
    last: Uuid,
    /// Each with the digest of its row.
    agreements: Vec<(Agreement, RowDigest)>,
    bindings: BTreeMap<Uuid, Vec<Binding>>,
    entries: BTreeMap<Uuid, Vec<Entry>>,
    unreadable: Vec<Finding>,
}

impl Page {
    async fn read(
        connection: &mut Connection,
        after: Uuid,
        [oldest, entries_between, bindings_between]: [&'static str; 3],
    ) -> Result<Option<Self>> {
        let values = [after.into(), PAGE.into()];
        let rows = connection.read(oldest, &values, |row| {
            let digest = bulk::INSERT_AGREEMENTS.stored_digest(agreements::TABLE, row);
            let read =
                agreements::read_agreement_row(row).and_then(|agreement_row| Ok((agreement_row, digest?)));
            Ok((row.id("id")?, read))
        });
        let rows = rows.await?;
        let Some(&(last, _)) = rows.last() else {
            return Ok(None);
        };
        let mut page = Self {
            last,
            agreements: Vec::with_capacity(rows.len()),
            bindings: BTreeMap::new(),
            entries: BTreeMap::new(),
            unreadable: Vec::new(),
        };
        for (id, agreement) in rows {
            if let Some(agreement) = page.readable(id, agreement)? {
                page.agreements.push(agreement);
            }
        }
        let between = [after.into(), last.into()];
        let entries = connection.read(entries_between, &between, |row| {
            Ok((row.id("agreement")?, Entry::of(row)))
        });
        for (id, entry) in entries.await? {
            if let Some(entry) = page.readable(id, entry)? {
                page.entries.entry(id).or_default().push(entry);
            }
        }
        let bindings = connection.read(bindings_between, &between, Binding::of);
        for binding in bindings.await? {
            page.bindings.entry(binding.agreement).or_default().push(binding);
        }
        Ok(Some(page))
    }

    /// A row, or a finding that it cannot be read.
    fn readable<T>(&mut self, id: Uuid, row: Result<T>) -> Result<Option<T>> {
        match row {
            Ok(row) => Ok(Some(row)),
            Err(Error::Corrupt(what)) => {
                Findings::of(id, &mut self.unreadable).push(Invariant::Readable, what);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn finding_of_double_binding(row: &Columns<'_>) -> Result<Finding> {
    let (resource, node) = (row.text("resource")?, row.integer("node")?);
    let (one, other) = (row.id("agreement")?, row.id("other")?);
    let from = Time(row.integer("next_s")?);
    Ok(finding_of_two_owners(&resource, node, from, (one, other)))
}

fn finding_of_two_owners(resource: &str, node: i64, from: Time, (one, other): (Uuid, Uuid)) -> Finding {
    let from = clock::time_in_words(from);
    let what = format!("node {node} has two owners from {from} on, the agreements {one} and {other}");
    Finding::new(Invariant::I1, format!("resource {resource}"), what)
}

/// One finding for each agreement that is not there, with the places that name it. They come in their order.
fn findings_of_missing_agreements(named: &[(Uuid, String)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for of_one in named.chunk_by(|one, next| one.0 == next.0) {
        let places: Vec<_> = of_one.iter().map(|(_, place)| place.as_str()).collect();
        let what = format!("it is not there, and is named by {}", places.join(", "));
        Findings::of(of_one[0].0, &mut findings).push(Invariant::I10, what);
    }
    findings
}

fn finding_of_shared_at_peer(row: &Columns<'_>) -> Result<Finding> {
    let (peer, address) = (row.text("peer")?, row.text("address")?);
    let what = format!("{address} is behind several agreements here");
    Ok(Finding::new(Invariant::I5, peer, what))
}

fn finding_of_unbalanced_ledger(row: &Columns<'_>) -> Result<Finding> {
    let what = format!("posting {} does not balance", row.id("posting")?);
    Ok(Finding::new(Invariant::I9, "ledger".to_owned(), what))
}

fn finding_of_wrong_day(row: &Columns<'_>) -> Result<Finding> {
    let (account, currency, day) = (row.text("account")?, row.text("currency")?, row.integer("day")?);
    let what = format!("the sums of {account} in {currency} on day {day} are not those of its entries");
    Ok(Finding::new(Invariant::I9, "ledger".to_owned(), what))
}

/// The capacities of each resource with their starts, in order of time.
pub(super) async fn read_capacities(connection: &mut Connection) -> Result<BTreeMap<String, Vec<Capacity>>> {
    let rows = connection.read(statements::CAPACITIES, &[], |row| {
        Ok((
            row.text("resource")?,
            row.integer("since_us")?,
            row.count("capacity")?,
        ))
    });
    let mut capacities: BTreeMap<String, Vec<Capacity>> = BTreeMap::new();
    for (resource, since, nodes) in rows.await? {
        capacities
            .entry(resource)
            .or_default()
            .push(Capacity { since, nodes });
    }
    Ok(capacities)
}
