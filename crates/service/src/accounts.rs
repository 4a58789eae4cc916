//! The debts and credits of a party: its account of the ledger; for an operator all accounts.

use std::collections::BTreeMap;

use domain::agreement::{Account, Balance, Currency, Entry, Money};
use domain::clock::Micros;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::ledger::{self, AccountDay};
use uuid::Uuid;

use crate::pages::{cut_page, length_of_page};
use crate::views::money_and_time::{MoneyView, instant_as_date_time};
use crate::views::schemas;
use crate::{Error, Result, Scope, Service};

/// Entries on a page where the caller does not say.
const PAGE: u32 = 50;

/// The balances of accounts, and a page of their entries.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct AccountsView {
    /// The accounts, one for each currency that they hold.
    pub accounts: Vec<AccountView>,
    /// Newest first; for an operator the sides of the parties.
    pub entries: Vec<EntryView>,
    /// The value of `after` for the next page; none on the last.
    pub next: Option<Uuid>,
}

/// The balance of an account in a currency.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct AccountView {
    /// `provider`, or `party:` and a name.
    #[schemars(example = &"party:physics")]
    pub account: String,
    /// The balance; below zero it owes this amount.
    pub balance: MoneyView,
}

/// One side of a posting.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct EntryView {
    /// The posting, which has two sides.
    pub posting: Uuid,
    /// When it was posted.
    #[schemars(with = "schemas::Instant")]
    pub at: String,
    /// The account: `provider`, or `party:` and a name.
    #[schemars(example = &"party:physics")]
    pub account: String,
    /// The kind: price, cancellation, change, overrun, penalty, reward or compensation.
    #[schemars(example = &"price")]
    pub kind: String,
    /// The agreement that it belongs to.
    pub agreement: Uuid,
    /// The amount that was added, or taken where it is negative.
    pub amount: MoneyView,
    /// More, in words.
    #[schemars(example = &"the price of its nodes")]
    pub detail: String,
}

/// A month of an account, in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonthView {
    /// The month in UTC, as 2026-11.
    pub month: String,
    /// The sum of all additions.
    pub credits: MoneyView,
    /// The sum of all deductions, below zero.
    pub charges: MoneyView,
    /// The balance at the end of the month, or now.
    pub balance: MoneyView,
    /// The sums of additions and deductions, in millionths: for pictures.
    pub micros: (i64, i64),
}

/// An entry of an account with the name of its agreement.
#[derive(Debug, Clone)]
pub struct NamedEntryView {
    /// The entry.
    pub entry: EntryView,
    /// The name of its agreement.
    pub name: Option<String>,
    /// The application that its agreement runs, where it runs one.
    pub application: Option<String>,
}

impl EntryView {
    fn of(ledger_entry: &Entry) -> Self {
        Self {
            posting: ledger_entry.posting,
            at: instant_as_date_time(ledger_entry.at),
            account: ledger_entry.account.to_string(),
            kind: ledger_entry.kind.word().to_owned(),
            agreement: ledger_entry.agreement,
            amount: MoneyView::of(ledger_entry.amount),
            detail: ledger_entry.detail.clone(),
        }
    }
}

/// Whether a text names a month, as 2026-11.
pub fn is_month(text: &str) -> bool {
    account_month_bounds(text).is_some()
}

/// The first instant of a month in UTC, and the first after it.
fn account_month_bounds(month: &str) -> Option<(Micros, Micros)> {
    let first = Date::strptime("%Y-%m-%d", format!("{month}-01")).ok()?;
    let next = first.checked_add(1.month()).ok()?;
    let micros = |day: Date| Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp().as_microsecond());
    Some((micros(first)?, micros(next)?))
}

/// The days of an account as months, the newest first.
fn account_months_of_days(days: &[AccountDay]) -> Vec<MonthView> {
    let mut months: Vec<MonthView> = Vec::new();
    let mut balances: BTreeMap<Currency, i64> = BTreeMap::new();
    for one_day in days {
        let day = Timestamp::from_second(one_day.day.saturating_mul(86_400)).unwrap_or_default();
        let month = day.to_zoned(TimeZone::UTC).strftime("%Y-%m").to_string();
        let currency = one_day.credits.currency;
        let balance = balances.entry(currency).or_default();
        *balance = balance
            .saturating_add(one_day.credits.micros)
            .saturating_add(one_day.charges.micros);
        let same = |known: &&mut MonthView| known.month == month && known.credits.currency == currency.code();
        let earlier = months.iter_mut().rev().take(balances.len()).find(same);
        let (credits, charges) = earlier.as_ref().map_or((0, 0), |known| known.micros);
        let micros = (credits + one_day.credits.micros, charges + one_day.charges.micros);
        let sum = |micros| MoneyView::of(Money::new(micros, currency));
        let view = MonthView {
            month,
            credits: sum(micros.0),
            charges: sum(micros.1),
            balance: sum(balances[&currency]),
            micros,
        };
        match earlier {
            Some(known) => *known = view,
            None => months.push(view),
        }
    }
    months.reverse();
    months
}

