//! The common part of the client's subcommands: the address of the service, the key, and the output of answers.

pub(super) mod agreements;
pub(super) mod call_backs;
pub(super) mod executions;
pub(super) mod explain;
pub(super) mod files;
mod ids;
pub(super) mod negotiate;
pub(super) mod negotiations;
pub(super) mod offer;
mod options;
pub(super) mod output;
pub(super) mod predict;
pub(super) mod show;
pub(super) mod templates;
pub(super) mod terminate;
pub(super) mod usage;
pub(super) mod watch;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use reqwest::{Method, RequestBuilder, StatusCode};
use scheduler::counted;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

pub(super) use ids::IdOrName;

use super::Failure;
use crate::service::{AgreementView, AtPeerView, ProposalView, StagedView};

/// How long a request may take: a decision is made in milliseconds, a busy service says so at once.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long a file may be on its way.
const TRANSFER_TIMEOUT: Duration = Duration::from_hours(1);

/// The address of the service and the caller: options of every command, before it or after it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(super) struct Server {
    /// Address of the service.
    #[arg(
        long = "server",
        global = true,
        env = "BESPEAK_SERVER",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL"
    )]
    pub(super) address: String,
    /// API key. [default: the local service's, from `DATA_DIR/operator.key`]
    #[arg(
        long,
        global = true,
        env = "BESPEAK_KEY",
        value_name = "KEY",
        hide_env_values = true
    )]
    key: Option<String>,
    /// Folder of the local service, where its key is.
    #[arg(
        long,
        global = true,
        env = "BESPEAK_DATA_DIR",
        default_value = "bespeak-data",
        value_name = "DIR"
    )]
    data_dir: PathBuf,
    /// Print the answer as JSON, a failure too.
    #[arg(long, global = true)]
    pub(super) json: bool,
}

/// An agreement, and the service to ask about it.
#[derive(Debug, Args)]
pub(super) struct AgreementOptions {
    /// The agreement: its id, as many first digits as no other has, or its name.
    pub(super) id: IdOrName,
}

/// The option of every command that changes something on the service.
#[derive(Debug, Args)]
pub(super) struct DryRun {
    /// Change nothing, and show what the answer would be.
    #[arg(long)]
    dry_run: bool,
}

impl DryRun {
    /// The query of the request.
    pub(super) fn query(&self) -> &'static str {
        if self.dry_run { "?dryRun=true" } else { "" }
    }
}

/// The path of a list with its filters.
pub(super) struct Query(pub(super) String);

impl Query {
    pub(super) fn new(path: &str) -> Self {
        Self(format!("{path}?"))
    }

    /// With a filter, where it is given.
    pub(super) fn with(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.0 += &format!("{name}={}&", escape_path_part(&value.to_string()));
        }
        self
    }
}

impl Server {
    /// Asks for an agreement.
    pub(super) async fn agreement(&self, id: Uuid) -> Result<Value, Failure> {
        self.get(&format!("/agreements/{id}")).await
    }

    /// Asks for the timeline of an agreement.
    pub(super) async fn timeline(&self, id: Uuid) -> Result<Value, Failure> {
        self.get(&format!("/agreements/{id}/events")).await
    }

