//! The lowest budget that a refusal gives is accepted when it is offered, with any plan and any price list.

use proptest::prelude::*;
use scheduler::{Reason, Request};

use super::*;
use crate::tests::price_plan::{Domain, price_list, proposal, wish, wished_request};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_lowest_budget_of_a_refusal_is_accepted(
        pricing in price_list(),
        standing in prop::collection::vec(wish(), 0..25),
        wish in wish(),
        share in 0..120_i64,
    ) {
        let mut domain = Domain::new(pricing);
        let mut agreed = Vec::new();
        for of_it in standing {
            agreed.extend(domain.place(0, wished_request(of_it, None)).ok().map(|accepted| accepted.agreement));
        }
        // A part of the price where everything is free.
        let mut empty = Domain::new(domain.settings.pricing.clone().unwrap());
        let Ok(alone) = empty.place(0, wished_request(wish, None)) else { return Ok(()) };
        let budget = alone.agreement.price.unwrap().micros * share / 100;
        match domain.place(0, wished_request(wish, Some(budget))) {
            Ok(accepted) => prop_assert!(accepted.agreement.price.unwrap().micros <= budget),
            Err(refusal) => {
                if let Some(lowest) = refusal.lowest_budget {
                    prop_assert_eq!(refusal.reason, Reason::BudgetTooLow);
                    prop_assert!(lowest.micros > budget);
                    let accepted = domain.place(0, wished_request(wish, Some(lowest.micros)));
                    let price = accepted.map(|accepted| accepted.agreement.price.unwrap().micros);
                    prop_assert!(price.as_ref().is_ok_and(|price| *price <= lowest.micros), "{:?} of {:?}", price, lowest);
                }
                // One of them, since each is meant alone.
                let told = refusal.relaxations;
                let which = usize::try_from(share).unwrap() % told.len().max(1);
                if let Some(relaxation) = told.get(which) {
                    let (nodes, duration, start, slack) = wish;
                    let asked = Request {
                        id: 0,
                        submitted: Time(0),
                        ready: Time(start),
                        deadline: Time(start + duration + slack),
                        duration,
                        nodes,
                        revenue: 0,
                    };
                    let relaxed = relaxation.applied(&asked);
                    let again = proposal(relaxed.nodes, relaxed.duration, relaxed.window(), Some(budget));
                    prop_assert!(domain.place(0, again).is_ok(), "{:?}", relaxation);
                }
            }
        }
        // An agreement keeps its price when others come later.
        for agreement in agreed {
            prop_assert_eq!(domain.state.agreements.get(agreement.id).unwrap().price, agreement.price);
        }
    }
}
