//! Creation constraints: the demands of a template on the offers made from it (GFD.192, section 5.1).
//!
//! Each item selects nodes of the offer by its Location. Facets and simple types hold for every selected node. An item that
//! selects nothing is met, because a particle checks presence: one that needs children must select at least one element, and its
//! children must match. A `Constraint` is an expression in our dialect over the values of the offer (`ready`, `deadline`,
//! `duration`, `nodes`); where a value is absent it decides nothing.
//!
//! A template is compiled once. An item that cannot be evaluated is kept with its reason, and every offer is then refused with
//! it: a constraint that is not checked must not look like one that was met.

mod location;
mod negotiation;
mod particles;
mod path;
mod pattern;
mod steps;
mod types;

use crate::constraints::particles::Particle;
use crate::constraints::steps::{Paths, Selected, View};
use crate::constraints::types::Type;
use crate::document::{Document, Node};
use crate::expression::{Parsed, Value, Variables};
use crate::guarantees::{Expression, read_expression};
use crate::ns::{WSAG, XS};
use crate::reader::{Check, Sequence, collapse};
use crate::rules;
use crate::templates::Template;
use crate::terms::{self, Alternative, ServiceDescription, Term, Terms, token};
use crate::time::Duration;
use crate::violation::{VIOLATIONS_MAX, Violation, ViolationKind, shortened};

pub use negotiation::{CompiledConstraints, Outcome};

/// Most items and constraints of one template or offer; each costs every offer an evaluation.
pub const ITEMS_MAX: usize = 100;

/// A template made ready to check offers.
pub struct CompiledTemplate {
    id: String,
    name: Option<String>,
    items: Vec<Item>,
    constraints: Vec<(String, Parsed)>,
    problems: Vec<Violation>,
}

struct Item {
    name: String,
    /// As it was written, for messages.
    text: String,
    location: Paths,
    rule: Rule,
}

enum Rule {
    Nothing,
    Value(Type),
    Content(Particle),
}

/// Reads `wsag:CreationConstraints` as far as the schema goes; the content of an `ItemConstraint` is XML Schema.
pub(crate) fn check_structure(check: &mut Check, node: Node<'_>) {
    check.attributes(node, &[]);
    let mut sequence = Sequence::of(check, node);
    let items = sequence.many(WSAG, "Item");
    let constraints = sequence.many(WSAG, "Constraint");
    sequence.end(check);
    for node in items {
        check.attributes(node, &[(WSAG, "Name")]);
        check.required_attribute(node, (WSAG, "Name"), token);
        check_item_content(check, node);
    }
    for node in constraints {
        read_expression(check, node);
    }
}

/// Reads the parts that every item has: a location, a constraint of XML Schema, and foreign elements.
pub(crate) fn check_item_content(check: &mut Check, node: Node<'_>) {
    let mut sequence = Sequence::of(check, node);
    let location = sequence.required(check, WSAG, "Location");
    let constraint = sequence.required(check, WSAG, "ItemConstraint");
    sequence.foreign(WSAG);
    sequence.end(check);
    location.and_then(|node| check.string(node));
    if let Some(node) = constraint {
        check.attributes(node, &[]);
        let mut sequence = Sequence::of(check, node);
        while let Some(child) = sequence.any() {
            if child.namespace() != XS {
                check.structure(
                    child,
                    "a facet, a simple type or a particle of XML Schema is expected here",
                );
            }
        }
    }
}

impl CompiledTemplate {
    /// Compiles the constraints of a template.
    pub fn compile(template: &Template) -> CompiledTemplate {
        let mut compiled = CompiledTemplate {
            id: template.template_id.clone(),
            name: template.name.clone(),
            items: Vec::new(),
            constraints: Vec::new(),
            problems: Vec::new(),
        };
        // The fragment was cut from a document that passed the guard; if it did not parse, no offer may pass.
        match Document::written(template.source.as_str()) {
            Ok(document) => {
                let root = document.root();
                let constraints =
                    root.and_then(|root| root.children().find(|n| n.is(WSAG, "CreationConstraints")));
                if let Some(node) = constraints {
                    compiled.read(node, &template.terms);
                }
            }
            Err(error) => compiled.problems.push(Violation {
                path: "/wsag:Template".to_owned(),
                kind: ViolationKind::NotEvaluable,
                message: error.to_string(),
            }),
        }
        compiled
    }

    fn read(&mut self, constraints: Node<'_>, terms: &Terms) {
        let variables = Variables::of(terms);
        for (index, node) in constraints.children().enumerate() {
            if index == ITEMS_MAX {
                self.problem(
                    node,
                    format!("a template may have {ITEMS_MAX} items and constraints at most"),
                );
                return;
            }
            let read = if node.local() == "Item" {
                Item::read(node).map(|item| self.items.push(item))
            } else {
                self.read_text(node, &variables)
            };
            if let Err(message) = read {
                self.problem(node, message);
            }
        }
    }