impl AccountView {
    fn of(balance: &Balance) -> Self {
        Self {
            account: balance.account.to_string(),
            balance: MoneyView::of(balance.amount),
        }
    }
}

/// The balance of the caller's account and a page of its entries, newest first, beginning after a posting; for an
/// operator every account, and the entries of every party.
///
/// # Errors
/// `Error::Limit`, `Error::Unavailable`.
pub async fn list_accounts(
    service: &Service,
    scope: Scope,
    after: Option<Uuid>,
    limit: Option<u32>,
) -> Result<AccountsView> {
    let account = scope.party().map(|party| Account::Party(party.to_owned()));
    let limit = length_of_page(limit, PAGE)?;
    let (balances, entries) =
        ledger::ledger_of_account(&service.store, account.as_ref(), after, limit + 1).await?;
    let (entries, next) = cut_page(entries, limit, |each| each.posting);
    Ok(AccountsView {
        accounts: balances.iter().map(AccountView::of).collect(),
        entries: entries.iter().map(EntryView::of).collect(),
        next,
    })
}

/// The months of a party's account in which something happened, the newest first; of one month one for each currency. Takes time in
/// proportion to the days with entries.
///
/// # Errors
/// `Error::Unavailable`.
pub async fn list_account_months(service: &Service, party: &str) -> Result<Vec<MonthView>> {
    let days = ledger::ledger_days_of_account(&service.store, &Account::Party(party.to_owned())).await?;
    Ok(account_months_of_days(&days))
}

/// A page of the entries of a party's account in a month, as 2026-11, or ever; newest first, beginning after a posting.
///
/// # Errors
/// `Error::NotFound` where the text is no month, `Error::Limit`, `Error::Unavailable`.
pub async fn list_account_entries(
    service: &Service,
    party: &str,
    month: Option<&str>,
    after: Option<Uuid>,
    limit: Option<u32>,
) -> Result<(Vec<NamedEntryView>, Option<Uuid>)> {
    let ever = (0, Micros::MAX);
    let time = month
        .map_or(Some(ever), account_month_bounds)
        .ok_or(Error::NotFound)?;
    let limit = length_of_page(limit, PAGE)?;
    let account = Account::Party(party.to_owned());
    let found = ledger::ledger_entries_in_time(&service.store, &account, time, after, limit + 1).await?;
    let (found, next) = cut_page(found, limit, |(each, ..)| each.posting);
    let named = found.into_iter().map(|(entry, name, job)| NamedEntryView {
        entry: EntryView::of(&entry),
        name,
        application: job.map(|job| job.application),
    });
    Ok((named.collect(), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_months_with_the_balance_at_their_ends() {
        let day = |day: i64, credits, charges, currency| {
            let currency = Currency::parse(currency).unwrap();
            AccountDay {
                day,
                credits: Money::new(credits, currency),
                charges: Money::new(charges, currency),
            }
        };
        let days = [
            day(30, 0, -5_000_000, "EUR"),
            day(30, 0, -1_000_000, "USD"),
            day(31, 2_000_000, 0, "EUR"),
            day(58, 0, -500_000, "EUR"),
        ];
        let shown: Vec<_> = account_months_of_days(&days)
            .iter()
            .map(|month| {
                (
                    month.month.clone(),
                    month.credits.to_string(),
                    month.charges.to_string(),
                    month.balance.to_string(),
                )
            })
            .collect();
        let row = |month: &str, credits: &str, charges: &str, balance: &str| {
            (
                month.to_owned(),
                credits.to_owned(),
                charges.to_owned(),
                balance.to_owned(),
            )
        };
        assert_eq!(
            shown,
            [
                row("1970-02", "2 EUR", "-0.5 EUR", "-3.5 EUR"),
                row("1970-01", "0 USD", "-1 USD", "-1 USD"),
                row("1970-01", "0 EUR", "-5 EUR", "-5 EUR"),
            ]
        );
    }

    #[test]
    fn a_month_has_bounds_and_other_texts_have_none() {
        assert_eq!(account_month_bounds("1970-01"), Some((0, 31 * 86_400_000_000)));
        for wrong in ["", "1970", "1970-13", "1970-1-1", "x"] {
            assert!(!is_month(wrong), "{wrong}");
        }
    }
}
