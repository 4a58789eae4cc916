//! Languages of others: time constraints that mean what ours do, and terms that are kept and not read.

#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

use crate::support::text;
use wsag::agreements::AgreementOffer;
use wsag::constraints::CompiledTemplate;
use wsag::languages::{TimeLanguage, TimeLanguages};
use wsag::templates::{ADVANCE_RESERVATION, Template};
use wsag::terms::{ServiceDescription, path_of_content};
use wsag::{Document, Message, ValuePlaces, Violation, ViolationKind, read, rules};

/// The namespace of the language of the tests, of which every name is another than ours.
const NAMESPACE: &str = "urn:example:when";

fn language() -> TimeLanguage {
    let name = str::to_owned;
    TimeLanguage {
        namespace: name(NAMESPACE),
        element: name("When"),
        start: name("From"),
        end: name("Until"),
        duration: name("For"),
    }
}

fn languages() -> TimeLanguages {
    std::iter::once(language()).collect()
}

/// A document with its time constraints in the language.
fn translated(document: &str) -> String {
    document
        .replace("arp:AllocationTimeConstraint", "w:When")
        .replace("arp:StartTime", "w:From")
        .replace("arp:EndTime", "w:Until")
        .replace("arp:Duration", "w:For")
        .replace(
            "xmlns:arp=\"http://www.ogf.org/graap/AR/2009/04/\"",
            &format!("xmlns:w=\"{NAMESPACE}\""),
        )
}

fn offer(text: &str, languages: &TimeLanguages) -> AgreementOffer {
    let document = Document::parse_in(text.as_bytes(), languages).unwrap();
    match read(&document).unwrap_or_else(|violations| panic!("{violations}")) {
        Message::AgreementOffer(offer) => *offer,
        other => panic!("no offer: {other:?}"),
    }
}

fn template(text: &str) -> Template {
    let languages = languages();
    let document = Document::parse_in(text.as_bytes(), &languages).unwrap();
    match read(&document).unwrap_or_else(|violations| panic!("{violations}")) {
        Message::Template(template) => *template,
        other => panic!("no template: {other:?}"),
    }
}

fn contents(offer: &AgreementOffer) -> Vec<&ServiceDescription> {
    offer
        .terms
        .descriptions()
        .map(|description| &description.content)
        .collect()
}

/// Everything that is wrong with an offer of a template.
fn wrong(text: &str, template: &Template) -> Vec<Violation> {
    let languages = languages();
    let document = Document::parse_in(text.as_bytes(), &languages).unwrap();
    read(&document).unwrap_or_else(|violations| panic!("{violations}"));
    let mut found = rules::check_rules(&document);
    found.extend(CompiledTemplate::compile(template).check(&document));
    found
}

#[test]
fn a_time_constraint_in_another_language_is_read_as_ours() {
    let ours = text("o01-offer-sleep.xml");
    let theirs = translated(&ours);
    let read_in_it = offer(&theirs, &languages());
    assert_eq!(contents(&read_in_it), contents(&offer(&ours, &languages())));
    let named = read_in_it.terms.descriptions().last().unwrap().language.clone();
    assert_eq!(named.as_deref(), Some(&language()));
    // A reader that does not know the language takes it for no time.
    let unknown = offer(&theirs, &TimeLanguages::default());
    let ServiceDescription::Other(other) = contents(&unknown)[1] else {
        panic!("{unknown:?}");
    };
    assert_eq!(
        (other.namespace.as_str(), other.local.as_str()),
        (NAMESPACE, "When")
    );
}

#[test]
fn what_is_wrong_with_a_time_is_told_by_the_names_of_its_language() {
    let theirs = translated(&text("o01-offer-sleep.xml"));
    let template = template(ADVANCE_RESERVATION);
    assert_eq!(wrong(&theirs, &template), []);
    let path = "/wsag:AgreementOffer/wsag:Terms/wsag:All/wsag:ServiceDescriptionTerm[2]/w:When";
    for (part, replacement, place) in [
        ("T20:00:00Z", "T07:00:00Z", "/w:Until"),
        ("T20:00:00Z", "T08:00:10Z", "/w:Until"),
        (">30<", ">31536001<", "/w:For"),
    ] {
        let found = wrong(&theirs.replace(part, replacement), &template);
        let place = format!("{path}{place}");
        assert!(
            found.iter().any(|found| found.path == place),
            "{place}: {found:?}"
        );
    }
    for (part, replacement) in [(">30<", ">soon<"), ("w:Until>", "w:Till>"), ("T08:00:00Z", "")] {
        let text = theirs.replace(part, replacement);
        let languages = languages();
        let document = Document::parse_in(text.as_bytes(), &languages).unwrap();
        let found = read(&document).unwrap_err().0;
        assert!(found[0].path.starts_with(path), "{found:?}");
    }
}