    fn problem(&mut self, node: Node<'_>, message: String) {
        self.problems.push(Violation {
            path: node.path(),
            kind: ViolationKind::NotEvaluable,
            message,
        });
    }

    fn read_text(&mut self, node: Node<'_>, variables: &Variables) -> Result<(), String> {
        let text = node.text().trim().to_owned();
        let dialect = node.attribute(crate::ns::BSP, "dialect").map(str::to_owned);
        let parsed = Parsed::of(
            &Expression {
                text: text.clone(),
                dialect,
            },
            variables,
        )
        .map_err(|error| {
            format!(
                "the Constraint {:?} cannot be evaluated: {error}",
                shortened(&text)
            )
        })?;
        self.constraints.push((text, parsed));
        Ok(())
    }

    /// The template's identity.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The items of the template that cannot be evaluated, with paths into the template. Every offer is refused for each.
    pub fn problems(&self) -> &[Violation] {
        &self.problems
    }

    /// Checks the offer in a document that [`crate::read`] has accepted: a bare offer, or one in an input. The
    /// result is empty where the offer meets the template.
    pub fn check(&self, document: &Document<'_>) -> Vec<Violation> {
        let mut found = Vec::new();
        for offer in rules::offers(document) {
            self.check_offer(offer, &mut Report { found: &mut found });
        }
        found.truncate(VIOLATIONS_MAX);
        found
    }

    fn check_offer(&self, offer: Node<'_>, report: &mut Report<'_>) {
        self.check_context(offer, report);
        for problem in &self.problems {
            let message = format!(
                "the template {} cannot be offered: its element {} cannot be evaluated: {}",
                self.id, problem.path, problem.message
            );
            report.add(offer, ViolationKind::NotEvaluable, message);
        }
        let view = View::new(offer);
        for item in &self.items {
            item.check(&view, report);
        }
        let terms = terms_of(offer);
        let ways = terms.alternatives();
        for (text, constraint) in &self.constraints {
            if is_broken(constraint, ways.as_deref()) {
                report.add(
                    offer,
                    ViolationKind::Constraint,
                    format!("the template demands: {text}"),
                );
            }
        }
    }

    /// An offer names its template by identity and name.
    fn check_context(&self, offer: Node<'_>, report: &mut Report<'_>) {
        let Some(context) = offer.children().find(|child| child.is(WSAG, "Context")) else {
            return;
        };
        let child = |name| context.children().find(|child| child.is(WSAG, name));
        let wanted = [
            ("TemplateId", Some(self.id.as_str())),
            ("TemplateName", self.name.as_deref()),
        ];
        for (name, wanted) in wanted {
            let Some(wanted) = wanted else { continue };
            match child(name) {
                Some(node) if collapse(&node.text()) == wanted => {}
                Some(node) => report.add(node, ViolationKind::Constraint, format!("{wanted} is expected")),
                None => {
                    let message = format!("wsag:{name} is missing; {wanted} is expected");
                    report.add(context, ViolationKind::Constraint, message);
                }
            }
        }
    }
}

impl Rule {
    fn read(constraint: Node<'_>) -> Result<Rule, String> {
        let mut children = constraint.children().filter(|child| !child.is(XS, "annotation"));
        let Some(first) = children.next() else {
            return Ok(Rule::Nothing);
        };
        if Particle::is_particle(first) {
            return match children.next() {
                None => Ok(Rule::Content(Particle::read(first, 0)?)),
                Some(_) => Err("an ItemConstraint may have one particle only".to_owned()),
            };
        }
        if first.is(XS, "simpleType") {
            return Ok(Rule::Value(Type::restricted(Type::read(first)?, children)?));
        }
        Ok(Rule::Value(Type::restricted(
            Type::Untyped,
            std::iter::once(first).chain(children),
        )?))
    }
}

/// Where violations of one offer go.
struct Report<'f> {
    found: &'f mut Vec<Violation>,
}

impl Report<'_> {
    fn is_full(&self) -> bool {
        self.found.len() >= VIOLATIONS_MAX
    }

    /// Paths cost a walk each, so none is made for a violation that is left out.
    fn add(&mut self, node: Node<'_>, kind: ViolationKind, message: String) {
        if !self.is_full() {
            self.add_path(node.path(), kind, message);
        }
    }

    fn add_path(&mut self, path: String, kind: ViolationKind, message: String) {
        if !self.is_full() {
            self.found.push(Violation { path, kind, message });
        }
    }
}

impl Item {
    fn read(node: Node<'_>) -> Result<Item, String> {
        let child = |name| node.children().find(|child| child.is(WSAG, name));
        let (location, constraint) = child("Location")
            .zip(child("ItemConstraint"))
            .ok_or("it is incomplete")?;
        if let Some(foreign) = node.children().find(|child| child.namespace() != WSAG) {
            return Err(format!("{} is not known in an item", foreign.name()));
        }
        let text = location.text().trim().to_owned();
        let location = location::compile(&text, location)?;
        let name = node.attribute(WSAG, "Name").unwrap_or_default().to_owned();
        Ok(Item {
            name,
            text,
            location,
            rule: Rule::read(constraint)?,
        })
    }

