//! The ledger: postings with their two sides, read by account.

use uuid::Uuid;

use super::engine::{Dialect, Value, execute};
use super::rows::Columns;
use super::{Error, Store, on, statements};
use crate::agreement::{Account, Balance, Currency, Entry, Money, Posting, PostingKind};

impl Store {
    /// What an account holds, by currency; of every account where none is named. Takes time in proportion to the
    /// account's entries.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn balances(&self, account: Option<&Account>) -> Result<Vec<Balance>, Error> {
        on!(self, database => match account.map(ToString::to_string) {
            Some(word) => database.read(statements::BALANCES_OF, &[(&word).into()], read_balance).await,
            None => database.read(statements::BALANCES, &[], read_balance).await,
        })
    }

    /// At most `limit` entries of an account, or of every party's, newest first, older than the posting `after`. Every
    /// posting has a party's side.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Corrupt`].
    pub async fn entries(
        &self,
        account: Option<&Account>,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Entry>, Error> {
        let before = after.unwrap_or(Uuid::max());
        on!(self, database => match account.map(ToString::to_string) {
            Some(word) => {
                let values = [before.into(), limit.into(), (&word).into()];
                database.read(statements::ENTRIES_NEWEST_OF, &values, read).await
            }
            None => database.read(statements::ENTRIES_NEWEST, &[before.into(), limit.into()], read).await,
        })
    }
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

/// Stores both sides of a posting.
pub(super) async fn insert<D: Dialect>(
    connection: &mut D::Connection,
    posting: &Posting,
) -> Result<(), sqlx::Error> {
    let (from, to) = (posting.from.to_string(), posting.to.to_string());
    let values: [Value<'_>; 10] = [
        posting.id.into(),
        (&from).into(),
        (-posting.amount.micros).into(),
        (&to).into(),
        posting.amount.micros.into(),
        posting.amount.currency.code().into(),
        posting.agreement.into(),
        posting.kind.word().into(),
        (&posting.detail).into(),
        posting.at.into(),
    ];
    execute::<D>(connection, statements::INSERT_POSTING, &values).await?;
    Ok(())
}
