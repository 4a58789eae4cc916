//! The nodes of an offer that a Location selects.
//!
//! The cost is about one walk of the offer for each step, and counted. An offer is evaluated where it stands, inside another message
//! too.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use crate::languages::TermMeaning;
use crate::terms::other_contents_of_terms;
use crate::xml::ns::{WSAG, usual_prefix};
use crate::xml::{Node, UnchosenTerms, qualified_name};

/// Paths from the root, joined by `|`.
pub(crate) struct Paths(pub(super) Vec<Vec<PathStep>>);

pub(super) struct PathStep {
    /// Whether `//` stands before it.
    pub(super) deep: bool,
    pub(super) kind: Kind,
    pub(super) test: Test,
    /// Of elements only.
    pub(super) predicates: Vec<Predicate>,
}

/// The nodes that a step selects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Element,
    Attribute,
    Text,
}

/// The names that a step selects; None is any name.
pub(super) struct Test {
    /// One copy serves all tests of a Location.
    pub(super) namespace: Option<Arc<str>>,
    pub(super) local: Option<String>,
    /// Another name that it selects: what this one means, where it is that of an element in a language of others.
    pub(super) meaning: Option<TermMeaning>,
}

pub(super) enum Predicate {
    /// From one, among the nodes that the step and the predicates before this one have left of one parent.
    Position(usize),
    Last,
    Holds(Condition),
}

pub(super) enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Not(Box<Condition>),
    /// There is such a node, and one of them compares.
    Has(Subject, Option<Comparison>),
}

pub(super) enum Subject {
    Attribute(Test),
    Child(Test),
    LocalName,
    NamespaceUri,
}

pub(super) struct Comparison {
    pub(super) equal: bool,
    pub(super) value: String,
}

/// Most units of work of one check of an offer, of some tens of nanoseconds each: an ordinary offer needs some thousand for an
/// ordinary template. Constraints may come from a stranger as much as the offer, and one may be made for the other; a check that
/// needs more is refused instead of being waited for.
const WORK_MAX: usize = 500_000;

/// An offer as constraints see it: the root of a document of its own, under any name and in any message.
pub(crate) struct View<'d> {
    offer: Node<'d>,
    /// The offer and all below it that is its own, in document order.
    all: Vec<Node<'d>>,
    /// None where the offer is seen with all its terms.
    left_out: Option<&'d UnchosenTerms>,
    /// The contents of its terms in languages that are not known.
    others: UnchosenTerms,
    work: Cell<usize>,
}

/// Something that a path selects.
#[derive(Clone, Copy)]
pub(crate) enum SelectedNode<'d> {
    Element(Node<'d>),
    /// Owner, namespace, name and value.
    Attribute(Node<'d>, &'d str, &'d str, &'d str),
    /// Owner and value.
    Text(Node<'d>, &'d str),
}

