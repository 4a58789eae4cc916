//! Documents that no service should take, the same in every run: bombs, bytes changed anywhere, and documents that are still
//! well-formed and have wrong values.

use std::ops::Range;

use crate::support::offers::{Offer, file};
use crate::support::random::Random;

/// Seed of every mutation, so that a run can be repeated.
const SEED: u64 = 0x0062_6573_7065_616b;

/// Makes hostile documents from valid ones.
pub(super) struct Hostile {
    valid: Vec<String>,
}

impl Hostile {
    pub(super) fn new() -> Self {
        // Refused for its size, its window, its duration and its argument: no few mutations make it a good offer.
        let impossible = Offer {
            run: Some(("sleep", vec!["a while".to_owned()])),
            ..Offer::reserve(1_000_000, 7_200)
        };
        let impossible = impossible.within(1_600_000_000, 1_600_003_600).xml();
        let stored = [
            "m02-agreement-offer",
            "m03-create-agreement-input",
            "m14-negotiate-input",
            "m09-agreement-properties",
        ];
        let mut valid: Vec<String> = stored
            .iter()
            .map(|name| file(&format!("tests/messages/{name}.xml")))
            .collect();
        valid.extend(std::iter::repeat_n(impossible, 4));
        Self { valid }
    }

    /// The document of that number; the same in every run.
    pub(super) fn document(&self, index: usize) -> Vec<u8> {
        let mut random = Random::new(SEED.wrapping_add(index as u64));
        let mut document = self.valid[random.below(self.valid.len())].clone();
        let changes = 1 + random.below(3);
        match index % 10 {
            0 => bomb(index / 10, &mut random),
            1..=4 => {
                let mut bytes = document.into_bytes();
                (0..changes).for_each(|_| break_bytes(&mut bytes, &mut random));
                bytes
            }
            _ => {
                (0..changes).for_each(|_| misstate(&mut document, &mut random));
                document.into_bytes()
            }
        }
    }
}

/// Changes a document in one place, at any byte.
fn break_bytes(document: &mut Vec<u8>, random: &mut Random) {
    const SCRAPS: [&str; 8] = [
        "&amp;",
        "&#0;",
        "&#x110000;",
        "&undeclared;",
        "<![CDATA[",
        "]]>",
        "<!--",
        "<?php ?>",
    ];
    if document.is_empty() {
        return;
    }
    let at = random.below(document.len());
    let end = (at + 1 + random.below(60)).min(document.len());
    match random.below(5) {
        0 => document[at] = u8::try_from(random.below(256)).unwrap_or_default(),
        1 => drop(document.drain(at..end)),
        2 => document.truncate(at),
        3 => {
            let copy = document[at..end].to_vec();
            let to = random.below(document.len());
            document.splice(to..to, copy);
        }
        _ => {
            let scrap = SCRAPS[random.below(SCRAPS.len())];
            document.splice(at..at, scrap.bytes());
        }
    }
}

/// Changes the values in a document, and leaves it well-formed.
fn misstate(document: &mut String, random: &mut Random) {
    const WORDS: [&str; 16] = [
        "",
        "0",
        "-1",
        "1.5",
        "99999999999999999999999",
        "1e400",
        "NaN",
        "true",
        "P1Y",
        "2026-02-30T25:61:61Z",
        "9999-12-31T24:00:00+14:00",
        "../../etc/passwd",
        "file:///etc/passwd",
        "&#x202E;",
        "&amp;&lt;",
        "\u{1F600}",
    ];
    let elements = elements(document);
    let Some(element) = random.choose(&elements).cloned() else {
        return;
    };
    let word = WORDS[random.below(WORDS.len())];
    let text = document[element.clone()].to_owned();
    match random.below(6) {
        0 => document.replace_range(element, ""),
        1 => document.insert_str(element.end, &text),
        2 => {
            document.replace_range(element.clone(), "");
            let places = self::elements(document);
            let place = random.choose(&places).map_or(document.len(), |place| place.start);
            document.insert_str(place, &text);
        }
        3 => {
            // All that the element holds becomes a word.
            if let (Some(open), Some(close)) = (text.find('>'), text.rfind("</")) {
                document.replace_range(element.start + open + 1..element.start + close, word);
            }
        }
        4 => {
            // The value of its first attribute, which may declare a prefix.
            let tag = &text[..text.find('>').unwrap_or(text.len())];
            if let (Some(open), Some(close)) = (tag.find('"'), tag.rfind('"')) {
                let end = tag[open + 1..]
                    .find('"')
                    .map_or(close, |length| open + 1 + length);
                document.replace_range(element.start + open + 1..element.start + end, word);
            }
        }
        _ => {
            // Another element's name, at both ends.
            let name = |text: &str| {
                text[1..]
                    .split([' ', '>', '/', '\n'])
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            };
            let (old, other) = (
                name(&text),
                random
                    .choose(&elements)
                    .map(|other| name(&document[other.clone()])),
            );
            let other = other.unwrap_or_default();
            let mut renamed = format!("<{other}{}", &text[1 + old.len()..]);
            if let Some(close) = renamed.rfind("</") {
                renamed.replace_range(close.., &format!("</{other}>"));
            }
            document.replace_range(element, &renamed);
        }
    }
}

