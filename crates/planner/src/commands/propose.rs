//! The provider proposes something.

use domain::agreement::{Agreement, NegotiationInstance, NegotiationOffer, ProposalReason};
use domain::change::Change;

use super::{Command, Decision, ExchangeOffers, exchange_offers};
use crate::decider::{Decider, DecisionStep};
use crate::error::Error;
use crate::table::negotiations;

/// A negotiation of the provider's own is to be opened with its offers, which are held.
///
/// # Errors
/// [`Error::NotFound`] where the agreement that is to be moved does not wait any more, [`Error::Stale`] where enough is proposed, or
/// nothing could be held, [`Error::Unavailable`].
#[derive(Debug, Clone)]
pub struct Propose {
    /// The negotiation, about an agreement and with the reason.
    pub negotiation: NegotiationInstance,
    /// The document with which a party would ask for it.
    pub document: String,
    /// The agreement as it stands, and the offer in its place.
    pub offers: ExchangeOffers,
}

impl Command for Propose {
    type Answer = Vec<NegotiationOffer>;

    fn decide(self, decider: &mut Decider<'_>) -> Decision<Self> {
        let instance = self.negotiation;
        let about = instance.agreement.ok_or(Error::NotFound)?;
        let again = match instance.proposed {
            Some(ProposalReason::BetterFit) => {
                let waits = decider
                    .state
                    .agreements
                    .get(about)
                    .is_some_and(Agreement::is_waiting);
                if !waits {
                    return Err(Error::NotFound);
                }
                decider.state.table.negotiations_about(about).next().is_some()
                    || !decider
                        .state
                        .table
                        .may_suggest_a_move(decider.settings.proposals.moves_max)
            }
            reason => {
                let mut open = decider.state.table.negotiations_about(about);
                open.any(|open| open.instance.proposed == reason)
            }
        };
        if again {
            return Err(Error::Stale("enough is proposed"));
        }
        let id = instance.id;
        decider.state.table.open(instance.clone(), []);
        decider.batch.push(Change::CreateNegotiation {
            negotiation: instance,
            document: self.document,
        });
        let answered = exchange_offers::put_exchanged_offers(decider, self.offers);
        match answered {
            Ok(answered) if answered.iter().any(NegotiationOffer::is_held) => {
                Ok(DecisionStep::Done(answered))
            }
            _ => {
                // A place that cannot be kept is not proposed.
                negotiations::end_any_negotiation(&mut decider.bargaining(), id)?;
                Err(Error::Stale("its place has been taken meanwhile"))
            }
        }
    }
}
