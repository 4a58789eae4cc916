//! A way to a service that can break at a request.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use wsag::faults::Fault;
use wsag::time::DateTime;

/// A fault of the way at one request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Break {
    /// Cuts the connection before the service gets the request.
    CutBefore,
    /// Lets the service carry it out, and cuts the connection before the answer gets back.
    CutAfter,
    /// Lets the service carry it out, and keeps its answer until it is let go.
    KeepAfter,
    /// Says no in the place of the service.
    Refuse,
    /// Lets the service carry it out, and gives rubbish in place of its answer.
    RubbishAfter,
}

/// The fault that is planned: at the next request with these words at the beginning of its first line.
type Plan = Option<(&'static str, Break)>;

/// The way.
#[derive(Clone)]
pub(crate) struct BreakableProxy {
    pub(crate) address: SocketAddr,
    service: Arc<Mutex<SocketAddr>>,
    plan: Arc<Mutex<Plan>>,
    kept: Arc<Notify>,
}

/// An answer with a fault that refuses for good.
fn refusal() -> String {
    let fault = Fault::new(DateTime::from_seconds(0), "STATE", "no").to_xml();
    let length = fault.len();
    format!(
        "HTTP/1.1 409 Conflict\r\nConnection: close\r\nContent-Type: application/xml\r\nContent-Length: {length}\r\n\r\n{fault}"
    )
}

impl BreakableProxy {
    /// A way to a service.
    pub(crate) async fn to(service: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let way = Self {
            address: listener.local_addr().expect("it is bound"),
            service: Arc::new(Mutex::new(service)),
            plan: Arc::default(),
            kept: Arc::default(),
        };
        let this = way.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let this = this.clone();
                let service = *this.service.lock().unwrap_or_else(PoisonError::into_inner);
                tokio::spawn(async move { this.forward(client, service).await });
            }
        });
        way
    }

    /// Leads to another service from the next connection on.
    pub(crate) fn lead_to(&self, service: SocketAddr) {
        *self.service.lock().unwrap_or_else(PoisonError::into_inner) = service;
    }

    /// Has a fault happen at the next request that begins with these words.
    pub(crate) fn break_at(&self, request: &'static str, how: Break) {
        *self.plan() = Some((request, how));
    }

    /// Whether the planned fault has happened.
    pub(crate) fn has_broken(&self) -> bool {
        self.plan().is_none()
    }

    /// Lets an answer go that is kept.
    pub(crate) fn let_go(&self) {
        self.kept.notify_one();
    }

    /// Plans no fault any more, and lets all answers go that are kept.
    pub(crate) fn mend(&self) {
        *self.plan() = None;
        self.kept.notify_waiters();
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault that is to happen at this request, which then is no longer planned.
    fn fault_at(&self, bytes: &[u8]) -> Option<Break> {
        let mut plan = self.plan();
        let (_, how) = plan.take_if(|(request, _)| bytes.starts_with(request.as_bytes()))?;
        Some(how)
    }

    async fn forward(&self, client: TcpStream, service: SocketAddr) {
        let Ok(service) = TcpStream::connect(service).await else {
            return;
        };
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_service, mut to_service) = service.into_split();
        let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
        let mut after = None;
        loop {
            tokio::select! {
                read = from_client.read(&mut asked) => {
                    let Ok(length @ 1..) = read else { return };
                    // It is listened before the fault counts as happened: nobody lets go too early.
                    let let_go = Arc::clone(&self.kept).notified_owned();
                    match self.fault_at(&asked[..length]) {
                        Some(Break::CutBefore) => return,
                        Some(Break::Refuse) => {
                            let _ = to_client.write_all(refusal().as_bytes()).await;
                            return;
                        }
                        Some(fault) => after = Some((fault, Box::pin(let_go))),
                        None => {}
                    }
                    if to_service.write_all(&asked[..length]).await.is_err() { return }
                }
                read = from_service.read(&mut answered) => {
                    let Ok(length @ 1..) = read else { return };
                    match after.take() {
                        Some((Break::KeepAfter, let_go)) => let_go.await,
                        Some((Break::RubbishAfter, _)) => {
                            let rubbish = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\n<a>";
                            // The client may be gone.
                            let _ = to_client.write_all(rubbish).await;
                            return;
                        }
                        Some(_) => return,
                        None => {}
                    }
                    if to_client.write_all(&answered[..length]).await.is_err() { return }
                }
            }
        }
    }
}
