//! Tags, attributes and namespaces: the part of the guard that keeps a stack.

use std::borrow::Cow;

use crate::xml::guard::{
    ATTRIBUTES_MAX, BINDINGS_MAX, DECLARATIONS_MAX, DEPTH_MAX, ELEMENTS_MAX, GuardResult, NAMESPACE_MAX,
    Open, Scanner, referred_character, refuse,
};
use crate::xml::ns;

/// An attribute of the start tag being read, other than a namespace declaration.
struct Attribute<'a> {
    name: &'a str,
    at: usize,
}

/// Refuses more than there may be.
fn refuse_too_many_of_tag(at: usize, count: usize, most: usize, text: &str) -> GuardResult<()> {
    if count > most {
        return refuse(at, format!("more than {most} {text}"));
    }
    Ok(())
}

impl<'a> Scanner<'a> {
    pub(super) fn start_tag(&mut self) -> GuardResult<()> {
        let start = self.at;
        self.at += 1;
        let name = self.name("an element's name")?;
        if self.open.is_empty() && self.elements > 0 {
            let reason = format!("a second root element <{name}>; only one is allowed");
            return refuse(start, reason);
        }
        self.elements += 1;
        refuse_too_many_of_tag(start, self.elements, ELEMENTS_MAX, "elements")?;
        let bindings = self.bindings.len();
        let (attributes, empty) = self.attributes(bindings)?;
        self.check_prefixes_of_tag(name, start, &attributes)?;
        if empty {
            self.bindings.truncate(bindings);
            // An empty element is one level deeper as well.
            return refuse_too_many_of_tag(start, self.open.len() + 1, DEPTH_MAX, "nested elements");
        }
        self.open.push(Open {
            name,
            at: start,
            bindings,
        });
        refuse_too_many_of_tag(start, self.open.len(), DEPTH_MAX, "nested elements")
    }

    /// The attributes up to the end of the start tag, and whether the tag is an empty element's.
    fn attributes(&mut self, bindings: usize) -> GuardResult<(Vec<Attribute<'a>>, bool)> {
        let mut attributes = Vec::new();
        loop {
            let spaced = self.skip_space();
            match self.peek() {
                Some(b'>') => {
                    self.at += 1;
                    return Ok((attributes, false));
                }
                Some(b'/') if self.take("/>") => return Ok((attributes, true)),
                Some(b'/') => return refuse(self.at, "/ without > in a tag"),
                None => return refuse(self.at, "the document ends inside a tag"),
                Some(_) if !spaced => return refuse(self.at, "white space is expected before an attribute"),
                Some(_) => self.attribute(bindings, &mut attributes)?,
            }
        }
    }

    fn attribute(&mut self, bindings: usize, attributes: &mut Vec<Attribute<'a>>) -> GuardResult<()> {
        let at = self.at;
        let name = self.name("an attribute's name, > or />")?;
        self.skip_space();
        if !self.take("=") {
            return refuse(self.at, format!("= is expected after the attribute {name}"));
        }
        self.skip_space();
        let value = self.attribute_value(name)?;
        let declared = name
            .strip_prefix("xmlns:")
            .or_else(|| (name == "xmlns").then_some(""));
        if let Some(prefix) = declared {
            return self.declare(at, prefix, value, bindings);
        }
        if attributes.iter().any(|other| other.name == name) {
            return refuse(at, format!("the attribute {name} occurs twice"));
        }
        attributes.push(Attribute { name, at });
        refuse_too_many_of_tag(at, attributes.len(), ATTRIBUTES_MAX, "attributes on one element")
    }

