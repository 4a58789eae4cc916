//! The violations of a document, with their places.

use std::borrow::Cow;
use std::fmt;

/// The subject of a violation; a server answers some of them differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ViolationKind {
    /// An element, an attribute or text that is missing, unknown or out of order.
    Structure,
    /// A value that is not of its type, or contradicts another one.
    Value,
    /// A service description term in a language that is not known here.
    UnknownTerm,
    /// A critical extension that is not known here.
    UnknownExtension,
    /// Known to the specification, but not honoured by this service.
    NotSupported,
    /// A creation constraint of the template, or a negotiation constraint, that is not met.
    Constraint,
    /// An expression or constraint that cannot be evaluated.
    NotEvaluable,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The element or attribute, like `/wsag:AgreementOffer/wsag:Context/wsag:TemplateId`, with the usual prefixes even where the
    /// document has others, and with a position in brackets where siblings share a name.
    pub path: String,
    /// Its subject.
    pub kind: ViolationKind,
    /// The found and the expected value, in a sentence without the path.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Most violations that are collected from one document; more would be of no help.
pub const VIOLATIONS_MAX: usize = 20;

/// The faults of a document; at least one, at most [`VIOLATIONS_MAX`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations(pub Vec<Violation>);

impl Violations {
    /// The first [`VIOLATIONS_MAX`] of the violations found.
    pub fn of(mut found: Vec<Violation>) -> Violations {
        found.truncate(VIOLATIONS_MAX);
        Violations(found)
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let violations: Vec<String> = self.0.iter().map(Violation::to_string).collect();
        f.write_str(&violations.join("; "))
    }
}

impl std::error::Error for Violations {}

/// Most names that a message lists.
const NAMES_MAX: usize = 20;
/// Most characters that a message shows of one name or value.
const SHOWN_MAX: usize = 100;

/// A name or value of a stranger's as a message shows it: whole where it is short, or else its beginning.
pub(crate) fn shorten_text_in_violation(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// Names as a message lists them: the first [`NAMES_MAX`], and how many more there are.
pub(crate) fn list_names_in_violation<'n>(
    names: impl IntoIterator<Item = &'n str>,
    separator: &str,
) -> String {
    let mut names = names.into_iter();
    let mut list: Vec<_> = names
        .by_ref()
        .take(NAMES_MAX)
        .map(shorten_text_in_violation)
        .collect();
    let more = names.count();
    if more > 0 {
        list.push(format!("{more} more").into());
    }
    list.join(separator)
}

/// Names of which one is expected: `a, b or c`.
pub(crate) fn one_of_names_in_violation(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => names.concat(),
    }
}
