//! One file over HTTP: fetched part by part, so that it is gone on with after a cut; or sent.
//!
//! The other end is not trusted. Only addresses that are allowed are asked, those that it leads on to included, and of an answer
//! nothing is read but its status, a few fields of its head, and as many bytes as a job may have.

use std::io;
use std::time::{Duration, Instant};

use address::{AllowedAddresses, address_without_query, error_without_address};
use http_body_util::channel::{Channel, Sender};
use hyper::body::Bytes;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, IF_RANGE, LAST_MODIFIED,
    LOCATION, RANGE,
};
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode};
use scheduler::counted;
use tokio::fs::{DirBuilder, File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use super::transfer_log::{TransferLog, Trouble};

/// How long the other end may let a connection, an answer or the next bytes wait.
const IDLE: Duration = Duration::from_secs(30);
/// How often what has arrived is written down for good: so much is fetched again after a crash.
const NOTE_EVERY: Duration = Duration::from_secs(1);
/// Addresses that one leads on to, one after the other.
const REDIRECTS_MAX: usize = 5;
/// Bytes that are sent at once.
const BLOCK: usize = 64 << 10;
/// The longest mark of a version that is kept.
const MARK_MAX: usize = 256;

/// Bytes that go one way within a rate.
struct TransferPace {
    since: Instant,
    bytes: u64,
    rate_max: Option<u64>,
}

/// A request on its way from address to address.
struct TransferRequest {
    method: Method,
    address: String,
    led_on: usize,
}

impl TransferRequest {
    fn of(method: Method, address: &str) -> Self {
        Self {
            method,
            address: address.to_owned(),
            led_on: 0,
        }
    }

    /// Goes on to the address that an answer leads on to; whether it leads on.
    fn goes_on(&mut self, answer: &Response) -> Result<bool, Trouble> {
        let status = answer.status();
        let leads_on = match status {
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
            // What follows these is fetched, whatever was sent.
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => {
                self.method == Method::GET
            }
            _ => return Ok(false),
        };
        let next = header_field_of_transfer(answer.headers(), &LOCATION).filter(|_| leads_on);
        let next = next.and_then(|to| answer.url().join(&to).ok());
        self.address = next.ok_or_else(|| trouble_of_transfer_status(status))?.into();
        self.led_on += 1;
        if self.led_on > REDIRECTS_MAX {
            let message = format!("it leads on more than {REDIRECTS_MAX} times");
            return Err(Trouble::Theirs(message));
        }
        Ok(true)
    }
}

/// The provider's rules for moving files.
#[derive(Debug, Clone)]
pub struct TransferRules {
    /// The addresses that files may come from and go to.
    pub allowed: AllowedAddresses,
    /// Bytes of the files of one job that may go one way.
    pub bytes_max: u64,
    /// Bytes a second of one job's files; none for as many as there are.
    pub rate_max: Option<u64>,
}

impl Default for TransferRules {
    /// No address is allowed.
    fn default() -> Self {
        Self {
            allowed: AllowedAddresses::default(),
            bytes_max: u64::MAX,
            rate_max: None,
        }
    }
}

impl TransferRules {
    /// A request to an address that is allowed.
    async fn request(&self, asking: &TransferRequest) -> Result<RequestBuilder, Trouble> {
        let address = &asking.address;
        let check = self.allowed.check(address);
        check.map_err(|why| {
            Trouble::Theirs(format!(
                "{} is not allowed: {why}",
                address_without_query(address)
            ))
        })?;
        let resolved = tokio::time::timeout(IDLE, self.allowed.resolved(address)).await;
        let resolved = resolved.unwrap_or_else(|_| Err("its host is not found in time".to_owned()));
        let target = resolved.map_err(Trouble::Passing)?;
        let client = target.client(|client| client.connect_timeout(IDLE));
        let client = client.map_err(Trouble::Ours)?;
        Ok(client.request(asking.method.clone(), target.url))
    }

    /// The pace of a transfer that begins now.
    fn pace(&self) -> TransferPace {
        TransferPace {
            since: Instant::now(),
            bytes: 0,
            rate_max: self.rate_max,
        }
    }

    fn too_much(&self, bytes: u64) -> Trouble {
        Trouble::Theirs(format!(
            "with its {} the files of the job would have more than the {} that may be moved for it",
            counted(bytes, "byte"),
            self.bytes_max
        ))
    }
}

impl TransferPace {
    /// Waits until so many more bytes are within the rate.
    #[expect(clippy::cast_precision_loss, reason = "a pause need not be exact")]
    async fn keep(&mut self, more: usize) {
        self.bytes += more as u64;
        if let Some(rate) = self.rate_max {
            let due = Duration::from_secs_f64(self.bytes as f64 / rate as f64);
            tokio::time::sleep(due.saturating_sub(self.since.elapsed())).await;
        }
    }
}

/// Fetches a file, or the rest of it. How far it has come is in the books, whatever comes of it.
pub(super) async fn transfer_file_here(
    books: &mut TransferLog,
    at: usize,
    address: &str,
    line: &TransferRules,
) -> Result<(), Trouble> {
    books.on_the_way();
    let mut bytes = books.file(at).bytes;
    let mut part = open_part_of_transfer(books, at, &mut bytes).await?;
    let fetched = transfer_into(&mut part, &mut bytes, books, at, (address, line)).await;
    settle_transferred_bytes(&mut part, books, at, bytes).await?;
    fetched?;
    books.file(at).done = true;
    books.note(at, bytes).await
}

/// Opens the part of a file that has arrived, at its end.
async fn open_part_of_transfer(books: &mut TransferLog, at: usize, bytes: &mut u64) -> Result<File, Trouble> {
    let path = books.part(at);
    let open = async || -> io::Result<(File, u64)> {
        if let Some(folder) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .await?;
        }
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(&path).await?;
        let there = file.metadata().await?.len();
        Ok((file, there))
    };
    let (mut part, there) = open().await?;
    if there < *bytes {
        // Its disk has lost some of it.
        *bytes = 0;
    }
    cut_transferred_file(&mut part, *bytes).await?;
    Ok(part)
}