#[test]
fn a_template_may_name_a_time_in_either_language_and_holds_of_both() {
    let ours = text("o01-offer-sleep.xml").replace(">30<", ">31536001<");
    for text in [ADVANCE_RESERVATION.to_owned(), translated(ADVANCE_RESERVATION)] {
        let template = template(&text);
        let compiled = CompiledTemplate::compile(&template);
        assert_eq!((compiled.problems(), compiled.unbound()), (&[][..], &[][..]));
        for offer in [&ours, &translated(&ours)] {
            let mut found = wrong(offer, &template);
            found.retain(|found| found.kind == ViolationKind::Constraint);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].message.contains("at most 31536000"), "{found:?}");
        }
    }
    // The particles of a template that has the names of its language are about these.
    let named = ADVANCE_RESERVATION
        .replace("name=\"StartTime\"", "name=\"From\"")
        .replace("name=\"EndTime\"", "name=\"Until\"")
        .replace("name=\"Duration\"", "name=\"For\"");
    let template = template(&translated(&named));
    assert_eq!(wrong(&translated(&text("o01-offer-sleep.xml")), &template), []);
    assert_eq!(wrong(&text("o01-offer-sleep.xml"), &template), []);
}

/// An offer with this term besides, which no language is known for.
fn with_term(content: &str) -> String {
    text("o01-offer-sleep.xml").replace(
        "<wsag:GuaranteeTerm",
        &format!(
            "<wsag:ServiceDescriptionTerm wsag:Name=\"OTHER\" wsag:ServiceName=\"COMPUTE\">{content}\
             </wsag:ServiceDescriptionTerm><wsag:GuaranteeTerm"
        ),
    )
}

/// The paths at which an offer does not meet a template with one item.
fn unmet(offer: &str, location: &str, constraint: &str) -> Vec<String> {
    let (start, _) = ADVANCE_RESERVATION
        .split_once("<wsag:CreationConstraints>")
        .unwrap();
    let item = format!(
        "{start}<wsag:CreationConstraints><wsag:Item wsag:Name=\"i\"><wsag:Location>declare namespace c='urn:example:colours'; \
         declare namespace w='{NAMESPACE}'; {location}</wsag:Location><wsag:ItemConstraint>{constraint}</wsag:ItemConstraint>\
         </wsag:Item></wsag:CreationConstraints></wsag:Template>"
    );
    let compiled = CompiledTemplate::compile(&template(&item));
    assert_eq!(compiled.problems(), &[][..], "{location}");
    let languages = languages();
    let document = Document::parse_in(offer.as_bytes(), &languages).unwrap();
    read(&document).unwrap_or_else(|violations| panic!("{violations}"));
    let paths = compiled.check(&document).into_iter().map(|check| check.path);
    paths.collect()
}

#[test]
fn only_a_location_that_names_an_unknown_language_looks_into_its_terms() {
    let fake = "<jsdl:CandidateHosts xmlns:jsdl='http://schemas.ggf.org/jsdl/2005/11/jsdl'><jsdl:HostName>a</jsdl:HostName>\
                </jsdl:CandidateHosts>";
    let offer = with_term(&format!(
        "<c:Colours xmlns:c='urn:example:colours'>{fake}<c:Shade>dark</c:Shade></c:Colours>"
    ));
    let host = "<xs:sequence><xs:element ref='jsdl:HostName'/></xs:sequence>";
    let light = "<xs:enumeration value='light'/>";
    // No fake meets what the template demands, or is held to what it demands of others.
    assert_eq!(
        unmet(&offer, "//jsdl:CandidateHosts", host),
        ["/wsag:AgreementOffer"]
    );
    assert_eq!(unmet(&offer, "//jsdl:HostName", light), [""; 0]);
    // What is about the term is.
    for location in [
        "//c:Colours/c:Shade",
        "//c:Shade",
        "//c:Colours/jsdl:CandidateHosts",
    ] {
        assert_eq!(unmet(&offer, location, light).len(), 1, "{location}");
    }
}

