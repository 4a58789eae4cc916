//! The members of a flat request, and the elements of a document that say the same: where a fault of the offer that a request makes
//! stands in the request, and how the fault is told in the request's words.

use std::borrow::Cow;
use std::ops::Range;

use domain::agreement::{Measure, attribute_of_filter_kind};
use wsag::job_definition::FilterKind;
use wsag::{NamedValue, ValuePlaces, Violation, ns};

use crate::codec::json_check::CheckedObject;
use crate::error::Error;

/// The element that says an argument.
pub(super) const ARGUMENT: &str = "jsdl-posix:Argument";

/// The element that says a file to be moved.
const STAGING: &str = "jsdl:DataStaging";

/// The other members that an offer says, with the elements that say them.
const ELEMENTS: [(&str, &[&str]); 21] = [
    ("template", &["wsag:TemplateId", "wsag:TemplateName"]),
    ("name", &["wsag:Name"]),
    ("application", &["jsdl:Application"]),
    ("version", &["jsdl:ApplicationVersion"]),
    ("nodes", &["jsdl:TotalResourceCount"]),
    ("attributes/cpu_architecture", &["jsdl:CPUArchitecture"]),
    ("durationSeconds", &["arp:Duration"]),
    ("window", &["arp:AllocationTimeConstraint"]),
    ("window/start", &["arp:StartTime"]),
    ("window/end", &["arp:EndTime"]),
    ("moldability", &["bsp:Moldability"]),
    ("preemption", &["bsp:Preemption"]),
    ("budget", &["bsp:Budget"]),
    ("maxDeviation", &["bsp:MaxDeviation"]),
    ("fixAt", &["bsp:FixAt"]),
    ("weights", &["bsp:Preference"]),
    ("resource", &["bsp:Resource"]),
    ("mayChange", &["bsp:MayChange"]),
    ("id", &["wsag-neg:OfferId"]),
    ("counterOfferTo", &["wsag-neg:CounterOfferTo"]),
    ("expires", &["wsag-neg:ExpirationTime"]),
];

/// A member, and an element that says it.
type MemberElement = (Cow<'static, str>, Cow<'static, str>);

/// The members that an offer says, each with an element that says it: those of [`ELEMENTS`], and the numbers of nodes.
fn elements_of_members() -> impl Iterator<Item = MemberElement> {
    let listed = ELEMENTS.into_iter().flat_map(|(member, elements)| {
        let elements = elements.iter();
        elements.map(move |element| (Cow::Borrowed(member), Cow::Borrowed(*element)))
    });
    let numbers = FilterKind::NAMES
        .iter()
        .filter_map(|(kind, _)| -> Option<MemberElement> {
            let (attribute, measure) = attribute_of_filter_kind(*kind);
            let is_said = measure == Measure::Node;
            is_said.then(|| {
                let member = format!("attributes/{attribute}");
                (Cow::Owned(member), Cow::Owned(kind.element()))
            })
        });
    listed.chain(numbers)
}

/// Elements that no member is placed by, and the words of a request for what they say.
const PARTS: [(&str, &str); 26] = [
    (ARGUMENT, "arguments"),
    (STAGING, "staging"),
    ("jsdl:ApplicationName", "application"),
    ("jsdl-posix:POSIXApplication", "application"),
    ("jsdl-posix:WallTimeLimit", "durationSeconds"),
    ("jsdl:FileName", "staging/file"),
    ("jsdl:Source", "staging/source"),
    ("jsdl:Target", "staging/target"),
    ("bsp:Bytes", "staging/bytes"),
    ("jsdl:CPUArchitectureName", "attributes/cpu_architecture"),
    ("jsdl:Resources", "attributes"),
    ("bsp:Pieces", "preemption/pieces"),
    ("bsp:Interval", "preemption/interval"),
    ("bsp:Independent", "preemption/independent"),
    ("bsp:Amount", "budget/amount"),
    ("bsp:Currency", "budget/currency"),
    ("bsp:Start", "weights/start"),
    ("bsp:Size", "weights/size"),
    ("bsp:Price", "weights/price"),
    ("bsp:Sizes", "mayChange/sizes"),
    ("bsp:Cuts", "mayChange/cuts"),
    ("bsp:Until", "mayChange/until"),
    ("bsp:Linear", "moldability/linear"),
    ("bsp:Table", "moldability/table"),
    ("bsp:ConstantWork", "moldability/constantWork"),
    ("jsdl:JobDefinition", "application and nodes"),
];

