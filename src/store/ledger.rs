//! The ledger: postings with their two sides, read by account.

use uuid::Uuid;

use super::engine::{Dialect, Value};
use super::rows::Columns;
use super::{Database, Error, Store, on, read_on, statements};
use crate::agreement::{Account, Balance, Currency, Entry, Money, Posting, PostingKind};

impl Store {
    /// The amounts of an account, by currency, and at most `limit` of its entries, newest first, older than the posting `after`;
    /// of every party's account where none is named. Every posting has a party's side. Both are of one state of the database.
    /// Takes time in proportion to the account's entries.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn account(
        &self,
        account: Option<&Account>,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<(Vec<Balance>, Vec<Entry>), Error> {
        on!(self, database => of_account(database, account, after, limit).await)
    }
}

async fn of_account<D: Dialect>(
    database: &Database<D>,
    account: Option<&Account>,
    after: Option<Uuid>,
    limit: u32,
) -> Result<(Vec<Balance>, Vec<Entry>), Error> {
    let before = after.unwrap_or(Uuid::max());
    let word = account.map(ToString::to_string);
    let mut snapshot = database.snapshot().await?;
    let connection: &mut D::Connection = &mut snapshot;
    let (balances, entries) = if let Some(word) = &word {
        let of = [word.into()];
        let page = [before.into(), limit.into(), word.into()];
        let balances = read_on::<D, _>(connection, statements::BALANCES_OF, &of, read_balance).await?;
        let entries = read_on::<D, _>(connection, statements::ENTRIES_NEWEST_OF, &page, read).await?;
        (balances, entries)
    } else {
        let page = [before.into(), limit.into()];
        let balances = read_on::<D, _>(connection, statements::BALANCES, &[], read_balance).await?;
        let entries = read_on::<D, _>(connection, statements::ENTRIES_NEWEST, &page, read).await?;
        (balances, entries)
    };
    snapshot.rollback().await?;
    Ok((balances, entries))
}

fn currency<D: Dialect>(row: &Columns<'_, D>) -> Result<Currency, Error> {
    row.word("currency", Currency::parse)
}

fn read_balance<D: Dialect>(row: &Columns<'_, D>) -> Result<Balance, Error> {
    Ok(Balance {
        account: row.word("account", Account::from_word)?,
        amount: Money::new(row.integer("sum_micros")?, currency(row)?),
    })
}

/// Reads a row of [`statements::ENTRIES_NEWEST`] and its like.
pub(super) fn read<D: Dialect>(row: &Columns<'_, D>) -> Result<Entry, Error> {
    Ok(Entry {
        posting: row.id("posting")?,
        at: row.integer("at_us")?,
        account: row.word("account", Account::from_word)?,
        amount: Money::new(row.integer("amount_micros")?, currency(row)?),
        agreement: row.id("agreement")?,
        kind: row.word("kind", PostingKind::from_word)?,
        detail: row.text("detail")?,
    })
}

/// The columns of [`super::bulk::INSERT_ENTRIES`] for both sides of a posting.
pub(super) fn rows(posting: &Posting) -> [[Value<'_>; 8]; 2] {
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
