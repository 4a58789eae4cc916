//! Documents from people who mean harm, or whose tools are broken: each is refused, and others are served meanwhile.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use tokio::task::{JoinSet, spawn_blocking};

use crate::support::client::Client;
use crate::support::offers::{Offer, file};
use crate::support::random::Random;
use crate::support::server::Server;
use crate::support::{run, size, xml};

/// Documents that are sent; `BESPEAK_TEST_DOCUMENTS` asks for more.
const DOCUMENTS: usize = 5_000;

/// Connections that send them.
const CLIENTS: usize = 6;

/// Seed of every mutation, so that a run can be repeated.
const SEED: u64 = 0x0062_6573_7065_616b;

/// An honest client asks once in so many documents of each connection.
const GOOD_EVERY: usize = 100;

/// No document keeps the service busy for so long, even in a debug build on a machine that runs other tests.
const SLOWEST: Duration = Duration::from_secs(5);

/// The service never needs more memory than this, in KiB; a debug build with nothing to do needs a tenth of it.
const MEMORY_MAX: u64 = 256 * 1_024;

#[test]
fn five_thousand_hostile_documents_are_refused_and_a_good_client_is_served() {
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

/// Makes hostile documents from valid ones.
struct Hostile {
    valid: Vec<Vec<u8>>,
}

impl Hostile {
    fn new() -> Self {
        // Each of these is refused for more than one reason, so that no single mutation makes it a good offer.
        let impossible = Offer::sleep(1, 7_200)
            .on(1_000_000)
            .within(1_600_000_000, 1_600_003_600)
            .xml()
            .into_bytes();
        let stored = [
            "m02-agreement-offer",
            "m03-create-agreement-input",
            "m14-negotiate-input",
            "m09-agreement-properties",
        ];
        let mut valid: Vec<Vec<u8>> = stored
            .iter()
            .map(|name| file(&format!("tests/messages/{name}.xml")).into_bytes())
            .collect();
        valid.extend([impossible.clone(), impossible]);
        Self { valid }
    }

    /// The document of that number; the same in every run.
    fn document(&self, index: usize) -> Vec<u8> {
        let mut random = Random::new(SEED.wrapping_add(index as u64));
        if index.is_multiple_of(10) {
            return bomb(index / 10, &mut random);
        }
        let mut document = self.valid[random.below(self.valid.len())].clone();
        for _ in 0..=random.below(3) {
            mutate(&mut document, &mut random);
        }
        document
    }
}

/// Changes a document in one place.
fn mutate(document: &mut Vec<u8>, random: &mut Random) {
    const WORDS: [&str; 14] = [
        "99999999999999999999999",
        "-1",
        "1e400",
        "NaN",
        "&amp;",
        "&#0;",
        "&#x110000;",
        "&undeclared;",
        "<![CDATA[",
        "]]>",
        "<!--",
        "<?php ?>",
        "\u{0}",
        "2026-02-30T25:61:61Z",
    ];
    if document.is_empty() {
        return;
    }
    let at = random.below(document.len());
    let end = (at + 1 + random.below(60)).min(document.len());
    match random.below(7) {
        0 => document[at] = u8::try_from(random.below(256)).unwrap_or_default(),
        1 => drop(document.drain(at..end)),
        2 => document.truncate(at),
        3 => {
            let copy = document[at..end].to_vec();
            let to = random.below(document.len());
            document.splice(to..to, copy);
        }
        4 => {
            let word = WORDS[random.below(WORDS.len())];
            document.splice(at..at, word.bytes());
        }
        5 => {
            // The text of an element, where there is one.
            let word = WORDS[random.below(WORDS.len())];
            if let Some(open) = document[at..]
                .iter()
                .position(|byte| *byte == b'>')
                .map(|offset| at + offset + 1)
                && let Some(close) = document[open..]
                    .iter()
                    .position(|byte| *byte == b'<')
                    .map(|offset| open + offset)
            {
                document.splice(open..close, word.bytes());
            } else {
                document.truncate(at);
            }
        }
        _ => {
            // An element's name.
            if let Some(open) = document[at..]
                .iter()
                .position(|byte| *byte == b'<')
                .map(|offset| at + offset + 1)
            {
                document.insert(open, b'x');
            } else {
                document.truncate(at);
            }
        }
    }
}

/// A document that is made to hurt whoever reads it.
fn bomb(kind: usize, random: &mut Random) -> Vec<u8> {
    const ROOT: &str = "wsag:AgreementOffer xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\"";
    let size = 100 + random.below(4_000);
    let text = match kind % 10 {
        0 => {
            let entities = joined(1..30, |n| format!("<!ENTITY e{n} \"&e{};&e{};\">", n - 1, n - 1));
            format!("<!DOCTYPE r [<!ENTITY e0 \"ha\">{entities}]><{ROOT}>&e29;</wsag:AgreementOffer>")
        }
        1 => format!(
            "<!DOCTYPE r [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><{ROOT}>&x;</wsag:AgreementOffer>"
        ),
        2 => format!("{}{}", "<a>".repeat(size), "</a>".repeat(size)),
        3 => {
            let attributes = joined(0..size, |n| format!(" a{n}=\"\""));
            format!("<{ROOT}{attributes}/>")
        }
        4 => {
            let spaces = joined(0..size, |n| format!(" xmlns:n{n}=\"urn:{n}\""));
            format!("<{ROOT}{spaces}/>")
        }
        5 => joined(0..size, |n| format!("<a xmlns:n{n}=\"urn:{n}\">")),
        6 => format!("<{ROOT}>{}</wsag:AgreementOffer>", "<a/>".repeat(size)),
        7 => format!("<{ROOT}>{}</wsag:AgreementOffer>", "x".repeat(size * 60)),
        8 => "<!--".repeat(size),
        _ => {
            return (0..size)
                .map(|_| u8::try_from(random.below(256)).unwrap_or_default())
                .collect();
        }
    };
    text.into_bytes()
}

/// The texts of each number, one after another.
fn joined(numbers: Range<usize>, text: impl Fn(usize) -> String) -> String {
    numbers.map(text).collect::<Vec<_>>().concat()
}
