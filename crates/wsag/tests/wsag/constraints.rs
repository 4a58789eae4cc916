//! Creation constraints: which offers meet which items.

#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

use crate::support::constrained_templates::{check, name_meets, with};
use crate::support::items::item;
use crate::support::text;
use wsag::constraints::{CompiledConstraints, CompiledTemplate};
use wsag::negotiations::Requirement;
use wsag::{Document, Message, Violation, ViolationKind};

#[test]
fn every_facet_tells_what_meets_it() {
    for (facets, right, wrong) in [
        (
            "<xs:minInclusive value='2'/>",
            &["2", "2.0", "+3", "10"][..],
            &["1", "1.99", "x", ""][..],
        ),
        ("<xs:minExclusive value='2'/>", &["2.01"], &["2"]),
        ("<xs:maxInclusive value='-2'/>", &["-2", "-3"], &["-1.5"]),
        (
            "<xs:maxExclusive value='1e3'/>",
            &["999", "-INF"],
            &["1e3", "NaN"],
        ),
        (
            "<xs:minInclusive value='2026-01-01T00:00:00Z'/>",
            &["2026-01-01T01:00:00+01:00"],
            &["2025-12-31T23:59:59Z", "3"],
        ),
        (
            "<xs:maxInclusive value='PT1H'/>",
            &["PT60M", "PT1S"],
            &["P1D", "PT3601S", "3600"],
        ),
        ("<xs:maxInclusive value='P1M'/>", &["P27D"], &["P28D", "P32D"]),
        (
            "<xs:enumeration value='8'/><xs:enumeration value='b'/>",
            &["8", "8.0", "b", " b "],
            &["9", "c"],
        ),
        (
            "<xs:pattern value='[a-c]+'/><xs:pattern value='x'/>",
            &["abc", "x"],
            &["abx", ""],
        ),
        ("<xs:length value='2'/>", &["ää"], &["a", "abc"]),
        (
            "<xs:minLength value='2'/><xs:maxLength value='3'/>",
            &["ab", "abc"],
            &["a", "abcd"],
        ),
        (
            "<xs:totalDigits value='3'/>",
            &["100", "0.25", "00123", "1.50"],
            &["1000", "1.234", "x"],
        ),
        (
            "<xs:fractionDigits value='2'/>",
            &["1.25", "1.250", "7"],
            &["1.255"],
        ),
        (
            "<xs:whiteSpace value='collapse'/><xs:enumeration value='a b'/>",
            &[" a \n b "],
            &["ab"],
        ),
    ] {
        for value in right {
            assert!(name_meets(facets, value), "{value:?} meets {facets}");
        }
        for value in wrong {
            assert!(!name_meets(facets, value), "{value:?} does not meet {facets}");
        }
    }
}

#[test]
fn local_simple_types_hold_with_their_base() {
    let restriction = |base: &str, facets: &str| {
        format!("<xs:simpleType><xs:restriction base='xs:{base}'>{facets}</xs:restriction></xs:simpleType>")
    };
    assert!(name_meets(
        &restriction("int", "<xs:minInclusive value='1'/>"),
        "2147483647"
    ));
    assert!(!name_meets(
        &restriction("int", "<xs:minInclusive value='1'/>"),
        "2147483648"
    ));
    assert!(!name_meets(&restriction("int", ""), "1.0"));
    assert!(name_meets(&restriction("boolean", ""), "true"));
    assert!(!name_meets(&restriction("boolean", ""), "yes"));
    assert!(name_meets(&restriction("NCName", ""), "a-1"));
    assert!(!name_meets(&restriction("NCName", ""), "a:1"));
    assert!(!name_meets(
        &restriction("string", "<xs:enumeration value='a'/>"),
        " a"
    ));
    assert!(name_meets(
        &restriction("token", "<xs:enumeration value='a'/>"),
        " a"
    ));
    let nested = format!(
        "<xs:simpleType><xs:restriction>{}<xs:maxInclusive value='9'/></xs:restriction></xs:simpleType>",
        restriction("decimal", "<xs:minInclusive value='1'/>")
    );
    assert!(name_meets(&nested, "9.0") && !name_meets(&nested, "0") && !name_meets(&nested, "10"));
    let list = "<xs:simpleType><xs:list itemType='xs:int'/></xs:simpleType><xs:length value='2'/>";
    assert!(name_meets(list, "1 2") && !name_meets(list, "1") && !name_meets(list, "1 x"));
    let union = "<xs:simpleType><xs:union memberTypes='xs:int xs:boolean'/></xs:simpleType>";
    assert!(name_meets(union, "7") && name_meets(union, "false") && !name_meets(union, "perhaps"));
}

