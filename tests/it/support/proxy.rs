//! A way to a PostgreSQL server that can break at a COMMIT.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A fault of the connection at one COMMIT.
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
}

/// The fault that is planned, and whether it has happened.
#[derive(Debug, Default)]
struct Plan {
    fault: Option<Fault>,
    /// The number of COMMITs that pass first.
    passing: usize,
    has_happened: bool,
}

/// The proxy.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
}

impl Proxy {
    /// A proxy before the server that an address names.
    pub(crate) async fn before(url: &str) -> Self {
        let options = PgConnectOptions::from_str(url).expect("an address of PostgreSQL");
        let server = (options.get_host().to_owned(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let plan = Arc::new(Mutex::new(Plan::default()));
        let shared = plan.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server.clone(), shared.clone()));
            }
        });
        Self { address, plan }
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

    /// Has a fault happen once, after `passing` COMMITs that pass.
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
}

/// A COMMIT in the simple query protocol: its letter, its length, its text.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
/// The server's answer to it.
const COMMITTED: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

async fn forward(client: TcpStream, server: (String, u16), plan: Arc<Mutex<Plan>>) {
    let plan = || plan.lock().unwrap_or_else(PoisonError::into_inner);
    let server = TcpStream::connect(server).await.expect("the server is there");
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let has = |bytes: &[u8], message: &[u8]| bytes.windows(message.len()).any(|part| part == message);
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    // The fault that waits for the answer to the COMMIT under way.
    let mut after = None;
    let fault = loop {
        tokio::select! {
            read = from_client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                {
                    let mut plan = plan();
                    if plan.has_happened && plan.fault == Some(Fault::CutAfterForEver) { return }
                    if has(&asked[..length], COMMIT) && !plan.has_happened {
                        match (plan.passing.checked_sub(1), plan.fault) {
                            (Some(passing), _) => plan.passing = passing,
                            (None, Some(fault @ (Fault::CutBefore | Fault::StandStillBefore))) => {
                                plan.has_happened = true;
                                break fault;
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
                    break fault;
                }
                if to_client.write_all(&answered[..length]).await.is_err() { return }
            }
        }
    };
    if matches!(fault, Fault::StandStillBefore | Fault::StandStillAfter) {
        while matches!(from_client.read(&mut asked).await, Ok(1..)) {}
    }
}
