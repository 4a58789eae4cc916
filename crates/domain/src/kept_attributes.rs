//! The attributes of nodes as they are kept: each a word or a number.

use std::collections::BTreeMap;

use scheduler::domain::Attribute;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;

pub(crate) fn serialize<S: Serializer>(
    attributes: &BTreeMap<String, Attribute>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let value = |attribute: &Attribute| match attribute {
        Attribute::Word(word) => Value::from(word.as_str()),
        Attribute::Number(number) => Value::from(*number),
    };
    serializer.collect_map(
        attributes
            .iter()
            .map(|(name, attribute)| (name, value(attribute))),
    )
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Attribute>, D::Error> {
    let kept = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let attribute = |(name, value): (String, Value)| {
        let read = match &value {
            Value::String(word) => Some(Attribute::Word(word.clone())),
            number => number.as_i64().map(Attribute::Number),
        };
        let read = read.ok_or_else(|| D::Error::custom(format!("{value} is no value of {name}")));
        read.map(|read| (name, read))
    };
    kept.into_iter().map(attribute).collect()
}