/// The parts of a range, which say something of what stands around them. By themselves they are about the number of nodes.
const RANGE: [&str; 6] = [
    "jsdl:Exact",
    "jsdl:Range",
    "jsdl:LowerBound",
    "jsdl:UpperBound",
    "jsdl:LowerBoundedRange",
    "jsdl:UpperBoundedRange",
];

/// Names that constraints of templates and messages have without a prefix, and that no other word is.
const UNPREFIXED: [(&str, &str); 3] = [
    ("StartTime", "window/start"),
    ("EndTime", "window/end"),
    ("TotalResourceCount", "nodes"),
];

/// The place in a request of any part of its offer.
pub(crate) fn member_places_of_any_request() -> ValuePlaces {
    let mut places = ValuePlaces::form("");
    put_members(&mut places, |_| true);
    places.put(ARGUMENT, None, "/arguments");
    places.put(STAGING, None, "/staging");
    places
}

pub(super) fn put_members(places: &mut ValuePlaces, is_said: impl Fn(&str) -> bool) {
    for (member, element) in elements_of_members().filter(|(member, _)| is_said(member)) {
        places.put(element, None, format!("/{member}"));
    }
}

/// The places in a request of the parts of its offer.
pub(crate) fn member_places_of_request(object: &CheckedObject<'_>) -> ValuePlaces {
    let mut places = ValuePlaces::form(object.pointer());
    for (member, element) in elements_of_members() {
        if let Some(at) = object.find(&member) {
            places.put(element, None, at.pointer.as_str());
        }
    }
    for (member, element) in [("arguments", ARGUMENT), ("staging", STAGING)] {
        let values = object.get(member).map_or_else(Vec::new, |at| at.values());
        for (index, at) in values.into_iter().enumerate() {
            places.put(element, Some(index), at.pointer);
        }
    }
    places
}

/// The failure of an offer in the words of the form that it came in: as it is where that was a document.
pub(crate) fn error_told_in_members(places: &ValuePlaces, error: Error) -> Error {
    match error {
        Error::Invalid(mut violations) => {
            tell_violations_in_members(places, &mut violations.0);
            Error::Invalid(violations)
        }
        Error::NotOffered(mut violations) => {
            tell_violations_in_members(places, &mut violations.0);
            Error::NotOffered(violations)
        }
        other => other,
    }
}

/// Tells faults of an offer in the words of the form that it came in.
pub(crate) fn tell_violations_in_members(places: &ValuePlaces, violations: &mut [Violation]) {
    if places.is_document() {
        return;
    }
    for violation in violations {
        violation.message = message_with_members(&violation.message);
    }
}

/// A message about an offer with the names of members in place of those of elements. Templates are documents, and so their constraints
/// speak of elements. Words of people stay as they are.
fn message_with_members(message: &str) -> String {
    let mut told = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(quoted) = first_quoted_member(rest) {
        told.push_str(&words_with_members(&rest[..quoted.start]));
        told.push_str(&rest[quoted.clone()]);
        rest = &rest[quoted.end..];
    }
    told.push_str(&words_with_members(rest));
    told
}

/// Where words of people stand first in a message: in quotes of their own, and not as a path.
fn first_quoted_member(message: &str) -> Option<Range<usize>> {
    let mut from = 0;
    loop {
        let start = from + message[from..].find('"')?;
        let mut is_escaped = false;
        let length = message[start + 1..].find(|c: char| {
            let closes = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            closes
        })?;
        from = start + length + 2;
        let is_own = start == 0 || message[..start].ends_with([' ', '(']);
        if is_own && !message[start..from].contains('/') {
            return Some(start..from);
        }
    }
}

fn words_with_members(message: &str) -> String {
    let words: Vec<Cow<'_, str>> = message.split(' ').map(members_in_word).collect();
    words.join(" ")
}

fn members_in_word(word: &str) -> Cow<'_, str> {
    let names = names_of_elements(word);
    let (Some(first), Some(last)) = (names.first(), names.last()) else {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let known = UNPREFIXED.iter().find(|(local, _)| *local == bare);
        return known.map_or(Cow::Borrowed(word), |(local, member)| {
            Cow::Owned(word.replacen(local, member, 1))
        });
    };
    // All of a path is one place.
    let opening = word[..first.start].rfind(['"', '\'', '(', '[']);
    let start = opening.map_or(0, |at| at + 1);
    let goes_on = word[last.end..].starts_with(['/', '[']);
    let closing = word.trim_end_matches(['"', '\'', ',', ';', ':', '.', ')']).len();
    let end = if goes_on { closing.max(last.end) } else { last.end };
    let known = names
        .iter()
        .rev()
        .find_map(|name| member_of_element(&word[name.clone()]));
    let member = known.map_or_else(
        || {
            let is_range = RANGE.contains(&&word[last.clone()]);
            if is_range {
                "nodes".to_owned()
            } else {
                plain_member_name(&word[last.clone()])
            }
        },
        Cow::into_owned,
    );
    Cow::Owned(format!("{}{member}{}", &word[..start], &word[end..]))
}

