//! The ledger: postings with their two sides, read by account.

use uuid::Uuid;

use crate::agreement::{Account, Balance, Entry, Posting};
use crate::store::database::Store;
use crate::store::engine::{Record, Result, Value, record, statements};

impl Store {
    /// The amounts of an account, by currency, and at most `limit` of its entries, newest first, older than the posting `after`;
    /// of every party's account where none is named. Every posting has a party's side. Both are of one state of the database.
    /// Takes time in proportion to the account's entries.
    ///
    /// # Errors
    /// `Error::Unavailable`, `Error::Corrupt`.
    pub async fn account(
        &self,
        account: Option<&Account>,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<(Vec<Balance>, Vec<Entry>)> {
        let page = [after.unwrap_or(Uuid::max()).into(), limit.into()];
        let word = account.map(ToString::to_string);
        let word = word.as_deref();
        let mut snapshot = self.snapshot().await?;
        let balances = [statements::BALANCES, statements::BALANCES_OF];
        let balances = snapshot.read_of(word, &[], balances, Balance::of).await?;
        let entries = [statements::ENTRIES_NEWEST, statements::ENTRIES_NEWEST_OF];
        let entries = snapshot.read_of(word, &page, entries, Entry::of).await?;
        snapshot.rollback().await?;
        Ok((balances, entries))
    }
}

record! { Balance: account, amount "sum_micros" "currency" }
record! { Entry: posting, at "at_us", account, amount "amount_micros" "currency", agreement, kind, detail }

/// The columns of [`crate::store::engine::bulk::INSERT_ENTRIES`] for both sides of a posting.
pub(in crate::store) fn ledger_rows(posting: &Posting) -> [[Value<'_>; 8]; 2] {
    let micros = posting.amount.micros;
    [(&posting.from, -micros), (&posting.to, micros)].map(|(account, micros)| {
        [
            posting.id.into(),
            account.to_string().into(),
            micros.into(),
            posting.amount.currency.code().into(),
            posting.agreement.into(),
            posting.kind.word().into(),
            (&posting.detail).into(),
            posting.at.into(),
        ]
    })
}
