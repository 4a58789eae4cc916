//! What an offer would change of the reservation that it replaces.

use crate::text;
use crate::zone::Zone;
use service::{AgreementView, MoneyView, QuotationView};

/// The differences in a line: `End: 11:00 → 11:30; resource: local → other; 10 EUR more than now`, with whole dates.
pub(crate) fn difference_in_words(old: &AgreementView, new: &QuotationView) -> String {
    let zone = Zone::present();
    let time = |at: &Option<String>| {
        at.as_ref()
            .map_or_else(|| "none".to_owned(), |at| zone.tell_here(at))
    };
    let own = |text: &str| Some(text.to_owned());
    let sizes = [
        ("start", time(&old.planned_start), time(&own(&new.start))),
        ("end", time(&old.planned_end), time(&own(&new.end))),
        ("nodes", old.nodes.to_string(), new.nodes.to_string()),
        (
            "resource",
            old.resource.clone().unwrap_or_else(|| "none".to_owned()),
            new.resource.clone(),
        ),
    ];
    let changed = sizes.into_iter().filter(|(_, before, after)| before != after);
    let changed = changed.map(|(name, before, after)| format!("{name}: {before} → {after}"));
    let price = new.price_difference.as_ref().map(price_difference_in_words);
    let parts: Vec<_> = changed.chain(price).collect();
    text::capitalised(&parts.join("; "))
}

/// By how much a price differs from the one that it replaces.
pub(crate) fn price_difference_in_words(money: &MoneyView) -> String {
    match money.amount.strip_prefix('-') {
        Some(less) => format!("{less} {} less than now", money.currency),
        None if money.amount == "0" => "the same price as now".to_owned(),
        None => format!("{money} more than now"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_less_is_said_to_cost_less() {
        let told = |amount: &str| {
            price_difference_in_words(&MoneyView {
                amount: amount.to_owned(),
                currency: "EUR".to_owned(),
            })
        };
        assert_eq!(told("1.5"), "1.5 EUR more than now");
        assert_eq!(told("-0.25"), "0.25 EUR less than now");
        assert_eq!(told("0"), "the same price as now");
    }
}
