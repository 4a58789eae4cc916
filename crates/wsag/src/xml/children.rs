//! The children of an element, taken in their order.
//!
//! A reader goes through the children of an element as a validator would, and reports the expected element at the first one out
//! of place. After that it still finds the others by name, so that one mistake does not hide the rest.

use crate::xml::datatypes::SPACE;
use crate::xml::document_check::DocumentCheck;
use crate::xml::fragment::Fragment;
use crate::xml::names::qualified_name;
use crate::xml::node::Node;
use crate::xml::violation::one_of_names_in_violation;

impl DocumentCheck {
    /// Reads an element that has no attributes and holds nothing but elements, which `read` takes in their order.
    pub(crate) fn children<'d, T>(
        &mut self,
        node: Node<'d>,
        read: impl FnOnce(&mut Children<'_, 'd>) -> T,
    ) -> T {
        self.attributes(node, &[]);
        self.children_only(node, read)
    }

    /// As [`DocumentCheck::children`], for an element with attributes that are read elsewhere.
    pub(crate) fn children_only<'d, T>(
        &mut self,
        node: Node<'d>,
        read: impl FnOnce(&mut Children<'_, 'd>) -> T,
    ) -> T {
        if !node.text().trim_matches(SPACE).is_empty() {
            self.structure(node, "text is not allowed here, only elements");
        }
        let mut children = Children {
            check: self,
            parent: node,
            next: node.first_child(),
            broken: false,
            tried: Vec::new(),
        };
        let read = read(&mut children);
        children.end();
        read
    }
}

/// Whether an element is of another namespace than this one.
fn is_foreign(node: Node<'_>, own: &str) -> bool {
    !node.namespace().is_empty() && node.namespace() != own
}

/// The child elements of one element, taken in their order. A reader is given each and may leave violations.
pub(crate) struct Children<'c, 'd> {
    pub(crate) check: &'c mut DocumentCheck,
    parent: Node<'d>,
    next: Option<Node<'d>>,
    /// Set once an element was out of place: from then on elements are found by name.
    broken: bool,
    /// The names that were passed over since the last child that was taken.
    tried: Vec<(&'static str, &'static str)>,
}

