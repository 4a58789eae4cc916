//! Documents of attackers and of broken tools: each is refused, and others are served meanwhile.

mod documents;
mod heads;
mod negotiations;

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use tokio::task::{JoinSet, spawn_blocking};

use documents::Hostile;

use crate::support::client::Client;
use crate::support::offers::Offer;
use crate::support::server::Server;
use crate::support::{run, size, xml};

/// Documents that are sent; `BESPEAK_TEST_DOCUMENTS` asks for more.
const DOCUMENTS: usize = 1_000;

/// Connections that send them.
const CLIENTS: usize = 6;

/// An honest client asks once in this number of documents of each connection.
const GOOD_EVERY: usize = 100;

/// No document keeps the service busy for so long, even in a debug build on a machine that runs other tests.
const SLOWEST: Duration = Duration::from_mins(1);

/// The service never needs more memory than this, in KiB; a debug build with nothing to do needs a tenth of it.
const MEMORY_MAX: u64 = 256 * 1_024;

#[test]
fn hostile_documents_are_refused_and_a_good_client_is_served() {
    run(async {
        let server = Server::local();
        let total = size("BESPEAK_TEST_DOCUMENTS", DOCUMENTS);
        let documents = Arc::new(Hostile::new());
        let attackers: JoinSet<_> = (0..CLIENTS)
            .map(|first| attack(server.client(), Arc::clone(&documents), first, total))
            .collect();
        let slowest = attackers
            .join_all()
            .await
            .into_iter()
            .max()
            .expect("there are attackers");
        server
            .client()
            .post("/agreements", Offer::reserve(1, 1).xml())
            .await
            .created();
        server.assert_verified();
        let memory = server.peak_memory_kib();
        println!("{total} documents; slowest answer {slowest:?}; peak memory {memory:?} KiB");
        assert!(
            memory.is_none_or(|peak| peak < MEMORY_MAX),
            "the service needed {memory:?} KiB"
        );
    });
}

/// Sends every document from number `first` on that is this attacker's, and a good offer now and then. How long the
/// slowest answer took.
async fn attack(client: Client, documents: Arc<Hostile>, first: usize, total: usize) -> Duration {
    let mut slowest = Duration::ZERO;
    let mut bodies = Vec::new();
    for index in (first..total).step_by(CLIENTS) {
        let begun = Instant::now();
        bodies.push(refused(&client, index, documents.document(index)).await);
        let took = begun.elapsed();
        assert!(
            took < SLOWEST,
            "document {index} took {took:?}:\n{}",
            shown(&documents.document(index))
        );
        slowest = slowest.max(took);
        if (index / CLIENTS).is_multiple_of(GOOD_EVERY) {
            client
                .post("/agreements", Offer::reserve(1, 1).xml())
                .await
                .created();
            assert_valid_aside(std::mem::take(&mut bodies)).await;
        }
    }
    assert_valid_aside(bodies).await;
    slowest
}

/// The body of the answer to a document, which must be a refusal.
async fn refused(client: &Client, index: usize, document: Vec<u8>) -> String {
    let request = client
        .request(Method::POST, "/agreements")
        .header("content-type", "application/xml")
        .body(document.clone());
    match client.try_send(request).await {
        Ok(answer) if answer.status.is_client_error() => answer.body,
        other => panic!("document {index} is answered {other:?}:\n{}", shown(&document)),
    }
}

/// Validates on a thread that no request waits for.
async fn assert_valid_aside(bodies: Vec<String>) {
    let validation = spawn_blocking(move || xml::assert_all_valid(bodies.iter().map(String::as_str)));
    validation.await.expect("every refusal is a valid document");
}

/// The beginning of a document.
fn shown(document: &[u8]) -> String {
    String::from_utf8_lossy(&document[..document.len().min(4_000)]).into_owned()
}
