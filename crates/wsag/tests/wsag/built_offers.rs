//! An offer that is made of values says the same as its written document, and each violation has the place that its maker gave to
//! the value.

#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

use crate::support::make::DocumentMaker;
use crate::support::{Chance, template};
use wsag::agreements::{AgreementOffer, Context};
use wsag::compare::first_difference;
use wsag::constraints::CompiledTemplate;
use wsag::guard::{BYTES_MAX, GuardError};
use wsag::job_definition::{Application, JobDefinition, PosixApplication, RangeValue, Resources};
use wsag::scheduling::AllocationTimeConstraint;
use wsag::templates::ADVANCE_RESERVATION;
use wsag::terms::{ServiceDescription, ServiceDescriptionTerm, Term, TermTree, Terms};
use wsag::{Document, ValuePlaces, ns, rules};

#[test]
fn an_offer_is_checked_without_a_document_as_it_is_with_one() {
    let mut make = DocumentMaker(Chance(2027));
    let template = CompiledTemplate::compile(&template(ADVANCE_RESERVATION));
    for _ in 0..300 {
        let offer = make.offer();
        let text = offer.to_xml();
        let parsed = Document::parse(text.as_bytes()).unwrap();
        let (made, places) = (offer.make(), ValuePlaces::document("/wsag:AgreementOffer"));
        let made = Document::made(&made, &places).unwrap();
        assert_eq!(first_difference(&parsed, &made), None, "{text}");
        assert_eq!(first_difference(&made, &parsed), None, "{text}");
        assert_eq!(rules::check_rules(&made), rules::check_rules(&parsed), "{text}");
        assert_eq!(template.check(&made), template.check(&parsed), "{text}");
        for (namespace, local) in [
            (ns::WSAG, "GuaranteeTerm"),
            (ns::WSAG, "Name"),
            (ns::JSDL_POSIX, "Argument"),
        ] {
            for nth in 0..3 {
                let path_in =
                    |document: &Document<'_>| document.path_outside_unknown_terms(namespace, local, nth);
                assert_eq!(path_in(&made), path_in(&parsed), "{text}");
            }
        }
    }
}

fn term(name: &str, content: ServiceDescription) -> TermTree {
    TermTree::Term(Box::new(Term::ServiceDescription(ServiceDescriptionTerm {
        name: name.into(),
        service_name: "service".into(),
        content,
        is_wsag4j: false,
    })))
}

fn offer(arguments: Vec<String>) -> AgreementOffer {
    let time = |text: &str| text.parse().ok();
    let job = JobDefinition {
        application: Some(Application {
            name: "sleep".into(),
            version: None,
            description: None,
            posix: Some(PosixApplication {
                arguments,
                ..PosixApplication::default()
            }),
        }),
        resources: Resources {
            nodes: Some(RangeValue::exactly(1.5)),
            ..Resources::default()
        },
        ..JobDefinition::default()
    };
    let window = AllocationTimeConstraint {
        start: time("2027-01-01T08:00:00Z"),
        end: time("2027-01-01T07:00:00Z"),
        duration: Some(0),
    };
    let all = vec![
        term("JOB", ServiceDescription::JobDefinition(Box::new(job))),
        term("TIME", ServiceDescription::AllocationTime(window)),
    ];
    AgreementOffer {
        name: None,
        agreement_id: None,
        context: Context::for_template("t", "T"),
        terms: Terms { all: Some(all) },
    }
}

fn paths(offer: &AgreementOffer, places: &ValuePlaces) -> Vec<String> {
    let made = offer.make();
    let document = Document::made(&made, places).unwrap();
    let mut paths: Vec<_> = rules::check_rules(&document)
        .into_iter()
        .map(|check_rule| check_rule.path)
        .collect();
    paths.push(document.path_outside_unknown_terms(ns::JSDL_POSIX, "Argument", 1));
    paths.push(document.path_outside_unknown_terms(ns::WSAG, "TemplateId", 0));
    paths
}

#[test]
fn what_is_wrong_is_said_where_the_maker_has_it() {
    let offer = offer(vec!["1".into(), "2".into()]);
    let root = "/wsag-neg:NegotiateInput/wsag-neg:NegotiationOffer[2]";
    let term = |nth: u32| format!("{root}/wsag:Terms/wsag:All/wsag:ServiceDescriptionTerm[{nth}]");
    let window = format!("{}/arp:AllocationTimeConstraint", term(2));
    let job = format!("{}/jsdl:JobDefinition/jsdl:JobDescription", term(1));
    assert_eq!(
        paths(&offer, &ValuePlaces::document(root)),
        [
            format!("{job}/jsdl:Resources/jsdl:TotalResourceCount"),
            format!("{window}/arp:Duration"),
            format!("{window}/arp:EndTime"),
            format!("{job}/jsdl:Application/jsdl-posix:POSIXApplication/jsdl-posix:Argument[2]"),
            format!("{root}/wsag:Context/wsag:TemplateId"),
        ]
    );
    // The nearest member that says it; the whole for what no member says.
    let mut places = ValuePlaces::form("/3");
    places.put("jsdl:TotalResourceCount", None, "/3/nodes");
    places.put("arp:AllocationTimeConstraint", None, "/3/window");
    places.put("arp:EndTime", None, "/3/window/end");
    places.put("jsdl-posix:Argument", Some(0), "/3/arguments/0");
    places.put("jsdl-posix:Argument", Some(1), "/3/arguments/1");
    assert_eq!(
        paths(&offer, &places),
        ["/3/nodes", "/3/window", "/3/window/end", "/3/arguments/1", "/3"]
    );
    assert_eq!(places.below("/wsag:Terms"), "/3");
    places.put("wsag-neg:OfferId", None, "/3/id");
    assert_eq!(places.below("/@wsag-neg:OfferId"), "/3/id");
    let document = ValuePlaces::document(root);
    assert_eq!(
        document.below("/@wsag-neg:OfferId"),
        format!("{root}/@wsag-neg:OfferId")
    );
}

#[test]
fn what_no_document_can_carry_is_refused() {
    let places = ValuePlaces::document("/wsag:AgreementOffer");
    let refused = |arguments| Document::made(&offer(arguments).make(), &places).err();
    assert_eq!(refused(vec!["x".into()]), None);
    // Escaped it would be larger than a document may be.
    let long = "<".repeat(BYTES_MAX / 4);
    assert!(matches!(refused(vec![long]), Some(GuardError::TooLarge { .. })));
    // In a text these stay as they are.
    let lines = "a \"b\"\n\t".repeat(BYTES_MAX / 8);
    assert_eq!(refused(vec![lines.clone()]), None);
    assert!(offer(vec![lines]).to_xml().len() < BYTES_MAX);
    // In an attribute they do not.
    let mut named = offer(Vec::new());
    let time = ServiceDescription::AllocationTime(AllocationTimeConstraint::default());
    named.terms.all.get_or_insert_default()[1] = term(&"\n".repeat(BYTES_MAX / 5), time);
    let made = Document::made(&named.make(), &places).err();
    assert!(matches!(made, Some(GuardError::TooLarge { .. })));
    let many = vec![String::new(); 2_000];
    assert!(matches!(refused(many), Some(GuardError::Refused { .. })));
}
