//! One message to a peer and its answer, within bounds. The key goes to the peer's own address and nowhere else, no redirect is
//! followed, and of an answer no more is read than is needed.

use std::time::Duration;

use address::{AllowedAddresses, Policy, client_to_anywhere, error_without_address};
use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use wsag::Document;
use wsag::answers::{Answer, read_answer};
use wsag::faults::Fault;

use super::error::PeerError;
use crate::settings::{PeerSecret, PeerSettings};

/// The most bytes of an answer.
const ANSWER_MAX: usize = 1 << 20;
/// How long a connection may take.
const CONNECT_WAIT: Duration = Duration::from_secs(3);
/// How long the next bytes of an answer may take.
const READ_WAIT: Duration = Duration::from_secs(30);
/// How long a message and its answer may take together.
pub(super) const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// How long a connection is kept for the next message: less than services wait for it.
const KEPT: Duration = Duration::from_secs(5);
/// An operator's own address may lie anywhere.
const ANYWHERE: Policy = Policy {
    private_addresses: true,
};

/// The way to a peer.
#[derive(Debug)]
pub(super) struct PeerConnection {
    http: Client,
    base: Url,
    /// The addresses below it.
    own: AllowedAddresses,
    key: PeerSecret,
}

/// An answer whose body was read.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
    headers: HeaderMap,
}

impl PeerConnection {
    /// The way to a peer, over which nothing is sent yet.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(super) fn new(peer: &PeerSettings) -> Result<Self, String> {
        let timeouts = |client: reqwest::ClientBuilder| {
            client
                .connect_timeout(CONNECT_WAIT)
                .read_timeout(READ_WAIT)
                .pool_idle_timeout(KEPT)
        };
        let base: Url = peer
            .address
            .parse()
            .map_err(|why| format!("{}: {why}", peer.address))?;
        Ok(Self {
            http: client_to_anywhere(timeouts)?,
            own: AllowedAddresses::new(std::slice::from_ref(&peer.address), ANYWHERE)?,
            base,
            key: peer.key.clone(),
        })
    }

    /// The address of the peer with these segments behind it.
    pub(super) fn below_base(&self, segments: &[&str]) -> Url {
        url_below(&self.base, segments)
    }

    /// An address of the peer's own that it has told, with these segments behind it.
    ///
    /// # Errors
    /// [`PeerError::Unknown`] where the address is not below the peer's own.
    pub(super) fn below(&self, address: &str, segments: &[&str]) -> Result<Url, PeerError> {
        let read = self.own.check(address).and_then(|()| {
            let url: Url = address.parse().map_err(|why| format!("{why}"))?;
            match url.query().or(url.fragment()) {
                None => Ok(url),
                Some(_) => Err("an address without ? and # is expected".to_owned()),
            }
        });
        let url = read
            .map_err(|why| PeerError::rubbish(&format!("it names an address that is not its own: {why}")))?;
        Ok(url_below(&url, segments))
    }

    /// A request with the key.
    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.http.request(method, url).bearer_auth(self.key.reveal())
    }

    /// Asks for JSON without the key.
    pub(super) fn open(&self, url: Url) -> RequestBuilder {
        self.http.get(url).header(ACCEPT, "application/json")
    }

    /// Posts a document.
    pub(super) fn post(&self, url: Url, document: String) -> RequestBuilder {
        let request = self.request(Method::POST, url);
        let request = request.header(CONTENT_TYPE, "application/xml");
        request.header(ACCEPT, "application/xml").body(document)
    }

    /// Asks for JSON.
    pub(super) fn get_json(&self, url: Url) -> RequestBuilder {
        self.request(Method::GET, url).header(ACCEPT, "application/json")
    }

    /// Asks for a document.
    pub(super) fn get(&self, url: Url) -> RequestBuilder {
        self.request(Method::GET, url).header(ACCEPT, "application/xml")
    }
}

