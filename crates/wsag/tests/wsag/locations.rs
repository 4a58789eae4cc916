//! Locations select the nodes that libxml2 selects, and a text that is no Location is refused.

#![expect(clippy::format_collect, reason = "texts are built once; clarity counts")]

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::Chance;
use crate::support::items::{folder, item, paths};
use wsag::ns::{BSP, JSDL, WSAG};
use wsag::{Document, VIOLATIONS_MAX};

/// An element with its content. Children of the root are of WS-Agreement, as those of an offer are.
fn element(chance: &mut Chance, depth: usize) -> String {
    let name = match depth {
        0 => "wsag:AgreementOffer",
        1 => chance.pick::<&str>(&["wsag:a", "wsag:b"]),
        _ => chance.pick::<&str>(&["wsag:a", "wsag:b", "jsdl:a", "bsp:c", "c"]),
    };
    let mut text = format!("<{name}");
    if depth == 0 {
        text.push_str(&format!(
            " xmlns:wsag='{WSAG}' xmlns:jsdl='{JSDL}' xmlns:bsp='{BSP}'"
        ));
    }
    for attribute in ["wsag:Name", "Name", "bsp:n"] {
        if chance.below(3) == 0 {
            text.push_str(&format!(
                " {attribute}='{}'",
                chance.pick::<&str>(&["x", "y", "", "&#x78;"])
            ));
        }
    }
    text.push('>');
    let children = if depth > 4 {
        0
    } else {
        chance.below(4) + usize::from(depth == 0)
    };
    for _ in 0..children {
        text.push_str(&element(chance, depth + 1));
        if chance.below(4) == 0 {
            text.push_str(chance.pick::<&str>(&["x", "<!-- -->", " ", "<![CDATA[y]]>"]));
        }
    }
    if children == 0 {
        text.push_str(chance.pick::<&str>(&["x", "y", "<![CDATA[x]]>", "x<!-- -->y", "", "&#120;&amp;"]));
    }
    format!("{text}</{name}>")
}

const TESTS: [&str; 11] = [
    "*",
    "wsag:*",
    "wsag:a",
    "wsag:b",
    "jsdl:a",
    "bsp:c",
    "c",
    "wsag:AgreementOffer",
    "jsdl:*",
    "wsag:a",
    "wsag:b",
];

fn condition(chance: &mut Chance, depth: usize) -> String {
    let string = chance.pick::<&str>(&["'x'", "\"y\"", "''", "'xy'", "'a'", "'AgreementOffer'"]);
    let compare = chance.pick::<&str>(&["=", " != ", "!=", " ="]);
    let attribute = *chance.pick::<&str>(&["@wsag:Name", "@Name", "@*", "attribute::bsp:*", "@ bsp:n"]);
    let test = *chance.pick::<&str>(&TESTS);
    match chance.below(if depth > 2 { 6 } else { 9 }) {
        0 => attribute.to_owned(),
        1 => test.to_owned(),
        2 => format!("{attribute}{compare}{string}"),
        3 => format!("child::{test}{compare} {string}"),
        4 => format!("local-name(){compare}{string}"),
        5 => format!(
            "namespace-uri ( ){compare}'{}'",
            chance.pick::<&str>(&[WSAG, JSDL, ""])
        ),
        6 => format!(
            "{} or {}",
            condition(chance, depth + 1),
            condition(chance, depth + 1)
        ),
        7 => format!(
            "({}) and {}",
            condition(chance, depth + 1),
            condition(chance, depth + 1)
        ),
        _ => format!("not( {} )", condition(chance, depth + 1)),
    }
}

fn path(chance: &mut Chance) -> String {
    let mut path = String::new();
    for _ in 0..=chance.below(3) {
        path.push_str(chance.pick::<&str>(&["/", "//", "/", "/child::", " // "]));
        path.push_str(chance.pick::<&str>(&TESTS));
        for _ in 0..chance.below(3) {
            let predicate = match chance.below(4) {
                0 => (chance.below(3) + 1).to_string(),
                1 => "last()".to_owned(),
                _ => condition(chance, 0),
            };
            path.push_str(&format!("[{predicate}]"));
        }
        if chance.below(8) == 0 {
            path.push_str(&format!(
                "/descendant::{}[{}]",
                chance.pick::<&str>(&TESTS),
                condition(chance, 0)
            ));
        }
    }
    match chance.below(6) {
        0 => path.push_str(chance.pick::<&str>(&["/@*", "//@Name", "/@wsag:Name", "/attribute::wsag:*"])),
        1 => path.push_str(chance.pick::<&str>(&["/text()", "//text()", "/text( )"])),
        _ => {}
    }
    path
}

