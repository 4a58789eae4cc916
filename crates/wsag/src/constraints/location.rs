//! Locations: XPath 1.0 in either of the two dialects that templates are written in.
//!
//! One is a plain XPath whose prefixes are those in scope where it stands; the other an XQuery prolog that
//! declares its prefixes and then starts from `$this`, which is the document that holds the offer. In both, the
//! protocol's usual prefixes stand for their namespaces even where nobody declares them.

use uppsala::{NodeId, NodeKind, XPathEvaluator};

use crate::constraints::steps::{Paths, Selected, View};
use crate::document::Node;
use crate::guard::{is_name_char, is_name_start};
use crate::ns;

/// Longest Location, in bytes.
const LENGTH_MAX: usize = 2_000;
/// Most nodes that one evaluation may visit: some fifteen full walks of the largest document that the guard lets
/// through. An expression that needs more is refused instead of being waited for.
const VISITS_MAX: usize = 100_000;
/// Deepest nesting of an expression.
const NESTING_MAX: u32 = 16;

/// A Location that was found to be well-formed.
pub(crate) enum Location {
    /// Of the subset that needs no engine.
    Simple(Paths),
    /// Any other XPath.
    General(General),
}

/// An XPath for the general engine.
pub(crate) struct General {
    evaluator: XPathEvaluator,
    path: String,
}

impl Location {
    /// Compiles the text of an element, whose namespace declarations count.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub(crate) fn compile(text: &str, scope: Node<'_>) -> Result<Location, String> {
        if text.len() > LENGTH_MAX {
            return Err(format!("a Location may have {LENGTH_MAX} bytes at most"));
        }
        let mut prefixes: Vec<(String, String)> =
            ns::PREFIXES.map(|(p, n)| (p.to_owned(), n.to_owned())).to_vec();
        prefixes.extend(
            scope
                .prefixes()
                .into_iter()
                .map(|(p, n)| (p.to_owned(), n.to_owned())),
        );
        let mut rest = text.trim();
        while let Some(declaration) = rest.strip_prefix("declare") {
            let (declared, after) = prolog(declaration)?;
            prefixes.push(declared);
            rest = after.trim_start();
        }
        let path = rewrite(rest, |prefix| prefixes.iter().any(|(known, _)| known == prefix))?;
        let namespace = |prefix: &str| {
            prefixes
                .iter()
                .rev()
                .find(|(known, _)| known == prefix)
                .map(|(_, n)| n.clone())
        };
        if let Some(paths) = Paths::parse(&path, &namespace) {
            return Ok(Location::Simple(paths));
        }
        let mut evaluator = XPathEvaluator::new()
            .with_max_depth(NESTING_MAX)
            .with_max_node_visits(VISITS_MAX);
        // Later ones replace earlier ones: the document's own over the usual, the prolog's over both.
        for (prefix, namespace) in prefixes {
            evaluator.add_namespace(prefix, namespace);
        }
        let general = General { evaluator, path };
        // A tiny document is enough to find what is not XPath at all.
        let tiny = uppsala::parse("<x/>").map_err(|error| error.to_string())?;
        general.select(&tiny)?;
        Ok(Location::General(general))
    }

    /// Whether it needs no engine, and so no document in which the offer is the root.
    pub(crate) fn is_simple(&self) -> bool {
        matches!(self, Location::Simple(_))
    }

    /// What it selects. For a general one, the offer must be the root of its document.
    ///
    /// # Errors
    /// Why it cannot be evaluated here.
    pub(crate) fn select<'d>(&self, view: &View<'d>) -> Result<Vec<Selected<'d>>, String> {
        let general = match self {
            Location::Simple(paths) => return paths.select(view),
            Location::General(general) => general,
        };
        let tree = view.offer().tree();
        let ids = general.select(tree)?;
        let owner = |id| {
            tree.parent(id)
                .and_then(|parent| Node::new(tree, parent))
                .unwrap_or(view.offer())
        };
        let selected = ids.into_iter().filter_map(|id| match tree.node_kind(id)? {
            NodeKind::Attribute(name, value) => {
                let namespace = name.namespace_uri.as_deref().unwrap_or_default();
                Some(Selected::Attribute(owner(id), namespace, &name.local_name, value))
            }
            NodeKind::Text(value) | NodeKind::CData(value) => Some(Selected::Text(owner(id), value)),
            _ => Node::new(tree, id).map(Selected::Element),
        });
        Ok(selected.collect())
    }
}

impl General {
    fn select(&self, tree: &uppsala::Document<'_>) -> Result<Vec<NodeId>, String> {
        let selected = self.evaluator.select_nodes(tree, tree.root(), &self.path);
        selected.map_err(|error| format!("the Location cannot be evaluated: {error}"))
    }
}

/// `namespace prefix = "uri";` after `declare`.
fn prolog(text: &str) -> Result<((String, String), &str), String> {
    const EXPECTED: &str = "a prolog may only have: declare namespace prefix = 'uri';";
    let after = text.trim_start().strip_prefix("namespace").ok_or(EXPECTED)?;
    let (prefix, after) = after.split_once('=').ok_or(EXPECTED)?;
    let after = after.trim_start();
    let quote = after
        .chars()
        .next()
        .filter(|c| matches!(c, '\'' | '"'))
        .ok_or(EXPECTED)?;
    let (uri, after) = after[1..].split_once(quote).ok_or(EXPECTED)?;
    let after = after.trim_start().strip_prefix(';').ok_or(EXPECTED)?;
    let prefix = prefix.trim();
    let is_name = prefix.starts_with(is_name_start) && prefix.chars().all(is_name_char);
    if !is_name || uri.is_empty() {
        return Err(EXPECTED.to_owned());
    }
    Ok(((prefix.to_owned(), uri.to_owned()), after))
}

/// Turns `$this` into the root, and checks that no other variable and no unknown prefix is used. String literals
/// are left alone.
fn rewrite(text: &str, known: impl Fn(&str) -> bool) -> Result<String, String> {
    let mut path = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if matches!(c, '\'' | '"') {
            let end = rest[1..]
                .find(c)
                .ok_or("a string in the Location is not closed")?
                + 2;
            path.push_str(&rest[..end]);
            rest = &rest[end..];
        } else if c == '$' {
            let name_end = rest[1..]
                .find(|c| !is_name_char(c))
                .map_or(rest.len(), |end| end + 1);
            if &rest[..name_end] != "$this" {
                return Err(format!(
                    "the variable {} is not known; only $this is",
                    &rest[..name_end]
                ));
            }
            rest = &rest[name_end..];
            if !rest.starts_with('/') {
                path.push('/');
            }
        } else if is_name_start(c) {
            let name_end = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(name_end);
            if after.starts_with(':') && !after.starts_with("::") && !known(name) {
                return Err(format!("the prefix {name} of the Location is not declared"));
            }
            path.push_str(name);
            rest = after;
        } else {
            path.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    Ok(path)
}
