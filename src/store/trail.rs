//! The audit trail: the lines of all timelines, and the notes, in one chain. Each line has a number without gaps and the SHA-256
//! of the line before and of itself; the lease's row has the last of both. To change a line, take one out or add one, everything
//! after it has to be written again.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Error;
use super::engine::Dialect;
use super::rows::{Columns, hex};
use crate::clock::Micros;

/// The end of the chain so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trail {
    /// Number of the last line; 0 where there is none.
    pub(super) number: i64,
    /// Its hash; empty where there is none.
    pub(super) hash: String,
}

/// A line as it is stored: words as they stand there, so that a line can be checked that cannot be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) agreement: Uuid,
    pub(super) at: Micros,
    pub(super) kind: &'a str,
    pub(super) detail: &'a str,
    pub(super) version: i64,
    pub(super) state: &'a str,
    pub(super) service: &'a str,
}

/// A line that is no agreement's.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoteLine<'a> {
    pub(super) subject: Uuid,
    pub(super) negotiation: Option<Uuid>,
    pub(super) at: Micros,
    pub(super) kind: &'a str,
    pub(super) party: Option<&'a str>,
    pub(super) detail: &'a str,
}

impl Trail {
    /// The end that the lease's row knows.
    pub(super) fn of<D: Dialect>(row: &Columns<'_, D>) -> Result<Self, Error> {
        Ok(Self {
            number: row.integer("trail_number")?,
            hash: row.text("trail_hash")?,
        })
    }

    /// The beginning of every chain.
    pub(super) fn empty() -> Self {
        Self {
            number: 0,
            hash: String::new(),
        }
    }

    /// Goes on by one line of an agreement.
    pub(super) fn append(&mut self, line: &Line<'_>) {
        let mut digest = self.next();
        digest.update(line.agreement.as_bytes());
        digest.update(line.at.to_be_bytes());
        digest.update(line.version.to_be_bytes());
        self.end(digest, [line.kind, line.detail, line.state, line.service]);
    }

    /// Goes on by one line that is no agreement's: no agreement has the id with which it begins.
    pub(super) fn append_note(&mut self, line: &NoteLine<'_>) {
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
