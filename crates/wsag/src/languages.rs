//! The language of another system that says when: an element of WSAG4J means what `arp:AllocationTimeConstraint` means.
//!
//! Where such an element stands as the content of a service description term, everything that asks for its name is told the name of
//! our own: readers, rules, and the Locations of constraints, which may name it in either language. So a constraint holds of the time in
//! whichever language an offer says it.

use crate::xml::ns::ARP;

/// The namespace of WSAG4J's time constraints.
pub const WSAG4J: &str = "http://schemas.wsag4j.org/2009/07/wsag4j-scheduling-extensions";

/// What `arp:AllocationTimeConstraint` is called there.
pub(crate) const ELEMENT: &str = "TimeConstraint";

/// Our own name for what another one means: namespace and local name, which is none for any.
pub(crate) type TermMeaning = (&'static str, Option<&'static str>);

/// Our own name of an element of that language that is a time constraint.
pub(crate) fn meaning_of_wsag4j_element(local: &str) -> Option<&'static str> {
    (local == ELEMENT).then_some("AllocationTimeConstraint")
}

/// Our own name of a part of a time constraint: in both languages the same.
pub(crate) fn meaning_of_wsag4j_part(local: &str) -> Option<&'static str> {
    ["StartTime", "EndTime", "Duration"]
        .into_iter()
        .find(|part| *part == local)
}

/// What a name of a Location means, where it is of that language.
pub(crate) fn meaning_in_language(namespace: &str, local: Option<&str>) -> Option<TermMeaning> {
    if namespace != WSAG4J {
        return None;
    }
    let Some(local) = local else {
        return Some((ARP, None));
    };
    let ours = meaning_of_wsag4j_element(local).or_else(|| meaning_of_wsag4j_part(local))?;
    Some((ARP, Some(ours)))
}
