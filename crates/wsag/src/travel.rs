//! The way that a request has come from domain to domain: `bsp:Travel`, a foreign element in the context of a negotiation offer.

use uuid::Uuid;

use crate::xml::datatypes::{parse_token, parse_unsigned_integer};
use crate::xml::ns::BSP;
use crate::xml::{DocumentCheck, Fragment, Node, Readable, WrittenValue, Xml, read_simple};

/// The most domains on a path.
pub const PATH_MAX: usize = 16;
/// The most domains that a request may still be passed on to, one after the other.
const HOPS_MAX: u32 = 16;
/// The longest time that an asker says it waits, in milliseconds.
const WAITS_MAX: u32 = 60_000;
/// The most bytes of the id of a requester.
const REQUESTER_MAX: usize = 128;
/// The most bytes of the name of a domain.
const NAME_MAX: usize = 64;

/// `bsp:Travel`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Travel {
    /// The request: the same wherever it goes.
    pub request: Uuid,
    /// The domains that it has come through, in order: the first is its requester's, the last the one that asks. No domain is
    /// there twice.
    pub path: Vec<String>,
    /// How many more domains it may be passed on to, one after the other.
    pub hops: u32,
    /// Milliseconds for which the asker waits.
    pub waits: u32,
    /// An opaque id of the requester, always the same, where the asker tells it.
    pub requester: Option<String>,
}

impl Travel {
    /// As a fragment, for [`crate::negotiations::NegotiationOfferContext::extensions`].
    pub fn to_fragment(&self) -> Fragment {
        self.fragment("bsp:Travel", &["bsp"])
    }
}

impl WrittenValue for Travel {
    fn write(&self, xml: &mut Xml) {
        xml.add("bsp:Request", &self.request.to_string());
        xml.add_all("bsp:Domain", &self.path);
        xml.add("bsp:Hops", &self.hops);
        xml.add("bsp:Waits", &self.waits);
        xml.add("bsp:Requester", &self.requester);
    }
}

impl Readable for Travel {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<Travel> {
        check.children(node, |children| {
            let request = children.required(BSP, "Request", read_simple(parse_request_of_travel));
            let domains = children.at_least_one(BSP, "Domain", read_simple(parse_domain_of_travel));
            if let Some(why) = fault_of_travel_path(&domains) {
                children.check.value(node, why);
            }
            let hops = children.required(
                BSP,
                "Hops",
                read_simple(|text| parse_number_of_travel(text, HOPS_MAX)),
            );
            let waits = children.required(
                BSP,
                "Waits",
                read_simple(|text| parse_number_of_travel(text, WAITS_MAX)),
            );
            let requester = children.optional(BSP, "Requester", read_simple(parse_requester_of_travel));
            Some(Travel {
                request: request?,
                path: domains,
                hops: hops?,
                waits: waits?,
                requester,
            })
        })
    }
}

/// What is wrong with a path, if something is.
fn fault_of_travel_path(path: &[String]) -> Option<String> {
    if path.len() > PATH_MAX {
        return Some(format!("at most {PATH_MAX} domains are expected on a path"));
    }
    let again = (1..path.len()).find(|at| path[..*at].contains(&path[*at]))?;
    Some(format!("the domain {} stands twice on its path", path[again]))
}

/// A UUID in its usual form, with hyphens.
fn parse_request_of_travel(text: &str) -> Result<Uuid, &'static str> {
    let id = Uuid::try_parse(text).ok();
    // Other forms have other lengths.
    id.filter(|_| text.len() == uuid::fmt::Hyphenated::LENGTH)
        .ok_or("a UUID is expected, such as 018f3c5e-7b1a-7c3d-8e9f-0a1b2c3d4e5f")
}

/// The name of a domain.
fn parse_domain_of_travel(text: &str) -> Result<String, &'static str> {
    let is_one = (1..=NAME_MAX).contains(&text.len())
        && !matches!(text, "." | "..")
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    let name = is_one.then(|| text.to_owned());
    name.ok_or("the name of a domain is expected: 1 to 64 letters, digits, '-', '_' or '.'")
}

fn parse_requester_of_travel(text: &str) -> Result<String, String> {
    let id = parse_token(text)?;
    match id.len() {
        ..=REQUESTER_MAX => Ok(id),
        _ => Err(format!("at most {REQUESTER_MAX} bytes are expected")),
    }
}

fn parse_number_of_travel(text: &str, most: u32) -> Result<u32, String> {
    let value = parse_unsigned_integer(text).ok();
    let value = value.and_then(|value| u32::try_from(value).ok());
    value
        .filter(|value| *value <= most)
        .ok_or_else(|| format!("a whole number from 0 to {most} is expected"))
}
