//! Hostile documents: nothing panics, nothing takes long, and every refusal names a place.

#![expect(
    clippy::disallowed_types,
    reason = "a test of time needs a clock; the crate itself does not"
)]
#![expect(clippy::format_collect, reason = "bombs are built once; clarity counts")]

use std::time::{Duration, Instant};

use crate::support::{Chance, names, template, text};
use wsag::constraints::CompiledTemplate;
use wsag::templates::ADVANCE_RESERVATION;
use wsag::{Document, Violation, read, rules};

/// Far above the time of any document on a machine that is busy with other tests, and far below the time of an attack.
const TIME_MAX: Duration = Duration::from_mins(1);

/// Takes a document in as the service does. True where nothing is wrong with it.
fn take_in(bytes: &[u8], template: &CompiledTemplate) -> bool {
    let start = Instant::now();
    let accepted = match Document::parse(bytes) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
        Ok(document) => match read(&document) {
            Err(violations) => {
                let sound =
                    |violation: &Violation| violation.path.starts_with('/') && !violation.message.is_empty();
                assert!(
                    !violations.0.is_empty() && violations.0.iter().all(sound),
                    "{violations:?}"
                );
                false
            }
            Ok(_) => rules::check_rules(&document).is_empty() && template.check(&document).is_empty(),
        },
    };
    let took = start.elapsed();
    assert!(took < TIME_MAX, "{took:?} for {} bytes", bytes.len());
    accepted
}

#[test]
fn five_thousand_mutated_documents_neither_panic_nor_take_long() {
    let template = CompiledTemplate::compile(&template(ADVANCE_RESERVATION));
    let mut sources: Vec<Vec<u8>> = names("").iter().map(|name| text(name).into_bytes()).collect();
    sources.extend(
        names("negative")
            .iter()
            .map(|name| text(&format!("negative/{name}")).into_bytes()),
    );
    sources.push(include_bytes!("rich/offer.xml").to_vec());
    let mut chance = Chance(42);
    let mut accepted = 0;
    for index in 0..5_000 {
        let mut bytes = sources[index % sources.len()].clone();
        for _ in 0..=chance.below(4) {
            mutate(&mut bytes, &sources, &mut chance);
        }
        accepted += usize::from(take_in(&bytes, &template));
    }
    assert!(accepted < 500, "mutants are hardly ever right: {accepted}");
}

fn mutate(bytes: &mut Vec<u8>, sources: &[Vec<u8>], chance: &mut Chance) {
    const PIECES: [&[u8]; 16] = [
        b"<",
        b">",
        b"&",
        b"\xFF",
        b"\0",
        b"]]>",
        b"<!DOCTYPE x [<!ENTITY y 'z'>]>",
        b"&y;",
        b"99999999999999999999",
        b"-1",
        b"NaN",
        b"xmlns:x='u'",
        b"<x>",
        b"</x>",
        b"2026-13-40T99:99:99Z",
        b"\xE2\x80\xAE",
    ];
    if bytes.is_empty() {
        bytes.push(b'<');
    }
    let at = chance.below(bytes.len());
    let end = (at + chance.below(200)).min(bytes.len());
    match chance.below(6) {
        0 => bytes[at] = u8::try_from(chance.below(256)).expect("it is below 256"),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(end..end, copy);
        }
        3 => {
            let other = chance.pick(sources);
            let from = chance.below(other.len());
            let to = (from + chance.below(400)).min(other.len());
            bytes.splice(at..at, other[from..to].iter().copied());
        }
        4 => bytes.truncate(at),
        _ => drop(bytes.splice(at..at, chance.pick(&PIECES).iter().copied())),
    }
}

/// An offer for the built-in template with something put in the place of its job's name.
fn offer_with(piece: &str) -> String {
    text("o01-offer-sleep.xml").replace(
        "sleep</jsdl:ApplicationName>",
        &format!("{piece}</jsdl:ApplicationName>"),
    )
}

#[test]
fn bombs_are_refused_at_once() {
    let template = CompiledTemplate::compile(&template(ADVANCE_RESERVATION));
    let wsag = wsag::ns::WSAG;
    let entities: String = (1..10)
        .map(|i| format!("<!ENTITY e{i} '{}'>", format!("&e{};", i - 1).repeat(10)))
        .collect();
    let nested_declarations: String = (0..500)
        .map(|i| {
            format!(
                "<a{}>",
                (0..4)
                    .map(|j| format!(" xmlns:p{}='u'", i * 4 + j))
                    .collect::<String>()
            )
        })
        .collect();
    let bombs = [
        format!("<!DOCTYPE a [<!ENTITY e0 'ha'>{entities}]><a>&e9;</a>"),
        "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>".to_owned(),
        format!("{nested_declarations}{}", "</a>".repeat(500)),
        "<a>".repeat(80_000),
        format!("<a>{}</a>", "<b/>".repeat(60_000)),
        format!(
            "<a{}/>",
            (0..20_000).map(|i| format!(" b{i}=''")).collect::<String>()
        ),
        format!("<a>{}</a>", "&#x41;".repeat(40_000)),
        format!(
            "<wsag:AgreementOffer xmlns:wsag='{wsag}'>{}",
            "<wsag:Terms>".repeat(31)
        ),
        offer_with(&"x".repeat(250_000)),
        offer_with(&"<!-- -->".repeat(30_000)),
        offer_with(&"<![CDATA[x]]>".repeat(19_000)),
        "<".repeat(200_000),
        "&".repeat(200_000),
        "x".repeat(300_000),
    ];
    for bomb in &bombs {
        take_in(bomb.as_bytes(), &template);
    }
    // Long texts are allowed; the catalogue decides whether one names an application.
    assert!(take_in(
        offer_with("sleep").replace("2026-01-10", "2027-01-10").as_bytes(),
        &template
    ));
}

