//! How typed documents are read from a tree: children taken in order, violations collected with their paths.
//!
//! A reader goes through the children of an element as a validator would, and reports the expected element at the first one out
//! of place. After that it still finds the others by name, so that one mistake does not hide the rest.

use std::borrow::Cow;

use crate::document::{Document, Fragment, INHERITED_MAX, Node};
use crate::ns;
use crate::time::DateTime;
use crate::violation::{VIOLATIONS_MAX, Violation, ViolationKind, Violations};

/// The namespace of `xsi:schemaLocation`, a hint that is not followed here.
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Collects violations.
#[derive(Default)]
pub(crate) struct Check {
    violations: Vec<Violation>,
}

impl Check {
    pub(crate) fn add(&mut self, kind: ViolationKind, node: Node<'_>, message: impl Into<String>) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation {
                path: node.path(),
                kind,
                message: message.into(),
            });
        }
    }

    /// Adds a violation of structure, unless there is one about this very element already.
    pub(crate) fn structure(&mut self, node: Node<'_>, message: impl Into<String>) {
        if self.violations.len() >= VIOLATIONS_MAX {
            return;
        }
        let path = node.path();
        if self.violations.iter().all(|other| other.path != path) {
            self.violations.push(Violation {
                path,
                kind: ViolationKind::Structure,
                message: message.into(),
            });
        }
    }

    pub(crate) fn value(&mut self, node: Node<'_>, message: impl Into<String>) {
        self.add(ViolationKind::Value, node, message);
    }

    fn attribute(&mut self, kind: ViolationKind, node: Node<'_>, attribute: &str, message: String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation {
                path: format!("{}/@{attribute}", node.path()),
                kind,
                message,
            });
        }
    }

    /// Whether nothing was found wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// The violations so far.
    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }

    /// The document, if nothing was wrong with it.
    pub(crate) fn finish<T>(self, read: Option<T>) -> Result<T, Violations> {
        match (self.violations.is_empty(), read) {
            (true, Some(read)) => Ok(read),
            (true, None) => Err(Violations(vec![Violation {
                path: "/".to_owned(),
                kind: ViolationKind::Structure,
                message: "the document could not be read".to_owned(),
            }])),
            (false, _) => Err(Violations(self.violations)),
        }
    }

    /// Reads one attribute of the namespace (empty for none) by its type.
    pub(crate) fn read_attribute<T>(
        &mut self,
        node: Node<'_>,
        (namespace, local): (&str, &str),
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let value = node.attribute(namespace, local)?;
        match parse(collapse(value).as_ref()) {
            Ok(value) => Some(value),
            Err(message) => {
                self.attribute(ViolationKind::Value, node, &qualified(namespace, local), message);
                None
            }
        }
    }

    /// Reads one required attribute of the WS-Agreement namespaces as a string.
    pub(crate) fn required_attribute<T>(
        &mut self,
        node: Node<'_>,
        (namespace, local): (&str, &str),
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        if node.attribute(namespace, local).is_none() {
            self.structure(
                node,
                format!("the attribute {} is required", qualified(namespace, local)),
            );
            return None;
        }
        self.read_attribute(node, (namespace, local), parse)
    }

    /// Every attribute must be one of these; for an unqualified one that should be qualified the message says so.
    pub(crate) fn attributes(&mut self, node: Node<'_>, allowed: &[(&str, &str)]) {
        for (namespace, local, _) in node.attributes() {
            let hint = namespace == XSI && matches!(local, "schemaLocation" | "noNamespaceSchemaLocation");
            if hint || allowed.contains(&(namespace, local)) {
                continue;
            }
            let meant = allowed.iter().find(|(_, name)| *name == local);
            let message = match meant {
                Some(("", _)) => {
                    format!("the attribute must be written {local}, without a namespace")
                }
                Some((right, _)) => {
                    format!(
                        "the attribute must be qualified: {} is expected",
                        qualified(right, local)
                    )
                }
                None if allowed.is_empty() => "no attribute is allowed here".to_owned(),
                None => {
                    let names: Vec<String> = allowed.iter().map(|(ns, name)| qualified(ns, name)).collect();
                    format!(
                        "the attribute is not known here; allowed are {}",
                        names.join(", ")
                    )
                }
            };
            self.attribute(
                ViolationKind::Structure,
                node,
                &qualified(namespace, local),
                message,
            );
        }
    }

    /// Text of an element that may hold nothing else.
    pub(crate) fn text<'d>(&mut self, node: Node<'d>) -> Option<Cow<'d, str>> {
        self.attributes(node, &[]);
        self.text_only(node)
    }

    /// As [`Check::text`], for an element with attributes that are read elsewhere.
    pub(crate) fn text_only<'d>(&mut self, node: Node<'d>) -> Option<Cow<'d, str>> {
        if let Some(child) = node.first_child() {
            self.structure(child, format!("{} may hold only text", node.name()));
            return None;
        }
        Some(node.text())
    }

    /// A string as it stands.
    pub(crate) fn string(&mut self, node: Node<'_>) -> Option<String> {
        self.text(node).map(Cow::into_owned)
    }

    /// A simple value, white space collapsed as XML Schema does for all types but strings.
    pub(crate) fn simple<T>(
        &mut self,
        node: Node<'_>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.attributes(node, &[]);
        self.simple_only(node, parse)
    }

    /// As [`Check::simple`], for an element with attributes that are read elsewhere.
    pub(crate) fn simple_only<T>(
        &mut self,
        node: Node<'_>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text_only(node)?;
        match parse(collapse(&text).as_ref()) {
            Ok(value) => Some(value),
            Err(message) => {
                self.value(node, message);
                None
            }
        }
    }

    pub(crate) fn date_time(&mut self, node: Node<'_>) -> Option<DateTime> {
        self.simple(node, |text| text.parse().map_err(|error| format!("{error}")))
    }
}

