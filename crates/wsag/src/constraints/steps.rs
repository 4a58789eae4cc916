//! The subset of XPath that constraints are nearly always written in, evaluated without a general engine.
//!
//! Absolute paths of child, descendant and attribute steps, with name and position predicates, joined by `|`. The
//! subset is what a negotiation constraint of a stranger may use: its cost is one walk of the offer for each step.
//! It also evaluates an offer where it stands, inside another message. Templates may go beyond it and then pay for
//! a general engine.

use std::cell::Cell;
use std::collections::HashSet;

use uppsala::NodeId;

use crate::document::Node;
use crate::guard::{is_name_char, is_name_start};
use crate::ns::WSAG;

/// Most steps of a path and most paths of a union.
const STEPS_MAX: usize = 32;

/// Paths joined by `|`.
pub(crate) struct Paths(Vec<Vec<Step>>);

struct Step {
    /// Whether `//` stands before it.
    deep: bool,
    attribute: bool,
    /// None stands for any name; a namespace of None for any namespace.
    test: (Option<String>, Option<String>),
    predicates: Vec<Predicate>,
}

enum Predicate {
    Position(usize),
    /// `[@name='text']`
    Attribute((String, String), String),
    /// `[name='text']`
    Child((String, String), String),
}

/// Most units of work of one check of an offer, of some tens of nanoseconds each: an ordinary offer needs some thousand
/// for an ordinary template. Constraints may come from a stranger as much as the offer, and one may be made for the
/// other; what needs more is refused instead of being waited for.
const WORK_MAX: usize = 500_000;

/// An offer as constraints see it: the root of a document of its own, whatever it is called and wherever it stands.
pub(crate) struct View<'d> {
    offer: Node<'d>,
    /// The offer and all below it that is its own, in document order.
    all: Vec<Node<'d>>,
    work: Cell<usize>,
}

/// Something that a path selects.
#[derive(Clone, Copy)]
pub(crate) enum Selected<'d> {
    Element(Node<'d>),
    /// Owner, namespace, name and value.
    Attribute(Node<'d>, &'d str, &'d str, &'d str),
    /// Owner and value.
    Text(Node<'d>, &'d str),
}

impl<'d> View<'d> {
    /// The view of an offer. What a negotiation adds to an offer's content is not part of it.
    pub(crate) fn new(offer: Node<'d>) -> View<'d> {
        let content = offer.children().filter(|child| child.namespace() == WSAG);
        let all = std::iter::once(offer)
            .chain(content.flat_map(Node::descendants))
            .collect();
        View {
            offer,
            all,
            work: Cell::new(0),
        }
    }

    /// The offer.
    pub(crate) fn offer(&self) -> Node<'d> {
        self.offer
    }

    /// The first element of a name.
    pub(crate) fn find(&self, namespace: &str, local: &str) -> Option<Node<'d>> {
        self.all.iter().copied().find(|node| node.is(namespace, local))
    }

    /// Spends work.
    ///
    /// # Errors
    /// Once there is too much of it.
    pub(crate) fn charge(&self, units: usize) -> Result<(), String> {
        self.work.set(self.work.get().saturating_add(units));
        if self.work.get() <= WORK_MAX {
            return Ok(());
        }
        Err("the constraints take too long to compare with this offer".to_owned())
    }

    fn children(&self, node: Node<'d>) -> impl Iterator<Item = Node<'d>> {
        let at_root = node.id() == self.offer.id();
        node.children()
            .filter(move |child| !at_root || child.namespace() == WSAG)
    }

    fn matches(&self, node: Node<'d>, test: &(Option<String>, Option<String>)) -> bool {
        let at_root = node.id() == self.offer.id();
        let is_local = |wanted: &str| wanted == if at_root { "AgreementOffer" } else { node.local() };
        let is_namespace = |wanted: &str| wanted == if at_root { WSAG } else { node.namespace() };
        // The local name first: it is short and decides nearly always.
        test.1.as_deref().is_none_or(is_local) && test.0.as_deref().is_none_or(is_namespace)
    }
}

impl Paths {
    /// Reads an expression of the subset; None if it is none, which does not mean that it is no XPath.
    pub(crate) fn parse(text: &str, namespace: &impl Fn(&str) -> Option<String>) -> Option<Paths> {
        let mut parser = Parser {
            rest: text.trim(),
            namespace,
        };
        let mut paths = Vec::new();
        loop {
            paths.push(parser.path()?);
            parser.space();
            if parser.rest.is_empty() {
                return Some(Paths(paths));
            }
            parser.take("|")?;
            if paths.len() == STEPS_MAX {
                return None;
            }
            parser.space();
        }
    }

