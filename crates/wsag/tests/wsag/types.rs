//! Types that constraints name: those of XML Schema, and those of the published schemas.

use crate::support::constrained_templates::{check, name_meets};
use crate::support::items::item;
use crate::support::text;
use wsag::ViolationKind;

/// A value of a simple type of this name.
fn is_of(name: &str, value: &str) -> bool {
    let constraint = format!("<xs:simpleType><xs:restriction base='{name}'/></xs:simpleType>");
    name_meets(&constraint, value)
}

#[test]
fn types_of_the_published_schemas_are_known_by_their_names() {
    for (name, right, wrong) in [
        ("wsag:AgreementRoleType", "AgreementResponder", "Responder"),
        ("wsag:ServiceRoleType", "ServiceConsumer", "AgreementInitiator"),
        ("wsag:AgreementStateDefinition", "ObservedAndTerminating", "Ready"),
        ("wsag:ServiceTermStateDefinition", "Ready", "Observed"),
        (
            "wsag-neg:NegotiationRoleType",
            "NegotiationInitiator",
            "AgreementInitiator",
        ),
        ("jsdl:ProcessorArchitectureEnumeration", "x86_64", "riscv"),
        ("jsdl:OperatingSystemTypeEnumeration", "FreeBSD", "Linux"),
        ("jsdl:FileSystemTypeEnumeration", "spool", "ext4"),
        ("jsdl:CreationFlagEnumeration", "dontOverwrite", "DontOverwrite"),
    ] {
        assert!(is_of(name, right), "{right} is {name}");
        assert!(!is_of(name, wrong), "{wrong} is not {name}");
    }
    assert!(is_of("jsdl:Description_Type", "anything"));
    // With facets besides, in a union, and under another prefix.
    let few = "<xs:simpleType><xs:restriction base='j:ProcessorArchitectureEnumeration' \
               xmlns:j='http://schemas.ggf.org/jsdl/2005/11/jsdl'><xs:enumeration value='arm'/></xs:restriction></xs:simpleType>";
    assert!(name_meets(few, "arm") && !name_meets(few, "x86"));
    let either = "<xs:simpleType><xs:union memberTypes='xs:int wsag:AgreementRoleType'/></xs:simpleType>";
    assert!(name_meets(either, "7") && name_meets(either, "AgreementInitiator") && !name_meets(either, "x"));
}

#[test]
fn types_with_children_are_checked_as_their_elements_are() {
    let offer = text("o01-offer-sleep.xml");
    let item_with = |location: &str, particle: &str| {
        let template = item(location, particle);
        assert_eq!(
            (template.problems(), template.unknown_types()),
            (&[][..], &[][..])
        );
        check(&template, &offer)
    };
    let job = |kind: &str| {
        let particle =
            format!("<xs:sequence><xs:element name='JobDescription' type='{kind}'/></xs:sequence>");
        item_with("//jsdl:JobDefinition", &particle)
    };
    assert_eq!(job("jsdl:JobDescription_Type"), []);
    let wrong = job("jsdl:Resources_Type");
    assert_eq!(
        (wrong.len(), wrong[0].kind),
        (1, ViolationKind::Constraint),
        "{wrong:?}"
    );
    assert!(
        wrong[0].path.ends_with("/jsdl:JobDefinition/jsdl:JobDescription"),
        "{wrong:?}"
    );
    assert!(
        wrong[0]
            .message
            .contains("the content of jsdl:Resources_Type is expected"),
        "{wrong:?}"
    );
    for (location, element, right, wrong) in [
        (
            "//jsdl:Resources",
            "TotalResourceCount",
            "jsdl:RangeValue_Type",
            "jsdl:Range_Type",
        ),
        (
            "//jsdl:TotalResourceCount",
            "Exact",
            "jsdl:Exact_Type",
            "jsdl:RangeValue_Type",
        ),
        (
            "//wsag:GuaranteeTerm",
            "ServiceLevelObjective",
            "wsag:ServiceLevelObjectiveType",
            "wsag:VariableType",
        ),
    ] {
        let particle = |kind: &str| {
            format!(
                "<xs:sequence><xs:any minOccurs='0'/><xs:element name='{element}' type='{kind}'/><xs:any minOccurs='0'/></xs:sequence>"
            )
        };
        assert_eq!(item_with(location, &particle(right)), [], "{right}");
        assert_eq!(item_with(location, &particle(wrong)).len(), 1, "{wrong}");
    }
}

