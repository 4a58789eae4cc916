//! A client of the API that looks at every answer: XML must be valid against the project's schemas.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use uuid::Uuid;

use super::xml;

/// No answer takes so long.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Services of tests speak HTTP: reading the certificates of the system would take longer than many an answer.
pub(crate) const NO_CERTIFICATES: [reqwest::Certificate; 0] = [];

/// Talks to one service with one key.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: String,
    unchecked: Arc<Unchecked>,
}

/// Answers of a service in XML, checked together when it and its last client go: a run of xmllint reads the schemas first, which
/// takes longer than a hundred documents.
#[derive(Debug, Default)]
pub(super) struct Unchecked(Mutex<Vec<String>>);

impl Drop for Unchecked {
    fn drop(&mut self) {
        let documents = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A test that fails already says why.
        if !std::thread::panicking() {
            xml::assert_all_valid(documents.iter().map(String::as_str));
        }
    }
}

/// An answer, read whole.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Its status.
    pub(crate) status: StatusCode,
    /// Its headers.
    pub(crate) headers: HeaderMap,
    /// Its body.
    pub(crate) body: String,
}

impl Client {
    /// A client of a service that runs in this process.
    pub(crate) fn of_address(address: SocketAddr, key: &str) -> Self {
        Self::new(address, key, &Arc::default())
    }

    pub(super) fn new(address: SocketAddr, key: &str, unchecked: &Arc<Unchecked>) -> Self {
        static PROVIDER: Once = Once::new();
        // The client is built without a provider of its own; an executable installs one in `main`.
        PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        Self {
            http: connections(None),
            base: format!("http://{address}"),
            key: key.to_owned(),
            unchecked: Arc::clone(unchecked),
        }
    }

    /// A client with this key at another address of this machine.
    pub(crate) fn at(&self, address: IpAddr) -> Self {
        Self {
            http: connections(Some(address)),
            ..self.clone()
        }
    }

    /// GET as XML.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    /// GET as JSON.
    pub(crate) async fn get_json(&self, path: &str) -> Value {
        let answer = self
            .send(self.request(Method::GET, path).header(ACCEPT, "application/json"))
            .await;
        assert!(answer.status.is_success(), "GET {path}: {answer:?}");
        answer.json()
    }

    /// POST of an XML document.
    pub(crate) async fn post(&self, path: &str, document: impl Into<String>) -> Answer {
        let request = self
            .request(Method::POST, path)
            .header(CONTENT_TYPE, "application/xml");
        self.send(request.body(document.into())).await
    }

    /// POST of JSON that asks for JSON.
    pub(crate) async fn post_json(&self, path: &str, body: &Value) -> Answer {
        let request = self
            .request(Method::POST, path)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json");
        self.send(request.body(body.to_string())).await
    }

    /// A request that a test adds to; it has the key.
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        if self.key.is_empty() {
            request
        } else {
            request.header(AUTHORIZATION, format!("Bearer {}", self.key))
        }
    }

    /// The answer to a request; its body is checked, that of XML at the latest when the service and its last client go.
    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let answer = self.try_send(request).await.expect("the service answers");
        if answer.content_type() == "application/xml" {
            let mut unchecked = self.unchecked.0.lock().unwrap_or_else(PoisonError::into_inner);
            unchecked.push(answer.body.clone());
        } else {
            answer.assert_valid();
        }
        answer
    }

    /// The answer to a request, where one comes; its body not yet checked.
    pub(crate) async fn try_send(&self, request: reqwest::RequestBuilder) -> Result<Answer, reqwest::Error> {
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Answer {
            status,
            headers,
            body: response.text().await?,
        })
    }
}

/// Connections of a client, from an address of this machine where one is given.
fn connections(from: Option<IpAddr>) -> reqwest::Client {
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .no_proxy()
        .local_address(from)
        .tls_certs_only(NO_CERTIFICATES);
    client.build().expect("a client can be made")
}

impl Answer {
    /// Asserts that the body is of its type: XML that the schemas allow, or JSON.
    pub(crate) fn assert_valid(&self) {
        match self.content_type() {
            "application/xml" => xml::assert_valid(&self.body),
            "application/json" | "application/problem+json" => drop(self.json()),
            _ => {}
        }
    }

    /// The media type, without its parameters.
    pub(crate) fn content_type(&self) -> &str {
        let value = self
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("no JSON ({why}): {self:?}"))
    }

    /// The text of the first element of that local name.
    pub(crate) fn text(&self, element: &str) -> &str {
        self.texts(element)
            .first()
            .copied()
            .unwrap_or_else(|| panic!("no {element} in {self:?}"))
    }

    /// The texts of all elements of that local name.
    pub(crate) fn texts(&self, element: &str) -> Vec<&str> {
        xml::texts(&self.body, element)
    }

    /// The id of the agreement that was created.
    pub(crate) fn created(&self) -> Uuid {
        assert_eq!(self.status, StatusCode::CREATED, "{self:?}");
        let location = self.headers["location"].to_str().expect("a path is ASCII");
        let id = location.rsplit('/').next().unwrap_or_default();
        id.parse()
            .unwrap_or_else(|why| panic!("{location} ends in no id: {why}"))
    }
}
