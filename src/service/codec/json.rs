//! JSON from the network: read into a tree within bounds, and the tree into typed values, where everything wrong is
//! collected, each with its JSON pointer (RFC 6901). Answers that only a client reads are written as such a tree.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::Value;
use wsag::time::DateTime;
use wsag::{Violation, Violations};

use crate::service::error::violation_at_path;
use crate::service::{Error, Result};

/// How deep values may stand in each other, as in XML: no request needs a quarter of it.
const DEPTH_MAX: usize = 32;
/// Values of a document, as many as XML may have elements.
const VALUES_MAX: usize = 2_000;

/// The longest name in one piece in bytes: names are keys of the store.
pub(in crate::service) const TOKEN_MAX: usize = 255;

/// A value of JSON. Members keep their order, and none stands there twice.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(serde_json::Number),
    /// A text.
    Text(String),
    /// Values in order.
    List(Vec<Json>),
    /// Members in order.
    #[serde(serialize_with = "write_members_in_order")]
    Object(Vec<(String, Json)>),
}

fn write_members_in_order<S: Serializer>(
    members: &[(String, Json)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(values) => values.into_iter().collect(),
            Value::Object(members) => Self::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name, value.into()))
                    .collect(),
            ),
        }
    }
}

impl<T: Into<Json>> FromIterator<T> for Json {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

impl Json {
    /// Reads a document.
    ///
    /// # Errors
    /// [`Error::MalformedJson`] for a text that is not JSON, has a member twice, or is beyond bounds.
    pub(in crate::service) fn parse(bytes: &[u8]) -> Result<Self> {
        let left = Cell::new(VALUES_MAX);
        let seed = Seed {
            depth: 0,
            left: &left,
        };
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let read = seed.deserialize(&mut reader);
        let read = read.and_then(|value| reader.end().map(|()| value));
        read.map_err(|why| Error::MalformedJson(why.to_string()))
    }

    /// The kind of the value, in words.
    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// Reads one value at a depth, as long as there are some left.
#[derive(Clone, Copy)]
struct Seed<'a> {
    depth: usize,
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        if self.depth > DEPTH_MAX {
            return Err(D::Error::custom(format!(
                "values stand in each other deeper than {DEPTH_MAX}"
            )));
        }
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(D::Error::custom(format!(
                "there are more than {VALUES_MAX} values"
            )));
        };
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json, E> {
        serde_json::Number::from_f64(value)
            .map(Json::Number)
            .ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Json, A::Error> {
        let inner = Seed {
            depth: self.depth + 1,
            ..self
        };
        let mut list = Vec::new();
        while let Some(value) = values.next_element_seed(inner)? {
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let inner = Seed {
            depth: self.depth + 1,
            ..self
        };
        let mut object: Vec<(String, Json)> = Vec::new();
        // An object has few members that are not refused. The number of values limits the cost of comparing them.
        while let Some(name) = members.next_key::<String>()? {
            if object.iter().any(|(other, _)| *other == name) {
                return Err(A::Error::custom(format!(
                    "the member {name:?} stands there twice"
                )));
            }
            object.push((name, members.next_value_seed(inner)?));
        }
        Ok(Json::Object(object))
    }
}

/// Collects the faults of a document.
#[derive(Debug, Default)]
pub(in crate::service) struct JsonCheck {
    found: Vec<Violation>,
}

/// A value at its place.
#[derive(Debug, Clone)]
pub(in crate::service) struct LocatedValue<'j> {
    pub(in crate::service) value: &'j Json,
    pub(in crate::service) pointer: String,
}

/// An object with known members only.
#[derive(Debug, Clone)]
pub(in crate::service) struct Object<'j> {
    members: &'j [(String, Json)],
    pointer: String,
}

impl<'j> LocatedValue<'j> {
    /// A whole document.
    pub(in crate::service) fn root(value: &'j Json) -> Self {
        Self {
            value,
            pointer: String::new(),
        }
    }

