//! I9: the ledger balances, and its entries of an agreement are the agreed amounts of the events that came about.

use std::collections::{BTreeMap, BTreeSet};

use domain::agreement::{
    Account, Agreement, AgreementState, Entry, GuaranteeState, Money, Obligated, PostingKind, RunOutcome,
};

use super::findings::Findings;
use super::findings::Invariant::I9;

/// Checks the ledger's entries of one agreement.
pub(super) fn check_money(agreement: &Agreement, entries: &[Entry], found: &mut Findings) {
    let party = Account::Party(agreement.party.clone());
    // The money between a peer and us is not its party's.
    let of_peers: BTreeSet<_> = entries
        .iter()
        .filter(|entry| matches!(entry.account, Account::Peer(_)))
        .map(|entry| entry.posting)
        .collect();
    let entries: Vec<&Entry> = entries
        .iter()
        .filter(|entry| !of_peers.contains(&entry.posting))
        .collect();
    let mut sums: BTreeMap<&str, i128> = BTreeMap::new();
    for entry in &entries {
        let stranger = entry.account != party && entry.account != Account::Provider;
        found.must(!stranger, I9, || {
            format!("posting {} is on the account {}", entry.posting, entry.account)
        });
        if entry.account == party {
            *sums.entry(entry.kind.word()).or_default() += i128::from(entry.amount.micros);
        }
    }
    let paid = |kind: PostingKind| -sums.get(kind.word()).copied().unwrap_or(0);
    let price = agreement.price.map_or(0, |price| i128::from(price.micros));
    let owed = agreement.price_of_delivered();
    let due = owed.map_or(0, |owed| i128::from(owed.micros));
    found.must(paid(PostingKind::Price) == due, I9, || {
        let price = agreement.price.as_ref().map(ToString::to_string);
        let (price, charged) = (price.as_deref().unwrap_or("nothing"), paid(PostingKind::Price));
        format!("its price is {price}, of which it owes {due} and was charged {charged} millionths")
    });
    let overrun = agreement
        .overrun_price()
        .map_or(0, |price| i128::from(price.micros));
    let due = if owed.is_some() { overrun } else { 0 };
    found.must(paid(PostingKind::Overrun) == due, I9, || {
        let charged = paid(PostingKind::Overrun);
        format!("it owes {due} millionths for the time beyond its contract and was charged {charged}")
    });
    for kind in [PostingKind::Cancellation, PostingKind::Change] {
        let fee = paid(kind);
        found.must((0..=price).contains(&fee), I9, || {
            format!("a fee of {fee} millionths for its {kind} is more than its price")
        });
    }
    let cancelled = agreement.state == AgreementState::Terminated && agreement.outcome.is_none();
    found.must(cancelled || paid(PostingKind::Cancellation) == 0, I9, || {
        "it paid a fee for ending it, and was not ended before its slot".to_owned()
    });
    let compensated = -paid(PostingKind::Compensation);
    // Where only an addition to its contract was lost, it counts as stopped.
    let is_lost = matches!(agreement.outcome, Some(RunOutcome::Lost | RunOutcome::Killed));
    found.must(compensated == 0 || is_lost && compensated > 0, I9, || {
        format!("it was compensated with {compensated} millionths, and the provider has not ended it")
    });
    check_money_of_compensations(agreement, &entries, &party, found);
    if let Some(Money { currency, .. }) = agreement.price {
        let foreign = entries.iter().any(|entry| {
            let own = [
                PostingKind::Penalty,
                PostingKind::Reward,
                PostingKind::Compensation,
            ];
            !own.contains(&entry.kind) && entry.amount.currency != currency
        });
        found.must(!foreign, I9, || {
            format!("it is priced in {currency} and was charged in another currency")
        });
    }
}

/// Every compensation that a guarantee says was paid is in the ledger, and no other.
fn check_money_of_compensations(
    agreement: &Agreement,
    entries: &[&Entry],
    party: &Account,
    found: &mut Findings,
) {
    for (kind, state) in [
        (PostingKind::Penalty, GuaranteeState::Violated),
        (PostingKind::Reward, GuaranteeState::Fulfilled),
    ] {
        let mut owed: i128 = 0;
        for guarantee in agreement
            .guarantees
            .iter()
            .filter(|guarantee| guarantee.state == state)
        {
            let mut values = guarantee.values.clone();
            let to_party = (values.obligated == Obligated::Provider) == (kind == PostingKind::Penalty);
            for compensation in values.for_state(state) {
                let worth = compensation
                    .worth
                    .of(agreement.price)
                    .map_or(0, |money| money.micros);
                let sum = i128::from(worth) * i128::from(compensation.paid);
                owed += if to_party { sum } else { -sum };
            }
        }
        let posted: i128 = entries
            .iter()
            .filter(|entry| entry.kind == kind && entry.account == *party)
            .map(|entry| i128::from(entry.amount.micros))
            .sum();
        found.must(posted == owed, I9, || {
            format!(
                "its guarantees say that {owed} millionths were paid in {kind}, and the ledger has {posted}"
            )
        });
    }
}
