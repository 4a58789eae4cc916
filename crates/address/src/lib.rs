//! The addresses outside that the service may reach. Clients name most of them, so without care the service would reach addresses
//! behind its own firewall.

mod special;

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::{Client, ClientBuilder, Url};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls_platform_verifier::ConfigVerifierExt;

/// The longest address that is taken.
const LENGTH_MAX: usize = 2_048;
/// The addresses of WS-Addressing 1.0 (Core, section 2.1) that are no places: what is for the first goes back on the connection of the
/// request, and what is for the second goes nowhere.
const NO_PLACES: [&str; 2] = [
    "http://www.w3.org/2005/08/addressing/anonymous",
    "http://www.w3.org/2005/08/addressing/none",
];
/// How long the certificates that the system trusts are not read again.
const CERTIFICATES_KEPT: Duration = Duration::from_hours(1);

/// The rule for all addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy {
    /// Whether addresses may be called that are not public: of this machine, of private networks.
    pub private_addresses: bool,
}

/// Whether an address is the anonymous one of WS-Addressing, or its none: nothing is called there, and no name is looked up for it.
pub fn is_no_place(address: &str) -> bool {
    let url = address.parse::<Url>();
    url.is_ok_and(|url| NO_PLACES.contains(&url.as_str()))
}

/// An address that may be reached, and where its host is.
pub struct Target {
    /// The address.
    pub url: Url,
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Target {
    /// A client that reaches only the host that was checked, follows no redirect, and uses no proxy, with what `more` sets besides.
    ///
    /// # Errors
    /// Why the system has none.
    pub fn client(&self, more: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<Client, String> {
        let tls = tls_to_outside_addresses()?;
        client_to_anywhere(|client| {
            let client = client.resolve_to_addrs(&self.host, &self.addresses);
            more(client.tls_backend_preconfigured(tls))
        })
    }
}

/// TLS with the certificates that the system trusts. They are kept for [`CERTIFICATES_KEPT`]: there are hundreds, and a client is made
/// for each call.
fn tls_to_outside_addresses() -> Result<ClientConfig, String> {
    static READ: Mutex<Option<(Instant, ClientConfig)>> = Mutex::new(None);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, kept)) = read.as_ref().filter(|(at, _)| at.elapsed() < CERTIFICATES_KEPT) {
        return Ok(kept.clone());
    }
    install_provider();
    let mut tls = ClientConfig::with_platform_verifier().map_err(|why| why.to_string())?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Each call checks the certificate anew. A ticket of one call would tell a receiver that another call, for another party, comes
    // from here.
    tls.resumption = Resumption::disabled();
    *read = Some((Instant::now(), tls.clone()));
    Ok(tls)
}

/// One provider of cryptography for the process; a second call finds it installed.
fn install_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A client for addresses that an operator names, which may lie anywhere: it follows no redirect, and uses no proxy, with what `more`
/// sets besides.
///
/// # Errors
/// Why the system has none.
pub fn client_to_anywhere(more: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<Client, String> {
    install_provider();
    let client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    more(client).build().map_err(|why| why.to_string())
}

/// Addresses by what they begin with. None are allowed where there is no prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedAddresses {
    prefixes: Arc<[Url]>,
    policy: Policy,
}

impl AllowedAddresses {
    /// The addresses that begin with one of these prefixes and that the policy allows, too.
    ///
    /// # Errors
    /// The prefix that is none, and what is expected.
    pub fn new(prefixes: &[String], policy: Policy) -> Result<Self, String> {
        let read = |prefix: &String| {
            let (url, _) = policy.read(prefix).map_err(|why| format!("{prefix:?}: {why}"))?;
            if url.query().is_some() || url.fragment().is_some() {
                return Err(format!("{prefix:?}: an address without ? and # is expected"));
            }
            Ok(url)
        };
        let prefixes: Result<Arc<[Url]>, String> = prefixes.iter().map(read).collect();
        Ok(Self {
            prefixes: prefixes?,
            policy,
        })
    }

    /// Whether no address is allowed.
    pub(crate) fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Whether an address may be reached, as far as the address itself shows.
    ///
    /// # Errors
    /// What is expected, where it may not.
    pub fn check(&self, address: &str) -> Result<(), String> {
        let (url, _) = self.policy.read(address)?;
        let path = url.path().to_ascii_lowercase();
        if path.contains("%2f") || path.contains("%5c") {
            // A server may take it for a separator, and leave the allowed path by it.
            return Err("a path without %2F and %5C is expected".to_owned());
        }
        if self.prefixes.iter().any(|prefix| Self::is_below(&url, prefix)) {
            return Ok(());
        }
        Err(if self.is_empty() {
            "this provider allows no address".to_owned()
        } else {
            format!("an address that begins with {self} is expected")
        })
    }

