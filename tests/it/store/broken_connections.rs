//! Postgres connections that break around COMMIT: the store finds out what became of the batch, or says that it does
//! not know.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use bespeak::store::{Error, Store};
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{agreement, create, decide};
use crate::support::block_on;
use crate::support::stores::TestDatabase;

/// What the proxy does when it sees a COMMIT.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    /// Passes it on.
    None = 0,
    /// Cuts the connection before the server gets it, once.
    Before = 1,
    /// Lets the server carry it out, and cuts the connection before the answer gets back, once.
    After = 2,
    /// As before, and passes nothing on any more on any connection.
    AfterAndForEver = 3,
}

/// A way to the server that can break.
struct Proxy {
    address: SocketAddr,
    fault: Arc<AtomicU8>,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    async fn start(server: (String, u16)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (fault, cuts) = (
            Arc::new(AtomicU8::new(Fault::None as u8)),
            Arc::new(AtomicUsize::new(0)),
        );
        let (faults, count) = (fault.clone(), cuts.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server.clone(), faults.clone(), count.clone()));
            }
        });
        Self { address, fault, cuts }
    }

    fn set(&self, fault: Fault) {
        self.cuts.store(0, Ordering::SeqCst);
        self.fault.store(fault as u8, Ordering::SeqCst);
    }
}

/// A COMMIT in the simple query protocol: its letter, its length, its text.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
/// What the server answers once it is carried out.
const COMMITTED: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

async fn forward(client: TcpStream, server: (String, u16), fault: Arc<AtomicU8>, cuts: Arc<AtomicUsize>) {
    let server = TcpStream::connect(server).await.expect("the server is there");
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let has = |bytes: &[u8], message: &[u8]| bytes.windows(message.len()).any(|part| part == message);
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    let mut cutting = false;
    loop {
        tokio::select! {
            read = from_client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let set = fault.load(Ordering::SeqCst);
                if set == Fault::AfterAndForEver as u8 && cuts.load(Ordering::SeqCst) > 0 { return }
                if has(&asked[..length], COMMIT) && set != Fault::None as u8 {
                    if cuts.fetch_add(1, Ordering::SeqCst) == 0 && set == Fault::Before as u8 {
                        return;
                    }
                    cutting = cuts.load(Ordering::SeqCst) == 1 && set != Fault::Before as u8;
                }
                if to_server.write_all(&asked[..length]).await.is_err() { return }
            }
            read = from_server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if cutting && has(&answered[..length], COMMITTED) { return }
                if to_client.write_all(&answered[..length]).await.is_err() { return }
            }
        }
    }
}

/// A store behind a proxy, and its lease straight to the server.
async fn behind_a_proxy(url: &str) -> (Proxy, Store, Store, bespeak::store::Lease) {
    let (direct, lease) = decide(url).await;
    let options = PgConnectOptions::from_str(url).expect("an address of PostgreSQL");
    let proxy = Proxy::start((options.get_host().to_owned(), options.get_port())).await;
    let there = options
        .host("127.0.0.1")
        .port(proxy.address.port())
        .ssl_mode(PgSslMode::Disable);
    let through = there.to_url_lossy().to_string();
    let store = Store::open(&through)
        .await
        .expect("the proxy passes everything on");
    (proxy, store, direct, lease)
}

#[test]
fn a_batch_whose_commit_was_cut_is_stored_exactly_once() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    block_on(async move {
        let (proxy, store, direct, lease) = behind_a_proxy(&url).await;
        for round in 0..3 {
            for fault in [Fault::Before, Fault::After] {
                proxy.set(fault);
                let one = agreement("a");
                store
                    .commit(lease.epoch, &[create(&one)])
                    .await
                    .unwrap_or_else(|error| panic!("round {round}, cut {fault:?}: {error:?}"));
                assert!(proxy.cuts.load(Ordering::SeqCst) > 0, "the fault did not happen");
                assert_eq!(
                    direct.agreement(one.id).await.expect("an answer"),
                    Some(one.clone()),
                    "{fault:?}"
                );
                assert_eq!(
                    direct.events(one.id).await.expect("an answer").len(),
                    1,
                    "{fault:?}"
                );
            }
        }
    });
}

#[test]
fn a_batch_whose_outcome_cannot_be_found_out_is_said_to_be_unknown() {
    let database = TestDatabase::postgres();
    let url = database.url().to_owned();
    block_on(async move {
        let (proxy, store, direct, lease) = behind_a_proxy(&url).await;
        proxy.set(Fault::AfterAndForEver);
        let one = agreement("a");
        let told = store.commit(lease.epoch, &[create(&one)]).await;
        assert!(matches!(told, Err(Error::Unknown { .. })), "{told:?}");
        assert_eq!(
            direct.agreement(one.id).await.expect("an answer"),
            Some(one),
            "the server had it"
        );
    });
}
