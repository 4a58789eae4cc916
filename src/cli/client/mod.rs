//! The common part of the client's subcommands: the address of the service, the key, and the output of answers.

pub(super) mod agreements;
pub(super) mod executions;
pub(super) mod explain;
pub(super) mod files;
pub(super) mod negotiate;
pub(super) mod offer;
pub(super) mod output;
pub(super) mod predict;
pub(super) mod show;
pub(super) mod templates;
pub(super) mod terminate;
pub(super) mod watch;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Failure;
use crate::negotiation::{AgreementView, ProposalView};

/// How long a request may take: a decision is made in milliseconds, a busy service says so at once.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long a file may be on its way.
const TRANSFER_TIMEOUT: Duration = Duration::from_hours(1);

/// The address of the service and the caller.
#[derive(Debug, Args)]
pub(super) struct Server {
    /// Address of the service.
    #[arg(
        long = "server",
        env = "BESPEAK_SERVER",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL"
    )]
    address: String,
    /// API key. [default: the local service's, from `DATA_DIR/operator.key`]
    #[arg(long, env = "BESPEAK_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,
    /// Folder of the local service, where its key is.
    #[arg(
        long,
        env = "BESPEAK_DATA_DIR",
        default_value = "bespeak-data",
        value_name = "DIR"
    )]
    data_dir: PathBuf,
    /// Print the answer as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