#[test]
fn a_location_selects_by_the_name_that_is_written_and_by_what_it_means() {
    let colours = format!("<w:Colours xmlns:w='{NAMESPACE}' For='9' w:From='9'><w:For>9</w:For></w:Colours>");
    let offer = with_term(&colours);
    let none = "<xs:maxInclusive value='8'/>";
    for (location, place) in [
        ("//w:Colours/w:For", "/w:Colours/w:For"),
        ("//w:Colours/@w:From", "/w:Colours/@From"),
        ("//w:Colours[@w:From='9']/@For", "/w:Colours/@For"),
    ] {
        let found = unmet(&offer, location, none);
        assert!(
            found.len() == 1 && found[0].ends_with(place),
            "{location}: {found:?}"
        );
    }
    let when = "/arp:AllocationTimeConstraint";
    let found = unmet(
        &offer,
        "//wsag:ServiceDescriptionTerm/w:*",
        "<xs:length value='2'/>",
    );
    assert!(
        found.len() == 2 && found[0].ends_with(when) && found[1].ends_with("/w:Colours"),
        "{found:?}"
    );
}

#[test]
fn what_is_kept_elsewhere_is_no_time_and_is_offered_again_as_it_was() {
    let kept = format!("<w:When xmlns:w=\"{NAMESPACE}\"><w:From>soon</w:From></w:When>");
    let sent = text("o01-offer-sleep.xml").replace("</wsag:Context>", &format!("{kept}</wsag:Context>"));
    let languages = languages();
    let (made, places) = (
        offer(&sent, &languages).make(&languages),
        ValuePlaces::document(""),
    );
    let made = Document::made(&made, &places).unwrap();
    let sent = Document::parse_in(sent.as_bytes(), &languages).unwrap();
    assert_eq!(wsag::compare::first_difference(&sent, &made), None);
}

#[test]
fn an_offer_that_is_made_of_values_knows_its_language() {
    let properties = format!(
        "<wsag:ServiceProperties wsag:Name=\"P\" wsag:ServiceName=\"COMPUTE\"><wsag:VariableSet><wsag:Variable \
         wsag:Name=\"begun\"><wsag:Location>declare namespace w='{NAMESPACE}'; //wsag:ServiceTermState/w:From</wsag:Location>\
         </wsag:Variable></wsag:VariableSet></wsag:ServiceProperties><wsag:GuaranteeTerm"
    );
    let sent = translated(&text("o01-offer-sleep.xml"))
        .replace("<wsag:GuaranteeTerm", &properties)
        .replace("completed le deadline", "begun le deadline");
    // Also one that says when in our words.
    let ours = text("o01-offer-sleep.xml")
        .replace("<wsag:GuaranteeTerm", &properties)
        .replace("completed le deadline", "begun le deadline");
    for sent in [sent, ours] {
        let (made, places) = (
            offer(&sent, &languages()).make(&languages()),
            ValuePlaces::document(""),
        );
        assert_eq!(rules::check_rules(&Document::made(&made, &places).unwrap()), []);
    }
}

#[test]
fn a_path_is_that_of_a_document_which_does_not_know_the_language() {
    // A wrong sibling, of the name that ours have.
    let sent = translated(&text("o01-offer-sleep.xml"))
        .replace("<w:Until>", "<arp:EndTime xmlns:arp=\"http://www.ogf.org/graap/AR/2009/04/\">2026-01-10T20:00:00Z</arp:EndTime><w:Until>");
    let languages = languages();
    let document = Document::parse_in(sent.as_bytes(), &languages).unwrap();
    let found = read(&document).unwrap_err().0;
    assert!(found[0].path.ends_with("/w:When/w:Until"), "{found:?}");
    // What stands in a term in an unknown language is not counted.
    let jsdl = "xmlns:jsdl=\"http://schemas.ggf.org/jsdl/2005/11/jsdl\"";
    let content =
        format!("<c:Colours xmlns:c=\"urn:example:colours\"><jsdl:JobDefinition {jsdl}/></c:Colours>");
    let sent = with_term(&content);
    let document = Document::parse(sent.as_bytes()).unwrap();
    let path = |nth| document.path_to(wsag::ns::JSDL, "JobDefinition", nth);
    assert!(path(0).ends_with("[1]/jsdl:JobDefinition"), "{}", path(0));
    assert_eq!(path(1), "/wsag:AgreementOffer");
}