    /// The values of a list.
    pub(in crate::service) fn values(&self) -> Vec<Self> {
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
    pub(in crate::service) fn members(&self) -> Option<Object<'j>> {
        let Json::Object(members) = self.value else {
            return None;
        };
        Some(Object {
            members,
            pointer: self.pointer.clone(),
        })
    }
}

impl JsonCheck {
    /// Notes a fault at a place.
    pub(in crate::service) fn add(&mut self, pointer: &str, message: impl Into<String>) {
        self.found.push(violation_at_path(pointer, message));
    }

    /// Notes a fault of a value, which is therefore none.
    pub(in crate::service) fn wrong<T>(
        &mut self,
        at: &LocatedValue<'_>,
        message: impl Into<String>,
    ) -> Option<T> {
        self.add(&at.pointer, message);
        None
    }

    /// Notes that a value of another kind is expected.
    pub(in crate::service) fn expected<T>(&mut self, at: &LocatedValue<'_>, what: &str) -> Option<T> {
        self.wrong(at, format!("{what} is expected, not {}", at.value.kind()))
    }

    /// The value read, where there is no fault.
    pub(in crate::service) fn finish<T>(self, read: Option<T>) -> Result<T> {
        match read {
            Some(read) if self.found.is_empty() => Ok(read),
            _ => Err(Error::Invalid(Violations::of(self.found))),
        }
    }