    /// Finds out where the host of an address is that may be reached.
    ///
    /// # Errors
    /// Why it may not be reached, or is not found.
    pub async fn resolved(&self, address: &str) -> Result<Target, String> {
        self.check(address)?;
        self.policy.resolved(address).await
    }

    /// Whether an address has the scheme, the host and the port of a prefix, and first the segments of its path.
    fn is_below(url: &Url, prefix: &Url) -> bool {
        let wanted = prefix.path().trim_end_matches('/').split('/');
        let mut given = url.path().split('/');
        url.scheme() == prefix.scheme()
            && url.host_str() == prefix.host_str()
            && url.port_or_known_default() == prefix.port_or_known_default()
            && wanted.into_iter().all(|segment| given.next() == Some(segment))
    }
}

impl fmt::Display for AllowedAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, prefix) in self.prefixes.iter().enumerate() {
            write!(f, "{}{prefix}", if index > 0 { " or " } else { "" })?;
        }
        Ok(())
    }
}

/// Whether a character is not seen where it stands in a name or an address, or changes the order of what is seen: control characters,
/// and those of Unicode's category Cf and its fillers. With them two names look the same.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{115f}' | '\u{1160}'
                | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// An address as it is shown: without its query, which may have secrets.
pub fn address_without_query(address: &str) -> &str {
    address.split(['?', '#']).next().unwrap_or_default()
}

/// An error of a request with its reasons, and without the address, which may have secrets.
pub fn error_without_address(why: &reqwest::Error) -> String {
    let mut said = Vec::new();
    let mut reason = why.source();
    while let Some(cause) = reason {
        said.push(cause.to_string());
        reason = cause.source();
    }
    if said.is_empty() {
        said.push("it cannot be reached".to_owned());
    }
    said.join(": ")
}

impl Policy {
    /// Whether an address may be called, as far as the address itself shows.
    ///
    /// # Errors
    /// The expected form, where the address breaks the rule.
    pub fn check(self, address: &str) -> Result<(), String> {
        self.read(address).map(drop)
    }

