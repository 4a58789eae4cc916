//! Whether two parts of documents say the same, in any writing: an agreement's offer and a negotiation's, a guarantee and that of a
//! template.
//!
//! Prefixes, the order of attributes, space between elements and comments say nothing. Strings are the same where they have the same
//! characters; other values where they are the same text without the space around it, the same instant, number or truth value. What
//! stands in an unknown namespace may be of any type: there, 1 is not true.

use std::borrow::Cow;

use crate::expression::{DIALECT, Expression};
use crate::guarantees::{Compensation, GuaranteeTerm, ServiceScope};
use crate::xml::datatypes::{Decimal, parse_boolean, parse_double, preserve_space, replace_space};
use crate::xml::ns::{BSP, JSDL, JSDL_POSIX, WSA, WSAG, usual_prefix};
use crate::xml::{DateTime, Document, Fragment, Node, Violation, ViolationKind, collapse_space};

/// How white space counts in the values of a type.
type Whitespace = fn(&str) -> Cow<'_, str>;

/// The elements with a string in which white space counts, with their types: a normalizedString has spaces in place of other white
/// space.
const STRINGS: [(&str, &str, Whitespace); 17] = [
    (WSAG, "Name", preserve_space),
    (JSDL, "JobName", preserve_space),
    (JSDL, "Description", preserve_space),
    (JSDL, "ApplicationName", preserve_space),
    (JSDL, "ApplicationVersion", preserve_space),
    (JSDL, "FileName", preserve_space),
    (JSDL_POSIX, "Argument", replace_space),
    (JSDL_POSIX, "Input", replace_space),
    (JSDL_POSIX, "Output", replace_space),
    (JSDL_POSIX, "Error", replace_space),
    (WSAG, "KPIName", preserve_space),
    (WSAG, "TemplateId", collapse_space),
    (WSAG, "TemplateName", collapse_space),
    (WSAG, "Location", collapse_space),
    (JSDL, "URI", collapse_space),
    (BSP, "Resource", preserve_space),
    (WSA, "Address", collapse_space),
];

/// The first place where the first offer of `sent` differs from the first offer of `offered` in its context and terms; None where
/// they agree. O(n).
pub fn first_difference(sent: &Document<'_>, offered: &Document<'_>) -> Option<Violation> {
    let (Some(&sent), Some(&offered)) = (sent.offers().first(), offered.offers().first()) else {
        return Some(Violation {
            path: "/".to_owned(),
            kind: ViolationKind::Value,
            message: "an offer is expected".to_owned(),
        });
    };
    ["Context", "Terms"].into_iter().find_map(|local| {
        let (Some(one), Some(other)) = (sent.child(WSAG, local), offered.child(WSAG, local)) else {
            let message = format!("wsag:{local} is expected, as it was offered");
            return Some(difference_at(sent, &message));
        };
        difference_of_nodes(one, other)
    })
}

fn difference_of_nodes(sent: Node<'_>, offered: Node<'_>) -> Option<Violation> {
    let here = |message: &str| Some(difference_at(sent, message));
    if !sent.is(offered.namespace(), offered.local()) {
        return here(&format!("{} was offered here", offered.name()));
    }
    for (namespace, local, value) in offered.attributes() {
        let given = sent.attribute(namespace, local);
        // The attributes of WS-Agreement are strings.
        let is_same = |given: &str| match namespace {
            WSAG => collapse_space(given) == collapse_space(value),
            "" if is_known(sent.namespace()) => texts_compare_equal(given, value),
            _ if is_known(namespace) => texts_compare_equal(given, value),
            _ => texts_compare_equal_in_any_type(given, value),
        };
        if !given.is_some_and(is_same) {
            return here(&format!("its {local} was offered as {value:?}"));
        }
    }
    if sent.attributes().count() != offered.attributes().count() {
        return here("it has an attribute that was not offered");
    }
    if !texts_of_nodes_compare_equal(sent, offered) {
        let value = collapse_space(&offered.text()).to_string();
        return here(&format!("{value:?} was offered here"));
    }
    let mut others = offered.children();
    for child in sent.children() {
        let Some(other) = others.next() else {
            return Some(difference_at(child, "it was not offered"));
        };
        if let Some(difference) = difference_of_nodes(child, other) {
            return Some(difference);
        }
    }
    let missing = others.next()?;
    here(&format!("{} was offered in it and is missing", missing.name()))
}

