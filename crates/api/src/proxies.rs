//! Proxies before the service that say which client speaks: at the begin of each connection, by the PROXY protocol (versions 1 and 2 of its
//! specification by `HAProxy`), or in a header of each request. Only those that the configuration names are believed.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use axum::http::header::FORWARDED;
use axum::http::{HeaderMap, HeaderName};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The beginning of a header of version 2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The longest header of version 1, and the longest rest of one of version 2 that is read.
const LINE_MAX: usize = 107;
const REST_MAX: usize = 2_048;
/// The word of the configuration for the PROXY protocol.
pub const PROXY_PROTOCOL: &str = "proxy-protocol";

/// Addresses that have their first bits in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProxyNetwork {
    first: IpAddr,
    bits: u32,
}

impl FromStr for ProxyNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("expected an address such as 10.0.0.5, or a network such as 10.0.0.0/24, found {text:?}")
        };
        let (first, bits) = text
            .split_once('/')
            .map_or((text, None), |(first, bits)| (first, Some(bits)));
        let first: IpAddr = first.parse().map_err(|_| wrong())?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > most {
            return Err(wrong());
        }
        Ok(Self { first, bits })
    }
}

impl ProxyNetwork {
    fn contains(self, address: IpAddr) -> bool {
        let number = |address: IpAddr| match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, true),
            IpAddr::V6(address) => (address.to_bits(), false),
        };
        let ((own, is_v4), (other, is_other_v4)) = (number(self.first), number(address.to_canonical()));
        let differ = (own ^ other).checked_shr(128 - self.bits).unwrap_or(0);
        is_v4 == is_other_v4 && differ == 0
    }
}

/// Where a proxy says which client speaks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum ClientSource {
    #[default]
    AtBegin,
    In(HeaderName),
}

/// The proxies that are believed. By default there are none.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    trusted: Arc<[ProxyNetwork]>,
    says: ClientSource,
}

impl Proxies {
    /// The proxies at these addresses and in these networks, which name the client by [`PROXY_PROTOCOL`] or in the header of this name.
    ///
    /// # Errors
    /// What is expected in place of an address or of the name.
    pub fn new(trusted: &[String], says: &str) -> Result<Self, String> {
        let trusted: Result<Arc<[ProxyNetwork]>, String> = trusted.iter().map(|text| text.parse()).collect();
        let says = if says == PROXY_PROTOCOL {
            ClientSource::AtBegin
        } else {
            // Forwarded has parameters beside addresses, which a client may have written.
            let name = HeaderName::from_str(says).ok().filter(|name| *name != FORWARDED);
            ClientSource::In(name.ok_or_else(|| {
                format!(
                    "expected {PROXY_PROTOCOL:?} or the name of a header that lists addresses alone, such as \
                     \"X-Forwarded-For\", found {says:?}"
                )
            })?)
        };
        Ok(Self {
            trusted: trusted?,
            says,
        })
    }

    /// Whether what comes from an address is believed.
    pub(super) fn trust(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }

    /// Whether a proxy begins its connections with the client.
    pub(super) fn say_at_begin(&self) -> bool {
        self.says == ClientSource::AtBegin
    }

    /// The client of a request that a proxy has sent: of the addresses that its header lists the last one that is no proxy, since the
    /// client may have written those before it. None where there is no such address.
    pub(super) fn client_of(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let ClientSource::In(name) = &self.says else {
            return None;
        };
        let lines: Vec<&str> = headers
            .get_all(name)
            .iter()
            .map(|line| line.to_str().unwrap_or(""))
            .collect();
        let listed = lines.iter().rev().flat_map(|line| line.rsplit(','));
        for text in listed {
            // What is no address hides the ones before it, too.
            let address = parse_proxied_address(text.trim())?;
            if !self.trust(address) {
                return Some(address);
            }
        }
        None
    }
}

/// An address as proxies list it, maybe with a port.
fn parse_proxied_address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse()
        .ok()
        .or_else(|| text.parse().ok().map(|socket: std::net::SocketAddr| socket.ip()))
}

/// Reads the header of the PROXY protocol at the begin of a connection. None where the proxy speaks for itself, as in its checks.
///
/// # Errors
/// Where there is no such header; those of reading.
pub(super) async fn read_proxy_header<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<IpAddr>> {
    let mut begin = [0; SIGNATURE.len()];
    stream.read_exact(&mut begin).await?;
    if begin == SIGNATURE {
        return read_proxy_version_2(stream).await;
    }
    if !begin.starts_with(b"PROXY ") {
        return Err(wrong(
            "a trusted proxy has not begun its connection with a header of the PROXY protocol",
        ));
    }
    let mut line = begin.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() >= LINE_MAX {
            return Err(wrong("the line of the PROXY protocol does not end"));
        }
        // Byte by byte: what comes after it is the client's.
        line.push(stream.read_u8().await?);
    }
    let line = String::from_utf8(line).map_err(|_| wrong("the line of the PROXY protocol is no text"))?;
    let mut words = line.trim_end().split(' ').skip(1);
    match (words.next(), words.next()) {
        (Some("TCP4" | "TCP6"), Some(source)) => {
            let source = source
                .parse()
                .map_err(|_| wrong("the PROXY protocol names no address"))?;
            Ok(Some(source))
        }
        (Some("UNKNOWN"), _) => Ok(None),
        _ => Err(wrong("the PROXY protocol names neither TCP4, TCP6 nor UNKNOWN")),
    }
}

