//! The ledger: postings with their two sides, read by account.

use domain::agreement::{Account, Balance, Currency, Entry, Job, Money};
use domain::clock::{MICROS_PER_SECOND, Micros};
use uuid::Uuid;

use crate::engine::{Record, Result, record, statements};
use crate::store::Store;

/// What happened on an account on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountDay {
    /// Days since 1970.
    pub day: i64,
    /// The sum of what was added.
    pub credits: Money,
    /// The sum of what was taken, below zero.
    pub charges: Money,
}

/// The money of an agreement in one currency so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoneyMoved {
    /// What its party has been charged.
    pub charged: Money,
    /// What its party has been paid.
    pub paid: Money,
}

/// What the party of an agreement has been charged and paid for it so far, in each currency. O(postings of the agreement).
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn ledger_money_of_agreement(store: &Store, agreement: Uuid) -> Result<Vec<MoneyMoved>> {
    store
        .read(statements::MONEY_OF_AGREEMENT, &[agreement.into()], |row| {
            let currency = row.word("currency", Currency::parse)?;
            Ok(MoneyMoved {
                charged: Money::new(row.integer("charged_micros")?, currency),
                paid: Money::new(row.integer("paid_micros")?, currency),
            })
        })
        .await
}

/// The amounts of an account, by currency, and at most `limit` of its entries, newest first, older than the posting `after`;
/// of every party's account where none is named. Every posting has a party's side. Both are of one state of the database.
/// Takes time in proportion to the days with entries.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn ledger_of_account(
    store: &Store,
    account: Option<&Account>,
    after: Option<Uuid>,
    limit: u32,
) -> Result<(Vec<Balance>, Vec<Entry>)> {
    let page = [after.unwrap_or(Uuid::max()).into(), limit.into()];
    let word = account.map(ToString::to_string);
    let word = word.as_deref();
    let mut snapshot = store.snapshot().await?;
    let balances = [statements::BALANCES, statements::BALANCES_OF];
    let balances = snapshot.read_of(word, &[], balances, Balance::of).await?;
    let entries = [statements::ENTRIES_NEWEST, statements::ENTRIES_NEWEST_OF];
    let entries = snapshot.read_of(word, &page, entries, Entry::of).await?;
    snapshot.rollback().await?;
    Ok((balances, entries))
}

/// What was added to an account and taken from it on each day (of UTC) and in each currency, oldest first. Takes time in
/// proportion to these days.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn ledger_days_of_account(store: &Store, account: &Account) -> Result<Vec<AccountDay>> {
    let values = [account.to_string().into()];
    store
        .read(statements::LEDGER_DAYS, &values, |row| {
            let currency = row.word("currency", Currency::parse)?;
            Ok(AccountDay {
                day: row.integer("day")?,
                credits: Money::new(row.integer("credits_micros")?, currency),
                charges: Money::new(row.integer("charges_micros")?, currency),
            })
        })
        .await
}

/// At most `limit` entries of an account that were posted in a time, each with the name and the job of its agreement, newest first,
/// older than the posting `after`.
///
/// # Errors
/// `Error::Unavailable`, `Error::Corrupt`.
pub async fn ledger_entries_in_time(
    store: &Store,
    account: &Account,
    (start, end): (Micros, Micros),
    after: Option<Uuid>,
    limit: u32,
) -> Result<Vec<(Entry, Option<String>, Option<Job>)>> {
    let [first, last] = [start.saturating_sub(IDS_OFF), end.saturating_add(IDS_OFF)].map(first_posting_id_at);
    let values = [
        account.to_string().into(),
        first.into(),
        after.map_or(last, |after| after.min(last)).into(),
        start.into(),
        end.into(),
        limit.into(),
    ];
    store
        .read(statements::ENTRIES_IN_TIME, &values, |row| {
            Ok((Entry::of(row)?, row.maybe_text("name")?, row.get("job")?))
        })
        .await
}

/// How far the time in the id of a posting may be from its time: the id is made a moment later, and clocks are set.
const IDS_OFF: Micros = 24 * 3_600 * MICROS_PER_SECOND;

/// The first id of an instant.
fn first_posting_id_at(at: Micros) -> Uuid {
    // No id has a later time.
    let millis = u64::try_from(at / 1_000).unwrap_or(0).min((1 << 48) - 1);
    uuid::Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid()
}

record! { Balance: account, amount "sum_micros" "currency" }
record! { Entry: posting, at "at_us", account, amount "amount_micros" "currency", agreement, kind, detail }

/// The day (of UTC) of an instant, since 1970.
pub(crate) fn ledger_day(at: Micros) -> i64 {
    at.div_euclid(24 * 3_600 * MICROS_PER_SECOND)
}
