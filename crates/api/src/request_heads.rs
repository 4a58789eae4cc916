//! The heads of requests as they come in. A head that two programs may read in two ways is refused with 400, since a proxy before the
//! service could take another request out of it. hyper keeps one of several equal Content-Length fields and drops the one beside a
//! Transfer-Encoding before anyone sees them, so the bytes are looked at on their way to it. It answers what it cannot read. A target
//! that is longer than any of ours is cut, so that the request can be read and answered with 414: hyper would refuse the head for its
//! size, whatever part of it is too large.

use std::io::{self, IoSlice};
use std::net::Ipv6Addr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};
use axum::middleware::Next;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Answer, Error};

/// The largest head of a request that is read, in bytes.
pub(super) const HEAD_MAX: usize = 16 * 1_024;
/// The longest target of a request, in bytes: RFC 9110 asks for 8,000 at least.
const TARGET_MAX: usize = 8_000;
/// The rest of a head that is cut. No request that could be read is shorter behind its target.
const CUT: &[u8] = b" HTTP/1.1\n\n";

/// A stream of requests, of which heads with two meanings cannot be read.
pub(super) struct RequestHeadStream<S> {
    stream: S,
    heads: RequestHeads,
}

/// Where in the requests of a connection its bytes are.
#[derive(Default)]
struct RequestHeads {
    at: HeadPosition,
    /// The line of the head, as far as it has come.
    line: Vec<u8>,
    /// The bytes of its first line behind the first space, without another space: of its target.
    target: Option<usize>,
    fields: RequestHeadFields,
}

#[derive(Default, Clone, Copy)]
enum HeadPosition {
    #[default]
    Head,
    /// In a head of which so many bytes of the rest have been replaced by [`CUT`].
    Cut(usize),
    /// In a body with so many bytes to come.
    Body(u64),
    /// Behind the last head: of what comes no request is made.
    End,
}

/// The fields of a head that say where the request goes and where it ends.
#[derive(Default)]
struct RequestHeadFields {
    /// Whether the line before them has come.
    begun: bool,
    hosts: u32,
    lengths: u32,
    /// The length of the body; none where it is no number.
    length: Option<u64>,
    codings: u32,
    /// Whether another coding than `chunked` is among them.
    other_coding: bool,
}

impl RequestHeadFields {
    fn add(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        let value = value.trim_ascii();
        if name.eq_ignore_ascii_case(b"host") {
            self.hosts += 1;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            self.lengths += 1;
            self.length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.codings += 1;
            self.other_coding |= !value.eq_ignore_ascii_case(b"chunked");
        }
    }

    fn is_ambiguous(&self) -> bool {
        self.hosts > 1 || self.lengths + self.codings > 1 || self.other_coding
    }

    /// What comes after the head. A connection ends after a body in chunks (`listener.rs`), and where hyper cannot read the length.
    fn next(&self) -> HeadPosition {
        match (self.codings + self.lengths, self.length) {
            (0, _) | (_, Some(0)) => HeadPosition::Head,
            (_, Some(length)) => HeadPosition::Body(length),
            (_, None) => HeadPosition::End,
        }
    }
}

impl RequestHeads {
    /// Looks at the next bytes, and makes the end of a head with two meanings one that cannot be read.
    fn look_at(&mut self, bytes: &mut [u8]) {
        let mut next = 0;
        while let Some(byte) = bytes.get_mut(next) {
            match self.at {
                HeadPosition::End => return,
                HeadPosition::Cut(done) => match CUT.get(done) {
                    Some(instead) => {
                        *byte = *instead;
                        self.at = HeadPosition::Cut(done + 1);
                    }
                    None => self.at = HeadPosition::End,
                },
                HeadPosition::Body(left) => {
                    let here = bytes.len() - next;
                    let step = usize::try_from(left).unwrap_or(here).min(here);
                    next += step;
                    self.at = match left - step as u64 {
                        0 => HeadPosition::Head,
                        left => HeadPosition::Body(left),
                    };
                    continue;
                }
                HeadPosition::Head if *byte == b'\n' => {
                    if self.end_of_line() {
                        *byte = 0;
                        self.at = HeadPosition::End;
                    }
                }
                // It is refused for its size.
                HeadPosition::Head if self.line.len() == HEAD_MAX => self.at = HeadPosition::End,
                HeadPosition::Head => {
                    self.line.push(*byte);
                    if self.count_byte(*byte) {
                        *byte = CUT[0];
                        self.at = HeadPosition::Cut(1);
                    }
                }
            }
            next += 1;
        }
    }

    /// Counts a byte of the first line. Whether it is one of a target that is so long that it is refused without it.
    fn count_byte(&mut self, byte: u8) -> bool {
        if self.fields.begun {
            return false;
        }
        self.target = match (self.target, byte) {
            // The target follows, or the version.
            (_, b' ') => Some(0),
            (target, _) => target.map(|length| length + 1),
        };
        // With one byte more than is taken, it is known to be too long.
        self.target.is_some_and(|length| length > TARGET_MAX + 1)
    }

    /// Takes the line that has come. Whether it ends a head with two meanings.
    fn end_of_line(&mut self) -> bool {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let mut is_ambiguous = false;
        match (line.is_empty(), self.fields.begun) {
            // Such lines may stand before a request.
            (true, false) => {}
            (true, true) => {
                let fields = std::mem::take(&mut self.fields);
                is_ambiguous = fields.is_ambiguous();
                self.at = fields.next();
                self.target = None;
            }
            (false, false) => self.fields.begun = true,
            (false, true) => self.fields.add(line),
        }
        self.line.clear();
        is_ambiguous
    }
}

