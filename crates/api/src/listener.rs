//! The accept loop. axum's own has no time-out for the head of a request, so that two thousand clients that dribble headers would
//! hold two thousand connections without end. This one has such a time-out, another for answers that the client does not read,
//! and caps on connections, on all and on those of one address, also behind a proxy that says which client speaks. Where there is a certificate, it speaks TLS and nothing else.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::{debug, warn};

use super::connections::{Connections, Origin};
use super::counted_places::CountedPlace;
use super::proxies::{Proxies, read_proxy_header};
use super::request_heads::{HEAD_MAX, RequestHeadStream, fault_of_request_head};
use super::standby::{Stage, is_for_one_that_starts, standby_router_while_starting};

/// The most header fields in a request.
const HEADERS_MAX: usize = 64;
/// How long a request waits for a process that starts.
const START_WAIT: Duration = Duration::from_secs(2);
/// How long to wait after `accept` failed for want of a file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The answer to a client that has too many connections, where nothing but plain HTTP is spoken.
const TOO_MANY: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\n\
    Content-Type: text/plain\r\nContent-Length: 31\r\n\r\ntoo many connections of yours\r\n";

/// The bounds of connections.
#[derive(Debug, Clone)]
pub struct ListenerBounds {
    /// Connections at the same time: further ones wait to be accepted, those of an address that has too many are closed.
    pub connections: Connections,
    /// The proxies that say which client speaks.
    pub proxies: Proxies,
    /// For the head of a request, and between two requests of a connection.
    pub header_timeout: Duration,
    /// For a client to take a part of an answer.
    pub write_timeout: Duration,
    /// For the requests that run when `stop` comes.
    pub shutdown_timeout: Duration,
}

impl ListenerBounds {
    /// Counts a connection from an address, until it is dropped; none where that has too many.
    fn take_connection(&self, address: IpAddr) -> Option<CountedPlace<Origin>> {
        if self.proxies.trust(address) {
            self.connections.take_of_proxy(address.into())
        } else {
            self.connections.take(address.into())
        }
    }
}

/// Serves until `stop` is cancelled, then lets running requests end for a while. Until the process stands by or leads, every
/// answer says that the service is not ready. Each connection is made with the certificate that there is then.
pub async fn serve(
    listener: TcpListener,
    tls: Option<watch::Receiver<Arc<ServerConfig>>>,
    stage: watch::Receiver<Stage>,
    bounds: ListenerBounds,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(bounds.connections.most()));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(bounds.header_timeout)
        .max_buf_size(HEAD_MAX)
        .max_headers(HEADERS_MAX);
    let starting = standby_router_while_starting();
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = stop.cancelled() => break,
        };
        // The semaphore is never closed.
        let Ok(place) = place else { break };
        let Some((stream, peer)) = stop.run_until_cancelled(accept_on_listener(&listener)).await else {
            break;
        };
        let is_proxy = bounds.proxies.trust(peer.ip());
        let Some(connection) = bounds.take_connection(peer.ip()) else {
            refuse_on_listener(stream, peer.ip(), tls.is_some());
            continue;
        };
        // Answers are short: waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let tls = tls
            .as_ref()
            .map(|now| TlsAcceptor::from(Arc::clone(&now.borrow())));
        let (http, watcher, bounds) = (http.clone(), graceful.watcher(), bounds.clone());
        let (stage, starting) = (stage.clone(), starting.clone());
        task::spawn(async move {
            let accepted = AcceptedConnection {
                stream,
                address: peer.ip(),
                is_proxy,
                connection,
                is_secure: tls.is_some(),
            };
            let Some((stream, origin, connection)) = accepted.named(&bounds).await else {
                return;
            };
            let proxies = is_proxy.then(|| bounds.proxies.clone());
            let service = service_fn(move |mut request: Request<Incoming>| {
                let trusted = proxies.as_ref();
                let client = trusted.and_then(|proxies| proxies.client_of(request.headers()));
                request
                    .extensions_mut()
                    .insert(client.map_or(origin, Origin::from));
                let mut stage = stage.clone();
                let starting = starting.clone();
                let waits = !is_for_one_that_starts(&request);
                // Where the next head would begin is not known to `RequestHeadStream`.
                let is_last = request.headers().contains_key(header::TRANSFER_ENCODING)
                    || fault_of_request_head(&request).is_some();
                async move {
                    let router = router_for_listener(&mut stage, waits).await.unwrap_or(starting);
                    let mut answer = router.oneshot(request.map(Body::new)).await;
                    if let (true, Ok(answer)) = (is_last, &mut answer) {
                        let close = HeaderValue::from_static("close");
                        answer.headers_mut().insert(header::CONNECTION, close);
                    }
                    answer
                }
            });
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(bounds.write_timeout));
            let stream = Box::pin(stream);
            let ended = match tls {
                None => {
                    watcher
                        .watch(http.serve_connection(TokioIo::new(RequestHeadStream::of(stream)), service))
                        .await
                }
                Some(tls) => match tokio::time::timeout(bounds.header_timeout, tls.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        watcher
                            .watch(
                                http.serve_connection(TokioIo::new(RequestHeadStream::of(stream)), service),
                            )
                            .await
                    }
                    Ok(Err(why)) => {
                        debug!(error = %why, "a TLS handshake failed");
                        Ok(())
                    }
                    Err(_) => Ok(()),
                },
            };
            if let Err(why) = ended {
                debug!(error = %why, "connection ended");
            }
            drop((place, connection));
        });
    }
    drop(listener);
    if tokio::time::timeout(bounds.shutdown_timeout, graceful.shutdown())
        .await
        .is_err()
    {
        warn!("some requests were still running and are cut off");
    }
}