#[test]
fn an_offer_as_large_as_the_guard_lets_through_is_checked_in_time() {
    let template = CompiledTemplate::compile(&template(ADVANCE_RESERVATION));
    let offer = text("o01-offer-sleep.xml");
    let term = "<wsag:GuaranteeTerm wsag:Name=\"COMPLETION\" wsag:Obligated=\"ServiceProvider\"><wsag:ServiceLevelObjective>\
                <wsag:CustomServiceLevel>completed le deadline and (not (nodes lt 1))</wsag:CustomServiceLevel>\
                </wsag:ServiceLevelObjective><wsag:BusinessValueList/></wsag:GuaranteeTerm>";
    let large = offer.replace("</wsag:All>", &format!("{}</wsag:All>", term.repeat(480)));
    assert!(
        Document::parse(large.as_bytes()).is_ok(),
        "it is within the limits"
    );
    assert!(!take_in(large.as_bytes(), &template), "its names are not unique");
}

/// An offer with many foreign elements and attributes, which a constraint may select.
fn wide_offer() -> String {
    let attributes: String = (0..60)
        .map(|i| format!(" a{i}='aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'"))
        .collect();
    let wide = format!("<x:e{attributes}/>").repeat(70);
    let deep = format!("{}x{}", "<x:d>".repeat(25), "</x:d>".repeat(25)).repeat(60);
    let extension = format!("<x:w xmlns:x='urn:x'>{wide}{deep}</x:w></wsag:Context>");
    text("o01-offer-sleep.xml").replace("</wsag:Context>", &extension)
}

