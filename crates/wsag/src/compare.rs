//! Whether an agreement's offer repeats a negotiation's: the same context and terms, in any writing.
//!
//! Prefixes, the order of attributes, space between elements and comments say nothing. Values are the same where they are the
//! same text without the space around it, the same instant, or the same number.

use crate::xml::datatypes::Decimal;
use crate::xml::ns::WSAG;
use crate::xml::{DateTime, Document, Node, Violation, ViolationKind, collapse_space};

/// The first place where the first offer of `sent` differs from the first offer of `offered` in its context and terms; None where
/// they agree. O(n).
pub fn first_difference(sent: &Document<'_>, offered: &Document<'_>) -> Option<Violation> {
    let (Some(&sent), Some(&offered)) = (sent.offers().first(), offered.offers().first()) else {
        return Some(Violation {
            path: "/".to_owned(),
            kind: ViolationKind::Value,
            message: "an offer is expected".to_owned(),
        });
    };
    ["Context", "Terms"].into_iter().find_map(|local| {
        let (Some(one), Some(other)) = (sent.child(WSAG, local), offered.child(WSAG, local)) else {
            let message = format!("wsag:{local} is expected, as it was offered");
            return Some(difference_at(sent, &message));
        };
        difference_of_nodes(one, other)
    })
}

fn difference_of_nodes(sent: Node<'_>, offered: Node<'_>) -> Option<Violation> {
    let here = |message: &str| Some(difference_at(sent, message));
    if !sent.is(offered.namespace(), offered.local()) {
        return here(&format!("{} was offered here", offered.name()));
    }
    for (namespace, local, value) in offered.attributes() {
        let given = sent.attribute(namespace, local);
        if !given.is_some_and(|given| say_the_same(given, value)) {
            return here(&format!("its {local} was offered as {value:?}"));
        }
    }
    if sent.attributes().count() != offered.attributes().count() {
        return here("it has an attribute that was not offered");
    }
    if !say_the_same(&sent.text(), &offered.text()) {
        let value = collapse_space(&offered.text()).to_string();
        return here(&format!("{value:?} was offered here"));
    }
    let mut others = offered.children();
    for child in sent.children() {
        let Some(other) = others.next() else {
            return Some(difference_at(child, "it was not offered"));
        };
        if let Some(difference) = difference_of_nodes(child, other) {
            return Some(difference);
        }
    }
    let missing = others.next()?;
    here(&format!("{} was offered in it and is missing", missing.name()))
}

fn difference_at(node: Node<'_>, message: &str) -> Violation {
    Violation {
        path: node.path(),
        kind: ViolationKind::Value,
        message: format!("it differs from the offer: {message}"),
    }
}

/// Whether two texts say the same.
fn say_the_same(one: &str, other: &str) -> bool {
    let (one, other) = (collapse_space(one), collapse_space(other));
    if one == other {
        return true;
    }
    let instant = |text: &str| text.parse::<DateTime>().ok();
    if let (Some(one), Some(other)) = (instant(&one), instant(&other)) {
        return one == other;
    }
    matches!((Decimal::parse(&one), Decimal::parse(&other)), (Some(one), Some(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: &str = r#"<wsag:AgreementOffer xmlns:wsag="http://schemas.ggf.org/graap/2007/03/ws-agreement"><wsag:Context><wsag:ServiceProvider>AgreementResponder</wsag:ServiceProvider></wsag:Context><wsag:Terms><wsag:All><wsag:ServiceDescriptionTerm wsag:Name="T" wsag:ServiceName="S"><arp:AllocationTimeConstraint xmlns:arp="http://www.ogf.org/graap/AR/2009/04/"><arp:StartTime>2026-01-10T08:00:00Z</arp:StartTime><arp:Duration>60</arp:Duration></arp:AllocationTimeConstraint></wsag:ServiceDescriptionTerm></wsag:All></wsag:Terms></wsag:AgreementOffer>"#;

    fn compare(sent: &str) -> Option<Violation> {
        let sent = Document::parse(sent.as_bytes()).expect("a document");
        let offered = Document::parse(OFFER.as_bytes()).expect("a document");
        first_difference(&sent, &offered)
    }

    #[test]
    fn what_is_written_in_another_way_is_the_same() {
        for (from, to) in [
            ("", ""),
            ("<wsag:Terms>", "\n  <!-- as offered --><wsag:Terms>\n"),
            ("arp:", "a:"),
            ("2026-01-10T08:00:00Z", "2026-01-10T09:00:00+01:00"),
            ("60", " 060 "),
            (
                r#"wsag:Name="T" wsag:ServiceName="S""#,
                r#"wsag:ServiceName="S" wsag:Name="T""#,
            ),
        ] {
            let sent = OFFER
                .replace(from, to)
                .replace("xmlns:arp", if from == "arp:" { "xmlns:a" } else { "xmlns:arp" });
            assert_eq!(compare(&sent), None, "{from:?} as {to:?}");
        }
    }

    #[test]
    fn what_says_something_else_is_named_with_its_place() {
        for (from, to, path) in [
            ("<arp:Duration>60", "<arp:Duration>61", "/arp:Duration"),
            (
                "<arp:Duration>60</arp:Duration>",
                "",
                "/arp:AllocationTimeConstraint",
            ),
            ("08:00:00Z", "08:00:01Z", "/arp:StartTime"),
            (
                r#"wsag:Name="T""#,
                r#"wsag:Name="U""#,
                "/wsag:ServiceDescriptionTerm",
            ),
            (
                "AgreementResponder",
                "AgreementInitiator",
                "/wsag:ServiceProvider",
            ),
            (
                "</wsag:Context>",
                "<wsag:TemplateId>1</wsag:TemplateId></wsag:Context>",
                "/wsag:TemplateId",
            ),
        ] {
            let difference = compare(&OFFER.replace(from, to)).unwrap_or_else(|| panic!("{from} is {to}"));
            assert!(difference.path.ends_with(path), "{difference:?}");
        }
    }
}