    /// What the paths select, each once.
    ///
    /// # Errors
    /// Once it takes too long.
    pub(crate) fn select<'d>(&self, view: &View<'d>) -> Result<Vec<Selected<'d>>, String> {
        let mut found: Vec<Selected<'d>> = Vec::new();
        for path in &self.0 {
            found.extend(select(path, view)?);
        }
        if self.0.len() > 1 {
            let mut seen = HashSet::new();
            found.retain(|selected| seen.insert(selected.identity()));
        }
        Ok(found)
    }
}

impl<'d> Selected<'d> {
    /// What makes it the same as another.
    fn identity(&self) -> (NodeId, Option<(&'d str, &'d str)>) {
        match self {
            Selected::Element(node) | Selected::Text(node, _) => (node.id(), None),
            Selected::Attribute(owner, namespace, name, _) => (owner.id(), Some((namespace, name))),
        }
    }
}

fn select<'d>(path: &[Step], view: &View<'d>) -> Result<Vec<Selected<'d>>, String> {
    // None is the document above the root.
    let mut contexts: Vec<Option<Node<'d>>> = vec![None];
    for step in path {
        let from_root = matches!(contexts[..], [None]);
        if from_root && step.deep && !step.attribute && step.predicates.iter().all(Predicate::is_positionless)
        {
            contexts = step.anywhere(view)?;
            continue;
        }
        let parents = if step.deep {
            Step::parents(&contexts, view)?
        } else {
            contexts
        };
        if step.attribute {
            // The parser lets attributes stand only at the end.
            return step.attributes(&parents, view);
        }
        contexts = Vec::new();
        for parent in parents {
            step.elements(parent, view, &mut contexts)?;
        }
    }
    Ok(contexts.into_iter().flatten().map(Selected::Element).collect())
}

impl Step {
    /// The elements that pass test and predicates wherever they stand.
    fn anywhere<'d>(&self, view: &View<'d>) -> Result<Vec<Option<Node<'d>>>, String> {
        view.charge(view.all.len())?;
        let mut found = Vec::new();
        for node in view
            .all
            .iter()
            .copied()
            .filter(|node| view.matches(*node, &self.test))
        {
            let mut holds = true;
            for predicate in &self.predicates {
                holds = holds && predicate.holds(node, 0, view)?;
            }
            if holds {
                found.push(Some(node));
            }
        }
        Ok(found)
    }

    /// The contexts and all below them, each once.
    fn parents<'d>(contexts: &[Option<Node<'d>>], view: &View<'d>) -> Result<Vec<Option<Node<'d>>>, String> {
        view.charge(view.all.len())?;
        if let [None] = contexts {
            return Ok(std::iter::once(None)
                .chain(view.all.iter().copied().map(Some))
                .collect());
        }
        // A context inside an earlier one is covered by it; an outer one always comes first.
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for context in contexts.iter().flatten().copied() {
            if seen.contains(&context.id()) {
                continue;
            }
            let below = if context.id() == view.offer.id() {
                view.all.clone()
            } else {
                context.descendants()
            };
            found.extend(below.into_iter().filter(|node| seen.insert(node.id())).map(Some));
        }
        Ok(found)
    }

    /// The children of one parent that pass the test and then the predicates in turn.
    fn elements<'d>(
        &self,
        parent: Option<Node<'d>>,
        view: &View<'d>,
        into: &mut Vec<Option<Node<'d>>>,
    ) -> Result<(), String> {
        let start = into.len();
        match parent {
            None => into.extend(
                Some(view.offer)
                    .filter(|node| view.matches(*node, &self.test))
                    .map(Some),
            ),
            Some(parent) => {
                for child in view.children(parent) {
                    view.charge(1)?;
                    into.extend(view.matches(child, &self.test).then_some(Some(child)));
                }
            }
        }
        for predicate in &self.predicates {
            let mut kept = start;
            for (position, index) in (1..).zip(start..into.len()) {
                let Some(node) = into[index] else { continue };
                if predicate.holds(node, position, view)? {
                    into.swap(kept, index);
                    kept += 1;
                }
            }
            into.truncate(kept);
        }
        Ok(())
    }

    fn attributes<'d>(
        &self,
        owners: &[Option<Node<'d>>],
        view: &View<'d>,
    ) -> Result<Vec<Selected<'d>>, String> {
        let mut found = Vec::new();
        for owner in owners.iter().flatten().copied() {
            for (namespace, local, value) in owner.attributes() {
                view.charge(1)?;
                let wanted = self.test.1.as_deref().is_none_or(|wanted| wanted == local)
                    && self.test.0.as_deref().is_none_or(|wanted| wanted == namespace);
                found.extend(wanted.then_some(Selected::Attribute(owner, namespace, local, value)));
            }
        }
        Ok(found)
    }
}