#[test]
fn locations_select_what_libxml2_selects() {
    let Some(folder) = folder("locations") else { return };
    let mut chance = Chance(99);
    let (mut selected, mut unions) = (0, 0);
    for round in 0..40 {
        let offer = element(&mut chance, 0);
        let locations: Vec<String> = (0..50)
            .map(|_| {
                let paths: Vec<String> = (0..=chance.below(3) / 2).map(|_| path(&mut chance)).collect();
                unions += usize::from(paths.len() > 1);
                paths.join(" | ")
            })
            // Its shell reads no longer lines.
            .filter(|location| location.len() < 400)
            .collect();
        let file = folder.join("offer.xml");
        fs::write(&file, &offer).unwrap();
        let mut xmllint = Command::new("xmllint")
            .args(["--nonet", "--nocdata", "--shell"])
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands: String = locations
            .iter()
            .map(|location| format!("whereis {location}\n"))
            .collect();
        let namespaces = format!("setns wsag={WSAG} jsdl={JSDL} bsp={BSP}\n");
        let mut input = xmllint.stdin.take().unwrap();
        input
            .write_all(format!("{namespaces}{commands}").as_bytes())
            .unwrap();
        drop(input);
        let said = String::from_utf8(xmllint.wait_with_output().unwrap().stdout).unwrap();
        // A prompt stands before the answer to each command. The first answer is empty.
        let answers: Vec<&str> = said.split("/ > ").skip(2).collect();
        assert_eq!(answers.len(), locations.len() + 1, "{said}");
        for (location, answer) in locations.iter().zip(answers) {
            let without_text = |line: &str| line.split("/text()").next().unwrap_or_default().to_owned();
            let mut expected: Vec<String> = answer.lines().map(without_text).collect();
            if expected.len() >= VIOLATIONS_MAX {
                continue;
            }
            let template = item(location, "<xs:enumeration value='&#1234;'/>");
            assert_eq!(template.problems(), [], "{location}");
            let mut found = paths(&template, &offer);
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{location} in round {round} of\n{offer}");
            selected += found.len();
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(
        selected > 1_000 && unions > 100,
        "too little is selected to say anything: {selected}"
    );
}

#[test]
fn texts_and_attributes_say_what_xml_says_that_they_say() {
    // The content of an element, its text, and all text inside it as one.
    for (content, texts, deep) in [
        ("a\r\nb\rc\n\td", &["a\nb\nc\n\td"][..], "a\nb\nc\n\td"),
        (
            "a&#13;&#10;b&amp;&#x41;&lt;&gt;&quot;&apos;",
            &["a\r\nb&A<>\"'"],
            "a\r\nb&A<>\"'",
        ),
        ("a<![CDATA[<&amp;]]\r\n]]>b", &["a<&amp;]]\nb"], "a<&amp;]]\nb"),
        (
            "a<!-- & -->b<wsag:c>d<wsag:e/>e</wsag:c>f",
            &["a", "b", "f"],
            "abdef",
        ),
        ("<![CDATA[]]>", &[], ""),
        ("", &[], ""),
        (" \u{85}\u{2028} ", &[" \u{85}\u{2028} "], " \u{85}\u{2028} "),
    ] {
        assert_eq!(said("/*/wsag:a/text()", content, ""), texts, "{content:?}");
        assert_eq!(said("/*/wsag:a", content, ""), [deep], "{content:?}");
    }
    for (written, value) in [
        ("a\r\nb\rc\n\td", "a b c  d"),
        ("&#13;&#10;&#9;&#32;", "\r\n\t "),
        ("a&amp;&#x41;&lt;> \"&apos;", "a&A<> \"'"),
        ("", ""),
    ] {
        assert_eq!(
            said("/*/wsag:a/@b", "", &format!(" b='{written}'")),
            [value],
            "{written:?}"
        );
    }
    // A namespace is recognized by its name after references are resolved, and the innermost declaration counts.
    for (declared, found) in [
        (" xmlns:q='urn&#58;bespeak:terms&#x3a;1' q:b='1'", &["1"][..]),
        (" xmlns:q='urn:bespeak:terms:1&#32;' q:b='1'", &[]),
        (" xmlns='urn:bespeak:terms:1' b='1'", &[]),
        (" b='1' q:b='2' xmlns:q='urn:bespeak:terms:1'", &["2"]),
    ] {
        assert_eq!(said("//@bsp:b", "", declared), found, "{declared}");
    }
    let inner = "<d xmlns='urn:bespeak:terms:1'><e xmlns=''>1</e><e>2</e><f xmlns:q='urn:bespeak:terms:1'><q:e xmlns='u'>3</q:e></f></d>";
    assert_eq!(said("//bsp:e", inner, ""), ["2", "3"]);
    assert_eq!(said("//e", inner, ""), ["1"]);
}

/// The nodes that a Location selects in an offer with one element in it, as the violations name them.
fn said(location: &str, content: &str, attributes: &str) -> Vec<String> {
    let offer = format!(
        "<wsag:AgreementOffer xmlns:wsag='{WSAG}'><wsag:a{attributes}>{content}</wsag:a></wsag:AgreementOffer>"
    );
    let nothing = "<xs:simpleType><xs:restriction base='xs:string'><xs:enumeration value='no'/></xs:restriction></xs:simpleType>";
    let document = Document::parse(offer.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{offer}"));
    let found = item(location, nothing).check(&document);
    let value = |message: &str| {
        let quoted = message
            .strip_prefix("no is expected, not \"")
            .and_then(|rest| rest.split_once("\" (item"));
        let (escaped, _) = quoted.unwrap_or_else(|| panic!("{message}"));
        escaped
            .replace("\\n", "\n")
            .replace("\\r", "\r")
            .replace("\\t", "\t")
            .replace("\\u{85}", "\u{85}")
            .replace("\\u{2028}", "\u{2028}")
            .replace("\\\"", "\"")
    };
    found.iter().map(|violation| value(&violation.message)).collect()
}

#[test]
fn what_is_no_location_of_the_subset_is_refused_with_the_reason() {
    for location in [
        "",
        "/",
        "//",
        "wsag:a",
        "a/b",
        "$this",
        "$that/a",
        "/a/",
        "/a/..",
        "/a/.",
        "/a/@b/c",
        "/a/text()/b",
        "/a/text()[1]",
        "/a/@b[1]",
        "/a/node()",
        "/a/comment()",
        "/parent::a",
        "/a/following-sibling::b",
        "/a/descendant::b[1]",
        "/a/descendant::b[last()]",
        "//a[text()]",
        "//a[.='x']",
        "//a[b/c]",
        "//a[b='x'",
        "//a[b='x]",
        "//a[b=1]",
        "//a[b<'x']",
        "//a[last()-1]",
        "//a[position()=1]",
        "//a[local-name()]",
        "//a[local-name(b)='x']",
        "//a[name()='x']",
        "//a[count(b)=1]",
        "//a[99999999999999999999999]",
        "//a[1 or 2]",
        "//a[not b]",
        "//a[b and]",
        "//a[]",
        "//q:a",
        "//a[q:b]",
        "//a[@q:b]",
        "//wsag:",
        "//a:b:c",
        "//a || //b",
        "//a |",
        "| //a",
        "(//a)[1]",
        "id('x')",
        "string(//a)",
        "//a b",
    ] {
        let template = item(location, "");
        assert_eq!(template.problems().len(), 1, "{location:?} is refused");
    }
    let nested = format!("//a[{}b{}]", "(".repeat(17), ")".repeat(17));
    assert_eq!(item(&nested, "").problems().len(), 1);
    assert_eq!(
        item(&nested.replacen('(', "", 1).replacen(')', "", 1), "").problems(),
        []
    );
    for (most, one_more) in [
        (vec!["//a"; 32].join("|"), vec!["//a"; 33].join("|")),
        ("/a".repeat(32), "/a".repeat(33)),
    ] {
        assert_eq!(item(&most, "").problems(), []);
        assert_eq!(item(&one_more, "").problems().len(), 1);
    }
}
