//! Debts: a party's accounts with their entries, in elements of our own.

use crate::scheduling::{Budget, write_budget};
use crate::xml::time::DateTime;
use crate::xml::writer::Xml;

/// `bsp:Accounts`: the balances of accounts, and a page of their postings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountList {
    /// The accounts, one for each currency that they hold.
    pub accounts: Vec<ListedAccount>,
    /// Entries, newest first.
    pub entries: Vec<ListedEntry>,
    /// Cursor of the next page; None on the last one.
    pub next: Option<String>,
}

/// `bsp:Account`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedAccount {
    /// Its name.
    pub name: String,
    /// Its balance; below zero it owes.
    pub balance: Budget,
}

/// `bsp:Entry`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEntry {
    /// The posting that it is a side of.
    pub posting: String,
    /// When it was posted.
    pub at: DateTime,
    /// Name of the account.
    pub account: String,
    /// The reason, in a stable word.
    pub kind: String,
    /// The agreement that it belongs to.
    pub agreement_id: String,
    /// The amount added; taken where it is negative.
    pub amount: Budget,
    /// More, for people.
    pub detail: String,
}

impl AccountList {
    /// As a document of its own.
    pub fn to_xml(&self) -> String {
        let mut xml = Xml::document("bsp:Accounts", &["bsp"]);
        for account in &self.accounts {
            xml.start("bsp:Account");
            xml.element("bsp:Name", &account.name);
            write_budget(&mut xml, "bsp:Balance", &account.balance);
            xml.end();
        }
        for entry in &self.entries {
            xml.start("bsp:Entry");
            xml.element("bsp:Posting", &entry.posting);
            xml.element("bsp:At", entry.at);
            xml.element("bsp:Name", &entry.account);
            xml.element("bsp:Kind", &entry.kind);
            xml.element("bsp:AgreementId", &entry.agreement_id);
            write_budget(&mut xml, "bsp:Sum", &entry.amount);
            xml.element("bsp:Detail", &entry.detail);
            xml.end();
        }
        xml.optional_element("bsp:Next", self.next.as_deref());
        xml.finish()
    }
}
