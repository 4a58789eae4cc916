//! The debts and credits of a party: its account of the ledger; for an operator all accounts.

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use wsag::accounts::{AccountList, ListedAccount, ListedEntry};
use wsag::time::DateTime;

use super::documents::sum_in_document;
use super::values::{MoneyView, instant_as_date_time};
use crate::agreement::{Account, Balance, Entry};
use crate::negotiation::service::{cut_page, length_of_page};
use crate::negotiation::{Negotiation, Result, Scope};

/// Entries on a page where the caller does not say, and at most.
const PAGE: (u32, u32) = (50, 500);

/// The balances of accounts, and a page of their entries.
pub struct Accounts {
    balances: Vec<Balance>,
    entries: Vec<Entry>,
    next: Option<Uuid>,
}

/// The same as a flat value.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AccountsView {
    /// The accounts, one for each currency that they hold.
    pub accounts: Vec<AccountView>,
    /// Newest first; for an operator the sides of the parties.
    pub entries: Vec<EntryView>,
    /// The value of `after` for the next page; none on the last.
    pub next: Option<Uuid>,
}

/// The balance of an account in a currency.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AccountView {
    /// `provider`, or `party:` and a name.
    pub account: String,
    /// Its balance; below zero it owes this amount.
    pub balance: MoneyView,
}

/// One side of a posting.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EntryView {
    /// The posting.
    pub posting: Uuid,
    /// When it was posted.
    pub at: String,
    /// The account.
    pub account: String,
    /// The kind: price, cancellation, change, overrun, penalty, reward or compensation.
    pub kind: String,
    /// The agreement that it belongs to.
    pub agreement: Uuid,
    /// The amount that was added, or taken where it is negative.
    pub amount: MoneyView,
    /// More, in words.
    pub detail: String,
}

impl Accounts {
    /// As a flat value.
    pub fn view(&self) -> AccountsView {
        let accounts = self.balances.iter().map(|of| AccountView {
            account: of.account.to_string(),
            balance: MoneyView::of(of.amount),
        });
        let entries = self.entries.iter().map(|of| EntryView {
            posting: of.posting,
            at: instant_as_date_time(of.at),
            account: of.account.to_string(),
            kind: of.kind.word().to_owned(),
            agreement: of.agreement,
            amount: MoneyView::of(of.amount),
            detail: of.detail.clone(),
        });
        AccountsView {
            accounts: accounts.collect(),
            entries: entries.collect(),
            next: self.next,
        }
    }

    /// As a document.
    pub fn document(&self) -> String {
        let accounts = self.balances.iter().map(|of| ListedAccount {
            name: of.account.to_string(),
            balance: sum_in_document(of.amount),
        });
        let entries = self.entries.iter().map(|of| ListedEntry {
            posting: of.posting.to_string(),
            at: DateTime::from_micros(of.at),
            account: of.account.to_string(),
            kind: of.kind.word().to_owned(),
            agreement_id: of.agreement.to_string(),
            amount: sum_in_document(of.amount),
            detail: of.detail.clone(),
        });
        AccountList {
            accounts: accounts.collect(),
            entries: entries.collect(),
            next: self.next.map(|id| id.to_string()),
        }
        .to_xml()
    }
}

impl Negotiation {
    /// The balance of the caller's account and a page of its entries, newest first, beginning after a posting; for an
    /// operator every account, and the entries of every party.
    ///
    /// # Errors
    /// `Error::Limit`, `Error::Unavailable`.
    pub async fn accounts(&self, scope: Scope, after: Option<Uuid>, limit: Option<u32>) -> Result<Accounts> {
        let account = scope.party().map(|party| Account::Party(party.to_owned()));
        let limit = length_of_page(limit, PAGE)?;
        let (balances, entries) = self.store.account(account.as_ref(), after, limit + 1).await?;
        let (entries, next) = cut_page(entries, limit, |of| of.posting);
        Ok(Accounts {
            balances,
            entries,
            next,
        })
    }
}
