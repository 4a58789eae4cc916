//! Requests to the service, in the name of a party or of somebody who has signed in on the page.

use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Method, StatusCode, redirect};
use serde_json::Value;

use super::Failure;
use super::mix::Body;

/// Talks to the service with one key or one session.
#[derive(Debug, Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    base: String,
    /// The field of the head that says who asks.
    identity: (reqwest::header::HeaderName, String),
}

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) client: Client,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Body,
}

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// The last part of its Location: the id of what was made.
    pub(super) made: String,
    pub(super) text: String,
    pub(super) took: Duration,
}

impl Client {
    /// A client of a service with a key.
    pub(super) fn with_key(http: &reqwest::Client, base: &str, key: &str) -> Self {
        Self {
            http: http.clone(),
            base: base.to_owned(),
            identity: (AUTHORIZATION, format!("Bearer {key}")),
        }
    }

    /// A client that has signed in on the page with a key.
    pub(super) async fn signed_in(http: &reqwest::Client, base: &str, key: &str) -> Result<Self, Failure> {
        let sent = http
            .post(format!("{base}/portal/sign-in"))
            .header("sec-fetch-site", "same-origin")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(format!("key={key}"));
        let answer = sent.send().await?;
        let cookie = answer
            .headers()
            .get(SET_COOKIE)
            .ok_or("the page lets nobody sign in")?;
        let cookie = cookie.to_str()?.split(';').next().unwrap_or_default();
        Ok(Self {
            http: http.clone(),
            base: base.to_owned(),
            identity: (COOKIE, cookie.to_owned()),
        })
    }

    /// A request of this client.
    pub(super) fn asks(&self, method: Method, path: impl Into<String>, body: Body) -> Asked {
        Asked {
            client: self.clone(),
            method,
            path: path.into(),
            body,
        }
    }

    /// A look at something.
    pub(super) fn looks(&self, path: impl Into<String>) -> Asked {
        self.asks(Method::GET, path, Body::Nothing)
    }

    /// A POST of a flat value.
    pub(super) fn posts(&self, path: impl Into<String>, body: Value) -> Asked {
        self.asks(Method::POST, path, Body::Json(body))
    }
}

/// The connections of all clients. Services close those that were idle for ten seconds; these are given up before.
pub(super) fn connections() -> Result<reqwest::Client, Failure> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let none: [reqwest::Certificate; 0] = [];
    Ok(reqwest::Client::builder()
        .timeout(Duration::from_mins(5))
        .pool_idle_timeout(Duration::from_secs(5))
        .redirect(redirect::Policy::none())
        .tls_certs_only(none)
        .no_proxy()
        .build()?)
}

impl Asked {
    /// The answer.
    pub(super) async fn send(&self) -> Result<Answer, Failure> {
        let Client { http, base, identity } = &self.client;
        let request = http
            .request(self.method.clone(), format!("{base}{}", self.path))
            .header(&identity.0, &identity.1);
        let request = match &self.body {
            Body::Nothing => request.header(ACCEPT, "application/json, text/html, */*"),
            Body::Json(value) => request.header(ACCEPT, "application/json").json(value),
            Body::Xml(document) => request
                .header(CONTENT_TYPE, "application/xml")
                .body(document.clone()),
        };
        let sent = Instant::now();
        let answer = request.send().await?;
        let status = answer.status();
        let location = answer
            .headers()
            .get(LOCATION)
            .and_then(|place| place.to_str().ok());
        let made = location.and_then(|place| place.rsplit('/').next());
        let made = made.unwrap_or_default().to_owned();
        let text = answer.text().await?;
        let took = sent.elapsed();
        if status.is_server_error() {
            return Err(format!("{} {}: {status}: {text}", self.method, self.path).into());
        }
        Ok(Answer {
            status,
            made,
            text,
            took,
        })
    }

    /// The answer as a flat value, where it succeeds.
    pub(super) async fn value(&self) -> Result<Value, Failure> {
        let answer = self.send().await?;
        if answer.status.is_success() {
            return Ok(answer.value());
        }
        Err(format!(
            "{} {}: {}: {}",
            self.method, self.path, answer.status, answer.text
        )
        .into())
    }
}

impl Answer {
    /// The body as a flat value.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}
