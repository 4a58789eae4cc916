//! The audit trail: the lines of all timelines, and the notes, in one chain. Each line has a number without gaps and the SHA-256
//! of the line before and of itself; the lease's row has the last of both. To change a line, take one out or add one, everything
//! after it has to be written again.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::clock::Micros;
use crate::store::engine::{Columns, Error, hex};

/// The end of the chain so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Trail {
    /// Number of the last line; 0 where there is none.
    pub(in crate::store) number: i64,
    /// Its hash; empty where there is none.
    pub(in crate::store) hash: String,
}

/// A line as it is stored: words as they stand there, so that a line can be checked that cannot be read.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct Line<'a> {
    pub(in crate::store) agreement: Uuid,
    pub(in crate::store) at: Micros,
    pub(in crate::store) kind: &'a str,
    pub(in crate::store) detail: &'a str,
    pub(in crate::store) version: i64,
    pub(in crate::store) state: &'a str,
    pub(in crate::store) service: &'a str,
}

/// A line that is no agreement's.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct NoteLine<'a> {
    pub(in crate::store) subject: Uuid,
    pub(in crate::store) negotiation: Option<Uuid>,
    pub(in crate::store) at: Micros,
    pub(in crate::store) kind: &'a str,
    pub(in crate::store) party: Option<&'a str>,
    pub(in crate::store) detail: &'a str,
}

impl Trail {
    /// The end that the lease's row knows.
    pub(in crate::store) fn of(row: &Columns<'_>) -> Result<Self, Error> {
        Ok(Self {
            number: row.integer("trail_number")?,
            hash: row.text("trail_hash")?,
        })
    }

    /// The beginning of every chain.
    pub(in crate::store) fn empty() -> Self {
        Self {
            number: 0,
            hash: String::new(),
        }
    }

    /// Goes on by one line of an agreement.
    pub(in crate::store) fn append(&mut self, line: &Line<'_>) {
        let mut digest = self.next();
        digest.update(line.agreement.as_bytes());
        digest.update(line.at.to_be_bytes());
        digest.update(line.version.to_be_bytes());
        self.end(digest, [line.kind, line.detail, line.state, line.service]);
    }

    /// Goes on by one line that is no agreement's: no agreement has the id with which it begins.
    pub(in crate::store) fn append_note(&mut self, line: &NoteLine<'_>) {
        let mut digest = self.next();
        digest.update(Uuid::max().as_bytes());
        digest.update(line.subject.as_bytes());
        digest.update(line.negotiation.unwrap_or(Uuid::nil()).as_bytes());
        digest.update(line.at.to_be_bytes());
        digest.update([u8::from(line.party.is_some())]);
        self.end(digest, [line.kind, line.party.unwrap_or_default(), line.detail]);
    }

    fn next(&mut self) -> Sha256 {
        self.number += 1;
        let mut digest = Sha256::new();
        digest.update(&self.hash);
        digest.update(self.number.to_be_bytes());
        digest
    }

    /// The texts are preceded by their lengths, so that no two lines are written the same.
    fn end<const N: usize>(&mut self, mut digest: Sha256, texts: [&str; N]) {
        for text in texts {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        }
        self.hash = hex(&digest.finalize());
    }
}
