//! Negotiation constraints (GFD.193, section 5), made ready to check answers.

use crate::constraints::constraint::Constraint;
use crate::constraints::item::{ITEMS_MAX, Item};
use crate::constraints::view::View;
use crate::expression::Variables;
use crate::negotiations::{NegotiationConstraints, NegotiationItem, Requirement};
use crate::xml::{Document, DocumentCheck, Violation, ViolationKind, shorten_text_in_violation};

/// The negotiation constraints of an offer, made ready to check answers to it.
///
/// They come from a stranger, and so does the answer perhaps: the work of comparing them is counted.
pub struct CompiledConstraints {
    items: Vec<(Requirement, Option<i64>, Item)>,
    constraints: Vec<Constraint>,
    problems: Vec<Violation>,
}

/// How an answer does against one negotiation constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstraintOutcome {
    /// Name of the item, or the text of a constraint on the whole.
    pub name: String,
    /// Whether it must be met; a constraint on the whole must.
    pub requirement: Requirement,
    /// How much it weighs.
    pub importance: Option<i64>,
    /// Where the answer does not meet it; empty where it does.
    pub violations: Vec<Violation>,
}

impl CompiledConstraints {
    /// Compiles the constraints of one offer. Expressions may use the predefined variables.
    pub fn compile(constraints: &NegotiationConstraints) -> CompiledConstraints {
        let mut compiled = CompiledConstraints {
            items: Vec::new(),
            constraints: Vec::new(),
            problems: Vec::new(),
        };
        let (items, expressions) = (&constraints.items, &constraints.constraints);
        if items.len() + expressions.len() > ITEMS_MAX {
            let message = format!("an offer may have {ITEMS_MAX} items and constraints at most");
            compiled.problem("", message);
            return compiled;
        }
        for (nth, item) in items.iter().enumerate() {
            match compile_constraint_item(item) {
                Ok(read) => compiled.items.push((item.requirement, item.importance, read)),
                Err(message) => {
                    let message = format!("item {:?}: {message}", shorten_text_in_violation(&item.name));
                    compiled.problem(
                        &path_of_compiled_constraint("wsag-neg:Item", nth, items.len()),
                        message,
                    );
                }
            }
        }
        let variables = Variables::predefined();
        for (nth, expression) in expressions.iter().enumerate() {
            match Constraint::read(expression, &variables) {
                Ok(constraint) => compiled.constraints.push(constraint),
                Err(message) => compiled.problem(
                    &path_of_compiled_constraint("wsag:Constraint", nth, expressions.len()),
                    message,
                ),
            }
        }
        compiled
    }

    fn problem(&mut self, below: &str, message: String) {
        self.problems.push(Violation {
            path: format!("/wsag-neg:NegotiationConstraints{below}"),
            kind: ViolationKind::NotEvaluable,
            message,
        });
    }

    /// The constraints that cannot be evaluated, with paths from the constraints on. The offer that carries them is to be
    /// refused.
    pub fn problems(&self) -> &[Violation] {
        &self.problems
    }

    /// Checks the first offer of a document, in any message, against every constraint.
    pub fn check(&self, document: &Document<'_>) -> Vec<ConstraintOutcome> {
        let Some(offer) = document.offers().into_iter().next() else {
            return Vec::new();
        };
        let view = View::new(offer, None);
        let items = self.items.iter().map(|(requirement, importance, item)| {
            let mut check = DocumentCheck::default();
            item.check(&view, &mut check);
            ConstraintOutcome {
                name: item.name.clone(),
                requirement: *requirement,
                importance: *importance,
                violations: check.into_violations(),
            }
        });
        let terms = view.terms();
        let ways = terms.alternatives();
        let constraints = self.constraints.iter().map(|constraint| {
            let mut check = DocumentCheck::default();
            if constraint.is_broken(ways.as_deref(), |_| None) {
                let message = format!("the offer that is answered demands: {}", constraint.text);
                check.add(ViolationKind::Constraint, offer, message);
            }
            ConstraintOutcome {
                name: constraint.text.clone(),
                requirement: Requirement::Required,
                importance: None,
                violations: check.into_violations(),
            }
        });
        items.chain(constraints).collect()
    }
}

/// The path of a constraint below the element that has them: with its position where there are several of its name.
fn path_of_compiled_constraint(name: &str, nth: usize, count: usize) -> String {
    let position = if count > 1 {
        format!("[{}]", nth + 1)
    } else {
        String::new()
    };
    format!("/{name}{position}")
}

fn compile_constraint_item(item: &NegotiationItem) -> Result<Item, String> {
    let document = Document::written(item.source.as_str()).map_err(|error| error.to_string())?;
    Item::read(document.root())
}
