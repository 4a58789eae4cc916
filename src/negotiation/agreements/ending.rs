//! The cost of ending an agreement before its time.

use uuid::Uuid;

use crate::agreement::{Account, PostingKind, ServiceState};
use crate::negotiation::views::values::MoneyView;
use crate::negotiation::{Error, Negotiation, Result, Scope};
use crate::planner::{self, Termination};

/// What follows from the end of an agreement now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndingView {
    /// The payments of its party, each with its reason; none where it pays nothing.
    pub charges: Vec<(&'static str, MoneyView)>,
    /// The payments to its party, each with its reason.
    pub credits: Vec<(&'static str, MoneyView)>,
    /// Whether its work runs now and is stopped.
    pub stops_work: bool,
}

impl Negotiation {
    /// What it would cost `by` to end an agreement now. It is found on a copy of the plan, in O(n) for all that is planned; nothing is
    /// ended.
    ///
    /// # Errors
    /// `Error::NotFound`, `Error::Conflict` where it is over already, `Error::Unavailable`.
    pub async fn cost_of_ending(&self, scope: Scope, id: Uuid, by: &str) -> Result<EndingView> {
        let agreement = self.stored_agreement(&scope, id).await?;
        let order = Termination {
            id,
            party: scope.party().map(ToOwned::to_owned),
            by_provider: scope == Scope::All && agreement.party != by,
            versions: None,
            idempotency: None,
        };
        let postings = match self.planner.postings_of_ending(order).await {
            Err(planner::Error::NotFound) => {
                return Err(self.over_already(&scope, self.view(&agreement)).await);
            }
            postings => postings.map_err(Error::from)?,
        };
        let account = Account::Party(agreement.party.clone());
        let stops_work = agreement.service == ServiceState::Processing;
        let (mut charges, mut credits) = (Vec::new(), Vec::new());
        for posting in postings {
            let side = if posting.from == account {
                &mut charges
            } else {
                &mut credits
            };
            side.push((posting.kind.word(), MoneyView::of(posting.amount)));
        }
        // The price of work is posted when it has stopped.
        let is_provider = scope == Scope::All && agreement.party != by;
        if let Some(price) = agreement.price.filter(|_| stops_work && !is_provider) {
            charges.push((PostingKind::Price.word(), MoneyView::of(price)));
        }
        Ok(EndingView {
            charges,
            credits,
            stops_work,
        })
    }
}
