//! A server of files over HTTP that can do everything that one of the open network may do: give parts, cut the connection, fall
//! silent, lead on, refuse.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What a path does other than to serve its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Cuts the connection after so many bytes of each answer.
    CutAfter(usize),
    /// Gives so many bytes of each answer and then nothing more, until it behaves otherwise.
    SilentAfter(usize),
    /// Leads on to another address.
    LeadsOn(u16, String),
    /// Answers this status, with this body.
    Status(u16),
}

/// How long to wait for a client to go before it is looked again whether to answer on.
const LOOKED_EVERY: Duration = Duration::from_millis(10);

/// A request as it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Its `Range`, where it had one.
    pub(crate) range: Option<String>,
    /// Its `If-Range`.
    pub(crate) if_range: Option<String>,
    /// Its `Content-Length`.
    pub(crate) length: Option<usize>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    /// The number of times that each file has been changed.
    versions: BTreeMap<String, u32>,
    behaviours: BTreeMap<String, Behaviour>,
    asked: Vec<ServedRequest>,
    /// Files that are served without a mark of their version.
    unmarked: bool,
}

/// The server.
#[derive(Debug, Clone)]
pub(crate) struct DataServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl DataServer {
    /// One on a free port of this machine.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let server = Self {
            address: listener.local_addr().expect("it is bound"),
            state: Arc::default(),
        };
        let own = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let own = own.clone();
                // A client that goes away ends its connection, and no test.
                tokio::spawn(async move { drop(own.serve(stream).await) });
            }
        });
        server
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of a path, which begins with `/`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Has a path serve these bytes.
    pub(crate) fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        let mut state = self.state();
        *state.versions.entry(path.to_owned()).or_default() += 1;
        state.files.insert(path.to_owned(), bytes.into());
    }

    /// The file of a path, where there is one.
    pub(crate) fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.state().files.get(path).cloned()
    }

    /// Has a path behave in some way, or serve its file again.
    pub(crate) fn behave(&self, path: &str, behaviour: impl Into<Option<Behaviour>>) {
        let mut state = self.state();
        match behaviour.into() {
            Some(behaviour) => state.behaviours.insert(path.to_owned(), behaviour),
            None => state.behaviours.remove(path),
        };
    }

    /// Has files be served without a mark of their version.
    pub(crate) fn without_marks(&self) {
        self.state().unmarked = true;
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<ServedRequest> {
        self.state().asked.clone()
    }

    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            head.push(line.trim().to_owned());
        }
        let field = |name: &str| {
            head.iter().skip(1).find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let mut words = head[0].split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = target.split('?').next().unwrap_or_default().to_owned();
        let asked = ServedRequest {
            method: method.clone(),
            path: path.clone(),
            range: field("range"),
            if_range: field("if-range"),
            length: field("content-length").and_then(|length| length.parse().ok()),
        };
        let behaviour = {
            let mut state = self.state();
            state.asked.push(asked.clone());
            state.behaviours.get(&path).cloned()
        };
        let stream = &mut stream;
        match behaviour {
            Some(Behaviour::Status(status)) => {
                return respond(stream, &format!("{status} Status"), &[], b"", None).await;
            }
            Some(Behaviour::LeadsOn(status, to)) => {
                let fields = [format!("Location: {to}")];
                return respond(stream, &format!("{status} Elsewhere"), &fields, b"", None).await;
            }
            _ => {}
        }
        if method == "PUT" {
            let mut body = vec![0; asked.length.unwrap_or(0)];
            stream.read_exact(&mut body).await?;
            self.put(&path, body);
            return respond(stream, "201 Created", &[], b"", None).await;
        }
        let Some(file) = self.file(&path) else {
            return respond(stream, "404 Not Found", &[], b"", None).await;
        };
        let (mark, unmarked) = {
            let state = self.state();
            let version = state.versions.get(&path).copied().unwrap_or(0);
            (format!("\"{version}\""), state.unmarked)
        };
        let mut fields = vec!["Accept-Ranges: bytes".to_owned()];
        if !unmarked {
            fields.push(format!("ETag: {mark}"));
        }
        let from = asked.range.as_deref().and_then(first_byte);
        let is_same = asked.if_range.as_ref().is_none_or(|given| *given == mark);
        let (status, rest) = match from.filter(|_| is_same) {
            Some(from) if from >= file.len() => {
                fields.push(format!("Content-Range: bytes */{}", file.len()));
                ("416 Range Not Satisfiable", &[][..])
            }
            Some(from) => {
                let (last, all) = (file.len() - 1, file.len());
                fields.push(format!("Content-Range: bytes {from}-{last}/{all}"));
                ("206 Partial Content", &file[from..])
            }
            None => ("200 OK", &file[..]),
        };
        let most = match behaviour {
            Some(Behaviour::CutAfter(most) | Behaviour::SilentAfter(most)) => Some(most),
            _ => None,
        };
        respond(stream, status, &fields, rest, most).await?;
        // Silent until it behaves otherwise, or the other end is gone.
        while let Some(Behaviour::SilentAfter(_)) = self.behaviour(&path) {
            let mut end = [0];
            let gone = stream.read(&mut end);
            let waited = tokio::time::timeout(LOOKED_EVERY, gone).await;
            if matches!(waited, Ok(Ok(0) | Err(_))) {
                break;
            }
        }
        Ok(())
    }

    fn behaviour(&self, path: &str) -> Option<Behaviour> {
        self.state().behaviours.get(path).cloned()
    }
}

/// The first byte that a `Range` asks for.
fn first_byte(range: &str) -> Option<usize> {
    range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

/// Writes an answer, of whose body only the first bytes come where there is a limit.
async fn respond(
    stream: &mut BufReader<TcpStream>,
    status: &str,
    fields: &[String],
    body: &[u8],
    most: Option<usize>,
) -> std::io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for field in fields {
        head += &format!("{field}\r\n");
    }
    head += "\r\n";
    stream.write_all(head.as_bytes()).await?;
    let cut = most.map_or(body.len(), |most| most.min(body.len()));
    stream.write_all(&body[..cut]).await?;
    stream.flush().await
}