async fn read_proxy_version_2<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<IpAddr>> {
    let (version, family) = (stream.read_u8().await?, stream.read_u8().await?);
    let length = usize::from(stream.read_u16().await?);
    if length > REST_MAX {
        return Err(wrong("the header of the PROXY protocol is too long"));
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    match (version, family >> 4) {
        // LOCAL; and a family that is not said or is not of the internet.
        (0x20, _) | (0x21, 0 | 3) => Ok(None),
        (0x21, 1) if length >= 12 => Ok(rest.first_chunk::<4>().map(|chunk| Ipv4Addr::from(*chunk).into())),
        (0x21, 2) if length >= 36 => Ok(rest
            .first_chunk::<16>()
            .map(|chunk| Ipv6Addr::from(*chunk).into())),
        _ => Err(wrong("the header of the PROXY protocol is none of its version 2")),
    }
}

fn wrong(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    async fn read(bytes: &[u8]) -> io::Result<(Option<IpAddr>, Vec<u8>)> {
        let mut stream = bytes;
        let client = read_proxy_header(&mut stream).await?;
        Ok((client, stream.to_vec()))
    }

    #[tokio::test]
    async fn both_versions_of_the_proxy_protocol_name_the_client_and_leave_what_it_sends() {
        let one = b"PROXY TCP4 192.0.2.1 198.51.100.1 4711 443\r\nGET /";
        assert_eq!(
            read(one).await.unwrap(),
            (Some(address("192.0.2.1")), b"GET /".to_vec())
        );
        let six = b"PROXY TCP6 2001:db8::1 2001:db8::2 4711 443\r\n";
        assert_eq!(read(six).await.unwrap().0, Some(address("2001:db8::1")));
        assert_eq!(
            read(b"PROXY UNKNOWN\r\nGET /").await.unwrap(),
            (None, b"GET /".to_vec())
        );
        let mut two = SIGNATURE.to_vec();
        two.extend([
            0x21, 0x11, 0, 15, 192, 0, 2, 1, 198, 51, 100, 1, 1, 2, 3, 4, 4, 0, 0,
        ]);
        two.extend(b"GET /");
        assert_eq!(
            read(&two).await.unwrap(),
            (Some(address("192.0.2.1")), b"GET /".to_vec())
        );
        let mut check = SIGNATURE.to_vec();
        check.extend([0x20, 0, 0, 0]);
        assert_eq!(read(&check).await.unwrap().0, None);
    }

    #[tokio::test]
    async fn what_is_no_header_of_the_proxy_protocol_is_refused() {
        let mut long = SIGNATURE.to_vec();
        long.extend([0x21, 0x11, 0xff, 0xff]);
        let endless = format!("PROXY TCP4 {}", "1".repeat(200));
        let mut third = SIGNATURE.to_vec();
        third.extend([0x31, 0x11, 0, 0]);
        for bytes in [
            b"GET / HTTP/1.1\r\n\r\n".as_slice(),
            b"PROXY TCP4 nobody 1.1.1.1 1 1\r\n",
            b"PROXY UDP4 1.1.1.1 1.1.1.1 1 1\r\n",
            endless.as_bytes(),
            &long,
            &third,
            b"PROXY",
        ] {
            assert!(read(bytes).await.is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_client() {
        let trusted = ["10.0.0.0/8".to_owned(), "2001:db8::/32".to_owned()];
        let proxies = Proxies::new(&trusted, "X-Forwarded-For").unwrap();
        let client = |lines: &[&'static str]| {
            let lines = lines.iter().map(|line| {
                (
                    HeaderName::from_static("x-forwarded-for"),
                    HeaderValue::from_static(line),
                )
            });
            proxies.client_of(&lines.collect())
        };
        assert_eq!(
            client(&["203.0.113.9, 192.0.2.1, 10.0.0.7"]),
            Some(address("192.0.2.1"))
        );
        assert_eq!(
            client(&["203.0.113.9", "192.0.2.1:4711"]),
            Some(address("192.0.2.1"))
        );
        assert_eq!(client(&["192.0.2.1, somebody"]), None);
        assert_eq!((client(&["10.0.0.7"]), client(&[])), (None, None));
        assert!(proxies.trust(address("::ffff:10.1.2.3")) && proxies.trust(address("2001:db8:1::1")));
        assert!(!proxies.trust(address("11.0.0.1")) && !proxies.trust(address("2001:db9::1")));
        for (trusted, says) in [
            ("10.0.0.0/33", "x"),
            ("balancer", "x"),
            ("10.0.0.1", "no header"),
            ("10.0.0.1", "Forwarded"),
        ] {
            assert!(Proxies::new(&[trusted.to_owned()], says).is_err());
        }
    }
}