    /// Asks for a value.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.receive(self.request(Method::GET, path)?).await
    }

    /// Asks for a value that may not be there.
    pub(super) async fn find(&self, path: &str) -> Result<Option<Value>, Failure> {
        let request = self.request(Method::GET, path)?;
        self.receive_unless(StatusCode::NOT_FOUND, request).await
    }

    /// The answer to a request; none where that has this status.
    async fn receive_unless(
        &self,
        none: StatusCode,
        request: RequestBuilder,
    ) -> Result<Option<Value>, Failure> {
        let (status, bytes) = self.exchange(request).await?;
        if status == none {
            return Ok(None);
        }
        let body = self.content(status, bytes)?;
        Ok(Some(serde_json::from_slice(&body).unwrap_or_default()))
    }

    /// The first values of a list under its name, as many as are wanted.
    pub(super) async fn pages(&self, query: &Query, name: &str, limit: usize) -> Result<Vec<Value>, Failure> {
        let Query(first) = query;
        let mut page = self.get(first).await?;
        let mut found = Vec::new();
        loop {
            found.append(page[name].as_array_mut().unwrap_or(&mut Vec::new()));
            match page["next"].as_str().filter(|_| found.len() < limit) {
                Some(next) => page = self.get(&format!("{first}after={next}")).await?,
                None => break,
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Asks for bytes, and writes them to standard output as they are.
    pub(super) async fn print_bytes(&self, path: &str) -> Result<(), Failure> {
        let request = self.request(Method::GET, path)?.timeout(TRANSFER_TIMEOUT);
        let written = std::io::stdout().write_all(&self.send(request).await?);
        written.map_err(|why| Failure::Usage(why.to_string()))
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

    /// Removes the content of a place and reads the answer.
    pub(super) async fn delete_json(&self, path: &str) -> Result<Value, Failure> {
        self.receive(self.request(Method::DELETE, path)?).await
    }

    /// Puts a value in a place and reads the answer.
    pub(super) async fn put_json(&self, path: &str, value: &Value) -> Result<Value, Failure> {
        self.receive(self.request(Method::PUT, path)?.json(value)).await
    }

    /// Prints a value: as JSON where that is wanted, otherwise by `print`.
    pub(super) fn print_value<T: Serialize>(&self, value: &T, print: impl FnOnce(&T)) {
        if self.json {
            print_json(&json!(value));
        } else {
            print(value);
        }
    }

    /// Prints an answer: as JSON where that is wanted, otherwise by `print` as the value that it is.
    pub(super) fn print_answer<T: DeserializeOwned>(
        &self,
        answer: Value,
        print: impl FnOnce(&T),
    ) -> Result<(), Failure> {
        if self.json {
            print_json(&answer);
        } else {
            print(&read_answer(answer)?);
        }
        Ok(())
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Failure> {
        let key = self.caller_key()?;
        // One provider for the process; a second call finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        if !self.address.starts_with("https") {
            // The certificates of the system take longer to read than the answer.
            client = client.tls_certs_only([]);
        }
        let client = client.build().map_err(Failure::unavailable)?;
        let url = format!("{}{path}", self.address.trim_end_matches('/'));
        Ok(client
            .request(method, url)
            .bearer_auth(key.trim())
            .header("accept", "application/json"))
    }

    /// The key that is given, or the local service's.
    pub(super) fn caller_key(&self) -> Result<String, Failure> {
        if let Some(key) = &self.key {
            return Ok(key.clone());
        }
        let file = self.data_dir.join("operator.key");
        std::fs::read_to_string(&file).map_err(|why| {
            Failure::NotAllowed(format!(
                "no key: give --key or BESPEAK_KEY (the local service's would be in {}: {why})",
                file.display()
            ))
        })
    }

    async fn receive(&self, request: RequestBuilder) -> Result<Value, Failure> {
        self.read_content(&self.send(request).await?)
    }

    fn read_content(&self, bytes: &[u8]) -> Result<Value, Failure> {
        serde_json::from_slice(bytes).map_err(|why| {
            Failure::Unavailable(format!("{} does not answer as Bespeak does: {why}", self.address))
        })
    }

    async fn send(&self, request: RequestBuilder) -> Result<Vec<u8>, Failure> {
        let (status, body) = self.exchange(request).await?;
        self.content(status, body)
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

    /// The body of an answer, or the failure that it reports, with the exit status for a script.
    fn content(&self, status: StatusCode, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        if status.is_success() {
            return Ok(body);
        }
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = self.report_problem(&problem, problem_in_words(status, &problem));
        Err(match status.as_u16() {
            401 | 403 => Failure::NotAllowed(text),
            404 | 409 | 410 | 412 => Failure::Refused(text),
            400 | 405..=422 => Failure::Usage(text),
            _ => Failure::Unavailable(text),
        })
    }

    /// The words of a failure. Where JSON is wanted there are none: the problem of the service is printed.
    fn report_problem(&self, problem: &Value, words: String) -> String {
        if !self.json || !problem.is_object() {
            return words;
        }
        print_json(problem);
        String::new()
    }
}

/// A problem in words: the fault, its place, and the alternatives.
fn problem_in_words(status: StatusCode, problem: &Value) -> String {
    let Some(detail) = problem["detail"].as_str() else {
        return format!("the service answers {status}");
    };
    let text = broken_rules(problem).unwrap_or_else(|| format!("{detail} ({status})"));
    let explained = problem["refusal"]["id"].as_str();
    let explained = explained.map_or_else(String::new, how_to_explain);
    text + &alternatives_in_words(&problem["refusal"]) + &explained
}

/// The line that tells how to see more about a refusal.
pub(super) fn how_to_explain(id: &str) -> String {
    format!("\n  to see why: bespeak explain {id}")
}

/// The rules that a request breaks, each with its place; that of all of it has no name.
fn broken_rules(told: &Value) -> Option<String> {
    let violations = told["violations"].as_array()?;
    let mut lines = format!("the request breaks {}:", counted(violations.len(), "rule"));
    for violation in violations {
        let path = text_or_empty(&violation["path"]);
        if !path.is_empty() {
            lines += &format!("\n  {path}");
        }
        lines += &format!("\n    {}", text_or_empty(&violation["message"]));
    }
    Some(lines)
}

/// The alternatives of a refusal, a line each, indented.
pub(super) fn alternatives_in_words(refusal: &Value) -> String {
    let mut lines = String::new();
    for alternative in list_or_empty(&refusal["alternatives"]) {
        lines += &format!(
            "\n  possible {}: {} to {}",
            text_or_empty(&alternative["direction"]),
            text_or_empty(&alternative["start"]),
            text_or_empty(&alternative["end"])
        );
    }
    for relaxation in list_or_empty(&refusal["relaxations"]) {
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
                .or_else(|| amount_with_currency(value));
            Some(format!("{words}{}", value?))
        });
        lines += &format!(
            "\n  it would fit with {}",
            parts.collect::<Vec<_>>().join(" and ")
        );
    }
    lines
}

/// The reason why there is no offer: a refusal's reason and its relaxations, or the rules that are broken.
pub(super) fn refusal_in_words(told: &Value) -> String {
    broken_rules(told).unwrap_or_else(|| {
        let reason = told["reason"].as_str().unwrap_or("nothing can be had");
        let binding = text_or_empty(&told["bindingConstraint"]);
        format!("{reason}: {binding}{}", alternatives_in_words(told))
    })
}

/// Reads an amount of money as requests have it.
pub(super) fn parse_amount(text: &str) -> Result<Value, String> {
    match text.split_once(' ') {
        Some((amount, currency)) => Ok(json!({ "amount": amount, "currency": currency.trim() })),
        None => Err("an amount and a currency are expected, such as '12.50 EUR'".to_owned()),
    }
}

/// An answer of the service as the value that it is.
pub(super) fn read_answer<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|why| Failure::Unavailable(format!("the service speaks another version: {why}")))
}

