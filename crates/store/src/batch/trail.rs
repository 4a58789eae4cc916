//! The audit trail: the lines of all timelines, and the notes, in one chain. Each line has a number without gaps and the SHA-256
//! of the line before and of itself; the lease's row has the last of both. To change a line, take one out or add one, everything
//! after it has to be written again.
//!
//! Lines state what they leave behind: the digest of their agreement's row, and once for each batch the sums of other tables. So a row that
//! was changed past the service is found, too.

use domain::clock::Micros;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::sums::TableSums;
use crate::engine::digest::RowDigest;
use crate::engine::{Columns, Result, hex};

/// The end of the chain so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Trail {
    /// Number of the last line; 0 where there is none.
    pub(crate) number: i64,
    /// Its hash; empty where there is none.
    pub(crate) hash: String,
    /// The sums that were stated last.
    pub(crate) sums: TableSums,
}

/// What a line states of the rows that are there after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StatedRows {
    /// The digest of the row of its agreement.
    pub(crate) digest: Option<RowDigest>,
    /// The sums after its batch.
    pub(crate) sums: Option<TableSums>,
}

impl Trail {
    /// The end that the lease's row knows.
    pub(crate) fn of(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            number: row.integer("trail_number")?,
            hash: row.text("trail_hash")?,
            sums: TableSums::parse(&row.text("sums")?)?,
        })
    }

    /// Goes on by one line of an agreement: its kind and its detail, and the states of the agreement and of its service, in words as
    /// they are stored, so that a line can be checked that cannot be read.
    pub(crate) fn append(
        &mut self,
        agreement: Uuid,
        at: Micros,
        version: i64,
        words: [&str; 4],
        stated: StatedRows,
    ) {
        let mut digest = self.next();
        digest.update(agreement.as_bytes());
        digest.update(at.to_be_bytes());
        digest.update(version.to_be_bytes());
        self.end(digest, words, stated);
    }

    /// Goes on by one line that is no agreement's, with its kind and its detail: no agreement has the id with which it begins.
    pub(crate) fn append_note(
        &mut self,
        (subject, negotiation): (Uuid, Option<Uuid>),
        at: Micros,
        party: Option<&str>,
        [kind, detail]: [&str; 2],
        sums: Option<TableSums>,
    ) {
        let mut digest = self.next();
        digest.update(Uuid::max().as_bytes());
        digest.update(subject.as_bytes());
        digest.update(negotiation.unwrap_or(Uuid::nil()).as_bytes());
        digest.update(at.to_be_bytes());
        digest.update([u8::from(party.is_some())]);
        let stated = StatedRows { digest: None, sums };
        self.end(digest, [kind, party.unwrap_or_default(), detail], stated);
    }

    fn next(&mut self) -> Sha256 {
        self.number += 1;
        let mut digest = Sha256::new();
        digest.update(&self.hash);
        digest.update(self.number.to_be_bytes());
        digest
    }

    /// The texts are preceded by their lengths, so that no two lines are written the same. What is stated stands behind them: nothing, in a
    /// line that states nothing.
    fn end<const N: usize>(&mut self, mut digest: Sha256, texts: [&str; N], stated: StatedRows) {
        for text in texts {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        }
        if let Some(row) = stated.digest {
            digest.update("row");
            digest.update(row);
        }
        if let Some(sums) = stated.sums {
            digest.update("sums");
            digest.update(sums.to_string());
            self.sums = sums;
        }
        self.hash = hex(&digest.finalize());
    }
}