    fn read(self, address: &str) -> Result<(Url, String), String> {
        if address.len() > LENGTH_MAX {
            return Err(format!("at most {LENGTH_MAX} characters are expected"));
        }
        // A parser would leave some of these out.
        if address.chars().any(is_hidden) {
            return Err("an address without control and invisible characters is expected".to_owned());
        }
        let url: Url = address
            .parse()
            .map_err(|why| format!("http://… or https://… is expected: {why}"))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(format!(
                "http://… or https://… is expected, not {}:",
                url.scheme()
            ));
        }
        if is_no_place(address) {
            return Err(format!(
                "the address of a place is expected, which {address} is not"
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address without a user or a password is expected".to_owned());
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        if host.is_empty() {
            return Err("an address with a host is expected".to_owned());
        }
        let literal: Option<IpAddr> = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
        if let Some(why) = literal.and_then(|ip| self.why_not(ip)) {
            return Err(format!("{why}, and this provider calls no other"));
        }
        Ok((url, host))
    }

    /// Finds out where the host of an address is. Every address that its name has must be one that may be called.
    ///
    /// # Errors
    /// Why it may not be called, or is not found.
    pub async fn resolved(self, address: &str) -> Result<Target, String> {
        let (url, host) = self.read(address)?;
        let port = url.port_or_known_default().unwrap_or(443);
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let found = tokio::net::lookup_host((name, port))
            .await
            .map_err(|why| format!("its host is not found: {why}"))?;
        let addresses: Vec<_> = found.collect();
        if let Some(why) = addresses.iter().find_map(|at| self.why_not(at.ip())) {
            return Err(why);
        }
        if addresses.is_empty() {
            return Err("its host has no address".to_owned());
        }
        Ok(Target { url, host, addresses })
    }

    /// Why an address may not be called, if it may not.
    fn why_not(self, ip: IpAddr) -> Option<String> {
        if self.private_addresses {
            None
        } else {
            why_address_is_not_public(ip)
        }
    }
}

/// What keeps an address from being one of the open network, where something does.
fn why_address_is_not_public(ip: IpAddr) -> Option<String> {
    if special::is_public(ip) {
        return None;
    }
    let range = special::special_range(ip).map(|range| format!(" ({}, {})", range.name, range.rfc));
    Some(format!(
        "{ip} is not a public address{}",
        range.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_character_that_is_not_seen() {
        for hidden in [
            '\n',
            '\t',
            '\u{200b}',
            '\u{202e}',
            '\u{feff}',
            '\u{ad}',
            '\u{e0041}',
        ] {
            assert!(is_hidden(hidden));
            let address = format!("https://example.org/{hidden}x");
            let refused = Policy::default().check(&address);
            assert!(refused.is_err_and(|why| why.contains("invisible")), "{address:?}");
        }
        assert!(!"Zoë 日本 é-_. 👩".chars().any(is_hidden));
    }

    #[test]
    fn only_public_addresses_may_be_called_unless_others_are_allowed() {
        let (strict, open) = (
            Policy::default(),
            Policy {
                private_addresses: true,
            },
        );
        for private in [
            "http://127.0.0.1/x",
            "http://10.1.2.3:80/",
            "http://172.31.0.1",
            "https://192.168.1.1/",
            "http://169.254.169.254/latest",
            "http://100.64.0.1/",
            "http://0.0.0.0/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://255.255.255.255/",
            "http://[::1]/",
            "http://[::]/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[2001:db8::1]/",
            "http://192.88.99.1/",
            "http://[2620:4f:8000::1]/",
            "http://[::ffff:93.184.216.34]/",
        ] {
            assert!(strict.check(private).is_err(), "{private}");
            assert!(open.check(private).is_ok(), "{private}");
        }
        for public in [
            "http://93.184.216.34/x",
            "https://example.org:8443/a?b",
            "http://[2606:2800::1]/",
        ] {
            assert!(strict.check(public).is_ok(), "{public}");
        }
        for wrong in [
            "",
            "example.org",
            "ftp://example.org/",
            "file:///etc/passwd",
            "http://",
            "http://user:secret@example.org/",
            "urn:x",
        ] {
            assert!(open.check(wrong).is_err(), "{wrong}");
        }
        assert!(
            open.check(&format!("http://h/{}", "x".repeat(LENGTH_MAX)))
                .is_err()
        );
    }

    #[test]
    fn the_addresses_of_ws_addressing_that_are_no_places_are_not_called() {
        let open = Policy {
            private_addresses: true,
        };
        for address in NO_PLACES {
            let shouted = address.replace("http://www", "HTTP://WWW");
            for address in [address, shouted.as_str()] {
                assert!(is_no_place(address), "{address}");
                let why = open.check(address).unwrap_err();
                assert!(why.contains("of a place"), "{why}");
            }
            assert!(!is_no_place(&format!("{address}/x")), "{address}/x");
        }
        assert!(!is_no_place("http://www.w3.org/"));
    }

    #[test]
    fn an_address_is_allowed_by_whole_segments_and_never_by_its_text_alone() {
        let open = Policy {
            private_addresses: true,
        };
        let prefixes = ["https://data.example.org/a/b", "http://10.0.0.1:8080"].map(str::to_owned);
        let allowed = AllowedAddresses::new(&prefixes, open).unwrap();
        for good in [
            "https://data.example.org/a/b",
            "https://data.example.org/a/b/",
            "https://DATA.example.org:443/a/b/c.dat?key=1",
            "https://data.example.org/x/../a/b/c",
            "http://10.0.0.1:8080/anything",
        ] {
            assert_eq!(allowed.check(good), Ok(()), "{good}");
        }
        for bad in [
            "http://data.example.org/a/b/c",
            "https://data.example.org/a/bc",
            "https://data.example.org/a",
            "https://data.example.org:8443/a/b",
            "https://data.example.org.evil.org/a/b",
            "https://data.example.org@evil.org/a/b",
            "https://data.example.org/a/b/../../etc",
            "https://data.example.org/a/b/%2e%2e/%2e%2e/etc",
            "https://data.example.org/a/b/..%2f..%2fetc",
            "https://data.example.org/a/b/..%5Cetc",
            "http://10.0.0.1/anything",
            "http://10.0.0.1:80801/",
            "file:///a/b",
        ] {
            assert!(allowed.check(bad).is_err(), "{bad}");
        }
        assert!(
            AllowedAddresses::default()
                .check("https://data.example.org/")
                .is_err()
        );
        let strict =
            AllowedAddresses::new(&["https://data.example.org".to_owned()], Policy::default()).unwrap();
        assert!(strict.check("https://data.example.org/x").is_ok());
        for wrong in [
            "data.example.org",
            "https://data.example.org/?a",
            "ftp://x/",
            "http://10.0.0.1/",
        ] {
            assert!(
                AllowedAddresses::new(&[wrong.to_owned()], Policy::default()).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_name_that_leads_to_this_machine_is_not_called() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let resolve = |policy: Policy| runtime.block_on(policy.resolved("http://localhost:9/"));
        assert!(resolve(Policy::default()).is_err());
        let open = Policy {
            private_addresses: true,
        };
        assert!(resolve(open).is_ok());
    }
}