/// So many nodes, of the resource that has them.
fn nodes_in_words(nodes: u32, resource: Option<&str>) -> String {
    resource.map_or_else(|| nodes.to_string(), |resource| format!("{nodes} of {resource}"))
}

/// An agreement, a line an attribute.
pub(super) fn print_agreement(view: &AgreementView) {
    let mut lines = vec![
        ("agreement", view.id.to_string()),
        ("name", view.name.clone().unwrap_or_default()),
        ("party", view.party.clone()),
        ("state", format!("{} ({})", view.state, view.service_state)),
        ("nodes", nodes_in_words(view.nodes, view.resource.as_deref())),
        ("window", format!("{} to {}", view.ready, view.deadline)),
    ];
    if let (Some(start), Some(end)) = (&view.planned_start, &view.planned_end) {
        lines.push(("planned", format!("{start} to {end}")));
    }
    for (piece, number) in view.pieces.iter().zip(1..) {
        let (count, planned_start, planned_end) =
            (view.pieces.len(), &piece.planned_start, &piece.planned_end);
        let standing = match (&piece.started, &piece.ended) {
            (_, Some(ended)) => format!(", ended {ended}"),
            (Some(started), None) => format!(", started {started}"),
            (None, None) => String::new(),
        };
        let nodes = counted(piece.nodes, "node");
        let text = format!("{number} of {count}, {nodes}, {planned_start} to {planned_end}{standing}");
        lines.push(("piece", text));
    }
    let sure = |sure: f64| {
        let percent = 100.0 * sure;
        format!("{percent:.1} % that its job ends by itself before its slot does")
    };
    let runs = |application: &String| format!("{application} {}", view.arguments.join(" "));
    let reserved = |name: &String| {
        let from = view.reservation_from.as_ref();
        let from = from.map_or_else(String::new, |from| {
            format!(" from {from} on; Slurm does not know it before")
        });
        format!("sbatch --reservation={name} …{from}")
    };
    let exit = view.exit_status.map(|exit| format!(" (exit status {exit})"));
    let outcome = |outcome: &String| format!("{outcome}{}", exit.unwrap_or_default());
    let known = [
        ("price", view.price.as_ref().map(ToString::to_string)),
        ("confidence", view.confidence.map(sure)),
        ("runs", view.application.as_ref().map(runs)),
        ("use with", view.reservation.as_ref().map(reserved)),
        ("started", view.started.clone()),
        ("ended", view.ended.clone()),
        ("outcome", view.outcome.as_ref().map(outcome)),
        ("replaces", view.supersedes.map(|old| old.to_string())),
        ("replaced", view.superseded_by.map(|new| format!("by {new}"))),
    ];
    lines.extend(known.map(|(name, value)| (name, value.unwrap_or_default())));
    lines.extend(
        view.staging
            .iter()
            .map(|file| ("file", staged_file_in_words(file))),
    );
    for at_peer in &view.at_peers {
        lines.push(("at", at_peer_in_words(at_peer)));
    }
    for proposal in &view.proposals {
        lines.push(("proposal", proposal_in_words(proposal)));
    }
    for guarantee in &view.guarantees {
        let mut text = format!("{} {}", guarantee.name, guarantee.state);
        for one_value in &guarantee.values {
            text += &format!(", {} {}", one_value.kind, one_value.amount);
        }
        lines.push(("guarantee", text));
    }
    for (name, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
        say!("{name:<10} {value}");
    }
}