fn difference_at(node: Node<'_>, message: &str) -> Violation {
    Violation {
        path: node.path(),
        kind: ViolationKind::Value,
        message: format!("it differs from the offer: {message}"),
    }
}

/// Whether the types of what has names of a namespace are known here.
fn is_known(namespace: &str) -> bool {
    usual_prefix(namespace).is_some()
}

/// Whether two elements of one name have the same text, by its type.
fn texts_of_nodes_compare_equal(sent: Node<'_>, offered: Node<'_>) -> bool {
    if !is_known(sent.namespace()) {
        let mut texts = sent.texts_between().zip(offered.texts_between());
        return texts.all(|(one, other)| texts_compare_equal_in_any_type(&one, &other));
    }
    let (one, other) = (sent.text(), offered.text());
    let mut strings = STRINGS.iter();
    match strings.find(|(namespace, local, _)| sent.is(namespace, local)) {
        Some((_, _, normalise)) => normalise(&one) == normalise(&other),
        None => texts_compare_equal(&one, &other),
    }
}

/// Whether two texts of an unknown type say the same.
fn texts_compare_equal_in_any_type(one: &str, other: &str) -> bool {
    let (one, other) = (collapse_space(one), collapse_space(other));
    if one == other {
        return true;
    }
    if let (Ok(one), Ok(other)) = (one.parse::<DateTime>(), other.parse::<DateTime>()) {
        return one == other;
    }
    let decimals = Decimal::parse(&one).zip(Decimal::parse(&other));
    decimals.is_some_and(|(one, other)| one == other)
}

/// Whether two texts that are no strings say the same.
fn texts_compare_equal(one: &str, other: &str) -> bool {
    if texts_compare_equal_in_any_type(one, other) {
        return true;
    }
    let (one, other) = (collapse_space(one), collapse_space(other));
    if Decimal::parse(&one).is_some() && Decimal::parse(&other).is_some() {
        return false;
    }
    let truths = (parse_boolean(&one), parse_boolean(&other));
    if let (Ok(one), Ok(other)) = truths {
        return one == other;
    }
    // Such as 1e0, which is 1.
    let order = parse_double(&one).ok().zip(parse_double(&other).ok());
    order.is_some_and(|(one, other)| one.partial_cmp(&other).is_some_and(std::cmp::Ordering::is_eq))
}

impl GuaranteeTerm {
    /// Whether another guarantee says the same: the same values in each part, and content of other languages in its canonical form,
    /// whatever its prefixes and the space between its elements.
    pub fn compares_equal_to(&self, other: &GuaranteeTerm) -> bool {
        let (values, others) = (&self.values, &other.values);
        let conditions_compare_equal =
            |one: Option<&Expression>, other: Option<&Expression>| match one.zip(other) {
                Some((one, other)) => expressions_compare_equal(one, other),
                None => one.is_none() && other.is_none(),
            };
        self.name == other.name
            && self.obligated == other.obligated
            && are_all_same(&self.scopes, &other.scopes, are_same_scopes)
            && conditions_compare_equal(
                self.qualifying_condition.as_ref(),
                other.qualifying_condition.as_ref(),
            )
            && self.objective.kpi_name == other.objective.kpi_name
            && expressions_compare_equal(&self.objective.level, &other.objective.level)
            && values.importance == others.importance
            && are_all_same(&values.penalties, &others.penalties, compensations_compare_equal)
            && are_all_same(&values.rewards, &others.rewards, compensations_compare_equal)
            && values.preference == others.preference
            && are_all_same(&values.custom, &others.custom, fragments_compare_equal)
    }
}

/// Whether two lists have as many members, and each the same as the one of its place.
fn are_all_same<T>(one: &[T], other: &[T], is_same: fn(&T, &T) -> bool) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
}

