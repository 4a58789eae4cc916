//! What is cut out of a document says the same as where it stood, as libxml2 sees it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Chance, text};
use wsag::agreements::AgreementOffer;
use wsag::{Document, Message, read};

/// Namespace names as they may be written; some are equal when they are read.
const NAMES: [&str; 7] = [
    "urn:a",
    "urn&#58;a",
    "urn:b?c=1&amp;d=2",
    "urn:it's",
    "urn:it&apos;s",
    "http://example.org/%22",
    "http://example.org/",
];

/// Declarations of some prefixes. The set of declared prefixes grows with each.
fn declarations(chance: &mut Chance, known: &mut Vec<&'static str>) -> String {
    let mut text = String::new();
    for prefix in ["p", "q", "r", "pp"] {
        if chance.below(3) == 0 {
            text += &format!(" xmlns:{prefix}=\"{}\"", chance.pick(&NAMES));
            known.push(prefix);
        }
    }
    match chance.below(6) {
        0 => text += " xmlns=''",
        1 | 2 => text += &format!(" xmlns=\"{}\"", chance.pick(&NAMES)),
        _ => {}
    }
    text
}

/// An element with what may be in one.
fn element(chance: &mut Chance, known: &[&'static str], depth: usize) -> String {
    let mut known = known.to_vec();
    let declared = declarations(chance, &mut known);
    let prefix = |chance: &mut Chance| match chance.below(3) {
        0 => String::new(),
        _ => format!("{}:", chance.pick(&known)),
    };
    let name = format!("{}e{}", prefix(chance), chance.below(3));
    // Two prefixes may stand for the same namespace, so that there is one attribute at most.
    let attribute = match chance.below(3) {
        0 => format!(" {}a=' q:x &lt;&#10;&quot;r:'", prefix(chance)),
        _ => String::new(),
    };
    let mut content = String::new();
    for _ in 0..chance.below(4) {
        match chance.below(if depth > 4 { 3 } else { 5 }) {
            0 => content += "pp:x &amp; é<!-- q: -->",
            1 => content += "<![CDATA[<p:x>]]>",
            2 => content += "p : r:\t]] >",
            _ => content += &element(chance, &known, depth + 1),
        }
    }
    format!("<{name}{attribute}{declared}>{content}</{name}>")
}

/// The exclusive canonical form with comments: the same of two documents that say the same.
fn canonical(folder: &Path, document: &str) -> String {
    let path = folder.join("document.xml");
    fs::write(&path, document).expect("the temporary folder can be written");
    let output = Command::new("xmllint")
        .args(["--nonet", "--exc-c14n"])
        .arg(&path)
        .output()
        .expect("xmllint runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.stdout.is_empty() && !said.contains("error"),
        "{said}: {document}"
    );
    let text = String::from_utf8(output.stdout).expect("it is UTF-8");
    text.trim().to_owned()
}

fn offer_of(text: &str) -> AgreementOffer {
    let document = Document::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    match read(&document) {
        Ok(Message::AgreementOffer(offer)) => *offer,
        other => panic!("{other:?}: {text}"),
    }
}

#[test]
fn fragments_say_the_same_as_where_they_stood() {
    if Command::new("xmllint").arg("--version").output().is_err() {
        println!("SKIPPED fragments: xmllint is not installed (on Debian and Ubuntu it is in libxml2-utils)");
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fragments-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the temporary folder can be made");
    let sample = text("o01-offer-sleep.xml");
    let mut chance = Chance(5);
    for _ in 0..60 {
        let mut known = vec!["k"];
        let root = declarations(&mut chance, &mut known);
        let context = declarations(&mut chance, &mut known);
        let inside: String = (0..3).map(|_| element(&mut chance, &known, 0)).collect();
        let text = sample
            .replacen(
                "<wsag:AgreementOffer",
                &format!("<wsag:AgreementOffer xmlns:k='urn:k'{root}"),
                1,
            )
            .replacen("<wsag:Context>", &format!("<wsag:Context{context}>"), 1)
            .replacen(
                "</wsag:Context>",
                &format!("<k:x>{inside}</k:x></wsag:Context>"),
                1,
            );
        let whole = canonical(&folder, &text);
        let offer = offer_of(&text);
        let [extension] = &offer.context.extensions[..] else {
            panic!("one extension is expected: {text}");
        };
        let alone = canonical(&folder, extension.as_str());
        assert!(whole.contains(&alone), "{text}\n{alone}\n{whole}");
        // The written document and the stored message behave the same.
        let document = Document::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        for again in [
            offer.to_xml(),
            document.offer_xml().expect("there is an offer in it"),
        ] {
            assert!(
                canonical(&folder, &again).contains(&alone),
                "{text}\n{alone}\n{again}"
            );
            let read = offer_of(&again);
            assert_eq!(
                canonical(&folder, read.context.extensions[0].as_str()),
                alone,
                "{text}"
            );
        }
    }
    fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
}
