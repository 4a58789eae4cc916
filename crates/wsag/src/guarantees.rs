//! Guarantee terms: the side that owes them, when they count, and their values (GFD.192, section 4.2.6).

use serde::{Deserialize, Serialize};

use crate::expression::Expression;
use crate::xml::datatypes::{parse_double, parse_integer, parse_positive_integer, parse_token};
use crate::xml::double::Double;
use crate::xml::ns::WSAG;
use crate::xml::{
    DocumentCheck, Duration, Fragment, Node, Readable, WrittenValue, Xml, element, named_values, read_simple,
    written,
};

written! {
    /// `wsag:GuaranteeTerm`. The namespaces wsag and bsp must be declared above it.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct GuaranteeTerm {
        /// Name of the term.
        pub name: String = @"wsag:Name",
        /// The side that owes it; the provider where the term names none.
        pub obligated: Obligated = @"wsag:Obligated",
        /// The services that it is about.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub scopes: Vec<ServiceScope> = "wsag:ServiceScope",
        /// When it counts; always, where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub qualifying_condition: Option<Expression> = "wsag:QualifyingCondition",
        /// Its objective.
        pub objective: ServiceLevelObjective = "wsag:ServiceLevelObjective",
        /// Its values.
        pub values: BusinessValueList = "wsag:BusinessValueList",
    }
}

element! {
    /// `wsag:ServiceScope`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ServiceScope {
        /// Name of the service; every service of the agreement, where it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub service_name: Option<String> = @"wsag:ServiceName" by parse_token,
        /// Parts of the service, verbatim.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub parts: Vec<Fragment> = "wsag:*",
    }
}

named_values! {
    /// The side that a guarantee binds.
    pub enum Obligated {
        /// The side that uses the service.
        ServiceConsumer = "ServiceConsumer",
        /// The side that provides it.
        ServiceProvider = "ServiceProvider",
    }
}

/// `wsag:ServiceLevelObjective`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceLevelObjective {
    /// `KPITarget/KPIName`, where the objective is a target of a named indicator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kpi_name: Option<String>,
    /// `CustomServiceLevel`.
    pub level: Expression,
}

element! {
    /// `wsag:BusinessValueList`.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    pub struct BusinessValueList {
        /// Relative importance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub importance: Option<i64> = "wsag:Importance" by parse_integer,
        /// The payments when it is violated.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub penalties: Vec<Compensation> = "wsag:Penalty",
        /// The payments when it is fulfilled.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub rewards: Vec<Compensation> = "wsag:Reward",
        /// Utility of single terms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub preference: Option<GuaranteeUtilities> = "wsag:Preference",
        /// Values in other languages, verbatim.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub custom: Vec<Fragment> = "wsag:CustomBusinessValue",
    }
}

/// `wsag:Preference`: terms by their names, and the utility of each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "Vec<(String, Double)>", from = "Vec<(String, Double)>")]
pub struct GuaranteeUtilities(pub Vec<(String, f64)>);

impl From<GuaranteeUtilities> for Vec<(String, Double)> {
    fn from(GuaranteeUtilities(all): GuaranteeUtilities) -> Vec<(String, Double)> {
        all.into_iter()
            .map(|(term, utility)| (term, utility.into()))
            .collect()
    }
}

impl From<Vec<(String, Double)>> for GuaranteeUtilities {
    fn from(all: Vec<(String, Double)>) -> GuaranteeUtilities {
        GuaranteeUtilities(
            all.into_iter()
                .map(|(term, utility)| (term, utility.into()))
                .collect(),
        )
    }
}

element! {
    /// `wsag:Penalty` or `wsag:Reward`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Compensation {
        /// How often it is assessed.
        pub interval: AssessmentInterval = "wsag:AssessmentInterval",
        /// Currency or other unit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub unit: Option<String> = "wsag:ValueUnit",
        /// The amount.
        pub value: Expression = "wsag:ValueExpression",
    }
}

