//! The nodes of an offer that a Location selects.
//!
//! The cost is about one walk of the offer for each step, and counted. An offer is evaluated where it stands, inside another message
//! too.

use std::collections::HashSet;
use std::sync::Arc;

use crate::constraints::selected_node::SelectedNode;
use crate::constraints::view::View;
use crate::languages::TermMeaning;
use crate::xml::Node;
use crate::xml::ns::usual_prefix;

/// Paths from the root, joined by `|`.
pub(crate) struct StepPaths(pub(super) Vec<Vec<PathStep>>);

pub(super) struct PathStep {
    /// Whether `//` stands before it.
    pub(super) deep: bool,
    pub(super) kind: StepKind,
    pub(super) test: StepTest,
    /// Of elements only.
    pub(super) predicates: Vec<StepPredicate>,
}

/// The nodes that a step selects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    Element,
    Attribute,
    Text,
}

/// The names that a step selects; None is any name.
pub(super) struct StepTest {
    /// One copy serves all tests of a Location.
    pub(super) namespace: Option<Arc<str>>,
    pub(super) local: Option<String>,
    /// Another name that it selects: what this one means, where it is that of an element in a language of others.
    pub(super) meaning: Option<TermMeaning>,
}

pub(super) enum StepPredicate {
    /// From one, among the nodes that the step and the predicates before this one have left of one parent.
    Position(usize),
    Last,
    Holds(StepCondition),
}

pub(super) enum StepCondition {
    Any(Vec<StepCondition>),
    All(Vec<StepCondition>),
    Not(Box<StepCondition>),
    /// There is such a node, and one of them compares.
    Has(StepSubject, Option<StepComparison>),
}

pub(super) enum StepSubject {
    Attribute(StepTest),
    Child(StepTest),
    LocalName,
    NamespaceUri,
}

pub(super) struct StepComparison {
    pub(super) equal: bool,
    pub(super) value: String,
}

impl StepTest {
    pub(super) const ANY: StepTest = StepTest {
        namespace: None,
        local: None,
        meaning: None,
    };

    /// The names as they count: what they mean, or else as they are written.
    pub(super) fn meant(&self) -> (Option<&str>, Option<&str>) {
        match self.meaning {
            Some((namespace, local)) => (Some(namespace), local),
            None => (self.namespace.as_deref(), self.local.as_deref()),
        }
    }

    /// Whether it selects an element of an offer.
    fn selects<'d>(&self, node: Node<'d>, view: &View<'d>) -> bool {
        self.is_element(view.local(node), || view.namespace(node))
    }

    /// Whether it names elements of a language that is not known.
    fn is_foreign(&self) -> bool {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        let is_known = self.local.is_some() && self.meaning.is_some();
        !is_known && !namespace.is_empty() && usual_prefix(namespace).is_none()
    }

    /// Whether it selects an element: by the name that is written, or by what that means.
    fn is_element<'d>(&self, local: &str, namespace: impl Fn() -> &'d str) -> bool {
        let is_meant = |(meant_namespace, meant): TermMeaning| {
            meant.is_none_or(|meant| meant == local) && meant_namespace == namespace()
        };
        self.is(local, &namespace) || self.meaning.is_some_and(is_meant)
    }

    /// The local name first: it is short and decides nearly always.
    fn is<'d>(&self, local: &str, namespace: impl FnOnce() -> &'d str) -> bool {
        self.local.as_deref().is_none_or(|wanted| wanted == local)
            && self
                .namespace
                .as_deref()
                .is_none_or(|wanted| wanted == namespace())
    }
}

impl StepComparison {
    fn holds(&self, value: &str) -> bool {
        (self.value == value) == self.equal
    }
}

impl StepPaths {
    /// The nodes that the paths select, each once. Of a term in a language that is not known, only a path that names an element
    /// of such a language selects something: no other path was written for it.
    ///
    /// # Errors
    /// Once it takes too long.
    pub(crate) fn select<'d>(&self, view: &View<'d>) -> Result<Vec<SelectedNode<'d>>, String> {
        let mut found: Vec<SelectedNode<'d>> = Vec::new();
        for path in &self.0 {
            let names_foreign = path
                .iter()
                .any(|step| step.kind == StepKind::Element && step.test.is_foreign());
            let selected = select_by_steps(path, view)?.into_iter();
            found.extend(selected.filter(|selected| names_foreign || !view.is_foreign(selected)));
        }
        if self.0.len() > 1 {
            let mut seen = HashSet::new();
            found.retain(|selected| seen.insert(selected.identity()));
        }
        Ok(found)
    }
}

fn select_by_steps<'d>(path: &[PathStep], view: &View<'d>) -> Result<Vec<SelectedNode<'d>>, String> {
    // None is the document above the root.
    let mut contexts: Vec<Option<Node<'d>>> = vec![None];
    for step in path {
        let from_root = matches!(contexts[..], [None]);
        let counts = step.predicates.iter().any(StepPredicate::is_position);
        if from_root && step.deep && step.kind == StepKind::Element && !counts {
            contexts = step.anywhere(view)?;
            continue;
        }
        let parents = if step.deep {
            PathStep::parents(&contexts, view)?
        } else {
            contexts
        };
        // The parser lets attributes and texts stand only at the end.
        match step.kind {
            StepKind::Attribute | StepKind::Text => return step.parts(&parents, view),
            StepKind::Element => {}
        }
        contexts = Vec::new();
        for parent in parents {
            step.elements(parent, view, &mut contexts)?;
        }
    }
    Ok(contexts
        .into_iter()
        .flatten()
        .map(SelectedNode::Element)
        .collect())
}

