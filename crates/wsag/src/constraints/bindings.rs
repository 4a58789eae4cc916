//! The variables of service properties, bound to what their Locations select (GFD.192, section 4.2.5).
//!
//! A Location in the state of a service, or of its number of nodes, is bound to what is observed of the agreement: one of the
//! predefined variables. Any other is bound to what the offer says there, which is what the agreement says.

use crate::constraints::location;
use crate::constraints::steps::{StepKind, StepPaths};
use crate::constraints::view::View;
use crate::expression::{
    ExpressionValue, ValueKind, Variables, is_variable, replace_variables_in_expression,
};
use crate::terms::{Terms, other_contents_of_terms};
use crate::xml::ns::{ARP, BSP, JSDL, WSAG};
use crate::xml::{Document, Node, UnchosenTerms, collapse_space, shorten_text_in_violation};

/// What is observed of a service, and the predefined variable that has it.
const OBSERVED: [(&str, &str, &str); 8] = [
    (JSDL, "TotalResourceCount", "nodes"),
    (ARP, "StartTime", "started"),
    (ARP, "EndTime", "completed"),
    (ARP, "Duration", "granted"),
    (BSP, "PlannedStart", "planned_start"),
    (BSP, "Started", "started"),
    (BSP, "Ended", "completed"),
    (BSP, "Nodes", "nodes"),
];

/// The variables of a template that are not predefined.
#[derive(Default)]
pub(crate) struct Bindings(Vec<Binding>);

struct Binding {
    name: String,
    /// The error is its metric, where values of it cannot be compared: an expression with it cannot be evaluated.
    kind: Result<ValueKind, String>,
    to: Bound,
}

enum Bound {
    Predefined(&'static str),
    Said(StepPaths),
}

impl Bindings {
    /// The variables of the service properties in a template or in terms, and why others cannot be bound.
    pub(crate) fn read(template: Node<'_>, terms: &Terms) -> (Bindings, Vec<String>) {
        let (mut bindings, mut wrong) = (Bindings::default(), Vec::new());
        let others = other_contents_of_terms(template);
        let nodes = template.descendants();
        let nodes = nodes.filter(|node| node.is(WSAG, "Variable") && !others.has(*node));
        let variables = terms.properties().flat_map(|properties| &properties.variables);
        for (node, variable) in nodes.zip(variables) {
            // Nothing can name a variable without a name.
            let Some(name) = &variable.name else { continue };
            match bindings.bind(name, variable.metric.as_deref(), &variable.location, node) {
                Ok(binding) => bindings.0.extend(binding),
                Err(why) => wrong.push(format!(
                    "the variable {:?} cannot be bound: {why}",
                    shorten_text_in_violation(name)
                )),
            }
        }
        (bindings, wrong)
    }

    fn bind(
        &self,
        name: &str,
        metric: Option<&str>,
        location: &str,
        node: Node<'_>,
    ) -> Result<Option<Binding>, String> {
        let paths = location::compile_location(location, node)?;
        let kind = metric.and_then(ValueKind::of_metric);
        let predefined = |text: &str| Variables::predefined().kind(text).ok();
        let binding = match predefined_variable_of_binding(&paths)? {
            Some(selected) => {
                let observed = predefined(selected).filter(|is| kind.is_none_or(|kind| kind == *is));
                let kind = observed.ok_or_else(|| {
                    format!("its Location is bound to {selected}, which has another metric")
                })?;
                Binding {
                    name: name.to_owned(),
                    kind: Ok(kind),
                    to: Bound::Predefined(selected),
                }
            }
            None => Binding {
                name: name.to_owned(),
                kind: kind.ok_or_else(|| metric.unwrap_or("none").to_owned()),
                to: Bound::Said(paths),
            },
        };
        if predefined(name).is_some() {
            let same = matches!(binding.to, Bound::Predefined(predefined) if predefined == name);
            return if same {
                Ok(None)
            } else {
                Err("its name has a meaning of its own".to_owned())
            };
        }
        if !is_variable(name) {
            return Err("its name is a letter and then letters, digits, '_', '-', '.' or ':'".to_owned());
        }
        if self.0.iter().any(|other| other.name == name) {
            return Err("another variable has this name".to_owned());
        }
        Ok(Some(binding))
    }

