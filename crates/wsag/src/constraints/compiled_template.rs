//! The creation constraints of a template, made ready to check offers.

use crate::constraints::bindings::Bindings;
use crate::constraints::constraint::Constraint;
use crate::constraints::item::{ITEMS_MAX, Item};
use crate::constraints::particles::unknown_type_of_particle;
use crate::constraints::types::is_annotation;
use crate::constraints::view::View;
use crate::expression::{Expression, Variables};
use crate::templates::Template;
use crate::terms::Alternative;
use crate::xml::ns::{BSP, WSAG};
use crate::xml::{
    Document, DocumentCheck, Node, UnchosenTerms, Violation, ViolationKind, collapse_space,
    shorten_text_in_violation,
};

/// A template made ready to check offers.
pub struct CompiledTemplate {
    id: String,
    name: Option<String>,
    items: Vec<Item>,
    constraints: Vec<Constraint>,
    bindings: Bindings,
    unbound: Vec<String>,
    unknown_types: Vec<String>,
    problems: Vec<Violation>,
}

impl CompiledTemplate {
    /// Compiles the constraints of a template.
    pub fn compile(template: &Template) -> CompiledTemplate {
        let mut compiled = CompiledTemplate {
            id: template.template_id.clone(),
            name: template.name.clone(),
            items: Vec::new(),
            constraints: Vec::new(),
            bindings: Bindings::default(),
            unbound: Vec::new(),
            unknown_types: Vec::new(),
            problems: Vec::new(),
        };
        // The fragment was cut from a document that passed the guard; if it did not parse, no offer may pass.
        match Document::written(template.source.as_str()) {
            Ok(document) => {
                (compiled.bindings, compiled.unbound) = Bindings::read(document.root(), &template.terms);
                if let Some(node) = document.root().child(WSAG, "CreationConstraints") {
                    compiled.unknown_types = unknown_types_of_template(node);
                    compiled.read(node);
                }
            }
            Err(error) => compiled.problem("/wsag:Template".to_owned(), error.to_string()),
        }
        compiled
    }

    fn read(&mut self, constraints: Node<'_>) {
        let mut variables = Variables::of_offers();
        self.bindings.add_to(&mut variables, true);
        for (index, node) in constraints.children().enumerate() {
            if index == ITEMS_MAX {
                let message = format!("a template may have {ITEMS_MAX} items and constraints at most");
                return self.problem(node.path(), message);
            }
            let read = if node.local() == "Item" {
                Item::read(node).map(|item| self.items.push(item))
            } else {
                let expression = Expression {
                    text: node.text().trim().to_owned(),
                    dialect: node.attribute(BSP, "dialect").map(str::to_owned),
                };
                let read = Constraint::read(&expression, &variables);
                read.map(|constraint| self.constraints.push(constraint))
                    .map_err(|message| format!("the Constraint {message}"))
            };
            if let Err(message) = read {
                self.problem(node.path(), message);
            }
        }
    }

    fn problem(&mut self, path: String, message: String) {
        let kind = ViolationKind::NotEvaluable;
        self.problems.push(Violation { path, kind, message });
    }

    /// The items of the template that cannot be evaluated, with paths into the template. Every offer is refused for each.
    pub fn problems(&self) -> &[Violation] {
        &self.problems
    }

    /// The variables of the template's service properties that cannot be bound. A template that has some is not to be offered.
    pub fn unbound(&self) -> &[String] {
        &self.unbound
    }

    /// The types that the template names in its creation constraints and that are not known, each with its place. A template
    /// that has some is not to be offered: every offer would be refused for what the provider wrote.
    pub fn unknown_types(&self) -> &[String] {
        &self.unknown_types
    }

    /// The items that no value can meet, since their facets contradict each other, each with the reason. A template that has some is not
    /// to be offered.
    pub fn contradictions(&self) -> Vec<String> {
        let why = |item: &Item| {
            let why = item.contradiction()?;
            Some(format!("item {:?}: {why}", shorten_text_in_violation(&item.name)))
        };
        self.items.iter().filter_map(why).collect()
    }

    /// An objective or a condition of the template as it holds for the agreement of one way to read the first offer in a document: its variables
    /// replaced by predefined ones, and by what the offer says.
    ///
    /// # Errors
    /// Which variable has no value in the offer, or several.
    pub fn bound(
        &self,
        text: &str,
        document: &Document<'_>,
        left_out: &UnchosenTerms,
    ) -> Result<String, String> {
        self.bindings.of_agreement(text, document, left_out)
    }

    /// Checks the offer in a document that [`crate::read`] has accepted: a bare offer, or one in an input. The
    /// result is empty where the offer meets the template, a choice in it with every member.
    pub fn check(&self, document: &Document<'_>) -> Vec<Violation> {
        let mut check = DocumentCheck::default();
        for offer in document.offers() {
            let view = View::new(offer, None);
            let terms = view.terms();
            self.check_offer(&view, terms.alternatives().as_deref(), &mut check);
        }
        check.into_violations()
    }

    /// Checks one way to read the offer, as if it had no other terms: the constraints on the whole by its values, the items by the
    /// document without the terms that it leaves out.
    pub fn check_way(
        &self,
        document: &Document<'_>,
        way: &Alternative<'_>,
        left_out: &UnchosenTerms,
    ) -> Vec<Violation> {
        let mut check = DocumentCheck::default();
        for offer in document.offers() {
            let view = View::new(offer, Some(left_out));
            self.check_offer(&view, Some(std::slice::from_ref(way)), &mut check);
        }
        check.into_violations()
    }

    fn check_offer(&self, view: &View<'_>, ways: Option<&[Alternative<'_>]>, check: &mut DocumentCheck) {
        let offer = view.offer();
        self.check_context(offer, check);
        for problem in &self.problems {
            let message = format!(
                "the template {} cannot be offered: its element {} cannot be evaluated: {}",
                self.id, problem.path, problem.message
            );
            check.add(ViolationKind::NotEvaluable, offer, message);
        }
        for item in &self.items {
            item.check(view, check);
        }
        for constraint in &self.constraints {
            if constraint.is_broken(ways, |name| self.bindings.values(view, name)) {
                let message = format!("the template demands: {}", constraint.text);
                check.add(ViolationKind::Constraint, offer, message);
            }
        }
    }

    /// An offer names its template by identity and name.
    fn check_context(&self, offer: Node<'_>, check: &mut DocumentCheck) {
        let Some(context) = offer.child(WSAG, "Context") else {
            return;
        };
        let wanted = [
            ("TemplateId", Some(self.id.as_str())),
            ("TemplateName", self.name.as_deref()),
        ];
        for (name, wanted) in wanted {
            let Some(wanted) = wanted else { continue };
            let found = context.child(WSAG, name);
            if found.is_some_and(|node| collapse_space(&node.text()) == wanted) {
                continue;
            }
            let missing = match found {
                Some(_) => String::new(),
                None => format!("wsag:{name} is missing; "),
            };
            let message = format!("{missing}{wanted} is expected");
            check.add(ViolationKind::Constraint, found.unwrap_or(context), message);
        }
    }
}

/// The types that constraints name and that are not known, each with its place. Annotations are for people. The guard bounds the
/// depth of this recursion.
fn unknown_types_of_template(node: Node<'_>) -> Vec<String> {
    let wrong = unknown_type_of_particle(node).map(|why| format!("{}: {why}", node.path()));
    let children = node.children().filter(|child| !is_annotation(*child));
    wrong
        .into_iter()
        .chain(children.flat_map(unknown_types_of_template))
        .collect()
}
