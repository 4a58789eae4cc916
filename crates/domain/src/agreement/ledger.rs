//! The debts between a party and the provider: postings, each from one account to another, so that the ledger balances after each
//! of them.

use std::fmt;

use scheduler::worded;
use uuid::Uuid;

use super::Money;
use crate::clock::Micros;

/// An account of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// The provider's.
    Provider,
    /// A party's, by its name.
    Party(String),
    /// That of another domain which carries agreements out for us, by its name.
    Peer(String),
}

/// The prefix of a party's account; the provider's has none.
const PARTY: &str = "party:";
/// The prefix of a peer's account.
const PEER: &str = "peer:";

impl Account {
    /// The account that a stored word names.
    pub fn from_word(word: &str) -> Option<Self> {
        match (word.strip_prefix(PARTY), word.strip_prefix(PEER)) {
            (Some(name), _) => Some(Self::Party(name.to_owned())),
            (_, Some(name)) => Some(Self::Peer(name.to_owned())),
            _ if word == "provider" => Some(Self::Provider),
            _ => None,
        }
    }
}

impl fmt::Display for Account {
    /// The word that is stored and shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider => f.write_str("provider"),
            Self::Party(name) => write!(f, "{PARTY}{name}"),
            Self::Peer(name) => write!(f, "{PEER}{name}"),
        }
    }
}

worded! {
    /// The reason of a posting.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum PostingKind {
        /// The price of an agreement, once its slot has been its party's.
        Price = "price",
        /// The fee for ending an agreement before its slot.
        Cancellation = "cancellation",
        /// The fee for a change of an agreement.
        Change = "change",
        /// The price of the time that a slot was made longer because its work was not over.
        Overrun = "overrun",
        /// A violated guarantee costs the side that owes it.
        Penalty = "penalty",
        /// A fulfilled guarantee earns the side that owes it.
        Reward = "reward",
        /// What an operator has the provider pay beside, for an agreement that it ends.
        Compensation = "compensation",
    }
}

/// Money that goes from one account to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting {
    /// Assigned by the service; `UUIDv7`, so that ids sort by time.
    pub id: Uuid,
    /// When it was posted.
    pub at: Micros,
    /// The agreement that it belongs to.
    pub agreement: Uuid,
    /// The reason.
    pub kind: PostingKind,
    /// The account from which it is taken.
    pub from: Account,
    /// The account to which it is added.
    pub to: Account,
    /// How much: more than nothing.
    pub amount: Money,
    /// The particulars, in words.
    pub detail: String,
}

/// One side of a posting: the change of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The posting.
    pub posting: Uuid,
    /// When it was posted.
    pub at: Micros,
    /// The account.
    pub account: Account,
    /// The amount added; taken where it is negative.
    pub amount: Money,
    /// The agreement that it belongs to.
    pub agreement: Uuid,
    /// The reason.
    pub kind: PostingKind,
    /// The particulars, in words.
    pub detail: String,
}

/// The amount of one currency that an account holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balance {
    /// The account.
    pub account: Account,
    /// The sum of its entries.
    pub amount: Money,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_their_accounts_and_kinds() {
        for account in [
            Account::Provider,
            Account::Party("provider".into()),
            Account::Party("party:x".into()),
            Account::Peer("party:x".into()),
        ] {
            assert_eq!(Account::from_word(&account.to_string()), Some(account));
        }
        assert_eq!(Account::from_word("bank"), None);
        for kind in PostingKind::ALL {
            assert_eq!(PostingKind::from_word(kind.word()), Some(kind));
        }
    }
}