#[test]
fn an_offer_is_written_in_the_language_in_which_it_was_read() {
    let theirs = offer(&translated(&text("o01-offer-sleep.xml")), &languages());
    let written = theirs.to_xml();
    assert!(
        written.contains(&format!("<When xmlns=\"{NAMESPACE}\"><From>")),
        "{written}"
    );
    assert_eq!(offer(&written, &languages()), theirs);
    // Without a text it is a tree with the same meaning and the same paths.
    let (made, places) = (
        theirs.make(&TimeLanguages::default()),
        ValuePlaces::document("/wsag:AgreementOffer"),
    );
    let late = AgreementOffer {
        terms: offer(&written.replace("T20:00:00Z", "T07:00:00Z"), &languages()).terms,
        ..theirs.clone()
    };
    assert_eq!(rules::check_rules(&Document::made(&made, &places).unwrap()), []);
    let made = late.make(&languages());
    let found = rules::check_rules(&Document::made(&made, &places).unwrap());
    assert!(found[0].path.ends_with("/When/Until"), "{found:?}");
}

#[test]
fn names_that_would_be_no_language_are_refused() {
    assert_eq!(language().check(), Ok(()));
    let language_with = |change: fn(&mut TimeLanguage)| {
        let mut language = language();
        change(&mut language);
        language.check().unwrap_err()
    };
    for (said, wrong) in [
        ("namespace:", language_with(|language| language.namespace.clear())),
        (
            "namespace:",
            language_with(|language| wsag::ns::ARP.clone_into(&mut language.namespace)),
        ),
        (
            "element:",
            language_with(|language| "w:When".clone_into(&mut language.element)),
        ),
        ("end:", language_with(|language| language.end.clear())),
        (
            "start:",
            language_with(|language| "For".clone_into(&mut language.start)),
        ),
    ] {
        assert!(wrong.starts_with(said), "{wrong}");
    }
}

#[test]
fn a_term_in_an_unknown_language_is_kept_word_for_word_and_not_looked_into() {
    // What stands in it would be wrong in an offer.
    let colours = "<c:Colours xmlns:c=\"urn:example:colours\"  shade = 'light'><!-- as it is --><wsag:ServiceDescriptionTerm \
         xmlns:wsag=\"http://schemas.ggf.org/graap/2007/03/ws-agreement\"><c:Red/></wsag:ServiceDescriptionTerm><jsdl:TotalResourceCount \
         xmlns:jsdl=\"http://schemas.ggf.org/jsdl/2005/11/jsdl\"><jsdl:Exact>none</jsdl:Exact></jsdl:TotalResourceCount>\
         </c:Colours>";
    let text = text("o01-offer-sleep.xml").replace(
        "<wsag:GuaranteeTerm",
        &format!(
            "<wsag:ServiceDescriptionTerm wsag:Name=\"COLOURS\" wsag:ServiceName=\"COMPUTE\">{colours}\
             </wsag:ServiceDescriptionTerm><wsag:GuaranteeTerm"
        ),
    );
    let read = offer(&text, &TimeLanguages::default());
    let ServiceDescription::Other(other) = contents(&read)[2] else {
        panic!("{read:?}");
    };
    assert_eq!(other.source.as_str(), colours);
    assert!(read.to_xml().contains(colours));
    let document = Document::parse(text.as_bytes()).unwrap();
    assert_eq!(rules::check_rules(&document), []);
    assert!(path_of_content(&document, 2).ends_with("/wsag:ServiceDescriptionTerm[3]/c:Colours"));
    // What is in a namespace of the protocol, or in none, is no other language.
    for wrong in [
        "<wsag:Colours/>",
        "<Colours/>",
        "<bsp:Colours xmlns:bsp=\"urn:bespeak:terms:1\"/>",
    ] {
        let text = text.replace(colours, wrong);
        let document = Document::parse(text.as_bytes()).unwrap();
        let found = wsag::read(&document).unwrap_err().0;
        assert_eq!(
            (found.len(), found[0].kind),
            (1, ViolationKind::UnknownTerm),
            "{found:?}"
        );
        assert!(
            found[0].message.contains("arp:AllocationTimeConstraint"),
            "{found:?}"
        );
    }
}
