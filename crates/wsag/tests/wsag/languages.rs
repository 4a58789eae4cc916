//! Languages of others: WSAG4J's time constraints, which mean what ours do, and terms that are kept and not read.

#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

use crate::support::text;
use wsag::agreements::AgreementOffer;
use wsag::constraints::CompiledTemplate;
use wsag::languages::WSAG4J;
use wsag::templates::{ADVANCE_RESERVATION, Template};
use wsag::terms::{ServiceDescription, path_of_term_content};
use wsag::{Document, Message, ValuePlaces, Violation, ViolationKind, read, rules};

/// A document with its time constraints in WSAG4J's language.
fn translated(document: &str) -> String {
    document
        .replace("arp:AllocationTimeConstraint", "w:TimeConstraint")
        .replace("arp:", "w:")
        .replace(
            "xmlns:arp=\"http://www.ogf.org/graap/AR/2009/04/\"",
            &format!("xmlns:w=\"{WSAG4J}\""),
        )
}

fn offer(text: &str) -> AgreementOffer {
    let document = Document::parse(text.as_bytes()).unwrap();
    match read(&document).unwrap_or_else(|violations| panic!("{violations}")) {
        Message::AgreementOffer(offer) => *offer,
        other => panic!("no offer: {other:?}"),
    }
}

fn template(text: &str) -> Template {
    let document = Document::parse(text.as_bytes()).unwrap();
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
    let document = Document::parse(text.as_bytes()).unwrap();
    read(&document).unwrap_or_else(|violations| panic!("{violations}"));
    let mut found = rules::check_rules(&document);
    found.extend(CompiledTemplate::compile(template).check(&document));
    found
}

#[test]
fn a_time_constraint_in_another_language_is_read_as_ours() {
    let ours = text("o01-offer-sleep.xml");
    let theirs = translated(&ours);
    let read_in_it = offer(&theirs);
    assert_eq!(contents(&read_in_it), contents(&offer(&ours)));
    assert!(read_in_it.terms.descriptions().last().unwrap().is_wsag4j);
    // An element of a language that is not known is no time.
    let unknown = offer(&theirs.replace(WSAG4J, "urn:example:when"));
    let ServiceDescription::Other(other) = contents(&unknown)[1] else {
        panic!("{unknown:?}");
    };
    assert_eq!(
        (other.namespace.as_str(), other.local.as_str()),
        ("urn:example:when", "TimeConstraint")
    );
}

