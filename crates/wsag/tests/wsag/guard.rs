//! The documents that the guard lets through, and those it refuses, with the place.

use crate::support::{Chance, Judge, names, text, xmllint};
use wsag::Document;
use wsag::guard::{self, GuardError, guard_document};

fn refusal(bytes: &[u8]) -> String {
    match guard_document(bytes) {
        Ok(_) => panic!("it is let through: {}", String::from_utf8_lossy(bytes)),
        Err(error) => error.to_string(),
    }
}

#[test]
fn well_formed_documents_are_let_through() {
    for document in [
        "<a/>",
        "<?xml version='1.0'?><a/>",
        "<?xml version=\"1.0\" encoding=\"utf-8\" standalone='yes' ?>\n<!-- c - c --><a></a >\n<!--d-->",
        "\u{FEFF}<a>text &amp; &#65;&#x41; <![CDATA[<&]] ]]> ]] > \"quotes'</a>",
        "<p:a xmlns:p='urn:p' p:b='1' b=\"2\"><c xmlns='urn:c' d=' > '/></p:a>",
        "<a xmlns:p='urn:1'><b xmlns:p='urn:2' p:c=''/></a>",
        "<日本 ä='ö'>日</日本>",
        "<a xml:lang='en'>\t\r\n\u{85}\u{10FFFF}</a>",
        "<a xmlns='urn:a'><b xmlns=''/></a>",
        "<a xmlns:p='u v' xmlns:q='u&#9;v' p:b='' q:b=''/>",
    ] {
        guard_document(document.as_bytes()).unwrap_or_else(|error| panic!("{document}: {error}"));
    }
}

#[test]
fn the_text_comes_without_its_byte_order_mark() {
    assert_eq!(guard_document("\u{FEFF}<a/>".as_bytes()), Ok("<a/>"));
}

/// Each document is refused with these words.
fn all_are_refused(documents: &[(&str, &str)]) {
    for (document, said) in documents {
        let found = refusal(document.as_bytes());
        assert!(found.contains(said), "{document}: {found}");
    }
}

#[test]
fn what_xml_forbids_of_tags_texts_and_references_is_refused_at_its_place() {
    all_are_refused(&[
        ("", "line 1, column 1: the document has no element"),
        ("  \n", "line 2, column 1: the document has no element"),
        ("text", "line 1, column 1: text outside the root"),
        ("<a/>x", "line 1, column 5: text outside the root"),
        ("<a/>&#32;", "line 1, column 5: text outside the root"),
        ("<a/><b/>", "line 1, column 5: a second root element <b>"),
        (
            "<a>\n <b>",
            "line 2, column 5: the document ends before <b> of line 2 is closed",
        ),
        ("<a></b>", "line 1, column 4: </b> where </a> is expected"),
        ("</a>", "</a> closes nothing"),
        ("<a", "the document ends inside a tag"),
        ("<a b", "= is expected after the attribute b"),
        ("<a b=1/>", "the value of b must be in quotes"),
        ("<a b='1/>", "the value of b is not closed"),
        ("<a b='1'c='2'/>", "white space is expected before an attribute"),
        (
            "<a b='1' b='2'/>",
            "line 1, column 10: the attribute b occurs twice",
        ),
        (
            "<a xmlns:p='u' xmlns:q='u' p:b='' q:b=''/>",
            "the attribute q:b occurs twice",
        ),
        (
            "<a xmlns:p='u&#x3a;1' xmlns:q='u:1' p:b='' q:b=''/>",
            "the attribute q:b occurs twice",
        ),
        (
            "<a xmlns:p='u&#32; v' xmlns:q='u\t\r\nv' p:b='' q:b=''/>",
            "the attribute q:b occurs twice",
        ),
        ("<a xmlns:p='http://www.w3.org/2000/xmlns&#47;'/>", "reserved"),
        ("<a b='<'/>", "< in the value of b"),
        ("<a b='&x;'/>", "an & that starts no allowed reference"),
        ("<a>&nbsp;</a>", "an & that starts no allowed reference"),
        ("<a>&amp</a>", "an & that starts no allowed reference"),
        ("<a>&#0;</a>", "an & that starts no allowed reference"),
        ("<a>&#xD800;</a>", "an & that starts no allowed reference"),
        ("<a>&#x110000;</a>", "an & that starts no allowed reference"),
        ("<a>&#+65;</a>", "an & that starts no allowed reference"),
        ("<a>&#;</a>", "an & that starts no allowed reference"),
        ("<a>]]></a>", "]]> in text"),
        ("<a>\u{1}</a>", "the character U+0001"),
        ("<a>\u{FFFF}</a>", "the character U+FFFF"),
        ("<a b='\u{FFFE}'/>", "the character U+FFFE"),
        ("<a><!-- -- --></a>", "-- in a comment"),
        ("<a><!----->", "-- in a comment"),
        ("<a><!-- ", "a comment that is not closed"),
        ("<a><![CDATA[ ", "a CDATA section that is not closed"),
        ("<![CDATA[]]><a/>", "a CDATA section outside the root"),
        ("<a><![cdata[]]></a>", "<! that starts neither"),
    ]);
}