impl PathStep {
    /// The elements that pass test and predicates wherever they stand.
    fn anywhere<'d>(&self, view: &View<'d>) -> Result<Vec<Option<Node<'d>>>, String> {
        view.charge(view.all().len())?;
        let mut found = Vec::new();
        for node in view
            .all()
            .iter()
            .copied()
            .filter(|node| self.test.selects(*node, view))
        {
            let mut holds = true;
            for predicate in &self.predicates {
                holds = holds && predicate.holds(node, (0, 0), view)?;
            }
            if holds {
                found.push(Some(node));
            }
        }
        Ok(found)
    }

    /// The contexts and all below them, each once.
    fn parents<'d>(contexts: &[Option<Node<'d>>], view: &View<'d>) -> Result<Vec<Option<Node<'d>>>, String> {
        view.charge(view.all().len())?;
        if let [None] = contexts {
            return Ok(std::iter::once(None)
                .chain(view.all().iter().copied().map(Some))
                .collect());
        }
        // A context inside an earlier one is covered by it; an outer one always comes first.
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for context in contexts.iter().flatten().copied() {
            if seen.contains(&context.id()) {
                continue;
            }
            if context.id() == view.offer().id() {
                return Ok(view.all().iter().copied().map(Some).collect());
            }
            let below = context.descendants().filter(|node| view.has(*node));
            found.extend(below.filter(|node| seen.insert(node.id())).map(Some));
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
                Some(view.offer())
                    .filter(|node| self.test.selects(*node, view))
                    .map(Some),
            ),
            Some(parent) => {
                for child in view.children(parent) {
                    view.charge(1)?;
                    into.extend(self.test.selects(child, view).then_some(Some(child)));
                }
            }
        }
        for predicate in &self.predicates {
            let mut kept = start;
            let count = into.len() - start;
            for (position, index) in (1..).zip(start..into.len()) {
                let Some(node) = into[index] else { continue };
                if predicate.holds(node, (position, count), view)? {
                    into.swap(kept, index);
                    kept += 1;
                }
            }
            into.truncate(kept);
        }
        Ok(())
    }

    /// The attributes of these elements that pass the test, or the texts directly inside them.
    fn parts<'d>(
        &self,
        owners: &[Option<Node<'d>>],
        view: &View<'d>,
    ) -> Result<Vec<SelectedNode<'d>>, String> {
        let mut found = Vec::new();
        for owner in owners.iter().flatten().copied() {
            if self.kind == StepKind::Attribute {
                for (namespace, local, value) in owner.attributes() {
                    view.charge(1)?;
                    let wanted = self.test.is(local, || namespace);
                    found.extend(wanted.then_some(SelectedNode::Attribute(owner, namespace, local, value)));
                }
            } else {
                for text in owner.texts() {
                    view.charge(1)?;
                    // An empty CDATA section is no text.
                    found.extend((!text.is_empty()).then_some(SelectedNode::Text(owner, text)));
                }
            }
        }
        Ok(found)
    }
}

impl StepPredicate {
    pub(super) fn is_position(&self) -> bool {
        matches!(self, StepPredicate::Position(_) | StepPredicate::Last)
    }

    /// Whether it holds of a node with its position among all.
    fn holds<'d>(
        &self,
        node: Node<'d>,
        (position, count): (usize, usize),
        view: &View<'d>,
    ) -> Result<bool, String> {
        view.charge(1)?;
        match self {
            StepPredicate::Position(wanted) => Ok(position == *wanted),
            StepPredicate::Last => Ok(position == count),
            StepPredicate::Holds(condition) => condition.holds(node, view),
        }
    }
}

impl StepCondition {
    fn holds<'d>(&self, node: Node<'d>, view: &View<'d>) -> Result<bool, String> {
        view.charge(1)?;
        match self {
            StepCondition::Any(members) | StepCondition::All(members) => {
                let decisive = matches!(self, StepCondition::Any(_));
                for member in members {
                    if member.holds(node, view)? == decisive {
                        return Ok(decisive);
                    }
                }
                Ok(!decisive)
            }
            StepCondition::Not(inner) => Ok(!inner.holds(node, view)?),
            StepCondition::Has(subject, comparison) => subject.compares(node, comparison.as_ref(), view),
        }
    }
}

impl StepSubject {
    fn compares<'d>(
        &self,
        node: Node<'d>,
        comparison: Option<&StepComparison>,
        view: &View<'d>,
    ) -> Result<bool, String> {
        let compares = |value: &str| comparison.is_none_or(|comparison| comparison.holds(value));
        match self {
            StepSubject::LocalName => Ok(compares(view.local(node))),
            StepSubject::NamespaceUri => Ok(compares(view.namespace(node))),
            StepSubject::Attribute(test) => {
                for (namespace, local, value) in node.attributes() {
                    view.charge(1)?;
                    if test.is(local, || namespace) && compares(value) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            StepSubject::Child(test) => {
                for child in view.children(node) {
                    view.charge(1)?;
                    if !test.selects(child, view) {
                        continue;
                    }
                    if comparison.is_none() {
                        return Ok(true);
                    }
                    let text = child.deep_text();
                    // Longer texts cost more, and so do texts of many pieces.
                    view.charge(child.descendants().len() + text.len() / 64)?;
                    if compares(&text) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}
