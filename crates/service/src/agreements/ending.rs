//! The cost of ending an agreement before its time.

use domain::agreement::{Account, PostingKind, ServiceState};
use planner::{QuoteEnding, Terminate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::agreements::charges_at_peer::charge_at_peer;
use crate::agreements::find::{
    find_agreement, find_agreement_at_peer, find_why_agreement_is_over, view_found_agreement,
};
use crate::views::money_and_time::MoneyView;
use crate::{Error, Result, Scope, Service};

/// What follows from the end of an agreement now.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndingView {
    /// The payments of its party; none where it pays nothing.
    pub charges: Vec<EndingPaymentView>,
    /// The payments to its party.
    pub credits: Vec<EndingPaymentView>,
    /// Whether its work runs now and is stopped.
    pub stops_work: bool,
    /// The charge of the domain that has it, where another domain has it. The charges are at least that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_peer: Option<EndingAtPeerView>,
}

/// A payment, and its purpose.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "PaymentView")]
pub struct EndingPaymentView {
    /// What it is for: price, cancellation, change, overrun, penalty, reward or compensation.
    #[schemars(example = &"cancellation")]
    pub kind: String,
    /// The amount.
    pub amount: MoneyView,
    /// Why it is as much, where that is not a matter of course.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"10 % of its price of 2 EUR")]
    pub reason: Option<String>,
}

/// The charge of another domain for the end of an agreement.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct EndingAtPeerView {
    /// The name of the domain.
    #[schemars(example = &"south")]
    pub peer: String,
    /// Its charge; none where it has not said it in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = json!({"amount": "3", "currency": "EUR"}))]
    pub charge: Option<MoneyView>,
}

/// What it would cost `by` to end an agreement now. It is tried out, and nothing is ended. Where a peer has the agreement, the peer is asked first.
///
/// # Errors
/// `Error::NotFound`, `Error::Conflict` where it is over already, `Error::Unavailable`.
pub async fn cost_of_ending(service: &Service, scope: Scope, id: Uuid, by: &str) -> Result<EndingView> {
    let agreement = find_agreement(service, &scope, id).await?;
    let is_provider = scope == Scope::All && agreement.party != by;
    let there = find_agreement_at_peer(service, &agreement).await?;
    let charge_of_peer = match &there {
        Some(there) => charge_at_peer(service, there).await,
        None => None,
    };
    let order = Terminate {
        by_provider: is_provider,
        charge_of_peer,
        ..Terminate::of(id, scope.party().map(ToOwned::to_owned))
    };
    let postings = match service.send(QuoteEnding(order)).await {
        Err(planner::Error::NotFound) => {
            return Err(find_why_agreement_is_over(
                service,
                &scope,
                view_found_agreement(service, &agreement),
            )
            .await);
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
        // Its kind is named already.
        let why = posting.detail.split_once(": ");
        side.push(EndingPaymentView {
            reason: Some(why.map_or(posting.detail.as_str(), |(_, why)| why).to_owned()),
            ..EndingPaymentView::of(posting.kind, MoneyView::of(posting.amount))
        });
    }
    // The price of work is posted when it has stopped, and that of a reservation at a peer when the peer has told.
    let waits = agreement.has_nodes() && agreement.never_had_nodes();
    let awaited = there.as_ref().filter(|_| waits);
    let is_owed_later = (stops_work || awaited.is_some()) && !is_provider;
    if let Some(price) = agreement.price.filter(|_| is_owed_later) {
        charges.push(EndingPaymentView {
            reason: awaited.map(|there| format!("as far as {} has handed its nodes over", there.peer)),
            ..EndingPaymentView::of(PostingKind::Price, MoneyView::of(price))
        });
    }
    Ok(EndingView {
        charges,
        credits,
        stops_work,
        at_peer: there.map(|there| EndingAtPeerView {
            peer: there.peer,
            charge: charge_of_peer.map(MoneyView::of),
        }),
    })
}

impl EndingPaymentView {
    fn of(kind: PostingKind, amount: MoneyView) -> Self {
        let kind = kind.word().to_owned();
        Self {
            kind,
            amount,
            reason: None,
        }
    }
}