#[test]
fn what_the_protocol_or_namespaces_forbid_is_refused_at_its_place() {
    all_are_refused(&[
        ("<!DOCTYPE a><a/>", "a document type declaration; none is allowed"),
        (
            "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
            "a document type declaration",
        ),
        ("<?p x?><a/>", "a processing instruction; none are allowed"),
        ("<a><?p?></a>", "a processing instruction"),
        (" <?xml version='1.0'?><a/>", "a processing instruction"),
        ("<?xml version='1.1'?><a/>", "the XML declaration may only be"),
        ("<?xml encoding='utf-8'?><a/>", "the XML declaration may only be"),
        (
            "<?xml version='1.0' standalone='yes' encoding='utf-8'?><a/>",
            "the XML declaration may only be",
        ),
        (
            "<?xml version='1.0' standalone='perhaps'?><a/>",
            "the XML declaration may only be",
        ),
        ("<?xml version='1.0'><a/>", "the XML declaration may only be"),
        ("<1a/>", "an element's name is expected"),
        ("< a/>", "an element's name is expected"),
        ("<a:b:c xmlns:a='u'/>", "an element's name is expected"),
        ("<:a/>", "an element's name is expected"),
        ("<a: xmlns:a='u'/>", "an element's name is expected"),
        ("<a:1 xmlns:a='u'/>", "an element's name is expected"),
        ("<p:a/>", "the namespace prefix p is not declared"),
        ("<a p:b=''/>", "the namespace prefix p is not declared"),
        (
            "<a><b xmlns:p='u'/><p:c/></a>",
            "the namespace prefix p is not declared",
        ),
        ("<xmlns:a/>", "the namespace prefix xmlns is not declared"),
        ("<a xmlns:p=''/>", "the prefix p is declared empty"),
        ("<a xmlns:p='u' xmlns:p='v'/>", "declared twice"),
        ("<a xmlns:xml='u'/>", "reserved"),
        ("<a xmlns:xmlns='u'/>", "reserved"),
        ("<a xmlns:p='http://www.w3.org/2000/xmlns/'/>", "reserved"),
        ("<a xmlns='http://www.w3.org/XML/1998/namespace'/>", "reserved"),
        ("<a/ >", "/ without > in a tag"),
        ("<a b='1' / >", "/ without > in a tag"),
        ("<a></a b='1'>", "> is expected to end </a"),
        ("<a><?xml version='1.0'?></a>", "a processing instruction"),
        ("<?XML version='1.0'?><a/>", "a processing instruction"),
        ("\u{FEFF}\u{FEFF}<a/>", "text outside the root"),
        ("<a>&#xFFFE;</a>", "an & that starts no allowed reference"),
        ("<a>&AMP;</a>", "an & that starts no allowed reference"),
        ("<a>&#X41;</a>", "an & that starts no allowed reference"),
        ("<a b='x&'/>", "an & that starts no allowed reference"),
        ("<!--><a/>", "a comment that is not closed"),
        ("<!---><a/>", "a comment that is not closed"),
        (
            "<a xmlns=''xmlns:p='u'/>",
            "white space is expected before an attribute",
        ),
        ("<a xmlns='u' xmlns='u'/>", "declared twice"),
        ("<a xmlns:p:q='u'/>", "an attribute's name"),
        ("<a xmlns:='u'/>", "an attribute's name"),
        ("<a xmlns='http://www.w3.org/2000/xmlns/'/>", "reserved"),
        ("<a></a", "> is expected to end </a"),
    ]);
}

#[test]
fn other_encodings_are_refused_as_such() {
    let utf16: Vec<u8> = "\u{FEFF}<a/>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = "<a/>".encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [
        &utf16[..],
        &big,
        b"<a>\xE4</a>",
        b"<?xml version='1.0' encoding='latin1'?><a/>",
        b"\xFF<a/>",
    ] {
        assert!(
            matches!(guard_document(bytes), Err(GuardError::Encoding { .. })),
            "{bytes:?}: {:?}",
            guard_document(bytes)
        );
    }
    assert_eq!(
        guard_document(b"<a>\n\xE4").unwrap_err().to_string(),
        "line 2, column 1: a byte sequence that is not UTF-8; only UTF-8 is allowed"
    );
}

/// A document at a limit, and the same with one more.
fn around(limit: usize, document: impl Fn(usize) -> String, said: &str) {
    guard_document(document(limit).as_bytes())
        .unwrap_or_else(|error| panic!("at the limit {limit}: {error}"));
    let found = refusal(document(limit + 1).as_bytes());
    assert!(found.contains(said), "{found}");
}