fn are_same_scopes(one: &ServiceScope, other: &ServiceScope) -> bool {
    one.service_name == other.service_name && are_all_same(&one.parts, &other.parts, fragments_compare_equal)
}

/// Whether two expressions have the same text in the same dialect. One that names none is in ours.
fn expressions_compare_equal(one: &Expression, other: &Expression) -> bool {
    let dialect = |expression: &Expression| expression.dialect.clone().unwrap_or_else(|| DIALECT.to_owned());
    dialect(one) == dialect(other) && collapse_space(&one.text) == collapse_space(&other.text)
}

fn compensations_compare_equal(one: &Compensation, other: &Compensation) -> bool {
    let unit = |compensation: &Compensation| compensation.unit.as_deref().map(str::trim).map(str::to_owned);
    let amount = |compensation: &Compensation| Decimal::parse(compensation.value.text.trim());
    let is_same_amount = amount(one).is_some() && amount(one) == amount(other);
    one.interval == other.interval
        && unit(one) == unit(other)
        && (expressions_compare_equal(&one.value, &other.value)
            || is_same_amount && one.value.dialect == other.value.dialect)
}

/// Whether two elements are the same in their canonical form.
fn fragments_compare_equal(one: &Fragment, other: &Fragment) -> bool {
    if one == other {
        return true;
    }
    let (Ok(one), Ok(other)) = (Document::written(one.as_str()), Document::written(other.as_str())) else {
        return false;
    };
    difference_of_nodes(one.root(), other.root()).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: &str = r#"<wsag:AgreementOffer xmlns:wsag="http://schemas.ggf.org/graap/2007/03/ws-agreement"><wsag:Context><wsag:ServiceProvider>AgreementResponder</wsag:ServiceProvider></wsag:Context><wsag:Terms><wsag:All><wsag:ServiceDescriptionTerm wsag:Name="T" wsag:ServiceName="S"><arp:AllocationTimeConstraint xmlns:arp="http://www.ogf.org/graap/AR/2009/04/"><arp:StartTime>2026-01-10T08:00:00Z</arp:StartTime><arp:Duration>60</arp:Duration></arp:AllocationTimeConstraint></wsag:ServiceDescriptionTerm></wsag:All></wsag:Terms></wsag:AgreementOffer>"#;

    fn compare(sent: &str) -> Option<Violation> {
        let sent = Document::parse(sent.as_bytes()).expect("a document");
        let offered = Document::parse(OFFER.as_bytes()).expect("a document");
        first_difference(&sent, &offered)
    }

    #[test]
    fn what_is_written_in_another_way_is_the_same() {
        for (from, to) in [
            ("", ""),
            ("<wsag:Terms>", "\n  <!-- as offered --><wsag:Terms>\n"),
            ("arp:", "a:"),
            ("2026-01-10T08:00:00Z", "2026-01-10T09:00:00+01:00"),
            ("60", " 060 "),
            (
                r#"wsag:Name="T" wsag:ServiceName="S""#,
                r#"wsag:ServiceName="S" wsag:Name="T""#,
            ),
        ] {
            let sent = OFFER
                .replace(from, to)
                .replace("xmlns:arp", if from == "arp:" { "xmlns:a" } else { "xmlns:arp" });
            assert_eq!(compare(&sent), None, "{from:?} as {to:?}");
        }
    }

    #[test]
    fn white_space_counts_where_the_type_says_so() {
        let argument = |namespace: &str, local: &str, text: &str| {
            let text = format!("<a:{local} xmlns:a=\"{namespace}\">{text}</a:{local}>");
            Fragment::parse(&text).expect("an element")
        };
        for (namespace, local, one, other, is_same) in [
            (JSDL_POSIX, "Argument", "a  b", "a b", false),
            (JSDL_POSIX, "Argument", "a b", "a b ", false),
            (JSDL_POSIX, "Argument", "a\tb", "a b", true),
            (JSDL_POSIX, "Argument", "1", "1.0", false),
            (JSDL, "FileName", "a  b", "a b", false),
            (JSDL, "Exact", " 1 ", "1e0", true),
            (JSDL, "DeleteOnTermination", "1", "true", true),
            (BSP, "Resource", "10", "1e1", false),
            (WSAG, "TemplateId", "1", "true", false),
            ("urn:other", "Exact", " 1.0\n", "1", true),
            ("urn:other", "Exact", "1", "true", false),
            ("urn:other", "Exact", "1", "1e0", false),
            ("urn:other", "Exact", "pay<a:b/>not", "paynot<a:b/>", false),
            ("urn:other", "Exact", "a<a:b/>\n", "\na<!-- b --><a:b/>", true),
        ] {
            let (one, other) = (argument(namespace, local, one), argument(namespace, local, other));
            assert_eq!(
                fragments_compare_equal(&one, &other),
                is_same,
                "{one} and {other}"
            );
        }
    }

    #[test]
    fn foreign_content_of_a_guarantee_is_compared_in_its_canonical_form() {
        let guarantee = |custom: &str, level: &str, amount: &str| {
            let text = format!(
                r#"<wsag:AgreementOffer xmlns:wsag="{WSAG}"><wsag:Context><wsag:ServiceProvider>AgreementResponder</wsag:ServiceProvider></wsag:Context><wsag:Terms><wsag:All><wsag:GuaranteeTerm wsag:Name="G"><wsag:ServiceLevelObjective><wsag:CustomServiceLevel>{level}</wsag:CustomServiceLevel></wsag:ServiceLevelObjective><wsag:BusinessValueList><wsag:Penalty><wsag:AssessmentInterval><wsag:Count>1</wsag:Count></wsag:AssessmentInterval><wsag:ValueExpression>{amount}</wsag:ValueExpression></wsag:Penalty><wsag:CustomBusinessValue>{custom}</wsag:CustomBusinessValue></wsag:BusinessValueList></wsag:GuaranteeTerm></wsag:All></wsag:Terms></wsag:AgreementOffer>"#
            );
            let document = Document::parse(text.as_bytes()).expect("a document");
            let Ok(crate::Message::AgreementOffer(offer)) = crate::read(&document) else {
                panic!("it is no offer: {text}");
            };
            offer.terms.guarantees().next().expect("a guarantee").clone()
        };
        let custom = r#"<a:Worth xmlns:a="urn:a" kind="x" of="y"><a:Sum>1</a:Sum></a:Worth>"#;
        let one = guarantee(custom, "completed le deadline", "12.50");
        let again = r#"
            <Worth xmlns="urn:a" of="y" kind="x">
              <Sum> 1 </Sum>
            </Worth>"#;
        assert!(one.compares_equal_to(&guarantee(again, " completed le deadline ", "12.5")));
        let other = custom.replace(">1<", ">2<");
        assert!(!one.compares_equal_to(&guarantee(&other, "completed le deadline", "12.50")));
        assert!(!one.compares_equal_to(&guarantee(custom, "started le deadline", "12.50")));
        assert!(!one.compares_equal_to(&guarantee(custom, "completed le deadline", "12.51")));
    }

    #[test]
    fn what_says_something_else_is_named_with_its_place() {
        for (from, to, path) in [
            ("<arp:Duration>60", "<arp:Duration>61", "/arp:Duration"),
            (
                "<arp:Duration>60</arp:Duration>",
                "",
                "/arp:AllocationTimeConstraint",
            ),
            ("08:00:00Z", "08:00:01Z", "/arp:StartTime"),
            (
                r#"wsag:Name="T""#,
                r#"wsag:Name="U""#,
                "/wsag:ServiceDescriptionTerm",
            ),
            (
                "AgreementResponder",
                "AgreementInitiator",
                "/wsag:ServiceProvider",
            ),
            (
                "</wsag:Context>",
                "<wsag:TemplateId>1</wsag:TemplateId></wsag:Context>",
                "/wsag:TemplateId",
            ),
        ] {
            let difference = compare(&OFFER.replace(from, to)).unwrap_or_else(|| panic!("{from} is {to}"));
            assert!(difference.path.ends_with(path), "{difference:?}");
        }
    }
}