/// Another domain's agreement behind one of ours.
fn at_peer_in_words(peer: &AtPeerView) -> String {
    let mut text = format!("{} ({})", peer.peer, peer.state);
    for (word, sum) in [("charged", &peer.charged), ("paid", &peer.paid)] {
        if let Some(sum) = sum {
            text += &format!(", {word} {sum}");
        }
    }
    for guarantee in &peer.guarantees {
        text += &format!(", {} {}", guarantee.name, guarantee.state);
    }
    text
}

/// A file that is moved for a job, and how far it has come.
fn staged_file_in_words(file: &StagedView) -> String {
    let way = |word: &str, place: &Option<String>, bytes: Option<u64>| {
        let place = place.as_deref().unwrap_or_default();
        let bytes = bytes.map_or_else(String::new, |bytes| {
            format!(" ({} so far)", counted(bytes, "byte"))
        });
        let text = format!(" {word} {place}{bytes}");
        Some(text).filter(|_| !place.is_empty()).unwrap_or_default()
    };
    let from = way("from", &file.source, file.bytes_in);
    format!("{}{from}{}", file.file, way("to", &file.target, file.bytes_out))
}

/// A proposal of the provider, with the lines to accept it.
fn proposal_in_words(proposal: &ProposalView) -> String {
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

/// A text as one part of a path.
pub(super) fn escape_path_part(text: &str) -> String {
    let text: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    text.replace('+', "%20")
}

/// How many lines to print: 0 is for all.
pub(super) fn parse_limit(text: &str) -> Result<usize, std::num::ParseIntError> {
    text.parse()
        .map(|limit| if limit == 0 { usize::MAX } else { limit })
}

/// An amount with its currency.
pub(super) fn amount_with_currency(value: &Value) -> Option<String> {
    let (amount, currency) = (value["amount"].as_str()?, value["currency"].as_str()?);
    Some(format!("{amount} {currency}"))
}

/// A text; empty where there is none.
pub(super) fn text_or_empty(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The values of a list; none where there is no list.
pub(super) fn list_or_empty(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A value as JSON.
pub(super) fn print_json(value: &Value) {
    say!("{value:#}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_names_what_it_did() {
        assert_eq!(escape_path_part("n[1-3],big_1"), "n%5B1-3%5D%2Cbig_1");
        assert_eq!(escape_path_part("a/b?c%é"), "a%2Fb%3Fc%25%C3%A9");
    }
}
