//! The agreements that we have at a peer, as it lists them.

use reqwest::Method;
use reqwest::header::ACCEPT;
use serde::Deserialize;

use super::exchange::exchange;
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

impl Peer {
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
            let request = line.request(Method::GET, url).header(ACCEPT, "application/json");
            let reply = exchange(request).await?;
            reply.success()?;
            let page: Page = serde_json::from_slice(&reply.body).map_err(|why| {
                PeerError::rubbish(&format!("its list of agreements cannot be read: {why}"))
            })?;
            all.extend(page.agreements);
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
        Err(PeerError::rubbish("its list of agreements has no end"))
    }
}
