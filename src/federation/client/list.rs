//! Questions that only another Bespeak service answers: the agreements that we have there, and the cost of ending one.

use domain::agreement::{Currency, Money};
use serde::Deserialize;
use wsag::budget::parse_amount;

use super::exchange::{Reply, exchange};
use super::{Peer, PeerError, Result};

/// Agreements that are asked for at a time.
const PAGE: u32 = 200;
/// Pages that are read at most: a peer that lists without end is stopped.
const PAGES_MAX: usize = 10_000;

/// An agreement as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ListedAgreement {
    /// Its id there.
    pub id: String,
    /// Its state, in the word of the specification.
    pub state: String,
}

#[derive(Debug, Deserialize)]
struct Page {
    agreements: Vec<ListedAgreement>,
    next: Option<String>,
}

/// The part of a cost of an end that is read.
#[derive(Debug, Deserialize)]
struct EndingCost {
    charges: Vec<Charge>,
}

#[derive(Debug, Deserialize)]
struct Charge {
    amount: Sum,
}

#[derive(Debug, Deserialize)]
struct Sum {
    amount: String,
    currency: String,
}

impl Peer {
    /// The peer's charge for ending one of its agreements now; none where it is nothing. Only another Bespeak service tells it.
    ///
    /// # Errors
    /// [`PeerError::Refused`], [`PeerError::Unknown`].
    pub async fn charge_of_ending(&self, agreement: &str) -> Result<Option<Money>> {
        let line = &self.0.line;
        let url = line.below(agreement, &["ending"])?;
        let reply = self.exchange(line.get_json(url)).await?;
        self.note(charge_in(&reply))
    }

    /// All agreements that the peer has with us, newest first. Only another Bespeak service lists them.
    ///
    /// # Errors
    /// [`PeerError::Refused`], [`PeerError::Unknown`].
    pub async fn agreements(&self) -> Result<Vec<ListedAgreement>> {
        let line = &self.0.line;
        let mut all = Vec::new();
        let mut after: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut url = line.below_base(&["agreements"]);
            url.query_pairs_mut().append_pair("limit", &PAGE.to_string());
            if let Some(after) = &after {
                url.query_pairs_mut().append_pair("after", after);
            }
            let page: Page = exchange(line.get_json(url)).await?.json("list of agreements")?;
            all.extend(page.agreements);
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
        Err(PeerError::rubbish("its list of agreements has no end"))
    }
}

/// The sum of the charges in a cost of an end.
fn charge_in(reply: &Reply) -> Result<Option<Money>> {
    let ending: EndingCost = reply.json("cost of an end")?;
    let wrong = |why: &dyn std::fmt::Display| {
        PeerError::rubbish(&format!("its cost of an end cannot be read: {why}"))
    };
    let mut all: Option<Money> = None;
    for Charge {
        amount: Sum { amount, currency },
    } in ending.charges
    {
        let micros = parse_amount(&amount).map_err(|why| wrong(&why))?;
        let currency = Currency::parse(&currency).ok_or_else(|| wrong(&"no currency"))?;
        let before = all.map_or(Some(0), |all| (all.currency == currency).then_some(all.micros));
        let sum = before.and_then(|before| before.checked_add(micros));
        all = Some(Money::new(sum.ok_or_else(|| wrong(&"no sum"))?, currency));
    }
    Ok(all)
}
