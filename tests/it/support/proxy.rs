//! A way to a PostgreSQL server that can break where a batch is committed: at a COMMIT, or at a batch that is one statement.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A fault of the connection at one commit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Fault {
    /// Cuts the connection before the server gets it.
    CutBefore,
    /// Lets the server carry it out, and cuts the connection before the answer gets back.
    CutAfter,
    /// As before, and passes nothing on any more on any connection.
    CutAfterForEver,
    /// Passes nothing on any more on this connection, and keeps it until the client is gone.
    StandStillBefore,
    /// Lets the server carry it out, and then stands still.
    StandStillAfter,
    /// Cuts the connection to the client, passes nothing on any more on any connection, and gives the server what was sent once it is let
    /// go.
    CutAndComeLate,
}

/// The fault that is planned, and whether it has happened.
#[derive(Debug, Default)]
struct Plan {
    fault: Option<Fault>,
    /// The number of commits that pass first.
    passing: usize,
    has_happened: bool,
}

/// What is kept back on its way, and whether it has come.
#[derive(Debug, Default)]
struct Late {
    let_go: Notify,
    has_come: Notify,
}

/// The proxy.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
    late: Arc<Late>,
}

impl Proxy {
    /// A proxy before the server that an address names.
    pub(crate) async fn before(url: &str) -> Self {
        let options = PgConnectOptions::from_str(url).expect("an address of PostgreSQL");
        let server = (options.get_host().to_owned(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let plan = Arc::new(Mutex::new(Plan::default()));
        let late = Arc::new(Late::default());
        let shared = (plan.clone(), late.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server.clone(), shared.clone()));
            }
        });
        Self { address, plan, late }
    }

    /// The database that an address names, by way of this proxy.
    pub(crate) fn to(&self, url: &str) -> String {
        PgConnectOptions::from_str(url)
            .expect("an address of PostgreSQL")
            .host("127.0.0.1")
            .port(self.address.port())
            .ssl_mode(PgSslMode::Disable)
            .to_url_lossy()
            .to_string()
    }

    /// Has a fault happen once, after `passing` commits that pass.
    pub(crate) fn plan(&self, fault: Fault, passing: usize) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Plan {
            fault: Some(fault),
            passing,
            has_happened: false,
        };
    }

    /// Whether the fault has happened.
    pub(crate) fn has_happened(&self) -> bool {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.has_happened
    }

    /// Gives the server what came late, and returns when it has answered.
    pub(crate) async fn let_go(&self) {
        self.late.let_go.notify_one();
        self.late.has_come.notified().await;
    }
}

/// A COMMIT in the simple query protocol: its letter, its length, its text.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
/// The end of an answer of the server when it is in no transaction (any more).
const COMMITTED: &[u8] = b"Z\0\0\0\x05I";
/// How a batch begins that is one statement, where it is prepared: behind the name that it gets.
const BATCH: &[u8] = b"\0WITH guard AS ";

/// The batches that a session has prepared as one statement, by the names of the statements.
#[derive(Default)]
struct Batches(Vec<Vec<u8>>);

impl Batches {
    /// Whether this commits something.
    fn is_commit(&mut self, asked: &[u8]) -> bool {
        // Behind the letter of a message stands its length.
        let message = |letter: &[u8]| asked.strip_prefix(letter)?.get(4..);
        if let Some(prepared) = message(b"P")
            && let Some(end) = prepared.windows(BATCH.len()).position(|part| part == BATCH)
        {
            self.0.push(prepared[..=end].to_vec());
        }
        // A statement is bound to the portal without a name.
        let bound = message(b"B").and_then(|bound| bound.strip_prefix(b"\0"));
        let is_batch = bound.is_some_and(|bound| self.0.iter().any(|name| bound.starts_with(name)));
        is_batch || asked.windows(COMMIT.len()).any(|part| part == COMMIT)
    }
}

async fn forward(client: TcpStream, server: (String, u16), (plan, late): (Arc<Mutex<Plan>>, Arc<Late>)) {
    let plan = || plan.lock().unwrap_or_else(PoisonError::into_inner);
    let server = TcpStream::connect(server).await.expect("the server is there");
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let has = |bytes: &[u8], message: &[u8]| bytes.windows(message.len()).any(|part| part == message);
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    let mut batches = Batches::default();
    // The fault that waits for the answer to the commit under way.
    let mut after = None;
    let (fault, length) = loop {
        tokio::select! {
            read = from_client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                {
                    let mut plan = plan();
                    let is_for_ever = matches!(plan.fault, Some(Fault::CutAfterForEver | Fault::CutAndComeLate));
                    if plan.has_happened && is_for_ever { return }
                    if batches.is_commit(&asked[..length]) && !plan.has_happened {
                        match (plan.passing.checked_sub(1), plan.fault) {
                            (Some(passing), _) => plan.passing = passing,
                            (None, Some(fault @ (Fault::CutBefore | Fault::StandStillBefore | Fault::CutAndComeLate))) => {
                                plan.has_happened = true;
                                break (fault, length);
                            }
                            (None, fault) => after = fault,
                        }
                    }
                }
                if to_server.write_all(&asked[..length]).await.is_err() { return }
            }
            read = from_server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if let Some(fault) = after && has(&answered[..length], COMMITTED) {
                    plan().has_happened = true;
                    break (fault, length);
                }
                if to_client.write_all(&answered[..length]).await.is_err() { return }
            }
        }
    };
    match fault {
        Fault::StandStillBefore | Fault::StandStillAfter => {
            while matches!(from_client.read(&mut asked).await, Ok(1..)) {}
        }
        Fault::CutAndComeLate => {
            drop((from_client, to_client));
            late.let_go.notified().await;
            to_server
                .write_all(&asked[..length])
                .await
                .expect("the server is there");
            let mut ended = Vec::new();
            while !has(&ended, COMMITTED) {
                let length = from_server.read(&mut answered).await.expect("the server answers");
                assert_ne!(length, 0, "the server answers");
                ended.extend_from_slice(&answered[..length]);
            }
            late.has_come.notify_one();
        }
        Fault::CutBefore | Fault::CutAfter | Fault::CutAfterForEver => {}
    }
}
