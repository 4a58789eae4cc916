//! Debts: a party's accounts with their entries, in elements of our own.

use crate::scheduling::Budget;
use crate::xml::{DateTime, written};

written! {
    /// `bsp:Accounts`: the balances of accounts, and a page of their postings.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct AccountList document "bsp:Accounts" {
        /// The accounts, one for each currency that they hold.
        pub accounts: Vec<ListedAccount> = "bsp:Account",
        /// Entries, newest first.
        pub entries: Vec<ListedEntry> = "bsp:Entry",
        /// Cursor of the next page; None on the last one.
        pub next: Option<String> = "bsp:Next",
    }
}

written! {
    /// `bsp:Account`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ListedAccount {
        /// Its name.
        pub name: String = "bsp:Name",
        /// Its balance; below zero it owes.
        pub balance: Budget = "bsp:Balance",
    }
}

written! {
    /// `bsp:Entry`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ListedEntry {
        /// The posting that it is a side of.
        pub posting: String = "bsp:Posting",
        /// When it was posted.
        pub at: DateTime = "bsp:At",
        /// Name of the account.
        pub account: String = "bsp:Name",
        /// The reason, in a stable word.
        pub kind: String = "bsp:Kind",
        /// The agreement that it belongs to.
        pub agreement_id: String = "bsp:AgreementId",
        /// The amount added; taken where it is negative.
        pub amount: Budget = "bsp:Sum",
        /// More, for people.
        pub detail: String = "bsp:Detail",
    }
}