#[test]
fn particles_count_and_order_children() {
    let window = |inner: &str| {
        let offer = text("o01-offer-sleep.xml");
        let start = offer.find("<arp:StartTime>").unwrap();
        let end = offer.find("</arp:AllocationTimeConstraint>").unwrap();
        format!("{}{inner}{}", &offer[..start], &offer[end..])
    };
    let (s, e, d) = (
        "<arp:StartTime>2026-01-10T08:00:00Z</arp:StartTime>",
        "<arp:EndTime>2026-01-10T20:00:00Z</arp:EndTime>",
        "<arp:Duration>30</arp:Duration>",
    );
    let el = |name: &str, more: &str| format!("<xs:element name='{name}' {more}/>");
    let (sx, ex, dx) = (el("StartTime", ""), el("EndTime", ""), el("Duration", ""));
    let optional = el("Duration", "minOccurs='0'");
    for (particle, right, wrong) in [
        (format!("<xs:sequence>{sx}{ex}{optional}</xs:sequence>"), vec![vec![s, e], vec![s, e, d]], vec![vec![e, s], vec![s], vec![s, e, d, d]]),
        (format!("<xs:all>{sx}{ex}{optional}</xs:all>"), vec![vec![e, s], vec![d, s, e]], vec![vec![s], vec![s, e, e]]),
        (format!("<xs:choice>{sx}{ex}</xs:choice>"), vec![vec![s], vec![e]], vec![vec![s, e], vec![], vec![d]]),
        (
            format!("<xs:choice minOccurs='0' maxOccurs='unbounded'>{sx}{dx}</xs:choice>"),
            vec![vec![], vec![s, d, d, s]],
            vec![vec![s, e]],
        ),
        (
            format!("<xs:sequence maxOccurs='2'>{sx}<xs:choice>{ex}{dx}</xs:choice></xs:sequence>"),
            vec![vec![s, e], vec![s, e, s, d]],
            vec![vec![s, e, s, d, s, e], vec![s, s]],
        ),
        (format!("<xs:group><xs:sequence>{sx}</xs:sequence></xs:group>"), vec![vec![s]], vec![vec![e]]),
        ("<xs:sequence><xs:any maxOccurs='2'/></xs:sequence>".to_owned(), vec![vec![s], vec![d, e]], vec![vec![], vec![s, e, d]]),
        ("<xs:sequence><xs:element name='arp:StartTime'/></xs:sequence>".to_owned(), vec![vec![s]], vec![vec![e]]),
        ("<xs:sequence><xs:element name='jsdl:StartTime'/></xs:sequence>".to_owned(), vec![], vec![vec![s]]),
        (
            "<xs:sequence><xs:element name='Duration'><xs:simpleType><xs:restriction base='xs:int'><xs:maxInclusive \
             value='29'/></xs:restriction></xs:simpleType></xs:element></xs:sequence>".to_owned(),
            vec![vec!["<arp:Duration>29</arp:Duration>"]],
            vec![vec![d]],
        ),
    ] {
        let template = item("//arp:AllocationTimeConstraint", &particle);
        assert!(template.problems().is_empty(), "{particle}: {:?}", template.problems());
        for children in right {
            let found = check(&template, &window(&children.concat()));
            assert_eq!(found, [], "{children:?} meets {particle}");
        }
        for children in wrong {
            let found = check(&template, &window(&children.concat()));
            assert!(!found.is_empty(), "{children:?} does not meet {particle}");
            assert!(found[0].path.contains("/arp:AllocationTimeConstraint"), "{found:?}");
        }
    }
}

