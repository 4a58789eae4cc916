//! A receiver of call-backs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use super::eventually;

const DEADLINE: Duration = Duration::from_mins(1);

/// A listener of ours: answers each request with the next of its statuses, all later ones with the last, and keeps the bodies.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    pub(crate) bodies: Arc<Mutex<Vec<String>>>,
    /// The headers of each call.
    pub(crate) headers: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Receiver {
    pub(crate) async fn listen(at: SocketAddr, statuses: &'static [u16]) -> Self {
        Self::answer(TcpListener::bind(at).await.expect("a port is free"), statuses)
    }

    /// The same with a listener that is open already.
    pub(crate) fn answer(listener: TcpListener, statuses: &'static [u16]) -> Self {
        let told = Self {
            address: listener.local_addr().expect("it is bound"),
            bodies: Arc::default(),
            headers: Arc::default(),
        };
        let (bodies, heads) = (Arc::clone(&told.bodies), Arc::clone(&told.headers));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let count = bodies.lock().await.len();
                let status = statuses[count.min(statuses.len() - 1)];
                if let Some((headers, body)) = answered(stream, status).await {
                    heads.lock().await.push(headers);
                    bodies.lock().await.push(body);
                }
            }
        });
        told
    }

    /// Takes connections and never says a word.
    pub(crate) async fn silent() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                kept.push(stream);
            }
        });
        address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/decided?a=b", self.address)
    }

    pub(crate) async fn hears(&self, count: usize) -> Vec<String> {
        eventually(&format!("{count} calls"), DEADLINE, async || {
            let bodies = self.bodies.lock().await;
            (bodies.len() >= count).then(|| bodies.clone())
        })
        .await
    }
}

/// Reads a request and answers it; its headers and its body.
pub(crate) async fn answered(mut stream: TcpStream, status: u16) -> Option<(HeaderMap, String)> {
    let mut bytes = Vec::new();
    let (headers, body) = loop {
        let mut buffer = [0; 4_096];
        let read = stream.read(&mut buffer).await.ok()?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            assert!(head.starts_with("POST /decided?a=b HTTP/1.1"), "{head}");
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            let header = |(name, value): (&str, &str)| {
                let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
                Some((name, HeaderValue::from_str(value).ok()?))
            };
            let headers: HeaderMap = lines.filter_map(header).collect();
            let length = headers.get("content-length")?.to_str().ok()?;
            if body.len() >= length.parse().ok()? {
                break (headers, body.to_owned());
            }
        }
        if read == 0 {
            return None;
        }
    };
    // A redirect leads to a place that must not be reached.
    let location = if status == 302 {
        "location: http://127.0.0.1:1/\r\n"
    } else {
        ""
    };
    let answer = format!("HTTP/1.1 {status} x\r\n{location}content-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.ok()?;
    Some((headers, body))
}
