//! What the checks find: the invariants, the faults that violate them, and the statements whose rows are faults.

use std::fmt;

use domain::clock;
use scheduler::Time;
use serde::Serialize;
use uuid::Uuid;

use crate::engine::{Columns, Result, statements};

/// The most findings that are gathered: further ones would not help.
pub(super) const FINDINGS_MAX: usize = FINDINGS_MAX_ROWS as usize;
pub(super) const FINDINGS_MAX_ROWS: u32 = 1_000;

/// The invariants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Invariant {
    /// Every row can be read.
    Readable,
    /// Nodes in use are no more than there are, and each has one owner.
    I1,
    /// An offer is accepted once at most, in time, and by its own party.
    I4,
    /// The promised nodes count exactly.
    I5,
    /// States move along allowed edges.
    I6,
    /// The ledger balances, and agrees with the agreements.
    I9,
    /// The audit trail is whole.
    I10,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The invariant that it violates.
    pub invariant: Invariant,
    /// The agreement or resource that it is about.
    pub subject: String,
    /// The fault, in words.
    pub what: String,
}

impl Finding {
    /// A fault of the file of signed heads of the audit trail.
    pub fn of_heads(what: String) -> Self {
        Self::new(Invariant::I10, "signed heads".to_owned(), what)
    }

    pub(super) fn new(invariant: Invariant, subject: String, what: String) -> Self {
        Self {
            invariant,
            subject,
            what,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.invariant, self.subject, self.what)
    }
}

/// The findings about one agreement.
pub(super) struct Findings<'a> {
    agreement: Uuid,
    all: &'a mut Vec<Finding>,
}

impl<'a> Findings<'a> {
    pub(super) fn of(agreement: Uuid, all: &'a mut Vec<Finding>) -> Self {
        Self { agreement, all }
    }

    pub(super) fn push(&mut self, invariant: Invariant, what: String) {
        let subject = format!("agreement {}", self.agreement);
        self.all.push(Finding::new(invariant, subject, what));
    }

    /// Pushes the fault `what` unless the condition holds.
    pub(super) fn must(&mut self, holds: bool, invariant: Invariant, what: impl FnOnce() -> String) {
        if !holds {
            self.push(invariant, what());
        }
    }
}

/// Makes the finding of a row that is a fault.
pub(super) type FindingOfRow = fn(&Columns<'_>) -> Result<Finding>;

/// The statements each of whose rows is a fault, with what it is.
pub(super) const ROWS_AT_FAULT: [(&str, FindingOfRow); 4] = [
    (statements::DOUBLE_BINDINGS, finding_of_double_binding),
    (statements::UNBALANCED, finding_of_unbalanced_ledger),
    (statements::SHARED_AT_PEERS, finding_of_shared_at_peer),
    (statements::WRONG_DAYS, finding_of_wrong_day),
];

fn finding_of_double_binding(row: &Columns<'_>) -> Result<Finding> {
    let (resource, node) = (row.text("resource")?, row.integer("node")?);
    let (one, other) = (row.id("agreement")?, row.id("other")?);
    let from = Time(row.integer("next_s")?);
    Ok(finding_of_two_owners(&resource, node, from, (one, other)))
}

pub(super) fn finding_of_two_owners(
    resource: &str,
    node: i64,
    from: Time,
    (one, other): (Uuid, Uuid),
) -> Finding {
    let from = clock::time_in_words(from);
    let what = format!("node {node} has two owners from {from} on, the agreements {one} and {other}");
    Finding::new(Invariant::I1, format!("resource {resource}"), what)
}

/// One finding for each agreement that is not there, with the places that name it. They come in their order.
pub(super) fn findings_of_missing_agreements(named: &[(Uuid, String)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for of_one in named.chunk_by(|one, next| one.0 == next.0) {
        let places: Vec<_> = of_one.iter().map(|(_, place)| place.as_str()).collect();
        let what = format!("it is not there, and is named by {}", places.join(", "));
        Findings::of(of_one[0].0, &mut findings).push(Invariant::I10, what);
    }
    findings
}

fn finding_of_shared_at_peer(row: &Columns<'_>) -> Result<Finding> {
    let (peer, address) = (row.text("peer")?, row.text("address")?);
    let what = format!("{address} is behind several agreements here");
    Ok(Finding::new(Invariant::I5, peer, what))
}

fn finding_of_unbalanced_ledger(row: &Columns<'_>) -> Result<Finding> {
    let what = format!("posting {} does not balance", row.id("posting")?);
    Ok(Finding::new(Invariant::I9, "ledger".to_owned(), what))
}

fn finding_of_wrong_day(row: &Columns<'_>) -> Result<Finding> {
    let (account, currency, day) = (row.text("account")?, row.text("currency")?, row.integer("day")?);
    let what = format!("the sums of {account} in {currency} on day {day} are not those of its entries");
    Ok(Finding::new(Invariant::I9, "ledger".to_owned(), what))
}
