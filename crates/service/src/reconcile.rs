//! What we and a peer have of the agreements between us, compared.

use std::collections::BTreeMap;

use domain::agreement::{AtPeer, Money};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::at_peer;
use uuid::Uuid;

use crate::{Error, Result, Service};
use federation::client::{Peer, PeerError, PeerStatus};

/// Rows read at a time.
const PAGE: u32 = 1_000;

/// How the agreements between us and a peer compare.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct ReconciledView {
    /// The name of the peer.
    #[schemars(example = &"south")]
    pub peer: String,
    /// Agreements that were compared.
    #[schemars(example = 123)]
    pub compared: usize,
    /// Agreements among them that are not over on both sides yet.
    #[schemars(example = 3)]
    pub open: usize,
    /// Every difference.
    pub differences: Vec<DifferenceView>,
}

/// One difference.
#[derive(Debug, Clone, JsonSchema, Serialize, Deserialize)]
pub struct DifferenceView {
    /// Our agreement; none where we have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Uuid>,
    /// The address of the peer's, or its id there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"https://south.example.org/agreements/019e1c3a-5b7c-7d21-9f55-0a4be1c0d2e3")]
    pub there: Option<String>,
    /// What differs, in words.
    #[schemars(example = &"charged: 2 EUR here and 3 EUR there")]
    pub what: String,
}

/// Compares what we have of the agreements with a peer with what the peer has: states and money of each, and whether each side knows
/// those of the other. Takes a question to the peer for each agreement. For operators.
///
/// # Errors
/// [`Error::NotFound`] where there is no such peer, [`Error::AskingPeer`] where it does not answer, [`Error::Unavailable`].
pub async fn reconcile_peer(service: &Service, name: &str) -> Result<ReconciledView> {
    let federation = service.federation.as_ref().ok_or(Error::NotFound)?;
    let peer = federation.peer(name).ok_or(Error::NotFound)?;
    let listed = match peer.agreements().await {
        Ok(listed) => Some(listed),
        // Not every peer lists them.
        Err(PeerError::Refused { .. }) => None,
        Err(_) => return Err(Error::AskingPeer),
    };
    let unlisted = listed
        .into_iter()
        .flatten()
        .filter(|listed| listed.state != "Rejected");
    let mut unlisted: BTreeMap<String, String> =
        unlisted.map(|at_peer| (at_peer.id, at_peer.state)).collect();
    let mut view = ReconciledView {
        peer: name.to_owned(),
        compared: 0,
        open: 0,
        differences: Vec::new(),
    };
    let mut after = Uuid::nil();
    loop {
        let rows = at_peer::all_at_peer(&service.store, name, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.id;
        for row in rows {
            if let Some(id) = row.address.as_deref().and_then(|at| at.rsplit('/').next()) {
                unlisted.remove(id);
            }
            compare_reconciled_agreement(service, &peer, &row, &mut view).await?;
        }
    }
    let unknown = unlisted.into_iter().map(|(id, state)| DifferenceView {
        agreement: None,
        there: Some(id),
        what: format!("the peer has an agreement with us, {state}, that we do not know"),
    });
    view.differences.extend(unknown);
    Ok(view)
}

async fn compare_reconciled_agreement(
    service: &Service,
    peer: &Peer,
    row: &AtPeer,
    view: &mut ReconciledView,
) -> Result<()> {
    let Some(address) = &row.address else {
        view.open += usize::from(row.settled.is_none());
        return Ok(());
    };
    view.compared += 1;
    let mut differ = |what: String| {
        view.differences.push(DifferenceView {
            agreement: Some(row.agreement),
            there: Some(address.clone()),
            what,
        });
    };
    let status = match peer.status(address).await {
        Ok(status) => status,
        Err(PeerError::Refused { words, .. }) => {
            differ(format!("the peer does not know it: {words}"));
            return Ok(());
        }
        Err(_) => return Err(Error::AskingPeer),
    };
    if row.settled.is_none() {
        view.open += 1;
        return Ok(());
    }
    let posted = at_peer::posted_to_peer(&service.store, row).await?;
    for what in differences_to_reconcile(row, &status, posted) {
        differ(what);
    }
    Ok(())
}

/// How a settled agreement differs from the peer's, where it does; `posted` is what our ledger has for the peer, in millionths.
fn differences_to_reconcile(row: &AtPeer, status: &PeerStatus, posted: i64) -> Vec<String> {
    use wsag::NamedValue;
    let mut found = Vec::new();
    let there = status.state.name();
    if there != row.state {
        found.push(format!("it is {} here and {there} there", row.state));
    }
    if row.price.is_some() && status.price != row.price {
        let price = |money: Option<Money>| money.map_or("nothing".to_owned(), |each| each.to_string());
        let (here, there) = (price(row.price), price(status.price));
        found.push(format!("its price is {here} here and {there} there"));
    }
    let Some(Money { currency, .. }) = row.price else {
        return found;
    };
    let sum = |sums: &[Money]| {
        sums.iter()
            .filter(|sum| sum.currency == currency)
            .map(|sum| sum.micros)
            .sum::<i64>()
    };
    let (charged, paid) = (sum(&status.charged), sum(&status.paid));
    let sums = [
        ("charged", row.charged, charged),
        ("paid back", row.paid_back, paid),
        ("owed by our ledger", posted, charged - paid),
    ];
    for (what, here, there) in sums {
        if here != there {
            let [here, there] = [here, there].map(|micros| Money::new(micros, currency));
            found.push(format!("{what}: {here} here and {there} there"));
        }
    }
    found
}