/// `prefix:local`, with the usual prefix.
pub(crate) fn qualified(namespace: &str, local: &str) -> String {
    match ns::prefix_of(namespace) {
        Some(prefix) => format!("{prefix}:{local}"),
        None => local.to_owned(),
    }
}

/// White space collapsed as XML Schema defines it.
pub(crate) fn collapse(text: &str) -> Cow<'_, str> {
    const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];
    let trimmed = text.trim_matches(SPACE);
    if !trimmed.contains(['\t', '\n', '\r']) && !trimmed.contains("  ") {
        return Cow::Borrowed(trimmed);
    }
    let words: Vec<&str> = trimmed.split(SPACE).filter(|word| !word.is_empty()).collect();
    Cow::Owned(words.join(" "))
}

/// How many passed-over names are remembered for "… is expected".
const REMEMBERED: usize = 24;

/// The child elements of one element, taken in their order.
pub(crate) struct Sequence<'d> {
    parent: Node<'d>,
    next: Option<Node<'d>>,
    /// Set once an element was out of place: from then on elements are found by name.
    broken: bool,
    tried: [(&'static str, &'static str); REMEMBERED],
    tried_count: usize,
}

impl<'d> Sequence<'d> {
    /// The children of an element that may hold elements only.
    pub(crate) fn of(check: &mut Check, parent: Node<'d>) -> Sequence<'d> {
        let text = parent.text();
        if !text.trim_matches([' ', '\t', '\n', '\r']).is_empty() {
            check.structure(parent, "text is not allowed here, only elements");
        }
        Sequence {
            parent,
            next: parent.first_child(),
            broken: false,
            tried: [("", ""); REMEMBERED],
            tried_count: 0,
        }
    }

    fn remember(&mut self, namespace: &'static str, local: &'static str) {
        if self.tried_count < REMEMBERED {
            self.tried[self.tried_count] = (namespace, local);
            self.tried_count += 1;
        }
    }

    /// The elements that could have stood here, as a list of names.
    fn expected(&self) -> String {
        let mut names = String::new();
        for (index, (namespace, local)) in self.tried[..self.tried_count].iter().enumerate() {
            if index > 0 {
                names.push_str(if index + 1 == self.tried_count {
                    " or "
                } else {
                    ", "
                });
            }
            names.push_str(&qualified(namespace, local));
        }
        names
    }

    fn advance(&mut self, taken: Node<'d>) {
        self.next = taken.next();
        self.tried_count = 0;
    }

    /// The next child if it has this name; in a broken sequence, the first one that has.
    pub(crate) fn optional(&mut self, namespace: &'static str, local: &'static str) -> Option<Node<'d>> {
        if self.broken {
            return self.parent.children().find(|child| child.is(namespace, local));
        }
        match self.next {
            Some(next) if next.is(namespace, local) => {
                self.advance(next);
                Some(next)
            }
            _ => {
                self.remember(namespace, local);
                None
            }
        }
    }