#[test]
fn the_types_of_terms_and_their_parts_are_known() {
    let offer = text("o01-offer-sleep.xml");
    for (location, element, right, wrong) in [
        ("//wsag:Terms", "All", "TermCompositorType", "VariableSetType"),
        (
            "//wsag:ServiceLevelObjective",
            "KPITarget",
            "KPITargetType",
            "PreferenceType",
        ),
        (
            "//wsag:All",
            "ServiceDescriptionTerm",
            "ServiceDescriptionTermType",
            "ServiceReferenceType",
        ),
        (
            "//wsag:All",
            "ServiceDescriptionTerm",
            "ServiceDescriptionTermType",
            "ServicePropertiesType",
        ),
    ] {
        let type_of = |kind: &str| {
            let element = format!("<xs:element name='{element}' type='wsag:{kind}' maxOccurs='2'/>");
            let particle = format!("<xs:sequence>{element}<xs:any minOccurs='0'/></xs:sequence>");
            let template = item(location, &particle);
            assert!(template.unknown_types().is_empty());
            check(&template, &offer)
        };
        assert_eq!(type_of(right), [], "{right}");
        assert!(!type_of(wrong).is_empty(), "{wrong}");
    }
}

#[test]
fn types_in_annotations_keep_no_template_out_and_derived_ones_do() {
    let content_of = |child: &str| {
        let constraint =
            format!("<xs:sequence><xs:element name='a'>{child}</xs:element><xs:any/></xs:sequence>");
        item("//jsdl:Exact", &constraint).unknown_types().to_vec()
    };
    assert_eq!(
        content_of("<xs:annotation><xs:appinfo><xs:element type='my:t'/></xs:appinfo></xs:annotation>"),
        [""; 0]
    );
    for (content, derived) in [
        ("xs:complexContent", "<xs:restriction base='xs:anyType'/>"),
        ("xs:complexContent", "<xs:extension base='jsdl:RangeValue_Type'/>"),
        ("xs:simpleContent", "<xs:extension base='xs:int'/>"),
    ] {
        let found = content_of(&format!(
            "<xs:complexType><{content}>{derived}</{content}></xs:complexType>"
        ));
        assert!(
            found[0].contains(&format!("/xs:complexType/{content}: a type that is derived")),
            "{found:?}"
        );
    }
}

#[test]
fn lengths_count_octets_of_bytes_and_items_of_lists() {
    let restriction_of = |base: &str, length: usize, value: &str| {
        let restriction =
            format!("<xs:restriction base='{base}'><xs:length value='{length}'/></xs:restriction>");
        name_meets(&format!("<xs:simpleType>{restriction}</xs:simpleType>"), value)
    };
    for (base, length, value) in [
        ("xs:hexBinary", 2, "0aF9"),
        ("xs:base64Binary", 2, "YWI="),
        ("xs:base64Binary", 1, "YQ=="),
        ("xs:base64Binary", 3, "YW Jj"),
        ("xs:NMTOKENS", 2, "one two"),
    ] {
        assert!(
            restriction_of(base, length, value),
            "{value} has the length {length}"
        );
        assert!(
            !restriction_of(base, value.len(), value),
            "{value} does not have the length {}",
            value.len()
        );
    }
    for list in ["xs:NMTOKENS", "xs:IDREFS", "xs:ENTITIES"] {
        assert!(is_of(list, "one") && !is_of(list, " "), "{list}");
    }
}

