//! Patterns match the values that they mean, and a text that is no pattern is refused.

#![expect(clippy::format_collect, reason = "texts are built once; clarity counts")]

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::process::Command;

use crate::support::Chance;
use crate::support::items::{folder, item, paths};
use wsag::constraints::CompiledTemplate;
use wsag::ns::WSAG;

/// An offer with these values, each in an element of its own.
fn values(values: &[String]) -> String {
    let elements: String = values
        .iter()
        .map(|value| format!("<wsag:v>{value}</wsag:v>"))
        .collect();
    format!("<wsag:AgreementOffer xmlns:wsag='{WSAG}'>{elements}</wsag:AgreementOffer>")
}

fn pattern(text: &str) -> CompiledTemplate {
    let value = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('\'', "&apos;");
    let facet = format!("<xs:pattern value='{value}'/>");
    let restriction =
        format!("<xs:simpleType><xs:restriction base='xs:string'>{facet}</xs:restriction></xs:simpleType>");
    item("//wsag:v", &restriction)
}

#[test]
fn classes_have_the_characters_that_libxml2_gives_them() {
    const CLASSES: [&str; 40] = [
        "a",
        "-",
        "^",
        "$",
        "ä",
        ".",
        r"\.",
        r"\-",
        r"\^",
        r"\[",
        r"\\",
        r"\n",
        r"\t",
        r"\d",
        r"\D",
        r"\s",
        r"\S",
        r"\w",
        r"\W",
        r"\i",
        r"\I",
        r"\c",
        r"\C",
        r"\p{L}",
        r"\P{L}",
        r"\p{Lu}",
        r"\P{Lu}",
        r"\p{Nd}",
        "[ab]",
        "[^a]",
        "[a-c]",
        "[a-c-[b]]",
        r"[\d\-.]",
        "[-a]",
        "[a-]",
        "[^a-c-[x-z]]",
        r"[\p{Lu}\s]",
        r"[^\i]",
        r"[\[\]^]",
        r"[\c-[\i]]",
    ];
    const CHARACTERS: [&str; 20] = [
        "a", "b", "c", "x", "A", "1", "-", ".", " ", "\n", "\t", "_", ":", "ä", "Ä", "$", "^", "[", "²", "\\",
    ];
    let Some(folder) = folder("classes") else { return };
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let elements: String = CLASSES
        .iter()
        .enumerate()
        .map(|(index, class)| {
            let facet = format!("<xs:pattern value=\"{}\"/>", escape(class));
            format!(
                "<xs:element name='e{index}' maxOccurs='unbounded'><xs:simpleType><xs:restriction base='xs:string'>{facet}\
                 </xs:restriction></xs:simpleType></xs:element>"
            )
        })
        .collect();
    let schema = format!(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='r'><xs:complexType><xs:sequence>{elements}\
         </xs:sequence></xs:complexType></xs:element></xs:schema>"
    );
    // Each value on a line of its own, by which xmllint's messages name it.
    let reference = |value: &str| format!("&#{};", u32::from(value.chars().next().unwrap()));
    let lines: String = (0..CLASSES.len())
        .flat_map(|index| CHARACTERS.map(|value| format!("<e{index}>{}</e{index}>\n", reference(value))))
        .collect();
    fs::write(folder.join("s.xsd"), schema).unwrap();
    fs::write(folder.join("d.xml"), format!("<r>\n{lines}</r>")).unwrap();
    let output = Command::new("xmllint")
        .args(["--nonet", "--noout", "--schema", "s.xsd", "d.xml"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("fails to validate"), "{said}");
    let refused: HashSet<usize> = said
        .lines()
        .filter_map(|line| line.strip_prefix("d.xml:")?.split(':').next()?.parse().ok())
        .collect();
    let mut line = 1;
    for class in CLASSES {
        let template = pattern(class);
        assert_eq!(template.problems(), [], "{class}");
        for value in CHARACTERS {
            line += 1;
            let meets = paths(&template, &values(&[reference(value)])).is_empty();
            assert_eq!(meets, !refused.contains(&line), "{value:?} and {class}");
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// The meaning of a pattern, in a form that is matched by plain search. (libxml2 is no reference here: where two ways go on alike
/// it takes a wrong one.)
enum PatternMeaning {
    /// A class as it is written, and its characters among `abc`.
    Class(&'static str, &'static str),
    Sequence(Vec<PatternMeaning>),
    Choice(Vec<PatternMeaning>),
    Repeat(Box<PatternMeaning>, usize, Option<usize>),
}

impl PatternMeaning {
    fn some(chance: &mut Chance, depth: usize) -> PatternMeaning {
        let members = |chance: &mut Chance| {
            (0..=chance.below(2))
                .map(|_| PatternMeaning::some(chance, depth + 1))
                .collect()
        };
        match chance.below(if depth > 4 { 1 } else { 6 }) {
            0 => {
                let classes = [
                    ("a", "a"),
                    ("b", "b"),
                    ("[^a]", "bc"),
                    (".", "abc"),
                    ("[a-c-[b]]", "ac"),
                    (r"\d", ""),
                ];
                let (text, has) = *chance.pick(&classes);
                PatternMeaning::Class(text, has)
            }
            1 => PatternMeaning::Choice(members(chance)),
            2 => PatternMeaning::Sequence(members(chance)),
            3 => PatternMeaning::Sequence(Vec::new()),
            _ => {
                let least = chance.below(3);
                let most = (chance.below(2) == 0).then(|| least + chance.below(2));
                PatternMeaning::Repeat(Box::new(PatternMeaning::some(chance, depth + 1)), least, most)
            }
        }
    }

    fn text(&self) -> String {
        let texts = |parts: &[PatternMeaning]| parts.iter().map(PatternMeaning::text).collect::<Vec<_>>();
        match self {
            PatternMeaning::Class(text, _) => (*text).to_owned(),
            PatternMeaning::Sequence(parts) => texts(parts).concat(),
            PatternMeaning::Choice(parts) => format!("({})", texts(parts).join("|")),
            PatternMeaning::Repeat(part, 0, None) => format!("({})*", part.text()),
            PatternMeaning::Repeat(part, 1, None) => format!("({})+", part.text()),
            PatternMeaning::Repeat(part, 0, Some(1)) => format!("({})?", part.text()),
            PatternMeaning::Repeat(part, least, None) => format!("({}){{{least},}}", part.text()),
            PatternMeaning::Repeat(part, least, Some(most)) if least == most => {
                format!("({}){{{least}}}", part.text())
            }
            PatternMeaning::Repeat(part, least, Some(most)) => format!("({}){{{least},{most}}}", part.text()),
        }
    }

    /// Where a match that starts at any of these places may end.
    fn ends(&self, value: &str, starts: &BTreeSet<usize>) -> BTreeSet<usize> {
        match self {
            PatternMeaning::Class(_, has) => starts
                .iter()
                .filter(|start| value[**start..].chars().next().is_some_and(|c| has.contains(c)))
                .map(|start| start + 1)
                .collect(),
            PatternMeaning::Sequence(parts) => parts
                .iter()
                .fold(starts.clone(), |ends, part| part.ends(value, &ends)),
            PatternMeaning::Choice(parts) => parts.iter().flat_map(|part| part.ends(value, starts)).collect(),
            PatternMeaning::Repeat(part, least, most) => {
                let mut ends = (0..*least).fold(starts.clone(), |ends, _| part.ends(value, &ends));
                let mut last = ends.clone();
                // No value is longer than that.
                for _ in *least..most.unwrap_or(least + 10) {
                    last = part.ends(value, &last);
                    ends.extend(&last);
                }
                ends
            }
        }
    }
}

#[test]
fn patterns_match_what_they_mean() {
    let mut chance = Chance(11);
    let (mut matched, mut refused) = (0, 0);
    for _ in 0..1_500 {
        let meant = PatternMeaning::some(&mut chance, 0);
        let text = meant.text();
        let template = pattern(&text);
        assert_eq!(template.problems(), [], "{text}");
        for _ in 0..6 {
            let value: String = (0..chance.below(7))
                .map(|_| *chance.pick(&["a", "b", "c"]))
                .collect();
            let expected = meant.ends(&value, &BTreeSet::from([0])).contains(&value.len());
            let meets = paths(&template, &values(std::slice::from_ref(&value))).is_empty();
            assert_eq!(meets, expected, "{value:?} for the pattern {text}");
            *(if meets { &mut matched } else { &mut refused }) += 1;
        }
    }
    assert!(
        matched > 1_000 && refused > 1_000,
        "{matched} match and {refused} do not"
    );
}

#[test]
fn groups_are_repeated_in_every_way_that_they_can_be() {
    for (text, right, wrong) in [
        (
            "(ab|a){2}",
            &["aa", "aab", "aba", "abab"][..],
            &["a", "ab", "aaa", "abb", ""][..],
        ),
        (
            "(a|b*){1,2}c",
            &["c", "ac", "bbc", "abbc", "bbbac"],
            &["", "aabc", "cc"],
        ),
        ("((a?)*b)+", &["b", "aab", "baaab"], &["", "a", "aaba"]),
        ("(a{2}){2,}", &["aaaa", "aaaaaa"], &["aa", "aaaaa"]),
        ("((a|b){0,2}){0,2}", &["", "a", "abab"], &["ababa", "c"]),
        ("(\\p{Lu}+|1[^a])+", &["A1^B", "1A1B"], &["1a", "A1", ""]),
        ("()*|(){3}x", &["", "x"], &["xx"]),
        ("(()(a{0})*(b|())()){2}", &["", "b", "bb"], &["a", "bbb"]),
        ("((()|a{0}){3}|())a", &["a"], &["", "aa"]),
        ("a||b", &["", "a", "b"], &["ab"]),
        (
            "(a*)*(a*)*b?",
            &["", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"],
            &["ba"],
        ),
        ("a{0}b", &["b"], &["ab"]),
        ("^a$", &["^a$"], &["a"]),
        ("a{1000}", &[], &["a"]),
    ] {
        let template = pattern(text);
        assert_eq!(template.problems(), [], "{text}");
        for value in right {
            assert_eq!(
                paths(&template, &values(&[(*value).to_owned()])).len(),
                0,
                "{value:?} matches {text}"
            );
        }
        for value in wrong {
            assert_eq!(
                paths(&template, &values(&[(*value).to_owned()])).len(),
                1,
                "{value:?} does not match {text}"
            );
        }
    }
}

#[test]
fn what_is_no_pattern_is_refused_with_the_reason() {
    for text in [
        "(",
        ")",
        "a)",
        "(a",
        "[",
        "]",
        "[]",
        "[^]",
        "a]",
        "{",
        "a}",
        "*",
        "+a",
        "?",
        "a**",
        "a+?",
        "(?:a)",
        "(?i)a",
        "a{",
        "a{2",
        "a{2,1}",
        "a{,2}",
        "a{x}",
        "a{1,x}",
        "a{99999999999999999999999}",
        r"\",
        r"\b",
        r"\A",
        r"\q",
        r"\x41",
        r"\u0041",
        r"\1",
        r"\p",
        r"\pL",
        r"\p{",
        r"\p{Cs}",
        r"\p{Greek}",
        r"\p{IsGreek}",
        r"\p{l}",
        "[b-a]",
        "[a-c-x]",
        "[a-[b]",
        "[a-[]]",
        "[a[b]]",
        r"[\d-z]",
        r"[a-\d]",
        "a{1001}",
        "(a{40}){40}",
    ] {
        let template = pattern(text);
        assert_eq!(template.problems().len(), 1, "{text}");
        let message = &template.problems()[0].message;
        assert!(
            message.contains("the pattern") && message.contains("cannot be evaluated"),
            "{text}: {message}"
        );
    }
    let deep = format!("{}a{}", "(".repeat(17), ")".repeat(17));
    assert_eq!(pattern(&deep).problems().len(), 1);
    assert_eq!(pattern(&deep[1..34]).problems(), []);
}

#[test]
fn every_general_category_has_its_characters_and_no_others() {
    for (name, inside, outside) in [
        ("L", "ä", "1"),
        ("Lu", "Ä", "ä"),
        ("Ll", "ä", "Ä"),
        ("Lt", "\u{1C5}", "a"),
        ("Lm", "\u{2B0}", "a"),
        ("Lo", "日", "a"),
        ("M", "\u{301}", "a"),
        ("Mn", "\u{301}", "\u{903}"),
        ("Mc", "\u{903}", "\u{301}"),
        ("Me", "\u{488}", "a"),
        ("N", "Ⅷ", "a"),
        ("Nd", "\u{663}", "Ⅷ"),
        ("Nl", "Ⅷ", "1"),
        ("No", "²", "1"),
        ("P", "!", "+"),
        ("Pc", "_", "-"),
        ("Pd", "-", "_"),
        ("Ps", "(", ")"),
        ("Pe", ")", "("),
        ("Pi", "«", "»"),
        ("Pf", "»", "«"),
        ("Po", "!", "("),
        ("Z", "\u{A0}", "a"),
        ("Zs", " ", "\t"),
        ("Zl", "\u{2028}", " "),
        ("Zp", "\u{2029}", " "),
        ("S", "+", "!"),
        ("Sm", "+", "$"),
        ("Sc", "€", "+"),
        ("Sk", "^", "+"),
        ("So", "©", "+"),
        ("C", "\t", "a"),
        ("Cc", "\t", " "),
        ("Cf", "\u{AD}", "a"),
        ("Co", "\u{E000}", "a"),
        ("Cn", "\u{378}", "a"),
    ] {
        for (pattern_text, value, other) in [
            (format!(r"\p{{{name}}}"), inside, outside),
            (format!(r"\P{{{name}}}"), outside, inside),
            (format!(r"[^\P{{{name}}}]"), inside, outside),
        ] {
            let template = pattern(&pattern_text);
            assert_eq!(template.problems(), [], "{pattern_text}");
            assert_eq!(
                paths(&template, &values(&[value.to_owned()])).len(),
                0,
                "{value:?} is {pattern_text}"
            );
            assert_eq!(
                paths(&template, &values(&[other.to_owned()])).len(),
                1,
                "{other:?} is not {pattern_text}"
            );
        }
    }
}
