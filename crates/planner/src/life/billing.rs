//! The postings that follow from the events of an agreement: the price when its slot is over, fees for ending or
//! changing it, penalties and rewards of its guarantees. Every posting is stored with the change that it follows from.

use domain::agreement::{
    Account, Agreement, Event, EventKind, GuaranteeState, Money, Obligated, Posting, PostingKind,
};
use domain::change::Change;
use scheduler::counted;
use uuid::Uuid;

use crate::decider::Decider;
use crate::life::awaited_words;

/// Assesses the guarantees of an agreement as it stands now, and posts the amounts that are due. Returns the lines
/// for its timeline.
pub(crate) fn assess_and_bill(decider: &mut Decider<'_>, agreement: &mut Agreement) -> Vec<Event> {
    let mut events = Vec::new();
    if awaited_words::awaits_word_of_cluster(decider.view(), agreement) {
        // Its nodes may have been its party's since its slot began.
        return events;
    }
    let awaits_peer = awaited_words::awaits_word_of_peer(decider.view(), agreement);
    let mut guarantees = std::mem::take(&mut agreement.guarantees);
    for guarantee in &mut guarantees {
        if awaits_peer {
            // Its nodes may be its party's already. Time decides nothing before the word of its peer, or its end.
            guarantee.values.checked = Some(decider.now);
        } else if domain::agreement::assess(guarantee, agreement, decider.now) {
            let evidence = guarantee.evidence.as_deref().unwrap_or_default();
            let detail = format!("{} {evidence}", guarantee.assessed());
            events.push(decider.event(EventKind::Assessed, detail));
        }
        let Some(since) = guarantee.values.determined else {
            continue;
        };
        let (state, obligated) = (guarantee.state, guarantee.values.obligated);
        let (kind, line) = match state {
            GuaranteeState::Violated => (PostingKind::Penalty, EventKind::Penalty),
            _ => (PostingKind::Reward, EventKind::Reward),
        };
        // The side that owes the guarantee pays its penalties and gets its rewards.
        let from_provider = (obligated == Obligated::Provider) == (kind == PostingKind::Penalty);
        for compensation in guarantee.values.for_state(state) {
            let times = compensation.take_due(since, decider.now);
            let Some(amount) = compensation.amount(times, agreement.price) else {
                continue;
            };
            let word = state.word().to_lowercase();
            let detail = format!("{} is {word}", guarantee.name);
            events.push(decider.event(line, format!("{amount}: {detail}")));
            let party = Account::Party(agreement.party.clone());
            let (from, to) = if from_provider {
                (Account::Provider, party)
            } else {
                (party, Account::Provider)
            };
            post(decider, agreement.id, kind, (from, to), amount, detail);
        }
    }
    agreement.guarantees = guarantees;
    events
}

/// Posts the price of an agreement that is over, for the part of its time in which its slot has been its party's: also
/// where the party let its work be stopped, or its files kept that from starting: else they were a way around the fee for
/// ending an agreement. Not where the provider has lost it.
pub(crate) fn bill_price(decider: &mut Decider<'_>, agreement: &Agreement) -> Option<Event> {
    let owed = agreement.price_of_delivered()?;
    let shortfall = agreement.undelivered_in_words();
    let what = shortfall.map_or_else(
        || "price".to_owned(),
        |shortfall| format!("price, in part: {shortfall}"),
    );
    charge(decider, agreement, PostingKind::Price, owed, &what)
}

/// Posts the time that an ended agreement has used beyond its contract, at the agreed rate.
pub(crate) fn bill_overrun(decider: &mut Decider<'_>, agreement: &Agreement) -> Option<Event> {
    let amount = agreement.overrun_price()?;
    let what = format!(
        "{} beyond its contract",
        counted(agreement.used_overrun(), "second")
    );
    charge(decider, agreement, PostingKind::Overrun, amount, &what)
}

/// Takes an amount from the party of an agreement for the provider; nothing where it is nothing.
pub(crate) fn charge(
    decider: &mut Decider<'_>,
    agreement: &Agreement,
    kind: PostingKind,
    amount: Money,
    what: &str,
) -> Option<Event> {
    if amount.micros <= 0 {
        return None;
    }
    let accounts = (Account::Party(agreement.party.clone()), Account::Provider);
    post(decider, agreement.id, kind, accounts, amount, what.to_owned());
    Some(decider.event(EventKind::Charged, format!("{amount}: {what}")))
}

/// Has the provider pay an amount to the party of an agreement that it ends. Returns the line for its timeline.
pub(crate) fn bill_compensation(
    decider: &mut Decider<'_>,
    agreement: &Agreement,
    amount: Money,
    why: &str,
) -> Event {
    let accounts = (Account::Provider, Account::Party(agreement.party.clone()));
    let detail = format!("compensation: {why}");
    let event = decider.event(EventKind::Penalty, format!("{amount}: {detail}"));
    post(
        decider,
        agreement.id,
        PostingKind::Compensation,
        accounts,
        amount,
        detail,
    );
    event
}

pub(crate) fn post(
    decider: &mut Decider<'_>,
    agreement: Uuid,
    kind: PostingKind,
    (from, to): (Account, Account),
    amount: Money,
    detail: String,
) {
    decider.batch.push(Change::Post(Box::new(Posting {
        id: (decider.make_id)(),
        at: decider.now,
        agreement,
        kind,
        from,
        to,
        amount,
        detail,
    })));
}
