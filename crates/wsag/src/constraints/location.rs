//! Locations: a subset of XPath 1.0 in either of the two dialects that templates are written in.
//!
//! One is a plain XPath with the prefixes in scope where it stands. The other is an XQuery prolog that declares its prefixes and
//! then starts from `$this`, which is the document that holds the offer. In both, the protocol's usual prefixes stand for their
//! namespaces even where they are not declared.

use std::sync::Arc;

use crate::constraints::path_parser;
use crate::constraints::steps::StepPaths;
use crate::xml::{Node, is_name_char, is_name_start, ns};

/// Longest Location, in bytes.
const LENGTH_MAX: usize = 2_000;

/// Compiles the text of an element, with the namespace declarations of the element.
///
/// # Errors
/// Why it cannot be evaluated.
pub(crate) fn compile_location(text: &str, scope: Node<'_>) -> Result<StepPaths, String> {
    if text.len() > LENGTH_MAX {
        return Err(format!("a Location may have {LENGTH_MAX} bytes at most"));
    }
    let mut prologs = Vec::new();
    let mut rest = text.trim();
    while let Some(declaration) = rest.strip_prefix("declare") {
        let (declared, after) = read_prolog_of_location(declaration)?;
        prologs.push(declared);
        rest = after.trim_start();
    }
    // The prolog's own go before the document's, and those before the usual ones.
    let in_scope = scope.prefixes();
    let known = prologs.into_iter().rev().chain(in_scope).chain(ns::PREFIXES);
    let known: Vec<(&str, Arc<str>)> = known
        .map(|(prefix, namespace)| (prefix, namespace.into()))
        .collect();
    let namespace = |prefix: &str| {
        let found = known.iter().find(|(declared, _)| *declared == prefix);
        found.map(|(_, namespace)| Arc::clone(namespace))
    };
    path_parser::parse_location_path(rest, &namespace)
}

/// `namespace prefix = "uri";` after `declare`.
fn read_prolog_of_location(text: &str) -> Result<((&str, &str), &str), String> {
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
    Ok(((prefix, uri), after))
}
