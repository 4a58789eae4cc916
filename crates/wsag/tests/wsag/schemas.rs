//! The schemas and the typed reader say the same of every document.

use crate::support::tree::{Element, Item};
use crate::support::{Chance, Judge, assert_valid, names, names_read, text, xmllint};
use wsag::{Document, Violation, ViolationKind, Violations, read};

#[test]
fn the_schemas_accept_every_valid_message_and_template() {
    let mut documents: Vec<Vec<u8>> = names("").iter().map(|name| text(name).into_bytes()).collect();
    documents.extend(RICH.map(Vec::from));
    let templates = include_str!("../../../../templates/agreements/guaranteed-reservation.xml");
    documents.extend([templates, wsag::templates::ADVANCE_RESERVATION].map(Vec::from));
    assert_valid(&documents, "valid");
}

#[test]
fn the_schemas_refuse_every_invalid_message() {
    let names = names("negative");
    let documents: Vec<Vec<u8>> = names
        .iter()
        .map(|name| text(&format!("negative/{name}")).into_bytes())
        .collect();
    let Some(verdicts) = xmllint(&documents, Judge::Ours, "negative") else {
        return;
    };
    for (name, said) in names.iter().zip(verdicts) {
        assert!(!said.is_empty(), "{name} is invalid and the schemas accept it");
    }
}

/// Values that are right somewhere and wrong elsewhere.
const VALUES: [&str; 31] = [
    "",
    " ",
    "0",
    "1",
    "-1",
    "2.5",
    "1e3",
    "INF",
    "NaN",
    "+7",
    "4294967296",
    "99999999999999999999",
    "true",
    "maybe",
    "2026-01-10T08:00:00Z",
    "2026-01-10T08:00:00",
    "2026-01-10T24:00:00Z",
    "2026-02-29T00:00:00Z",
    "2026-01-10T08:00:00+0100",
    "2026-01-10T08:00:00.25+14:00",
    " 2026-01-10T08:00:00Z ",
    "PT1H",
    "P1W",
    "P",
    "P1Y2M3DT4H5M6.7S",
    "AgreementResponder",
    " AgreementResponder ",
    "ServiceProvider",
    "Ready",
    "EUR",
    "a\nb",
];

/// A document with one to three changes of structure or value.
fn mutate(text: &str, chance: &mut Chance) -> String {
    let mut root = Element::parse(text);
    for _ in 0..=chance.below(3) {
        let paths = root.paths();
        let path = chance.pick::<Vec<usize>>(&paths).clone();
        let other = root.at(chance.pick::<Vec<usize>>(&paths)).clone();
        let value = *chance.pick(&VALUES);
        // The root has nothing beside it and keeps its name.
        let place = path.split_last().map(|(last, parent)| (*last, parent.to_vec()));
        match (chance.below(12), place) {
            (0, Some((last, parent))) => drop(root.at(&parent).items.remove(last)),
            (1, Some((last, parent))) => {
                let copy = Item::Element(root.at(&path).clone());
                root.at(&parent).items.insert(last + 1, copy);
            }
            (2, Some((last, parent))) => {
                let items = &mut root.at(&parent).items;
                let next = (last + 1).min(items.len() - 1);
                items.swap(last, next);
            }
            (3, Some(_)) => root.at(&path).rename(other.name, other.namespace),
            (4 | 5, _) => {
                let element = root.at(&path);
                if element.items.iter().all(|item| matches!(item, Item::Other(_))) {
                    element.items = vec![Item::Other(value.to_owned())];
                }
            }
            (6, _) => {
                let mut attributes = root.at(&path).attributes.iter_mut();
                let first = attributes.find(|(name, _)| !name.starts_with("xmlns"));
                if let Some((_, old)) = first {
                    value.clone_into(old);
                }
            }
            (7, _) => {
                let attributes = &mut root.at(&path).attributes;
                if attributes
                    .last()
                    .is_some_and(|(name, _)| !name.starts_with("xmlns"))
                {
                    attributes.pop();
                }
            }
            (8, _) => {
                let attributes = &mut root.at(&path).attributes;
                if attributes.iter().all(|(name, _)| name != "extra") {
                    attributes.push(("extra".to_owned(), "1".to_owned()));
                }
            }
            (11, _) => {
                let attributes = &mut root.at(&path).attributes;
                if attributes.iter().all(|(name, _)| name != "xmlns:q") {
                    let added = [("xmlns:q", "urn:q"), ("q:extra", "1")];
                    attributes.extend(added.map(|(name, value)| (name.to_owned(), value.to_owned())));
                }
            }
            (9, _) => root.at(&path).items.push(Item::Other("stray".to_owned())),
            (10, _) => root
                .at(&path)
                .items
                .push(Item::Element(Element::parse("<q:foreign xmlns:q='urn:q'/>"))),
            _ => {}
        }
    }
    root.to_xml()
}