impl Server {
    /// Asks for a value.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.receive(self.request(Method::GET, path)?).await
    }

    /// Asks for a value that may not be there.
    pub(super) async fn find(&self, path: &str) -> Result<Option<Value>, Failure> {
        let (status, bytes) = self.exchange(self.request(Method::GET, path)?).await?;
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        match status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => Ok(Some(value)),
            status => Err(self.failure(status, &value)),
        }
    }

    /// Asks for bytes.
    pub(super) async fn get_bytes(&self, path: &str) -> Result<Vec<u8>, Failure> {
        self.send(self.request(Method::GET, path)?.timeout(TRANSFER_TIMEOUT))
            .await
    }

    /// Sends an XML document and reads the answer.
    pub(super) async fn post(&self, path: &str, document: Vec<u8>) -> Result<Value, Failure> {
        let request = self
            .request(Method::POST, path)?
            .header("content-type", "application/xml")
            .body(document);
        self.receive(request).await
    }

    /// Puts bytes in a place.
    pub(super) async fn put(&self, path: &str, bytes: Vec<u8>) -> Result<(), Failure> {
        let request = self
            .request(Method::PUT, path)?
            .timeout(TRANSFER_TIMEOUT)
            .body(bytes);
        self.send(request).await.map(drop)
    }

    /// Removes the content of a place.
    pub(super) async fn delete(&self, path: &str) -> Result<(), Failure> {
        self.send(self.request(Method::DELETE, path)?).await.map(drop)
    }

    /// Sends a value and reads the answer.
    pub(super) async fn post_json(&self, path: &str, value: &Value) -> Result<Value, Failure> {
        self.receive(self.request(Method::POST, path)?.json(value)).await
    }

    /// Puts a value in a place and reads the answer.
    pub(super) async fn put_json(&self, path: &str, value: &Value) -> Result<Value, Failure> {
        self.receive(self.request(Method::PUT, path)?.json(value)).await
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Failure> {
        let key = match &self.key {
            Some(key) => key.clone(),
            None => self.local_key()?,
        };
        // One provider for the process; a second call finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|why| Failure::Unavailable(why.to_string()))?;
        let url = format!("{}{path}", self.address.trim_end_matches('/'));
        Ok(client
            .request(method, url)
            .bearer_auth(key.trim())
            .header("accept", "application/json"))
    }

    fn local_key(&self) -> Result<String, Failure> {
        let file = self.data_dir.join("operator.key");
        std::fs::read_to_string(&file).map_err(|why| {
            Failure::NotAllowed(format!(
                "no key: give --key or BESPEAK_KEY (the local service's would be in {}: {why})",
                file.display()
            ))
        })
    }

    async fn receive(&self, request: RequestBuilder) -> Result<Value, Failure> {
        let bytes = self.send(request).await?;
        serde_json::from_slice(&bytes).map_err(|why| {
            Failure::Unavailable(format!("{} does not answer as Bespeak does: {why}", self.address))
        })
    }

    async fn send(&self, request: RequestBuilder) -> Result<Vec<u8>, Failure> {
        let (status, body) = self.exchange(request).await?;
        if status.is_success() {
            return Ok(body);
        }
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        Err(self.failure(status, &problem))
    }

    async fn exchange(&self, request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), Failure> {
        let unreachable = |why: reqwest::Error| {
            let cause = std::error::Error::source(&why).map_or_else(|| why.to_string(), ToString::to_string);
            Failure::Unavailable(format!(
                "cannot reach {}: {cause}; is the service running?",
                self.address
            ))
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let body = response.bytes().await.map_err(unreachable)?;
        Ok((status, body.into()))
    }

    /// The exit status of a refusal of the service, for a script.
    fn failure(&self, status: StatusCode, problem: &Value) -> Failure {
        let text = if self.json {
            problem.to_string()
        } else {
            describe(status, problem)
        };
        match status.as_u16() {
            401 | 403 => Failure::NotAllowed(text),
            404 | 409 | 410 | 412 => Failure::Refused(text),
            400 | 405..=422 => Failure::Usage(text),
            _ => Failure::Unavailable(text),
        }
    }
}

/// A problem in words: the fault, its place, and the alternatives.
fn describe(status: StatusCode, problem: &Value) -> String {
    let Some(detail) = problem["detail"].as_str() else {
        return format!("the service answers {status}");
    };
    let mut text = format!("{detail} ({status})");
    if let Some(violations) = problem["violations"].as_array() {
        text = format!("the offer breaks {} rule(s):", violations.len());
        for violation in violations {
            text += &format!(
                "\n  {}\n    {}",
                violation["path"].as_str().unwrap_or_default(),
                violation["message"].as_str().unwrap_or_default()
            );
        }
    }
    text += &possibilities(&problem["refusal"]);
    text
}

/// The alternatives of a refusal, a line each, indented.
pub(super) fn possibilities(refusal: &Value) -> String {
    let mut text = String::new();
    for alternative in refusal["alternatives"].as_array().into_iter().flatten() {
        text += &format!(
            "\n  possible {}: {} to {}",
            alternative["direction"].as_str().unwrap_or_default(),
            alternative["start"].as_str().unwrap_or_default(),
            alternative["end"].as_str().unwrap_or_default()
        );
    }
    for relaxation in refusal["relaxations"].as_array().into_iter().flatten() {
        let parts = [
            ("ready", "a window from "),
            ("deadline", "a deadline of "),
            ("nodes", "nodes "),
            ("durationSeconds", "a duration in seconds of "),
            ("budget", "a budget of "),
        ];
        let parts = parts.into_iter().filter_map(|(key, words)| {
            let value = &relaxation[key];
            let value = value
                .as_str()
                .map(ToOwned::to_owned)
                .or_else(|| value.as_u64().map(|n| n.to_string()))
                .or_else(|| {
                    let (amount, currency) = (value["amount"].as_str()?, value["currency"].as_str()?);
                    Some(format!("{amount} {currency}"))
                });
            Some(format!("{words}{}", value?))
        });
        text += &format!(
            "\n  it would fit with {}",
            parts.collect::<Vec<_>>().join(" and ")
        );
    }
    text
}

/// The reason why there is no offer: a refusal's reason and its relaxations, or the rules that are broken.
pub(super) fn refusal(told: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(violations) = told["violations"].as_array() {
        let each = violations.iter();
        let each = each.map(|of| format!("\n  {}\n    {}", text(&of["path"]), text(&of["message"])));
        return format!(
            "the offer breaks {} rule(s):{}",
            violations.len(),
            each.collect::<String>()
        );
    }
    let reason = told["reason"].as_str().unwrap_or("nothing can be had");
    let binding = text(&told["bindingConstraint"]);
    format!("{reason}: {binding}{}", possibilities(told))
}

/// An answer of the service as the value that it is.
pub(super) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|why| Failure::Unavailable(format!("the service speaks another version: {why}")))
}