#[test]
fn types_that_are_not_known_are_named_with_their_places() {
    let of_element = |kind: &str| {
        let particle = format!("<xs:sequence><xs:element name='a' type='{kind}'/></xs:sequence>");
        item("//jsdl:Exact", &particle)
    };
    let of_value = |simple: &str| {
        item(
            "//jsdl:Exact",
            &format!("<xs:simpleType>{simple}</xs:simpleType>"),
        )
    };
    let place = "/wsag:Template/wsag:CreationConstraints/wsag:Item/wsag:ItemConstraint";
    for (template, path, named) in [
        (
            of_element("jsdl:Unknown_Type"),
            "/xs:sequence/xs:element",
            "jsdl:Unknown_Type",
        ),
        (of_element("other:Type"), "/xs:sequence/xs:element", "other:Type"),
        (of_element("t"), "/xs:sequence/xs:element", "the type t is"),
        (
            of_value("<xs:restriction base='xs:NOTATION'/>"),
            "/xs:simpleType/xs:restriction",
            "xs:NOTATION",
        ),
        // It has children.
        (
            of_value("<xs:restriction base='jsdl:JobDescription_Type'/>"),
            "/xs:simpleType/xs:restriction",
            "no simple type",
        ),
        (
            of_value("<xs:list itemType='my:t'/>"),
            "/xs:simpleType/xs:list",
            "my:t",
        ),
        (
            of_value("<xs:union memberTypes='xs:int my:t'/>"),
            "/xs:simpleType/xs:union",
            "my:t",
        ),
    ] {
        let unknown = template.unknown_types();
        assert_eq!(unknown.len(), 1, "{named}: {unknown:?}");
        assert!(unknown[0].starts_with(&format!("{place}{path}: ")), "{unknown:?}");
        assert!(unknown[0].contains(named), "{named}: {unknown:?}");
    }
}

#[test]
fn dates_and_their_parts_are_types_too() {
    for (name, right, wrong) in [
        (
            "xs:date",
            &["2026-02-28", "2026-02-28Z", "2026-02-28+02:00"][..],
            &["2026-02-29", "2026-2-28", "28.2."][..],
        ),
        ("xs:time", &["08:00:00", "08:00:00.5Z"], &["8:00", "25:00:00"]),
        ("xs:gYear", &["2026", "2026Z"], &["26", "2026-01"]),
        (
            "xs:gYearMonth",
            &["2026-12", "2026-12-05:00"],
            &["2026-13", "2026"],
        ),
        ("xs:gMonth", &["--12"], &["12", "--13", "-12"]),
        ("xs:gMonthDay", &["--02-29"], &["--02-30", "02-28"]),
        ("xs:gDay", &["---31"], &["---32", "31"]),
        ("xs:negativeInteger", &["-1"], &["0"]),
        ("xs:nonPositiveInteger", &["0", "-7"], &["1"]),
        ("xs:hexBinary", &["0aF9"], &["0a1", "xx"]),
        ("xs:base64Binary", &["YWI=", "YWJj"], &["YW=I", "YWI"]),
        ("xs:QName", &["a:b", "b"], &["a:b:c", "1"]),
        ("xs:Name", &["a:b", "b"], &["1", "a b"]),
        ("xs:NMTOKENS", &["1 b"], &["a (b)"]),
    ] {
        for value in right {
            assert!(is_of(name, value), "{value} is {name}");
        }
        for value in wrong {
            assert!(!is_of(name, value), "{value} is not {name}");
        }
    }
    let from = "<xs:simpleType><xs:restriction base='xs:date'><xs:minInclusive value='2026-03-01'/></xs:restriction></xs:simpleType>";
    assert!(name_meets(from, "2026-03-01") && !name_meets(from, "2026-02-28"));
}