#[test]
fn every_limit_holds_to_the_last() {
    let repeat = |count: usize, piece: &dyn Fn(usize) -> String| (0..count).map(piece).collect::<String>();
    around(
        guard::DEPTH_MAX,
        |n| format!("{}{}", "<a>".repeat(n), "</a>".repeat(n)),
        "nested",
    );
    around(
        guard::DEPTH_MAX,
        |n| format!("{}<a/>{}", "<a>".repeat(n - 1), "</a>".repeat(n - 1)),
        "nested",
    );
    around(
        guard::ELEMENTS_MAX,
        |n| format!("<a>{}</a>", "<b/>".repeat(n - 1)),
        "elements",
    );
    around(
        guard::ATTRIBUTES_MAX,
        |n| format!("<a{}/>", repeat(n, &|i| format!(" b{i}=''"))),
        "attributes",
    );
    around(
        guard::DECLARATIONS_MAX,
        |n| format!("<a{}/>", repeat(n, &|i| format!(" xmlns:p{i}='u'"))),
        "namespace declarations on one element",
    );
    around(
        guard::BINDINGS_MAX,
        |n| {
            let open = repeat(n.div_ceil(10), &|i| {
                let here = (n - i * 10).min(10);
                format!("<a{}>", repeat(here, &|j| format!(" xmlns:p{j}='u{i}'")))
            });
            format!("{open}{}", "</a>".repeat(n.div_ceil(10)))
        },
        "in scope",
    );
    around(guard::NAME_MAX, |n| format!("<{}/>", "n".repeat(n)), "a name of");
    around(
        guard::NAME_MAX,
        |n| format!("<a xmlns:p='u' p:{}=''/>", "n".repeat(n - 2)),
        "a name of",
    );
    around(
        guard::NAME_MAX,
        |n| format!("<a xmlns:{}='u'/>", "n".repeat(n - 6)),
        "a name of",
    );
    around(
        guard::NAMESPACE_MAX,
        |n| format!("<a xmlns:p='{}&#38;'/>", "u".repeat(n - 1)),
        "a namespace name of more than",
    );
    around(
        guard::BYTES_MAX,
        |n| format!("<a>{}</a>", "x".repeat(n - 7)),
        "bytes",
    );
}

/// Pieces that break documents.
const PIECES: [&str; 36] = [
    "<",
    ">",
    "&",
    "'",
    "\"",
    "/",
    "]]>",
    "--",
    "<!--",
    "-->",
    "<![CDATA[",
    "<?p?>",
    "<!DOCTYPE a>",
    "&#0;",
    "&#65;",
    "&lt;",
    " ",
    "\n",
    ":",
    "=",
    "xmlns:q='u'",
    " a='b'",
    "</a>",
    "<a/>",
    "\u{1}",
    "\u{FFFE}",
    "é",
    "q:",
    "<?xml ",
    "]",
    "\r\n",
    "\t",
    " xmlns:q=''",
    " xmlns=''",
    " q:b=''",
    " xmlns:q='u&#9;' xmlns:r='u&#9;' q:b='' r:b=''",
];

#[test]
fn the_guard_and_libxml2_agree_on_damaged_documents() {
    let sources: Vec<Vec<u8>> = [
        "o01-offer-sleep.xml",
        "m08-terminate-input.xml",
        "m11-continuing-fault.xml",
    ]
    .iter()
    .map(|name| text(name).into_bytes())
    .chain([b"<p:a xmlns:p='urn:p' p:b='1'>x &amp; <![CDATA[y]]><!-- z --></p:a>".to_vec()])
    .collect();
    let mut chance = Chance(7);
    let damaged: Vec<Vec<u8>> = (0..3_000)
        .map(|index| {
            let mut bytes = sources[index % sources.len()].clone();
            for _ in 0..=chance.below(2) {
                let at = chance.below(bytes.len());
                match chance.below(4) {
                    0 => drop(bytes.remove(at)),
                    1 => bytes.truncate(at.max(1)),
                    _ => drop(bytes.splice(at..at, chance.pick(&PIECES).bytes())),
                }
            }
            bytes
        })
        .collect();
    let Some(verdicts) = xmllint(&damaged, Judge::Form, "damaged") else {
        return;
    };
    let mut well_formed = 0;
    for (bytes, said) in damaged.iter().zip(verdicts) {
        let libxml2 = said.is_empty();
        let shown = String::from_utf8_lossy(bytes);
        match guard_document(bytes) {
            Ok(_) => {
                assert!(
                    libxml2,
                    "the guard lets a document through that libxml2 refuses:\n{shown}"
                );
                if let Err(error) = Document::parse(bytes) {
                    panic!("the guard lets a document through that cannot be read: {error}\n{shown}");
                }
                well_formed += 1;
            }
            Err(error) => {
                // Forbidden by the protocol, not by XML.
                let policy = [
                    "document type",
                    "processing instruction",
                    "the XML declaration may only be",
                    "encoding",
                ];
                let by_policy = policy.iter().any(|policy| error.to_string().contains(policy));
                assert!(
                    !libxml2 || by_policy,
                    "the guard refuses a document that libxml2 reads: {error}\n{shown}"
                );
            }
        }
    }
    assert!(
        well_formed > 200,
        "too few documents survive to say anything: {well_formed}"
    );
}

#[test]
fn every_sample_message_passes_the_guard() {
    for name in names("") {
        guard_document(text(&name).as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
