//! The listener of a process: where it listens, and at what address clients reach it.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tracing::{info, warn};

use super::Options;
use crate::cli::Failure;
use crate::cli::config::Config;

/// How long to wait for an address that is in use, and between two tries: as long as for the lock of the database.
const ADDRESS_WAIT: Duration = Duration::from_secs(10);
const ADDRESS_PAUSE: Duration = Duration::from_millis(20);

/// After how long the log says that it is waited for.
const ADDRESS_TOLD_AFTER: Duration = Duration::from_secs(1);

/// A listener, and where it listens: port 0 is whichever is free. Waits for a moment where the address is in use. A process that the last
/// service was just starting when it was killed has its socket until it becomes its program.
pub(super) async fn open_listener(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let cannot = |why: std::io::Error| Failure::Unavailable(format!("cannot listen on {address}: {why}"));
    let (began, mut told) = (Instant::now(), false);
    loop {
        match TcpListener::bind(address).await {
            Err(why) if why.kind() == ErrorKind::AddrInUse && began.elapsed() < ADDRESS_WAIT => {
                if !told && began.elapsed() > ADDRESS_TOLD_AFTER {
                    info!(%address, "another process listens on this address; waiting for it to end");
                    told = true;
                }
                tokio::time::sleep(ADDRESS_PAUSE).await;
            }
            bound => {
                let listener = bound.map_err(cannot)?;
                let address = listener.local_addr().map_err(cannot)?;
                return Ok((listener, address));
            }
        }
    }
}

/// The scheme of the addresses for clients.
pub(super) fn scheme_of_listener(is_secure: bool, options: &Options) -> Result<&'static str, Failure> {
    if is_secure {
        return Ok("https");
    }
    if !options.at.listen.ip().is_loopback() {
        if !options.insecure {
            return Err(Failure::Usage(format!(
                "on {} keys and documents would travel in clear: name a certificate in [tls], or, where a proxy beside the service \
                 speaks TLS, give --insecure",
                options.at.listen
            )));
        }
        warn!("keys and documents travel in clear, as --insecure allows");
    }
    Ok("http")
}

/// The address of the service where no request names one.
pub(super) fn address_of_listener(config: &Config, scheme: &str, listening: SocketAddr) -> Arc<str> {
    match &config.public_address {
        Some(address) => address.trim_end_matches('/').into(),
        None => format!("{scheme}://{listening}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_is_let_go_soon_is_waited_for() {
        let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = held.local_addr().unwrap();
        let mut listens = Box::pin(open_listener(address));
        let waits = std::future::poll_fn(|cx| std::task::Poll::Ready(listens.as_mut().poll(cx).is_pending()));
        assert!(waits.await, "it is in use now");
        drop(held);
        assert_eq!(listens.await.unwrap().1, address);
    }
}
