//! The text of a Location as steps.
//!
//! ```text
//! location   = path { "|" path }
//! path       = [ "$this" ] ( "/" | "//" ) step { ( "/" | "//" ) step }
//! step       = [ "child::" | "descendant::" ] test { "[" predicate "]" }
//!            | ( "@" | "attribute::" ) test | "text()"                         the last two only at the end
//! test       = "*" | prefix ":*" | [ prefix ":" ] name
//! predicate  = number | "last()" | any
//! any        = all { "or" all }
//! all        = one { "and" one }
//! one        = "not(" any ")" | "(" any ")" | has [ ( "=" | "!=" ) string ]
//!            | ( "local-name()" | "namespace-uri()" ) ( "=" | "!=" ) string
//! has        = ( "@" | "attribute::" ) test | [ "child::" ] test
//! ```

use std::sync::Arc;

use crate::constraints::steps::{
    PathStep, StepComparison, StepCondition, StepKind, StepPaths, StepPredicate, StepSubject, StepTest,
};
use crate::languages::meaning_in_language;
use crate::xml::{is_name_char, is_name_start};

/// Most steps of a path and most paths of a union.
const STEPS_MAX: usize = 32;
/// Deepest nesting of parentheses in a predicate.
const NESTING_MAX: usize = 16;
/// The form of a Location, for the message to authors of another form.
const SUBSET: &str = "a Location may only have paths from the root, joined by |, of child, descendant and attribute steps; the last \
                      step may be text(), and predicates may be positions or compare attributes, children and names with strings";

/// Reads the text; `namespace` gives the namespace of a prefix. What it names in WSAG4J's language is also what that
/// means.
///
/// # Errors
/// Why it is no Location that can be evaluated.
pub(super) fn parse_location_path(
    text: &str,
    namespace: &dyn Fn(&str) -> Option<Arc<str>>,
) -> Result<StepPaths, String> {
    let mut parser = PathParser {
        rest: text.trim(),
        namespace,
    };
    let mut paths = Vec::new();
    loop {
        parser.space();
        paths.push(parser.path()?);
        if parser.rest.is_empty() {
            return Ok(StepPaths(paths));
        }
        if paths.len() == STEPS_MAX {
            return Err(format!("a Location may have {STEPS_MAX} paths at most"));
        }
        parser.require("|")?;
    }
}

struct PathParser<'t, 'n> {
    rest: &'t str,
    namespace: &'n dyn Fn(&str) -> Option<Arc<str>>,
}