    /// Checks the nodes that the item selects. An evaluation that takes too long is a violation like another.
    fn check(&self, view: &View<'_>, report: &mut Report<'_>) {
        if let Err(message) = self.check_all(view, report) {
            let message = format!("item {:?}: {message}", shortened(&self.name));
            report.add(view.offer(), ViolationKind::NotEvaluable, message);
        }
    }

    fn check_all(&self, view: &View<'_>, report: &mut Report<'_>) -> Result<(), String> {
        let selected = self.location.select(view)?;
        if let Rule::Content(particle) = &self.rule
            && selected.is_empty()
            && !particle.is_emptiable()
        {
            let message = format!("at least one {} is expected", self.text);
            report.add(view.offer(), ViolationKind::Constraint, self.message(&message));
        }
        for selected in selected {
            if report.is_full() {
                return Ok(());
            }
            match selected {
                Selected::Element(node) => self.check_element(node, view, report)?,
                Selected::Attribute(owner, namespace, name, value) => {
                    let name = || format!("/@{}", crate::reader::qualified(namespace, name));
                    self.check_value((owner, value), view, report, name)?;
                }
                Selected::Text(owner, value) => {
                    self.check_value((owner, value), view, report, String::new)?;
                }
            }
        }
        Ok(())
    }

    fn check_element(&self, node: Node<'_>, view: &View<'_>, report: &mut Report<'_>) -> Result<(), String> {
        match &self.rule {
            Rule::Nothing => Ok(()),
            Rule::Value(wanted) => {
                let value = node.deep_text();
                if let Err(message) = wanted.check_charged(&value, view)? {
                    report.add(node, ViolationKind::Constraint, self.message(&message));
                }
                Ok(())
            }
            Rule::Content(particle) => particle.check(node, view, &mut |node, message| {
                if !report.is_full() {
                    report.add(node, ViolationKind::Constraint, self.message(&message));
                }
            }),
        }
    }

    /// An attribute or a text that was selected, with its owner.
    fn check_value(
        &self,
        (owner, value): (Node<'_>, &str),
        view: &View<'_>,
        report: &mut Report<'_>,
        below: impl Fn() -> String,
    ) -> Result<(), String> {
        let checked = match &self.rule {
            Rule::Nothing => Ok(()),
            Rule::Value(wanted) => wanted.check_charged(value, view)?,
            Rule::Content(_) => {
                Err("an element is expected, because the template demands children".to_owned())
            }
        };
        if let Err(message) = checked {
            let path = format!("{}{}", owner.path(), below());
            report.add_path(path, ViolationKind::Constraint, self.message(&message));
        }
        Ok(())
    }

    fn message(&self, message: &str) -> String {
        format!("{message} (item {:?})", shortened(&self.name))
    }
}

/// The terms of an offer, as constraints on the whole compare them.
fn terms_of(offer: Node<'_>) -> Terms {
    let terms = offer.children().find(|child| child.is(WSAG, "Terms"));
    // Their faults are reported where the offer is read.
    let terms = terms.map(|terms| terms::read(&mut Check::default(), terms));
    terms.unwrap_or_default()
}

/// Whether one of the ways to read terms breaks a constraint, as any of them may be the one that is taken. Where there are too many
/// to go through it counts as broken.
fn is_broken(constraint: &Parsed, ways: Option<&[Alternative<'_>]>) -> bool {
    let breaks =
        |way: &Alternative<'_>| constraint.evaluate(|name| value_of(&way.terms, name)) == Some(false);
    ways.is_none_or(|ways| ways.iter().any(breaks))
}

/// The values of terms that hold together, for a variable of a creation constraint.
fn value_of(terms: &[&Term], name: &str) -> Option<Value> {
    let mut descriptions = terms.iter().filter_map(|term| match term {
        Term::ServiceDescription(of) => Some(&of.content),
        _ => None,
    });
    if name == "nodes" {
        let range = descriptions.find_map(|of| match of {
            ServiceDescription::JobDefinition(job) => job.resources.nodes.as_ref(),
            _ => None,
        });
        // A range is decided by its greatest size, since any size up to it may be granted.
        let (least, greatest) = range?.whole_numbers().ok()?;
        return Some(Value::Number(f64::from(greatest.unwrap_or(least))));
    }
    let time = descriptions.find_map(|of| match of {
        ServiceDescription::AllocationTime(time) => Some(time),
        _ => None,
    })?;
    match name {
        "ready" => time.start.map(Value::DateTime),
        "deadline" => time.end.map(Value::DateTime),
        "duration" => time
            .duration
            .map(|seconds| Value::Duration(Duration::from_seconds(seconds.into()))),
        _ => None,
    }
}