impl<'d> Children<'_, 'd> {
    /// The elements that could have stood here, as a list of names.
    fn expected(&self) -> String {
        let names: Vec<String> = self
            .tried
            .iter()
            .map(|(ns, name)| qualified_name(ns, name))
            .collect();
        one_of_names_in_violation(&names)
    }

    fn named(&self, namespace: &str, local: &str) -> impl Iterator<Item = Node<'d>> {
        let children = self.parent.children();
        children.filter(move |child| child.is(namespace, local))
    }

    /// The next child if it has this name; in a broken sequence, the first one that has. One of another namespace has the name
    /// `*`.
    pub(crate) fn take(&mut self, namespace: &'static str, local: &'static str) -> Option<Node<'d>> {
        if local == "*" {
            let next = self
                .next
                .filter(|next| !self.broken && is_foreign(*next, namespace))?;
            self.next = next.next();
            return Some(next);
        }
        if self.broken {
            return self.named(namespace, local).next();
        }
        if self.next.is_some_and(|next| next.is(namespace, local)) {
            return self.any();
        }
        self.tried.push((namespace, local));
        None
    }

    /// As [`Children::take`], but its absence is a violation.
    pub(crate) fn take_required(&mut self, namespace: &'static str, local: &'static str) -> Option<Node<'d>> {
        if let Some(found) = self.take(namespace, local) {
            return Some(found);
        }
        if self.broken {
            // A child out of place was reported already; a missing one gets a violation of its own.
            let name = qualified_name(namespace, local);
            self.check.structure(self.parent, format!("{name} is missing"));
            return None;
        }
        let expected = self.expected();
        match self.next {
            Some(next) => self.check.structure(next, format!("{expected} is expected here")),
            None => self
                .check
                .structure(self.parent, format!("{expected} is missing at its end")),
        }
        self.broken = true;
        self.named(namespace, local).next()
    }

    /// The next child if it has this name, read.
    pub(crate) fn optional<T>(
        &mut self,
        namespace: &'static str,
        local: &'static str,
        read: impl FnOnce(&mut DocumentCheck, Node<'d>) -> Option<T>,
    ) -> Option<T> {
        let node = self.take(namespace, local)?;
        read(self.check, node)
    }

    /// As [`Children::optional`], but its absence is a violation.
    pub(crate) fn required<T>(
        &mut self,
        namespace: &'static str,
        local: &'static str,
        read: impl FnOnce(&mut DocumentCheck, Node<'d>) -> Option<T>,
    ) -> Option<T> {
        let node = self.take_required(namespace, local)?;
        read(self.check, node)
    }

    /// The following children of this name, possibly none; of the name `*`, those of other namespaces.
    pub(crate) fn many<T>(
        &mut self,
        namespace: &'static str,
        local: &'static str,
        mut read: impl FnMut(&mut DocumentCheck, Node<'d>) -> Option<T>,
    ) -> Vec<T> {
        let nodes: Vec<Node<'d>> = if local == "*" {
            self.foreign(namespace)
        } else if self.broken {
            self.named(namespace, local).collect()
        } else {
            std::iter::from_fn(|| self.take(namespace, local)).collect()
        };
        nodes
            .into_iter()
            .filter_map(|node| read(self.check, node))
            .collect()
    }

    /// As [`Children::many`], but there must be at least one.
    pub(crate) fn at_least_one<T>(
        &mut self,
        namespace: &'static str,
        local: &'static str,
        mut read: impl FnMut(&mut DocumentCheck, Node<'d>) -> Option<T>,
    ) -> Vec<T> {
        let Some(first) = self.take_required(namespace, local) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        if !self.broken {
            found.extend(read(self.check, first));
        }
        found.extend(self.many(namespace, local, read));
        found
    }

    /// The next child, which must have one of these names.
    pub(crate) fn one_of(
        &mut self,
        namespace: &'static str,
        locals: &[&'static str],
    ) -> Option<(&'static str, Node<'d>)> {
        let found = locals
            .iter()
            .find_map(|local| Some((*local, self.take(namespace, local)?)));
        if found.is_none() {
            let which = if locals.len() > 2 { "one of " } else { "" };
            let message = format!("{which}{} is expected in it", self.expected());
            self.check.structure(self.parent, message);
            self.broken = true;
        }
        found
    }

    /// The only child, of any name.
    pub(crate) fn only(&mut self, expected: &str) -> Option<Node<'d>> {
        let Some(child) = self.any() else {
            let message = format!("it needs one element in it: {expected}");
            self.check.structure(self.parent, message);
            return None;
        };
        if let Some(second) = self.any() {
            let message = format!("only one element may stand in {}", self.parent.name());
            self.check.structure(second, message);
            self.broken = true;
        }
        Some(child)
    }

    /// The following children of other namespaces.
    pub(crate) fn foreign(&mut self, own: &str) -> Vec<Node<'d>> {
        if self.broken {
            return self
                .parent
                .children()
                .filter(|child| is_foreign(*child, own))
                .collect();
        }
        let mut found = Vec::new();
        while let Some(next) = self.next.filter(|next| is_foreign(*next, own)) {
            self.next = next.next();
            found.push(next);
        }
        found
    }

    /// As [`Children::take`], for names that come again: a broken sequence has no next one.
    pub(crate) fn take_next(&mut self, namespace: &'static str, local: &'static str) -> Option<Node<'d>> {
        if self.broken {
            None
        } else {
            self.take(namespace, local)
        }
    }

    /// The next child, of any name.
    pub(crate) fn any(&mut self) -> Option<Node<'d>> {
        let taken = self.next.filter(|_| !self.broken)?;
        self.next = taken.next();
        self.tried.clear();
        Some(taken)
    }

    /// Nothing may follow.
    fn end(self) {
        let Some(next) = self.next.filter(|_| !self.broken) else {
            return;
        };
        let expected = match self.expected() {
            none if none.is_empty() => none,
            names => names + " or ",
        };
        let parent = self.parent.name();
        self.check
            .structure(next, format!("{expected}the end of {parent} is expected here"));
    }
}

/// Reads an element with elements of other namespaces than `own` and nothing else, at least `least` and at most `most` of them, each as it
/// stands. `check_each` looks at those that answers repeat.
pub(crate) fn read_foreign_children(
    check: &mut DocumentCheck,
    node: Node<'_>,
    own: &str,
    (least, most): (usize, usize),
    mut check_each: impl FnMut(&mut DocumentCheck, Node<'_>),
) -> Vec<Fragment> {
    let found = check.children(node, |children| children.foreign(own));
    if found.len() < least {
        let message = "one element of another namespace is expected in it, such as a reason";
        check.structure(node, message);
    }
    if let Some(surplus) = found.get(most) {
        check.structure(*surplus, format!("only one element may stand in {}", node.name()));
    }
    for node in &found {
        check_each(check, *node);
    }
    found.into_iter().map(Node::fragment).collect()
}
