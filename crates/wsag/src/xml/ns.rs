//! The namespaces of the protocol and the prefixes by which documents and messages name them.

/// WS-Agreement 1.0.
pub const WSAG: &str = "http://schemas.ggf.org/graap/2007/03/ws-agreement";
/// WS-Agreement Negotiation 1.0.
pub const WSAG_NEG: &str = "http://schemas.ogf.org/graap/2009/11/ws-agreement-negotiation";
/// Advance reservation terms: when.
pub const ARP: &str = "http://www.ogf.org/graap/AR/2009/04/";
/// Job Submission Description Language 1.0: jobs.
pub const JSDL: &str = "http://schemas.ggf.org/jsdl/2005/11/jsdl";
/// The POSIX application of JSDL.
pub const JSDL_POSIX: &str = "http://schemas.ggf.org/jsdl/2005/11/jsdl-posix";
/// WS-Addressing 1.0.
pub const WSA: &str = "http://www.w3.org/2005/08/addressing";
/// WS-BaseFaults 1.2.
pub(crate) const WSRF_BF: &str = "http://docs.oasis-open.org/wsrf/bf-2";
/// Our own terms.
pub const BSP: &str = "urn:bespeak:terms:1";
/// XML Schema.
pub const XS: &str = "http://www.w3.org/2001/XMLSchema";
/// The namespace of attributes that speak about schemas. They are hints, which are not followed here.
pub(crate) const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// The namespace of the prefix `xml`.
pub(crate) const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace of the prefix `xmlns`.
pub(crate) const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// Prefixes that stand for a namespace in paths, in written documents, and in XPath expressions even where a document does not
/// declare them.
pub const PREFIXES: [(&str, &str); 9] = [
    ("wsag", WSAG),
    ("wsag-neg", WSAG_NEG),
    ("arp", ARP),
    ("jsdl", JSDL),
    ("jsdl-posix", JSDL_POSIX),
    ("wsa", WSA),
    ("wsrf-bf", WSRF_BF),
    ("bsp", BSP),
    ("xs", XS),
];

/// The usual prefix of a namespace, if it is one of ours.
pub(crate) fn usual_prefix(namespace: &str) -> Option<&'static str> {
    PREFIXES
        .iter()
        .find(|(_, known)| *known == namespace)
        .map(|(prefix, _)| *prefix)
}

/// The namespace that a usual prefix stands for.
pub(crate) fn namespace_of_prefix(prefix: &str) -> Option<&'static str> {
    PREFIXES
        .iter()
        .find(|(known, _)| *known == prefix)
        .map(|(_, namespace)| *namespace)
}

/// Namespace and local name of a name with a usual prefix; of another one it does not compile.
pub(crate) const fn namespace_and_local_name(name: &'static str) -> (&'static str, &'static str) {
    let mut at = 0;
    loop {
        let (prefix, namespace) = PREFIXES[at];
        if has_namespace_prefix(name.as_bytes(), prefix.as_bytes()) {
            return (namespace, name.split_at(prefix.len() + 1).1);
        }
        at += 1;
    }
}

const fn has_namespace_prefix(name: &[u8], prefix: &[u8]) -> bool {
    match (name, prefix) {
        ([b':', ..], []) => true,
        ([one, name @ ..], [other, prefix @ ..]) => *one == *other && has_namespace_prefix(name, prefix),
        _ => false,
    }
}
