//! The schemas and the typed reader say the same of every document.

mod support;

use support::tree::{Element, Item};
use support::{Chance, names, names_read, text, xmllint};
use wsag::{Document, Violation, ViolationKind, read};

#[test]
fn the_schemas_accept_every_valid_message_and_template() {
    let mut documents: Vec<Vec<u8>> = names("").iter().map(|name| text(name).into_bytes()).collect();
    documents.push(wsag::templates::ADVANCE_RESERVATION.into());
    let Some(verdicts) = xmllint(&documents, true, "valid") else {
        return;
    };
    for (name, valid) in names("")
        .iter()
        .map(String::as_str)
        .chain(["the built-in template"])
        .zip(verdicts)
    {
        assert!(valid, "{name} is valid and the schemas refuse it");
    }
}

#[test]
fn the_schemas_refuse_every_invalid_message() {
    let names = names("negative");
    let documents: Vec<Vec<u8>> = names
        .iter()
        .map(|name| text(&format!("negative/{name}")).into_bytes())
        .collect();
    let Some(verdicts) = xmllint(&documents, true, "negative") else {
        return;
    };
    for (name, valid) in names.iter().zip(verdicts) {
        assert!(!valid, "{name} is invalid and the schemas accept it");
    }
}

/// Values that are right somewhere and wrong elsewhere.
const VALUES: [&str; 30] = [
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
        match (chance.below(11), place) {
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
    let Some(verdicts) = xmllint(&documents, true, "mutants") else {
        return;
    };
    let mut accepted = 0;
    let mut disagreements = std::collections::BTreeMap::new();
    for (text, valid) in mutants.iter().zip(verdicts) {
        let document = Document::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        match read(&document) {
            Ok(_) if valid => accepted += 1,
            Ok(_) => {
                disagreements.insert(
                    "the reader accepts a document that the schemas refuse".to_owned(),
                    text,
                );
            }
            Err(violations) if valid && violations.0.iter().any(|violation| !is_stricter(violation)) => {
                disagreements.insert(
                    format!("the reader refuses a document that the schemas accept: {violations}"),
                    text,
                );
            }
            Err(_) => {}
        }
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
    assert!(
        accepted > 100,
        "too few mutants are still valid to say anything: {accepted}"
    );
}

/// The elements expected before a wildcard at the end of a message, and so not after it.
const WILDCARDS: [&str; 4] = [
    "wsag:NoncriticalExtension or the end of",
    "wsag-neg:NoncriticalExtension or the end of",
    "wsag-neg:NegotiationOffer or the end of",
    "wsag-neg:NegotiationCounterOffer or the end of",
];

/// Whether the reader refuses on purpose, or rightly, a document that xmllint accepts.
fn is_stricter(violation: &Violation) -> bool {
    // Unknown critical extensions are well-formed for a schema.
    violation.kind == ViolationKind::UnknownExtension
        // A schema cannot exclude two namespaces from a wildcard.
        || violation.message.starts_with("an element of WS-Agreement itself")
        // libxml2 lets an element of the schema's own namespace follow a wildcard for other namespaces.
        || WILDCARDS.iter().any(|expected| violation.message.starts_with(expected))
}

/// Documents with every part that the samples do not have.
const RICH: [&str; 1] = [include_str!("rich/offer.xml")];