#[test]
fn content_of_complex_types_is_checked_below() {
    let particle = "<xs:sequence><xs:element name='JobDescription'><xs:complexType><xs:sequence><xs:element \
                    name='Application'/><xs:element name='Resources' minOccurs='0'/></xs:sequence></xs:complexType>\
                    </xs:element></xs:sequence>";
    let template = item("//jsdl:JobDefinition", particle);
    let offer = text("o01-offer-sleep.xml");
    assert_eq!(check(&template, &offer), []);
    let start = offer.find("<jsdl:Application>").unwrap();
    let end = offer.find("</jsdl:Application>").unwrap() + "</jsdl:Application>".len();
    let found = check(&template, &format!("{}{}", &offer[..start], &offer[end..]));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].path.ends_with("/jsdl:JobDescription/jsdl:Resources"),
        "{found:?}"
    );
}

#[test]
fn an_item_that_selects_nothing_is_met_unless_it_demands_children() {
    let offer = text("o01-offer-sleep.xml");
    assert_eq!(
        check(
            &item("//jsdl:TotalDiskSpace/jsdl:Exact", "<xs:minInclusive value='1'/>"),
            &offer
        ),
        []
    );
    let optional = "<xs:sequence><xs:element name='Exact' minOccurs='0'/></xs:sequence>";
    assert_eq!(check(&item("//jsdl:TotalDiskSpace", optional), &offer), []);
    let found = check(
        &item(
            "//jsdl:TotalDiskSpace",
            "<xs:sequence><xs:element name='Exact'/></xs:sequence>",
        ),
        &offer,
    );
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].path.as_str(), found[0].kind),
        ("/wsag:AgreementOffer", ViolationKind::Constraint)
    );
    assert!(found[0].message.contains("//jsdl:TotalDiskSpace"), "{found:?}");
}

#[test]
fn both_dialects_of_locations_select_the_same() {
    let offer = text("o01-offer-sleep.xml");
    let wrapped = format!(
        "<wsag:CreateAgreementInput xmlns:wsag=\"{}\">{}</wsag:CreateAgreementInput>",
        wsag::ns::WSAG,
        &offer[offer.find("<wsag:AgreementOffer").unwrap()..]
    );
    for location in [
        "//jsdl:TotalResourceCount/jsdl:Exact",
        "/wsag:AgreementOffer/wsag:Terms/wsag:All/wsag:ServiceDescriptionTerm[1]//jsdl:Exact",
        "declare namespace w='http://schemas.ggf.org/graap/2007/03/ws-agreement';declare namespace \
         j = \"http://schemas.ggf.org/jsdl/2005/11/jsdl\"; $this/w:AgreementOffer/w:Terms//j:Exact",
        "$this//wsag:ServiceDescriptionTerm[@wsag:Name='JOB']//jsdl:Exact",
        "//*[local-name() = 'Exact' and namespace-uri() = 'http://schemas.ggf.org/jsdl/2005/11/jsdl']",
        "/descendant::jsdl:TotalResourceCount[ not(@wsag:Name) and (jsdl:Range or jsdl:Exact!='0') ]/child::*[last()]",
        "//jsdl:Exact/text()",
    ] {
        let template = item(location, "<xs:minInclusive value='2'/>");
        assert!(
            template.problems().is_empty(),
            "{location}: {:?}",
            template.problems()
        );
        for (offer, base) in [(&offer, ""), (&wrapped, "/wsag:CreateAgreementInput")] {
            let found = check(&template, offer);
            assert_eq!(found.len(), 1, "{location}: {found:?}");
            let path = "/wsag:AgreementOffer/wsag:Terms/wsag:All/wsag:ServiceDescriptionTerm[1]/jsdl:JobDefinition\
                        /jsdl:JobDescription/jsdl:Resources/jsdl:TotalResourceCount/jsdl:Exact";
            assert_eq!(found[0].path, format!("{base}{path}"), "{location}");
        }
    }
}

