//! Negotiation constraints: the demands of the maker of an offer on the answer (GFD.193, section 5).

use crate::constraints::steps::View;
use crate::constraints::{ITEMS_MAX, Item, Report, is_broken, terms_of};
use crate::document::Document;
use crate::expression::{Parsed, Variables};
use crate::negotiations::{NegotiationConstraints, NegotiationItem, Requirement};
use crate::rules;
use crate::violation::{Violation, ViolationKind, shortened};

/// The negotiation constraints of an offer, made ready to check answers to it.
///
/// They come from a stranger, and so does the answer perhaps: the work of comparing them is counted.
pub struct CompiledConstraints {
    items: Vec<(Requirement, Option<i64>, Item)>,
    constraints: Vec<(String, Parsed)>,
    problems: Vec<Violation>,
}

/// How an answer does against one negotiation constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
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
        if constraints.items.len() + constraints.constraints.len() > ITEMS_MAX {
            compiled.problem(
                "",
                format!("an offer may have {ITEMS_MAX} items and constraints at most"),
            );
            return compiled;
        }
        let items = constraints.items.len();
        for (nth, item) in constraints.items.iter().enumerate() {
            match compile_item(item) {
                Ok(read) => compiled.items.push((item.requirement, item.importance, read)),
                Err(message) => {
                    let message = format!("item {:?}: {message}", shortened(&item.name));
                    compiled.problem(&placed("Item", nth, items), message);
                }
            }
        }
        let variables = Variables::predefined();
        let expressions = constraints.constraints.len();
        for (nth, expression) in constraints.constraints.iter().enumerate() {
            let text = expression.text.trim().to_owned();
            match Parsed::of(expression, &variables) {
                Ok(parsed) => compiled.constraints.push((text, parsed)),
                Err(error) => {
                    let message = format!("{:?} cannot be evaluated: {error}", shortened(&text));
                    compiled.problem(&placed("Constraint", nth, expressions), message);
                }
            }
        }
        compiled
    }

    fn problem(&mut self, below: &str, message: String) {
        let path = format!("/wsag-neg:NegotiationConstraints{below}");
        self.problems.push(Violation {
            path,
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
    pub fn check(&self, document: &Document<'_>) -> Vec<Outcome> {
        let Some(offer) = rules::offers(document).into_iter().next() else {
            return Vec::new();
        };
        let view = View::new(offer);
        let items = self.items.iter().map(|(requirement, importance, item)| {
            let mut violations = Vec::new();
            item.check(
                &view,
                &mut Report {
                    found: &mut violations,
                },
            );
            Outcome {
                name: item.name.clone(),
                requirement: *requirement,
                importance: *importance,
                violations,
            }
        });
        let terms = terms_of(offer);
        let ways = terms.alternatives();
        let constraints = self.constraints.iter().map(|(text, constraint)| {
            let broken = is_broken(constraint, ways.as_deref());
            let violation = || Violation {
                path: offer.path(),
                kind: ViolationKind::Constraint,
                message: format!("the offer that is answered demands: {text}"),
            };
            Outcome {
                name: text.clone(),
                requirement: Requirement::Required,
                importance: None,
                violations: broken.then(violation).into_iter().collect(),
            }
        });
        items.chain(constraints).collect()
    }
}

/// The path of a constraint below the element that has them: with its position where there are several of its name.
fn placed(local: &str, nth: usize, count: usize) -> String {
    let position = if count > 1 {
        format!("[{}]", nth + 1)
    } else {
        String::new()
    };
    format!("/wsag-neg:{local}{position}")
}

fn compile_item(item: &NegotiationItem) -> Result<Item, String> {
    let document = Document::written(item.source.as_str()).map_err(|error| error.to_string())?;
    let node = document.root().ok_or("it is empty")?;
    Item::read(node)
}