/// `wsag:AssessmentInterval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AssessmentInterval {
    /// Once in each such time.
    Time(Duration),
    /// Once in this number of invocations.
    Count(u32),
}

impl Readable for GuaranteeTerm {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<GuaranteeTerm> {
        check.attributes(node, &[(WSAG, "Name"), (WSAG, "Obligated")]);
        let name = check.required_attribute(node, (WSAG, "Name"), parse_token);
        let obligated = match node.attribute(WSAG, "Obligated") {
            Some(_) => check.read_named(node, (WSAG, "Obligated")),
            None => Some(Obligated::ServiceProvider),
        };
        check.children_only(node, |children| {
            let scopes = children.many(WSAG, "ServiceScope", Readable::read);
            let qualifying_condition = children.optional(WSAG, "QualifyingCondition", Expression::read);
            let objective = children.required(WSAG, "ServiceLevelObjective", Readable::read);
            let values = children.required(WSAG, "BusinessValueList", Readable::read);
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
}

impl Readable for ServiceLevelObjective {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<ServiceLevelObjective> {
        check.children(node, |children| match children.take(WSAG, "KPITarget") {
            Some(target) => read_target_of_guarantee(children.check, target),
            None => Some(ServiceLevelObjective {
                kpi_name: None,
                level: children.required(WSAG, "CustomServiceLevel", Expression::read)?,
            }),
        })
    }
}

/// `wsag:KPITarget`.
pub(crate) fn read_target_of_guarantee(
    check: &mut DocumentCheck,
    node: Node<'_>,
) -> Option<ServiceLevelObjective> {
    check.children(node, |children| {
        let name = children.required(WSAG, "KPIName", DocumentCheck::string);
        let level = children.required(WSAG, "CustomServiceLevel", Expression::read);
        Some(ServiceLevelObjective {
            kpi_name: Some(name?),
            level: level?,
        })
    })
}

impl WrittenValue for ServiceLevelObjective {
    fn write(&self, xml: &mut Xml) {
        if let Some(name) = &self.kpi_name {
            xml.start("wsag:KPITarget");
            xml.add("wsag:KPIName", name);
            xml.add("wsag:CustomServiceLevel", &self.level);
            xml.end();
        } else {
            xml.add("wsag:CustomServiceLevel", &self.level);
        }
    }
}

impl Readable for GuaranteeUtilities {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<GuaranteeUtilities> {
        check.children(node, |children| {
            let mut found = Vec::new();
            let mut term = children.take_required(WSAG, "ServiceTermReference");
            while let Some(node) = term {
                let name = read_simple(parse_token)(children.check, node);
                let utility = children.required(WSAG, "Utility", read_simple(parse_double));
                found.extend(name.zip(utility));
                term = children.take_next(WSAG, "ServiceTermReference");
            }
            Some(GuaranteeUtilities(found))
        })
    }
}

impl WrittenValue for GuaranteeUtilities {
    fn write(&self, xml: &mut Xml) {
        for (term, utility) in &self.0 {
            xml.add("wsag:ServiceTermReference", term);
            xml.add("wsag:Utility", utility);
        }
    }
}

impl Readable for AssessmentInterval {
    fn read(check: &mut DocumentCheck, node: Node<'_>) -> Option<AssessmentInterval> {
        check.children(node, |children| match children.take(WSAG, "TimeInterval") {
            Some(node) => read_simple(str::parse)(children.check, node).map(AssessmentInterval::Time),
            None => children
                .required(WSAG, "Count", read_simple(parse_positive_integer))
                .map(AssessmentInterval::Count),
        })
    }
}

impl WrittenValue for AssessmentInterval {
    fn write(&self, xml: &mut Xml) {
        match self {
            AssessmentInterval::Time(time) => xml.add("wsag:TimeInterval", time),
            AssessmentInterval::Count(count) => xml.add("wsag:Count", count),
        }
    }
}