/// Cuts a file at a length and goes on there.
async fn cut_transferred_file(part: &mut File, bytes: u64) -> Result<(), Trouble> {
    part.set_len(bytes).await?;
    part.seek(io::SeekFrom::Start(bytes)).await?;
    Ok(())
}

/// Makes what has arrived last, and writes it down.
async fn settle_transferred_bytes(
    part: &mut File,
    books: &mut TransferLog,
    at: usize,
    bytes: u64,
) -> Result<(), Trouble> {
    part.flush().await?;
    part.sync_data().await?;
    books.note(at, bytes).await
}

async fn transfer_into(
    part: &mut File,
    bytes: &mut u64,
    books: &mut TransferLog,
    at: usize,
    (address, line): (&str, &TransferRules),
) -> Result<(), Trouble> {
    let mark = books.file(at).mark.clone().filter(|_| *bytes > 0);
    let begun = mark.is_some().then_some(*bytes);
    let mut asking = TransferRequest::of(Method::GET, address);
    let mut answer = loop {
        // The bytes are to come as they are.
        let mut request = line.request(&asking).await?.header(ACCEPT_ENCODING, "identity");
        if let (Some(from), Some(mark)) = (begun, &mark) {
            request = request
                .header(RANGE, format!("bytes={from}-"))
                .header(IF_RANGE, mark);
        }
        let answer = answer_to_transfer_within_idle_time(request.send()).await?;
        if !asking.goes_on(&answer)? {
            break answer;
        }
    };
    let range = header_field_of_transfer(answer.headers(), &CONTENT_RANGE).unwrap_or_default();
    match answer.status() {
        StatusCode::PARTIAL_CONTENT
            if begun.is_some_and(|from| transferred_range_begins_at(&range, from)) => {}
        StatusCode::OK => *bytes = 0,
        // Nothing comes after the end of it.
        StatusCode::RANGE_NOT_SATISFIABLE if begun.is_some_and(|from| range == format!("bytes */{from}")) => {
            return Ok(());
        }
        StatusCode::RANGE_NOT_SATISFIABLE | StatusCode::PARTIAL_CONTENT => {
            books.file(at).mark = None;
            return Err(Trouble::Passing(
                "it gives another part than it was asked for".to_owned(),
            ));
        }
        status => return Err(trouble_of_transfer_status(status)),
    }
    cut_transferred_file(part, *bytes).await?;
    let all = answer.content_length().map(|rest| *bytes + rest);
    let file = books.file(at);
    (file.of, file.mark) = (all, mark_of_transferred_version(answer.headers()));
    let beside = books.beside(at);
    let check = |bytes: u64| {
        let is_too_much = beside.saturating_add(bytes) > line.bytes_max;
        if is_too_much {
            Err(line.too_much(bytes))
        } else {
            Ok(())
        }
    };
    check(all.unwrap_or(0))?;
    // From now on the mark is that of what is there.
    settle_transferred_bytes(part, books, at, *bytes).await?;

    let (mut pace, mut noted, mut seen) = (line.pace(), *bytes, Instant::now());
    let mut next = tokio::time::Instant::now() + NOTE_EVERY;
    loop {
        let chunk = tokio::time::timeout_at(next, answer.chunk()).await;
        match chunk {
            Ok(Ok(None)) => return Ok(()),
            Ok(Ok(Some(chunk))) => {
                check(*bytes + chunk.len() as u64)?;
                part.write_all(&chunk).await?;
                *bytes += chunk.len() as u64;
                seen = Instant::now();
                pace.keep(chunk.len()).await;
            }
            Ok(Err(why)) => return Err(Trouble::Passing(error_without_address(&why))),
            Err(_) if seen.elapsed() > IDLE => return Err(trouble_of_silent_transfer()),
            Err(_) => {}
        }
        if tokio::time::Instant::now() >= next {
            if noted < *bytes {
                settle_transferred_bytes(part, books, at, *bytes).await?;
                noted = *bytes;
            }
            next = tokio::time::Instant::now() + NOTE_EVERY;
        }
    }
}

