//! Agreements that wait for their decision, and the calls that report it.

use uuid::Uuid;

use crate::agreement::Wording;
use crate::clock::Micros;
use crate::store::database::Store;
use crate::store::engine::{Record, Result, record, statements};

/// An agreement that is not decided yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    /// Which.
    pub agreement: Uuid,
    /// Its party.
    pub party: String,
    /// The offer, as it came.
    pub document: Wording,
    /// The address for its decision.
    pub acceptance: Option<String>,
    /// The counter offer that it accepts, if any.
    pub offer: Option<Uuid>,
}

/// A call that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallBack {
    /// Its id.
    pub id: Uuid,
    /// The agreement that it is about.
    pub agreement: Uuid,
    /// Where to.
    pub address: String,
    /// Its body: a document.
    pub body: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is to be tried next.
    pub due: Micros,
    /// Since when it is to be made.
    pub created: Micros,
}

impl Store {
    /// At most `limit` agreements that wait for their decision, oldest first, newer than `after`.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn undecided(&self, after: Uuid, limit: u32) -> Result<Vec<Undecided>> {
        let values = [after.into(), limit.into()];
        self.read(statements::UNDECIDED, &values, Undecided::of).await
    }

    /// At most `limit` calls that are due by `now`, the longest due first, and at most `of_each` about the agreements of one
    /// party: a party with thousands of calls that fail keeps no other waiting.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn call_backs_due(&self, now: Micros, limit: u32, of_each: u32) -> Result<Vec<CallBack>> {
        let values = &[now.into(), limit.into(), of_each.into()];
        self.read(statements::CALL_BACKS_DUE, values, CallBack::of).await
    }

    /// How many calls are still to be made.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn call_backs_waiting(&self) -> Result<u32> {
        let count = self.read_one(statements::CALL_BACKS_WAITING, &[], |row| row.count("waiting"));
        Ok(count.await?.unwrap_or(0))
    }

    /// Forgets a call that was made or is given up.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn call_back_done(&self, id: Uuid) -> Result<()> {
        self.write(statements::CALL_BACK_DONE, &[id.into()])
            .await
            .map(drop)
    }

    /// Notes that a call did not succeed, and when it is to be tried again.
    ///
    /// # Errors
    /// `Error::Unavailable`.
    pub async fn call_back_failed(&self, id: Uuid, due: Micros) -> Result<()> {
        let values = [id.into(), due.into()];
        self.write(statements::CALL_BACK_FAILED, &values).await.map(drop)
    }
}

record! { Undecided: agreement, party, document "document" "template", acceptance, offer }
record! { CallBack: id, agreement, address, body, attempts, due "due_us", created "created_us" }