impl<'d> View<'d> {
    /// The view of an offer, or of one way to read it. The elements that a negotiation adds to an offer's content are not part of it.
    pub(crate) fn new(offer: Node<'d>, left_out: Option<&'d UnchosenTerms>) -> View<'d> {
        let content = offer.children().filter(|child| child.namespace() == WSAG);
        let all = std::iter::once(offer)
            .chain(content.flat_map(Node::descendants))
            .filter(|node| !left_out.is_some_and(|left_out| left_out.has(*node)))
            .collect();
        View {
            offer,
            all,
            left_out,
            others: other_contents_of_terms(offer),
            work: Cell::new(0),
        }
    }

    /// What the way to read the offer leaves out, where this is the view of one.
    pub(crate) fn left_out(&self) -> Option<&'d UnchosenTerms> {
        self.left_out
    }

    pub(crate) fn has(&self, node: Node<'_>) -> bool {
        !self.left_out.is_some_and(|left_out| left_out.has(node))
    }

    /// Whether a node stands in a term in a language that is not known.
    pub(crate) fn is_foreign(&self, selected: &SelectedNode<'_>) -> bool {
        self.others.has(selected.owner())
    }

    /// The offer.
    pub(crate) fn offer(&self) -> Node<'d> {
        self.offer
    }

    /// Spends work. All ways to read an offer share what one offer may cost.
    ///
    /// # Errors
    /// Once there is too much of it.
    pub(crate) fn charge(&self, units: usize) -> Result<(), String> {
        self.work.set(self.work.get().saturating_add(units));
        if self.work.get() <= WORK_MAX / self.left_out.map_or(1, UnchosenTerms::ways) {
            return Ok(());
        }
        Err("the constraints take too long to compare with this offer".to_owned())
    }

    fn children(&self, node: Node<'d>) -> impl Iterator<Item = Node<'d>> {
        let at_root = node.id() == self.offer.id();
        node.children()
            .filter(move |child| (!at_root || child.namespace() == WSAG) && self.has(*child))
    }

    fn local(&self, node: Node<'d>) -> &'d str {
        if node.id() == self.offer.id() {
            "AgreementOffer"
        } else {
            node.local()
        }
    }

    fn namespace(&self, node: Node<'d>) -> &'d str {
        if node.id() == self.offer.id() {
            WSAG
        } else {
            node.namespace()
        }
    }

    fn matches(&self, node: Node<'d>, test: &Test) -> bool {
        test.is_element(self.local(node), || self.namespace(node))
    }
}

impl Test {
    pub(super) const ANY: Test = Test {
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

impl Comparison {
    fn holds(&self, value: &str) -> bool {
        (self.value == value) == self.equal
    }
}

impl Paths {
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
                .any(|step| step.kind == Kind::Element && step.test.is_foreign());
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

impl<'d> SelectedNode<'d> {
    /// The element that it is or belongs to.
    fn owner(&self) -> Node<'d> {
        match self {
            SelectedNode::Element(node) | SelectedNode::Text(node, _) | SelectedNode::Attribute(node, ..) => {
                *node
            }
        }
    }

    /// The element that it is or belongs to, and its path from there on.
    pub(super) fn place(&self) -> (Node<'d>, String) {
        match self {
            SelectedNode::Element(node) | SelectedNode::Text(node, _) => (*node, String::new()),
            SelectedNode::Attribute(owner, namespace, name, _) => {
                (*owner, format!("/@{}", qualified_name(namespace, name)))
            }
        }
    }

    pub(super) fn value(&self) -> Cow<'d, str> {
        match self {
            SelectedNode::Element(node) => node.deep_text(),
            SelectedNode::Attribute(.., value) | SelectedNode::Text(_, value) => Cow::Borrowed(value),
        }
    }

    /// The key by which two nodes are the same.
    fn identity(&self) -> (u32, Option<(&'d str, &'d str)>, usize) {
        match self {
            SelectedNode::Element(node) => (node.id(), None, 0),
            SelectedNode::Attribute(owner, namespace, name, _) => (owner.id(), Some((namespace, name)), 0),
            // No two texts that are not empty are kept in the same place.
            SelectedNode::Text(owner, text) => (owner.id(), None, text.as_ptr().addr()),
        }
    }
}

fn select_by_steps<'d>(path: &[PathStep], view: &View<'d>) -> Result<Vec<SelectedNode<'d>>, String> {
    // None is the document above the root.
    let mut contexts: Vec<Option<Node<'d>>> = vec![None];
    for step in path {
        let from_root = matches!(contexts[..], [None]);
        let counts = step.predicates.iter().any(Predicate::is_position);
        if from_root && step.deep && step.kind == Kind::Element && !counts {
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
            Kind::Attribute | Kind::Text => return step.parts(&parents, view),
            Kind::Element => {}
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
            if context.id() == view.offer.id() {
                return Ok(view.all.iter().copied().map(Some).collect());
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
            if self.kind == Kind::Attribute {
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

impl Predicate {
    pub(super) fn is_position(&self) -> bool {
        matches!(self, Predicate::Position(_) | Predicate::Last)
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
            Predicate::Position(wanted) => Ok(position == *wanted),
            Predicate::Last => Ok(position == count),
            Predicate::Holds(condition) => condition.holds(node, view),
        }
    }
}

impl Condition {
    fn holds<'d>(&self, node: Node<'d>, view: &View<'d>) -> Result<bool, String> {
        view.charge(1)?;
        match self {
            Condition::Any(members) | Condition::All(members) => {
                let decisive = matches!(self, Condition::Any(_));
                for member in members {
                    if member.holds(node, view)? == decisive {
                        return Ok(decisive);
                    }
                }
                Ok(!decisive)
            }
            Condition::Not(inner) => Ok(!inner.holds(node, view)?),
            Condition::Has(subject, comparison) => subject.compares(node, comparison.as_ref(), view),
        }
    }
}

impl Subject {
    fn compares<'d>(
        &self,
        node: Node<'d>,
        comparison: Option<&Comparison>,
        view: &View<'d>,
    ) -> Result<bool, String> {
        let compares = |value: &str| comparison.is_none_or(|comparison| comparison.holds(value));
        match self {
            Subject::LocalName => Ok(compares(view.local(node))),
            Subject::NamespaceUri => Ok(compares(view.namespace(node))),
            Subject::Attribute(test) => {
                for (namespace, local, value) in node.attributes() {
                    view.charge(1)?;
                    if test.is(local, || namespace) && compares(value) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Subject::Child(test) => {
                for child in view.children(node) {
                    view.charge(1)?;
                    if !view.matches(child, test) {
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