#[test]
fn the_reader_and_the_schemas_agree_on_mutants_of_every_message() {
    let mut chance = Chance(0x5EED);
    let mut sources: Vec<String> = names_read().iter().map(|name| text(name)).collect();
    sources.extend(RICH.iter().map(|text| (*text).to_owned()));
    let mutants: Vec<String> = (0..3_000)
        .map(|index| mutate(&sources[index % sources.len()], &mut chance))
        .collect();
    let documents: Vec<Vec<u8>> = mutants.iter().map(|text| text.clone().into_bytes()).collect();
    let read: Vec<Result<_, Violations>> = documents
        .iter()
        .map(|document| read(&Document::parse(document).expect("a mutant is well-formed")))
        .collect();
    let mut disagreements = std::collections::BTreeMap::new();
    for (by, strict) in [
        (Judge::Ours, is_stricter as fn(&Violation) -> bool),
        (Judge::Published, is_profile),
        // What stands where anything may stand is checked where answers repeat it.
        (Judge::PublishedOutside, |_| true),
    ] {
        let Some(verdicts) = xmllint(&documents, by, "mutants") else {
            continue;
        };
        let mut accepted = 0;
        for ((text, read), said) in mutants.iter().zip(&read).zip(verdicts) {
            let valid = said.is_empty();
            let what = match read {
                Ok(_) if valid => {
                    accepted += 1;
                    continue;
                }
                Ok(_) if said.lines().all(|said| is_looser(text, said)) => continue,
                Ok(_) => format!("the reader accepts a document that the schemas refuse ({by:?}): {said}"),
                Err(violations) if valid && !violations.0.iter().all(strict) => {
                    format!("the reader refuses a document that the schemas accept ({by:?}): {violations}")
                }
                Err(_) => continue,
            };
            disagreements.insert(what, text);
        }
        assert!(
            accepted > 100,
            "too few mutants are still valid to say anything: {accepted}"
        );
    }
    let all: Vec<String> = disagreements
        .into_iter()
        .map(|(what, text)| format!("{what}\n{text}"))
        .collect();
    assert!(
        all.is_empty(),
        "{} kinds of disagreement:\n{}",
        all.len(),
        all.join("\n\n")
    );
}

/// Whether the reader refuses on purpose a document that the published schemas accept: the profile of
/// `docs/design/protocol.md`.
fn is_profile(violation: &Violation) -> bool {
    const REASONS: &[&str] = &[
        // Names and addresses are not empty.
        "it may not be empty",
        "a URI is expected",
        // An application is one of the catalogue, a place of a file has an address, a template has an identity.
        "jsdl:ApplicationName is",
        "jsdl:URI is",
        "the end of jsdl:",
        // Numbers and instants have bounds.
        "a whole number is expected",
        "a whole number from 1 to",
        "a whole number from 0 on",
        "numbers in a duration may",
        "the year must be",
        "nine digits of a second",
    ];
    is_stricter(violation)
        || matches!(
            violation.kind,
            ViolationKind::NotSupported | ViolationKind::UnknownTerm
        )
        || violation.message == "the attribute wsag:TemplateId is required"
        || REASONS.iter().any(|reason| violation.message.contains(reason))
}

/// Whether the reader leaves to others what the schemas refuse: a complaint of xmllint.
fn is_looser(text: &str, said: &str) -> bool {
    // The content of an item's constraint, which is compiled later; an ID that is there twice.
    // Or an element of a language of others, which its template declares or not.
    said.contains("XMLSchema}") || said.contains("{urn:q}foreign': No matching global element") || text.starts_with("<wsag:Template") || said.contains("'xs:ID'")
        // libxml2 does not collapse the space around a dateTime.
        || said.contains("Z ' is not a valid value of the atomic type 'xs:dateTime'")
        // The reason of a termination may be any element, and no answer repeats it.
        || (text.matches("<wsag:TerminateInput").count() > 1 && said.contains("}TerminateInput'"))
        || said.ends_with("fails to validate")
}

/// The elements expected before a wildcard at the end of a message, and so not after it.
const WILDCARDS: [&str; 6] = [
    "jsdl:JobAnnotation or jsdl:JobProject or the end of",
    "jsdl:JobProject or the end of",
    "wsag:NoncriticalExtension or the end of",
    "wsag-neg:NoncriticalExtension or the end of",
    "wsag-neg:NegotiationOffer or the end of",
    "wsag-neg:NegotiationCounterOffer or the end of",
];

/// Whether the reader refuses on purpose, or rightly, a document that xmllint accepts.
fn is_stricter(violation: &Violation) -> bool {
    // Expressions are texts; of their attributes the language alone is known.
    let of_expression = ["may hold only text", "allowed are bsp:dialect"];
    // Unknown critical extensions are well-formed for a schema, and so are elements of the protocol that are no term's content.
    let mut steps = violation.path.rsplit('/').skip(1);
    let is_description = steps
        .next()
        .is_some_and(|step| step.starts_with("wsag:ServiceDescriptionTerm"));
    violation.kind == ViolationKind::UnknownExtension
        || (violation.kind == ViolationKind::UnknownTerm && is_description)
        // Its published type is any string, so ours is, too.
        || (violation.path.ends_with("/wsag:TemplateId") && violation.message == "it may not be empty")
        // A schema cannot exclude two namespaces from a wildcard.
        || violation.message.starts_with("answers repeat it")
        // libxml2 lets an element of the schema's own namespace follow a wildcard for other namespaces.
        || of_expression.iter().any(|words| violation.message.contains(words))
        || WILDCARDS.iter().any(|expected| violation.message.starts_with(expected))
}

/// Documents with every part that the samples do not have.
const RICH: [&str; 3] = [
    include_str!("rich/offer.xml"),
    include_str!("rich/create.xml"),
    include_str!("rich/negotiate.xml"),
];
