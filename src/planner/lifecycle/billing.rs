//! The postings that follow from the events of an agreement: the price when its slot is over, fees for ending or
//! changing it, penalties and rewards of its guarantees. Every posting is stored with the change that it follows from.

use scheduler::{Fraction, Interval, Time, counted};
use uuid::Uuid;

use crate::agreement::{
    Account, Agreement, Event, EventKind, GuaranteeState, Money, Obligated, Posting, PostingKind, Shape,
    assess, part_of_amount,
};
use crate::planner::admission::payer::Payer;
use crate::planner::admission::price_list::Priced;
use crate::planner::decider::Decider;
use crate::planner::error::Result;
use crate::planner::handle::Planner;
use crate::planner::request::Termination;
use crate::planner::resources::need::Need;
use crate::store::Change;

impl Planner {
    /// The postings that would follow at once if an agreement were ended. It is ended on a copy of the plan, in O(n) for all that is
    /// planned.
    ///
    /// # Errors
    /// Those of [`Planner::terminate`].
    pub async fn postings_of_ending(&self, termination: Termination) -> Result<Vec<Posting>> {
        let verb = |of: &mut Decider<'_>| {
            let before = of.batch.len();
            of.terminate(termination)?;
            let posted = of.batch[before..].iter().filter_map(|change| match change {
                Change::Post(posting) => Some((**posting).clone()),
                _ => None,
            });
            Ok(posted.collect())
        };
        self.dry().ask(verb).await
    }
}

