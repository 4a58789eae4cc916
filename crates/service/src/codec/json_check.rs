//! JSON from the network checked: the tree is read into typed values, where everything wrong is collected, each with its JSON pointer
//! (RFC 6901).

use std::fmt;

use wsag::time::DateTime;
use wsag::{Violation, Violations};

use crate::codec::json::{Json, whole_json_number};
use crate::error::violation_at_path;
use crate::{Error, Result};

/// The longest name in one piece in bytes: names are keys of the store.
pub(crate) const TOKEN_MAX: usize = 255;

/// Collects the faults of a document.
#[derive(Debug, Default)]
pub(crate) struct JsonCheck {
    found: Vec<Violation>,
}

/// A value at its place.
#[derive(Debug, Clone)]
pub(crate) struct LocatedValue<'j> {
    pub(crate) value: &'j Json,
    pub(crate) pointer: String,
}

/// An object with known members only.
#[derive(Debug, Clone)]
pub(crate) struct CheckedObject<'j> {
    members: &'j [(String, Json)],
    pointer: String,
}

impl<'j> LocatedValue<'j> {
    /// A whole document.
    pub(crate) fn root(value: &'j Json) -> Self {
        Self {
            value,
            pointer: String::new(),
        }
    }

    /// The values of a list.
    pub(crate) fn values(&self) -> Vec<Self> {
        let Json::List(values) = self.value else {
            return Vec::new();
        };
        let place = |(index, value)| LocatedValue {
            value,
            pointer: format!("{}/{index}", self.pointer),
        };
        values.iter().enumerate().map(place).collect()
    }

    /// It as an object, where it is one.
    pub(crate) fn members(&self) -> Option<CheckedObject<'j>> {
        let Json::Object(members) = self.value else {
            return None;
        };
        Some(CheckedObject {
            members,
            pointer: self.pointer.clone(),
        })
    }
}

impl JsonCheck {
    /// Notes a fault at a place.
    pub(crate) fn add(&mut self, pointer: &str, message: impl Into<String>) {
        self.found.push(violation_at_path(pointer, message));
    }

    /// Notes a fault of a value, which is therefore none.
    pub(crate) fn wrong<T>(&mut self, at: &LocatedValue<'_>, message: impl Into<String>) -> Option<T> {
        self.add(&at.pointer, message);
        None
    }

    /// Notes that a value of another kind is expected.
    pub(crate) fn expected<T>(&mut self, at: &LocatedValue<'_>, what: &str) -> Option<T> {
        self.wrong(at, format!("{what} is expected, not {}", at.value.kind()))
    }

    /// The value read, where there is no fault.
    pub(crate) fn finish<T>(self, read: Option<T>) -> Result<T> {
        match read {
            Some(read) if self.found.is_empty() => Ok(read),
            _ => Err(Error::Invalid(Violations::of(self.found))),
        }
    }

