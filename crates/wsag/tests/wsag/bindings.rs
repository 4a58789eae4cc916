//! Variables of service properties: bound to what their Locations select, or refused with the reason.

#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

use crate::support::{template, text};
use wsag::constraints::CompiledTemplate;
use wsag::{Document, Violation};

fn check(template: &CompiledTemplate, offer: &str) -> Vec<Violation> {
    template.check(&Document::parse(offer.as_bytes()).unwrap())
}

/// A template with a variable for each of these: name, metric and location.
fn with_variables(variables: &[(&str, &str, &str)], constraint: &str) -> CompiledTemplate {
    let variables: Vec<String> = variables
        .iter()
        .map(|(name, metric, location)| {
            let metric = if metric.is_empty() { String::new() } else { format!(" wsag:Metric='{metric}'") };
            format!("<wsag:Variable wsag:Name='{name}'{metric}><wsag:Location>{location}</wsag:Location></wsag:Variable>")
        })
        .collect();
    let variables = variables.concat();
    let text = wsag::templates::ADVANCE_RESERVATION
        .replacen(
            "<wsag:GuaranteeTerm",
            &format!(
                "<wsag:ServiceProperties wsag:Name='P' wsag:ServiceName='COMPUTE'><wsag:VariableSet>{variables}\
                 </wsag:VariableSet></wsag:ServiceProperties><wsag:GuaranteeTerm"
            ),
            1,
        )
        .replace("</wsag:CreationConstraints>", &format!("<wsag:Constraint>{constraint}</wsag:Constraint></wsag:CreationConstraints>"));
    CompiledTemplate::compile(&template(&text))
}

#[test]
fn variables_of_service_properties_stand_for_what_their_locations_select() {
    let variables = [
        ("cnt", "xs:int", "//jsdl:TotalResourceCount/jsdl:Exact"),
        ("wanted", "xs:int", "//arp:Duration"),
        (
            "begin",
            "xs:dateTime",
            "//wsag:ServiceDescriptionTerm[@wsag:Name='TIME']//arp:StartTime",
        ),
        (
            "begun",
            "",
            "//wsag:ServiceTermState[@wsag:termName='TIME']/arp:StartTime",
        ),
        ("argument", "xs:double", "//jsdl-posix:Argument"),
        ("memory", "xs:double", "//jsdl:TotalPhysicalMemory/jsdl:Exact"),
    ];
    let offer = text("o01-offer-sleep.xml");
    for (constraint, met) in [
        ("cnt le 1", true),
        ("cnt gt 1", false),
        (
            "wanted eq 30 and begin eq 2026-01-10T08:00:00Z and argument eq 2",
            true,
        ),
        ("wanted lt 30", false),
        // Nothing is said of it.
        ("memory gt 5", true),
    ] {
        let template = with_variables(&variables, constraint);
        assert_eq!((template.unbound(), template.problems()), (&[][..], &[][..]));
        assert_eq!(check(&template, &offer).is_empty(), met, "{constraint}");
    }
    let template = with_variables(&variables, "cnt le 4");
    let nodes = |exact: &str| offer.replace("<jsdl:Exact>1</jsdl:Exact>", exact);
    assert!(
        check(
            &template,
            &nodes("<jsdl:Exact>2</jsdl:Exact><jsdl:Exact>4</jsdl:Exact>")
        )
        .is_empty()
    );
    assert!(
        !check(
            &template,
            &nodes("<jsdl:Exact>2</jsdl:Exact><jsdl:Exact>5</jsdl:Exact>")
        )
        .is_empty()
    );
    // Several values of which one breaks it, and a value of another kind.
    let several = offer.replace(
        "<jsdl-posix:Argument>2</jsdl-posix:Argument>",
        "<jsdl-posix:Argument>2</jsdl-posix:Argument><jsdl-posix:Argument>9</jsdl-posix:Argument>",
    );
    let word = offer.replace("<jsdl-posix:Argument>2<", "<jsdl-posix:Argument>two<");
    let template = with_variables(&variables, "argument lt 5");
    assert!(check(&template, &offer).is_empty());
    assert!(!check(&template, &several).is_empty() && !check(&template, &word).is_empty());
    // What is known of an agreement only decides about no offer.
    assert_eq!(with_variables(&variables, "begun ge begin").problems().len(), 1);
    assert_eq!(
        with_variables(&variables, "started le deadline").problems().len(),
        1
    );

    let bound = |text: &str, offer: &str| {
        let document = Document::parse(offer.as_bytes()).unwrap();
        template.bound(text, &document, &wsag::UnchosenTerms::default())
    };
    assert_eq!(
        bound("(cnt ge 5) and begun le begin or cnt lt wanted", &offer).as_deref(),
        Ok("(nodes ge 5) and started le 2026-01-10T08:00:00Z or nodes lt 30")
    );
    assert_eq!(
        bound("completed le deadline", &offer).as_deref(),
        Ok("completed le deadline")
    );
    for (text, offer) in [
        ("memory gt 1", &offer),
        ("argument gt 1", &several),
        ("argument gt 1", &word),
    ] {
        assert!(bound(text, offer).is_err(), "{text}");
    }
}

