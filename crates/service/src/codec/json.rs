//! JSON from the network, read into a tree within bounds. Answers that only a client reads are written as such a tree.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{Error, Result};

/// How deep values may stand in each other, as in XML: no request needs a quarter of it.
const DEPTH_MAX: usize = 32;
/// Values of a document, as many as XML may have elements.
const VALUES_MAX: usize = 2_000;

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
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
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
    pub(crate) fn kind(&self) -> &'static str {
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

/// From this number on, one with a fraction or an exponent may stand for a neighbour.
const BEYOND: f64 = 9_007_199_254_740_992.0;

/// Whether a number is surely the one that was written.
pub(crate) fn is_json_as_written(number: &serde_json::Number) -> bool {
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
pub(crate) fn whole_json_number(number: &serde_json::Number) -> Option<u64> {
    let written = || {
        let value = number.as_f64()?;
        let is_whole = (0.0..BEYOND).contains(&value) && value.fract() == 0.0;
        is_whole.then_some(value as u64)
    };
    number.as_u64().or_else(written)
}

/// The members of an object that is being made, in their order.
#[derive(Debug, Default)]
pub(crate) struct JsonObject(Vec<(String, Json)>);

impl JsonObject {
    /// With a value of one piece, or a list of such.
    pub(crate) fn with(self, name: &str, value: impl Into<Value>) -> Self {
        self.holding(name, value.into())
    }

    /// The same, where there is one.
    pub(crate) fn with_any(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        self.holding_any(name, value.map(Into::into))
    }

    /// With texts, where there are any.
    pub(crate) fn with_texts(self, name: &str, texts: &[String]) -> Self {
        self.with_any(name, (!texts.is_empty()).then(|| texts.to_vec()))
    }

    /// With a value that has members itself.
    pub(crate) fn holding(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// The same, where there is one.
    pub(crate) fn holding_any(self, name: &str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.holding(name, value),
            None => self,
        }
    }

    /// With all of other members.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}

impl From<JsonObject> for Json {
    fn from(JsonObject(members): JsonObject) -> Self {
        Self::Object(members)
    }
}

#[cfg(test)]
mod tests;