#[test]
fn constraints_made_to_take_long_are_refused_in_time() {
    let offer = wide_offer();
    let document = Document::parse(offer.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    read(&document).unwrap_or_else(|violations| panic!("{violations}"));
    let facet = "<xs:minLength value='1'/>".to_owned();
    let nested_choice = format!(
        "{}<xs:any/>{}",
        "<xs:sequence minOccurs='0' maxOccurs='unbounded'>".repeat(12),
        "</xs:sequence>".repeat(12)
    );
    let many = format!(
        "<xs:choice maxOccurs='unbounded'>{}</xs:choice>",
        "<xs:element name='q'/><xs:any/>".repeat(300)
    );
    for (location, constraint) in [
        (vec!["//@*"; 32].join(" | "), facet.clone()),
        (format!("{}/@*", "//*".repeat(30)), facet.clone()),
        (format!("//*{}", "[d='x']".repeat(200)), facet.clone()),
        (format!("//*{}", "[1]".repeat(500)), facet.clone()),
        (
            format!("//*[{}]", vec!["not(*!='x')"; 150].join(" and ")),
            facet.clone(),
        ),
        (format!("//*[{}1]", "not(".repeat(300)), facet.clone()),
        ("//@*".to_owned(), "<xs:pattern value='(a*)*b'/>".to_owned()),
        ("//@*".to_owned(), "<xs:pattern value='((a|aa)+)+c'/>".repeat(50)),
        (
            "//*".to_owned(),
            "<xs:pattern value='(x{1,1000}){1,1000}'/>".to_owned(),
        ),
        (
            "//*".to_owned(),
            "<xs:pattern value='((((()*){999999999})+){9999999999}){99}'/>".to_owned(),
        ),
        (
            "//@*".to_owned(),
            "<xs:pattern value='(a?){300}a{300}'/>".repeat(80),
        ),
        (
            "//@*".to_owned(),
            "<xs:pattern value='[\\w-[\\p{Lu}]]{400}\\i*'/>".repeat(200),
        ),
        ("//*".to_owned(), nested_choice),
        ("//*".to_owned(), many),
        (
            "//*".to_owned(),
            "<xs:sequence><xs:any minOccurs='999999999' maxOccurs='unbounded'/></xs:sequence>".to_owned(),
        ),
        (
            "//@*".to_owned(),
            format!("<xs:enumeration value='{}'/>", "a".repeat(1_000)).repeat(50),
        ),
    ] {
        let item = format!(
            "<wsag:Item wsag:Name='i'><wsag:Location>{location}</wsag:Location>\
             <wsag:ItemConstraint>{constraint}</wsag:ItemConstraint></wsag:Item>"
        );
        let template = ADVANCE_RESERVATION.replace(
            "<wsag:Constraint>",
            &format!("{}<wsag:Constraint>", item.repeat(3)),
        );
        let start = Instant::now();
        let template = CompiledTemplate::compile(&crate::support::template(&template));
        template.check(&document);
        let took = start.elapsed();
        println!("{took:?} for {location:.40} {constraint:.60}");
        assert!(took < TIME_MAX, "{took:?} for {location} {constraint:.200}");
    }
}

/// A template with an item besides its own.
fn with_item(location: &str, constraint: &str) -> CompiledTemplate {
    let item = format!(
        "<wsag:Item wsag:Name='i'><wsag:Location>{location}</wsag:Location>\
         <wsag:ItemConstraint>{constraint}</wsag:ItemConstraint></wsag:Item>"
    );
    let template = ADVANCE_RESERVATION.replace("<wsag:Constraint>", &format!("{item}<wsag:Constraint>"));
    CompiledTemplate::compile(&crate::support::template(&template))
}

/// An offer that is right, with something in its context besides.
fn with_extension(extension: &str) -> String {
    let extension = format!("<x:w xmlns:x='urn:x'>{extension}</x:w></wsag:Context>");
    text("o01-offer-sleep.xml").replace("</wsag:Context>", &extension)
}

#[test]
fn work_that_no_character_pays_for_is_counted() {
    let digits = "1".repeat(150_000);
    let numbers: String = (0..400)
        .map(|i| format!("<xs:enumeration value='{i}.5'/>"))
        .collect();
    let list = format!(
        "<xs:simpleType><xs:list><xs:simpleType><xs:restriction base='xs:decimal'>{numbers}</xs:restriction>\
         </xs:simpleType></xs:list></xs:simpleType>"
    );
    let strings = "<xs:simpleType><xs:restriction base='xs:string'/></xs:simpleType>";
    let named = format!(
        "<xs:simpleType><xs:union><xs:simpleType><xs:restriction base='xs:string'><xs:enumeration value='{digits}'/>\
         </xs:restriction></xs:simpleType>{strings}</xs:union></xs:simpleType>"
    );
    for (location, constraint, extension, is_too_long) in [
        // A long value is expected, and another member of the union is met: messages show little of the value.
        ("//x:e", named, "<x:e/>".repeat(985), false),
        // Values without a character.
        (
            "//x:e",
            "<xs:pattern value='(a?){498}b'/>".repeat(985),
            "<x:e/>".repeat(985),
            true,
        ),
        // A list of one item, which is long.
        (
            "//x:d",
            list,
            format!("{}{digits}{}", "<x:d>".repeat(25), "</x:d>".repeat(25)),
            true,
        ),
    ] {
        let location = format!("declare namespace x='urn:x'; {location}");
        let offer = with_extension(&extension);
        let document = Document::parse(offer.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let start = Instant::now();
        let template = with_item(&location, &constraint);
        assert_eq!(template.problems(), []);
        let found = template.check(&document);
        let took = start.elapsed();
        assert!(took < TIME_MAX, "{took:?} for {location}");
        let says = found
            .iter()
            .any(|violation| violation.message.contains("take too long"));
        assert_eq!(says, is_too_long, "{location}: {found:?}");
    }
}

#[test]
fn what_is_nothing_costs_nothing_however_often_a_pattern_repeats_it() {
    let constraint = format!("<xs:pattern value='({}a){{990}}'/>", "()".repeat(100_000));
    let start = Instant::now();
    for _ in 0..5 {
        assert_eq!(with_item("//wsag:Name", &constraint).problems(), []);
    }
    let took = start.elapsed();
    assert!(took < TIME_MAX, "{took:?}");
}

#[test]
fn declarations_that_fragments_inherit_do_not_multiply_a_document() {
    let offer = |length: usize, elements: usize| {
        let declarations: String = (0..10)
            .map(|i| format!(" xmlns:p{i}='{}'", "u".repeat(length)))
            .collect();
        let mentions: String = (0..10).map(|i| format!("p{i}:")).collect();
        let elements = format!("<p0:e>{mentions}</p0:e>").repeat(elements);
        text("o01-offer-sleep.xml")
            .replace(
                "<wsag:AgreementOffer",
                &format!("<wsag:AgreementOffer{declarations}"),
            )
            .replace("</wsag:Context>", &format!("{elements}</wsag:Context>"))
    };
    let refused = Document::parse(offer(20_000, 1).as_bytes()).map(|_| ());
    let words = refused.expect_err("the name is too long").to_string();
    assert!(words.contains("a namespace name of more than"), "{words}");
    let said = |offer: &str| {
        let document = Document::parse(offer.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        read(&document).map(|_| ())
    };
    assert!(said(&offer(250, 90)).is_ok(), "each may have its own");
    let wrong = said(&offer(250, 1_800)).expect_err("it would be twenty times as long");
    assert!(
        wrong
            .0
            .iter()
            .any(|violation| violation.message.contains("namespace declarations")),
        "{wrong}"
    );
}