    /// An object that has no members but these.
    pub(in crate::service) fn object<'j>(
        &mut self,
        at: &LocatedValue<'j>,
        known: &[&str],
    ) -> Option<Object<'j>> {
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
    pub(in crate::service) fn list<'j>(&mut self, at: &LocatedValue<'j>) -> Vec<LocatedValue<'j>> {
        match at.value {
            Json::List(_) => at.values(),
            _ => self.expected(at, "a list").unwrap_or_default(),
        }
    }

    /// A text that is not empty.
    pub(in crate::service) fn text(&mut self, at: &LocatedValue<'_>) -> Option<String> {
        let text = self.any_text(at)?;
        if text.is_empty() {
            return self.wrong(at, "a text that is not empty is expected");
        }
        Some(text)
    }

    /// A line of at most so many characters.
    pub(in crate::service) fn line(&mut self, at: &LocatedValue<'_>, most: usize) -> Option<String> {
        let text = self.text(at)?;
        if text.chars().count() > most || text.chars().any(char::is_control) {
            return self.wrong(at, format!("a line of at most {most} characters is expected"));
        }
        Some(text)
    }

    /// A name in one piece, as an attribute of a document can carry it.
    pub(in crate::service) fn token(&mut self, at: &LocatedValue<'_>) -> Option<String> {
        let text = self.text(at)?;
        if text.contains(char::is_whitespace) || text.len() > TOKEN_MAX {
            let message = format!("a text of at most {TOKEN_MAX} bytes, without spaces, is expected");
            return self.wrong(at, message);
        }
        Some(text)
    }

    /// A text without spaces, of any length.
    pub(in crate::service) fn token_of_any_length(&mut self, at: &LocatedValue<'_>) -> Option<String> {
        let text = self.text(at)?;
        if text.contains(char::is_whitespace) {
            return self.wrong(at, "a text without spaces is expected");
        }
        Some(text)
    }

    /// A text that a document can carry, which may be empty.
    pub(in crate::service) fn any_text(&mut self, at: &LocatedValue<'_>) -> Option<String> {
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
    pub(in crate::service) fn boolean(&mut self, at: &LocatedValue<'_>) -> Option<bool> {
        match at.value {
            Json::Bool(value) => Some(*value),
            _ => self.expected(at, "true or false"),
        }
    }

    /// A whole number from 1 to `max`.
    pub(in crate::service) fn count<T: TryFrom<u64> + Copy + PartialOrd + fmt::Display>(
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
    pub(in crate::service) fn number(
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
    pub(in crate::service) fn date_time(&mut self, at: &LocatedValue<'_>) -> Option<DateTime> {
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

impl<'j> Object<'j> {
    /// Its place.
    pub(in crate::service) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// A member; one that is null counts as absent.
    pub(in crate::service) fn get(&self, name: &str) -> Option<LocatedValue<'j>> {
        let (name, value) = self.members.iter().find(|(known, _)| known == name)?;
        (*value != Json::Null).then(|| LocatedValue {
            value,
            pointer: pointer_to_member(&self.pointer, name),
        })
    }

    /// Whether a member stands there as null, where that says something.
    pub(in crate::service) fn is_null(&self, name: &str) -> bool {
        let mut members = self.members.iter();
        members.any(|(known, value)| known == name && *value == Json::Null)
    }

    /// A member, or one of an object in it after a slash.
    pub(in crate::service) fn find(&self, path: &str) -> Option<LocatedValue<'j>> {
        let mut names = path.split('/');
        let first = self.get(names.next()?)?;
        names.try_fold(first, |at, name| at.members()?.get(name))
    }

    /// The value that `read` makes of a member; none where it is absent.
    pub(in crate::service) fn read<T>(
        &self,
        check: &mut JsonCheck,
        name: &str,
        read: impl FnOnce(&mut JsonCheck, &LocatedValue<'j>) -> Option<T>,
    ) -> Option<T> {
        read(check, &self.get(name)?)
    }

    /// The same of a member that has to be there.
    pub(in crate::service) fn read_required<T>(
        &self,
        check: &mut JsonCheck,
        name: &str,
        read: impl FnOnce(&mut JsonCheck, &LocatedValue<'j>) -> Option<T>,
    ) -> Option<T> {
        let at = self.required(check, name)?;
        read(check, &at)
    }

    /// A member that has to be there.
    pub(in crate::service) fn required(&self, check: &mut JsonCheck, name: &str) -> Option<LocatedValue<'j>> {
        let found = self.get(name);
        if found.is_none() {
            check.add(&self.pointer, format!("a member \"{name}\" is expected"));
        }
        found
    }
}

/// From this number on, one with a fraction or an exponent may stand for a neighbour.
const BEYOND: f64 = 9_007_199_254_740_992.0;

/// Whether a number is surely the one that was written.
pub(in crate::service) fn is_json_as_written(number: &serde_json::Number) -> bool {
    let is_within = |value: f64| value.abs() < BEYOND;
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(is_within)
}

/// The whole number from 0 on that a number is, also where it is written with a fraction of nothing, such as 600.0: JSON has one type
/// of numbers.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number within 53 bits, which is checked first"
)]
pub(in crate::service) fn whole_json_number(number: &serde_json::Number) -> Option<u64> {
    let written = || {
        let value = number.as_f64()?;
        let is_whole = (0.0..BEYOND).contains(&value) && value.fract() == 0.0;
        is_whole.then_some(value as u64)
    };
    number.as_u64().or_else(written)
}

/// A pointer to a member.
fn pointer_to_member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The members of an object that is being made, in their order.
#[derive(Debug, Default)]
pub(in crate::service) struct JsonMembers(Vec<(String, Json)>);

impl JsonMembers {
    /// With a value of one piece, or a list of such.
    pub(in crate::service) fn with(self, name: &str, value: impl Into<Value>) -> Self {
        self.holding(name, value.into())
    }

    /// The same, where there is one.
    pub(in crate::service) fn with_any(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        self.holding_any(name, value.map(Into::into))
    }

    /// With texts, where there are any.
    pub(in crate::service) fn with_texts(self, name: &str, texts: &[String]) -> Self {
        self.with_any(name, (!texts.is_empty()).then(|| texts.to_vec()))
    }

    /// With a value that has members itself.
    pub(in crate::service) fn holding(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// The same, where there is one.
    pub(in crate::service) fn holding_any(self, name: &str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.holding(name, value),
            None => self,
        }
    }

    /// With all of other members.
    pub(in crate::service) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}

impl From<JsonMembers> for Json {
    fn from(JsonMembers(members): JsonMembers) -> Self {
        Self::Object(members)
    }
}

#[cfg(test)]
mod tests;
