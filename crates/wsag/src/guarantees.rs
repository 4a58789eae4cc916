//! Guarantee terms: the side that owes them, when they count, and their values (GFD.192, section 4.2.6).

use crate::datatypes;
use crate::document::{Fragment, Node};
use crate::job::write_double;
use crate::ns::{BSP, WSAG};
use crate::reader::{Check, Sequence, fragments};
use crate::scheduling::count;
use crate::terms::token;
use crate::time::Duration;
use crate::writer::Xml;

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

/// A text in an expression language, read by [`crate::expression`] where it is in ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The text as it stands.
    pub text: String,
    /// `bsp:dialect`; absent means our own.
    pub dialect: Option<String>,
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

/// Reads the term; None only after a violation was added.
pub(crate) fn read(check: &mut Check, node: Node<'_>) -> Option<GuaranteeTerm> {
    check.attributes(node, &[(WSAG, "Name"), (WSAG, "Obligated")]);
    let name = check.required_attribute(node, (WSAG, "Name"), token);
    let obligated = check.required_attribute(node, (WSAG, "Obligated"), |text| match text {
        "ServiceConsumer" => Ok(Obligated::ServiceConsumer),
        "ServiceProvider" => Ok(Obligated::ServiceProvider),
        _ => Err("ServiceConsumer or ServiceProvider is expected".to_owned()),
    });
    let mut sequence = Sequence::of(check, node);
    let scopes = sequence.many(WSAG, "ServiceScope");
    let condition = sequence.optional(WSAG, "QualifyingCondition");
    let objective = sequence.required(check, WSAG, "ServiceLevelObjective");
    let values = sequence.required(check, WSAG, "BusinessValueList");
    sequence.end(check);
    let scopes: Vec<String> = scopes
        .into_iter()
        .filter_map(|node| read_scope(check, node))
        .collect();
    let condition = condition.map(|node| read_expression(check, node));
    let objective = objective.and_then(|node| read_objective(check, node));
    let values = values.map(|node| read_values(check, node));
    Some(GuaranteeTerm {
        name: name?,
        obligated: obligated?,
        scopes,
        qualifying_condition: condition.flatten(),
        objective: objective?,
        values: values?,
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
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    if let Some(target) = sequence.optional(WSAG, "KPITarget") {
        sequence.end(check);
        check.attributes(target, &[]);
        let mut sequence = Sequence::of(check, target);
        let name = sequence
            .required(check, WSAG, "KPIName")
            .and_then(|node| check.string(node));
        let level = sequence.required(check, WSAG, "CustomServiceLevel");
        sequence.end(check);
        let level = level.and_then(|node| read_expression(check, node));
        return Some(ServiceLevelObjective {
            kpi_name: Some(name?),
            level: level?,
        });
    }
    let level = sequence.required(check, WSAG, "CustomServiceLevel");
    sequence.end(check);
    let level = read_expression(check, level?)?;
    Some(ServiceLevelObjective {
        kpi_name: None,
        level,
    })
}

fn read_values(check: &mut Check, node: Node<'_>) -> BusinessValueList {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let importance = sequence.optional(WSAG, "Importance");
    let penalties = sequence.many(WSAG, "Penalty");
    let rewards = sequence.many(WSAG, "Reward");
    let preference = sequence.optional(WSAG, "Preference");
    let custom = sequence.many(WSAG, "CustomBusinessValue");
    sequence.end(check);
    BusinessValueList {
        importance: importance.and_then(|node| {
            check.simple(node, |text| {
                datatypes::integer(text).ok_or_else(|| "a whole number is expected".to_owned())
            })
        }),
        penalties: penalties
            .into_iter()
            .filter_map(|node| read_compensation(check, node))
            .collect(),
        rewards: rewards
            .into_iter()
            .filter_map(|node| read_compensation(check, node))
            .collect(),
        preference: preference
            .map(|node| read_preference(check, node))
            .unwrap_or_default(),
        custom: fragments(&custom),
    }
}

fn read_compensation(check: &mut Check, node: Node<'_>) -> Option<Compensation> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let interval = sequence.required(check, WSAG, "AssessmentInterval");
    let unit = sequence
        .optional(WSAG, "ValueUnit")
        .and_then(|node| check.string(node));
    let value = sequence.required(check, WSAG, "ValueExpression");
    sequence.end(check);
    let interval = interval.and_then(|node| read_interval(check, node));
    let value = value.and_then(|node| read_expression(check, node));
    Some(Compensation {
        interval: interval?,
        unit,
        value: value?,
    })
}

fn read_interval(check: &mut Check, node: Node<'_>) -> Option<AssessmentInterval> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let found = match sequence.optional(WSAG, "TimeInterval") {
        Some(node) => {
            let time = check.simple(node, |text| {
                text.parse::<Duration>().map_err(|error| error.to_string())
            });
            time.map(AssessmentInterval::Time)
        }
        None => sequence
            .required(check, WSAG, "Count")
            .and_then(|node| check.simple(node, count))
            .map(AssessmentInterval::Count),
    };
    sequence.end(check);
    found
}

fn read_preference(check: &mut Check, node: Node<'_>) -> Vec<(String, f64)> {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let mut found = Vec::new();
    let mut term = sequence.required(check, WSAG, "ServiceTermReference");
    while let Some(node) = term {
        let Some(utility) = sequence.required(check, WSAG, "Utility") else {
            break;
        };
        let name = check.simple(node, token);
        let utility = check.simple(utility, crate::job::double);
        found.extend(name.zip(utility));
        term = sequence.next_of(WSAG, "ServiceTermReference");
    }
    sequence.end(check);
    found
}

/// Writes the term; the namespaces wsag and bsp must be declared above it.
pub(crate) fn write(xml: &mut Xml, term: &GuaranteeTerm) {
    xml.start("wsag:GuaranteeTerm");
    xml.attribute("wsag:Name", &term.name);
    xml.attribute(
        "wsag:Obligated",
        match term.obligated {
            Obligated::ServiceConsumer => "ServiceConsumer",
            Obligated::ServiceProvider => "ServiceProvider",
        },
    );
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