    /// As [`Sequence::optional`], but its absence is a violation.
    pub(crate) fn required(
        &mut self,
        check: &mut Check,
        namespace: &'static str,
        local: &'static str,
    ) -> Option<Node<'d>> {
        if let Some(found) = self.optional(namespace, local) {
            return Some(found);
        }
        if self.broken {
            // A child out of place was reported already; a missing one gets a violation of its own.
            check.structure(self.parent, format!("{} is missing", qualified(namespace, local)));
            return None;
        }
        let expected = self.expected();
        match self.next {
            Some(next) => check.structure(next, format!("{expected} is expected here")),
            None => check.structure(self.parent, format!("{expected} is missing at its end")),
        }
        self.broken = true;
        self.parent.children().find(|child| child.is(namespace, local))
    }

    /// The following children of this name, possibly none.
    pub(crate) fn many(&mut self, namespace: &'static str, local: &'static str) -> Vec<Node<'d>> {
        if self.broken {
            return self
                .parent
                .children()
                .filter(|child| child.is(namespace, local))
                .collect();
        }
        let mut found = Vec::new();
        while let Some(node) = self.optional(namespace, local) {
            found.push(node);
        }
        found
    }

    /// As [`Sequence::many`], but there must be at least one.
    pub(crate) fn at_least_one(
        &mut self,
        check: &mut Check,
        namespace: &'static str,
        local: &'static str,
    ) -> Vec<Node<'d>> {
        let Some(first) = self.required(check, namespace, local) else {
            return Vec::new();
        };
        if self.broken {
            return self.many(namespace, local);
        }
        let mut found = vec![first];
        found.extend(self.many(namespace, local));
        found
    }

    /// The next child if one of these names fits it.
    pub(crate) fn one_of(
        &mut self,
        namespace: &'static str,
        locals: &[&'static str],
    ) -> Option<(&'static str, Node<'d>)> {
        locals
            .iter()
            .find_map(|local| Some((*local, self.optional(namespace, local)?)))
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

    /// As [`Sequence::optional`], for names that come again: a broken sequence has no next one.
    pub(crate) fn next_of(&mut self, namespace: &'static str, local: &'static str) -> Option<Node<'d>> {
        if self.broken {
            None
        } else {
            self.optional(namespace, local)
        }
    }

    /// The next child, of any name.
    pub(crate) fn any(&mut self) -> Option<Node<'d>> {
        let next = self.next.filter(|_| !self.broken)?;
        self.advance(next);
        Some(next)
    }

    /// Nothing may follow.
    pub(crate) fn end(self, check: &mut Check) {
        let Some(next) = self.next.filter(|_| !self.broken) else {
            return;
        };
        let expected = self.expected();
        let end = format!("the end of {}", self.parent.name());
        if expected.is_empty() {
            check.structure(next, format!("{end} is expected here"));
        } else {
            check.structure(next, format!("{expected} or {end} is expected here"));
        }
    }
}

fn is_foreign(node: Node<'_>, own: &str) -> bool {
    !node.namespace().is_empty() && node.namespace() != own
}

/// Fragments of elements.
pub(crate) fn fragments(nodes: &[Node<'_>]) -> Vec<Fragment> {
    nodes.iter().map(|node| node.fragment()).collect()
}

/// Reads a document with one of several names at its root.
pub(crate) fn read_root<T>(
    document: &Document<'_>,
    read: impl FnOnce(&mut Check, Node<'_>) -> Option<T>,
) -> Result<T, Violations> {
    let mut check = Check::default();
    let root = document.root();
    let read = root.and_then(|root| read(&mut check, root));
    if let Some(root) = root.filter(|_| document.inherits_too_much()) {
        let message = format!(
            "its elements inherit more than {INHERITED_MAX} bytes of namespace declarations; declare what only a few \
             elements use where they stand"
        );
        check.add(ViolationKind::Value, root, message);
    }
    check.finish(read)
}