/// The next connection.
async fn accept_on_listener(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(why) => {
                warn!(error = %why, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// A connection that was accepted.
struct AcceptedConnection {
    stream: TcpStream,
    address: IpAddr,
    is_proxy: bool,
    connection: CountedPlace<Origin>,
    is_secure: bool,
}

impl AcceptedConnection {
    /// The connection with its client, which a proxy may have to name first; none where it names none, or the client has too many
    /// connections.
    async fn named(self, bounds: &ListenerBounds) -> Option<(TcpStream, Origin, CountedPlace<Origin>)> {
        let Self {
            mut stream, address, ..
        } = self;
        if !self.is_proxy || !bounds.proxies.say_at_begin() {
            return Some((stream, Origin::from(address), self.connection));
        }
        let read = tokio::time::timeout(bounds.header_timeout, read_proxy_header(&mut stream)).await;
        let client = match read {
            Ok(Ok(Some(client))) => client,
            Ok(Ok(None)) => return Some((stream, Origin::from(address), self.connection)),
            Ok(Err(why)) => {
                warn!(%address, %why, "a connection of a trusted proxy is closed");
                return None;
            }
            Err(_) => return None,
        };
        let origin = Origin::from(client);
        let Some(connection) = bounds.connections.take(origin) else {
            refuse_on_listener(stream, client, self.is_secure);
            return None;
        };
        Some((stream, origin, connection))
    }
}

/// Closes a connection of an address that has too many.
fn refuse_on_listener(stream: TcpStream, address: IpAddr, is_secure: bool) {
    debug!(%address, "an address has too many connections");
    if !is_secure && let Ok(mut stream) = stream.into_std() {
        // There is room for it, and it is not waited for.
        let _ = stream.write(TOO_MANY);
    }
}

/// The routes of the process as it stands; none while it starts, for which a request may wait a moment: a client that is sent here just after
/// a restart need not see that.
async fn router_for_listener(stage: &mut watch::Receiver<Stage>, waits: bool) -> Option<Router> {
    if waits {
        let started = stage.wait_for(|stage| !matches!(stage, Stage::Starting));
        let _ = tokio::time::timeout(START_WAIT, started).await;
    }
    match &*stage.borrow() {
        Stage::Starting => None,
        Stage::StandingBy(router) | Stage::Leading(router) => Some(router.clone()),
    }
}