#[test]
fn what_is_wrong_with_a_time_is_told_by_the_names_of_its_language() {
    let theirs = translated(&text("o01-offer-sleep.xml"));
    let template = template(ADVANCE_RESERVATION);
    assert_eq!(wrong(&theirs, &template), []);
    let path = "/wsag:AgreementOffer/wsag:Terms/wsag:All/wsag:ServiceDescriptionTerm[2]/w:TimeConstraint";
    for (part, replacement, place) in [
        ("T20:00:00Z", "T07:00:00Z", "/w:EndTime"),
        ("T20:00:00Z", "T08:00:10Z", "/w:EndTime"),
        (">30<", ">31536001<", "/w:Duration"),
    ] {
        let found = wrong(&theirs.replace(part, replacement), &template);
        let place = format!("{path}{place}");
        assert!(
            found.iter().any(|found| found.path == place),
            "{place}: {found:?}"
        );
    }
    for (part, replacement) in [(">30<", ">soon<"), ("w:EndTime>", "w:Till>"), ("T08:00:00Z", "")] {
        let text = theirs.replace(part, replacement);
        let document = Document::parse(text.as_bytes()).unwrap();
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
    let template = template(&translated(ADVANCE_RESERVATION));
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
         declare namespace w='{WSAG4J}'; {location}</wsag:Location><wsag:ItemConstraint>{constraint}</wsag:ItemConstraint>\
         </wsag:Item></wsag:CreationConstraints></wsag:Template>"
    );
    let compiled = CompiledTemplate::compile(&template(&item));
    assert_eq!(compiled.problems(), &[][..], "{location}");
    let document = Document::parse(offer.as_bytes()).unwrap();
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
    let colours = format!(
        "<w:Colours xmlns:w='{WSAG4J}' Duration='9' w:StartTime='9'><w:Duration>9</w:Duration></w:Colours>"
    );
    let offer = with_term(&colours);
    let none = "<xs:maxInclusive value='8'/>";
    for (location, place) in [
        ("//w:Colours/w:Duration", "/w:Colours/w:Duration"),
        ("//w:Colours/@w:StartTime", "/w:Colours/@StartTime"),
        ("//w:Colours[@w:StartTime='9']/@Duration", "/w:Colours/@Duration"),
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
    let kept =
        format!("<w:TimeConstraint xmlns:w=\"{WSAG4J}\"><w:StartTime>soon</w:StartTime></w:TimeConstraint>");
    let sent = text("o01-offer-sleep.xml").replace("</wsag:Context>", &format!("{kept}</wsag:Context>"));
    let (made, places) = (offer(&sent).make(), ValuePlaces::document(""));
    let made = Document::made(&made, &places).unwrap();
    let sent = Document::parse(sent.as_bytes()).unwrap();
    assert_eq!(wsag::compare::first_difference(&sent, &made), None);
}

#[test]
fn an_offer_that_is_made_of_values_knows_its_language() {
    let properties = format!(
        "<wsag:ServiceProperties wsag:Name=\"P\" wsag:ServiceName=\"COMPUTE\"><wsag:VariableSet><wsag:Variable \
         wsag:Name=\"begun\"><wsag:Location>declare namespace w='{WSAG4J}'; //wsag:ServiceTermState/w:StartTime</wsag:Location>\
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
        let (made, places) = (offer(&sent).make(), ValuePlaces::document(""));
        assert_eq!(rules::check_rules(&Document::made(&made, &places).unwrap()), []);
    }
}

#[test]
fn a_path_has_the_names_that_are_written() {
    // A wrong sibling, of the name that ours have.
    let sent = translated(&text("o01-offer-sleep.xml"))
        .replace("<w:EndTime>", "<arp:EndTime xmlns:arp=\"http://www.ogf.org/graap/AR/2009/04/\">2026-01-10T20:00:00Z</arp:EndTime><w:EndTime>");
    let document = Document::parse(sent.as_bytes()).unwrap();
    let found = read(&document).unwrap_err().0;
    assert!(
        found[0].path.ends_with("/w:TimeConstraint/w:EndTime"),
        "{found:?}"
    );
    // What stands in a term in an unknown language is not counted.
    let jsdl = "xmlns:jsdl=\"http://schemas.ggf.org/jsdl/2005/11/jsdl\"";
    let content =
        format!("<c:Colours xmlns:c=\"urn:example:colours\"><jsdl:JobDefinition {jsdl}/></c:Colours>");
    let sent = with_term(&content);
    let document = Document::parse(sent.as_bytes()).unwrap();
    let path = |nth| document.path_outside_unknown_terms(wsag::ns::JSDL, "JobDefinition", nth);
    assert!(path(0).ends_with("[1]/jsdl:JobDefinition"), "{}", path(0));
    assert_eq!(path(1), "/wsag:AgreementOffer");
}

#[test]
fn an_offer_is_written_in_the_language_in_which_it_was_read() {
    let theirs = offer(&translated(&text("o01-offer-sleep.xml")));
    let written = theirs.to_xml();
    assert!(
        written.contains(&format!("<TimeConstraint xmlns=\"{WSAG4J}\"><StartTime>")),
        "{written}"
    );
    assert_eq!(offer(&written), theirs);
    // Without a text it is a tree with the same meaning and the same paths.
    let (made, places) = (theirs.make(), ValuePlaces::document("/wsag:AgreementOffer"));
    let late = AgreementOffer {
        terms: offer(&written.replace("T20:00:00Z", "T07:00:00Z")).terms,
        ..theirs.clone()
    };
    assert_eq!(rules::check_rules(&Document::made(&made, &places).unwrap()), []);
    let made = late.make();
    let found = rules::check_rules(&Document::made(&made, &places).unwrap());
    assert!(found[0].path.ends_with("/TimeConstraint/EndTime"), "{found:?}");
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
    let read = offer(&text);
    let ServiceDescription::Other(other) = contents(&read)[2] else {
        panic!("{read:?}");
    };
    assert_eq!(other.source.as_str(), colours);
    assert!(read.to_xml().contains(colours));
    let document = Document::parse(text.as_bytes()).unwrap();
    assert_eq!(rules::check_rules(&document), []);
    assert!(path_of_term_content(&document, 2).ends_with("/wsag:ServiceDescriptionTerm[3]/c:Colours"));
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