    /// Adds the variables for the constraints or conditions of the template.
    pub(crate) fn add_to(&self, variables: &mut Variables, of_offers: bool) {
        for binding in &self.0 {
            if !of_offers
                || !matches!(binding.to, Bound::Predefined(predefined) if variables.kind(predefined).is_err())
            {
                match &binding.kind {
                    Ok(kind) => variables.add_kind(&binding.name, *kind),
                    Err(metric) => variables.add(&binding.name, metric),
                }
            }
        }
    }

    /// The predefined variable that a variable is another name for, or the values that an offer says for it.
    pub(super) fn values<'b>(&'b self, view: &View<'_>, name: &str) -> Option<Values<'b>> {
        let binding = self.0.iter().find(|binding| binding.name == name)?;
        Some(match (&binding.to, &binding.kind) {
            (Bound::Predefined(predefined), _) => Values::Of(predefined),
            (Bound::Said(paths), Ok(kind)) => Values::Said(values_of_binding(paths, *kind, view)),
            (Bound::Said(_), Err(metric)) => Values::Said(Err(format!(
                "its metric {} cannot be compared",
                shorten_text_in_violation(metric)
            ))),
        })
    }

    /// An expression of the template as it holds for the agreement of one way to read this offer: its variables replaced by predefined ones and
    /// by what the offer says.
    ///
    /// # Errors
    /// Which variable has no value, or several.
    pub(super) fn of_agreement(
        &self,
        text: &str,
        document: &Document<'_>,
        left_out: &UnchosenTerms,
    ) -> Result<String, String> {
        let Some(offer) = document.offers().into_iter().next() else {
            return Ok(text.to_owned());
        };
        let view = View::new(offer, Some(left_out));
        replace_variables_in_expression(text, |name| match self.values(&view, name) {
            None => Ok(None),
            Some(Values::Of(other)) => Ok(Some(other.to_owned())),
            Some(Values::Said(values)) => match &values?[..] {
                [first, rest @ ..] if rest.iter().all(|other| other == first) => Ok(Some(first.to_string())),
                found => Err(format!(
                    "the variable {name} is one value of the offer, and its Location selects {}",
                    found.len()
                )),
            },
        })
    }
}

/// What stands for a variable.
pub(super) enum Values<'b> {
    /// Another variable.
    Of(&'b str),
    /// All that the offer says.
    Said(Result<Vec<ExpressionValue>, String>),
}

fn values_of_binding(
    paths: &StepPaths,
    kind: ValueKind,
    view: &View<'_>,
) -> Result<Vec<ExpressionValue>, String> {
    let selected = paths.select(view)?;
    // What a term in an unknown language says decides nothing, whatever it is called there.
    let known = selected.iter().filter(|selected| !view.is_foreign(selected));
    let values = known.map(|selected| {
        let text = selected.value();
        ExpressionValue::parse(&collapse_space(&text), kind).ok_or_else(|| {
            format!(
                "{:?} is not {}",
                shorten_text_in_violation(&text),
                crate::xml::NamedValue::name(kind)
            )
        })
    });
    values.collect()
}

/// The predefined variable of a Location; none where it is about what the offer says.
///
/// # Errors
/// That nothing is observed there.
fn predefined_variable_of_binding(paths: &StepPaths) -> Result<Option<&'static str>, String> {
    let mut found = Vec::new();
    for path in &paths.0 {
        let named = path.iter().filter(|step| step.kind == StepKind::Element);
        let named: Vec<(&str, &str)> = named
            .map(|step| {
                let (namespace, local) = step.test.meant();
                (namespace.unwrap_or_default(), local.unwrap_or_default())
            })
            .collect();
        let of_state = named.iter().any(|(_, local)| *local == "ServiceTermState");
        let last = named.iter().rev().find(|name| **name != (JSDL, "Exact"));
        let known = OBSERVED
            .iter()
            .find(|(ns, local, _)| last == Some(&(*ns, *local)));
        found.push(match known {
            Some((.., variable)) if of_state || *variable == "nodes" => Some(*variable),
            _ if of_state => {
                let known: Vec<&str> = OBSERVED.iter().map(|(_, local, _)| *local).collect();
                return Err(format!("of a service's state {} are observed", known.join(", ")));
            }
            _ => None,
        });
    }
    let first = found.first().copied().flatten();
    let same = found.iter().all(|found| *found == first);
    same.then_some(first)
        .ok_or_else(|| "its Location is about several things".to_owned())
}
