//! Nodes are kept for offers, for which others may move.

use std::collections::BTreeSet;

use domain::agreement::{NegotiationOffer, OfferState};
use domain::change::Change;
use scheduler::Reason;
use uuid::Uuid;

use crate::decider::Decider;
use crate::life::update;
use crate::placement::trial;
use crate::refusal::{bare_refusal, refusal_in_short};
use crate::table::{holds, replace};

/// Keeps the nodes of an offer beside the nodes of the other offers of its choice. Returns whether that was
/// possible. Agreements that may move make room for it, as for an agreement. A frozen resource keeps nothing more.
pub(crate) fn hold(decider: &mut Decider<'_>, offer: &NegotiationOffer) -> bool {
    keep_offer_again(decider, offer, true)
}

/// Keeps the nodes of an offer as [`hold()`] does; where it is not new, a frozen resource keeps what it had for it.
fn keep_offer_again(decider: &mut Decider<'_>, offer: &NegotiationOffer, is_new: bool) -> bool {
    let (Some(answer), Some(terms)) = (offer.parent, &offer.terms) else {
        return false;
    };
    let mut numbers = decider.state.table.hold_numbers();
    let kept = trial::run_trial(&mut decider.search(), |search| {
        holds::hold_beside_others(search, (offer.negotiation, answer), terms, (is_new, &mut numbers))
    });
    decider.state.table.note_hold_numbers(&numbers);
    let Some((added, moves)) = kept else {
        return false;
    };
    let choice = decider.state.table.choice_of(offer.negotiation, answer);
    for held in added {
        decider.state.table.keep(choice, held);
    }
    update::update_after_moves(decider, &moves, "to keep an offer open");
    true
}

/// Keeps again as many as possible of the offers of a choice, each beside the offers before it, after nodes have
/// gone or the agreement that it is about has moved. The others are withdrawn, and their party is told `why`.
/// Returns their number.
pub(crate) fn keep_offers_again(decider: &mut Decider<'_>, choice: Uuid, why: &str) -> usize {
    holds::take_hold_out(&mut decider.bargaining(), choice);
    let offers: Vec<NegotiationOffer> = decider.state.table.held_offers_of(choice).cloned().collect();
    let Some(negotiation) = offers.first().map(|offer| offer.negotiation) else {
        return 0;
    };
    for offer in &offers {
        decider.state.table.put(NegotiationOffer {
            held: None,
            ..offer.clone()
        });
    }
    let mut withdrawn = Vec::new();
    for offer in offers {
        if keep_offer_again(decider, &offer, false) {
            decider.state.table.put(offer);
        } else {
            withdrawn.push(offer);
        }
    }
    let count = withdrawn.len();
    for mut offer in withdrawn {
        let resource = offer.terms.as_ref().map_or("", |terms| &terms.resource);
        let binding = format!("{why}, and no other nodes of {resource} are free for it");
        offer.refusal = Some(refusal_in_short(&bare_refusal(
            Reason::NoCapacityInWindow,
            binding,
        )));
        offer.state = OfferState::Rejected;
        offer.released = Some(decider.now);
        decider.batch.push(Change::UpdateOffer(Box::new(offer.clone())));
        decider.state.table.put(offer);
    }
    replace::unpin_replaced(&mut decider.bargaining(), negotiation);
    count
}

/// Keeps again as many as possible of the offers of answers that have given way to lost work.
pub(crate) fn keep_all_offers_again(decider: &mut Decider<'_>, answers: BTreeSet<Uuid>) {
    let why = "it had to make room for work that was not done in its slot";
    for answer in answers {
        keep_offers_again(decider, answer, why);
    }
}
