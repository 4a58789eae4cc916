//! References to resources (`xs:anyURI`), as RFC 3986 writes them. What a URI cannot hold as it stands is taken, since XML Schema has it
//! escaped: a space, or a letter beyond ASCII.

/// Whether a text is a URI reference (RFC 3986, section 4.1).
pub(crate) fn is_uri_reference(text: &str) -> bool {
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (hierarchy, query) = before.split_once('?').unwrap_or((before, ""));
    let first = hierarchy.split('/').next().unwrap_or_default();
    // Before a colon in its first segment stands a scheme (section 4.2).
    let rest = match first.split_once(':') {
        Some((scheme, _)) if is_uri_scheme(scheme) => &hierarchy[scheme.len() + 1..],
        Some(_) => return false,
        None => hierarchy,
    };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let is_plain = |part: &str| !part.contains(['[', ']', '#']);
    is_uri_authority(authority)
        && [path, query, fragment].into_iter().all(is_plain)
        && has_whole_uri_escapes(text)
}

fn is_uri_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Whether a text is an authority: `user@host:port`, of which all but the host may be left out.
fn is_uri_authority(authority: &str) -> bool {
    let (user, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port))
                if is_uri_address(address) && (port.is_empty() || port.starts_with(':')) =>
            {
                ("", port)
            }
            _ => return false,
        },
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    let port = port.strip_prefix(':').unwrap_or(port);
    let is_plain = |part: &str| !part.contains(['[', ']', '@']);
    is_plain(user) && is_plain(host) && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is an address of IPv6, or one of the future (`v1.x`).
fn is_uri_address(text: &str) -> bool {
    text.parse::<core::net::Ipv6Addr>().is_ok()
        || text
            .strip_prefix('v')
            .and_then(|rest| rest.split_once('.'))
            .is_some_and(|(version, rest)| {
                let is_hex =
                    |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_hex(version) && !rest.is_empty() && !rest.contains(['[', ']', '@', '%'])
            })
}

/// Whether each `%` stands before two hexadecimal digits.
fn has_whole_uri_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| {
        let bytes = rest.as_bytes();
        bytes.len() >= 2 && bytes[..2].iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_taken_as_rfc_3986_writes_it() {
        for text in [
            "http://a.example:8080/b/c?d=e#f",
            "https://user@[2001:db8::1]:80/",
            "http://[v1.a]/",
            "urn:x:y",
            "file:in",
            "mailto:a@b.example",
            "../a%20b",
            "a/b:c",
            "//host/path",
            "a b",
            "\u{e4}",
            "",
            "?x",
            "#f",
            "http://a:/",
        ] {
            assert!(is_uri_reference(text), "{text}");
        }
        for text in [
            "http://[",
            "http://[a]/",
            "http://[::1/",
            "http://[::1]80/",
            "http://a:b/",
            "http://a/[b]",
            "http://a/?b[]=c",
            "1a:b",
            ":b",
            "a%zz",
            "a%4",
            "a#b#c",
        ] {
            assert!(!is_uri_reference(text), "{text}");
        }
    }
}