#[test]
fn what_cannot_be_evaluated_refuses_every_offer_with_the_reason() {
    let facet = "<xs:minInclusive value='1'/>";
    for (template, said) in [
        (
            item("//unknown:x", facet),
            "the prefix unknown of the Location is not declared",
        ),
        (item("$other/x", facet), "the variable $other is not known"),
        (item("//a[", facet), "is expected where it goes on with"),
        (
            item("//*[count(//*) > 0]", facet),
            "where it goes on with \"count(//*) > 0]\"; a Location may only have",
        ),
        (
            item("declare default element namespace 'u'; //a", facet),
            "a prolog may only have",
        ),
        (item("count(//a)", facet), "/ or // is expected"),
        (
            item("//jsdl:Exact", "<xs:minInclusive value='abc'/>"),
            "no number, dateTime or duration",
        ),
        (
            item("//jsdl:Exact", "<xs:pattern value='['/>"),
            "the pattern \"[\" cannot be evaluated",
        ),
        (item("//jsdl:Exact", "<xs:assertion test='1'/>"), "xs:assertion"),
        (
            item("//jsdl:Exact", "<xs:group ref='g'/>"),
            "a group that is defined elsewhere",
        ),
        (
            item(
                "//jsdl:Exact",
                "<xs:sequence><xs:element name='a' type='t'/></xs:sequence>",
            ),
            "the type t is not supported",
        ),
        (
            item(
                "//jsdl:Exact",
                "<xs:all><xs:element name='a' maxOccurs='2'/></xs:all>",
            ),
            "xs:all may only",
        ),
        (
            with("<wsag:Constraint>nodes + 1</wsag:Constraint>"),
            "is not understood",
        ),
        (
            with("<wsag:Constraint>nodez le 3</wsag:Constraint>"),
            "the variable nodez is not known; known are ready",
        ),
        (
            with(
                "<wsag:Constraint xmlns:bsp='urn:bespeak:terms:1' bsp:dialect='urn:x'>nodes le 3</wsag:Constraint>",
            ),
            "the dialect \"urn:x\" is not known",
        ),
    ] {
        assert_eq!(template.problems().len(), 1, "{said}");
        let found = check(&template, &text("o01-offer-sleep.xml"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].kind, ViolationKind::NotEvaluable);
        assert!(found[0].message.contains(said), "{said}: {found:?}");
    }
}

#[test]
fn constraints_compare_what_the_offer_says() {
    let offer = text("o01-offer-sleep.xml");
    for (constraint, met) in [
        ("duration le PT30S and nodes eq 1", true),
        ("duration lt PT30S", false),
        ("nodes gt 1 or ready ge 2026-01-10T08:00:00Z", true),
        ("deadline le 2026-01-10T19:00:00Z", false),
    ] {
        let template = with(&format!("<wsag:Constraint>{constraint}</wsag:Constraint>"));
        assert_eq!(template.problems(), []);
        assert_eq!(check(&template, &offer).is_empty(), met, "{constraint}");
    }
}

#[test]
fn constraints_hold_of_the_terms_alone_and_of_every_way_to_read_them() {
    let template = with("<wsag:Constraint>nodes le 1 and duration le PT30S</wsag:Constraint>");
    let offer = text("o01-offer-sleep.xml");
    let is_met = |offer: &str| check(&template, offer).is_empty();
    let ways = |first: &str, second: &str| {
        let start = offer.find("<wsag:ServiceDescriptionTerm").unwrap();
        let end = offer.rfind("</wsag:All>").unwrap();
        let terms = &offer[start..end];
        format!(
            "{}<wsag:ExactlyOne><wsag:All>{}</wsag:All><wsag:All>{}</wsag:All></wsag:ExactlyOne>{}",
            &offer[..start],
            terms.replace(">30<", first),
            terms.replace(">30<", second),
            &offer[end..]
        )
    };
    assert!(offer.contains(">30<") && is_met(&offer) && is_met(&ways(">30<", ">20<")));
    assert!(!is_met(&ways(">30<", ">31<")), "the second may be taken");
    assert!(!is_met(&ways(">31<", ">30<")));
    // What an extension says is no term, and hides none.
    let arp = wsag::ns::ARP;
    let other = |seconds: u32, offer: &str| {
        let extension = format!("<Duration xmlns='{arp}'>{seconds}</Duration></wsag:Context>");
        offer.replace("</wsag:Context>", &extension)
    };
    assert!(is_met(&other(31, &offer)));
    assert!(!is_met(&other(1, &offer.replace(">30<", ">31<"))));
}

