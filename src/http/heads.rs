//! The heads of requests as they come in. A head that two programs may read in two ways is refused with 400, since a proxy before the
//! service could take another request out of it. hyper keeps one of several equal Content-Length fields and drops the one beside a
//! Transfer-Encoding before anyone sees them, so the bytes are looked at on their way to it. It answers what it cannot read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The largest head of a request that is read, in bytes.
pub(super) const HEAD_MAX: usize = 16 * 1_024;

/// A stream of requests, of which heads with two meanings cannot be read.
pub(super) struct Unambiguous<S> {
    stream: S,
    heads: Heads,
}

/// Where in the requests of a connection its bytes are.
#[derive(Default)]
struct Heads {
    at: At,
    /// The line of the head, as far as it has come.
    line: Vec<u8>,
    fields: Fields,
}

#[derive(Default, Clone, Copy)]
enum At {
    #[default]
    Head,
    /// In a body with so many bytes to come.
    Body(u64),
    /// Behind the last head: of what comes no request is made.
    End,
}

/// The fields of a head that say where the request goes and where it ends.
#[derive(Default)]
struct Fields {
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

impl Fields {
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
    fn next(&self) -> At {
        match (self.codings + self.lengths, self.length) {
            (0, _) | (_, Some(0)) => At::Head,
            (_, Some(length)) => At::Body(length),
            (_, None) => At::End,
        }
    }
}

impl Heads {
    /// Looks at the next bytes, and makes the end of a head with two meanings one that cannot be read.
    fn look_at(&mut self, bytes: &mut [u8]) {
        let mut next = 0;
        while let Some(byte) = bytes.get_mut(next) {
            match self.at {
                At::End => return,
                At::Body(left) => {
                    let here = bytes.len() - next;
                    let step = usize::try_from(left).unwrap_or(here).min(here);
                    next += step;
                    self.at = match left - step as u64 {
                        0 => At::Head,
                        left => At::Body(left),
                    };
                    continue;
                }
                At::Head if *byte == b'\n' => {
                    if self.end_of_line() {
                        *byte = 0;
                        self.at = At::End;
                    }
                }
                // It is refused for its size.
                At::Head if self.line.len() == HEAD_MAX => self.at = At::End,
                At::Head => self.line.push(*byte),
            }
            next += 1;
        }
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
            }
            (false, false) => self.fields.begun = true,
            (false, true) => self.fields.add(line),
        }
        self.line.clear();
        is_ambiguous
    }
}

impl<S> Unambiguous<S> {
    pub(super) fn of(stream: S) -> Self {
        let heads = Heads::default();
        Self { stream, heads }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unambiguous<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Unambiguous<S> {
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
        let mut heads = Heads::default();
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
}