/// Where each element of a well-formed document stands, from the start of its first tag to the end of its last.
fn elements(document: &str) -> Vec<Range<usize>> {
    let (mut open, mut found, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(start) = document[at..].find('<').map(|offset| at + offset) {
        let closes = if document[start..].starts_with("<!--") {
            "-->"
        } else {
            ">"
        };
        let Some(end) = document[start..]
            .find(closes)
            .map(|offset| start + offset + closes.len())
        else {
            break;
        };
        let tag = &document[start..end];
        if tag.starts_with("</") {
            found.extend(open.pop().map(|first| first..end));
        } else if tag.ends_with("/>") {
            found.push(start..end);
        } else if !tag.starts_with("<!") && !tag.starts_with("<?") {
            open.push(start);
        }
        at = end;
    }
    found
}

/// A document that is made to hurt its reader.
fn bomb(kind: usize, random: &mut Random) -> Vec<u8> {
    const ROOT: &str = "wsag:AgreementOffer xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\"";
    let size = 100 + random.below(4_000);
    let text = match kind % 10 {
        0 => {
            let entities = joined(1..30, |n| format!("<!ENTITY e{n} \"&e{};&e{};\">", n - 1, n - 1));
            format!("<!DOCTYPE r [<!ENTITY e0 \"ha\">{entities}]><{ROOT}>&e29;</wsag:AgreementOffer>")
        }
        1 => format!(
            "<!DOCTYPE r [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><{ROOT}>&x;</wsag:AgreementOffer>"
        ),
        2 => format!("{}{}", "<a>".repeat(size), "</a>".repeat(size)),
        3 => {
            let attributes = joined(0..size, |n| format!(" a{n}=\"\""));
            format!("<{ROOT}{attributes}/>")
        }
        4 => {
            let spaces = joined(0..size, |n| format!(" xmlns:n{n}=\"urn:{n}\""));
            format!("<{ROOT}{spaces}/>")
        }
        5 => joined(0..size, |n| format!("<a xmlns:n{n}=\"urn:{n}\">")),
        6 => format!("<{ROOT}>{}</wsag:AgreementOffer>", "<a/>".repeat(size)),
        7 => format!("<{ROOT}>{}</wsag:AgreementOffer>", "x".repeat(size * 60)),
        8 => "<!--".repeat(size),
        _ => {
            return (0..size)
                .map(|_| u8::try_from(random.below(256)).unwrap_or_default())
                .collect();
        }
    };
    text.into_bytes()
}

/// The texts of each number, one after another.
fn joined(numbers: Range<usize>, text: impl Fn(usize) -> String) -> String {
    numbers.map(text).collect::<Vec<_>>().concat()
}

#[test]
fn a_misstated_document_is_well_formed() {
    let documents = Hostile::new();
    let mut different = 0;
    for document in &documents.valid {
        let before = elements(document).len();
        assert!(before > 10, "{before} elements");
        for seed in 0..200 {
            let mut changed = document.clone();
            misstate(&mut changed, &mut Random::new(seed));
            let (opened, closed) = (changed.matches('<').count(), changed.matches('>').count());
            assert_eq!(opened, closed, "seed {seed}:\n{changed}");
            different += usize::from(changed != *document);
        }
    }
    assert!(different > 1_000, "{different} changed");
}
