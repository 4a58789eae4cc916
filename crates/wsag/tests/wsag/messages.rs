//! Every sample message of the protocol is read, or refused at the right place.

use crate::support::{WRITTEN, message, names_read, template, text};
use wsag::constraints::CompiledTemplate;
use wsag::templates::{ADVANCE_RESERVATION, Template};
use wsag::{Document, Violation, ViolationKind, read, rules};

fn violations(name: &str) -> Vec<Violation> {
    let text = text(name);
    let document = Document::parse(text.as_bytes()).expect("the guard lets it through");
    read(&document).expect_err("it is not valid").0
}

/// Everything that is wrong with an offer that is valid by its schema.
fn all_violations(text: &str, template: &Template) -> Vec<Violation> {
    let document = Document::parse(text.as_bytes()).expect("the guard lets it through");
    read(&document).unwrap_or_else(|violations| panic!("{violations}"));
    let mut found = rules::check_rules(&document);
    found.extend(CompiledTemplate::compile(template).check(&document));
    found
}

#[test]
fn every_valid_message_to_a_provider_is_read() {
    let names = names_read();
    assert_eq!(names.len(), 16, "{names:?}");
    for name in names {
        message(&text(&name));
    }
}

#[test]
fn messages_from_a_provider_are_refused_at_their_root() {
    for name in WRITTEN {
        let found = violations(name);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert_eq!(found[0].path.matches('/').count(), 1, "{name}: {found:?}");
        assert!(
            found[0].message.starts_with("no message has this root"),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn invalid_messages_are_refused_at_the_right_element() {
    let offer = "/wsag:AgreementOffer";
    for (name, path, said) in [
        (
            "bad-agreement-root",
            "/wsag:Agreement".to_owned(),
            "wsag:AgreementOffer",
        ),
        (
            "bad-context-order",
            format!("{offer}/wsag:Context/wsag:TemplateId"),
            "wsag:AgreementResponder",
        ),
        (
            "bad-empty-all",
            format!("{offer}/wsag:Terms/wsag:All"),
            "at least one member",
        ),
        (
            "bad-negoffer-no-constraints",
            "/wsag-neg:NegotiateInput/wsag-neg:NegotiationOffer".to_owned(),
            "wsag-neg:NegotiationConstraints",
        ),
        (
            "bad-no-business-value-list",
            format!("{offer}/wsag:Terms/wsag:All/wsag:GuaranteeTerm"),
            "wsag:BusinessValueList",
        ),
        (
            "bad-sdt-two-children",
            format!(
                "{offer}/wsag:Terms/wsag:All/wsag:ServiceDescriptionTerm[2]/arp:AllocationTimeConstraint[2]"
            ),
            "only one element",
        ),
        (
            "bad-state-then-extension",
            "/wsag:AgreementProperties".to_owned(),
            "no message has this root",
        ),
        (
            "bad-template-no-constraints",
            "/wsag:Template".to_owned(),
            "wsag:CreationConstraints",
        ),
        (
            "bad-terminate-empty",
            "/wsag:TerminateInput".to_owned(),
            "one element",
        ),
        (
            "bad-unqualified-attribute",
            format!("{offer}/@AgreementId"),
            "wsag:AgreementId",
        ),
    ] {
        let found = violations(&format!("negative/{name}.xml"));
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert_eq!(found[0].path, path, "{name}");
        assert!(found[0].message.contains(said), "{name}: {}", found[0].message);
    }
}

#[test]
fn the_first_offer_meets_the_built_in_template() {
    let template = template(ADVANCE_RESERVATION);
    assert!(CompiledTemplate::compile(&template).problems().is_empty());
    assert_eq!(all_violations(&text("o01-offer-sleep.xml"), &template), []);
}

#[test]
fn an_offer_beyond_the_nodes_that_there_are_is_refused_by_its_count() {
    let template = template(ADVANCE_RESERVATION).with_nodes_max(4);
    let offer = text("o01-offer-sleep.xml").replace("<jsdl:Exact>1<", "<jsdl:Exact>5<");
    let found = all_violations(&offer, &template);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].kind, ViolationKind::Constraint);
    assert!(
        found[0].path.ends_with("/jsdl:TotalResourceCount/jsdl:Exact"),
        "{}",
        found[0].path
    );
    assert!(
        found[0].message.contains("at most 4 is expected, not 5"),
        "{}",
        found[0].message
    );
}

#[test]
fn a_reservation_without_a_job_and_a_range_of_nodes_meet_the_built_in_template() {
    let template = template(ADVANCE_RESERVATION).with_nodes_max(8);
    let offer = text("o01-offer-sleep.xml");
    let start = offer.find("<jsdl:Application>").unwrap();
    let end = offer.find("</jsdl:Application>").unwrap() + "</jsdl:Application>".len();
    let bare = format!("{}{}", &offer[..start], &offer[end..]);
    assert_eq!(all_violations(&bare, &template), []);
    let range = bare.replace(
        "<jsdl:Exact>1</jsdl:Exact>",
        "<jsdl:Range><jsdl:LowerBound>2</jsdl:LowerBound><jsdl:UpperBound>8</jsdl:UpperBound></jsdl:Range>",
    );
    assert_eq!(all_violations(&range, &template), []);
}

#[test]
fn a_template_whose_constraint_cannot_be_evaluated_loads_and_refuses_every_offer() {
    let template = template(&text("m01-template.xml"));
    let found = all_violations(&text("m02-agreement-offer.xml"), &template);
    let constraint = found
        .iter()
        .find(|violation| violation.path == "/wsag:AgreementOffer")
        .unwrap();
    assert_eq!(constraint.kind, ViolationKind::NotEvaluable);
    assert!(
        constraint.message.contains("Duration <= EndTime - StartTime"),
        "{}",
        constraint.message
    );
    let condition = "/wsag:AgreementOffer/wsag:Terms/wsag:All/wsag:GuaranteeTerm/wsag:QualifyingCondition";
    let condition = found
        .iter()
        .find(|violation| violation.path == condition)
        .unwrap();
    assert!(condition.message.contains("\"!=\""), "{}", condition.message);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn offers_that_are_valid_but_wrong_are_refused_at_what_is_wrong() {
    let template = template(&text("m01-template.xml"));
    let paths = |name: &str| -> Vec<String> {
        all_violations(&text(name), &template)
            .into_iter()
            .map(|violation| violation.path)
            .collect()
    };
    let all = "/wsag:AgreementOffer/wsag:Terms/wsag:All";
    assert!(paths("edge-duplicate-names.xml").contains(&format!("{all}/wsag:ServiceDescriptionTerm[2]")));
    let window = format!("{all}/wsag:ServiceDescriptionTerm[2]/arp:AllocationTimeConstraint");
    let found = paths("edge-end-before-start.xml");
    assert!(found.contains(&format!("{window}/arp:EndTime")), "{found:?}");
    assert!(found.contains(&format!("{window}/arp:Duration")), "{found:?}");
    assert!(paths("edge-empty-terms.xml").contains(&"/wsag:AgreementOffer/wsag:Context".to_owned()));
}

#[test]
fn the_offer_inside_an_input_is_checked_at_its_own_path() {
    let template = template(ADVANCE_RESERVATION);
    let found = all_violations(&text("m03-create-agreement-input.xml"), &template);
    let id = "/wsag:CreateAgreementInput/wsag:AgreementOffer/wsag:Context/wsag:TemplateId";
    assert!(found.iter().any(|violation| violation.path == id), "{found:?}");
}

/// The violations of the first sample offer with one piece of it replaced.
fn with(piece: &str, replacement: &str) -> Vec<Violation> {
    let offer = text("o01-offer-sleep.xml");
    assert!(offer.contains(piece), "{piece}");
    let changed = offer.replace(piece, replacement);
    let document = Document::parse(changed.as_bytes()).expect("the guard lets it through");
    read(&document).expect_err("it is not valid").0
}

#[test]
fn sloppy_values_are_refused_at_their_element() {
    for (piece, replacement, end, said) in [
        (
            "2026-01-10T08:00:00Z",
            "2026-01-10T08:00:00+0100",
            "/arp:StartTime",
            "a dateTime such as",
        ),
        (
            "2026-01-10T20:00:00Z",
            "12026-01-10T20:00:00",
            "/arp:EndTime",
            "the year must be",
        ),
        (
            "2026-01-10T20:00:00Z",
            "2026-02-30T20:00:00Z",
            "/arp:EndTime",
            "the day is out of range",
        ),
        (">30<", ">PT30S<", "/arp:Duration", "a whole number of seconds"),
        (
            ">1</jsdl:Exact>",
            ">one</jsdl:Exact>",
            "/jsdl:Exact",
            "a number is expected",
        ),
        (
            "wsag:Obligated=\"ServiceProvider\"",
            "wsag:Obligated=\" ServiceProvider\"",
            "/wsag:GuaranteeTerm/@wsag:Obligated",
            "ServiceConsumer or ServiceProvider is expected",
        ),
        (
            ">AgreementResponder<",
            ">Provider<",
            "/wsag:ServiceProvider",
            "AgreementInitiator or",
        ),
        (
            "<jsdl:Resources>",
            "<jsdl:Resources>16 nodes",
            "/jsdl:Resources",
            "text is not allowed here",
        ),
    ] {
        let found = with(piece, replacement);
        assert_eq!(found.len(), 1, "{replacement}: {found:?}");
        assert!(found[0].path.ends_with(end), "{replacement}: {found:?}");
        assert!(found[0].message.contains(said), "{replacement}: {found:?}");
    }
}

#[test]
fn what_jsdl_can_ask_and_nobody_honours_is_refused() {
    let found = with(
        "<jsdl-posix:Argument>",
        "<jsdl-posix:Executable>/bin/rm</jsdl-posix:Executable><jsdl-posix:Argument>",
    );
    assert_eq!((found.len(), found[0].kind), (1, ViolationKind::NotSupported));
    assert!(
        found[0]
            .path
            .ends_with("/jsdl-posix:POSIXApplication/jsdl-posix:Executable"),
        "{found:?}"
    );
    assert!(
        found[0].message.contains("name one in ApplicationName"),
        "{found:?}"
    );
    let found = with(
        "<jsdl:Resources>",
        "<jsdl:Resources><jsdl:Colour>red</jsdl:Colour>",
    );
    assert!(
        found[0].path.ends_with("/jsdl:Resources/jsdl:Colour"),
        "{found:?}"
    );
}

#[test]
fn each_element_of_jsdl_that_is_not_supported_is_refused_at_its_path() {
    let resources = ("<jsdl:TotalResourceCount>", "/jsdl:Resources/");
    let program = ("<jsdl-posix:Argument>", "/jsdl-posix:POSIXApplication/");
    let described = ("<jsdl:Application>", "/jsdl:JobDescription/");
    let application = ("<jsdl:ApplicationName>", "/jsdl:Application/");
    let system = |part: &str| format!("<jsdl:OperatingSystem>{part}</jsdl:OperatingSystem>");
    let named = "<jsdl:OperatingSystemType><jsdl:OperatingSystemName>Solaris</jsdl:OperatingSystemName>\
                 </jsdl:OperatingSystemType>";
    let version = "<jsdl:OperatingSystemVersion>6</jsdl:OperatingSystemVersion>";
    let staging = "<jsdl:DataStaging><jsdl:FileName>f</jsdl:FileName><jsdl:FilesystemName>HOME</jsdl:FilesystemName>\
                   <jsdl:CreationFlag>overwrite</jsdl:CreationFlag></jsdl:DataStaging></jsdl:JobDescription>";
    let simple = |name: &str| (name.to_owned(), format!("<{name}>1</{name}>"));
    let path_of = |(place, above): (&'static str, &'static str), (path, element): (String, String)| {
        (place, above.to_owned() + &path, element + place)
    };
    let end = "</jsdl:JobDescription>";
    let mut asked = vec![
        path_of(resources, simple("jsdl:CandidateHosts")),
        path_of(resources, simple("jsdl:FileSystem")),
        path_of(resources, simple("jsdl:IndividualCPUTime")),
        path_of(resources, simple("jsdl:TotalCPUTime")),
        path_of(
            resources,
            (
                "jsdl:OperatingSystem/jsdl:OperatingSystemVersion".to_owned(),
                system(version),
            ),
        ),
        path_of(
            resources,
            (
                "jsdl:OperatingSystem/jsdl:OperatingSystemType/jsdl:OperatingSystemName".to_owned(),
                system(named),
            ),
        ),
        (
            end,
            "/jsdl:DataStaging/jsdl:FilesystemName".to_owned(),
            staging.to_owned(),
        ),
    ];
    // Elements of other namespaces, and elements of the program that the provider decides.
    let foreign = || ("q:x".to_owned(), "<q:x xmlns:q=\"urn:q\"/>".to_owned());
    asked.extend([resources, program, described, application].map(|place| path_of(place, foreign())));
    asked.extend(
        [
            "Executable",
            "WorkingDirectory",
            "Environment",
            "UserName",
            "GroupName",
            "MemoryLimit",
            "CPUTimeLimit",
            "ProcessCountLimit",
            "ThreadCountLimit",
        ]
        .map(|name| path_of(program, simple(&format!("jsdl-posix:{name}")))),
    );
    for (place, path, with_it) in asked {
        let offer = text("o01-offer-sleep.xml");
        let at = offer.find(place).expect(place);
        let changed = format!("{}{with_it}{}", &offer[..at], &offer[at + place.len()..]);
        let document = Document::parse(changed.as_bytes()).expect("the guard lets it through");
        let found = read(&document).expect_err("it is not supported").0;
        let refused = |violation: &Violation| {
            violation.kind == ViolationKind::NotSupported && violation.path.ends_with(&path)
        };
        assert!(found.iter().any(refused), "{path}: {found:?}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let mut offer = text("o01-offer-sleep.xml");
    for (piece, replacement) in [
        ("T08:00:00Z", "T08:00"),
        (">30<", ">x<"),
        (">1</jsdl:Exact>", ">y</jsdl:Exact>"),
    ] {
        offer = offer.replace(piece, replacement);
    }
    let document = Document::parse(offer.as_bytes()).expect("the guard lets it through");
    let found = read(&document).expect_err("it is not valid").0;
    let ends = ["/jsdl:Exact", "/arp:StartTime", "/arp:Duration"];
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found
            .iter()
            .zip(ends)
            .all(|(violation, end)| violation.path.ends_with(end)),
        "{found:?}"
    );
}

#[test]
fn an_unknown_critical_extension_is_refused_and_a_noncritical_one_is_not() {
    let input = text("m03-create-agreement-input.xml");
    let critical = input.replace(
        "</wsag:CreateAgreementInput>",
        "<x:must xmlns:x=\"urn:x\"/></wsag:CreateAgreementInput>",
    );
    let document = Document::parse(critical.as_bytes()).expect("the guard lets it through");
    let found = read(&document).expect_err("it is not valid").0;
    assert_eq!((found.len(), found[0].kind), (1, ViolationKind::UnknownExtension));
    assert_eq!(found[0].path, "/wsag:CreateAgreementInput/x:must");
    let wsag::Message::CreateAgreementInput(input) = message(&input) else {
        panic!("{input}")
    };
    assert_eq!(input.noncritical.len(), 1);
    let negotiation = input
        .negotiation
        .expect("the sample is made from a counter offer");
    assert_eq!(negotiation.context.counter_offer_to, "o-1");
}

#[test]
fn an_agreement_id_is_kept_as_it_stands() {
    let read_id = |id: &str| {
        let offer = text("o01-offer-sleep.xml");
        let start = offer.find("AgreementOffer").expect("an offer") + "AgreementOffer".len();
        let named = format!("{} wsag:AgreementId=\"{id}\"{}", &offer[..start], &offer[start..]);
        let document = Document::parse(named.as_bytes()).expect("a document");
        match wsag::read(&document).expect("it is read") {
            wsag::Message::AgreementOffer(offer) => offer.agreement_id,
            other => panic!("{other:?}"),
        }
    };
    for id in ["a b", " a b", "a  b"] {
        assert_eq!(read_id(id).as_deref(), Some(id));
    }
}