/// Sends a file with this length, and waits until the other end has it.
pub(super) async fn transfer_file_there(
    books: &mut TransferLog,
    at: usize,
    (file, length): (File, u64),
    address: &str,
    line: &TransferRules,
) -> Result<(), Trouble> {
    books.on_the_way();
    books.file(at).of = Some(length);
    if books.beside(at).saturating_add(length) > line.bytes_max {
        return Err(line.too_much(length));
    }
    let sent = transfer_from(file, length, address, line).await;
    let bytes = if sent.is_ok() { length } else { 0 };
    books.file(at).done = sent.is_ok();
    books.note(at, bytes).await?;
    sent
}

async fn transfer_from(
    mut file: File,
    length: u64,
    address: &str,
    line: &TransferRules,
) -> Result<(), Trouble> {
    let mut asking = TransferRequest::of(Method::PUT, address);
    loop {
        file.rewind().await?;
        let (sender, body) = Channel::<Bytes, io::Error>::new(1);
        let request = line.request(&asking).await?.header(CONTENT_LENGTH, length);
        let mut sending = Box::pin(request.body(Body::wrap(body)).send());
        // It may answer before it has all.
        let answer = tokio::select! {
            answer = &mut sending => answer.map_err(|why| Trouble::Passing(error_without_address(&why))),
            fed = feed_file_to_transfer(&mut file, length, sender, line.pace()) => {
                fed?;
                answer_to_transfer_within_idle_time(sending).await
            }
        }?;
        if asking.goes_on(&answer)? {
            continue;
        }
        return match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(trouble_of_transfer_status(status)),
        };
    }
}

/// Gives the bytes of a file to a request.
async fn feed_file_to_transfer(
    file: &mut File,
    length: u64,
    mut sender: Sender<Bytes, io::Error>,
    mut pace: TransferPace,
) -> Result<(), Trouble> {
    let mut left = length;
    while left > 0 {
        let mut block = vec![0; BLOCK.min(usize::try_from(left).unwrap_or(BLOCK))];
        file.read_exact(&mut block).await?;
        left -= block.len() as u64;
        pace.keep(block.len()).await;
        match tokio::time::timeout(IDLE, sender.send_data(block.into())).await {
            Ok(Ok(())) => {}
            // The request is over, and says why.
            Ok(Err(_)) => return Ok(()),
            Err(_) => return Err(trouble_of_silent_transfer()),
        }
    }
    Ok(())
}

/// The answer to a request, which has to come in time.
async fn answer_to_transfer_within_idle_time(
    sent: impl Future<Output = Result<Response, reqwest::Error>>,
) -> Result<Response, Trouble> {
    let answer = tokio::time::timeout(IDLE, sent)
        .await
        .map_err(|_| trouble_of_silent_transfer())?;
    answer.map_err(|why| Trouble::Passing(error_without_address(&why)))
}

/// The trouble that a status tells.
fn trouble_of_transfer_status(status: StatusCode) -> Trouble {
    let why = format!("it answers {status}");
    let passes = [
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_EARLY,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    if status.is_server_error() || passes.contains(&status) {
        Trouble::Passing(why)
    } else {
        Trouble::Theirs(why)
    }
}

fn trouble_of_silent_transfer() -> Trouble {
    Trouble::Passing(format!("it has been silent for {} seconds", IDLE.as_secs()))
}

fn header_field_of_transfer(head: &HeaderMap, name: &HeaderName) -> Option<String> {
    head.get(name)?.to_str().ok().map(ToOwned::to_owned)
}

/// Whether a `Content-Range` begins at a byte.
fn transferred_range_begins_at(range: &str, from: u64) -> bool {
    let first = range
        .strip_prefix("bytes ")
        .and_then(|range| range.split('-').next());
    first.and_then(|first| first.parse().ok()) == Some(from)
}

/// The mark of the version that an answer has, by which the rest of it can be asked for: a strong entity tag, else the time of its
/// last change (RFC 9110, section 13.1.5).
fn mark_of_transferred_version(head: &HeaderMap) -> Option<String> {
    let tag = header_field_of_transfer(head, &ETAG).filter(|tag| tag.starts_with('"'));
    let mark = tag.or_else(|| header_field_of_transfer(head, &LAST_MODIFIED));
    mark.filter(|mark| mark.len() <= MARK_MAX)
}
