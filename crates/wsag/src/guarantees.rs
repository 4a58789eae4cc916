//! Guarantee terms: the side that owes them, when they count, and their values (GFD.192, section 4.2.6).

use crate::expression::Expression;
use crate::xml::datatypes::{count, number, token, whole_number, write_double};
use crate::xml::document::Node;
use crate::xml::fragment::Fragment;
use crate::xml::names::{Named, named};
use crate::xml::ns::{BSP, WSAG};
use crate::xml::reader::{Check, simple, verbatim};
use crate::xml::time::Duration;
use crate::xml::writer::Xml;

/// `wsag:GuaranteeTerm`.
#[derive(Debug, Clone, PartialEq)]
pub struct GuaranteeTerm {
    /// Name of the term.
    pub name: String,
    /// The side that owes it.
    pub obligated: Obligated,
    /// Names of the services that it is about.
    pub scopes: Vec<String>,
    /// When it counts; always, where absent.
    pub qualifying_condition: Option<Expression>,
    /// Its objective.
    pub objective: ServiceLevelObjective,
    /// Its values.
    pub values: BusinessValueList,
}

/// The side that a guarantee binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Obligated {
    /// The side that uses the service.
    ServiceConsumer,
    /// The side that provides it.
    ServiceProvider,
}

/// `wsag:ServiceLevelObjective`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceLevelObjective {
    /// `KPITarget/KPIName`, where the objective is a target of a named indicator.
    pub kpi_name: Option<String>,
    /// `CustomServiceLevel`.
    pub level: Expression,
}

/// `wsag:BusinessValueList`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BusinessValueList {
    /// Relative importance.
    pub importance: Option<i64>,
    /// The payments when it is violated.
    pub penalties: Vec<Compensation>,
    /// The payments when it is fulfilled.
    pub rewards: Vec<Compensation>,
    /// Utility of single terms.
    pub preference: Vec<(String, f64)>,
    /// Values in other languages, verbatim.
    pub custom: Vec<Fragment>,
}

/// `wsag:Penalty` or `wsag:Reward`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compensation {
    /// How often it is assessed.
    pub interval: AssessmentInterval,
    /// Currency or other unit.
    pub unit: Option<String>,
    /// The amount.
    pub value: Expression,
}

/// `wsag:AssessmentInterval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssessmentInterval {
    /// Once in each such time.
    Time(Duration),
    /// Once in this number of invocations.
    Count(u32),
}

impl Named for Obligated {
    const NAMES: &'static [(Obligated, &'static str)] = &[
        (Obligated::ServiceConsumer, "ServiceConsumer"),
        (Obligated::ServiceProvider, "ServiceProvider"),
    ];
}

/// Reads the term; None only after a violation was added.
pub(crate) fn read(check: &mut Check, node: Node<'_>) -> Option<GuaranteeTerm> {
    check.attributes(node, &[(WSAG, "Name"), (WSAG, "Obligated")]);
    let name = check.required_attribute(node, (WSAG, "Name"), token);
    let obligated = check.required_attribute(node, (WSAG, "Obligated"), named);
    check.children_only(node, |children| {
        let scopes = children.many(WSAG, "ServiceScope", read_scope);
        let qualifying_condition = children.optional(WSAG, "QualifyingCondition", read_expression);
        let objective = children.required(WSAG, "ServiceLevelObjective", read_objective);
        let values = children.required(WSAG, "BusinessValueList", read_values);
        Some(GuaranteeTerm {
            name: name?,
            obligated: obligated?,
            scopes,
            qualifying_condition,
            objective: objective?,
            values: values?,
        })
    })
}

fn read_scope(check: &mut Check, node: Node<'_>) -> Option<String> {
    check.attributes(node, &[(WSAG, "ServiceName")]);
    if node.first_child().is_some() || !node.text().is_empty() {
        check.structure(node, "nothing may stand in it, not even white space");
    }
    check.required_attribute(node, (WSAG, "ServiceName"), token)
}

/// An expression: text, with its dialect as an attribute.
pub(crate) fn read_expression(check: &mut Check, node: Node<'_>) -> Option<Expression> {
    check.attributes(node, &[(BSP, "dialect")]);
    let dialect = node.attribute(BSP, "dialect").map(str::to_owned);
    Some(Expression {
        text: check.text_only(node)?.into_owned(),
        dialect,
    })
}

fn read_objective(check: &mut Check, node: Node<'_>) -> Option<ServiceLevelObjective> {
    check.children(node, |children| match children.take(WSAG, "KPITarget") {
        Some(target) => children.check.children(target, |children| {
            let name = children.required(WSAG, "KPIName", Check::string);
            let level = children.required(WSAG, "CustomServiceLevel", read_expression);
            Some(ServiceLevelObjective {
                kpi_name: Some(name?),
                level: level?,
            })
        }),
        None => Some(ServiceLevelObjective {
            kpi_name: None,
            level: children.required(WSAG, "CustomServiceLevel", read_expression)?,
        }),
    })
}