impl<'t> PathParser<'t, '_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    /// Takes `literal` if it comes next.
    fn take(&mut self, literal: &str) -> bool {
        take_literal(&mut self.rest, literal)
    }

    fn require(&mut self, literal: &str) -> Result<(), String> {
        if self.take(literal) {
            return Ok(());
        }
        Err(self.unexpected(literal))
    }

    fn unexpected(&self, expected: &str) -> String {
        let rest: String = self.rest.chars().take(40).collect();
        format!(
            "the Location cannot be evaluated: {expected} is expected where it goes on with {rest:?}; {SUBSET}"
        )
    }

    /// A path, and the space after it.
    fn path(&mut self) -> Result<Vec<PathStep>, String> {
        if self.take("$") {
            let name = self.word().unwrap_or_default();
            if name != "this" {
                return Err(format!("the variable ${name} is not known; only $this is"));
            }
            self.space();
        }
        let mut steps: Vec<PathStep> = Vec::new();
        loop {
            let deep = self.take("//");
            if !deep && !self.take("/") {
                return if steps.is_empty() {
                    Err(self.unexpected("/ or //"))
                } else {
                    Ok(steps)
                };
            }
            if steps.last().is_some_and(|step| step.kind != StepKind::Element) {
                return Err(format!(
                    "nothing is below an attribute or a text in a Location; {SUBSET}"
                ));
            }
            if steps.len() == STEPS_MAX {
                return Err(format!("a path of a Location may have {STEPS_MAX} steps at most"));
            }
            self.space();
            steps.push(self.step(deep)?);
            self.space();
        }
    }

    fn step(&mut self, mut deep: bool) -> Result<PathStep, String> {
        let mut kind = self.axis();
        let descendant = kind == StepKind::Element && self.take("descendant::");
        deep |= descendant;
        self.space();
        let test = if kind == StepKind::Element && self.function("text") {
            kind = StepKind::Text;
            StepTest::ANY
        } else {
            self.test(kind)?
        };
        let mut predicates = Vec::new();
        self.space();
        while kind == StepKind::Element && self.take("[") {
            predicates.push(self.predicate()?);
            self.space();
        }
        // a/descendant::b is a//b, but there positions are counted among all descendants.
        if descendant && predicates.iter().any(StepPredicate::is_position) {
            return Err("a position after descendant:: cannot be evaluated in a Location; // counts the children of each".to_owned());
        }
        Ok(PathStep {
            deep,
            kind,
            test,
            predicates,
        })
    }

    /// The axis before a test: whether it is that of attributes.
    fn axis(&mut self) -> StepKind {
        if self.take("@") || self.take("attribute::") {
            return StepKind::Attribute;
        }
        self.take("child::");
        StepKind::Element
    }

    /// Takes all that `take` takes, or nothing where it does not find what it looks for.
    fn attempt(&mut self, take: impl FnOnce(&mut Self) -> bool) -> bool {
        let at = self.rest;
        let found = take(self);
        if !found {
            self.rest = at;
        }
        found
    }

    /// Takes `name()`, if it comes next.
    fn function(&mut self, name: &str) -> bool {
        let bracket = |parser: &mut Self, bracket| {
            parser.space();
            parser.take(bracket)
        };
        self.attempt(|parser| parser.word() == Some(name) && bracket(parser, "(") && bracket(parser, ")"))
    }

    fn word(&mut self) -> Option<&'t str> {
        let end = self.rest.find(|c| !is_name_char(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.starts_with(is_name_start).then_some(word)
    }

    fn test(&mut self, kind: StepKind) -> Result<StepTest, String> {
        if self.take("*") {
            return Ok(StepTest::ANY);
        }
        let at = self.rest;
        let Some(first) = self.word() else {
            self.rest = at;
            return Err(self.unexpected("a name or *"));
        };
        let mut name = (Arc::from(""), Some(first));
        if !self.rest.starts_with("::") && self.take(":") {
            let namespace = (self.namespace)(first);
            name.0 =
                namespace.ok_or_else(|| format!("the prefix {first} of the Location is not declared"))?;
            name.1 = if self.take("*") {
                None
            } else {
                Some(self.word().ok_or_else(|| self.unexpected("a name"))?)
            };
        }
        // A function, or an axis other than those above.
        if self.rest.trim_start().starts_with('(') || self.rest.starts_with("::") {
            self.rest = at;
            return Err(self.unexpected("a name or *"));
        }
        // Attributes have no other meaning in any language.
        let is_element = kind == StepKind::Element;
        let meaning = is_element.then(|| meaning_in_language(&name.0, name.1));
        Ok(StepTest {
            meaning: meaning.flatten(),
            namespace: Some(name.0),
            local: name.1.map(str::to_owned),
        })
    }

    /// The content of brackets, and the closing one.
    fn predicate(&mut self) -> Result<StepPredicate, String> {
        self.space();
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let predicate = if digits > 0 {
            let position = self.rest[..digits].parse();
            self.rest = &self.rest[digits..];
            StepPredicate::Position(
                position.map_err(|_| "a position in the Location is too large".to_owned())?,
            )
        } else if self.function("last") {
            StepPredicate::Last
        } else {
            StepPredicate::Holds(self.any(0)?)
        };
        self.space();
        self.require("]")?;
        Ok(predicate)
    }

    fn any(&mut self, nesting: usize) -> Result<StepCondition, String> {
        self.joined("or", StepCondition::Any, |parser| {
            parser.joined("and", StepCondition::All, |parser| parser.one(nesting))
        })
    }

    /// One condition, or several with an operator between them that is a word.
    fn joined(
        &mut self,
        operator: &str,
        several: fn(Vec<StepCondition>) -> StepCondition,
        one: impl Fn(&mut Self) -> Result<StepCondition, String>,
    ) -> Result<StepCondition, String> {
        let mut members = vec![one(self)?];
        while self.attempt(|parser| {
            parser.space();
            parser.word() == Some(operator)
        }) {
            members.push(one(self)?);
        }
        Ok(match members.len() {
            1 => members.remove(0),
            _ => several(members),
        })
    }

    fn one(&mut self, nesting: usize) -> Result<StepCondition, String> {
        if nesting > NESTING_MAX {
            return Err(format!(
                "parentheses in a Location may be nested {NESTING_MAX} deep at most"
            ));
        }
        self.space();
        let not =
            self.attempt(|parser| parser.word() == Some("not") && parser.rest.trim_start().starts_with('('));
        self.space();
        if self.take("(") {
            let inner = self.any(nesting + 1)?;
            self.space();
            self.require(")")?;
            return Ok(if not {
                StepCondition::Not(Box::new(inner))
            } else {
                inner
            });
        }
        let subject = self.subject()?;
        self.space();
        let equal = self.take("=");
        let comparison = if equal || self.take("!=") {
            self.space();
            Some(StepComparison {
                equal,
                value: self.string()?,
            })
        } else if matches!(subject, StepSubject::Attribute(_) | StepSubject::Child(_)) {
            None
        } else {
            return Err(self.unexpected("= or !="));
        };
        Ok(StepCondition::Has(subject, comparison))
    }

    fn subject(&mut self) -> Result<StepSubject, String> {
        if self.function("local-name") {
            return Ok(StepSubject::LocalName);
        }
        if self.function("namespace-uri") {
            return Ok(StepSubject::NamespaceUri);
        }
        let kind = self.axis();
        self.space();
        let test = self.test(kind)?;
        Ok(if kind == StepKind::Attribute {
            StepSubject::Attribute(test)
        } else {
            StepSubject::Child(test)
        })
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let quote = quote.ok_or_else(|| self.unexpected("a string in quotes"))?;
        let (value, rest) = self.rest[1..]
            .split_once(quote)
            .ok_or("a string in the Location is not closed")?;
        self.rest = rest;
        Ok(value.to_owned())
    }
}

/// Takes a literal from the beginning of a text, where it is there.
pub(super) fn take_literal(rest: &mut &str, literal: &str) -> bool {
    let Some(behind) = rest.strip_prefix(literal) else {
        return false;
    };
    *rest = behind;
    true
}