#[test]
fn white_space_of_a_value_is_as_its_type_says() {
    let listed = |base: &str, value: &str| {
        format!(
            "<xs:simpleType><xs:restriction base='{base}'><xs:enumeration value='{value}'/></xs:restriction></xs:simpleType>"
        )
    };
    for (base, allowed, said, is_met) in [
        ("xs:normalizedString", "a  b", "a  b", true),
        ("xs:normalizedString", "a  b", "a b", false),
        ("xs:normalizedString", "a b", "a\tb", true),
        ("xs:normalizedString", "a b", " a b", false),
        ("xs:string", "a b", "a  b", false),
        ("xs:string", "a b", "a\tb", false),
        ("xs:token", "a b", " a  b ", true),
    ] {
        let met = name_meets(&listed(base, allowed), said);
        assert_eq!(met, is_met, "{said:?} where {allowed:?} of {base} is allowed");
    }
    // A restriction of a restriction has the white space of that.
    let collapsed = "<xs:simpleType><xs:restriction><xs:simpleType><xs:restriction base='xs:string'>\
                     <xs:whiteSpace value='collapse'/></xs:restriction></xs:simpleType><xs:enumeration value='a b'/>\
                     </xs:restriction></xs:simpleType>";
    assert!(name_meets(collapsed, " a  b "));
}

#[test]
fn a_double_is_a_number_where_no_type_is_named() {
    for (said, is_met) in [
        ("1e0", true),
        ("2.0E0", true),
        ("16", true),
        ("1.7e1", false),
        ("1e-1", false),
        ("e1", false),
    ] {
        let bounds = "<xs:minInclusive value='1'/><xs:maxInclusive value='16'/>";
        assert_eq!(name_meets(bounds, said), is_met, "{said}");
    }
}

#[test]
fn facets_that_contradict_each_other_are_found_and_no_others() {
    let found = |constraint: &str| item("//jsdl:Exact", constraint).contradictions().join("; ");
    let restriction = |base: &str, facets: &str| {
        format!("<xs:simpleType><xs:restriction base='{base}'>{facets}</xs:restriction></xs:simpleType>")
    };
    for (constraint, why) in [
        (
            "<xs:minInclusive value='5'/><xs:maxInclusive value='3'/>".to_owned(),
            "item \"i\": no value is at least 5 and at most 3",
        ),
        (
            restriction("xs:positiveInteger", "<xs:maxExclusive value='1'/>"),
            "no value is at least 1 and less than 1",
        ),
        (
            restriction(
                "xs:dateTime",
                "<xs:minInclusive value='2030-01-01T01:00:00+01:00'/><xs:maxInclusive value='2029-12-31T23:59:59Z'/>",
            ),
            "no value is at least 2030",
        ),
        (
            restriction("xs:string", "<xs:minLength value='4'/><xs:maxLength value='3'/>"),
            "no value has at least 4 and at most 3 characters",
        ),
        (
            restriction("xs:token", "<xs:length value='2'/><xs:enumeration value='abc'/>"),
            "its other facets allow none of abc",
        ),
        (
            restriction(
                "xs:int",
                "<xs:minInclusive value='3'/><xs:enumeration value='1'/>",
            ),
            "its other facets allow none of 1",
        ),
    ] {
        let said = found(&constraint);
        assert!(said.contains(why), "{constraint}: {said}");
    }
    // Against a trial of each value.
    let names = ["minInclusive", "minExclusive", "maxInclusive", "maxExclusive"];
    let offer = text("o01-offer-sleep.xml");
    let exact = |value: f64| offer.replace("<jsdl:Exact>1<", &format!("<jsdl:Exact>{value}<"));
    assert_ne!(exact(7.0), offer);
    for (one, two) in names
        .iter()
        .flat_map(|one| names.iter().map(move |two| (one, two)))
    {
        for (low, high) in (0..3).flat_map(|low| (0..3).map(move |high| (low, high))) {
            let facets = format!("<xs:{one} value='{low}'/><xs:{two} value='{high}.5'/>");
            let template = item("//jsdl:Exact", &restriction("xs:decimal", &facets));
            let mut quarters = (-4..20).map(|quarter| f64::from(quarter) / 4.0);
            let value_meets = quarters.any(|value| check(&template, &exact(value)).is_empty());
            assert_eq!(template.contradictions().is_empty(), value_meets, "{facets}");
        }
    }
}
