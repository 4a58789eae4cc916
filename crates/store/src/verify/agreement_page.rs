//! Agreements as the checks read them, a page at a time.

use std::collections::BTreeMap;

use domain::agreement::{Agreement, Entry};
use domain::resources::Binding;
use uuid::Uuid;

use super::PAGE;
use super::findings::{Finding, Findings, Invariant};
use crate::engine::digest::RowDigest;
use crate::engine::{Connection, Error, Record, Result, bulk, statements};
use crate::records::agreements;

/// The statements that read all agreements page by page, with their entries of the ledger and their bindings.
pub(super) const ALL: [&str; 3] = [
    statements::AGREEMENTS_OLDEST,
    statements::ENTRIES_BETWEEN,
    statements::BINDINGS_BETWEEN,
];
/// The statements that read the agreements that are not final, with their entries of the ledger and their bindings.
pub(super) const OPEN: [&str; 3] = [
    statements::LIVE_OLDEST,
    statements::LIVE_ENTRIES_BETWEEN,
    statements::LIVE_BINDINGS_BETWEEN,
];

/// Some agreements, oldest first, with their bindings and entries of the ledger.
pub(super) struct AgreementPage {
    pub(super) last: Uuid,
    /// Each with the digest of its row.
    pub(super) agreements: Vec<(Agreement, RowDigest)>,
    pub(super) bindings: BTreeMap<Uuid, Vec<Binding>>,
    pub(super) entries: BTreeMap<Uuid, Vec<Entry>>,
    pub(super) unreadable: Vec<Finding>,
}

impl AgreementPage {
    /// Reads the next agreements after one, up to another, with the statements of [`ALL`] or [`OPEN`].
    pub(super) async fn read(
        connection: &mut Connection,
        (after, until): (Uuid, Uuid),
        [oldest, entries_between, bindings_between]: [&'static str; 3],
    ) -> Result<Option<Self>> {
        let values = [after.into(), PAGE.into(), until.into()];
        let mut page = Self {
            last: after,
            agreements: Vec::with_capacity(PAGE as usize),
            bindings: BTreeMap::new(),
            entries: BTreeMap::new(),
            unreadable: Vec::new(),
        };
        let of_page = &mut page;
        // Each takes a kilobyte: it stays where it is read.
        let rows = connection.each_row(oldest, &values, move |row| {
            of_page.last = row.id("id")?;
            let digest = bulk::INSERT_AGREEMENTS.stored_digest(agreements::TABLE, row);
            let read = agreements::read_agreement_row(row).and_then(|agreement| Ok((agreement, digest?)));
            if let Some(agreement) = of_page.readable(of_page.last, read)? {
                of_page.agreements.push(agreement);
            }
            Ok(())
        });
        rows.await?;
        let last = page.last;
        if last == after {
            return Ok(None);
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