fn read_values(check: &mut Check, node: Node<'_>) -> Option<BusinessValueList> {
    check.children(node, |children| {
        Some(BusinessValueList {
            importance: children.optional(WSAG, "Importance", simple(whole_number)),
            penalties: children.many(WSAG, "Penalty", read_compensation),
            rewards: children.many(WSAG, "Reward", read_compensation),
            preference: children
                .optional(WSAG, "Preference", read_preference)
                .unwrap_or_default(),
            custom: children.many(WSAG, "CustomBusinessValue", verbatim),
        })
    })
}

fn read_compensation(check: &mut Check, node: Node<'_>) -> Option<Compensation> {
    check.children(node, |children| {
        let interval = children.required(WSAG, "AssessmentInterval", read_interval);
        let unit = children.optional(WSAG, "ValueUnit", Check::string);
        let value = children.required(WSAG, "ValueExpression", read_expression);
        Some(Compensation {
            interval: interval?,
            unit,
            value: value?,
        })
    })
}

fn read_interval(check: &mut Check, node: Node<'_>) -> Option<AssessmentInterval> {
    check.children(node, |children| match children.take(WSAG, "TimeInterval") {
        Some(node) => simple(str::parse)(children.check, node).map(AssessmentInterval::Time),
        None => children
            .required(WSAG, "Count", simple(count))
            .map(AssessmentInterval::Count),
    })
}

fn read_preference(check: &mut Check, node: Node<'_>) -> Option<Vec<(String, f64)>> {
    check.children(node, |children| {
        let mut found = Vec::new();
        let mut term = children.take_required(WSAG, "ServiceTermReference");
        while let Some(node) = term {
            let name = simple(token)(children.check, node);
            let utility = children.required(WSAG, "Utility", simple(number));
            found.extend(name.zip(utility));
            term = children.take_next(WSAG, "ServiceTermReference");
        }
        Some(found)
    })
}

/// Writes the term; the namespaces wsag and bsp must be declared above it.
pub(crate) fn write(xml: &mut Xml, term: &GuaranteeTerm) {
    xml.start("wsag:GuaranteeTerm");
    xml.attribute("wsag:Name", &term.name);
    xml.attribute("wsag:Obligated", term.obligated.name());
    for scope in &term.scopes {
        xml.start("wsag:ServiceScope");
        xml.attribute("wsag:ServiceName", scope);
        xml.end();
    }
    if let Some(condition) = &term.qualifying_condition {
        write_expression(xml, "wsag:QualifyingCondition", condition);
    }
    xml.start("wsag:ServiceLevelObjective");
    if let Some(name) = &term.objective.kpi_name {
        xml.start("wsag:KPITarget");
        xml.element("wsag:KPIName", name);
        write_expression(xml, "wsag:CustomServiceLevel", &term.objective.level);
        xml.end();
    } else {
        write_expression(xml, "wsag:CustomServiceLevel", &term.objective.level);
    }
    xml.end();
    write_values(xml, &term.values);
    xml.end();
}

pub(crate) fn write_expression(xml: &mut Xml, name: &'static str, expression: &Expression) {
    xml.start(name);
    xml.optional_attribute("bsp:dialect", expression.dialect.as_deref());
    xml.text(&expression.text);
    xml.end();
}

fn write_values(xml: &mut Xml, values: &BusinessValueList) {
    xml.start("wsag:BusinessValueList");
    xml.optional_element("wsag:Importance", values.importance);
    for (name, compensations) in [
        ("wsag:Penalty", &values.penalties),
        ("wsag:Reward", &values.rewards),
    ] {
        for compensation in compensations {
            xml.start(name);
            xml.start("wsag:AssessmentInterval");
            match compensation.interval {
                AssessmentInterval::Time(time) => xml.element("wsag:TimeInterval", time),
                AssessmentInterval::Count(count) => xml.element("wsag:Count", count),
            }
            xml.end();
            xml.optional_element("wsag:ValueUnit", compensation.unit.as_deref());
            write_expression(xml, "wsag:ValueExpression", &compensation.value);
            xml.end();
        }
    }
    if !values.preference.is_empty() {
        xml.start("wsag:Preference");
        for (term, utility) in &values.preference {
            xml.element("wsag:ServiceTermReference", term);
            xml.element("wsag:Utility", write_double(*utility));
        }
        xml.end();
    }
    xml.insert_all(&values.custom);
    xml.end();
}