#[test]
fn a_variable_never_looks_into_a_term_in_an_unknown_language() {
    let colours = "<wsag:ServiceDescriptionTerm wsag:Name='COLOURS' wsag:ServiceName='COMPUTE'><c:Colours \
         xmlns:c='urn:example:colours' xmlns:arp='http://www.ogf.org/graap/AR/2009/04/'><arp:StartTime>2030-01-01T00:00:00Z\
         </arp:StartTime></c:Colours></wsag:ServiceDescriptionTerm><wsag:GuaranteeTerm";
    let offer = text("o01-offer-sleep.xml").replacen("<wsag:GuaranteeTerm", colours, 1);
    let document = Document::parse(offer.as_bytes()).unwrap();
    for (location, value) in [
        ("//arp:StartTime", Some("2026-01-10T08:00:00Z")),
        (
            "declare namespace c=\"urn:example:colours\"; //c:Colours/arp:StartTime",
            None,
        ),
    ] {
        let template = with_variables(&[("begin", "xs:dateTime", location)], "nodes le 4");
        assert!(template.unbound().is_empty());
        let bound = template.bound("started le begin", &document, &wsag::UnchosenTerms::default());
        assert_eq!(
            bound.ok(),
            value.map(|value| format!("started le {value}")),
            "{location}"
        );
    }
}

#[test]
fn variables_that_cannot_be_bound_are_named_with_the_reason() {
    for (variable, why) in [
        (
            ("a", "xs:int", "count(//jsdl:Exact)"),
            "the Location cannot be evaluated",
        ),
        (
            ("a", "xs:int", "//wsag:ServiceTermState/wsag:State"),
            "of a service's state TotalResourceCount",
        ),
        (
            ("a", "xs:int", "//wsag:ServiceTermState/arp:StartTime"),
            "bound to started, which has another metric",
        ),
        (("nodes", "xs:int", "//arp:Duration"), "a meaning of its own"),
        (("1st", "xs:int", "//arp:Duration"), "its name is a letter"),
        (
            ("a", "xs:int", "//arp:Duration | //jsdl:TotalResourceCount"),
            "about several things",
        ),
    ] {
        let template = with_variables(&[variable], "nodes le 4");
        let found = template.unbound();
        assert!(
            found.len() == 1 && found[0].contains(why),
            "{variable:?}: {found:?}"
        );
    }
    let twice = ("a", "xs:int", "//arp:Duration");
    assert!(with_variables(&[twice, twice], "nodes le 4").unbound()[0].contains("another variable"));
    // The same under its own name is nothing new.
    let same = ("nodes", "xs:int", "//jsdl:TotalResourceCount");
    assert!(with_variables(&[same], "nodes le 4").unbound().is_empty());
}

#[test]
fn a_variable_without_a_metric_that_can_be_compared_is_bound_and_in_no_expression() {
    let offer = text("o01-offer-sleep.xml");
    let document = Document::parse(offer.as_bytes()).unwrap();
    for metric in ["", "xs:QName", "urn:example:flops"] {
        let variable = ("a", metric, "//jsdl:Application");
        let template = with_variables(&[variable], "nodes le 4");
        assert_eq!(
            (template.unbound(), template.problems()),
            (&[][..], &[][..]),
            "{metric}"
        );
        assert!(check(&template, &offer).is_empty(), "{metric}");
        let bound = template.bound("a le 4", &document, &wsag::UnchosenTerms::default());
        assert!(
            bound.is_err_and(|why| why.contains("cannot be compared")),
            "{metric}"
        );
        let named = with_variables(&[variable], "a le 4");
        assert!(
            named.problems().len() == 1 && named.problems()[0].message.contains("cannot be compared"),
            "{metric}: {:?}",
            named.problems()
        );
        // What is observed has a metric of its own.
        let observed = with_variables(
            &[("begun", metric, "//wsag:ServiceTermState/arp:StartTime")],
            "nodes le 4",
        );
        let bound = observed.bound("begun le deadline", &document, &wsag::UnchosenTerms::default());
        assert_eq!(bound.as_deref(), Ok("started le deadline"), "{metric}");
    }
}