    fn attribute_value(&mut self, name: &str) -> GuardResult<&'a str> {
        let Some(quote @ (b'"' | b'\'')) = self.peek() else {
            return refuse(self.at, format!("the value of {name} must be in quotes"));
        };
        self.at += 1;
        let start = self.at;
        loop {
            self.skip_plain();
            match self.peek() {
                None => return refuse(start, format!("the value of {name} is not closed")),
                Some(found) if found == quote => {
                    self.at += 1;
                    return Ok(&self.text[start..self.at - 1]);
                }
                Some(b'<') => return refuse(self.at, format!("< in the value of {name}; write &lt;")),
                Some(b'&') => self.reference()?,
                Some(_) => self.character()?,
            }
        }
    }

    /// A namespace declaration, by the constraints of Namespaces in XML 1.0.
    fn declare(&mut self, at: usize, prefix: &'a str, value: &'a str, bindings: usize) -> GuardResult<()> {
        let name = normalise_attribute_of_tag(value);
        let own = &self.bindings[bindings..];
        if own.iter().any(|(other, _)| *other == prefix) {
            let reason = format!("the namespace prefix {prefix:?} is declared twice on one element");
            return refuse(at, reason);
        }
        let (here, in_scope) = (own.len() + 1, self.bindings.len() + 1);
        refuse_too_many_of_tag(
            at,
            here,
            DECLARATIONS_MAX,
            "namespace declarations on one element",
        )?;
        refuse_too_many_of_tag(at, in_scope, BINDINGS_MAX, "namespace declarations in scope")?;
        if name.len() > NAMESPACE_MAX {
            return refuse(at, format!("a namespace name of more than {NAMESPACE_MAX} bytes"));
        }
        let reserved = match prefix {
            "xmlns" => true,
            "xml" => name != ns::XML,
            _ => name == ns::XML || name == ns::XMLNS,
        };
        if reserved {
            let reason = "a declaration that touches the reserved prefixes xml and xmlns";
            return refuse(at, reason);
        }
        if name.is_empty() && !prefix.is_empty() {
            let reason = format!("the prefix {prefix} is declared empty, which only the default may be");
            return refuse(at, reason);
        }
        self.bindings.push((prefix, name));
        Ok(())
    }

    /// The namespace of a prefix that is in scope.
    fn namespace_in_tag(&self, prefix: &str) -> Option<&str> {
        if prefix == "xml" {
            return Some(ns::XML);
        }
        self.bindings
            .iter()
            .rev()
            .find(|(bound, _)| *bound == prefix)
            .map(|(_, name)| name.as_ref())
    }

    /// Every prefix is declared, and no attribute occurs twice under two prefixes.
    fn check_prefixes_of_tag(&self, name: &str, at: usize, attributes: &[Attribute<'a>]) -> GuardResult<()> {
        let undeclared = |at, prefix| refuse(at, format!("the namespace prefix {prefix} is not declared"));
        if let Some((prefix, _)) = name.split_once(':')
            && (prefix == "xmlns" || self.namespace_in_tag(prefix).is_none())
        {
            return undeclared(at, prefix);
        }
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for attribute in attributes {
            let Some((prefix, local)) = attribute.name.split_once(':') else {
                continue;
            };
            let Some(namespace) = self.namespace_in_tag(prefix) else {
                return undeclared(attribute.at, prefix);
            };
            // Local names differ nearly always, where namespaces hardly ever do.
            if seen
                .iter()
                .any(|(other, name)| *name == local && *other == namespace)
            {
                let reason = format!("the attribute {} occurs twice", attribute.name);
                return refuse(attribute.at, reason);
            }
            seen.push((namespace, local));
        }
        Ok(())
    }

    pub(super) fn end_tag(&mut self) -> GuardResult<()> {
        let start = self.at;
        self.at += 2;
        let name = self.name("the name of the element to close")?;
        self.skip_space();
        if !self.take(">") {
            return refuse(self.at, format!("> is expected to end </{name}"));
        }
        match self.open.pop() {
            Some(open) if open.name == name => {
                self.bindings.truncate(open.bindings);
                Ok(())
            }
            Some(open) => refuse(start, format!("</{name}> where </{}> is expected", open.name)),
            None => refuse(start, format!("</{name}> closes nothing")),
        }
    }
}

/// An attribute value as XML 1.0 says in section 3.3.3: references resolved, and white space as spaces. The guard has found it valid.
fn normalise_attribute_of_tag(value: &str) -> Cow<'_, str> {
    if !value.contains(['&', '\t', '\n', '\r']) {
        return Cow::Borrowed(value);
    }
    let spaced = value.replace("\r\n", " ").replace(['\t', '\n', '\r'], " ");
    let mut pieces = spaced.split('&');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once(';').unwrap_or((piece, ""));
        plain.extend(referred_character(name));
        plain.push_str(rest);
    }
    Cow::Owned(plain)
}