fn url_below(url: &Url, segments: &[&str]) -> Url {
    let mut url = url.clone();
    // An address of HTTP has a path.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

/// Sends a request, and reads its answer.
///
/// # Errors
/// [`PeerError::Unknown`]: no answer in time, or one that is too long.
pub(super) async fn exchange(request: RequestBuilder) -> Result<Reply, PeerError> {
    within(ANSWER_WAIT, async { read_bounded(send(request).await?).await }).await
}

/// Sends a request, and reads the body of an answer with success within bounds.
///
/// # Errors
/// [`PeerError::Refused`], [`PeerError::Unknown`].
pub(crate) async fn fetch_bounded(request: RequestBuilder) -> Result<Vec<u8>, PeerError> {
    let reply = exchange(request).await?;
    reply.success()?;
    Ok(reply.body)
}

/// Waits for an answer, but no longer than that: then the peer is silent.
pub(super) async fn within<T>(
    wait: Duration,
    answer: impl Future<Output = Result<T, PeerError>>,
) -> Result<T, PeerError> {
    let answered = tokio::time::timeout(wait, answer).await;
    answered.unwrap_or_else(|_| Err(PeerError::silent(wait)))
}

/// Sends a request, and reads the head of its answer.
///
/// # Errors
/// [`PeerError::Unknown`].
pub(super) async fn send(request: RequestBuilder) -> Result<Response, PeerError> {
    request
        .send()
        .await
        .map_err(|why| PeerError::Unknown(error_without_address(&why), None))
}

/// Reads the body of an answer.
///
/// # Errors
/// [`PeerError::Unknown`].
pub(super) async fn read_bounded(mut answer: Response) -> Result<Reply, PeerError> {
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut body = Vec::new();
    loop {
        let chunk = answer.chunk().await;
        let chunk = chunk.map_err(|why| PeerError::Unknown(error_without_address(&why), None))?;
        let Some(chunk) = chunk else {
            return Ok(Reply {
                status,
                body,
                headers,
            });
        };
        if body.len() + chunk.len() > ANSWER_MAX {
            return Err(PeerError::rubbish(&format!(
                "its answer has more than {ANSWER_MAX} bytes"
            )));
        }
        body.extend_from_slice(&chunk);
    }
}

impl Reply {
    /// The JSON of a successful answer, which is what the words say.
    ///
    /// # Errors
    /// Those of [`Reply::success`], and [`PeerError::Unknown`] for anything else than that.
    pub(super) fn json<T: DeserializeOwned>(&self, what: &str) -> Result<T, PeerError> {
        self.success()?;
        let read = serde_json::from_slice(&self.body);
        read.map_err(|why| PeerError::rubbish(&format!("its {what} cannot be read: {why}")))
    }

    /// The document of an answer with success.
    ///
    /// # Errors
    /// [`PeerError::Refused`] where the peer refuses with a fault, [`PeerError::Unknown`] for everything else.
    pub(super) fn answer(&self) -> Result<Answer, PeerError> {
        self.success()?;
        match read_document(&self.body)? {
            Answer::Fault(_) => Err(PeerError::rubbish("it answers a fault with a status of success")),
            answer => Ok(answer),
        }
    }

    /// Whether it is an answer with success.
    ///
    /// # Errors
    /// As for [`Reply::answer`].
    pub(super) fn success(&self) -> Result<(), PeerError> {
        let status = self.status;
        if status.is_success() {
            return Ok(());
        }
        let unknown = |why: &str| {
            let retry = self.headers.get(RETRY_AFTER);
            let retry = retry.and_then(|value| value.to_str().ok()?.parse().ok());
            PeerError::Unknown(
                format!("it answers {status}{why}"),
                retry.map(Duration::from_secs),
            )
        };
        if !refuses_for_good(status) {
            return Err(unknown(""));
        }
        match read_document(&self.body) {
            Ok(Answer::Fault(fault)) => Err(PeerError::Refused {
                code: fault.error_code.clone(),
                words: fault_in_exchange(&fault),
            }),
            _ => Err(unknown(" without saying why")),
        }
    }

    /// When it was sent by the peer's clock, in seconds since 1970.
    pub(super) fn date(&self) -> Option<i64> {
        let date = self.headers.get(DATE)?.to_str().ok()?;
        Some(jiff::fmt::rfc2822::parse(date).ok()?.timestamp().as_second())
    }
}

/// Whether a status refuses what was asked for, however often it is asked again. With a key that the peer does not take nothing is
/// known: what was asked for may have been done before.
fn refuses_for_good(status: StatusCode) -> bool {
    let passes = [
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_EARLY,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    status.is_client_error() && !passes.contains(&status)
}

fn read_document(body: &[u8]) -> Result<Answer, PeerError> {
    let document = Document::parse(body);
    let document =
        document.map_err(|why| PeerError::rubbish(&format!("its answer cannot be read: {why}")))?;
    read_answer(&document).map_err(|why| PeerError::rubbish(&format!("its answer cannot be read: {why}")))
}

fn fault_in_exchange(fault: &Fault) -> String {
    let refusal = fault
        .refusal
        .as_ref()
        .and_then(|refusal| refusal.binding_constraint.clone());
    let described = fault
        .descriptions
        .iter()
        .map(|description| description.text.clone());
    let words: Vec<String> = refusal.into_iter().chain(described).collect();
    words.join("; ")
}