impl Decider<'_> {
    /// Assesses the guarantees of an agreement as it stands now, and posts the amounts that are due. Returns the lines
    /// for its timeline.
    pub(in crate::planner) fn assess(&mut self, agreement: &mut Agreement) -> Vec<Event> {
        let mut events = Vec::new();
        if self.awaits_word_of_cluster(agreement) {
            // Its nodes may have been its party's since its slot began.
            return events;
        }
        let mut guarantees = std::mem::take(&mut agreement.guarantees);
        for guarantee in &mut guarantees {
            if assess(guarantee, agreement, self.now) {
                let evidence = guarantee.evidence.as_deref().unwrap_or_default();
                let detail = format!("{} {evidence}", guarantee.assessed());
                events.push(self.event(EventKind::Assessed, detail));
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
                let times = compensation.take_due(since, self.now);
                let Some(amount) = compensation.amount(times, agreement.price) else {
                    continue;
                };
                let word = state.word().to_lowercase();
                let detail = format!("{} is {word}", guarantee.name);
                events.push(self.event(line, format!("{amount}: {detail}")));
                let party = Account::Party(agreement.party.clone());
                let (from, to) = if from_provider {
                    (Account::Provider, party)
                } else {
                    (party, Account::Provider)
                };
                self.post(agreement.id, kind, (from, to), amount, detail);
            }
        }
        agreement.guarantees = guarantees;
        events
    }

    /// Posts the price of an agreement that is over, for the part of its time in which its slot has been its party's: also
    /// where the party let its work be stopped, or its files kept that from starting: else they were a way around the fee for
    /// ending an agreement. Not where the provider has lost it.
    pub(in crate::planner) fn charge_price(&mut self, agreement: &Agreement) -> Option<Event> {
        let owed = agreement.price_owed()?;
        let shortfall = agreement.shortfall_in_words();
        let what = shortfall.map_or_else(
            || "price".to_owned(),
            |shortfall| format!("price, in part: {shortfall}"),
        );
        self.charge(agreement, PostingKind::Price, owed, &what)
    }

    /// Posts the time that an ended agreement has used beyond its contract, at the agreed rate.
    pub(in crate::planner) fn charge_overrun(&mut self, agreement: &Agreement) -> Option<Event> {
        let amount = agreement.overrun_price()?;
        let what = format!(
            "{} beyond its contract",
            counted(agreement.used_overrun(), "second")
        );
        self.charge(agreement, PostingKind::Overrun, amount, &what)
    }

    /// Takes an amount from the party of an agreement for the provider; nothing where it is nothing.
    pub(in crate::planner) fn charge(
        &mut self,
        agreement: &Agreement,
        kind: PostingKind,
        amount: Money,
        what: &str,
    ) -> Option<Event> {
        if amount.micros <= 0 {
            return None;
        }
        let accounts = (Account::Party(agreement.party.clone()), Account::Provider);
        self.post(agreement.id, kind, accounts, amount, what.to_owned());
        Some(self.event(EventKind::Charged, format!("{amount}: {what}")))
    }

    /// The fee for ending an agreement before its slot, now that it has left the plan. It is the provider's part of its
    /// price, at least the amount by which the same request would be cheaper now, and at most its price. So it never pays
    /// to end an agreement and to book it again at the same instant. The fee is zero where its work was lost before: the
    /// loss would have cost nothing, and its party need not wait for another time. Where a peer has it, the fee is at least
    /// that peer's charge for its end.
    pub(in crate::planner) fn cancellation_fee(
        &self,
        agreement: &Agreement,
        charge_of_peer: Option<Money>,
    ) -> Option<Money> {
        if agreement.restarts() > 0 {
            return None;
        }
        let (price, rate) = (agreement.price?, self.settings.pricing.as_ref()?.cancellation);
        let rule = fraction_of_amount(price, rate).micros;
        let cheaper = self.cheaper_by(agreement, price);
        let there = charge_of_peer.filter(|of| of.currency == price.currency);
        let there = there.map_or(0, |of| of.micros);
        let fee = rule.max(cheaper).max(there).min(price.micros);
        Some(Money::new(fee, price.currency))
    }

    /// The fee for a change of an agreement to one of another price, beside the difference of the prices. It is the
    /// provider's part of its price. Where the price falls, it is at least the fee for ending that part.
    pub(in crate::planner) fn change_fee(&self, agreement: &Agreement, next: Option<Money>) -> Option<Money> {
        let (price, pricing) = (agreement.price?, self.settings.pricing.as_ref()?);
        let given_up = Money::new((price.micros - next?.micros).max(0), price.currency);
        let fee = fraction_of_amount(price, pricing.change).micros;
        let rule = fraction_of_amount(given_up, pricing.cancellation).micros;
        let cheaper = self.cheaper_by(agreement, price).min(given_up.micros);
        let fee = (fee + rule.max(cheaper)).min(price.micros);
        Some(Money::new(fee, price.currency))
    }

    /// By how much the nodes of an agreement would be cheaper now in its window than its price, in millionths, wherever
    /// they would cost least; nothing where they would not, or where a peer has it, whose prices are its own. O(log n) for
    /// each resource.
    fn cheaper_by(&self, agreement: &Agreement, price: Money) -> i64 {
        if self.is_at_peer(agreement) {
            return 0;
        }
        let window = Interval::new(agreement.ready.max(self.present_second()), agreement.deadline);
        let need = Need {
            // As it would be booked again.
            of: None,
            ..Need::of_agreement(agreement, window)
        };
        let resources = (0..).map_while(|index| Some((index, self.plan.resources.get(index)?)));
        let prices = resources.filter_map(|(index, of)| {
            let Shape { nodes, duration } = self.plan.resources.shortest(index, &need, need.shapes[0])?;
            if of.resource.is_peer() || nodes > of.resource.capacity || window.duration() < duration {
                return None;
            }
            let latest = Interval::of(window.end - duration, duration);
            let mut priced = Priced::of(Payer::of_agreement(agreement), (latest, nodes), window);
            if agreement.slots.is_split() {
                priced.node_seconds = agreement.node_seconds();
            }
            // The offers that the party has held for a while do not raise the price.
            let load = self.window_load_without(&agreement.party, index, window);
            self.price_under(load, index, priced)
        });
        let least = prices.map(|least| least.micros).min().unwrap_or(price.micros);
        (price.micros - least).max(0)
    }

    /// Assesses the agreements for which time alone may decide something by now.
    pub(in crate::planner) fn assess_due(&mut self) {
        for id in self.plan.agenda.times.due_by(self.present_second()) {
            let Some(mut agreement) = self.plan.must_get(id) else {
                continue;
            };
            let events = self.assess(&mut agreement);
            if events.is_empty() {
                // A check without a result need not be stored: it is repeated after a restart.
                self.plan.replace(agreement, Time::MIN);
            } else {
                self.update(agreement, events);
            }
        }
    }

    /// Has the provider pay an amount to the party of an agreement that it ends. Returns the line for its timeline.
    pub(in crate::planner) fn compensate(
        &mut self,
        agreement: &Agreement,
        amount: Money,
        why: &str,
    ) -> Event {
        let accounts = (Account::Provider, Account::Party(agreement.party.clone()));
        let detail = format!("compensation: {why}");
        let event = self.event(EventKind::Penalty, format!("{amount}: {detail}"));
        self.post(agreement.id, PostingKind::Compensation, accounts, amount, detail);
        event
    }

    pub(in crate::planner) fn post(
        &mut self,
        agreement: Uuid,
        kind: PostingKind,
        (from, to): (Account, Account),
        amount: Money,
        detail: String,
    ) {
        self.batch.push(Change::Post(Box::new(Posting {
            id: Uuid::now_v7(),
            at: self.now,
            agreement,
            kind,
            from,
            to,
            amount,
            detail,
        })));
    }
}

/// A part of an amount, to the nearest millionth.
fn fraction_of_amount(amount: Money, fraction: Fraction) -> Money {
    part_of_amount(amount, fraction.numerator.into(), fraction.denominator.into())
}

#[cfg(test)]
mod tests;
