//! Files that are passed on: inputs to a peer, and what jobs there have written.

use std::io;

use address::error_without_address;
use http_body_util::channel::{Channel, Sender};
use hyper::body::Bytes;
use reqwest::header::{ACCEPT, CONTENT_LENGTH};
use reqwest::{Body, Method, Response};
use serde::Deserialize;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::error::{PeerError, Result};
use super::exchange::{ANSWER_WAIT, exchange, read_bounded, send, within};
use super::peer::Peer;

/// Bytes that are sent at once.
const BLOCK: usize = 64 << 10;

/// A file of a peer. Its bytes come part by part.
#[derive(Debug)]
pub struct PeerFile(Response);

/// The files that a job has written, as the peer lists them.
#[derive(Debug, Deserialize)]
struct FileListing {
    files: Vec<ListedFile>,
}

#[derive(Debug, Deserialize)]
struct ListedFile {
    name: String,
    bytes: u64,
}

impl PeerFile {
    /// How many bytes it has, where the peer says it.
    pub fn length(&self) -> Option<u64> {
        self.0.content_length()
    }

    /// The next part; none at its end.
    ///
    /// # Errors
    /// [`PeerError::Unknown`] where no more comes.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let part = self.0.chunk().await;
        part.map_err(|why| PeerError::Unknown(error_without_address(&why), None))
    }
}

impl Peer {
    /// Uploads a file of this length under a name, in place of an earlier one.
    ///
    /// # Errors
    /// [`PeerError::Refused`] where the peer does not want it, [`PeerError::Unknown`] also where the file cannot be read.
    pub async fn put_input(&self, name: &str, file: File, length: u64) -> Result<()> {
        let line = self.connection();
        let (sender, body) = Channel::<Bytes, io::Error>::new(1);
        let request = line.request(Method::PUT, line.below_base(&["files", name]));
        let request = request
            .header(CONTENT_LENGTH, length)
            .header(ACCEPT, "application/xml");
        // Bytes are sent as long as the peer takes them, and its answer has its own time.
        let mut sending = Box::pin(send(request.body(Body::wrap(body))));
        let answer = tokio::select! {
            // It may answer before it has all.
            answer = &mut sending => answer?,
            fed = send_file_to_peer(file.take(length), sender) => {
                fed.map_err(|why| PeerError::rubbish(&format!("the file cannot be read: {why}")))?;
                within(ANSWER_WAIT, sending).await?
            }
        };
        read_bounded(answer).await?.success()
    }

    /// The files that the job of an agreement has written, each with its length in bytes.
    ///
    /// # Errors
    /// [`PeerError::Refused`], [`PeerError::Unknown`].
    pub async fn outputs(&self, agreement: &str) -> Result<Vec<(String, u64)>> {
        let line = self.connection();
        let url = line.below(agreement, &["files"])?;
        let listed: FileListing = exchange(line.get_json(url)).await?.json("list of files")?;
        Ok(listed
            .files
            .into_iter()
            .map(|file| (file.name, file.bytes))
            .collect())
    }

    /// A file that the job of an agreement has written, as its bytes come.
    ///
    /// # Errors
    /// [`PeerError::Refused`], [`PeerError::Unknown`].
    pub async fn output(&self, agreement: &str, name: &str) -> Result<PeerFile> {
        let url = self.connection().below(agreement, &["files", name])?;
        let answer = within(ANSWER_WAIT, send(self.connection().get(url))).await?;
        if answer.status().is_success() {
            return Ok(PeerFile(answer));
        }
        let refused = read_bounded(answer).await?.success();
        Err(refused
            .err()
            .unwrap_or_else(|| PeerError::rubbish("it answers nothing")))
    }
}

/// Gives the bytes of a file to a request, until they end or the request is over, which then says why.
async fn send_file_to_peer(
    mut file: impl AsyncRead + Unpin,
    mut sender: Sender<Bytes, io::Error>,
) -> io::Result<()> {
    loop {
        let mut block = vec![0; BLOCK];
        let read = file.read(&mut block).await?;
        block.truncate(read);
        if read == 0 || sender.send_data(block.into()).await.is_err() {
            return Ok(());
        }
    }
}