/// An agreement, a line an attribute.
pub(super) fn print_agreement(view: &AgreementView) {
    let mut lines = vec![
        ("agreement", view.id.to_string()),
        ("name", view.name.clone().unwrap_or_default()),
        ("party", view.party.clone()),
        ("state", format!("{} ({})", view.state, view.service_state)),
        ("nodes", format!("{} of {}", view.nodes, view.resource)),
        ("window", format!("{} to {}", view.ready, view.deadline)),
        (
            "planned",
            format!("{} to {}", view.planned_start, view.planned_end),
        ),
    ];
    for (piece, number) in view.pieces.iter().zip(1..) {
        let (count, planned_start, planned_end) =
            (view.pieces.len(), &piece.planned_start, &piece.planned_end);
        let standing = match (&piece.started, &piece.ended) {
            (_, Some(ended)) => format!(", ended {ended}"),
            (Some(started), None) => format!(", started {started}"),
            (None, None) => String::new(),
        };
        let nodes = match piece.nodes {
            1 => "1 node".to_owned(),
            nodes => format!("{nodes} nodes"),
        };
        let text = format!("{number} of {count}, {nodes}, {planned_start} to {planned_end}{standing}");
        lines.push(("piece", text));
    }
    if let Some(price) = &view.price {
        lines.push(("price", price.to_string()));
    }
    if let Some(confidence) = view.confidence {
        let percent = 100.0 * confidence;
        lines.push((
            "confidence",
            format!("{percent:.1} % that its job ends by itself before its slot does"),
        ));
    }
    if let Some(application) = &view.application {
        lines.push(("runs", format!("{application} {}", view.arguments.join(" "))));
    }
    if let Some(reservation) = &view.reservation {
        lines.push(("use with", format!("sbatch --reservation={reservation} …")));
    }
    if let Some(started) = &view.started {
        lines.push(("started", started.clone()));
    }
    if let Some(ended) = &view.ended {
        lines.push(("ended", ended.clone()));
    }
    if let Some(outcome) = &view.outcome {
        let exit = view
            .exit_status
            .map_or_else(String::new, |exit| format!(" (exit status {exit})"));
        lines.push(("outcome", format!("{outcome}{exit}")));
    }
    for proposal in &view.proposals {
        lines.push(("proposal", proposed(proposal)));
    }
    for guarantee in &view.guarantees {
        let mut text = format!("{} {}", guarantee.name, guarantee.state);
        for of in &guarantee.values {
            text += &format!(", {} {}", of.kind, of.amount);
        }
        lines.push(("guarantee", text));
    }
    for (name, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
        say!("{name:<10} {value}");
    }
}

/// A proposal of the provider, with the lines to accept it.
fn proposed(proposal: &ProposalView) -> String {
    let mut text = match proposal.reason.as_str() {
        "broken" => "the agreement could not be kept; there is another place".to_owned(),
        _ => "another place would let others in".to_owned(),
    };
    for penalty in &proposal.penalties {
        text += &format!("; {penalty} are paid to you in any case");
    }
    text += &format!(", until {}:", proposal.expires);
    for offer in &proposal.offers {
        let price = offer.price.as_ref();
        let price = price.map_or_else(String::new, |price| format!(" for {price}"));
        text += &format!(
            "\n  {} of {}, {} to {}{price}:\n    bespeak accept {}",
            offer.nodes, offer.resource, offer.start, offer.end, offer.id
        );
    }
    text
}

/// A value as JSON.
pub(super) fn print_json(value: &Value) {
    say!("{value:#}");
}