/// Where names of elements with the usual prefixes stand in a word.
fn names_of_elements(word: &str) -> Vec<Range<usize>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut found: Vec<Range<usize>> = Vec::new();
    for (colon, _) in word.match_indices(':') {
        let before = &word[..colon];
        let outside = before.char_indices().rfind(|(_, c)| !is_part(*c));
        let start = outside.map_or(0, |(at, c)| at + c.len_utf8());
        let after = &word[colon + 1..];
        let length = after.find(|c: char| !is_part(c)).unwrap_or(after.len());
        let is_known = ns::PREFIXES.iter().any(|(prefix, _)| *prefix == &before[start..]);
        if is_known && length > 0 {
            found.push(start..colon + 1 + length);
        }
    }
    found
}

/// The member that an element says.
fn member_of_element(element: &str) -> Option<Cow<'static, str>> {
    let parts = PARTS.iter();
    let parts = parts.map(|(known, member)| (Cow::Borrowed(*member), Cow::Borrowed(*known)));
    elements_of_members()
        .chain(parts)
        .find(|(_, known)| known == element)
        .map(|(member, _)| member)
}

/// The name of an element that no member says, in plain words: `wsag:GuaranteeTerm` is a guarantee term.
fn plain_member_name(element: &str) -> String {
    let local = element.rsplit(':').next().unwrap_or(element);
    let mut plain = String::with_capacity(local.len() + 4);
    let mut before = ' ';
    for c in local.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            plain.push(' ');
        }
        plain.push(c.to_ascii_lowercase());
        before = c;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_about_a_request_has_the_names_of_its_members() {
        for (message, told) in [
            (
                "the duration follows from bsp:Moldability: no arp:Duration is expected beside it",
                "the duration follows from moldability: no durationSeconds is expected beside it",
            ),
            (
                "it must lie after arp:StartTime",
                "it must lie after window/start",
            ),
            (
                "at least one //jsdl:TotalResourceCount/jsdl:Exact is expected (item \"nodes\")",
                "at least one nodes is expected (item \"nodes\")",
            ),
            (
                "at least one $this/wsag:AgreementOffer/wsag:Terms//jsdl:IndividualCPUCount/jsdl:Exact[1] is expected",
                "at least one attributes/cpus is expected",
            ),
            (
                "a value of xs:positiveInteger is expected",
                "a value of positive integer is expected",
            ),
            ("(jsdl:Exact), 'arp:EndTime'.", "(nodes), 'window/end'."),
            (
                "\"//jsdl:Resources/arp:EndTime\" is not arp:EndTime",
                "\"window/end\" is not window/end",
            ),
            (
                "the application \"a \\\" jsdl:Exact\" is not there (\"arp:EndTime\"), arp:EndTime",
                "the application \"a \\\" jsdl:Exact\" is not there (\"arp:EndTime\"), window/end",
            ),
            (
                "expected mode, one of Exact, Fast",
                "expected mode, one of Exact, Fast",
            ),
            (
                "a number in //bsp:Table/bsp:Entry/bsp:Duration is expected",
                "a number in moldability/table is expected",
            ),
            ("EndTime is before StartTime", "window/end is before window/start"),
            ("wsag:GuaranteeTerm is expected", "guarantee term is expected"),
            (
                "ready lt deadline: 12:30, http://a/b",
                "ready lt deadline: 12:30, http://a/b",
            ),
            ("é:jsdl:Exact", "nodes"),
        ] {
            assert_eq!(message_with_members(message), told);
        }
    }

    #[test]
    fn faults_of_documents_keep_their_words() {
        let wrong = || vec![crate::error::violation_at_path("/a", "no arp:Duration")];
        let (mut document, mut form) = (wrong(), wrong());
        tell_violations_in_members(&ValuePlaces::document(""), &mut document);
        tell_violations_in_members(&member_places_of_any_request(), &mut form);
        assert_eq!(
            (&*document[0].message, &*form[0].message),
            ("no arp:Duration", "no durationSeconds")
        );
    }
}
