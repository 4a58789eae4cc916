//! The audit trail: the lines of all timelines, and the notes, in one chain. Each line has a number without gaps and the SHA-256
//! of the line before and of itself; the lease's row has the last of both. To change a line, take one out or add one, everything
//! after it has to be written again.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::clock::Micros;
use crate::store::engine::{Columns, Result, hex};

/// The end of the chain so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::store) struct Trail {
    /// Number of the last line; 0 where there is none.
    pub(in crate::store) number: i64,
    /// Its hash; empty where there is none.
    pub(in crate::store) hash: String,
}

impl Trail {
    /// The end that the lease's row knows.
    pub(in crate::store) fn of(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            number: row.integer("trail_number")?,
            hash: row.text("trail_hash")?,
        })
    }

    /// Goes on by one line of an agreement: its kind and its detail, and the states of the agreement and of its service, in words as
    /// they are stored, so that a line can be checked that cannot be read.
    pub(in crate::store) fn append(&mut self, agreement: Uuid, at: Micros, version: i64, words: [&str; 4]) {
        let mut digest = self.next();
        digest.update(agreement.as_bytes());
        digest.update(at.to_be_bytes());
        digest.update(version.to_be_bytes());
        self.end(digest, words);
    }

    /// Goes on by one line that is no agreement's, with its kind and its detail: no agreement has the id with which it begins.
    pub(in crate::store) fn append_note(
        &mut self,
        (subject, negotiation): (Uuid, Option<Uuid>),
        at: Micros,
        party: Option<&str>,
        [kind, detail]: [&str; 2],
    ) {
        let mut digest = self.next();
        digest.update(Uuid::max().as_bytes());
        digest.update(subject.as_bytes());
        digest.update(negotiation.unwrap_or(Uuid::nil()).as_bytes());
        digest.update(at.to_be_bytes());
        digest.update([u8::from(party.is_some())]);
        self.end(digest, [kind, party.unwrap_or_default(), detail]);
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