    /// An object that has no members but these.
    pub(crate) fn object<'j>(&mut self, at: &LocatedValue<'j>, known: &[&str]) -> Option<CheckedObject<'j>> {
        let Some(object) = at.members() else {
            return self.expected(at, "an object");
        };
        for (name, _) in object.members {
            if !known.contains(&name.as_str()) {
                let message = format!("there is no such member; known are {}", known.join(", "));
                self.add(&pointer_to_member(&at.pointer, name), message);
            }
        }
        Some(object)
    }

    /// A list's values.
    pub(crate) fn list<'j>(&mut self, at: &LocatedValue<'j>) -> Vec<LocatedValue<'j>> {
        match at.value {
            Json::List(_) => at.values(),
            _ => self.expected(at, "a list").unwrap_or_default(),
        }
    }

    /// A text that is not empty.
    pub(crate) fn text(&mut self, at: &LocatedValue<'_>) -> Option<String> {
        let text = self.any_text(at)?;
        if text.is_empty() {
            return self.wrong(at, "a text that is not empty is expected");
        }
        Some(text)
    }

    /// A line of at most so many characters.
    pub(crate) fn line(&mut self, at: &LocatedValue<'_>, most: usize) -> Option<String> {
        let text = self.text(at)?;
        if text.chars().count() > most || text.chars().any(char::is_control) {
            return self.wrong(at, format!("a line of at most {most} characters is expected"));
        }
        Some(text)
    }

    /// A name in one piece, as an attribute of a document can carry it.
    pub(crate) fn token(&mut self, at: &LocatedValue<'_>) -> Option<String> {
        let text = self.text(at)?;
        if text.contains(char::is_whitespace) || text.len() > TOKEN_MAX {
            let message = format!("a text of at most {TOKEN_MAX} bytes, without spaces, is expected");
            return self.wrong(at, message);
        }
        Some(text)
    }

    /// A text without spaces, of any length.
    pub(crate) fn token_of_any_length(&mut self, at: &LocatedValue<'_>) -> Option<String> {
        let text = self.text(at)?;
        if text.contains(char::is_whitespace) {
            return self.wrong(at, "a text without spaces is expected");
        }
        Some(text)
    }

    /// A text that a document can carry, which may be empty.
    pub(crate) fn any_text(&mut self, at: &LocatedValue<'_>) -> Option<String> {
        let Json::Text(text) = at.value else {
            return self.expected(at, "a text");
        };
        let carried = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
        if let Some(c) = text.chars().find(|c| !carried(*c)) {
            let message = format!(
                "it has the character U+{:04X}, which no document can carry",
                u32::from(c)
            );
            return self.wrong(at, message);
        }
        Some(text.clone())
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&mut self, at: &LocatedValue<'_>) -> Option<bool> {
        match at.value {
            Json::Bool(value) => Some(*value),
            _ => self.expected(at, "true or false"),
        }
    }

    /// A whole number from 1 to `max`.
    pub(crate) fn count<T: TryFrom<u64> + Copy + PartialOrd + fmt::Display>(
        &mut self,
        at: &LocatedValue<'_>,
        max: T,
    ) -> Option<T> {
        let Json::Number(number) = at.value else {
            return self.expected(at, "a whole number");
        };
        let value = whole_json_number(number).filter(|value| *value > 0);
        let read = value
            .and_then(|value| T::try_from(value).ok())
            .filter(|value| *value <= max);
        let message = || format!("a whole number from 1 to {max} is expected, not {number}");
        read.or_else(|| self.wrong(at, message()))
    }

    /// A number of a range.
    pub(crate) fn number(
        &mut self,
        at: &LocatedValue<'_>,
        expected: &str,
        allowed: impl Fn(f64) -> bool,
    ) -> Option<f64> {
        let Json::Number(number) = at.value else {
            return self.expected(at, expected);
        };
        let value = number
            .as_f64()
            .filter(|value| value.is_finite() && allowed(*value));
        value.or_else(|| self.wrong(at, format!("{expected} is expected, not {number}")))
    }

    /// A dateTime with its zone, as RFC 3339 has it.
    pub(crate) fn date_time(&mut self, at: &LocatedValue<'_>) -> Option<DateTime> {
        let text = self.text(at)?;
        let expected = "a dateTime is expected, such as 2026-11-21T08:00:00Z";
        let time: Result<DateTime, _> = text.parse();
        if time.is_ok() && !text.ends_with('Z') && text.rfind(['+', '-']) < text.find('T') {
            return self.wrong(
                at,
                format!("{expected}: end it with Z or with an offset such as +01:00"),
            );
        }
        time.map_or_else(|why| self.wrong(at, format!("{expected}: {why}")), Some)
    }
}

impl<'j> CheckedObject<'j> {
    /// Its place.
    pub(crate) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// A member; one that is null counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<LocatedValue<'j>> {
        let (name, value) = self.members.iter().find(|(known, _)| known == name)?;
        (*value != Json::Null).then(|| LocatedValue {
            value,
            pointer: pointer_to_member(&self.pointer, name),
        })
    }

    /// Whether a member stands there as null, where that says something.
    pub(crate) fn is_null(&self, name: &str) -> bool {
        let mut members = self.members.iter();
        members.any(|(known, value)| known == name && *value == Json::Null)
    }

    /// A member, or one of an object in it after a slash.
    pub(crate) fn find(&self, path: &str) -> Option<LocatedValue<'j>> {
        let mut names = path.split('/');
        let first = self.get(names.next()?)?;
        names.try_fold(first, |at, name| at.members()?.get(name))
    }

    /// The value that `read` makes of a member; none where it is absent.
    pub(crate) fn read<T>(
        &self,
        check: &mut JsonCheck,
        name: &str,
        read: impl FnOnce(&mut JsonCheck, &LocatedValue<'j>) -> Option<T>,
    ) -> Option<T> {
        read(check, &self.get(name)?)
    }

    /// The same of a member that has to be there.
    pub(crate) fn read_required<T>(
        &self,
        check: &mut JsonCheck,
        name: &str,
        read: impl FnOnce(&mut JsonCheck, &LocatedValue<'j>) -> Option<T>,
    ) -> Option<T> {
        let at = self.required(check, name)?;
        read(check, &at)
    }

    /// A member that has to be there.
    pub(crate) fn required(&self, check: &mut JsonCheck, name: &str) -> Option<LocatedValue<'j>> {
        let found = self.get(name);
        if found.is_none() {
            check.add(&self.pointer, format!("a member \"{name}\" is expected"));
        }
        found
    }
}

/// A pointer to a member.
fn pointer_to_member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_found_with_its_pointer() {
        let json =
            Json::parse(br#"{"a/b": 1, "list": [0, "x", 5], "t": "", "when": "yesterday", "no": null}"#)
                .unwrap();
        let mut check = JsonCheck::default();
        let object = check
            .object(&LocatedValue::root(&json), &["list", "t", "when", "no"])
            .unwrap();
        for at in check.list(&object.get("list").unwrap()) {
            check.count::<u32>(&at, u32::MAX);
        }
        check.text(&object.get("t").unwrap());
        check.date_time(&object.get("when").unwrap());
        object.required(&mut check, "no");
        let found = match check.finish(Some(())) {
            Err(Error::Invalid(violations)) => violations.0,
            other => panic!("{other:?}"),
        };
        let paths: Vec<_> = found.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["/a~1b", "/list/0", "/list/1", "/t", "/when", ""]);
    }
}