#[test]
fn what_is_said_of_several_terms_is_compared_within_one_way_to_read_them() {
    // No way breaks it, though the size of one with the duration of the other would.
    let template = with("<wsag:Constraint>nodes le 1 or duration le PT10S</wsag:Constraint>");
    let offer = text("o01-offer-sleep.xml");
    let start = offer.find("<wsag:ServiceDescriptionTerm").unwrap();
    let end = offer.rfind("</wsag:All>").unwrap();
    let (small, large) = (
        offer[start..end].to_owned(),
        offer[start..end]
            .replace(">30<", ">10<")
            .replace("<jsdl:Exact>1<", "<jsdl:Exact>2<"),
    );
    let both = format!(
        "{}<wsag:ExactlyOne><wsag:All>{small}</wsag:All><wsag:All>{large}</wsag:All></wsag:ExactlyOne>{}",
        &offer[..start],
        &offer[end..]
    );
    assert!(both.contains(">2<") && both.contains(">10<"), "{both}");
    assert_eq!(check(&template, &both), []);
}

/// The faults of each way to read an offer.
fn check_ways(template: &CompiledTemplate, offer: &str) -> Vec<Vec<Violation>> {
    let document = Document::parse(offer.as_bytes()).unwrap();
    let Message::AgreementOffer(read) = wsag::read(&document).unwrap() else {
        panic!("an offer is expected");
    };
    let ways = read.terms.alternatives().unwrap();
    let check = |way: &wsag::terms::Alternative<'_>| {
        let left_out = way.left_out(&read.terms, &document, ways.len());
        let mut found = wsag::rules::check_rules_of_way(&document, &left_out);
        found.extend(template.check_way(&document, way, &left_out));
        found
    };
    ways.iter().map(check).collect()
}

#[test]
fn a_way_to_read_an_offer_is_checked_as_if_it_had_no_other_terms() {
    let seconds = || item("//arp:Duration", "<xs:maxInclusive value=\"30\"/>");
    let times = item(
        "//arp:AllocationTimeConstraint[arp:StartTime]",
        "<xs:sequence><xs:element ref=\"arp:StartTime\"/><xs:element ref=\"arp:EndTime\"/>\
         <xs:element ref=\"arp:Duration\"/></xs:sequence>",
    );
    let whole = with("<wsag:Constraint>duration le PT30S</wsag:Constraint>");
    let offer = text("o01-offer-sleep.xml");
    let start = offer.find("<wsag:ServiceDescriptionTerm").unwrap();
    let end = offer.rfind("</wsag:All>").unwrap();
    let terms = &offer[start..end];
    let one_of = |members: &[String]| {
        let members = format!("<wsag:All>{}</wsag:All>", members.join("</wsag:All><wsag:All>"));
        format!(
            "{}<wsag:ExactlyOne>{members}</wsag:ExactlyOne>{}",
            &offer[..start],
            &offer[end..]
        )
    };
    let long = terms.replace(">30<", ">31<");
    let either = one_of(&[long.clone(), terms.to_owned()]);
    for template in [&whole, &seconds()] {
        let found = check_ways(template, &either);
        assert!(!found[0].is_empty() && found[1].is_empty(), "{found:?}");
        assert!(!check(template, &either).is_empty(), "any way may be taken");
    }
    // Many faults of one member hide none of another's.
    let fault = "<wsag:ServiceReference wsag:Name=\"same\" wsag:ServiceName=\"S\"><wsa:EndpointReference \
                 xmlns:wsa=\"http://www.w3.org/2005/08/addressing\"><wsa:Address>urn:x</wsa:Address>\
                 </wsa:EndpointReference></wsag:ServiceReference>";
    let many = one_of(&[format!("{terms}{}", fault.repeat(30)), long.clone()]);
    let found = check_ways(&seconds(), &many);
    assert_eq!((found[0].len(), found[1].len()), (20, 1), "{found:?}");
    // A foreign element that looks like a term shifts nothing.
    let foreign = "<x:y xmlns:x=\"urn:x\"><wsag:ServiceDescriptionTerm/><wsag:ServiceDescriptionTerm/></x:y></wsag:Context>";
    let shifted = either.replace("</wsag:Context>", foreign);
    let found = check_ways(&seconds(), &shifted);
    assert!(!found[0].is_empty() && found[1].is_empty(), "{found:?}");
    // What another way has is not there.
    let open = terms.replace("<arp:StartTime>2026-01-10T08:00:00Z</arp:StartTime>", "");
    let found = check_ways(&times, &one_of(&[open, terms.to_owned()]));
    assert!(!found[0].is_empty() && found[1].is_empty(), "{found:?}");
}