/// What is wrong with the head of a request that could be read: a target that is too long, or no host, or none that can be one (RFC 9112,
/// section 3.2). A connection ends after it: where the next head would begin is not known.
pub(super) fn fault_of_request_head<B>(request: &axum::http::Request<B>) -> Option<Error> {
    let uri = request.uri();
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    if authority
        + uri
            .path_and_query()
            .map_or(0, |path_and_query| path_and_query.as_str().len())
        > TARGET_MAX
    {
        return Some(Error::TargetTooLong(TARGET_MAX));
    }
    let is_host = match request.headers().get(header::HOST) {
        Some(host) => is_host_of_request_head(host),
        None => request.version() < Version::HTTP_11,
    };
    let what = "Host: the name or the address of the service is expected, perhaps with a port";
    (!is_host).then(|| Error::Header(what.to_owned()))
}

/// Refuses a request with such a head.
pub(super) async fn check_request_head(request: Request, next: Next) -> Answer {
    match fault_of_request_head(&request) {
        Some(fault) => Err(fault),
        None => Ok(next.run(request).await),
    }
}

/// Whether a value names a host, by name or address, perhaps with a port. It stands in the addresses of answers.
fn is_host_of_request_head(value: &HeaderValue) -> bool {
    let text = value.to_str().unwrap_or_default();
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (text, ""),
    };
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        !name.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
    };
    let inside = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_known = match inside {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => is_name(host),
    };
    is_known && port.bytes().all(|byte| byte.is_ascii_digit())
}

impl<S> RequestHeadStream<S> {
    pub(super) fn of(stream: S) -> Self {
        let heads = RequestHeads::default();
        Self { stream, heads }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RequestHeadStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.heads.look_at(&mut buffer.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RequestHeadStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether heads in these bytes are made unreadable, given so many bytes at a time.
    fn is_refused(text: &str, at_a_time: usize) -> bool {
        let mut bytes = text.as_bytes().to_vec();
        let mut heads = RequestHeads::default();
        bytes.chunks_mut(at_a_time).for_each(|chunk| heads.look_at(chunk));
        bytes != text.as_bytes()
    }

    #[test]
    fn a_head_with_two_meanings_is_found_wherever_it_is_cut() {
        let good = "\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 19\r\n\r\nHost: b\r\nHost: c\r\n\r\n";
        for (fields, refused) in [
            ("Host: a\r\n", false),
            ("HOST: a\r\nhost: a\r\n", true),
            ("Host: a\nHost: b\n", true),
            ("Content-Length: 0\r\n", false),
            ("Content-Length: 1\r\nContent-Length: 1\r\n", true),
            ("Transfer-Encoding: Chunked\r\n", false),
            ("Transfer-Encoding: chunked, chunked\r\n", true),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                true,
            ),
            ("Transfer-Encoding: gzip, chunked\r\n", true),
            ("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", true),
            ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", true),
            ("X-Host: a\r\nX-Host: b\r\n", false),
        ] {
            for end in ["\r\n", "\n"] {
                let text = format!("{good}GET / HTTP/1.1\r\n{fields}{end}");
                for at_a_time in [1, 2, 7, text.len()] {
                    assert_eq!(is_refused(&text, at_a_time), refused, "{text:?}");
                }
            }
        }
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(!is_refused(
            &format!("{chunked}9\r\nHost: a\r\nHost: b\r\n\r\n"),
            3
        ));
    }

    #[test]
    fn a_target_that_is_too_long_is_cut_wherever_the_bytes_are_and_no_other() {
        let read = |text: &str, at_a_time: usize| {
            let mut bytes = text.as_bytes().to_vec();
            let mut heads = RequestHeads::default();
            bytes.chunks_mut(at_a_time).for_each(|chunk| heads.look_at(chunk));
            String::from_utf8(bytes).unwrap()
        };
        let request = |length: usize| {
            format!(
                "GET /{} HTTP/1.1\r\nHost: a\r\nX-Long: {}\r\n\r\n",
                "x".repeat(length - 1),
                "y".repeat(9_000)
            )
        };
        for at_a_time in [1, 7, 20_000] {
            for length in [1, TARGET_MAX, TARGET_MAX + 1] {
                assert_eq!(read(&request(length), at_a_time), request(length));
            }
            for length in [TARGET_MAX + 2, 2 * TARGET_MAX, 20_000] {
                let cut = read(&request(length), at_a_time);
                let (head, _) = cut.split_once("\n\n").unwrap();
                let target = head
                    .strip_prefix("GET ")
                    .unwrap()
                    .strip_suffix(" HTTP/1.1")
                    .unwrap();
                assert_eq!(target.len(), TARGET_MAX + 1);
                assert_eq!(cut.len(), request(length).len());
            }
            // The shortest rest there is.
            let short = format!("GET /{} HTTP/1.1\n\n", "x".repeat(TARGET_MAX + 1));
            assert!(read(&short, at_a_time).contains(" HTTP/1.1\n\n"));
        }
        // The next request of the connection is counted by itself.
        let twice = request(TARGET_MAX).repeat(2);
        assert_eq!(read(&twice, 5), twice);
    }

    #[test]
    fn a_host_is_a_name_or_an_address_perhaps_with_a_port() {
        for host in [
            "a",
            "a.example:8080",
            "127.0.0.1:80",
            "[::1]",
            "[::1]:8080",
            "a_b",
            "a:",
        ] {
            assert!(is_host_of_request_head(&HeaderValue::from_static(host)), "{host}");
        }
        for host in [
            "", ":80", "a b", "a/b", "a@b", "[", "[::1", "[a]", "a:b", "a%", "\u{e4}", "a:80:80", "<a>",
        ] {
            let value = HeaderValue::from_bytes(host.as_bytes()).unwrap();
            assert!(!is_host_of_request_head(&value), "{host}");
        }
    }
}
