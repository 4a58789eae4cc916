//! Numbers of XML Schema that may be infinite or none (xs:double), kept as numbers or words.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::xml::datatypes::{parse_double, write_double};

/// A double of any value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Double(f64);

/// The two ways in which a double is kept.
#[derive(Deserialize)]
#[serde(untagged)]
enum KeptDouble {
    Number(f64),
    Word(String),
}

impl Serialize for Double {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.serialize_str(&write_double(self.0))
        }
    }
}

impl<'de> Deserialize<'de> for Double {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match KeptDouble::deserialize(deserializer)? {
            KeptDouble::Number(number) => Ok(Double(number)),
            KeptDouble::Word(word) => parse_double(&word).map(Double).map_err(serde::de::Error::custom),
        }
    }
}

impl From<f64> for Double {
    fn from(value: f64) -> Double {
        Double(value)
    }
}

impl From<Double> for f64 {
    fn from(value: Double) -> f64 {
        value.0
    }
}
