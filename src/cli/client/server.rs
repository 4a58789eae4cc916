//! The service that a command asks: its address, the key of the caller, and requests with their answers.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use super::options::{OptionOfMember, name_options};
use super::print_json;
use super::query::Query;
use super::refusals::refusal_or_problem_in_words;
use crate::cli::Failure;

/// How long a request may take: a decision is made in milliseconds, a busy service says so at once.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long a file may be on its way.
const TRANSFER_TIMEOUT: Duration = Duration::from_hours(1);

/// The address of the service and the caller: options of every command, before it or after it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(in crate::cli) struct Server {
    /// Address of the service.
    #[arg(
        long = "server",
        global = true,
        env = "BESPEAK_SERVER",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL"
    )]
    pub(in crate::cli) address: String,
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
    pub(in crate::cli) json: bool,
}

impl Server {
    /// Asks for an agreement.
    pub(in crate::cli) async fn agreement(&self, id: Uuid) -> Result<Value, Failure> {
        self.get(&format!("/agreements/{id}")).await
    }

    /// Asks for the timeline of an agreement.
    pub(in crate::cli) async fn timeline(&self, id: Uuid) -> Result<Value, Failure> {
        self.get(&format!("/agreements/{id}/events")).await
    }

    /// Asks for a value.
    pub(in crate::cli) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.receive(self.request(Method::GET, path)?).await
    }

    /// Asks for a value that may not be there.
    pub(in crate::cli) async fn find(&self, path: &str) -> Result<Option<Value>, Failure> {
        let request = self.request(Method::GET, path)?;
        self.receive_unless(StatusCode::NOT_FOUND, request).await
    }

    /// The answer to a request; none where that has this status.
    pub(super) async fn receive_unless(
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
    pub(in crate::cli) async fn pages(
        &self,
        query: &Query,
        name: &str,
        limit: usize,
    ) -> Result<Vec<Value>, Failure> {
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
    pub(in crate::cli) async fn print_bytes(&self, path: &str) -> Result<(), Failure> {
        let request = self.request(Method::GET, path)?.timeout(TRANSFER_TIMEOUT);
        let written = std::io::stdout().write_all(&self.send(request).await?);
        written.map_err(|why| Failure::Usage(why.to_string()))
    }

    /// Sends an XML document and reads the answer.
    pub(in crate::cli) async fn post(&self, path: &str, document: Vec<u8>) -> Result<Value, Failure> {
        let request = self
            .request(Method::POST, path)?
            .header("content-type", "application/xml")
            .body(document);
        self.receive(request).await
    }

    /// Puts bytes in a place.
    pub(in crate::cli) async fn put(&self, path: &str, bytes: Vec<u8>) -> Result<(), Failure> {
        let request = self
            .request(Method::PUT, path)?
            .timeout(TRANSFER_TIMEOUT)
            .body(bytes);
        self.send(request).await.map(drop)
    }

    /// Removes the content of a place.
    pub(in crate::cli) async fn delete(&self, path: &str) -> Result<(), Failure> {
        self.send(self.request(Method::DELETE, path)?).await.map(drop)
    }

    /// Sends a value and reads the answer.
    pub(in crate::cli) async fn post_json(&self, path: &str, value: &Value) -> Result<Value, Failure> {
        self.receive(self.request(Method::POST, path)?.json(value)).await
    }

    /// Sends the request that a command makes of its options, and reads the answer. What is wrong with the request is told by these
    /// options, each of which stands beside the member that it says.
    pub(super) async fn post_options(
        &self,
        path: &str,
        value: &Value,
        options: &[OptionOfMember],
    ) -> Result<Value, Failure> {
        let (status, mut body) = self
            .exchange(self.request(Method::POST, path)?.json(value))
            .await?;
        if !self.json
            && let Ok(mut told) = serde_json::from_slice(&body)
        {
            name_options(&mut told, options);
            // An answer that no offer came of has its faults inside.
            if let Some(refusal) = told.get_mut("refusal") {
                name_options(refusal, options);
            }
            body = told.to_string().into_bytes();
        }
        self.read_content(&self.content(status, body)?)
    }

    /// Removes the content of a place and reads the answer.
    pub(in crate::cli) async fn delete_json(&self, path: &str) -> Result<Value, Failure> {
        self.receive(self.request(Method::DELETE, path)?).await
    }

    /// Puts a value in a place and reads the answer.
    pub(in crate::cli) async fn put_json(&self, path: &str, value: &Value) -> Result<Value, Failure> {
        self.receive(self.request(Method::PUT, path)?.json(value)).await
    }

    /// Prints a value: as JSON where that is wanted, otherwise by `print`.
    pub(in crate::cli) fn print_value<T: Serialize>(&self, value: &T, print: impl FnOnce(&T)) {
        if self.json {
            print_json(&json!(value));
        } else {
            print(value);
        }
    }

    /// Prints an answer: as JSON where that is wanted, otherwise by `print` as the value that it is.
    pub(in crate::cli) fn print_answer<T: DeserializeOwned>(
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

    pub(super) fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Failure> {
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
    pub(in crate::cli) fn caller_key(&self) -> Result<String, Failure> {
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
        let text = self.report_problem(&problem, refusal_or_problem_in_words(status, &problem));
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

/// An answer of the service as the value that it is.
pub(in crate::cli) fn read_answer<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|why| Failure::Unavailable(format!("the service speaks another version: {why}")))
}