/// The constraints of the offer in the sample of a negotiation, with its items exchanged.
fn negotiated(items: &str) -> CompiledConstraints {
    let input = text("m14-negotiate-input.xml");
    let start = input.find("<wsag-neg:Item").unwrap();
    let end = input.find("</wsag-neg:NegotiationConstraints>").unwrap();
    match crate::support::message(&format!("{}{items}{}", &input[..start], &input[end..])) {
        Message::NegotiateInput(offers) => CompiledConstraints::compile(&offers[0].constraints),
        other => panic!("{other:?}"),
    }
}

#[test]
fn negotiation_constraints_tell_how_an_answer_does() {
    let Message::NegotiateInput(offers) = crate::support::message(&text("m14-negotiate-input.xml")) else {
        panic!()
    };
    let constraints = CompiledConstraints::compile(&offers[0].constraints);
    assert_eq!(constraints.problems(), []);
    let answer = text("m15-negotiate-output.xml");
    let document = Document::parse(answer.as_bytes()).unwrap();
    let outcomes = constraints.check(&document);
    assert_eq!(outcomes.len(), 2);
    assert_eq!(
        (outcomes[0].name.as_str(), outcomes[0].requirement),
        ("latest-start", Requirement::Required)
    );
    assert_eq!((outcomes[0].importance, outcomes[1].importance), (Some(3), None));
    assert!(
        outcomes.iter().all(|outcome| outcome.violations.is_empty()),
        "{outcomes:?}"
    );
    let late = answer
        .replace("2026-01-10T09:00:00Z", "2026-01-10T13:00:00Z")
        .replacen(">16<", ">12<", 1);
    let document = Document::parse(late.as_bytes()).unwrap();
    let outcomes = constraints.check(&document);
    let path = |index: usize| outcomes[index].violations[0].path.as_str();
    let offer = "/wsag-neg:NegotiateOutput/wsag-neg:NegotiationCounterOffer[1]/wsag:Terms/wsag:All/";
    assert!(
        path(0).starts_with(offer) && path(0).ends_with("arp:StartTime"),
        "{outcomes:?}"
    );
    assert!(
        path(1).starts_with(offer) && path(1).ends_with("jsdl:Exact"),
        "{outcomes:?}"
    );
}

#[test]
fn negotiation_constraints_of_strangers_are_held_to_the_subset() {
    let item = |location: &str| {
        format!(
            "<wsag-neg:Item wsag:Name=\"i\" wsag-neg:Type=\"Required\"><wsag:Location>{location}</wsag:Location>\
             <wsag:ItemConstraint><xs:minInclusive value=\"1\"/></wsag:ItemConstraint></wsag-neg:Item>"
        )
    };
    for location in [
        "//jsdl:Exact",
        "/wsag:AgreementOffer/wsag:Terms//*[2]/@wsag:Name",
        "//wsag:Variable[@wsag:Name='x']",
    ] {
        assert_eq!(negotiated(&item(location)).problems(), [], "{location}");
    }
    for location in [
        "//a[count(//b) &gt; 2]",
        "//jsdl:Exact/..",
        "//jsdl:Exact[text()]",
        "id('x')",
        "jsdl:Exact",
        "//x:y",
    ] {
        let problems = negotiated(&item(location)).problems().to_vec();
        assert_eq!(problems.len(), 1, "{location}");
        assert_eq!(problems[0].path, "/wsag-neg:NegotiationConstraints/wsag-neg:Item");
    }
    assert_eq!(
        negotiated("<wsag:Constraint>nodes le</wsag:Constraint>")
            .problems()
            .len(),
        1
    );
    assert_eq!(negotiated(&item("//jsdl:Exact").repeat(101)).problems().len(), 1);
    // Of several each has its position among those of its name.
    let wrong = "<wsag:Constraint>nodes le</wsag:Constraint>";
    let right = "<wsag:Constraint>nodes le 9</wsag:Constraint>";
    let several = format!("{}{}{right}{wrong}", item("//jsdl:Exact"), item("id('x')"));
    let found = negotiated(&several);
    let paths: Vec<_> = found
        .problems()
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "/wsag-neg:NegotiationConstraints/wsag-neg:Item[2]",
            "/wsag-neg:NegotiationConstraints/wsag:Constraint[2]"
        ]
    );
}