impl Predicate {
    fn is_positionless(&self) -> bool {
        !matches!(self, Predicate::Position(_))
    }

    fn holds<'d>(&self, node: Node<'d>, position: usize, view: &View<'d>) -> Result<bool, String> {
        view.charge(1)?;
        match self {
            Predicate::Position(wanted) => Ok(position == *wanted),
            Predicate::Attribute((namespace, local), value) => Ok(node
                .attribute(namespace, local)
                .is_some_and(|found| found == value)),
            Predicate::Child((namespace, local), value) => {
                for child in node.children() {
                    view.charge(1)?;
                    if !child.is(namespace, local) {
                        continue;
                    }
                    let text = child.deep_text();
                    // Longer texts cost more, and so do texts of many pieces.
                    let pieces = if child.first_child().is_some() {
                        child.descendants().len()
                    } else {
                        0
                    };
                    view.charge(pieces + text.len() / 64)?;
                    if text == *value {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

struct Parser<'t, 'n, N> {
    rest: &'t str,
    namespace: &'n N,
}

impl<N: Fn(&str) -> Option<String>> Parser<'_, '_, N> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn take(&mut self, literal: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(literal)?;
        Some(())
    }

    fn path(&mut self) -> Option<Vec<Step>> {
        let mut steps: Vec<Step> = Vec::new();
        loop {
            self.space();
            if !self.rest.starts_with('/') {
                return (!steps.is_empty()).then_some(steps);
            }
            if steps.last().is_some_and(|step| step.attribute) || steps.len() == STEPS_MAX {
                return None;
            }
            let deep = self.take("//").is_some();
            if !deep {
                self.take("/")?;
            }
            self.space();
            steps.push(self.step(deep)?);
        }
    }

    fn step(&mut self, deep: bool) -> Option<Step> {
        let attribute = self.take("@").is_some() || self.take("attribute::").is_some();
        if !attribute && self.take("child::").is_none() && self.rest.starts_with("descendant::") {
            // a/descendant::b is a//b, but for predicates of position, which count differently.
            self.take("descendant::")?;
            let step = self.step_after_axis(true, false)?;
            return step
                .predicates
                .iter()
                .all(|p| !matches!(p, Predicate::Position(_)))
                .then_some(step);
        }
        self.step_after_axis(deep, attribute)
    }

    fn step_after_axis(&mut self, deep: bool, attribute: bool) -> Option<Step> {
        self.space();
        let test = self.test()?;
        let mut predicates = Vec::new();
        self.space();
        while self.take("[").is_some() {
            predicates.push(self.predicate()?);
            self.space();
        }
        // Predicates of attributes are of no use, and node types such as text() are not of the subset.
        if (attribute && !predicates.is_empty()) || self.rest.starts_with('(') {
            return None;
        }
        Some(Step {
            deep,
            attribute,
            test,
            predicates,
        })
    }

    fn test(&mut self) -> Option<(Option<String>, Option<String>)> {
        if self.take("*").is_some() {
            return Some((None, None));
        }
        let first = self.word()?;
        if self.rest.starts_with("::") || self.take(":").is_none() {
            return (!self.rest.starts_with("::")).then_some((Some(String::new()), Some(first)));
        }
        let namespace = (self.namespace)(&first)?;
        if self.take("*").is_some() {
            return Some((Some(namespace), None));
        }
        Some((Some(namespace), Some(self.word()?)))
    }

    fn word(&mut self) -> Option<String> {
        let end = self.rest.find(|c| !is_name_char(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if !word.starts_with(is_name_start) {
            return None;
        }
        self.rest = rest;
        Some(word.to_owned())
    }

    fn predicate(&mut self) -> Option<Predicate> {
        self.space();
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let predicate = if digits > 0 {
            let position = self.rest[..digits].parse().ok()?;
            self.rest = &self.rest[digits..];
            Predicate::Position(position)
        } else {
            let attribute = self.take("@").is_some();
            let (Some(namespace), Some(local)) = self.test()? else {
                return None;
            };
            self.space();
            self.take("=")?;
            self.space();
            let quote = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
            let (value, rest) = self.rest[1..].split_once(quote)?;
            self.rest = rest;
            let name = (namespace, local);
            if attribute {
                Predicate::Attribute(name, value.to_owned())
            } else {
                Predicate::Child(name, value.to_owned())
            }
        };
        self.space();
        self.take("]")?;
        Some(predicate)
    }
}
